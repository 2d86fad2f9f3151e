"""`DriftMonitor`: new rows against reference rows, by their ranks and without labels.

While new rows and the m reference rows are exchangeable, the position (0..m) of a new
value among the reference values follows an urn: it falls into group g of positions
with probability (a_g + N_g) / (m + 1 + n), a_g the positions of the group and N_g the
earlier rows there. A tilt w bets w_g (m + 1 + n) / sum_h (a_h + N_h) w_h, whose mean
is 1. Ties are broken by coins that every row tosses once, reference rows included, so
that they are exact: no two rows are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from prudent._compat import validate_data
from prudent.core.binomial import check_fraction
from prudent.core.rows import drawn_key
from prudent.core.types import FloatArray, IntArray
from prudent.monitoring.kernels import positions_among, reserve, urn_rows
from prudent.monitoring.state import (
    FORMAT,
    Watcher,
    check_counts,
    check_format,
    number,
)
from prudent.rules.scores import EXACT, Rounding

if TYPE_CHECKING:
    import pyarrow

FEWEST_ROWS = 3
SCORE = "score"
# Arrays of the urns that a state holds.
SUMS = ("stakes", "totals", "sizes", "place_sums")
SHARES = (0.01, 0.03, 0.0625, 0.125, 0.25, 0.375, 0.5)
SHIFTS = (-1.0, -0.3, 0.3, 1.0)
SPREADS = (2.0, 0.5)
TAIL = 5.0
#: A stake is placed as if the alarming rate were one row in so many.
ROWS_PER_UNIT = 20.0


class _Columns(BaseEstimator):
    """What `validate_data` remembers of the columns; it is named in its messages."""


_Columns.__name__ = "DriftMonitor"


class DriftMonitor(Watcher):
    """Watch whether new rows still look like reference rows, without labels.

    Every column is ranked among the reference rows. While new and reference rows are
    exchangeable, the alarm is raised with probability at most `level` over the whole
    life of the monitor, for any law of the rows: proved for one column, a detector's
    score among them, and for independent columns (see Notes for others).

    Parameters
    ----------
    level : float, default=0.05
        Probability of a wrong alarm, in (0, 1).
    random_state : int, RandomState or None, default=None
        For the coins that break ties.

    Attributes
    ----------
    level, random_state
        As given.
    n_ : int
        New rows seen.
    e_value, peak_e_value : float
        Evidence of a change now, and the largest so far; the alarm is a peak of
        1 / `level`.
    alarm_at_ : int or None
        Rows seen when the alarm was raised.
    verdict : {"drift", "none seen"}
        "drift" for ever once the alarm was raised.

    Raises
    ------
    ValueError
        If `level` lies outside (0, 1).

    See Also
    --------
    PromiseMonitor : With labels.

    Notes
    -----
    The evidence of several columns is averaged. However they depend on each other, its
    mean after any number of rows that is fixed in advance is at most 1, so that one
    look is wrong with probability at most `level`. That no look ever is, has no proof
    where columns depend on each other, because each column has a past of its own; 300
    streams of 8 dependent columns and 10 000 rows raised no more alarms than `level`
    allows. `broken_promises` with one monitor a column holds for any dependence.

    What it looks for: shifts, spreads and outliers of a column, or of a detector's
    score. What it does not see: other changes of a column, a change of the labels
    given the features, of the dependence between columns (watch a detector's score for
    that), changes slower than it learns them (rows before the alarm become reference),
    and dependence in time that leaves the ranks alone.

    Scores of rows that a model was trained on are no reference; their raw columns are.
    For a detector, `from_detector` takes its calibration scores.

    While new rows are like the reference, the position of a new value among m
    reference values follows an urn whatever their law. The monitor takes O(m d) memory
    and O(d log m) time per row.

    References
    ----------
    Vovk, Nouretdinov and Gammerman (2003), Testing exchangeability on-line, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import DriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(random_state=0).fit(rng.normal(size=(500, 2)))
    >>> monitor.update(rng.normal(size=(1000, 2))).verdict
    'none seen'
    >>> monitor.update(rng.normal(size=(300, 2)) + [0, 1]).verdict
    'drift'
    >>> monitor.frame()["column"][0].as_py()
    '1'
    """

    def __init__(self, *, level: float = 0.05, random_state: Any = None) -> None:
        check_fraction("level", level)
        self.level = float(level)
        self.random_state = random_state
        self._detector: Any = None
        self._watches_scores = False
        self._rounding = EXACT

    def fit(self, reference: Any) -> Self:
        """Take the rows to compare with.

        Parameters
        ----------
        reference : array-like of shape (m, d) or (m,)
            At least 3 rows; the columns of a data frame keep their names.

        Returns
        -------
        self : DriftMonitor

        Raises
        ------
        ValueError
            If there are fewer than 3 rows, or cells that are not finite numbers.
        """
        columns = _Columns()
        X = validate_data(columns, _two_dimensional(reference), dtype=np.float64)
        if len(X) < FEWEST_ROWS:
            raise ValueError(
                f"DriftMonitor: {len(X)} reference rows; give at least {FEWEST_ROWS}."
            )
        random = check_random_state(self.random_state)
        # Of the seed alone the coins would fall alike over all references.
        words = np.frombuffer(drawn_key(random, X), dtype=np.uint32)[:4]
        self._seed = [int(word) for word in words]
        self._columns = columns
        self._start(np.sort(X, axis=0))
        return self

    @classmethod
    def from_detector(
        cls, detector: Any, *, level: float = 0.05, random_state: Any = None
    ) -> Self:
        """Watch the scores of a detector; the reference is its calibration scores.

        Parameters
        ----------
        detector : fitted outlier detector
            With `calibration_scores_` and `calibrated_scores`. `update` takes rows.
        level, random_state
            As above.

        Returns
        -------
        DriftMonitor

        Raises
        ------
        TypeError
            If the detector keeps no calibration scores.
        """
        scores = getattr(detector, "calibration_scores_", None)
        if scores is None:
            raise TypeError(
                f"{type(detector).__name__} keeps no calibration scores. Use a "
                "detector that is calibrated on held-out rows, or `fit` on reference "
                "rows."
            )
        # Equal rows may differ in the last digits of their scores, by how many rows
        # the detector is asked at once: the coins are for them too.
        calibration = getattr(getattr(detector, "rule_", None), "calibration", None)
        kept = getattr(calibration, "scores", None)
        rounding = Rounding(getattr(kept, "tolerance", 0.0))
        scores = rounding.at_levels(scores, rounding.levels(np.sort(scores)))
        monitor = cls(level=level, random_state=random_state).fit(scores)
        monitor._detector, monitor._watches_scores = detector, True
        monitor._rounding = rounding
        return monitor

    def update(self, X: Any) -> Self:
        """Look at new rows, in order.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows with the columns of the reference; (n,) for one column.

        Returns
        -------
        self : DriftMonitor

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If the columns differ, or cells are not finite numbers. Nothing is counted
            then.
        """
        urns = self._fitted()
        values = X if self._detector is None else self._detector.calibrated_scores(X)
        if self._columns.n_features_in_ == 1:
            values = _two_dimensional(values)
        values = validate_data(
            self._columns,
            values,
            reset=False,
            dtype=np.float64,
            ensure_min_samples=0,
        )
        if self._rounding.tolerance:
            levels = np.unique(urns.reference)
            values = self._rounding.at_levels(values[:, 0], levels)[:, None]
        urns.rows(values, self._coins.random(values.shape), threshold=1 / self.level)
        return self

    @property
    def verdict(self) -> Literal["drift", "none seen"]:
        """Whether the alarm was ever raised."""
        return "none seen" if self.alarm_at_ is None else "drift"

    def frame(self) -> pyarrow.Table:
        """Return the columns, the most suspicious first.

        Returns
        -------
        pyarrow.Table
            column, e_value (of the column as if watched alone: an indication, not a
            second promise), mean position (share of reference rows below, 1/2 without
            drift).
        """
        import pyarrow

        urns = self._fitted()
        e_values, places = urns.column_e_values(), urns.mean_places()
        order = np.argsort(-e_values, kind="stable")
        names = self._names()
        return pyarrow.table(
            {
                "column": [names[j] for j in order],
                "e_value": e_values[order],
                "mean position": places[order],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """State in JSON types: `from_dict` goes on bit for bit."""
        urns = self._fitted()
        rows, _, e_value, peak, alarm = urns.counts.tolist()
        coin = self._coins.bit_generator.state["state"]
        names = getattr(self._columns, "feature_names_in_", None)
        return {
            "format": FORMAT,
            "level": self.level,
            "columns": None if names is None else names.tolist(),
            "scores": self._watches_scores,
            "tolerance": self._rounding.tolerance,
            "n": int(rows),
            "e_value": number(e_value),
            "peak_e_value": number(peak),
            "alarm_at": int(alarm) or None,
            "reference": urns.reference.T.tolist(),
            **{name: getattr(urns, name).tolist() for name in SUMS},
            "seed": self._seed,
            "coins": {name: str(value) for name, value in coin.items()},
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], detector: Any = None) -> Self:
        """Return the monitor that `to_dict` described.

        Parameters
        ----------
        state : dict
        detector : fitted outlier detector, default=None
            That of `from_detector`; without it, `update` takes its scores.

        Raises
        ------
        ValueError
            If the state was written by a newer prudent, or is none of a monitor.
        """
        check_format(state)
        monitor = cls(level=state["level"])
        reference = np.array(state["reference"], dtype=np.float64).T
        monitor._columns = _Columns()
        monitor._columns.n_features_in_ = reference.shape[1]
        if state["columns"] is not None:
            names = np.array(state["columns"], dtype=object)
            monitor._columns.feature_names_in_ = names
        monitor._watches_scores = state["scores"]
        monitor._rounding = Rounding(state["tolerance"])
        monitor._detector = detector if state["scores"] else None
        monitor._seed = state["seed"]
        monitor._start(np.ascontiguousarray(reference))
        # Written into arrays of the right shapes, which compiled loops rely on.
        urns = monitor._urns
        for name in SUMS:
            getattr(urns, name)[:] = state[name]
        urns.counts[:] = (
            state["n"],
            len(reference) + 1.0 + state["n"],
            float(state["e_value"]),
            float(state["peak_e_value"]),
            state["alarm_at"] or 0,
        )
        check_counts(*(getattr(urns, name) for name in (*SUMS, "counts")))
        monitor._coins.bit_generator.state = {
            **monitor._coins.bit_generator.state,
            "state": {name: int(value) for name, value in state["coins"].items()},
        }
        return monitor

    def __repr__(self) -> str:
        if not hasattr(self, "_urns"):
            return f"DriftMonitor(level={self.level:g})"
        return (
            f"DriftMonitor(level={self.level:g}, columns={len(self._names())}, "
            f"n={self.n_}, verdict={self.verdict!r})"
        )

    def __str__(self) -> str:
        m, d = self._fitted().reference.shape
        what = "scores" if self._watches_scores else f"{d} column(s)"
        since = "" if self.alarm_at_ is None else f" since row {self.alarm_at_}"
        # What is proved: see Notes of the class.
        proved = "" if d == 1 else ", if the columns are independent of each other"
        return (
            f"Drift of {what} against {m} reference rows: {self.verdict}{since} in "
            f"{self.n_} rows (e-value {self.e_value:.3g}); rows exchangeable with the "
            f"reference are ever called drifted with probability at most "
            f"{self.level:g}{proved}."
        )

    def _start(self, reference: FloatArray) -> None:
        """Begin with sorted columns; the seed gives each reference row its coins."""
        self._coins = np.random.Generator(np.random.PCG64(self._seed))
        coins = self._coins.random(reference.shape)
        self._urns = Urns(reference, coins)

    def _fitted(self) -> Urns:
        if not hasattr(self, "_urns"):
            raise NotFittedError(
                "This DriftMonitor has no reference yet: call `fit` first."
            )
        return self._urns

    def _counts(self) -> FloatArray:
        return self._fitted().counts

    def _names(self) -> list[str]:
        if self._watches_scores:
            return [SCORE]
        names = getattr(self._columns, "feature_names_in_", None)
        if names is None:
            return [str(j) for j in range(self._columns.n_features_in_)]
        return [str(name) for name in names]


def _two_dimensional(X: Any) -> Any:
    """One column from a list of values."""
    return np.reshape(X, (-1, 1)) if np.ndim(X) == 1 else X


# --- ranks among the reference rows --------------------------------------------------


def group_cuts(n_reference: int) -> IntArray:
    """Cuts of the m + 1 positions into at most 14 groups, finer towards the ends."""
    n_positions = n_reference + 1
    lower = np.rint(n_positions * np.array(SHARES)).astype(np.intp)
    return np.unique(
        np.concatenate([[0], lower, n_positions - lower[:-1], [n_positions]])
    )


def tilts(cuts: IntArray) -> FloatArray:
    """Weights (8, G) of the groups: shifts, spreads, and each end.

    Those of a shift d and of a spread s are the ratios of a normal density moved by d,
    or of standard deviation s, to the standard one at the middle of the group.
    """
    z = ndtri((cuts[:-1] + cuts[1:]) / (2 * cuts[-1]))
    shifted = [np.exp(d * z - d**2 / 2) for d in SHIFTS]
    spread = [np.exp(z**2 / 2 * (1 - 1 / s**2)) / s for s in SPREADS]
    first, last = np.ones_like(z), np.ones_like(z)
    first[0] = last[-1] = TAIL
    return np.stack([*shifted, *spread, first, last])


class Urns:
    """One urn a column and the stakes against it; changed in place.

    It holds the reference rows (m, d) at first, `coins` (m, d) being theirs.

    `reference`, `coins` (m, d): values of the reference rows, each column sorted by
    (value, coin); `stakes`, `totals` (d, 8): stakes, and the sums over the groups of
    size times tilt; `sizes` (d, G): a_g + N_g; `place_sums` (d,): sums of the
    positions of new rows; `counts` (5,): rows, m + 1 + rows, e-value, its peak, rows
    at the first alarm (0: none).
    """

    def __init__(self, reference: FloatArray, coins: FloatArray) -> None:
        m, d = reference.shape
        order = np.lexsort((coins, reference), axis=0)
        self.reference = np.take_along_axis(reference, order, axis=0)
        self.coins = np.take_along_axis(coins, order, axis=0)
        self.cuts = group_cuts(m)
        self.tilts = tilts(self.cuts)
        self.sizes = np.tile(np.diff(self.cuts).astype(np.float64), (d, 1))
        self.totals = self.sizes @ self.tilts.T
        self.stakes = np.zeros_like(self.totals)
        self.place_sums = np.zeros(d, dtype=np.intp)
        self.counts = np.array([0.0, m + 1.0, 1.0, 1.0, 0.0])

    def rows(self, values: FloatArray, coins: FloatArray, *, threshold: float) -> None:
        """Bet on new rows (n, d) in order; `coins` (n, d) in [0, 1) break ties."""
        positions = np.empty(values.shape, dtype=np.intp)
        for j in range(values.shape[1]):
            positions_among(self.reference, self.coins, values, coins, j, positions)
        urn_rows(
            np.searchsorted(self.cuts, positions, side="right") - 1,
            self.stakes,
            self.tilts,
            self.sizes,
            self.totals,
            self.counts,
            ROWS_PER_UNIT,
            threshold,
        )
        self.place_sums += positions.sum(axis=0)

    def column_e_values(self) -> FloatArray:
        """E-value of each column as if it were watched alone."""
        left = reserve(self.counts[0] / ROWS_PER_UNIT)
        return np.asarray(left + len(self.stakes) * self.stakes.sum(axis=1))

    def mean_places(self) -> FloatArray:
        """Mean position of the new rows, as a share: 1/2 without drift."""
        positions = self.counts[1] - self.counts[0]
        mean = self.place_sums / max(self.counts[0], 1.0)
        return np.asarray((mean + 0.5) / positions)
