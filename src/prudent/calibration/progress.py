"""scikit-learn's callbacks, in the versions that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for the mixin: this version reports no progress."""


__all__ = ["CallbackSupportMixin", "watch_evaluations"]


def watch_evaluations(estimator: Any, X: Any, y: Any) -> Callable[[], bool]:
    """Tell the callbacks of `estimator` about each evaluation.

    Returns
    -------
    callable
        To be called after each evaluation; True when a callback asks to stop.
    """
    # A context costs as much as some evaluations of few rows.
    if not getattr(estimator, "_skl_callbacks", ()):
        return lambda: False
    context = estimator._init_callback_context(max_subtasks=estimator.max_iter)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def watch() -> bool:
        evaluation = context.subcontext(task_name="evaluation")
        evaluation.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        return bool(evaluation.call_on_fit_task_end(estimator=estimator, X=X, y=y))

    return watch
