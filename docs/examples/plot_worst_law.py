"""
The distribution that attains the bound
=======================================

A worst-case bound is worth something only if it is tight. ``least_favourable`` draws
rows from a law that has the mean and covariance of a class, and of which the plane gets
exactly the promised share wrong.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from prudent import MinimaxProbabilityClassifier

X, y = load_iris(return_X_y=True)
X, y = X[y > 0][:, 2:], y[y > 0]  # petals of versicolor (1) and virginica (2)
model = MinimaxProbabilityClassifier().fit(X, y)
worst = model.least_favourable(2, n_samples=20_000, random_state=0)
print(f"promised: error of class 2 at most {model.class_worst_case_error_[1]:.3f}")
print(f"iris rows: {(model.predict(X[y == 2]) != 2).mean():.3f}")
print(f"worst law: {(model.predict(worst) != 2).mean():.3f}")

figure, axes = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(8, 4))
for ax, rows, title in zip(
    axes, (X[y == 2], worst[:200]), ("iris", "worst law"), strict=True
):
    ax.scatter(*X[y == 1].T, s=8, color="C0", label="versicolor")
    ax.scatter(*rows.T, s=8, color="C1", label="virginica")
    ax.axline(
        (0, -model.intercept_[0] / model.coef_[0, 1]),
        slope=-model.coef_[0, 0] / model.coef_[0, 1],
        color="0.4",
    )
    ax.set(title=title, xlabel="petal length (cm)", xlim=(1, 8), ylim=(0, 4))
axes[0].set_ylabel("petal width (cm)")
axes[0].legend(loc="upper left")
plt.show()
