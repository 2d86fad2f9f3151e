"""One way from rows to a promise: split, fit, scores of the held-out rows, rule."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import (
    _safe_indexing,  # takes rows of any table that scikit-learn takes
)

from prudent.core.rows import HeldOut
from prudent.estimator_tools.exporting import described
from prudent.estimator_tools.validation import hold_out_unseen
from prudent.exceptions import PrudentWarning
from prudent.io.errors import thousands
from prudent.rules.rule import Rule, Terms
from prudent.rules.scores import CalibrationScores

#: Errors allowed and not made from which on a frozen model looks too good.
MANY = 20


class HeldOutEstimator(BaseEstimator):
    """An estimator whose promise rests on rows that its model has not seen.

    A class has `_fit_part`, which fits the model to some rows, `_scores`, which gives
    what is known of others by it, and `_rule`, which makes the rule of that. Answers
    follow from `rule_`: parameters changed after `fit` change neither them nor the
    promises.
    """

    estimator: Any
    confidence: float | None
    rule_: Rule
    # Of the rows to learn from, while the model is fitted to them.
    _fit_groups: NDArray[Any] | None = None

    def _fit_held_out(
        self,
        X: Any,
        y: Any,
        random: np.random.RandomState,
        groups: ArrayLike | None,
    ) -> Self:
        """Fit to one part of the rows, and find the rule on the other."""
        self._grouped = groups is not None
        split = self._hold_out(X, random, groups)
        fit, held_out = split.fit, split.held_out
        learned, known = (None, None) if y is None else (y[fit], y[held_out])
        self._fit_groups = None if groups is None else np.asarray(groups)[fit]
        self._fit_part(_safe_indexing(X, fit), learned, random)
        del self._fit_groups
        rows = _safe_indexing(X, held_out)
        self._calibrate([self._scores(rows, known)], split)
        self._warn_of_a_perfect_model(rows, known)
        return self

    def _warn_of_a_perfect_model(self, rows: Any, labels: Any) -> None:
        """Say that a frozen model answers suspiciously well.

        Rows that it was fitted to cannot be told from new ones, but by that.
        """
        estimator = getattr(self, "estimator", None)
        if labels is None or not isinstance(estimator, FrozenEstimator):
            return
        allowed = max(
            (
                (1 - g.bound if g.sense == ">=" else g.bound)
                * g.evidence["calibration rows"]
                for g in self.guarantees_
            ),
            default=0.0,
        )
        if allowed >= MANY and (np.asarray(estimator.predict(rows)) == labels).all():
            warnings.warn(
                f"{type(self).__name__}: none of {thousands(len(labels))} calibration "
                f"rows is answered wrong, where {allowed:.0f} errors would be allowed: "
                "so look rows that the model was fitted to, and then the promise is "
                "false. If they are new to it, all is well.",
                PrudentWarning,
                stacklevel=4,
            )

    def _calibrate(self, parts: Sequence[Any], split: HeldOut) -> Self:
        """Find the rule by what `_scores` says of all parts of the held-out rows."""
        self.n_calibration_ = len(split.held_out)
        return self._adopt(
            self._rule(parts[0] if len(parts) == 1 else self._merged(parts))
        )

    def _hold_out(
        self, X: Any, random: np.random.RandomState, groups: ArrayLike | None
    ) -> HeldOut:
        """Draw the rows to hold out."""
        return hold_out_unseen(self, X, random, groups)

    def _fit_part(self, X: Any, y: Any, random: np.random.RandomState) -> None:
        """Fit the model to these rows; a frozen one is left as it is."""
        raise NotImplementedError

    def _scores(self, X: Any, y: Any) -> Any:
        """What the rule is made of, of held-out rows."""
        raise NotImplementedError

    def _merged(self, parts: Sequence[Any]) -> Any:
        """What `_scores` would say of several parts together."""
        return CalibrationScores.merged(parts)

    def _rule(self, scores: Any) -> Rule:
        """The rule that the parameters ask for."""
        raise NotImplementedError

    def _adopt(self, rule: Rule) -> Self:
        """Answer by a rule from now on, which says what its scores are."""
        self.rule_, self.guarantees_ = rule, rule.guarantees
        if isinstance(rule, Rule):
            # Scores that nobody else can compute stay those that are given.
            with suppress(ValueError):
                self.rule_ = described(rule, self)
        return self

    def _at(self, rate: Any, **parameter: Any) -> Self:
        """Fitted copy with the rule of the same rows for another rate."""
        other = copy.copy(self).set_params(**parameter)
        return other._adopt(self.rule_.at(rate))

    def _terms(self) -> Terms:
        """What all promises of this fit have in common."""
        return Terms(
            confidence=self.confidence,
            frozen=isinstance(getattr(self, "estimator", None), FrozenEstimator),
            grouped=self._grouped,
        )
