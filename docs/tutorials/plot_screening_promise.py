"""
Ten thousand screening images, 260 positives: a promise, its rows, its refusals
===============================================================================

A screening programme has 10 000 images, read by two radiologists; 260 show a tumour.
A classifier is to help. Two wishes are on the table:

- *of 100 women with a tumour at most 10 are sent home*, with confidence 95 %;
- *of 100 automatic answers at most 2 are wrong*; the other images go to a person.

Each is a promise about future women. This page chooses between them, plans the rows,
gets a certificate, and reads the refusals. The table is drawn here, so that every true
rate can be looked up at the end.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import NeymanPearsonClassifier, SelectiveClassifier, certify, plan
from prudent.exceptions import InfeasibleError

rng = np.random.default_rng(0)


def draw(n_sound, n_tumour):
    """Six measurements an image; tumours differ a little in each of them."""
    X = np.vstack(
        [rng.normal(size=(n_sound, 6)), rng.standard_t(5, (n_tumour, 6)) + 1.1]
    )
    y = np.repeat(["sound", "tumour"], [n_sound, n_tumour])
    order = rng.permutation(len(y))
    return X[order], y[order]


X, y = draw(9740, 260)

# %%
# What accuracy hides
# -------------------
# Answering "sound" always is right in 97.4 % of cases. Logistic regression is better
# than that, and still sends home many women who have a tumour.
model = make_pipeline(StandardScaler(), LogisticRegression())
answer = model.fit(X[:5000], y[:5000]).predict(X[5000:])
wrong = answer != y[5000:]
print(f"all images wrong: {wrong.mean():.3f}")
print(f"tumours missed:   {wrong[y[5000:] == 'tumour'].mean():.3f}")

# %%
# Plan the rows before looking
# ----------------------------
# The first promise is about tumours, so its rows are tumours. If the rule will miss
# 4 % of them, this many certify 10 % with a chance of 80 %:
tumours = plan(bound=0.1, expected=0.04, answered_share=0.026)
print(tumours)

# %%
# Half of the table holds about 130 tumours: enough for 10 %, not for 2 %, which needs
# 149 tumours even if none is missed. Asking for it anyway is refused, and the refusal
# names the rows and what could be promised instead.
for limit in (0.02, 0.1):
    rule = NeymanPearsonClassifier(
        model, max_class_error={"tumour": limit}, random_state=0
    )
    try:
        rule.fit(X, y)
    except InfeasibleError as refusal:
        print(refusal)

# %%
# The second limit was kept. The promise costs false alarms among sound women; how many
# is measured, not promised.
print(rule.guarantees_[0])
called_back = rule.predict(X)[y == "sound"] == "tumour"
print(f"sound women called back: {called_back.mean():.3f}")

# %%
# The other promise: answer only where answers are right
# ------------------------------------------------------
# A selective classifier keeps the error *among its answers*. With 97.4 % sound images
# a limit of 2 % is easy, and that is a warning: the promise says nothing about tumours.
selective = SelectiveClassifier(model, error_rate=0.02, random_state=0).fit(X, y)
print(selective.guarantees_[0])
print(f"held-out images answered: {selective.answered_share_:.3f}")

# %%
# Certify on women nobody has seen
# --------------------------------
# Next year's 4000 images were used for nothing: not to fit, not to choose between the
# two promises. ``certify`` states what they prove, all claims at once.
X_new, y_new = draw(3896, 104)
for promise in certify(rule, X_new, y_new):
    bound = f"{promise.sense} {promise.bound:.3f}"
    print(f"{promise.quantity:18} {promise.scope or 'all':7} {bound}")

# %%
# The cost of a mistake settles what to do. A missed tumour costs 50, a call-back 1, an
# image read by a person 0.5 (the last column: no answer).
costs = [[0, 1, 0.5], [50, 0, 0.5]]
cost = certify(selective, X_new, y_new, costs=costs)[-1]
print(f"answering selectively costs at most {cost.bound:.2f} an image")
cost = certify(rule, X_new, y_new, costs=np.array(costs)[:, :2])[-1]
print(f"keeping the class error costs at most {cost.bound:.2f} an image")

# %%
# If next year is different
# -------------------------
# A promise holds for the population that was sampled. How far may it move before a
# certified rate passes a limit? In words: no group of women may become this many times
# as frequent among those with a tumour.
missed = rule.guarantees_[0]
times = missed.shift_tolerance(0.2, "likelihood_ratio")
print(f"20 % are still not missed while no group is {times:.1f} times as frequent")

# %%
# The truth
# ---------
# The law is known here. Many programmes like this one, each with its own images: in how
# many is the promise of 10 % false? About 5 % of them, ten: the rule uses all of its
# allowance, because a stricter one would call back more sound women.
fitted = FrozenEstimator(model)
X_true, y_true = draw(10, 50_000)
true_rates = []
for _ in range(200):
    year = NeymanPearsonClassifier(fitted, max_class_error={"tumour": 0.1})
    year.fit(*draw(1000, 130))
    true_rates.append((year.predict(X_true[y_true == "tumour"]) == "sound").mean())
true_rates = np.array(true_rates)
print(f"more than 10 % missed: in {(true_rates > 0.1).sum()} of 200 programmes")

figure, ax = plt.subplots()
ax.hist(true_rates, bins=25, color="0.7")
ax.axvline(0.1, color="k", linestyle="--", label="promised limit")
ax.set(xlabel="tumours missed by the rule, true rate", ylabel="programmes")
ax.legend()
plt.show()
