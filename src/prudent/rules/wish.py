"""The grammar of promises: from the words of a wish to guarantees without evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from prudent.core.guarantee import Guarantee
from prudent.core.validation import closest, plain

Kind = Literal["coverage", "error", "missed", "false alarm", "answered"]

FORMS = (
    '"coverage >= 90% in every class"',
    '"coverage >= 95%"',
    '"error <= 5%"',
    '"missed LABEL <= 2%" (any class label; several with `and`; of a classifier '
    '"false alarm LABEL" is the same)',
    '"error <= 5% and answered >= 96%" ("handed over <= 4%" is the same)',
    '"answered >= 96%"',
    '"missed LABEL <= 2% and flagged <= 4%"',
    'each without a share of rows also "in every COLUMN"',
    '"none"',
)
OTHER_KINDS = ("error", "coverage", "false alarm")
DETECTOR_FORM = '"false alarm <= 5%"'
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RATE = r"(\d+(?:\.\d*)?|\.\d+)\s*(%?)"
# Promises about all rows, and what may be said before the name of a class.
OVERALL = rf"(coverage\s*>=|error\s*<=|false alarm\s*<=)\s*{RATE}"
# What may stand behind any promise: that it is kept in each of several parts.
IN_EVERY = r"(.*[\d%])\s+in every\s+([^<>=]+)"
OF_CLASS = r"missed|false alarm"
# What people have time for, by itself or behind another promise.
CAPACITY = (
    rf"(?:(.+?)\s*,?\s+and\s+)?(answered\s*>=|handed over\s*<=|flagged\s*<=)\s*{RATE}"
)
# A limit of one class; a label may hold any of the signs and words around it.
LIMIT = rf"(?:(?:{OF_CLASS})\s+)?(.+?)\s*<=\s*{RATE}(?:,?\s+and\s+|,\s*|$)"
COVERAGE_LEVELS = (0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995)
ANSWERED_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99)
ERROR_LEVELS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4)
# Limits of classes that grow in step stay below 1.
WIDEST = 0.99
# Of promises about errors, where none is given.
CONFIDENCE = 0.95
# Promises of how many rows go to people, or to the answer itself.
CAPACITIES = ("answered share", "flagged share")
# Quantities of guarantees that may be asked for.
PROMISED_BY_WRAPPERS = {
    "answered share",
    "class error rate",
    "coverage",
    "error rate",
    "false alarm rate",
    "selective error rate",
}
HANDED_OVER = r"\bhanded over\s*<="
# Names of classes that a message lists.
MOST_NAMES = 5


@dataclass(frozen=True)
class Wish:
    """A promise asked for: the text, and guarantees without evidence."""

    text: str
    guarantees: tuple[Guarantee, ...]  # one for each class where classes are promised
    by_group: bool = False  # whether each group has the promise
    # Columns, crossed or in bands, each part of which has the promise: "sex".
    subgroups: tuple[str, ...] = ()
    capacity: Guarantee | None = None  # a share promised beside these guarantees

    @property
    def kind(self) -> Kind:
        """What is promised, and with it by which wrapper."""
        return {
            "coverage": "coverage",
            "selective error rate": "error",
            "error rate": "error",
            "class error rate": "missed",
            "false alarm rate": "false alarm",
            "answered share": "answered",
        }[self.guarantees[0].quantity]  # type: ignore[return-value]

    @property
    def share(self) -> float | None:
        """The least share of rows answered, or the largest flagged, if one is asked."""
        if self.kind == "answered":
            return self.guarantees[0].bound
        return None if self.capacity is None else self.capacity.bound

    @property
    def understood(self) -> str | None:
        """What a sentence means that says it in other words than the promise made."""
        if re.search(HANDED_OVER, self.text, re.IGNORECASE) and self.share is not None:
            return f"{self.text!r} is understood as {self.at(self.level)!r}"
        if self.kind != "missed" or not self.text.lower().startswith("false alarm"):
            return None
        names = " and ".join(f"class {str(g.scope)!r}" for g in self.guarantees)
        return f"{self.text!r} is understood as the error of {names}"

    @property
    def by_class(self) -> bool:
        """Whether classes are named."""
        return self.guarantees[0].scope is not None

    @property
    def confidence(self) -> float | None:
        """Probability that all guarantees hold at once; None: on average."""
        return self.guarantees[0].confidence

    def confident(self, confidence: float) -> Wish:
        """The same about the fitted model itself instead of on average."""
        certain = tuple(
            replace(g, average_over=None, confidence=confidence)
            for g in self.guarantees
        )
        beside = self.capacity
        if beside is not None:
            beside = replace(beside, average_over=None, confidence=confidence)
        return replace(self, guarantees=certain, capacity=beside)

    @property
    def allowed(self) -> float:
        """Share of rows that may break the promise; the least, if there are several."""
        return rounded(min(promise.allowed for promise in self.guarantees))

    @property
    def rises(self) -> bool:
        """Whether a promise of a higher level promises more."""
        return self.guarantees[0].sense == ">="

    @property
    def level(self) -> float:
        """The one of the `levels` that is asked for."""
        return rounded(1 - self.allowed if self.rises else self.allowed)

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels at which the frontier is drawn, the one asked for among them."""
        known = {"coverage": COVERAGE_LEVELS, "answered": ANSWERED_LEVELS}
        return tuple(sorted({*known.get(self.kind, ERROR_LEVELS), self.level}))

    def limits(self, level: float) -> dict[Any, float]:
        """Limits of the classes named when all grow in step, the least to this level.

        Examples
        --------
        >>> parse_promise("missed a <= 2% and b <= 5%").limits(0.04)
        {'a': 0.04, 'b': 0.1}
        """
        return {
            g.scope: round(min(g.bound * level / self.allowed, WIDEST), 12)
            for g in self.guarantees
        }

    def at(self, level: float) -> str:
        """The same promise at another of the `levels`, as one asks for it.

        Examples
        --------
        >>> parse_promise("coverage >= 90%").at(0.8)
        'coverage >= 80%'
        """
        every = list(self.subgroups)
        if self.kind == "coverage":
            asked = f"coverage >= {_percent(level)}"
            every = ["class", *every] if self.by_class else every
        elif self.kind == "error":
            asked = f"error <= {_percent(level)}"
        elif self.kind == "answered":
            asked = f"answered >= {_percent(level)}"
        else:
            limits = [f"{k} <= {_percent(q)}" for k, q in self.limits(level).items()]
            asked = f"missed {' and '.join(limits)}"
        if self.capacity is not None:
            name = self.capacity.quantity.removesuffix(" share")
            asked += f" and {name} {self.capacity.sense} "
            asked += _percent(self.capacity.bound)
        return f"{asked} in every {' and '.join(every)}" if every else asked


