"""Parts of the rows of a table: values of columns, bands of numbers, and crossings.

A rule file spells each part as a list of conditions on columns, a crossing as the list
of its parts: no row is in two parts of a crossing. A row that some crossing has no part
for is in no subgroup at all: nothing like it was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.strict_json import double_of, text_of_double
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.rules.scores import places

#: Numbers with more different values need bands.
MOST_NUMBERS = 20
#: From here on neighbouring whole numbers are one float.
FIRST_MERGED = 2.0**53
#: More parts than these are no subgroups of which anything could be proved.
MOST_PARTS = 10_000
MISSING = "missing"

#: Values of a column, and which are missing: float if all are numbers, text if none
#: is, else objects, each of which is a number or a text.
Cells = tuple[NDArray[Any], BoolArray]
#: What finds a column, by name or position.
Columns = Callable[[str | int], Cells]


class BandsNeeded(ValueError):
    """A column of too many numbers to be parted by each; `bands` would do."""

    def __init__(self, reason: str, bands: str) -> None:
        super().__init__(reason, bands)
        self.reason = reason
        self.bands = bands

    def __str__(self) -> str:
        return f"{self.reason}: give bands, such as {self.bands!r}."


@dataclass(frozen=True, eq=False)
class Factor:
    """A column whose values, or bands of its values, part the rows."""

    column: str | int
    bounds: tuple[float, ...] = ()
    values: tuple[Any, ...] = ()  # those seen, sorted: numbers, or texts; or of bands
    has_missing: bool = False

    @property
    def name(self) -> str:
        """What the column is called."""
        return self.column if isinstance(self.column, str) else f"column {self.column}"

    @property
    def names(self) -> list[str]:
        """Names of the parts."""
        return [name for name, _ in self._parts]

    @property
    def conditions(self) -> list[dict[str, Any]]:
        """The parts as a rule file spells them."""
        return [{"column": self.name, **condition} for _, condition in self._parts]

    @property
    def _parts(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and condition of each part."""
        parts = [(f"{self.name}={value_text(v)}", {"is": v}) for v in self.values]
        if self.bounds:
            ends = pairwise((-math.inf, *self.bounds, math.inf))
            parts = [self._band(low, high) for low, high in ends]
        if self.has_missing:
            parts.append((f"{self.name}={MISSING}", {"is": None}))
        return parts

    def _band(self, low: float, high: float) -> tuple[str, dict[str, Any]]:
        """Name and condition of the numbers from one on that lie below another."""
        start, end = {"from": text_of_double(low)}, {"below": text_of_double(high)}
        if low == -math.inf:
            return f"{self.name}<{value_text(high)}", end
        if high == math.inf:
            return f"{self.name}>={value_text(low)}", start
        return f"{value_text(low)}<={self.name}<{value_text(high)}", start | end

    @property
    def holds_numbers(self) -> bool:
        """Whether the cells of the column are compared as numbers."""
        return bool(self.bounds) or any(isinstance(v, float) for v in self.values)

    def learned(self, cells: Cells) -> Factor:
        """The factor with the values of these cells."""
        values, missing = cells
        if values.dtype.kind != "f":  # numbers among words are words of this fit
            values = values.astype(str)
        seen = np.unique(values[~missing])
        if self.bounds:
            if values.dtype.kind != "f":
                raise ValueError(
                    f"subgroups: {shown(self.column)} has bands and holds no numbers."
                )
            seen = np.arange(len(self.bounds) + 1)
        elif values.dtype.kind == "f" and len(seen) > MOST_NUMBERS:
            raise BandsNeeded(
                f"{shown(self.column)} has {len(seen)} values",
                f"{self.name}:{_cuts(seen)}",
            )
        elif values.dtype.kind == "f" and (np.abs(seen) >= FIRST_MERGED).any():
            raise ValueError(
                f"subgroups: {shown(self.column)} has the number "
                f"{np.abs(seen).max():.0f}, which as a number cannot be told from its "
                "neighbours: make words of such numbers, as by a letter before each."
            )
        elif missing.any() and MISSING in seen.tolist():
            raise ValueError(
                f"subgroups: {shown(self.column)} has missing cells and the word "
                f"{MISSING!r}, whose subgroups would have one name: write that word "
                "otherwise."
            )
        return Factor(
            self.column, self.bounds, tuple(seen.tolist()), bool(missing.any())
        )

    def codes(self, cells: Cells) -> IntArray:
        """Place of the part of each cell, -1 for a value that was not seen.

        Each cell is compared by itself, as the fit had the column: no cell decides
        whether others were seen.
        """
        values, missing = cells
        n_parts = len(self.values)
        codes = np.full(len(values), -1, dtype=np.intp)
        if self.holds_numbers:
            numbers = _as_numbers(values)
            known = ~np.isnan(numbers)
            if self.bounds:
                codes[known] = np.searchsorted(
                    self.bounds, numbers[known], side="right"
                )
            else:
                codes[known] = places(numbers[known], self.values)
        elif n_parts:
            codes[~missing] = places(self._as_words(values[~missing]), self.values)
        codes[missing] = n_parts if self.has_missing else -1
        return codes

    def _as_words(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values as text, a number as the fit spelled it.

        Columns write the same number as 1 or, where another cell is missing, as 1.0.
        """
        if values.dtype.kind == "U":
            return values
        known = frozenset(self.values)

        def word(value: Any) -> str:
            spellings = [str(value)]
            if not isinstance(value, str):
                spellings += [value_text(float(value)), str(float(value))]
            return next((own for own in spellings if own in known), spellings[0])

        return np.array([word(value) for value in values.tolist()], dtype=str)


@dataclass(frozen=True, eq=False)
class Crossing:
    """Factors whose parts are crossed, so that each row is in one part at most."""

    factors: tuple[Factor, ...]
    parts: tuple[int, ...] = ()  # crossings seen

    def __post_init__(self) -> None:
        if math.prod(self._shape) >= 2**62:
            crossed = " and ".join(factor.name for factor in self.factors)
            raise ValueError(f"subgroups: {crossed} have too many values to cross.")

    @property
    def names(self) -> list[str]:
        """Names of the parts."""
        return [
            " and ".join(names)
            for names in self._spelled([factor.names for factor in self.factors])
        ]

    @property
    def conditions(self) -> list[list[dict[str, Any]]]:
        """The parts as a rule file spells them."""
        return self._spelled([factor.conditions for factor in self.factors])

    def learned(self, columns: Columns) -> Crossing:
        """The crossing with the values of these columns."""
        factors = tuple(f.learned(columns(f.column)) for f in self.factors)
        parts = np.unique(Crossing(factors)._crossed(columns))
        return Crossing(factors, tuple(parts.tolist()))

    def members(self, columns: Columns) -> BoolArray:
        """Which parts hold each row; none holds one that was not seen."""
        members: BoolArray = self._crossed(columns)[:, None] == np.array(self.parts)
        return members

    @property
    def _shape(self) -> list[int]:
        return [len(factor.names) for factor in self.factors]

    def _spelled(self, factors: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """What the factors say of each part."""
        places = np.array(self.parts, dtype=np.intp)
        unravelled = zip(*np.unravel_index(places, self._shape), strict=True)
        return [
            [own[int(at)] for own, at in zip(factors, place, strict=True)]
            for place in unravelled
        ]

    def _crossed(self, columns: Columns) -> IntArray:
        """Number of the crossing of each row, -1 where a value was not seen."""
        codes = [factor.codes(columns(factor.column)) for factor in self.factors]
        seen = np.all([own >= 0 for own in codes], axis=0)
        number = np.zeros(len(seen), dtype=np.intp)
        for own, n_parts in zip(codes, self._shape, strict=True):
            number = number * n_parts + own
        return np.where(seen, number, -1)


def factors_of(item: str | int) -> tuple[Factor, ...]:
    """The columns that an item crosses."""
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return (Factor(int(item)),)
    if not isinstance(item, str):
        raise TypeError(
            "`subgroups` must be a list of names or positions of columns, or a "
            f"function of rows, got {shown(item)}."
        )
    factors = []
    for part in item.split("*"):
        column, colon, cuts = part.partition(":")
        try:
            bounds = tuple(float(cut) for cut in cuts.split(",")) if colon else ()
        except ValueError:
            bounds = (math.nan,)
        rising = all(low < high for low, high in pairwise(bounds))
        if not (rising and all(map(math.isfinite, bounds))):
            raise ValueError(
                f"subgroups: the bands of {part!r} must be rising numbers, such as "
                "'age:30,45,60'."
            )
        factors.append(Factor(column.strip(), bounds))
    columns = [str(factor.column) for factor in factors]
    for column in columns:
        if columns.count(column) > 1:
            raise ValueError(f"subgroups: {item!r} crosses {column!r} with itself.")
    return tuple(factors)


def crossings_of(
    crossed: Iterable[tuple[Factor, ...]], columns: Columns
) -> tuple[Crossing, ...]:
    """Crossings whose values these columns show; ValueError where two parts are one."""
    crossings = tuple(Crossing(factors).learned(columns) for factors in crossed)
    names = names_of(crossings)
    conditions = [  # in any order: sex*site has the parts of site*sex
        frozenset(tuple(condition.items()) for condition in part)
        for crossing in crossings
        for part in crossing.conditions
    ]
    keys: tuple[Sequence[Any], ...] = (names, conditions)
    for parts in keys:
        if len(set(parts)) < len(parts):
            twice = next(
                name
                for name, part in zip(names, parts, strict=True)
                if parts.count(part) > 1
            )
            raise ValueError(
                f"subgroups: {twice!r} is named twice: give every column and crossing "
                "once, and bands that differ."
            )
    return crossings


def members_of(crossings: Sequence[Crossing], columns: Columns) -> BoolArray:
    """Which of the parts of all crossings hold each row, (n, G).

    None holds a row with a value that was not seen, whatever else it has.
    """
    parts = [crossing.members(columns) for crossing in crossings]
    seen = np.all([part.any(axis=1) for part in parts], axis=0)
    members: BoolArray = np.hstack(parts) & seen[:, None]
    return members


def names_of(crossings: Sequence[Crossing]) -> tuple[str, ...]:
    """Names of the parts of all crossings."""
    return tuple(name for crossing in crossings for name in crossing.names)


def cells_in(values: Any) -> Cells:
    """Numbers and words in a column, and which of the values are missing.

    None, NaN and what else equals nothing are missing. True and False are words, as
    they are in a table with gaps.
    """
    array = np.asarray(values)
    if array.dtype.kind == "U" and isinstance(values, Sequence):
        array = np.array(values, dtype=object)  # numbers in a list with words
    if array.dtype.kind in "fiu":
        numbers = array.astype(np.float64)
        return numbers, np.isnan(numbers)
    missing = np.array([_lacks(cell) for cell in array], dtype=bool)
    is_number = np.array([_is_number(cell) for cell in array], dtype=bool) & ~missing
    if is_number.any() and (is_number | missing).all():
        return np.where(missing, np.nan, array).astype(np.float64), missing
    cells = [
        cell if own else str(cell) for cell, own in zip(array, is_number, strict=True)
    ]
    return np.array(cells, dtype=object if is_number.any() else str), missing


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Real) and not isinstance(cell, bool)


def _as_numbers(values: NDArray[Any]) -> FloatArray:
    """Values as float, NaN for a text."""
    if values.dtype.kind == "f":
        return values
    numbers = (float(v) if _is_number(v) else math.nan for v in values.tolist())
    return np.fromiter(numbers, np.float64, len(values))


def _lacks(cell: Any) -> bool:
    try:
        return cell is None or bool(cell != cell)
    except TypeError:  # of pandas.NA nothing can be said
        return True


# --- crossings from the conditions of a rule file -------------------------------------


def crossings_from(lists: Any) -> tuple[Crossing, ...]:
    """The crossings that a rule file spells; ValueError in one sentence for others."""
    if not isinstance(lists, list) or not lists:
        raise _wrong(lists, "a list for each column")
    crossings = tuple(map(_crossing_from, lists))
    n_parts = sum(len(crossing.parts) for crossing in crossings)
    if n_parts > MOST_PARTS:
        raise ValueError(f"the rule has {n_parts} subgroups, at most {MOST_PARTS} can.")
    if len(set(names_of(crossings))) < n_parts:
        raise ValueError("`subgroups` of the rule have one name for two of them.")
    return crossings


def _crossing_from(parts: Any) -> Crossing:
    if not isinstance(parts, list) or not parts:
        raise _wrong(parts, "lists of parts")
    for part in parts:
        if not isinstance(part, list) or not part:
            raise _wrong(part, "lists of conditions")
    conditions = [[_checked(condition) for condition in part] for part in parts]
    columns = [condition["column"] for condition in conditions[0]]
    for part in conditions:
        if [condition["column"] for condition in part] != columns:
            raise ValueError(
                "the parts of a list of `subgroups` of the rule must all be about the "
                f"columns {columns!r:.80}."
            )
    if len(set(columns)) < len(columns):
        raise ValueError(
            f"a part in `subgroups` of the rule names a column twice: {columns!r:.80}."
        )
    known = [_factor_from(own) for own in zip(*conditions, strict=True)]
    factors, codes = zip(*known, strict=True)
    crossing = Crossing(factors)
    numbers = np.ravel_multi_index(np.array(codes), crossing._shape).tolist()
    if len(set(numbers)) < len(numbers):
        raise ValueError(
            f"two parts by {columns!r:.80} in `subgroups` of the rule are the same."
        )
    return Crossing(factors, tuple(numbers))


def _factor_from(conditions: Sequence[Mapping[str, Any]]) -> tuple[Factor, list[int]]:
    """What conditions on one column say of it, and the place of each."""
    name = conditions[0]["column"]
    values = {own["is"] for own in conditions if own.get("is") is not None}
    bands = [own for own in conditions if "is" not in own]
    has_missing = any(own.get("is", name) is None for own in conditions)
    if len(set(map(type, values))) + bool(bands) > 1:
        raise ValueError(
            f"`subgroups` of the rule compare {name!r:.40} as words, as numbers or in "
            "bands, and may do so in only one of these ways."
        )
    ends = {end for own in bands for end in (own["from"], own["below"])}
    bounds = tuple(sorted(filter(math.isfinite, ends)))
    keys: tuple[Any, ...] = (-math.inf, *bounds) if bounds else tuple(sorted(values))
    for own in bands:
        end = (*bounds, math.inf)[keys.index(own["from"])]
        if own["below"] != end:
            raise ValueError(
                f"the bands of {name!r:.40} in `subgroups` of the rule overlap: one "
                f"goes from {own['from']:g} below {own['below']:g}, another ends or "
                f"begins at {end:g}."
            )
    known = tuple(range(len(keys))) if bounds else keys
    place = {key: at for at, key in enumerate((*keys, None))}
    codes = [place[own.get("is", own.get("from"))] for own in conditions]
    return Factor(name, bounds, known, has_missing), codes


def _checked(condition: Any) -> dict[str, Any]:
    """A condition with the ends of its band as numbers."""
    keys = set(condition) if isinstance(condition, dict) else set()
    column = condition.get("column") if keys else None
    is_value = keys == {"column", "is"}
    is_band = "column" in keys and {"column"} < keys <= {"column", "from", "below"}
    if not (is_value or is_band) or not isinstance(column, str) or not column:
        wanted = 'conditions: "column", and "is" or one of "from" and "below"'
        raise _wrong(condition, wanted)
    if is_band:
        low = double_of(condition.get("from", "-Infinity"), "`subgroups` of the rule")
        high = double_of(condition.get("below", "Infinity"), "`subgroups` of the rule")
        if not low < high or (math.isinf(low) and math.isinf(high)):
            raise ValueError(
                f"a band of {column!r:.40} in `subgroups` of the rule goes from "
                f"{low:g} below {high:g}."
            )
        return {"column": column, "from": low, "below": high}
    value = condition["is"]
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise _wrong(value, "words, numbers or null (missing) as values")
    if value == "":
        raise ValueError(
            f"`subgroups` of the rule: an empty word in column {column!r:.40} cannot "
            "be told from a missing cell, which is null."
        )
    if isinstance(value, int | float):
        value = float(value)
        if not math.isfinite(value):
            raise ValueError(
                f"`subgroups` of the rule: {column!r:.40} is {value} for no row of a "
                "file; use bands."
            )
    return {"column": column, "is": value}


def _wrong(value: Any, wanted: str) -> ValueError:
    return ValueError(f"`subgroups` of the rule must hold {wanted}, got {value!r:.40}.")


def value_text(value: Any) -> str:
    """A value as names show it."""
    if not isinstance(value, float):
        return str(value)
    is_exact = value.is_integer() and abs(value) < FIRST_MERGED
    return f"{value:.0f}" if is_exact else f"{value:.15g}"


def _cuts(values: NDArray[Any]) -> str:
    """Three round numbers that part the values."""
    cuts = np.unique(np.quantile(values, (0.25, 0.5, 0.75), method="nearest"))
    return ",".join(value_text(float(cut)) for cut in cuts)
