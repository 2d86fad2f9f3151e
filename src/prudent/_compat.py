"""Names of scikit-learn that are private or have moved, gathered in one place."""

from __future__ import annotations

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

__all__ = ["Interval", "StrOptions", "fit_context", "validate_data"]

#: Decorator of `fit` methods: checks the constructor's parameters first.
fit_context = _fit_context(prefer_skip_nested_validation=True)