def parse_promise(
    promise: str | Guarantee | Sequence[Guarantee],
    classes: Sequence[Any] | None = None,
    *,
    confidence: float | None = None,
    with_groups: bool = False,
    by: Sequence[str] = (),
) -> Wish | None:
    """What is asked for, as guarantees without evidence; None for "none".

    One of `FORMS`, or of detectors `DETECTOR_FORM`, or guarantees. Where `classes` are
    not known yet, they are left as they are spelled; "in every class" is one guarantee.
    "In every group" is understood `with_groups` only, by those who are given groups:
    parts of one column, by whose name the text may call them; or of those in `by`.
    Each part of the columns in `by` has the promise too; a text that names columns, "in
    every sex and age_band", has to name the same. Without a `confidence` errors are
    promised with 0.95, coverage and false alarms on average. Raises ValueError for
    other sentences, rates outside (0, 1), unknown classes and two confidences.

    Examples
    --------
    >>> wish = parse_promise("missed b <= 2% and c <= 5%", ["a", "b", "c"])
    >>> [(g.scope, g.bound) for g in wish.guarantees]
    [('b', 0.02), ('c', 0.05)]
    >>> parse_promise("error <= 5% in every sex and age:30,45").subgroups
    ('sex', 'age:30,45')
    """
    if not isinstance(promise, str):
        wish = _from_guarantees(promise, confidence)
        if by and wish.share is not None:
            raise ValueError(f"{wish.text!r} has no promise by subgroups.")
        return replace(wish, subgroups=tuple(by))
    text = " ".join(promise.replace("≥", ">=").replace("≤", "<=").split())
    if text == "none":
        if by:
            raise ValueError(
                "no promise is asked for, so that there is none to keep in every "
                f"{' and '.join(by)}: name one."
            )
        return None
    kept_in = re.fullmatch(IN_EVERY, text, re.IGNORECASE)
    text, words = (text, "") if kept_in is None else kept_in.groups()
    parts = listed_subgroups(words.replace(" and ", ","))
    named = [part for part in parts if part.lower() not in ("class", "group")]
    by_class, by_group = (
        any(part.lower() == name for part in parts) for name in ("class", "group")
    )
    if by and named and sorted(by) != sorted(named):
        raise ValueError(
            f"the promise is by {' and '.join(named)}, and by {' and '.join(by)} is "
            "asked for: name the columns once, or the same ones."
        )
    if with_groups:
        _refuse_more_than_groups(promise, text, parts)
        by_group, named, by = by_group or bool(named), [], ()
    elif by:
        by_group = False  # the parts of the columns in `by` are meant
    wish = _from_text(
        promise, text, classes, confidence, by_class=by_class, by_group=by_group
    )
    if by_group and not with_groups:
        raise ValueError(
            f"{promise!r} does not say which groups: name a column, as in 'coverage "
            ">= 90% in every site', or give them to prudent.promise as `by`."
        )
    if not (by or named):
        return wish
    if wish.kind == "false alarm" or by_group or wish.share is not None:
        raise ValueError(f"{promise!r} has no promise by subgroups: leave them out.")
    wish = replace(wish, subgroups=tuple(by or named))
    return wish if named else replace(wish, text=wish.at(wish.level))


