"""
A promise for each class, checked on other rows
===============================================

The minimax probability machine bounds the error of each class under *every*
distribution with the mean and covariance of that class. Normal data err less, so
the measured errors stay well below the bounds.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from prudent import MinimaxProbabilityClassifier
from prudent.plots import GuaranteeDisplay

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(
    data.data, data.target_names[data.target], random_state=0, stratify=data.target
)
model = MinimaxProbabilityClassifier().fit(X_train, y_train)
for promise in model.guarantees_:
    wrong = model.predict(X_test) != y_test
    of_class = y_test == promise.scope
    check = promise.check((wrong & of_class).sum(), of_class.sum())
    print(f"{promise}\n  measured {check.measured:.3f}: {check.verdict}")

# %%
display = GuaranteeDisplay.from_estimator(model, X_test, y_test)
