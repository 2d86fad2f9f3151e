"""A promise from the scores of any model: of a net, an R model, a vendor, a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.binomial import check_fraction, fewest_rows
from prudent.core.guarantee import Guarantee
from prudent.core.rows import one_row_per_group
from prudent.core.types import FloatArray, IntArray
from prudent.exceptions import InfeasibleError
from prudent.rules.make import (
    ClassErrors,
    Coverage,
    FalseAlarms,
    SelectiveError,
    Terms,
)
from prudent.rules.rule import Rule
from prudent.rules.scores import AnswerScores, CalibrationScores, ClassScores
from prudent.rules.wish import Wish, parse_promise, rounded


def promise(
    scores: ArrayLike,
    y: ArrayLike | None,
    promise: str | Guarantee | Sequence[Guarantee],
    *,
    classes: Sequence[Any] | None = None,
    predicted: ArrayLike | None = None,
    confidence: float | None = None,
    by: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Literal["conservative", "smoothed"] = "conservative",
    ids: ArrayLike | None = None,
    strange: Literal["low", "high"] = "high",
    ordinary: Any = None,
    unseen: str = "",
    allow_rare: bool = False,
    random_state: Any = 0,
) -> Rule:
    """A rule that keeps a promise, from scores that any model gave to labelled rows.

    The rows must be new to whatever made the scores: kept from training, tuning,
    prompts and the choice of a model. Choose the rate before you look at them.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_classes) or (n_rows,)
        Scores of each class, high where it is plausible; with `predicted` how sure
        that label is; with two `classes` and one column, the score of the second; or
        how strange (or ordinary) each row looks.
    y : array-like of shape (n_rows,) or None
        Truth. None where alarms are promised and all rows are ordinary.
    promise : str, Guarantee or sequence of Guarantee
        "coverage >= 90%", "... in every class", "... in every group" (of `by`);
        "error <= 5%" of the rows answered; "missed LABEL <= 2%"; "false alarm <= 5%".
    classes : sequence, default=None
        Labels of the columns; None: the sorted labels of `y`.
    predicted : array-like of shape (n_rows,), default=None
        Labels that the model gave, for promises about errors.
    confidence : float, default=None
        Probability over these rows that all that is promised holds, in (0, 1). None:
        coverage and alarms on average over draws of the rows, errors with 0.95.
    by : array-like of shape (n_rows,), default=None
        What has a promise of its own, with "in every group".
    groups : array-like of shape (n_rows,), default=None
        Rows that belong together: one random row of each counts.
    ties : {"conservative", "smoothed"}, default="conservative"
        Equal scores count in full, or by a coin of each row's id.
    ids : array-like of shape (n_rows,), default=None
        Names of the rows. Rows of one name are an error unless `groups` say which
        rows belong together.
    strange : {"low", "high"}, default="high"
        Which scores raise alarms.
    ordinary : object, default=None
        Label in `y` of the ordinary rows; None: all given rows are ordinary.
    unseen : str, default=""
        Why these rows are new to what made the scores; kept in the rule.
    allow_rare : bool, default=False
        Whether a class with too few rows is put into every set instead of refused.
    random_state : int, RandomState or None, default=0
        For the row of each group, and the key of the coins.

    Returns
    -------
    Rule
        Frozen; it holds nothing of the model, and `to_json` writes it for any
        language.

    Raises
    ------
    ValueError
        If shapes disagree, a score is NaN, a label has no column, all labels or all
        scores are equal, or rows are repeated.
    InfeasibleError
        If no rule keeps the promise on so few rows, or on such answers.

    Notes
    -----
    Formulas and proofs: user guide, conformal prediction and certification. All rules
    rest on the rank of a new score among those of these rows.

    Examples
    --------
    >>> import numpy as np
    >>> import prudent
    >>> random = np.random.default_rng(0)
    >>> ill = random.random(400) < 0.4
    >>> score = random.normal(size=400) + 2 * ill  # by whatever model
    >>> rule = prudent.promise(
    ...     score, ill, "missed True <= 5%", classes=[False, True], unseen="May"
    ... )
    >>> print(rule.guarantees[0])
    The class error rate of class True is at most 0.05 with confidence 0.95, assuming
    future rows are independent draws from the population of the calibration rows and
    the calibration rows were not used to fit, choose or tune the model.
    """
    if ties not in ("conservative", "smoothed"):
        raise ValueError(f"`ties` must be 'conservative' or 'smoothed', got {ties!r}.")
    if strange not in ("low", "high"):
        raise ValueError(f"`strange` must be 'low' or 'high', got {strange!r}.")
    if confidence is not None:
        check_fraction("confidence", confidence)
    values = check_scores(scores)
    n = len(values)
    truth = None if y is None else _column("y", y, n)
    labels = None if classes is None else list(classes)
    if labels is None and truth is not None and predicted is None:
        labels = np.unique(truth).tolist()
    wish = parse_promise(promise, labels, confidence=confidence, with_groups=True)
    if wish is None:
        raise ValueError("`promise` is 'none': say what is to be promised.")
    if wish.by_group != (by is not None):
        raise ValueError(
            '`by` and the words "in every group" belong together: give both or neither.'
        )
    random = check_random(random_state)
    rows = np.arange(n)
    if groups is not None:
        rows = np.sort(one_row_per_group(_column("groups", groups, n), random))
    elif ids is not None:
        _refuse_repeats(_column("ids", ids, n))
    terms = Terms(confidence=wish.confidence, frozen=True, grouped=groups is not None)
    smoothed = ties == "smoothed"
    if wish.kind == "false alarm":
        if truth is not None and ordinary is not None:
            rows = rows[truth[rows] == ordinary]
        rule = _alarms(values[rows], wish, terms, strange, smoothed=smoothed)
    elif truth is None:
        raise ValueError(f"{wish.text!r} needs `y`, the truth of each row.")
    elif predicted is not None:
        wrong = truth != _column("predicted", predicted, n)
        rule = _answers(values[rows], wrong[rows], wish, terms)
    else:
        assert labels is not None
        table = scores_of_classes(values, labels)
        codes = _codes(truth, labels)
        part, kept = table[rows], codes[rows]
        if wish.kind == "error":
            rule = _answers(part.max(axis=1), part.argmax(axis=1) != kept, wish, terms)
        elif wish.kind == "missed":
            rule = _limited(part, kept, labels, wish, terms)
        else:
            own = np.take_along_axis(part, kept[:, None], axis=1)[:, 0]
            names = None if by is None else _column("by", by, n)[rows]
            coverage = _coverage(
                own, kept, names, labels, wish, terms, smoothed=smoothed
            )
            if not allow_rare:
                _refuse_rare(coverage, wish)
            rule = _joint(coverage.rule(rounded(wish.allowed)), wish)
            if names is not None:
                rule = _by_group(rule)
            if values.ndim == 1:
                rule = replace(rule, empty="all")
    record: dict[str, Any] = {"promise": wish.text}
    record["columns"] = ["score"] if values.ndim == 1 else list(map(str, rule.classes))
    if unseen:
        record["unseen"] = unseen
    if rule.smoothed_rate is not None:
        record |= {"id": "id", "key": random.bytes(32).hex()}
    return replace(rule, record={**rule.record, **record})


def check_random(random_state: Any) -> np.random.RandomState:
    """A source of random numbers from a seed, or the one given."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.RandomState(random_state)


