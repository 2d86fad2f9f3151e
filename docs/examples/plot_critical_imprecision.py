"""
How doubtful is each prediction?
================================

``critical_imprecision`` says how large the imprecision must grow until a row's answer
is no longer one class. Rows near a boundary become doubtful first, and wrong
predictions are found among them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from prudent import ImpreciseDiscriminantAnalysis

X, y = load_wine(return_X_y=True)
X = X[:, [0, 9]]  # alcohol and colour intensity
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)
model = ImpreciseDiscriminantAnalysis().fit(X_train, y_train)
# Column by column, the imprecision from which on a class is in the answer.
second = np.sort(model.critical_imprecision(X_test), axis=1)[:, 1]
right = model.predict(X_test) == y_test

figure, ax = plt.subplots()
ax.scatter(*X_test[right].T, c=np.log10(second[right]), cmap="viridis", label="right")
points = ax.scatter(
    *X_test[~right].T, c=np.log10(second[~right]), cmap="viridis", marker="X", s=70,
    edgecolor="C3", label="wrong",
)  # fmt: skip
figure.colorbar(points, label="log10 of the imprecision that makes it doubtful")
ax.set(xlabel="alcohol (%)", ylabel="colour intensity")
ax.legend()
print(f"median: right {np.median(second[right]):.2f}", end=", ")
print(f"wrong {np.median(second[~right]):.2f}")
