"""What an evaluation found: frozen values that tables, reports and JSON read.

Intervals are exact, at 95 %; figures of methods are out of fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from prudent.core.checks import PromiseCheck

Kept = Literal[
    "broken",
    "nothing answered",
    "share not proved",
    "no better than always the most frequent class",
    "kept",
    "consistent",
]
Matrix = tuple[tuple[float, ...], ...]
Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Sets:
    """Set-valued predictions of the out-of-fold rows."""

    mean_size: float
    undecided: float  # share of rows whose set does not hold exactly one class
    coverage: float  # share of rows whose set holds the true class
    size_counts: tuple[float, ...]  # rows with a set of 0, 1, ..., K classes
    class_mean_size: tuple[float, ...]
    class_coverage: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionMap:
    """Decisions of a method fitted in the plane of two discriminant axes."""

    x: Any  # grid along the first axis, in pooled standard deviations
    y: Any
    sets: Any  # bool (n_grid, n_grid, n_classes), rows along `y`
    predicted: Any  # (n_grid, n_grid): column of the predicted class

    @property
    def undecided(self) -> float:
        """Share of the plane where the set does not hold exactly one class."""
        return float((self.sets.sum(axis=2) != 1).mean())

    @property
    def class_shares(self) -> tuple[float, ...]:
        """Share of the plane given to each class alone."""
        alone = self.sets & (self.sets.sum(axis=2, keepdims=True) == 1)
        return tuple(alone.mean(axis=(0, 1)).tolist())


# One item measured: of a method on a fold, or on all of them where `repeat` and `fold`
# are missing; of the method as it is, or of the one that makes the promise asked for.
SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("asked", pa.bool_()),  # by the method that makes the promise asked for
        ("repeat", pa.int64()),
        ("fold", pa.int64()),
        ("quantity", pa.string()),
        ("scope", pa.string()),  # the class that it is about; missing: all rows
        ("subgroup", pa.string()),  # part of the population; missing: all of it
        ("at", pa.float64()),  # size of a set, number of a class, level, shift
        ("count", pa.float64()),
        ("n", pa.float64()),
        ("promised", pa.float64()),
        ("sense", pa.string()),
        ("confidence", pa.float64()),
        ("average_over", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("p_broken", pa.float64()),
        ("p_kept", pa.float64()),
        ("verdict", pa.string()),
    ]
)
# Quantities whose `at` is a level that one may ask for, or a shift in pooled standard
# deviations; what risk-based calibration changed on the rows fitted on.
ALARMS, MOVED = "false alarms at", "wrong when moved by"
DECIDED_AT, WRONG_AT = "decided at", "wrong when decided at"
CALIBRATION = (
    "error before calibration",
    "error after calibration",
    "chosen iteration",
)
# Items that are no figures of the rows, and differ from run to run.
TIMES = ("fit seconds", "predict seconds")


@dataclass(frozen=True, kw_only=True)
class Data:
    """The table that was evaluated on."""

    name: str  # as the user calls it
    sha256: str  # of the file, or of the arrays when there is no file
    n_rows: int
    features: tuple[str, ...]
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    # Rows of each class in every subgroup that the promise is about, by its name.
    subgroup_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    constant_features: tuple[str, ...] = ()  # which every method ignores
    notes: tuple[str, ...] = ()  # what was done to it, what a reader should know
    # Whether its rows change with time, where folds go forward; else empty.
    order: str = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the evaluation was run."""

    methods: tuple[str, ...]  # names, in the order they ran
    baselines: tuple[str, ...]
    promise: str = "none"  # as it was asked for
    confidence: float = 0.95  # over training samples, where the promise has one
    n_folds: int
    n_repeats: int  # times that the folds are drawn anew
    random_state: int
    n_jobs: int
    time_limit: float | None  # seconds for each method
    sample: int | None  # most rows to fit a method that needs rows
    command: str  # what to type to get this again
    next_command: str | None = None  # and to use the method that came first
    call: str | None = None  # that does the same in Python, where no command is known
    own: tuple[str, ...] = ()  # methods that were given, which no command can name
    date: str | None = None  # None in output that must repeat byte for byte
    peak_memory: int | None = None  # bytes, where known


@dataclass(frozen=True, kw_only=True)
class ClassRate:
    """A rate of one class, or of one part of the population."""

    label: str
    rate: float


