"""
Trade one class's worst case for the other's
============================================

Which error may be larger is a question of costs. The Pareto frontier shows every
pair of worst-case errors that some plane attains; :class:`MinimaxProbabilityClassifier
<prudent.MinimaxProbabilityClassifier>` takes the point where both are equal, or where
both are equal after weighting with ``costs``. That is not the decision of least
expected cost, for which the tutorial on medical screening moves a threshold.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from prudent import MinimaxProbabilityClassifier

X, y = load_breast_cancer(return_X_y=True)  # 0: malignant, 1: benign
equal = MinimaxProbabilityClassifier().fit(X, y)
errors = equal.pareto_frontier(200).errors

# A missed malignant case counts five times a false alarm.
costs = [[0, 5], [1, 0]]
costly = MinimaxProbabilityClassifier(objective="cost", costs=costs).fit(X, y)

figure, ax = plt.subplots()
ax.plot(errors[:, 0], errors[:, 1], color="0.4")
ax.plot(*equal.class_worst_case_error_, "o", label="equal errors")
ax.plot(*costly.class_worst_case_error_, "s", label="malignant counts 5 times")
ax.set(xlabel="worst-case error, malignant", ylabel="worst-case error, benign")
ax.legend()
plt.show()
