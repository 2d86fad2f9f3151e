"""
A model held to a promise
=========================

At most 2 % of the answers wrong, with 95 % confidence: the model answers the rows that
it may answer, and hands the others to a person. The rows below are new to it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from prudent import SelectiveClassifier

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, test_size=1 / 3, random_state=0)
mine = LogisticRegression()
model = SelectiveClassifier(mine, error_rate=0.02, random_state=0)
print(model.fit(X, y).guarantees_[0])

# %%
alone = mine.fit(X, y).predict(X_new) != y_new
promised = np.where(model.answers(X_new), model.predict(X_new) != y_new, 2)
parts = {"right": "#0072b2", "wrong": "#d62728", "handed\nover": "#777777"}
fig, axis = plt.subplots(figsize=(8, 2.4), layout="constrained")
for row, outcome in enumerate((alone, promised)):
    shares = 100 * np.bincount(outcome, minlength=3) / len(outcome)
    starts = np.cumsum(shares) - shares
    for (part, colour), share, start in zip(parts.items(), shares, starts, strict=True):
        axis.barh(row, share, left=start, color=colour)
        # Words stand in a bar, or below a narrow one.
        below, ink = (0, "white") if share > 10 else (0.5, colour)
        words = f"{share:.0f} {part}" if share else ""
        axis.text(
            start + share / 2, row + below, words, color=ink, ha="center", va="center"
        )
axis.set(xlabel="of 100 new rows", xlim=(0, 100), ylim=(1.7, -0.5))
axis.set_yticks([0, 1], ["alone", "with the promise"])
