"""
Medical screening: costs, and answers that may be two classes
=============================================================

569 fine-needle aspirates, 30 measurements each, malignant or benign. Two facts about
screening decide the method:

- a missed malignant case costs far more than a second examination;
- a second examination exists. "I do not know" is a useful answer, if it is rare.

So we want a decision that knows costs, and one that may answer with *both* classes,
which means: examine again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import (
    ImpreciseDiscriminantAnalysis,
    MinimaxProbabilityClassifier,
    certify,
)
from prudent.metrics import coverage_score, determinacy_score, single_accuracy_score
from prudent.model_selection import cross_val_predict_set

data = load_breast_cancer()
X = data.data
y = data.target_names[data.target]
classes = np.unique(y)  # benign, malignant: the order of every table below
folds = StratifiedKFold(5, shuffle=True, random_state=0)

# %%
# A point of reference
# --------------------
# Everything below is measured out of fold: on rows the model has not seen.
logistic = make_pipeline(StandardScaler(), LogisticRegression())
answer = cross_val_predict(logistic, X, y, cv=folds)
for label in classes:
    print(f"{label}: error {(answer[y == label] != label).mean():.3f}")

# %%
# Logistic regression errs little. But it says nothing about the next hundred patients,
# nor which of its answers are doubtful.
#
# A promise for each class
# ------------------------
# The minimax probability machine bounds the error of each class under every
# distribution with the means and covariances of the classes.
minimax = MinimaxProbabilityClassifier().fit(X, y)
for promise in minimax.guarantees_:
    print(promise)

# %%
# The sentence ends with its assumption: the moments are estimates ("plug-in"). Is the
# promise kept out of fold? ``check`` answers with an exact binomial interval.
answer = cross_val_predict(minimax, X, y, cv=folds)
for promise in minimax.guarantees_:
    rows = y == promise.scope
    check = promise.check((answer[rows] != promise.scope).sum(), rows.sum())
    print(f"{promise.scope}: {check.measured:.3f} measured, {check.verdict}")

# %%
# The bounds are far above the errors: they hold for the worst distribution, and this
# one is not the worst. They are a ceiling, not a forecast.
#
# Costs: move the threshold, and certify what it costs
# ----------------------------------------------------
# Rows of ``costs`` are the truth: missing a malignant case costs 5, sending a benign
# one on costs 1. With these costs the answer of least *expected* cost is "malignant"
# where its probability exceeds 1 / (1 + 5): a threshold on the probabilities of any
# classifier that gives good ones.
costs = [[0, 1], [5, 0]]
prices, truth = np.asarray(costs), np.searchsorted(classes, y)
candidates = {
    "logistic, threshold 1/2": logistic,
    "logistic, threshold 1/6": FixedThresholdClassifier(
        logistic, threshold=1 / 6, pos_label="malignant"
    ),
    "minimax": MinimaxProbabilityClassifier(),
    'minimax, objective="cost"': MinimaxProbabilityClassifier(
        objective="cost", costs=costs
    ),
}
per_patient = []
for name, candidate in candidates.items():
    answer = cross_val_predict(candidate, X, y, cv=folds)
    per_patient.append(prices[truth, np.searchsorted(classes, answer)].mean())
    print(f"{name:26} {per_patient[-1]:.3f} per patient")
figure, ax = plt.subplots(layout="constrained")
ax.barh(list(candidates), per_patient, color=["0.7", "tab:blue", "0.7", "0.7"])
ax.set(xlabel="cost per patient, out of fold")
ax.invert_yaxis()
plt.show()

# %%
# ``objective="cost"`` of the minimax machine is the dearest here, and that is no fault
# of it: it does not minimise the expected cost. It makes the larger of the two
# *worst-case class errors* small, after weighting each with its cost, which serves who
# must answer to each class by itself. For the bill, move the threshold.
#
# What the threshold will cost is a promise, too, if rows that it has not seen certify
# it.
half = np.random.default_rng(0).permutation(len(y))
fitted = candidates["logistic, threshold 1/6"].fit(X[half[:285]], y[half[:285]])
print(certify(fitted, X[half[285:]], y[half[285:]], costs=costs)[-1])

# %%
# Answers that may be two classes
# -------------------------------
# Imprecise discriminant analysis lets each class mean move in a box and returns every
# class that is best for some position. ``imprecision`` sets the size of the box in
# rows: how many made-up patients could pull a mean. It promises no coverage, so we
# measure it.
print("imprecision  undecided  right if single  covered")
for imprecision in (0, 1, 2, 4, 8):
    model = ImpreciseDiscriminantAnalysis(imprecision=imprecision)
    sets = cross_val_predict_set(model, X, y, cv=folds)
    print(
        f"{imprecision:11d}  {1 - determinacy_score(y, sets, classes):9.3f}"
        f"  {single_accuracy_score(y, sets, classes):15.3f}"
        f"  {coverage_score(y, sets, classes):7.3f}"
    )


# %%
# From sets to an action
# ----------------------
# Give the set "both" the price of a second examination, 0.5 per patient, and compare
# the total. A single answer costs what ``costs`` says.
def cost_per_patient(sets):
    single = sets.sum(axis=1) == 1
    return np.where(single, prices[truth, sets.argmax(axis=1)], 0.5).mean()


imprecisions = [0, 0.5, 1, 2, 3, 4, 6, 8]
figure, ax = plt.subplots()
for covariance_type in ("full", "tied"):
    per_patient = [
        cost_per_patient(
            cross_val_predict_set(
                ImpreciseDiscriminantAnalysis(
                    covariance_type=covariance_type, imprecision=imprecision
                ),
                X,
                y,
                cv=folds,
            )
        )
        for imprecision in imprecisions
    ]
    ax.plot(imprecisions, per_patient, marker="o", label=covariance_type)
answer = cross_val_predict(logistic, X, y, cv=folds)
logistic_cost = prices[truth, np.searchsorted(classes, answer)].mean()
ax.axhline(
    logistic_cost, color="0.5", linestyle="--", label="logistic, never undecided"
)
ax.set(xlabel="imprecision (rows)", ylabel="cost per patient", ylim=(0, None))
ax.legend()
plt.show()

# %%
# A little imprecision pays: some patients are examined twice, fewer single answers are
# wrong. At two rows, with a covariance for each class, the set-valued answer costs a
# little less than logistic regression with its usual threshold, and about as much as
# with the threshold moved to 1/6; beyond that, too many patients are sent on. With one
# covariance for both classes it is dearer at every imprecision.
#
# What is promised, and what is not
# ---------------------------------
# - The minimax bounds hold for every distribution with the moments used. The moments
#   are estimates here; :ref:`sphx_glr_gallery_tutorials_plot_small_sample.py` removes
#   that condition.
# - The sets promise no coverage. The figures above were measured on these patients, and
#   the imprecision was read off the same figure: choose it by inner cross-validation
#   (:class:`~prudent.ImpreciseDiscriminantAnalysisCV`) when it must stand on its own.
