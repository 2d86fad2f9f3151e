"""
Strangers get the empty set
===========================

A digit reader learns 2, 3 and 5 and meets all ten digits. With densities ranked class
by class, an image unlike every known class is left with no label at all; of each known
digit at most 5 % lose theirs, on average over training samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from prudent import ConformalClassifier

X, y = load_digits(return_X_y=True)
X = X[:, np.ptp(X, axis=0) > 8]  # pixels that are written on
known = np.isin(y, [2, 3, 5])
train, test, y_train, y_test = train_test_split(
    X[known], y[known], train_size=240, random_state=0
)
model = ConformalClassifier(
    model="gaussian", nonconformity="density", condition="class", level=0.05
).fit(train, y_train)
for promise in model.guarantees_:
    print(promise)

# %%
rows, labels = np.vstack([test, X[~known]]), np.concatenate([y_test, y[~known]])
empty = ~model.predict_set(rows, allow_empty=True).any(axis=1)
shares = [empty[labels == digit].mean() for digit in range(10)]
fig, axis = plt.subplots()
axis.bar(range(10), shares, color=["C0" if d in (2, 3, 5) else "C1" for d in range(10)])
axis.axhline(0.05, color="black", linestyle=":")
axis.set(xticks=range(10), xlabel="digit (learned: 2, 3, 5)", ylabel="empty sets")
plt.show()
