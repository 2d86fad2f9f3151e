"""
Choose the imprecision by cross-validation
==========================================

One pass per fold gives the score of every imprecision at once, because a row's set can
only grow with it. ``u80`` pays 1 for a right single answer and 0.8 for a right pair;
``u65`` pays 0.65. Imprecision 0 is ordinary discriminant analysis.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from prudent import ImpreciseDiscriminantAnalysisCV

X, y = load_iris(return_X_y=True)
X = X[:, :2]  # sepals only: two of the species overlap
figure, ax = plt.subplots()
for scoring in ("u80", "u65"):
    model = ImpreciseDiscriminantAnalysisCV(scoring=scoring).fit(X, y)
    results = model.cv_results_
    ax.plot(results["imprecision"], results["mean_test_score"], label=scoring)
    ax.plot(model.imprecision_, model.best_score_, "o", color="0.3")
    print(scoring, "is best at imprecision", model.imprecision_)
ax.set(xlabel="imprecision (rows)", ylabel="cross-validated utility")
ax.legend()
plt.show()
