"""
Two detectors of one class
==========================

An ellipsoid needs a mean and a covariance and is fitted in no time. The low-density
rejector follows any shape. Both hold out rows to set their threshold, so both keep the
false-alarm rate, on data of any law.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from prudent import LowDensityRejector, MinimaxOutlierDetector

X = load_wine().data[:, [6, 9]]  # flavanoids and colour: three clusters
axes_range = [np.linspace(X[:, j].min() - 1, X[:, j].max() + 1, 120) for j in (0, 1)]
mesh = np.meshgrid(*axes_range)
grid = np.column_stack([axis.ravel() for axis in mesh])

figure, axes = plt.subplots(
    1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained"
)
detectors = (
    MinimaxOutlierDetector(false_alarm_rate=0.1, random_state=0),
    LowDensityRejector(false_alarm_rate=0.1, random_state=0),
)
for ax, detector in zip(axes, detectors, strict=True):
    accepted = detector.fit(X).predict(grid).reshape(mesh[0].shape) == 1
    ax.contourf(*mesh, accepted, levels=[0.5, 1.5], colors=["C0"], alpha=0.25)
    ax.plot(*X.T, ".", color="0.3")
    ax.set(title=type(detector).__name__, xlabel="flavanoids (mg/100 ml)")
axes[0].set_ylabel("colour intensity")
