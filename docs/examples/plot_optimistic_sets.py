"""
Sets that grow with the radius
==============================

A row keeps every class that is not dominated by another one for all moments inside
the balls. A large ball keeps everything; a tenth of the data-driven radius is a good
start on iris, and too large on wine, with 13 features and 48 rows in a class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split

from prudent import OptimisticScoreClassifier
from prudent.metrics import set_size, u80_score

scales = np.geomspace(0.001, 1, 13)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for name, load in (("iris", load_iris), ("wine", load_wine)):
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=y
    )
    sizes, utilities = [], []
    for scale in scales:
        model = OptimisticScoreClassifier(radius_scale=scale).fit(X_train, y_train)
        sets = model.predict_set(X_test)
        sizes.append(set_size(sets).mean())
        utilities.append(u80_score(y_test, sets, model.classes_))
    axes[0].semilogx(scales, sizes, marker=".", label=name)
    axes[1].semilogx(scales, utilities, marker=".", label=name)
axes[0].set(xlabel="radius_scale", ylabel="mean set size")
axes[1].set(xlabel="radius_scale", ylabel="utility u80")
axes[0].legend()
