"""
Fit in batches, get the same model
==================================

Moments add, so a fit in batches equals the fit on all rows. The figure follows the
worst-case error while the rows of two digits arrive.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from prudent import MinimaxProbabilityClassifier

X, y = load_digits(n_class=2, return_X_y=True)
X = X[:, X.std(axis=0) > 2]
X = X + np.random.default_rng(0).normal(scale=2.0, size=X.shape)  # noisy pixels
stream = MinimaxProbabilityClassifier(covariance=0.1)
seen, errors = [], []
for start in range(0, len(X), 40):
    batch = slice(start, start + 40)
    stream.partial_fit(X[batch], y[batch], classes=[0, 1])
    seen.append(min(start + 40, len(X)))
    errors.append(stream.worst_case_error_)
whole = MinimaxProbabilityClassifier(covariance=0.1).fit(X, y)
print("largest difference of a coefficient:", np.abs(stream.coef_ - whole.coef_).max())

figure, ax = plt.subplots()
ax.plot(seen, errors, marker=".")
ax.axhline(
    whole.worst_case_error_, color="0.5", linestyle="--", label="all rows at once"
)
ax.set(xlabel="rows seen", ylabel="stated worst-case error", ylim=(0, None))
ax.legend()
plt.show()
