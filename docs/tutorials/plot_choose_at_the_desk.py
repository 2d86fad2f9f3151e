"""
Choose the threshold at the desk: fraud, its costs, and a queue of people
=========================================================================

Three transactions in a hundred are fraud. A model gives each a score; people look at
those above a threshold. A missed fraud costs 40, a look costs 1, and there is time for
at most 10 of 100 transactions. Nobody knows the right threshold beforehand: one looks
at the curve and chooses. This page shows why the usual limits on that curve are worth
little then, and which ones may be chosen by.

The table is drawn here, so that the truth is known: a million further transactions say
what was promised rightly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from prudent import (
    NeymanPearsonClassifier,
    PromiseMonitor,
    ThresholdBands,
    certify_thresholds,
    queue_limit,
)
from prudent.core.binomial import upper_limits
from prudent.exceptions import InfeasibleError
from prudent.plots import ThresholdBandsDisplay

rng = np.random.default_rng(0)


def transactions(n):
    """Six measurements of each, and whether it is fraud."""
    y = np.where(rng.random(n) < 0.03, "fraud", "fine")
    shift = np.outer(y == "fraud", [1.6, 1.2, 0.8, 0.4, 0, 0])
    return rng.normal(size=(n, 6)) + shift, y


X, y = transactions(12_000)
model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(X, y)
fraud = list(model.classes_).index("fraud")

# %%
# The curve that lies
# -------------------
# At a desk lie 2000 transactions that the model has not seen, about 60 of them fraud.
# For each threshold the share of fraud missed has an exact limit of 95 % (Clopper and
# Pearson). It is true of a threshold that was fixed beforehand. On the whole curve it
# is false somewhere at about every second desk:

X_future, y_future = transactions(1_000_000)
future = model.predict_proba(X_future)[:, fraud]
true_scores = np.sort(future[y_future == "fraud"])


def lies(limits_of, desks=200):
    """Share of desks at which some limit of the missed fraud is false."""
    false = 0
    for _ in range(desks):
        scores = np.sort(rng.choice(true_scores, 60))
        limits = limits_of(scores)
        # Worst just before the next score: v rows missed, and all below it in truth.
        missed = np.searchsorted(true_scores, scores, "left") / len(true_scores)
        false += bool((limits < missed).any())
    return false / desks


def single(scores):
    return upper_limits(np.arange(60), np.full(60, 60), level=0.05)


def together(scores):
    """All thresholds at once; here the missed fraud alone has the whole 5 %."""
    bands = ThresholdBands.from_scores(
        np.append(scores, 2), [True] * 60 + [False], kind="alarms", confidence=0.8
    )  # one of four claims has a quarter of 20 %
    return bands.limits(scores)["miss rate"]


print(f"limits of single thresholds: false somewhere at {lies(single):.0%} of desks")
print(f"limits of all thresholds:    false somewhere at {lies(together):.0%} of desks")

# %%
# Limits that may be chosen by
# ----------------------------
# :func:`prudent.certify_thresholds` gives limits of missed fraud, false alarms, flagged
# share, error and precision that hold at all thresholds at once. Solid lines are the
# first three of these, thin ones those of single thresholds, dots are measured.

X_desk, y_desk = transactions(2000)
bands = certify_thresholds(model, X_desk, y_desk, positive="fraud")
display = ThresholdBandsDisplay(bands)
display.plot()
display.ax_.set(xscale="log", xlim=(1e-3, 1))

# %%
# The best threshold under the costs, among those that leave at most 10 % to people:

costs = np.zeros((2, 2))
costs[1 - fraud, fraud] = 1  # a look at a fine one
costs[fraud, fraud] = 1  # a look at a fraud
costs[fraud, 1 - fraud] = 40
chosen = bands.find(minimise="cost", costs=costs, flagged_share=0.10)
for promise in bands.at(chosen, costs=costs):
    label = "" if promise.scope is None else f" ({promise.scope})"
    print(f"{promise.quantity}{label} {promise.sense} {promise.bound:.3f}")

# %%
# If fraud becomes twice as frequent, and nothing else changes, the same limits of the
# two classes give others of the rest; that share is an assumption then, and said so:

for promise in bands.at(chosen, prevalence=0.06)[2:]:
    print(f"at 6 % fraud: {promise.quantity} {promise.sense} {promise.bound:.3f}")

# %%
# What cannot be had is said, with the nearest that can:

try:
    bands.find(minimise="flagged share", class_error=0.05)
except InfeasibleError as error:
    print(error)

# %%
# A share of the population is no queue of a day: of 1000 transactions a day

flagged = next(p for p in bands.at(chosen) if p.quantity == "flagged share")
print(queue_limit(flagged, rows=1000, chance=0.95), "at most on 95 of 100 days,")
print(queue_limit(flagged, rows=1000), "on 99")

# %%
# If the promise is known beforehand
# ----------------------------------
# Then ask for it: the same rows prove one threshold, not all of them, so that it flags
# fewer transactions for the same limit of missed fraud. That limit takes half of the 5
# %, the flagged share the other half.

asked = NeymanPearsonClassifier(
    FrozenEstimator(model), max_class_error={"fraud": 0.456}, flagged_share=0.10
).fit(X_desk, y_desk)
for promise in asked.guarantees_:
    print(promise)
n_asked, n_chosen = asked.rule_.record["flagged"], int(flagged.evidence["flagged"])
print(
    f"flagged at the desk: {n_asked}, by the threshold chosen after looking {n_chosen}"
)

# %%
# What became true
# ----------------
# The million transactions hold every promise that was chosen by the curve to account,
# and a monitor goes on with it:

said = np.where(future >= chosen, "fraud", "fine")
for promise in bands.at(chosen):
    wrong = {
        "flagged share": said == "fraud",
        "error rate": said != y_future,
        "precision": y_future[said == "fraud"] == "fraud",
    }.get(promise.quantity, (said != y_future)[y_future == promise.scope])
    found = promise.check(wrong.sum(), len(wrong))
    print(f"{promise.quantity}: {found.measured:.3f}, {found.verdict}")
monitor = PromiseMonitor(flagged).update_rows(y_future[:20_000], said[:20_000])
print("watched:", monitor.verdict, "after", monitor.n_, "transactions")

# %%
# On the command line: ``prudent certify desk.csv -m fraud.prudent --truth y --positive
# fraud --thresholds bands.json --report desk.html`` writes the limits, and a page with
# sliders over threshold, share of fraud and capacity.
plt.show()