def _refuse_more_than_groups(promise: str, text: str, parts: Sequence[str]) -> None:
    """Refuse what one column of groups, each row of which is in one, cannot mean."""
    named = [part for part in parts if part.lower() != "class"]
    crossed = any(mark in part for part in named for mark in "*:")
    columns = [part for part in named if part.lower() != "group"]
    if len(columns) > 1 or crossed or (named and len(named) < len(parts)):
        raise ValueError(
            f"{promise!r}: one column of groups is given, as `by`; give a table of "
            "columns, such as a data frame, for parts of several or in bands."
        )
    if columns and not text.lower().startswith("coverage"):
        raise ValueError(
            f"{promise!r}: with one column of groups as `by` only a coverage is "
            "promised; give a table of columns, such as a data frame."
        )


def listed_subgroups(text: str | None) -> list[str]:
    """Split a list of columns, each perhaps crossed with others or in bands.

    Examples
    --------
    >>> listed_subgroups("sex, age:30,45,60, region*site")
    ['sex', 'age:30,45,60', 'region*site']
    """
    items: list[str] = []
    for part in (text or "").split(","):
        word = part.strip()
        if items and ":" in items[-1] and re.fullmatch(NUMBER, word):
            items[-1] += f",{word}"  # one more bound of the bands
        elif word:
            items.append(word)
    return items


