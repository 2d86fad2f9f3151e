"""
A small study with a certified error
====================================

Fifty flowers of each species, two measurements. What error may we state, knowing that
the means and covariances themselves are estimates?

The minimax probability machine states the largest error under every distribution with
the given moments. With few rows the moments are wrong, so the plain statement is too
optimistic. ``uncertainty`` widens them by radii that hold the true moments with
probability ``confidence``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris

from prudent import ClassMoments, MinimaxProbabilityClassifier

# %%
# One study
# ---------
# Setosa and versicolor, petal length and width: three statements from a hundred rows.
iris = load_iris()
rows = iris.target < 2
petals, species = iris.data[rows, 2:], iris.target_names[iris.target[rows]]
for uncertainty in (None, "gaussian", "bootstrap"):
    model = MinimaxProbabilityClassifier(uncertainty=uncertainty, random_state=0)
    model.fit(petals, species)
    print(
        f"uncertainty={uncertainty!r}: worst-case error {model.worst_case_error_:.3f}"
    )
    print(" ", model.guarantees_[0] if model.guarantees_ else "no promise")

# %%
# ``"gaussian"`` takes its radii from normal theory. Under every law within them fewer
# than one flower in eight is wrong; if the classes are normal, as the radii assume
# anyway, about three in a thousand, and that is what it promises. ``"bootstrap"``
# resamples the rows and does not assume that, but its radii are approximate, so it
# promises nothing.
#
# Is the statement true?
# ----------------------
# Take a larger table as the population, draw small studies from it, and compare what
# each states with the worst case of its plane under the population's moments.
data = load_breast_cancer()
names = list(data.feature_names)
X = data.data[:, [names.index("worst radius"), names.index("worst concave points")]]
X = X / X.std(axis=0)
y = data.target_names[data.target]
population = ClassMoments.from_arrays(X, y)
means, covariances = population.mean, population.covariance()


def small_study(seed, size=60):
    generator = np.random.default_rng(seed)
    chosen = [
        generator.choice(np.flatnonzero(y == label), size, replace=False)
        for label in population.classes
    ]
    return X[np.concatenate(chosen)], y[np.concatenate(chosen)]


def true_worst_error(model):
    normal, offset = model.coef_[0], -model.intercept_[0]
    distances = (means @ normal - offset) * [-1, 1]  # classes_[1] lies above
    spreads = np.sqrt([normal @ covariance @ normal for covariance in covariances])
    kappas = np.maximum(distances / spreads, 0)
    return (1 / (1 + kappas**2)).max()


stated, truth = {None: [], "gaussian": []}, {None: [], "gaussian": []}
for seed in range(100):
    rows, labels = small_study(seed)
    for uncertainty in stated:
        model = MinimaxProbabilityClassifier(uncertainty=uncertainty).fit(rows, labels)
        stated[uncertainty].append(model.worst_case_error_)
        truth[uncertainty].append(true_worst_error(model))

figure, ax = plt.subplots()
for uncertainty, label in ((None, "plug-in"), ("gaussian", "with radii")):
    ax.plot(stated[uncertainty], truth[uncertainty], ".", label=label)
    kept = np.mean(np.array(truth[uncertainty]) <= stated[uncertainty])
    print(f"{label}: true in {kept:.0%} of the studies")
ax.axline((0, 0), slope=1, color="0.5", linestyle="--")
ax.set(xlabel="stated worst-case error", ylabel="worst case under the true moments")
ax.set(xlim=(0.2, 1), ylim=(0.2, 1))
ax.legend()
plt.show()

# %%
# Points below the diagonal are true statements. The plug-in statement is false in most
# studies; with radii it is true, and weak: these classes overlap, and a bound for any
# law with such moments needs many rows before it says much.
for size in (30, 60, 120, 210):
    rows, labels = small_study(0, size)
    model = MinimaxProbabilityClassifier(uncertainty="gaussian").fit(rows, labels)
    wrong = (model.predict(X) != y).mean()
    print(
        f"{size:3d} rows a class: stated {model.worst_case_error_:.3f}, "
        f"whole table {wrong:.3f}"
    )

# %%
# Only a table in a paper
# -----------------------
# The same statement follows from published means and covariances. They are taken as
# exact, so nothing is plug-in; whether that is right is for the reader to judge.
published = MinimaxProbabilityClassifier.from_moments(
    means=means,
    covariances=covariances,
    counts=[357, 212],
    classes=["benign", "malignant"],
)
print(published.guarantees_[0])
