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

X, y = load_wine(return_X_y=True, as_frame=True)
comparison = prudent.compare(X, y, methods=["minimax", "rejection"], cv=5)
print(comparison)

# %%
# The minimax classifier promises an error rate per class; its promise rests on
# estimated moments, so the table calls it *plug-in*. The rejection method promises
# at most 5 % false alarms for each class.
display = GuaranteeDisplay.from_comparison(comparison).plot()

# %%
# The same figures as a table.
print(display.frame().select(["method", "scope", "bound", "measured", "verdict"]))