def _from_text(
    promise: str,
    text: str,
    classes: Sequence[Any] | None,
    confidence: float | None,
    *,
    by_class: bool,
    by_group: bool,
) -> Wish:
    """What a sentence asks for, without the parts that it is kept in."""
    confident: dict[str, Any] = {"confidence": confidence or CONFIDENCE}
    averaged: dict[str, Any] = {"average_over": "training samples"}
    if confidence is not None:
        averaged = confident
    first, capacity = _with_capacity(text, classes, confident)
    if capacity is not None:
        if by_class or by_group:
            raise _not_understood(promise)
        if first is None:
            return Wish(promise, (capacity,))
        wish = _from_text(
            promise, first, classes, confidence, by_class=False, by_group=False
        )
        return _joined(wish, capacity)
    kind: dict[str, Any]
    overall = {
        "coverage": ("coverage", ">=", averaged),
        "error": ("selective error rate", "<=", confident),
        "false alarm": ("false alarm rate", "<=", averaged),
    }
    matched = re.fullmatch(OVERALL, text, re.IGNORECASE)
    start = matched[1].lower().rstrip("<>= ") if matched else ""
    if matched and (not (by_class or by_group) or start == "coverage"):
        quantity, sense, over = overall[start]
        bound = _rate(matched[2], matched[3], text)
        scopes = list(classes or ["every class"]) if by_class else [None]
        kind = {"quantity": quantity, "sense": sense, **over}
        promised = [Guarantee(bound=bound, scope=scope, **kind) for scope in scopes]
        return Wish(promise, tuple(promised), by_group)
    of_class = re.match(rf"(?:{OF_CLASS})\s", text, re.IGNORECASE)
    if of_class and not (by_class or by_group):
        kind = {"quantity": "class error rate", "sense": "<=", **confident}
        promised = [
            Guarantee(bound=bound, scope=_label(name, classes), **kind)
            for name, bound in _limits(text)
        ]
        return Wish(promise, tuple(promised))
    raise _not_understood(promise)


def _from_guarantees(promise: Any, confidence: float | None) -> Wish:
    is_listed = isinstance(promise, Sequence) and not isinstance(promise, bytes)
    every = tuple(promise) if is_listed else (promise,)
    if not every or not all(isinstance(g, Guarantee) for g in every):
        raise ValueError(
            f"`promise` must be a sentence, a Guarantee or several, got "
            f"{promise!r:.64}. Sentences are {', '.join(FORMS)}."
        )
    beside = [g for g in every if g.quantity in CAPACITIES]
    given = tuple(g for g in every if g.quantity not in CAPACITIES)
    if not given:
        given, beside = every, []
    kinds = {g.quantity for g in given}
    if len(kinds) != 1:
        raise ValueError(
            f"the guarantees of `promise` must be about one quantity, got "
            f"{', '.join(sorted(kinds))}."
        )
    if not kinds <= PROMISED_BY_WRAPPERS:
        raise ValueError(
            f"`promise` may be about {', '.join(sorted(PROMISED_BY_WRAPPERS))}, "
            f"got {kinds.pop()}."
        )
    for asked in every:
        sense = ">=" if asked.quantity in ("coverage", "answered share") else "<="
        if asked.sense != sense:
            raise ValueError(
                f"a rule keeps the {asked.quantity} {sense} a bound, got "
                f"{asked.sense} {asked.bound:g}."
            )
        if asked.subgroup is not None:
            raise ValueError(
                "`promise` names subgroups in words, as in 'coverage >= 90% in every "
                f"sex', got a guarantee about {asked.subgroup}."
            )
    confidences = {g.confidence for g in every if g.confidence is not None}
    if confidence is not None:
        confidences.add(confidence)
    if len(confidences) > 1:
        raise ValueError(
            "the guarantees of `promise` hold at once, with one confidence, got "
            f"{' and '.join(f'{c:g}' for c in sorted(confidences))}."
        )
    text = " and ".join(map(str, every))
    wish = Wish(text, given)
    if beside:
        if len(beside) > 1:
            raise ValueError(
                "`promise` may hold one share beside its rates, got "
                f"{len(beside)} of them."
            )
        wish = _joined(wish, beside[0])
    if confidences or wish.kind not in ("coverage", "false alarm"):
        return wish.confident(*(confidences or {CONFIDENCE}))
    return wish


