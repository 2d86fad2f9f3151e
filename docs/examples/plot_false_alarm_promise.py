"""
A false-alarm rate that is kept
===============================

Learn one digit, ask for false-alarm rates from 5 % to 40 %, and measure them on images
of that digit that were left out. The promise is an average over calibration sets; a
single one scatters around the diagonal.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from prudent import LowDensityRejector
from prudent.plots import FalseAlarmDisplay

X, y = load_digits(return_X_y=True)
train, rest = train_test_split(X[y == 8], test_size=0.4, random_state=0)
projection = PCA(8).fit(train)
detector = LowDensityRejector(random_state=0).fit(projection.transform(train))
print(detector.guarantees_[0])
caught = detector.predict(projection.transform(X[y != 8])) == -1
print(f"other digits rejected: {caught.mean():.3f}")

# %%
rates = np.linspace(0.05, 0.4, 15)
FalseAlarmDisplay.from_estimator(
    detector, projection.transform(rest), false_alarm_rates=rates
)
