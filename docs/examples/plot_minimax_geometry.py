"""
Two ellipsoids that touch
=========================

Let the ellipsoids of two classes grow at the same speed, in standard deviations. The
plane with the best worst-case accuracy runs through the point where they touch; the
size at which they touch is ``kappa_``.
"""

from sklearn.datasets import load_iris

from prudent import MinimaxProbabilityClassifier
from prudent.plots import MinimaxGeometryDisplay

iris = load_iris()
rows = iris.target > 0
X, y = iris.data[rows, 2:], iris.target_names[iris.target[rows]]
model = MinimaxProbabilityClassifier().fit(X, y)
print(f"kappa {model.kappa_:.3f}: accuracy at least {model.worst_case_accuracy_:.3f}")

display = MinimaxGeometryDisplay.from_estimator(model, X, y)
display.ax_.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
