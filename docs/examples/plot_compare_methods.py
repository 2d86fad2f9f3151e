"""
Compare methods and hold their promises against data
====================================================

:func:`prudent.compare` fits every method on the same folds. The figure shows each
promise (x) against the error measured on the rows left out (y), with its exact
interval. A point above the diagonal may be chance: the verdict says whether it is.
"""

from sklearn.datasets import load_wine

import prudent
from prudent.plots import GuaranteeDisplay

X, y = load_wine(return_X_y=True)
comparison = prudent.compare(X, y, methods=["minimax", "rejection"], best=False)
for row in comparison.rows:
    print(f"{row.method:12} error {row.error:.3f}")
    for promise in row.promises:
        print("   ", promise.guarantee)
        print(f"    measured {promise.check.measured:.3f}: {promise.check.verdict}")

# %%
# Every method is made to keep the promise asked for, here by default a coverage in each
# class. Promises that a method makes by itself follow: minimax bounds the error of each
# class, as far as moments are as estimated; rejection the false alarms in each class.
GuaranteeDisplay.from_comparison(comparison)
