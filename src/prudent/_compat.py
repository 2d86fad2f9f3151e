"""Names of scikit-learn that are private or have moved, gathered in one place."""

from __future__ import annotations

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import validate_data

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for the mixin: this version reports no progress."""


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "fit_context",
    "validate_data",
]

#: Decorator of `fit` methods: checks the constructor's parameters first.
fit_context = _fit_context(prefer_skip_nested_validation=True)
