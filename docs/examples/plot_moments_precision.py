"""
Why moments are merged, not summed
==================================

The textbook formula, mean of squares minus square of the mean, loses its digits when
the mean is large. :class:`ClassMoments <prudent.ClassMoments>` merges centred parts and
keeps them. What error is left is that of storing the moved rows in 16 digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from prudent import ClassMoments

X, y = load_breast_cancer(return_X_y=True)
X = X / X.std(axis=0)
exact = np.cov(X[y == 0].T, ddof=0)
offsets = 10.0 ** np.arange(9)
textbook, merged = [], []
for offset in offsets:
    moved = X + offset
    rows = moved[y == 0]
    mean = rows.mean(axis=0)
    naive = rows.T @ rows / len(rows) - np.outer(mean, mean)
    parts = (ClassMoments.from_arrays(moved[i::7], y[i::7]) for i in range(7))
    ours = ClassMoments.reduce(parts).covariance()[0]
    for errors, found in ((textbook, naive), (merged, ours)):
        errors.append(np.abs(found - exact).max())

figure, ax = plt.subplots()
ax.loglog(offsets, textbook, marker="o", label="sum of squares")
ax.loglog(offsets, merged, marker="s", label="ClassMoments, 7 merged parts")
ax.set(xlabel="offset (standard deviations)", ylabel="largest error of the covariance")
ax.legend()
plt.show()
