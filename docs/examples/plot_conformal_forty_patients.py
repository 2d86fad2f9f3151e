"""
Sets for forty patients
=======================

Forty tumours, two measurements: which labels can be ruled out at 10 %, with no row
held out? Where both labels stay in the set, the rows do not decide; where neither does,
the predicted label is all there is. The promise holds for any law of the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from prudent import ConformalClassifier

X, y = load_breast_cancer(return_X_y=True)
train, test, y_train, y_test = train_test_split(
    X[:, [21, 27]], y, train_size=40, random_state=0
)
model = ConformalClassifier(level=0.1).fit(train, y_train)
print(model.guarantees_[0])
sets = model.predict_set(test)
truth_inside = sets[np.arange(len(test)), y_test]
print(f"measured: {truth_inside.mean():.3f}, mean size {sets.sum(axis=1).mean():.2f}")

# %%
low, high = test.min(axis=0), test.max(axis=0)
a, b = np.meshgrid(*(np.linspace(*ends, 120) for ends in zip(low, high, strict=True)))
p_values = model.p_values(np.column_stack([a.ravel(), b.ravel()]))
fig, axis = plt.subplots()
regions = (p_values > 0.1) @ [1, 2]  # 0 none, 1 malignant, 2 benign, 3 both
axis.contourf(a, b, regions.reshape(a.shape), levels=[-0.5, 0.5, 1.5, 2.5, 3.5])
axis.scatter(*train.T, c=np.where(y_train, "white", "black"), edgecolors="grey")
axis.set(xlabel="worst texture", ylabel="worst concave points")
axis.set_title("dark to light: no label, malignant, benign, both")
plt.show()
