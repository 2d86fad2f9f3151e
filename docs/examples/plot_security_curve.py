"""
How often can an intruder be caught?
====================================

The class is known exactly, the intruder sees the rule and must stay at a distance of
3 bits from the class. Randomised rejection catches him from the first false alarm on;
a fixed threshold does not, because it leaves him a safe place.
"""

from prudent import RejectionGame
from prudent.plots import SecurityCurveDisplay

p = [0.01, 0.02, 0.03, 0.05, 0.09, 0.12, 0.18, 0.5]
game = RejectionGame(false_alarm_rate=0.1, divergence_bound=3).fit(p)
print("reject with probability", game.rejection_.round(3))
print("worst intruder plays   ", game.adversary_.round(3))
for promise in game.guarantees_:
    print(promise)

# %%
SecurityCurveDisplay.from_estimator(game)
