"""From a promise asked for and a classifier to one that makes it; rows it takes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from scipy.special import bdtr
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from prudent.core.binomial import fewest_rows
from prudent.core.guarantee import Guarantee
from prudent.core.rows import fewest_to_hold_out
from prudent.core.types import IntArray
from prudent.estimator_tools.labelled_rows import in_front, is_as_given
from prudent.estimator_tools.subgroups import SubgroupsOption
from prudent.evaluation.estimators import FrequentClasses
from prudent.evaluation.records import Needs
from prudent.rules.wish import CONFIDENCE, FORMS, Wish, rounded

# Draws that may leave a class too few held-out rows.
RARELY = 0.01
# Shares that the wrappers hold out.
SPLIT_SHARE, SELECTIVE_SHARE, CLASS_ERROR_SHARE = 0.3, 0.3, 0.5


def wrap(
    estimator: Any,
    wish: Wish,
    *,
    n_classes: int,
    n_methods: int,
    random_state: int,
    subgroups: SubgroupsOption = None,
) -> Any:
    """A classifier, not fitted, that makes the promise asked for.

    `estimator` is the whole way from rows to scores, so that nothing is learned from
    the rows that are held out. Confidences are asked at 1 - (1 - c) / M for M methods,
    so that the one that is chosen may be any of them; a coverage of K classes at the
    K-th root of that: the held-out rows of different classes are independent given
    the fit and their numbers, so all K promises hold at once with the product.
    `subgroups` say which parts of the population keep the promise too, where the
    columns that the wish names are not found in the rows themselves.
    """
    parts = list(wish.subgroups) or None if subgroups is None else subgroups
    if wish.kind == "coverage":
        from prudent.conformal import ConformalClassifier

        return ConformalClassifier(
            estimator,
            method="split",
            condition="class" if wish.by_class else None,
            subgroups=parts,
            level=rounded(wish.allowed),
            calibration_size=SPLIT_SHARE,
            random_state=random_state,
            **coverage_settings(wish, n_methods),
        )
    confidence = shared_confidence(wish, n_methods)
    if wish.kind in ("error", "answered"):
        from prudent.certification import SelectiveClassifier

        return SelectiveClassifier(
            estimator,
            error_rate=wish.allowed if wish.kind == "error" else None,
            answered_share=wish.share,
            confidence=confidence,
            subgroups=parts,
            calibration_size=SELECTIVE_SHARE,
            random_state=random_state,
        )
    if wish.kind == "missed":
        from prudent.certification import NeymanPearsonClassifier

        return NeymanPearsonClassifier(
            estimator,
            max_class_error={g.scope: g.bound for g in wish.guarantees},
            flagged_share=wish.share,
            confidence=confidence,
            # Where every class is limited, some rows need more than one answer.
            abstain=len(wish.guarantees) == n_classes,
            subgroups=parts,
            calibration_size=CLASS_ERROR_SHARE,
            random_state=random_state,
        )
    raise ValueError(
        f"{wish.text!r} is a promise of detectors: use prudent detect, or one of "
        f"{', '.join(FORMS)}."
    )


def coverage_settings(wish: Wish, n_methods: int) -> dict[str, Any]:
    """Settings of a conformal classifier for the confidence asked for, if one is."""
    if wish.confidence is None:
        return {}
    if wish.subgroups:  # whose promises the wrapper itself makes all at once
        return {"confidence": shared_confidence(wish, n_methods)}
    return {"confidence": each_confidence(wish, n_methods)}


def promised(fitted: Any, wish: Wish, n_methods: int) -> tuple[Guarantee, ...]:
    """What a fitted wrapper promises, coverages with confidence all at once.

    Of a classifier chosen in its training part the evidence counts the candidates.
    """
    given: tuple[Guarantee, ...] = tuple(fitted.guarantees_)
    inner = getattr(fitted, "estimator_", None)
    last = inner[-1] if isinstance(inner, Pipeline) else inner
    n_candidates = getattr(last, "n_candidates_", None)
    if n_candidates is not None:
        given = tuple(
            replace(g, evidence={**g.evidence, "candidates": n_candidates})
            for g in given
        )
    if wish.kind != "coverage" or wish.confidence is None or wish.subgroups:
        return given
    n_claims = len(wish.guarantees)
    return tuple(
        replace(
            promise,
            confidence=shared_confidence(wish, n_methods),
            evidence={**promise.evidence, "claims": n_claims},
        )
        for promise in given
        if promise.scope in [g.scope for g in wish.guarantees]
    )


def shared_confidence(wish: Wish, n_methods: int) -> float:
    """Confidence of each of so many methods, for one that holds for all of them."""
    return 1 - (1 - (wish.confidence or CONFIDENCE)) / n_methods


def each_confidence(wish: Wish, n_methods: int, n_subgroups: int = 0) -> float:
    """Confidence of each guarantee, for that of the method to hold for all of them.

    Subgroups may overlap, so that their promises share what may fail; cells, by which
    error rates are proved and which `n_subgroups` counts then, do not. A capacity and
    what is promised beside it take half of that each; an answered share alone and the
    error rate that it comes with multiply.
    """
    together = shared_confidence(wish, n_methods)
    if n_subgroups and wish.kind == "error":
        return float(together ** (1 / n_subgroups))
    if n_subgroups:
        return 1 - (1 - together) / (len(wish.guarantees) * n_subgroups)
    if wish.kind == "answered":
        return float(together ** (1 / 2))
    each = float(together ** (1 / len(wish.guarantees)))
    return each if wish.capacity is None else (1 + each) / 2


def fewest_held_out(
    wish: Wish, n_methods: int, label: Any = None, n_subgroups: int = 0
) -> int:
    """Held-out rows without which nothing can be promised, of a class that is named.

    Without a `label` those of the least limit, that of a share of all rows among them;
    with subgroups those of each of them.
    """
    allowed = rounded(wish.allowed)
    if label is not None and wish.kind == "missed":
        allowed = next(g.bound for g in wish.guarantees if g.scope == label)
    if wish.kind == "coverage" and wish.confidence is None:
        return fewest_rows(allowed)
    each = each_confidence(wish, n_methods, n_subgroups)
    if label is None and wish.capacity is not None:
        allowed = min(allowed, wish.capacity.allowed)
    return fewest_rows(rounded(allowed), each)


def held_out_share(wish: Wish) -> float:
    """Share of the training rows that a wrapper holds out for its promise."""
    return {
        "coverage": SPLIT_SHARE,
        "error": SELECTIVE_SHARE,
        "answered": SELECTIVE_SHARE,
        "missed": CLASS_ERROR_SHARE,
    }[wish.kind]


def rows_needed(
    wish: Wish,
    label: Any,
    *,
    n_methods: int,
    n_folds: int,
    holds_out: bool = True,
    forward: bool = False,
    n_subgroups: int = 0,
) -> Needs:
    """Rows of the table that give a training part enough held-out ones.

    Rows of a class (`label`; None: all classes count), or of one of the subgroups, are
    held out at random: enough of them in 99 of 100 draws. Some methods hold nothing
    out. Where folds go `forward` in time, the first training part is one of
    `n_folds` + 1 blocks.
    """
    share = held_out_share(wish) if holds_out else 1.0
    held_out = fewest_held_out(wish, n_methods, label, n_subgroups)
    trained = fewest_to_hold_out(held_out, share) if holds_out else held_out
    if (label is not None or n_subgroups) and share < 1:
        while bdtr(held_out - 1, trained, share) > RARELY:
            trained += 1
    rows = math.ceil(trained / (1 - 1 / n_folds))
    if forward:
        rows = trained * (n_folds + 1)
    name = None if label is None else str(label)
    return Needs(rows=rows, label=name, held_out=held_out, to_fit=trained)


# Of a class of fewer rows, what is not held out may be less than can be learned from
# (happens in one of ten thousand draws at the limit).
MAY_BE_LACKING = 12
# Conformal prediction by a model of its own, on rows held out as the wrappers do.
SPLIT = {"method": "split", "calibration_size": SPLIT_SHARE}
# Squared training rows times classes: full conformal prediction of more would take
# longer than all other methods together.
MOST_PAIRS = 50_000_000


def promising(
    estimator: Any,
    wish: Wish,
    preparation: Any,
    counts: IntArray,
    *,
    split: bool,
    seed: int,
    n_methods: int = 1,
    subgroups: SubgroupsOption = None,
) -> Any:
    """A classifier, not fitted: the method makes the promise asked for.

    `counts` are the training rows of each class; `split` says that only rows held out
    can rank others; `subgroups` as for `wrap`.
    """
    inner = affordable(clone(estimator), counts, split=split)
    if is_as_given(inner):
        preparation = None
    if is_choice(inner):
        inner.set_params(wish=wish)
        if any(method.takes_table for method in inner.methods()):
            inner.set_params(preparation=preparation)
            preparation = None
    by_itself = wish.kind == "coverage" and preparation is None and not wish.subgroups
    if is_full_conformal(inner) and by_itself:
        certain = coverage_settings(wish, n_methods)
        if certain:
            inner.set_params(**SPLIT, **certain)
        condition = "class" if wish.by_class else None
        return inner.set_params(level=round(wish.allowed, 12), condition=condition)
    if counts.min() < MAY_BE_LACKING and not is_choice(inner):
        inner = FrequentClasses(inner)
    return wrap(
        in_front(preparation, inner),
        wish,
        n_classes=len(counts),
        n_methods=n_methods,
        random_state=seed,
        subgroups=subgroups,
    )


def is_choice(estimator: Any) -> bool:
    """Whether an estimator chooses among others for a promise, in its training part."""
    return getattr(estimator, "chooses", False)


def affordable(estimator: Any, counts: IntArray, *, split: bool) -> Any:
    """The estimator, by held-out rows where full conformal prediction does not fit.

    Full prediction ranks each new row under each label among all training rows, of
    which `counts` says how many each class has; and it can neither keep groups whole
    nor hold out the latest rows, for which `split` says so.
    """
    if not is_full_conformal(estimator):
        return estimator
    pairs = int(counts.sum()) ** 2 * len(counts)
    if split or (estimator.method == "auto" and pairs > MOST_PAIRS):
        return estimator.set_params(**SPLIT)
    if estimator.method == "auto":
        return estimator.set_params(method="full")
    return estimator


def learned_inside(estimator: Any, preparation: Any) -> Any:
    """Conformal prediction by a model of its own, with what is learned in front inside.

    What was learned from the training rows treats a new row otherwise than these. So
    rows that nothing is learned from rank.
    """
    from prudent.conformal.classifier import scoring_model

    whole = in_front(preparation, scoring_model(estimator))
    return clone(estimator).set_params(estimator=whole, method="split")


def is_full_conformal(estimator: Any) -> bool:
    """Whether this is conformal prediction by a model of its own."""
    return hasattr(estimator, "p_values") and getattr(estimator, "estimator", 0) is None


def holds_out(wrapped: Any) -> bool:
    """Whether a promising classifier keeps rows back that nothing is learned from."""
    return not (is_full_conformal(wrapped) and wrapped.method == "full")