def check_scores(scores: ArrayLike) -> FloatArray:
    """Scores (n,) or (n, n_classes), none of them NaN and not all of them equal."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim not in (1, 2) or not len(values):
        raise ValueError(
            "`scores` must have a row for each row of the table, and one column or one "
            f"for each class, got an array of shape {values.shape}."
        )
    lacking = np.flatnonzero(np.isnan(values).reshape(len(values), -1).any(axis=1))
    if len(lacking):
        raise ValueError(
            f"row {int(lacking[0])} has no score (NaN), and {len(lacking) - 1} more: "
            "leave such rows out; the promise is then about rows with scores."
        )
    if (values == values.flat[0]).all():
        raise ValueError(
            f"the score is {float(values.flat[0]):g} in every row, so that it says "
            "nothing: use certify."
        )
    return values


def scores_of_classes(values: FloatArray, labels: Sequence[Any]) -> FloatArray:
    """Scores (n, n_classes); a score s of the second of two is taken as (-s, s)."""
    if values.ndim == 1 and len(labels) == 2:
        return np.stack([-values, values], axis=1)
    if values.ndim == 1 or values.shape[1] != len(labels):
        columns = 1 if values.ndim == 1 else values.shape[1]
        raise ValueError(
            f"{columns} column(s) of scores for {len(labels)} classes "
            f"({', '.join(map(str, labels[:5]))}): give one for each class, in the "
            "order of `classes`."
        )
    return values


def _column(name: str, values: ArrayLike, n: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (n,):
        raise ValueError(
            f"`{name}` must have one value for each of the {n} rows, got an array of "
            f"shape {column.shape}."
        )
    return column


def _codes(truth: NDArray[Any], labels: Sequence[Any]) -> IntArray:
    """Place of each label among the classes."""
    place = {label: code for code, label in enumerate(labels)}
    seen, inverse, counts = np.unique(truth, return_inverse=True, return_counts=True)
    for label, count in zip(seen.tolist(), counts.tolist(), strict=True):
        if label not in place:
            known = ", ".join(map(str, labels[:5]))
            raise ValueError(
                f"truth {label!r} ({count} rows) has no score column; there are "
                f"{known}."
            )
    if len(seen) == 1:
        raise ValueError(f"all {len(truth)} rows are {seen.tolist()[0]!r}.")
    codes: IntArray = np.array([place[label] for label in seen.tolist()])[inverse]
    return codes


def _refuse_repeats(ids: NDArray[Any]) -> None:
    _, first, counts = np.unique(ids, return_index=True, return_counts=True)
    repeated = int((counts - 1).sum())
    if repeated:
        row = int(first[counts > 1].min())
        again = int(np.flatnonzero(ids == ids[row])[1])
        raise ValueError(
            f"{repeated} rows repeat an earlier one (rows {row} and {again}): remove "
            "them, or give `groups`."
        )


def _alarms(
    scores: FloatArray,
    wish: Wish,
    terms: Terms,
    strange: Literal["low", "high"],
    *,
    smoothed: bool,
) -> Rule:
    if scores.ndim != 1:
        raise ValueError(
            f"{wish.text!r} needs one score a row, got an array of shape "
            f"{scores.shape}."
        )
    plausible = CalibrationScores.of(-scores if strange == "high" else scores)
    rate = rounded(wish.allowed)
    if terms.rank(len(scores), rate) == 0 and not smoothed:
        needed = fewest_rows(rate, terms.confidence)
        raise InfeasibleError(
            f"{wish.text!r} needs {needed} ordinary rows, there are {len(scores)}."
        )
    alarms = FalseAlarms(
        scores=plausible, strange=strange, smoothed=smoothed, terms=terms
    )
    return alarms.rule(rate)


def _answers(
    sureness: FloatArray, wrong: NDArray[Any], wish: Wish, terms: Terms
) -> Rule:
    """Answers of which few are wrong; InfeasibleError that says why there are none."""
    if sureness.ndim != 1:
        sureness = sureness.max(axis=1)
    if wish.kind != "error":
        raise ValueError(
            f"{wish.text!r} needs a score of each class; how sure one label is keeps "
            "promises about errors."
        )
    rate, n = rounded(wish.allowed), len(sureness)
    rule = SelectiveError(scores=AnswerScores.of(sureness, wrong), terms=terms).rule(
        rate
    )
    if rule.guarantees:
        return rule
    needed = fewest_rows(rate, terms.confidence)
    if n < needed:
        raise InfeasibleError(
            f"{wish.text!r} needs {needed} rows without an error, there are {n}."
        )
    surest = np.argsort(-sureness, kind="stable")[:needed]
    raise InfeasibleError(
        f"no threshold keeps {wish.text!r}: {int(wrong[surest].sum())} of the {needed} "
        "surest rows are wrong, none may be."
    )


def _limited(
    scores: FloatArray,
    codes: IntArray,
    labels: Sequence[Any],
    wish: Wish,
    terms: Terms,
) -> Rule:
    limits = {g.scope: g.bound for g in wish.guarantees}
    errors = ClassErrors(
        scores=ClassScores(scores, codes, np.asarray(labels)),
        in_sets=len(limits) == len(labels),
        terms=terms,
    )
    return errors.rule(limits)


def _coverage(
    own: FloatArray,
    codes: IntArray,
    names: NDArray[Any] | None,
    labels: Sequence[Any],
    wish: Wish,
    terms: Terms,
    *,
    smoothed: bool,
) -> Coverage:
    """What sets are made of: all rows, those of each class, or those of each group."""
    by: Literal["class", "group"] | None = None
    categories: tuple[Any, ...] = (None,)
    if names is not None:
        by = "group"
        values, category = np.unique(names, return_inverse=True)
        categories = tuple(values.tolist())
    elif wish.by_class:
        by, category, categories = "class", codes, tuple(labels)
    else:
        category = np.zeros_like(codes)
    if terms.confidence is not None:
        # Rows of different categories are independent given their numbers, so that
        # all promises hold at once with the product of their confidences.
        terms = replace(terms, confidence=terms.confidence ** (1 / len(categories)))
    return Coverage(
        scores=CalibrationScores.of(own, category, categories),
        classes=tuple(labels),
        by=by,
        smoothed=smoothed,
        terms=terms,
    )


def _joint(rule: Rule, wish: Wish) -> Rule:
    """Promises with confidence as they hold: all at once."""
    if wish.confidence is None or len(rule.guarantees) == 1:
        return rule
    n_claims = len(rule.guarantees)
    joint = tuple(
        replace(
            guarantee,
            confidence=wish.confidence,
            evidence={**guarantee.evidence, "claims": n_claims},
        )
        for guarantee in rule.guarantees
    )
    return replace(rule, guarantees=joint)


def _by_group(rule: Rule) -> Rule:
    """Promises about groups in the words for parts of the population, not classes."""
    promises = tuple(
        replace(guarantee, scope=None, subgroup=f"group={name}")
        for guarantee, name in zip(rule.guarantees, rule.groups, strict=True)
    )
    return replace(rule, guarantees=promises)


def _refuse_rare(coverage: Coverage, wish: Wish) -> None:
    """Name the categories that have too few rows for any cut."""
    rate = rounded(wish.allowed)
    needed = fewest_rows(rate, coverage.terms.confidence)
    sizes = coverage.scores.sizes.tolist()
    named = zip(coverage.scores.names, sizes, strict=True)
    rare = [(name, m) for name, m in named if m < needed]
    if not rare or coverage.smoothed:
        return
    if coverage.by is None:
        raise InfeasibleError(
            f"{wish.text!r} needs {needed} rows, there are {sizes[0]}."
        )
    each = ", ".join(f"{scope} has {m}" for scope, m in rare[:5])
    more = f" and {len(rare) - 5} more" if len(rare) > 5 else ""
    raise InfeasibleError(
        f"{needed} rows a {coverage.by} are needed, {each}{more}; --allow-rare "
        "(allow_rare=True) puts it into every set."
    )