@dataclass(frozen=True, kw_only=True)
class ColumnRange:
    """Values of a column with which rows are handed over more often than others.

    Numbers from `low` to `high`, None where there is no end; or a word of a text
    column; or, where all three are None, no value: the cell is missing.
    """

    column: str
    low: float | None = None
    high: float | None = None
    word: str | None = None
    n: int  # rows tested that have such a value
    handed_over: float  # share of these
    elsewhere: float  # share of the others
    p_value: float  # corrected for all values of all columns that were looked at


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Rows that a table has to hold for the promise asked for."""

    rows: int
    label: str | None  # of this class; None: of any
    held_out: int  # in each training part, or there at all where none are held out
    to_fit: int  # rows that one fit on the whole table needs
    there: int | None = None  # of these in the table, where rows are counted
    of_table: int | None = None  # rows of all classes, at the shares of this table
    unit: str = "rows"  # what is counted: groups, where rows belong together
    subgroup: str | None = None  # of this part of the population; None: of any


@dataclass(frozen=True, kw_only=True)
class RequestedPromise:
    """The promise asked for, as the wrapped method makes and keeps it."""

    kept: Kept = "nothing answered"  # one verdict for all items
    useful: bool  # whether anything is answered, or any class ruled out
    has_share: bool = True  # whether a share that was asked for is promised in a fold
    is_inside: bool  # whether all measured rates lie inside the limits asked for
    needs: Needs | None = None  # if it could not be made for all classes
    items: tuple[PromiseCheck, ...] = ()  # for each class, or for all rows
    decided: float = 0.0  # share of rows with one answer
    wrong_when_decided: float | None = None  # share of these
    folds_decided: int = 0  # in which any row got one answer
    n_folds: int = 0  # that were held against the promise
    worst_covered: ClassRate | None = None  # whose sets hold the truth least often
    # Of promises by subgroup: the class and subgroup in which they fare worst.
    worst_subgroup: ClassRate | None = None
    others_error: float | None = None  # of the classes that nothing was asked for
    others_interval: Interval = (0.0, 1.0)
    sets: Sets | None = None  # of the wrapped method

    @property
    def net(self) -> float:
        """Share of rows decided rightly, less the share decided wrongly."""
        return self.decided * (1 - 2 * (self.wrong_when_decided or 0.0))


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a method has no figures: what commands decide by, and one sentence."""

    kind: Literal["time limit", "interrupted", "memory", "error"]
    text: str


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One line of a comparison.

    Errors, costs and times are of the plain method, fitted on whole training parts; the
    fit of one that chooses counts the choice and the promise, too.
    `no_difference_from` names the first row whose promise is not broken, where an exact
    paired test on the rows (Holm over methods) shows no difference from it;
    `less_useful_than` names it where the test shows one.
    """

    method: str
    is_baseline: bool = False
    chooses: bool = False  # among the others, inside its training part
    failure: Failure | None = None
    error: float | None = None
    error_interval: Interval = (0.0, 1.0)
    worst_class: ClassRate | None = None  # of the largest error
    cost: float | None = None  # mean over the answers, if costs were given
    decided: float | None = None  # of the wrapped method, if a promise was asked for
    wrong_when_decided: float | None = None
    asked: RequestedPromise | None = None
    own: tuple[PromiseCheck, ...] = ()  # what the method promises by itself
    own_kept: Kept | None = None
    no_difference_from: str | None = None
    less_useful_than: str | None = None
    # Where rows are handed over more often, the most striking first; some of the rows
    # handed over: their positions in the table, and their classes.
    ranges: tuple[ColumnRange, ...] = ()
    examples: tuple[tuple[int, str], ...] = ()
    sets: Sets | None = None  # that the plain method gives by itself
    why_undecided: str | None = None  # and why they may hold every class
    confusion: Matrix = ()  # rows by true (outer) and predicted class
    fit_seconds: float | None = None  # median over the folds
    predict_seconds: float | None = None  # of one row
    notes: tuple[str, ...] = ()  # what was done differently for this method
    warnings: tuple[str, ...] = ()
    regions: RegionMap | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def promises(self) -> tuple[PromiseCheck, ...]:
        """Promises asked for, then those made without asking."""
        return (*(() if self.asked is None else self.asked.items), *self.own)

    @property
    def worst_own(self) -> PromiseCheck | None:
        """The weakest own promise: what it says holds for the other classes, too."""
        return max(self.own, key=lambda promise: promise.allowed, default=None)


@dataclass(frozen=True, kw_only=True)
class FoldScore:
    """One method on one fold; numbers of repeats and folds count from 1."""

    method: str
    repeat: int
    fold: int
    n_train: int
    n_test: int
    error: float
    set_size: float | None  # mean
    coverage: float | None
    fit_seconds: float | None
    predict_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """What each promise costs: rows decided at every level one may ask for.

    Levels are promised coverages, errors of the answered rows, or errors of the classes
    named (the least of them); for these, rows answered rightly count, and `decided`
    is about the others.
    """

    kind: Literal["coverage", "error", "missed"]
    levels: tuple[float, ...]  # rising
    promises: tuple[str, ...]  # the promise of each level, as it is asked for
    asked: float
    about_rows: bool  # rather than about some classes
    least: float = 0.0  # share of rows to be answered that was asked for, too
    # By method: shares of rows, of the folds in which any row is decided, of the rows
    # decided that are wrong, and of the rows of each class (None where there are none).
    decided: Mapping[str, tuple[float, ...]]
    in_folds: Mapping[str, tuple[float, ...]]
    wrong: Mapping[str, tuple[float | None, ...]]
    by_class: Mapping[str, tuple[tuple[float | None, ...], ...]]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Methods side by side: errors, promises and whether they were kept."""

    data: Data
    settings: Settings
    rows: tuple[MethodRow, ...]  # by usefulness; those that failed last
    folds: tuple[FoldScore, ...]
    versions: Mapping[str, str]
    frontier: Frontier | None = None  # None where no promise was asked for
    # All that was counted, one item a row, in the columns of `SCHEMA`.
    measured: pa.Table = field(
        default_factory=SCHEMA.empty_table, repr=False, compare=False
    )

    @property
    def ran(self) -> list[MethodRow]:
        """Rows of the methods that finished."""
        return [row for row in self.rows if row.error is not None]
