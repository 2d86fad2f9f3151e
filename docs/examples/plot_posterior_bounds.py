"""
Bounds of a posterior probability
=================================

Moments are estimates. ``posterior_bounds`` gives the smallest and largest probability
of a class over all moments in reach. The interval is widest where the classes meet, and
wider when fewer rows were seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from prudent import OptimisticScoreClassifier

X, y = load_iris(return_X_y=True)
X, y = X[y > 0][:, [2]], y[y > 0]  # petal length of versicolor and virginica
grid = np.linspace(2, 8, 301)[:, None]

figure, axes = plt.subplots(1, 2, sharey=True, figsize=(8, 3.5), layout="constrained")
for ax, step in zip(axes, (1, 5), strict=True):
    model = OptimisticScoreClassifier(radius_scale=0.1).fit(X[::step], y[::step])
    lower, upper = model.posterior_bounds(grid)
    ax.fill_between(grid[:, 0], lower[:, 1], upper[:, 1], alpha=0.3)
    ax.plot(X[::step, 0], (y[::step] == 2).astype(float), "|", color="0.3")
    ax.set(title=f"{len(X[::step])} rows", xlabel="petal length (cm)")
axes[0].set_ylabel("probability of virginica")
