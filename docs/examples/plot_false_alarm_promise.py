"""
A false-alarm rate that is kept
===============================

Learn benign tumours, ask for false-alarm rates from 5 % to 40 %, and measure them on
benign ones that were left out. The promise is an average over calibration sets; a
single one scatters around the diagonal.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from prudent import LowDensityRejector
from prudent.plots import FalseAlarmDisplay

X, y = load_breast_cancer(return_X_y=True)  # 0: malignant, 1: benign
train, rest = train_test_split(X[y == 1], test_size=0.4, random_state=0)
detector = LowDensityRejector(random_state=0).fit(train)
print(detector.guarantees_[0])
caught = detector.predict(X[y == 0]) == -1
print(f"malignant ones rejected: {caught.mean():.3f}")

# %%
rates = np.linspace(0.05, 0.4, 15)
FalseAlarmDisplay.from_estimator(detector, rest, false_alarm_rates=rates)
