"""
A promise in production
=======================

A model is compared, chosen, given a promise, and put to work for years. Who says when
the promise no longer holds, and how often will that watchman cry wolf? We follow one
model from ``prudent.compare`` to the day on which its stream changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from prudent import ConformalClassifier, DriftMonitor, Guarantee, PromiseMonitor
from prudent.plots import MonitorDisplay

images, digits = load_digits(return_X_y=True)
# 16 features: the mean ink of blocks of 2 x 2 pixels. Is it a 9?
X = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(images), 16)
y = np.where(digits == 9, "nine", "other")
X_old, X_rest, y_old, y_rest = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
X_choice, X_train, y_choice, y_train = train_test_split(
    X_old, y_old, test_size=0.5, stratify=y_old, random_state=0
)

# %%
# Compare, choose
# ---------------
# Every method is held against rows it has not seen. Rows that choose a method do not
# prove its promise: these are used for the choice alone.
print(
    prudent.compare(
        *(X_choice, y_choice),
        promise="coverage >= 90%",
        methods=["optimistic"],
        baselines=["logistic"],
        best=False,
        cv=3,
    )
)

# %%
# Logistic regression will do. What it lacks is a promise: we wrap it. The promise is to
# be about *this* model, so we ask for one with high probability over the training
# sample, not for one on average; why that matters comes below.
model = ConformalClassifier(
    make_pipeline(StandardScaler(), LogisticRegression()),
    method="split",
    condition=None,
    confidence=0.95,
    random_state=0,
).fit(X_train, y_train)
promise = model.guarantees_[0]
print(promise)

# %%
# Put it to work
# --------------
# In production images arrive one after the other and labels follow. Here the other half
# of the images, drawn again and again, stands for the stream. That is a shift of its
# own, too small to be seen in what follows: a real stream brings new images.
rng = np.random.default_rng(0)


def images_of_a_day(n=100):
    rows = rng.integers(0, len(X_rest), n)
    return X_rest[rows], y_rest[rows]


monitor = PromiseMonitor(promise)
drift = DriftMonitor(random_state=0).fit(X_old)
for _ in range(30):
    new, labels = images_of_a_day()
    monitor.update_rows(labels, model.predict_set(new), model.classes_)
    drift.update(new)
print(monitor)
print(drift)

# %%
# Three thousand rows, thirty looks, no alarm: as it should be. One may look at the
# promise after every single row for ever; while it is true it is ever called broken
# with probability at most 5 %. (Its line says 10 %, because the promise itself is false
# for up to 5 % of the training samples.) Of drift the same is proved for one column,
# and for columns that are independent of each other, which the ink of neighbouring
# blocks is not. ``Guarantee.check`` at every look would have no such level: it is meant
# for one look.
#
# The trap: on average is not this model
# --------------------------------------
# A detector calibrated on 108 rows, cut at the fifth lowest score, has a false-alarm
# rate of 5/109 **on average over calibration sets**. Of all such detectors 44 %
# exceed that rate for ever, and all are correctly calibrated. We take 300 of them,
# draw the rate of each, and watch 2000 rows of each in two ways.
on_average = Guarantee(
    quantity="false alarm rate",
    bound=5 / 109,
    sense="<=",
    average_over="training samples",
    evidence={"calibration rows": 108, "rank": 5},
)
as_if_about_the_model = Guarantee(
    quantity="false alarm rate", bound=5 / 109, sense="<="
)
accused = {"as what it is": 0, "as if about the model": 0}
for rate in rng.beta(5, 104, size=300):
    alarms = rng.random(2000) < rate
    accused["as what it is"] += PromiseMonitor(on_average).update(alarms).verdict == (
        "broken"
    )
    accused["as if about the model"] += (
        PromiseMonitor(as_if_about_the_model).update(alarms).verdict == "broken"
    )
for how, count in accused.items():
    print(f"watched {how}: {count} of 300 correct detectors called broken")

# %%
# The monitor knows the first kind from the evidence in the promise and tests the law of
# the rate as well. Whoever wants to be told about *this* model asks for
# a ``confidence``, as above.
#
# The stream changes
# ------------------
# One day the scanner feeds sheets upside down: sixes look like nines. Drift needs no
# labels; the promise is judged by them.
for _ in range(30):
    new, labels = images_of_a_day()
    new = new[:, ::-1]
    drift.update(new)
    monitor.update_rows(labels, model.predict_set(new), model.classes_)
    if drift.verdict == "drift" and monitor.verdict == "broken":
        break
print(f"drift seen {drift.alarm_at_ - 3000} rows after the change")
print(f"promise called broken {monitor.alarm_at_ - 3000} rows after the change")
print(monitor)

# %%
# Above the evidence and the level of the alarm, below the limits of the coverage, which
# hold at all times at once, and the promise.
MonitorDisplay.from_monitor(monitor)
plt.show()

# %%
# On the command line
# -------------------
# The same, every day, from a table of the day, with a state that survives the night::
#
#     prudent detect normal.csv --model-out model.prudent
#     prudent monitor model.prudent --data today.csv --target label --normal ok \
#         --state watch.json --report watch.html
#
# A classifier has no ``--normal``, which says what ordinary rows are called. Exit code
# 7 says that a promise is broken, 8 that rows have drifted.
