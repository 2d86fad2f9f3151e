"""
Rows in the order of time
=========================

Tables have dates, and what is promised is about rows that come later. We make a stream
that changes, hold rows out at random and in the order of time, and look at what is true
of the rows that follow. Then we do the same with the sensors of a robot.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from prudent import SelectiveClassifier

rng = np.random.default_rng(0)


# %%
# A stream that changes
# ---------------------
# Patients come, one a day. After 600 days a new ward opens: from then on the ill are
# harder to tell from the others.
def patients(n, separation):
    """Measurements of patients and whether they are ill."""
    ill = rng.uniform(size=n) < 0.5
    X = rng.normal(size=(n, 4))
    X[:, 0] += separation * np.where(ill, 1, -1)
    return X, np.where(ill, "ill", "well")


before, since, future = patients(600, 2.0), patients(400, 1.0), patients(4000, 1.0)
X, y = np.vstack([before[0], since[0]]), np.concatenate([before[1], since[1]])
days = np.datetime64("2024-01-01") + np.arange(len(y))

# %%
# At most 10 % of the answers shall be wrong. Held out at random, about 60 % of the rows
# that prove it are from a time that is over. The promise says that future rows are
# draws from the population of the held-out rows, and they are not.
at_random = SelectiveClassifier(LogisticRegression(), error_rate=0.1, random_state=0)
at_random.fit(X, y)
print(at_random.guarantees_[0])

# %%
# With times the latest rows prove it, and the promise says so.
latest = SelectiveClassifier(LogisticRegression(), error_rate=0.1, random_state=0)
latest.fit(X, y, time=days)
print(latest.guarantees_[0])

# %%
# The first promise is false, the second is true. It has its price: fewer rows are
# answered, because the rows are harder.
for name, model in (("at random", at_random), ("latest", latest)):
    answered = model.answers(future[0])
    wrong = (model.predict(future[0]) != future[1])[answered].mean()
    print(
        f"held out {name:9}: answers {answered.mean():.0%} of the rows to come, "
        f"{wrong:.1%} of the answers wrong"
    )

# %%
# Who compares methods with times sees it before: folds go forward, and a line says what
# changed and when.
print(
    prudent.compare(
        *(X, y),
        time=days,
        promise="error <= 10%",
        methods=["optimistic"],
        baselines=["logistic"],
    )
)


# %%
# A robot that follows a wall
# ---------------------------
# 24 distances to the walls, nine times a second, and the move that the robot made. A
# row is much like the one before it: a neighbour among the training rows knows its
# label, if rows of the same second are there.
def robot():
    """Sensor readings in their order, and moves."""
    stored = Path(os.environ.get("PRUDENT_DATA", "../shared/data"))
    if (stored / "wall_following.csv.gz").exists():
        table = np.loadtxt(
            stored / "wall_following.csv.gz", delimiter=",", skiprows=1, dtype=str
        )
        return table[:, :-1].astype(float), table[:, -1]
    # Without the table: a slow walk, whose place says where it turns.
    walk = np.cumsum(rng.normal(size=(5456, 24)), axis=0)
    return walk, np.where(np.sin(walk[:, 0] / 3) > 0, "left", "right")


readings, moves = robot()
order = np.arange(len(moves))
neighbours = {
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
}
options = {"promise": "error <= 15%", "methods": neighbours, "baselines": (), "cv": 4}
drawn = prudent.compare(readings, moves, **options)
forward = prudent.compare(readings, moves, time=order, **options)
print(forward)

# %%
# Folds drawn at random put each row among its neighbours in time, and promise too much
# of the next lap.
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
names = ["folds at random", "folds forward in time"]
rows = [drawn.rows[0], forward.rows[0]]
left.bar(names, [row.error for row in rows], color=["C7", "C0"])
left.set_title("Error of the plain method")
right.bar(names, [row.decided for row in rows], color=["C7", "C0"])
right.set_title("Rows answered under error ≤ 15 %")
for axes, values in (
    (left, [row.error for row in rows]),
    (right, [row.decided for row in rows]),
):
    for place, value in enumerate(values):
        axes.annotate(f"{value:.0%}", (place, value), ha="center", va="bottom")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.15)

# %%
# Rows a ninth of a second apart are no independent draws, whatever is held out: even in
# time order the promise takes them for such. Where rows belong together, as those of a
# lap, name the laps by ``groups``.
