"""
What a promise on average hides, and what a promise in every subgroup costs
============================================================================

A bureau classifies whether a household earns more than a limit, from a census table,
and wants at most 10 % of its automatic answers to be wrong. That is a promise about all
rows together. Is it kept for women and men, for the young and the old? This page holds
the plain promise against parts of the population, makes the same promise in each of
them, and counts what that costs in answers. What is shown are error rates and coverage
by group, with exact limits; what they mean for anybody is not a question of statistics.

The rows are those of the census table adult where the folder of data sets is at hand,
and are drawn here where it is not.
"""

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from prudent import ConformalClassifier, SelectiveClassifier, plan
from prudent.certification.planning import rows_of_table
from prudent.plots import SubgroupDisplay

rng = np.random.default_rng(0)


def census():
    """Rows with words, and whether the income is above the limit."""
    folder = Path(os.environ.get("PRUDENT_DATA", "../shared/data"))
    stored = folder / "adult_strings.csv.gz"
    if stored.exists():
        table = pd.read_csv(stored)
        above = table.pop("target")
        return table, (above == above.max()).to_numpy().astype(int)
    n = 20_000
    table = pd.DataFrame(
        {
            "age": rng.integers(17, 80, n),
            "sex": rng.choice(["Female", "Male"], n, p=[0.33, 0.67]),
            "race": rng.choice(["White", "Black", "Other"], n, p=[0.86, 0.13, 0.01]),
            "education_num": rng.integers(1, 17, n),
        }
    )
    noise = np.where(table["age"] < 30, 0.5, 2.5)
    rank = 0.05 * table["age"] + 0.3 * table["education_num"] - 6
    return table, (rank + noise * rng.normal(size=n) > 0).to_numpy().astype(int)


people, above = census()
order = rng.permutation(len(people))
old, new = order[:6000], order[6000:]
X, y = people.iloc[old], above[old]
X_new, y_new = people.iloc[new], above[new]

words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
boosting = make_pipeline(
    make_column_transformer((ordinal, words), remainder="passthrough"),
    HistGradientBoostingClassifier(random_state=0),
)

# %%
# The plain promise
# -----------------
# Half of 6000 rows are held out to prove that at most 10 % of the answers are wrong.
settings = {"error_rate": 0.1, "calibration_size": 0.5, "random_state": 0}
plain = SelectiveClassifier(boosting, **settings).fit(X, y)
print(plain.guarantees_[0])
answered = plain.answers(X_new)
wrong = plain.predict(X_new)[answered] != y_new[answered]
print(f"answered {answered.mean():.3f}, of which wrong {wrong.mean():.3f}")

# %%
# It is kept on all rows. In each subgroup:
by = ["sex", "race", "age:30,45,60"]
_, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
shown = SubgroupDisplay.from_predictions(
    y_new,
    plain.predict_set(X_new),
    plain.guarantees_[0],
    subgroups=by,
    X=X_new,
    classes=plain.classes_,
    ax=axis,
    name="plain promise",
)
n_subgroups = len(shown.frame()) - 1  # the first line is about all rows
for line in shown.frame().to_pylist():
    if line["verdict"] == "broken":
        print(
            f"broken: {line['subgroup']}, {line['measured']:.3f} of the answers wrong"
        )

# %%
# Nothing went wrong: a mean of 10 % says nothing about its parts. Where errors are
# rare, as among the young, far fewer answers are wrong than the 10 % allow, and they
# pay for the others, of whom more are answered than would be alone.
#
# The promise in every subgroup
# -----------------------------
# Rows of the same sex, race and age band form a cell; each cell with rows enough has a
# threshold of its own, and all of them hold at once with 95 %. So at most 10 % of the
# answers are wrong in every sex, race and age band in which any are given, and over
# all: ``guarantees_`` names these parts. A warning names cells with too few rows for
# any threshold; in others none proves 10 %, as here from 45 years on, and nobody is
# answered there either.
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    parted = SelectiveClassifier(boosting, **settings, subgroups=by).fit(X, y)
print(*(warning.message for warning in caught))
_, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
shown = SubgroupDisplay.from_estimator(
    parted, X_new, y_new, ax=axis, name="in every subgroup"
)
cells = [line["subgroup"] for line in shown.frame().to_pylist()]
broken = shown.frame()["verdict"].to_pylist().count("broken")
print(f"{len(cells)} promises, {broken} broken")
given = parted.answers(X_new)
print(f"answered {given.mean():.3f} instead of {answered.mean():.3f}")

# %%
# That is the price: many of the rows that were answered are now handed over, some
# because answers about them are often wrong, others because their cell has too few rows
# to prove anything. Fewer and larger subgroups cost less.
for columns in (["sex"], ["sex", "age:30,45,60"]):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the same kind
        fewer = SelectiveClassifier(boosting, **settings, subgroups=columns).fit(X, y)
    print(f"by {' and '.join(columns)}: {fewer.answers(X_new).mean():.3f} answered")

# %%
# Sets instead of answers
# -----------------------
# A set of labels that holds the truth for 90 % of the rows: the promise in every
# subgroup costs far less, because the p-value of a label is the largest of those in the
# subgroups that hold the row, and no cell has to stand alone.
small = X.iloc[:4000], y[:4000]
for name, option in (("plain", None), ("in every subgroup", by)):
    sets = ConformalClassifier(
        boosting, subgroups=option, calibration_size=0.25, random_state=0
    ).fit(*small)
    members = sets.predict_set(X_new)
    held = members[np.arange(len(y_new)), y_new]
    least = min(
        held[X_new["age"].between(low, high - 1)].mean()
        for low, high in ((0, 30), (30, 45), (45, 60), (60, 200))
    )
    print(
        f"{name}: {members.sum(axis=1).mean():.2f} labels a row, covered "
        f"{held.mean():.3f}, in the worst age band {least:.3f}"
    )

# %%
# How many rows would it take?
# ----------------------------
# Each of these subgroups proves 10 % by so many answered rows, with a chance of 80 %,
# if 5 % are wrong; the rarest race decides how long the table has to be (``prudent plan
# --data TABLE --by race`` says so).
needed = plan(bound=0.1, expected=0.05, claims=n_subgroups + 1).rows
share = people["race"].value_counts(normalize=True).min()
print(f"{needed} rows of each, {rows_of_table(needed, share)} rows in all")
