"""The rule of a fitted wrapper, as one about scores that are computed elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prudent.rules.rule import Rule, promises_in_short


def described(rule: Rule, estimator: Any) -> Rule:
    """A wrapper's rule with what a reader of it needs: what its scores are.

    A class with such rules has `_score_record()`: what the record says of `scores`,
    `columns` and perhaps `group`; or ValueError where nobody else can compute them.
    """
    record = {
        **rule.record,
        "promise": promises_in_short(rule.guarantees),
        **estimator._score_record(),
    }
    classes = rule.classes
    if rule.kind == "answers":  # the likeliest label is answered
        classes = tuple(estimator.estimator_.classes_.tolist())
    return replace(rule, record=record, classes=classes)


def exported_rule(estimator: Any) -> Rule:
    """The rule of a fitted wrapper; ValueError where nobody else can apply it."""
    name = type(estimator).__name__
    rule = vars(estimator).get("rule_")
    if not isinstance(rule, Rule) or not rule.guarantees:
        raise ValueError(
            f"{name} answers by no rule of held-out rows that promises something: "
            "there is nothing to export."
        )
    if rule.smoothed_rate is not None:
        raise ValueError(
            f"{name}: the coins of smoothed ties are thrown by all features of a row, "
            "which no file of scores holds: fit it with ties='conservative'."
        )
    return described(rule, estimator)


def probability_columns(estimator: Any, name: str) -> list[str]:
    """Names of columns of `predict_proba`, as `prudent predict --proba` writes them."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name}: its scores are no probabilities of classes, so that a file of "
            "probabilities does not give them: use an estimator with predict_proba."
        )
    return [f"probability {label}" for label in estimator.classes_.tolist()]
