"""
A detector with a false-alarm promise, and an adversary
=======================================================

A door opens for people who write a 9. We have images of nines and nothing else: no
intruder has been seen yet. The rate at which the owner is turned away can be promised.
The rate at which intruders pass cannot, unless something is assumed about them. We
measure it for the most dangerous of nine intruders, and compute it for one who knows
the rule.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from prudent import LowDensityRejector, RejectionGame
from prudent.plots import SecurityCurveDisplay

images, y = load_digits(return_X_y=True)
# 16 features: the mean ink of blocks of 2 x 2 pixels. A fixed map; one learnt from the
# same rows, such as a PCA, would break the promise below.
X = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(images), 16)
train, fresh = train_test_split(X[y == 9], test_size=0.35, random_state=0)

# %%
# The promise
# -----------
# The detector learns a score on one part of the rows and sets its threshold on the
# other part. The false-alarm rate holds on average over training samples, whatever the
# score, the dimension or the law of the data.
detector = LowDensityRejector(false_alarm_rate=0.1, random_state=0).fit(train)
promise = detector.guarantees_[0]
print(promise)

# %%
# Held against nines that were left out:
alarms = (detector.predict(fresh) == -1).sum()
check = promise.check(alarms, len(fresh))
print(f"{alarms} of {len(fresh)} turned away, interval {np.round(check.interval, 3)}")
print("verdict:", check.verdict)

# %%
# With so few rows the interval is wide: such a check can rarely say more than
# "consistent". More rows to check with, not a better detector, would tell the rate of
# this one; the promise is about the average of many.
#
# The intruder picks the digit
# ----------------------------
# Every other digit is an intruder. The one to fear is the digit that passes most often.
passed = {digit: (detector.predict(X[y == digit]) == 1).mean() for digit in range(9)}
figure, ax = plt.subplots()
ax.bar([str(digit) for digit in passed], list(passed.values()))
ax.set(xlabel="digit of the intruder", ylabel="share that passes", ylim=(0, 1))
plt.show()
worst = max(passed, key=passed.get)
print(f"most dangerous: {worst}, passes {passed[worst]:.2f}")

# %%
# Another rate needs no new fit. The trade-off for the worst digit:
for rate in (0.05, 0.1, 0.2, 0.3):
    other = detector.with_false_alarm_rate(rate)
    turned_away = (other.predict(fresh) == -1).mean()
    misses = (other.predict(X[y == worst]) == 1).mean()
    print(f"asked {rate:.2f}: turned away {turned_away:.2f}, misses {misses:.2f}")

# %%
# An intruder who knows the rule
# ------------------------------
# The nine digits did not try to pass. An adversary who knows the threshold shows the
# one image that is just accepted, again and again. Against him the best answer is
# randomised. :class:`~prudent.RejectionGame` computes it for a class
# of finitely many events. Here an event is the amount of ink on the paper, in five
# steps; the intruder must differ from the owner by at least 2 bits.
ink = np.bincount(train.sum(axis=1).astype(int) // 8)
ink = ink[ink > 0]
game = RejectionGame.from_counts(
    ink, smoothing=0.5, false_alarm_rate=0.1, divergence_bound=2
)
print("images in each step:    ", ink)
print("reject with probability:", game.rejection_.round(2))
for promise in game.guarantees_:
    print(promise)

# %%
# The best threshold never catches him at this false-alarm rate: it can turn away the
# rarest step alone, and leaves him two others that are far enough from the owner. The
# security curve shows from which rate on a threshold works.
SecurityCurveDisplay.from_estimator(game)

# %%
# The intruder may try again until the coin lets him in. A keyed coin is the same for
# the same event at any time, so a second try does not help:
print(game.reject(range(len(ink)), key="owner of door 4"))
print(game.reject(range(len(ink)), key="owner of door 4"))

# %%
# What is promised, and what is not
# ---------------------------------
# - Promised: the false-alarm rate, on average, for rows exchangeable with the
#   calibration rows. It breaks when handwriting drifts.
# - Promised under an assumption that cannot be checked from rows: the miss rate of the
#   game. It holds for intruders at the stated distance and a class that is known; the
#   counts above are estimates, and the promise says so.
# - Not promised: the share of a digit that passes. It was measured, on intruders who
#   did not try.
