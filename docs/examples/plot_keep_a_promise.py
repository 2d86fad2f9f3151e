"""
A model held to a promise
=========================

At most 2 % of the answers wrong, with 95 % confidence: the model answers the rows that
it may answer, and hands the others to a person. The rows below are new to it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from prudent import SelectiveClassifier

X, y = load_digits(return_X_y=True)
train, new = slice(1200), slice(1200, None)
mine = LogisticRegression(max_iter=5000)
model = SelectiveClassifier(mine, error_rate=0.02, random_state=0)
print(model.fit(X[train], y[train]).guarantees_[0])

# %%
sets = model.predict_set(X[new])
answered = sets.sum(axis=1) == 1
right = model.classes_[sets.argmax(axis=1)] == y[new]
alone = mine.fit(X[train], y[train]).predict(X[new]) == y[new]
shares = {
    "alone": (alone.mean(), 1 - alone.mean(), 0.0),
    "with the promise": (
        (answered & right).mean(),
        (answered & ~right).mean(),
        1 - answered.mean(),
    ),
}
fig, axis = plt.subplots(figsize=(8, 2.4), layout="constrained")
for name, (correct, wrong, handed_over) in shares.items():
    axis.barh(name, 100 * correct, color="tab:blue")
    axis.barh(name, 100 * wrong, left=100 * correct, color="tab:red")
    axis.barh(name, 100 * handed_over, left=100 * (correct + wrong), color="lightgrey")
axis.set(xlabel="% of new rows: right (blue), wrong (red), handed over (grey)")
axis.invert_yaxis()
