"""A promise about all rows, from promises about each class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prudent.core.assumptions import Assumption
from prudent.core.guarantee import AverageOver, Guarantee, check_one_type
from prudent.core.validation import shown

# Stands for all classes that nobody names.
UNNAMED = object()


def error_rate_under_priors(
    guarantees: Iterable[Guarantee],
    *,
    lower: Mapping[Any, float] | None = None,
    upper: Mapping[Any, float] | None = None,
) -> Guarantee:
    """Error rate for all class shares in a box, from the error rates of the classes.

    If only the shares of the classes change, each class keeps its error rate, and the
    overall rate is a mean of them with the new shares as weights.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        Promises as `certify` or `NeymanPearsonClassifier` make them; those of
        quantity "class error rate" are used.
    lower, upper : mapping of label to float, default=None
        Least and largest share of a class; 0 and 1 for classes not named. Write labels
        exactly as the model has them: a class without a promise counts as always wrong
        unless its `upper` is 0.

    Returns
    -------
    Guarantee
        Quantity "error rate".

    Raises
    ------
    ValueError
        If there is no promise on a class error rate, no shares lie in the box, labels
        are text beside numbers, a limit lies outside [0, 1], the promises are about
        rows and about groups or about different subgroups, or on averages that cannot
        be added up.

    Notes
    -----
    The largest sum of share times bound over the box: start at `lower` and give what
    is left to the class of the largest bound first (a fractional knapsack, exact).

    Promises say how many classes the model knows ("classes" in their evidence): those
    that neither a promise nor a limit names count as always wrong too. Promises made
    by hand, which do not say it, are taken to name all classes.

    Promises that hold at once ("claims" in their evidence covers them) keep the
    smallest of their confidences; else the probabilities that they fail add up. If one
    of them has no confidence, the sum has none, and its assumptions say for which
    class which kind of promise holds.

    Examples
    --------
    >>> from prudent import Guarantee
    >>> from prudent.certification import error_rate_under_priors
    >>> promises = [
    ...     Guarantee(quantity="class error rate", bound=b, sense="<=", scope=label)
    ...     for label, b in [("benign", 0.1), ("malignant", 0.02)]
    ... ]
    >>> print(error_rate_under_priors(promises, lower={"malignant": 0.5}))
    The error rate is at most 0.06, assuming only the class prior differs from that of
    the calibration rows.
    """
    lower, upper = dict(lower or {}), dict(upper or {})
    by_class = [
        g
        for g in guarantees
        if g.quantity == "class error rate" and g.sense == "<=" and g.scope is not None
    ]
    if not by_class:
        raise ValueError(
            "no promise on the error rate of a class is given; certify(model, X, y, "
            "claims='all') makes one for each class."
        )
    scopes = [g.scope for g in by_class]
    is_text = isinstance(scopes[0], str)
    for name, limits in (("`lower`", lower), ("`upper`", upper)):
        # One that differs comes first, where it is looked at.
        labels = sorted(limits, key=lambda label: isinstance(label, str) == is_text)
        check_one_type({"the promises": scopes, name: labels})
    named = [*scopes, *lower, *upper]
    bounds: dict[Any, float] = dict.fromkeys(named, 1.0)
    for promise in by_class:
        bounds[promise.scope] = min(promise.bound, bounds[promise.scope])
    if len(bounds) < max(g.evidence.get("classes", 0) for g in by_class):
        bounds[UNNAMED] = 1.0
    bound = _largest_mean(bounds, lower, upper)
    # What is promised of absent classes does not matter.
    used = [g for g in by_class if upper.get(g.scope, 1.0) > 0]
    _check_same_rows(used)
    confidence, average_over, as_they_hold = _joint(used)
    # A sentence with a number of one promise stays as it is.
    assumed = dict.fromkeys(
        assumption if assumption == sentence else sentence
        for promise in used
        for assumption, sentence in zip(
            promise.assumptions, promise.assumed, strict=True
        )
    )
    return Guarantee(
        quantity="error rate",
        bound=bound,
        sense="<=",
        confidence=confidence,
        average_over=average_over,
        assumptions=(*assumed, *as_they_hold, Assumption.PRIOR_SHIFT),
        subgroup=used[0].subgroup if used else None,
        unit=used[0].unit if used else "row",
        evidence={"claims": len(used)},
        source="fractional knapsack over the class shares (prudent, user guide)",
    )


def _largest_mean(
    bounds: Mapping[Any, float], lower: Mapping[Any, float], upper: Mapping[Any, float]
) -> float:
    """Largest mean of the bounds with weights in the box that sum to one."""
    least = {label: lower.get(label, 0.0) for label in bounds}
    most = {label: upper.get(label, 1.0) for label in bounds}
    for label in bounds:
        if not 0 <= least[label] <= most[label] <= 1:
            raise ValueError(
                f"the share of class {shown(label)} must have 0 <= lower <= upper <= "
                f"1, got {least[label]} and {most[label]}."
            )
    total_least, total_most = sum(least.values()), sum(most.values())
    # Limits such as 0.1 + 0.2 + 0.7 are meant to sum to one.
    if total_least > 1 + 1e-12 or total_most < 1 - 1e-12:
        raise ValueError(
            f"no class prior lies in the box: the lower limits sum to {total_least:g}, "
            f"the upper ones to {total_most:g}."
        )
    mean, left = 0.0, max(0.0, 1 - total_least)
    for label, bound in sorted(bounds.items(), key=lambda item: -item[1]):
        given = min(left, most[label] - least[label])
        mean, left = mean + bound * (least[label] + given), left - given
    return min(1.0, mean)


def _check_same_rows(used: list[Guarantee]) -> None:
    """Refuse promises about different rows."""
    for name in ("unit", "subgroup"):
        values = {getattr(promise, name) for promise in used}
        if len(values) > 1:
            listed = " and ".join(sorted(map(repr, values)))
            raise ValueError(
                f"promises of `{name}` {listed} are about different rows and cannot be "
                "added up."
            )


def _joint(
    used: list[Guarantee],
) -> tuple[float | None, AverageOver | None, tuple[str, ...]]:
    """Confidence with which all hold, what all are averaged over, and what differs."""
    averages = {p.average_over for p in used if p.average_over is not None}
    if averages == {"training samples", "calibration rows"}:
        averages = {"training samples"}  # which include the calibration rows
    if len(averages) > 1:
        raise ValueError(
            f"promises on average over {' and over '.join(sorted(averages))} cannot be "
            "added up."
        )
    average_over = next(iter(averages), None)
    if len({(p.confidence is None, p.average_over is None) for p in used}) > 1:
        return None, average_over, tuple(map(_as_it_holds, used))
    confidences = [p.confidence for p in used if p.confidence is not None]
    if not confidences:
        return None, average_over, ()
    if all(p.evidence.get("claims", 1) >= len(confidences) for p in used):
        return min(confidences), None, ()
    joint = 1 - sum(1 - confidence for confidence in confidences)
    if joint <= 0:
        raise ValueError(
            f"{len(confidences)} promises that do not hold at once have no joint "
            "confidence left; use certify(..., simultaneous=True)."
        )
    return joint, None, ()


def _as_it_holds(promise: Guarantee) -> str:
    """How the promise of one class holds, where others hold otherwise."""
    how = "given its assumptions only"
    if promise.average_over is not None:
        how = f"on average over {promise.average_over}"
    elif promise.confidence is not None:
        how = f"as promised with confidence {promise.confidence:g}"
    return f"the bound for class {shown(promise.scope)} holds {how}"
