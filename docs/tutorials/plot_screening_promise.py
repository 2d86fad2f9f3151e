"""
Ten thousand screening images, 260 positives: a promise, its rows, its refusals
===============================================================================

A survey has 10 000 candidate images, read by two people; 260 show a pulsar, the others
are noise. A classifier is to help. Two wishes are on the table:

- *of 100 pulsars at most 10 are thrown away*, with confidence 95 %;
- *of 100 automatic answers at most 2 are wrong*; the other images go to a person.

Each is a promise about future images. This page chooses between them, plans the rows,
gets a certificate, and reads the refusals; a hospital that screens for a rare disease
would do the same. The rows are those of a real survey (HTRU2, eight measurements an
image) where the folder of data sets is at hand, and are drawn here where it is not. Of
its 17 898 images those not among our 10 000 show at the end what was true.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import NeymanPearsonClassifier, SelectiveClassifier, certify, plan
from prudent.exceptions import InfeasibleError

rng = np.random.default_rng(0)


def survey():
    """Measurements of all noise, and of all pulsars."""
    stored = Path(os.environ.get("PRUDENT_DATA", "../shared/data"), "pulsar.csv.gz")
    if stored.exists():
        table = np.loadtxt(stored, delimiter=",", skiprows=1)
        return table[table[:, -1] == 0, :-1], table[table[:, -1] == 1, :-1]
    return rng.normal(size=(16_259, 8)), rng.standard_t(5, (1639, 8)) + 1


noise, pulsars = (rng.permutation(rows) for rows in survey())


def mixed(*parts):
    """Rows of both kinds with their labels, in random order."""
    X, y = np.vstack(parts), np.repeat(["noise", "pulsar"], [len(p) for p in parts])
    order = rng.permutation(len(y))
    return X[order], y[order]


X, y = mixed(noise[:9740], pulsars[:260])
noise_to_come, pulsars_to_come = noise[9740:], pulsars[260:]

# %%
# What accuracy hides
# -------------------
# Answering "noise" always is right in 97.4 % of cases. Logistic regression is better
# than that, and still throws many pulsars away.
model = make_pipeline(StandardScaler(), LogisticRegression())
answer = model.fit(X[:5000], y[:5000]).predict(X[5000:])
wrong = answer != y[5000:]
print(f"all images wrong:     {wrong.mean():.3f}")
print(f"pulsars thrown away:  {wrong[y[5000:] == 'pulsar'].mean():.3f}")

# %%
# Plan the rows before looking
# ----------------------------
# The first promise is about pulsars, so its rows are pulsars. If the rule will miss
# 4 % of them, this many certify 10 % with a chance of 80 %:
needed = plan(bound=0.1, expected=0.04, answered_share=0.026)
print(needed)

# %%
# Half of the table holds about 130 pulsars: enough for 10 %, not for 2 %, which needs
# 149 of them even if none is missed. Asking for it anyway is refused, and the refusal
# names the rows and what could be promised instead.
for limit in (0.02, 0.1):
    rule = NeymanPearsonClassifier(
        model, max_class_error={"pulsar": limit}, random_state=0
    )
    try:
        rule.fit(X, y)
    except InfeasibleError as refusal:
        print(refusal)

# %%
# The second limit was kept. The promise costs false alarms among noise; how many is
# measured, not promised.
print(rule.guarantees_[0])
flagged = rule.predict(X)[y == "noise"] == "pulsar"
print(f"noise looked at again: {flagged.mean():.3f}")

# %%
# The other promise: answer only where answers are right
# ------------------------------------------------------
# A selective classifier keeps the error *among its answers*. With 97.4 % noise a limit
# of 2 % is easy, and that is a warning: the promise says nothing about pulsars.
selective = SelectiveClassifier(model, error_rate=0.02, random_state=0).fit(X, y)
print(selective.guarantees_[0])
print(f"held-out images answered: {selective.answered_share_:.3f}")

# %%
# Certify on images nobody has used
# ---------------------------------
# The next 4000 images were used for nothing: not to fit, not to choose between the two
# promises. ``certify`` states what they prove, all claims at once.
X_new, y_new = mixed(noise_to_come[:3896], pulsars_to_come[:104])
for promise in certify(rule, X_new, y_new, claims="all"):
    bound = f"{promise.sense} {promise.bound:.3f}"
    print(f"{promise.quantity:18} {promise.scope or 'all':7} {bound}")

# %%
# The cost of a mistake settles what to do. A pulsar thrown away costs 50, noise looked
# at again 1, an image read by a person 0.5 (the last column: no answer). Each limit is
# true with 95 %, both together with 90 %.
costs = [[0, 1, 0.5], [50, 0, 0.5]]
cost = certify(selective, X_new, y_new, costs=costs)[-1]
print(f"answering selectively costs at most {cost.bound:.2f} an image")
cost = certify(rule, X_new, y_new, costs=np.array(costs)[:, :2])[-1]
print(f"keeping the class error costs at most {cost.bound:.2f} an image")

# %%
# If the next survey is different
# -------------------------------
# A promise holds for the population that was sampled. How far may it move before a
# certified rate passes a limit? In words: no kind of pulsar may become this many times
# as frequent among the pulsars.
missed = rule.guarantees_[0]
times = missed.shift_tolerance(0.2, "likelihood_ratio")
print(f"at most 20 % are missed as long as no kind is {times:.1f} times as frequent")

# %%
# The truth
# ---------
# Take the images that were left over as the population, so that true rates are known.
# Many surveys like this one draw their own held-out images from it: in how many is the
# promise of 10 % false? Five in a hundred may be, ten of 200.
fitted = FrozenEstimator(model)
true_rates = []
for _ in range(200):
    drawn = mixed(
        rng.choice(noise_to_come, 1000, replace=False),
        rng.choice(pulsars_to_come, 130, replace=False),
    )
    of_survey = NeymanPearsonClassifier(fitted, max_class_error={"pulsar": 0.1})
    answer = of_survey.fit(*drawn).predict(pulsars_to_come)
    true_rates.append((answer == "noise").mean())
true_rates = np.array(true_rates)
print(f"more than 10 % thrown away: in {(true_rates > 0.1).sum()} of 200 surveys")

figure, ax = plt.subplots()
ax.hist(true_rates, bins=25, color="0.7")
ax.axvline(0.1, color="k", linestyle="--", label="promised limit")
ax.set(xlabel="pulsars thrown away by the rule, true rate", ylabel="surveys")
ax.legend()
plt.show()
