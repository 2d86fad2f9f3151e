"""
Compare methods and hold their promises against data
====================================================

:func:`prudent.compare` fits every method on the same folds. The figure shows each
promise (x) against the error measured on the rows left out (y). A point above the
diagonal would break its promise.
"""

from sklearn.datasets import load_wine

import prudent
from prudent.plots import GuaranteeDisplay

X, y = load_wine(return_X_y=True)
comparison = prudent.compare(X, y, methods=["minimax", "rejection"], cv=5)
for row in comparison.rows:
    print(f"{row.method:12} error {row.error:.3f}")
    for promise in row.promises:
        print("   ", promise.guarantee)
        print(f"    measured {promise.check.measured:.3f}: {promise.check.verdict}")

# %%
# The minimax classifier promises an error rate per class; its promise rests on
# estimated moments. The rejection method promises a false-alarm rate for each class.
GuaranteeDisplay.from_comparison(comparison).plot()
