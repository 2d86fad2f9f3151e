"""
Error along a calibration
=========================

Risk-based calibration starts from the closed-form fit (update 0) and moves its
statistics towards the labels. The training log loss falls; the error may not. The
default stopping rule keeps the iterate that inner cross-validation prefers.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from prudent import RiskCalibratedClassifier
from prudent.plots import CalibrationPathDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
# "train" runs all updates; "cv", the default, ends at the one that is kept.
model = RiskCalibratedClassifier(family="diag", stopping="train").fit(X_train, y_train)
start = RiskCalibratedClassifier(family="diag", max_iter=1).fit(X_train, y_train)
print(f"closed form: test error {1 - start.score(X_test, y_test):.3f}")
print(f"calibrated:  test error {1 - model.score(X_test, y_test):.3f}")

# %%
CalibrationPathDisplay.from_estimator(model, X_test, y_test)
