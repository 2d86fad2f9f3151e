"""
Where a set-valued classifier does not decide
=============================================

:class:`ImpreciseDiscriminantAnalysis <prudent.ImpreciseDiscriminantAnalysis>` answers
with every class that is optimal for some mean inside a box. The box is wider for
classes with fewer rows, so the undecided region (hatched) grows when rows are removed.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from prudent import ImpreciseDiscriminantAnalysis
from prudent.plots import SetRegionDisplay

iris = load_iris()
X, y = iris.data[:, 2:], iris.target_names[iris.target]
figure, axes = plt.subplots(
    1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained"
)
for ax, step in zip(axes, (1, 5), strict=True):
    model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X[::step], y[::step])
    SetRegionDisplay.from_estimator(model, X[::step], y[::step], ax=ax)
    ax.set(title=f"{50 // step} rows in each class")
    ax.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