def _with_capacity(
    text: str, classes: Sequence[Any] | None, confident: Mapping[str, Any]
) -> tuple[str | None, Guarantee | None]:
    """Part a sentence into the promise before a capacity, and that capacity.

    A class may have the name of a capacity; it is meant then.
    """
    matched = re.fullmatch(CAPACITY, text, re.IGNORECASE)
    if matched is None:
        return text, None
    first, start, number, percent = matched.groups()
    name = start.rstrip("<>= ")
    if first is not None and name in map(str, classes or ()):
        return text, None
    rate = _rate(number, percent, text)
    if name.lower() == "flagged":
        if first is None:
            raise ValueError(
                f"{text!r} does not say which class is flagged: ask for 'missed LABEL "
                f"<= 2% and {text}'."
            )
        return first, Guarantee(
            quantity="flagged share", bound=rate, sense="<=", **confident
        )
    if name.lower() == "handed over":
        rate = rounded(1 - rate)
    return first, Guarantee(
        quantity="answered share", bound=rate, sense=">=", **confident
    )


def _joined(wish: Wish, capacity: Guarantee) -> Wish:
    """A wish with the capacity that goes with it, flagged rows being of its class."""
    flags = capacity.quantity == "flagged share"
    if wish.kind != ("missed" if flags else "error") or wish.capacity is not None:
        goes_with = "'missed LABEL <= 2%'" if flags else "'error <= 5%'"
        raise ValueError(
            f"a limit of the {capacity.quantity} goes with {goes_with}, got "
            f"{_cut(wish.text)!r}."
        )
    if flags and len(wish.guarantees) > 1:
        raise ValueError(
            "a limit of the flagged share goes with one class, got "
            f"{_cut(wish.text)!r}."
        )
    if flags:
        capacity = replace(capacity, scope=wish.guarantees[0].scope)
    return replace(wish, capacity=capacity)


def _percent(rate: float) -> str:
    return f"{100 * rate:.4g}%"


def _limits(text: str) -> list[tuple[str, float]]:
    """Split "missed a <= 2% and b <= 5%" into labels and limits."""
    limits, position = [], 0
    while position < len(text):
        matched = re.match(LIMIT, text[position:], re.IGNORECASE)
        if matched is None:
            raise _not_understood(text)
        limits.append((matched[1], _rate(matched[2], matched[3], text)))
        position += matched.end()
    if text.endswith(","):
        raise _not_understood(text)
    return limits


def _label(name: str, classes: Sequence[Any] | None) -> Any:
    if classes is None:
        return name
    for spelled in (name, name.strip("'\"")):
        for label in classes:
            if str(label) == spelled:
                return plain(label)
    known = [str(label) for label in classes]
    like = closest(name, known)
    hint = "" if like is None else f" Closest: {like!r}."
    if name.lower() in OTHER_KINDS:
        hint = " A promise is of one kind."
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    names = ", ".join(known[:MOST_NAMES]) + more
    raise ValueError(f"the promise names class {name!r}; there are {names}.{hint}")


def _rate(number: str, percent: str, text: str) -> float:
    rate = float(number) / (100 if percent else 1)
    if not 0 < rate < 1:
        raise ValueError(
            f"the rate of a promise lies between 0 and 1 (or 0% and 100%), got "
            f"{number}{percent} in {text!r}."
        )
    return rounded(rate)


def rounded(rate: float) -> float:
    """The rate that was meant: 1 - 0.9 is 0.1."""
    return round(rate, 12)


def _not_understood(text: str) -> ValueError:
    strict = " Write <= or >=." if re.search("[<>](?!=)", text) else ""
    return ValueError(
        f"the promise {_cut(text)!r} is none of {', '.join(FORMS)}, or for detectors "
        f"{DETECTOR_FORM}. Rates are written 5% or 0.05.{strict}"
    )


def _cut(text: str, longest: int = 64) -> str:
    """A text of the user's, so short that it cannot fill the page."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
