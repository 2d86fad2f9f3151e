"""`fit`: how each estimator learns from blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import unique_labels

from prudent.adversarial import LowDensityRejector
from prudent.calibration import RiskCalibratedClassifier
from prudent.calibration.ascent import Trial
from prudent.calibration.categorical import Reader, row_keys
from prudent.calibration.classifier import (
    USUAL_FOLDS,
    deciding_folds,
    drawn_seed,
    settings_of,
    watching,
)
from prudent.calibration.learn import learn
from prudent.conformal import ConformalClassifier, ConformalDetector
from prudent.core.classes import check_two_classes
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block as LabelledBlock
from prudent.core.rows import Rows, Split, drawn_key, hold_out
from prudent.dask.blocks import (
    Block,
    DaskRows,
    Mask,
    answers_of,
    block_moments,
    chosen,
    masks,
    sample,
)
from prudent.estimator_tools import MomentFitMixin, is_covariance_estimator
from prudent.estimator_tools.held_out import (
    knowledge,
    refuse_seen_keys,
    remember_blocks,
    table_keys,
    warn_of_copied_rows,
)
from prudent.minimax import MinimaxOutlierDetector
from prudent.rules.rule import Terms

Draws = NDArray[np.uint64]


def fit(
    estimator: Any, X: Any, y: Any = None, *, target: Any = None, client: Any = None
) -> Any:
    """Fit a plain estimator on a dask collection.

    Parameters
    ----------
    estimator : estimator of prudent
        Fitted in place. What it learns from moments takes one pass over the rows,
        what needs the rows themselves takes more: persist what is slow to read.
    X : dask array or data frame of shape (n_samples, n_features)
        Rows; a data frame may hold the labels in the column `target`.
    y : array, dask array or series of shape (n_samples,), default=None
        Labels, in blocks that match those of `X`.
    target : str, default=None
        Column of a data frame that holds the labels.
    client : distributed.Client, default=None
        Where to compute; None takes the open client, else dask's scheduler.

    Returns
    -------
    estimator : the same estimator, fitted
        It holds no dask object: it predicts, pickles and saves without dask.

    Raises
    ------
    TypeError
        If `X` is no dask collection or the estimator cannot learn from blocks.
    ValueError
        As `estimator.fit`.

    Notes
    -----
    Blocks are summed in a binary tree over their position, so the result equals
    `ClassMoments.reduce` over the same blocks bit for bit, on any number of
    workers and after the loss of one. Use it for size: on one machine the moments
    of a block cost about as much as scheduling it.

    `RiskCalibratedClassifier` passes over the rows for every evaluation: its blocks
    are loaded once and stay in the memory of the workers, or without a client of
    this process. A pass is one task per worker; a model travels there and sums come
    back, which are added in the order of the blocks.

    The rows held out are those of `fit`, whose results are the same to rounding. Three
    things differ. The folds of a calibration follow from a hash of each row, so that
    neither order nor blocks matter. `LowDensityRejector` and conformal prediction by
    "split" (the only method on blocks) learn from 100 000 of the other rows at most,
    which the promise does not depend on. Bootstrap radii draw each row a Poisson
    number of times, so that a resample has n rows up to sqrt(n).

    What makes a promise by rows held out keeps 8 bytes a row, and so does
    `RiskCalibratedClassifier`: by them :func:`~prudent.certify` refuses the rows of
    the fit.

    Examples
    --------
    >>> import dask.array as da
    >>> import prudent
    >>> from prudent.dask import fit
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = fit(prudent.MinimaxProbabilityClassifier(), da.from_array(X), y)
    >>> round(model.score(X, y), 3) > 0.95
    True
    """
    is_conformal = isinstance(estimator, ConformalClassifier | ConformalDetector)
    # Only a wrapped estimator may know what to do with columns that are no numbers.
    as_frames = needs_frames(estimator) or (is_conformal and estimator.estimator)
    chunks = DaskRows.from_collection(X, y, target, client, as_frames=bool(as_frames))
    for name in ("feature_names_in_", "_known_rows"):
        vars(estimator).pop(name, None)
    if isinstance(estimator, LowDensityRejector | MinimaxOutlierDetector):
        fit_detector(estimator, chunks)
    elif isinstance(estimator, ConformalDetector):
        fit_conformal(estimator, chunks)
    elif y is None and target is None:
        raise ValueError(f"{estimator} needs labels: give `y` or `target`.")
    elif isinstance(estimator, ConformalClassifier):
        fit_conformal(estimator, chunks)
    elif hasattr(estimator, "fit_moments"):
        estimator.fit_moments(chunks.moments(**estimator._moment_options()))
    elif isinstance(estimator, MomentFitMixin) and estimator._learns_from_blocks:
        _fit_blocks(estimator, chunks)
    elif isinstance(estimator, RiskCalibratedClassifier):
        fit_calibration(estimator, chunks)
    else:
        raise TypeError(
            f"{estimator} cannot learn from blocks of rows; fit it on a sample, or "
            "choose settings that need moments only."
        )
    if chunks.feature_names is not None:
        estimator.feature_names_in_ = chunks.feature_names
    return estimator


def _fit_blocks(estimator: Any, chunks: DaskRows) -> None:
    """Fit a family that asks its rows for sums, which blocks can answer."""
    estimator._validate_params()
    if is_covariance_estimator(estimator.covariance):
        raise TypeError(
            f"covariance={estimator.covariance!r} needs all rows of a class in one "
            "place; use a named rule such as 'oas', or a number."
        )
    moments = chunks.moments()
    estimator._fit_from(moments, rows=chunks.labelled(moments.classes))


# --- fits that rows are held out of: learn from a sample, cut by the other rows -------


def fit_conformal(
    estimator: ConformalClassifier | ConformalDetector, chunks: DaskRows
) -> None:
    """Fit method="split": labels or row counts are the first of three passes."""
    estimator._validate_params()
    if estimator.method not in ("auto", "split"):
        raise TypeError(
            f"method={estimator.method!r} needs all rows in one place; use 'split' on "
            "dask, or fit on a sample."
        )
    heads = chunks.map(_head)
    sizes = [len(keys) for (keys, _), _ in heads]
    if isinstance(estimator, ConformalClassifier):
        pairs = zip(heads, sizes, strict=True)
        estimator.classes_ = _classes(labels for (_, labels), size in pairs if size)
    remember_blocks(estimator, [own for own, _ in heads])
    keys = np.concatenate([keys for (keys, _), _ in heads])
    estimator.n_rows_, estimator.method_ = _row_count(sizes), "split"
    if isinstance(estimator, ConformalClassifier):
        if estimator.subgroups is not None:
            raise TypeError(
                "`subgroups` need all rows in one place: fit on a sample, or leave "
                "them out."
            )
        estimator._learn_subgroups(None, None)
        estimator._choose_method()
        estimator._condition = estimator.condition
    estimator._begin()
    random = _fit_held_out(estimator, chunks, sizes, keys)
    constant = getattr(estimator.estimator_, "constant_features_", ())
    estimator.constant_features_ = np.array(constant, dtype=np.intp)
    smoothed = estimator.ties == "smoothed"
    estimator._key = drawn_key(random, keys) if smoothed else b""


def _head(block: Block) -> tuple[Any, NDArray[Any] | None]:
    """What tells the rows of a block, and their labels."""
    X, y = block
    return table_keys(X), None if y is None else np.unique(y)


def _classes(labels_of_blocks: Iterable[Any]) -> NDArray[Any]:
    """The classes of the labels of all blocks that have rows, two at least."""
    labels = list(labels_of_blocks)
    if not labels:
        raise ValueError("X has no row: every block is empty.")
    unique_labels(*labels)  # refuses words and numbers together
    classes: NDArray[Any] = np.unique(np.concatenate(labels))
    check_two_classes(classes)
    return classes


def fit_detector(
    detector: LowDensityRejector | MinimaxOutlierDetector, chunks: DaskRows
) -> None:
    """Fit in three passes, of which the first checks and counts the rows.

    One pass for moments is enough where no rows are held out.
    """
    detector._validate_params()
    rests_on_moments = False
    if isinstance(detector, MinimaxOutlierDetector):
        rests_on_moments, needed = detector.threshold == "distribution_free", None
        if is_covariance_estimator(detector.covariance):
            needed = f"covariance={detector.covariance!r}"
        if detector.kernel != "linear":
            needed = f"kernel={detector.kernel!r}"
        if needed is not None:
            raise TypeError(
                f"MinimaxOutlierDetector with {needed} needs all rows at once; use "
                "kernel='linear' and a named covariance, or fit it on a sample."
            )
    detector._check_settings()
    if rests_on_moments:
        detector.fit_moments(_moments(detector, chunks))
        return
    of_blocks = chunks.map(_checked_keys)
    remember_blocks(detector, of_blocks)
    of_rows = [keys for keys, _ in of_blocks]
    _fit_held_out(detector, chunks, list(map(len, of_rows)), np.concatenate(of_rows))


def _checked_keys(block: Block) -> Any:
    return table_keys(check_array(block[0], dtype=np.float64, ensure_min_samples=0))


def _row_count(sizes: Sequence[int]) -> int:
    """Rows of all blocks: at least 2, so that one can be held out."""
    n_rows = sum(sizes)
    if n_rows < 2:
        raise ValueError(
            f"found {n_rows} sample(s) in all blocks: at least 2 are needed, one "
            "to learn from and one to hold out."
        )
    return n_rows


def _fit_held_out(
    estimator: Any, chunks: DaskRows, sizes: Sequence[int], keys: Any
) -> np.random.RandomState:
    """Fit to rows that are not held out, and find the rule by the scores of the others.

    Moments are those of all these rows; what needs the rows learns from at most
    `MAX_FIT_ROWS` of them, and a frozen model from none.
    """
    random, n_rows = check_random_state(estimator.random_state), _row_count(sizes)
    name = type(estimator).__name__
    frozen = isinstance(getattr(estimator, "estimator", None), FrozenEstimator)
    estimator._terms = Terms(confidence=estimator.confidence, frozen=frozen)
    estimator.n_features_in_ = chunks.n_features
    if frozen and not isinstance(estimator, LowDensityRejector):
        held_out = np.arange(n_rows)
        fit, model = held_out[:0], estimator.estimator
        first, _ = sample(chunks, sizes, held_out[:1])
        known = [known for known, _ in knowledge(model, first)]
        parts = answers_of(chunks, sizes, held_out, partial(_keys_within, model))
        for own, seen in zip(known, zip(*parts, strict=True), strict=True):
            refuse_seen_keys(name, own, np.concatenate(seen))
        estimator._fit_part(None, None, random)
    else:
        fit, held_out = hold_out(n_rows, estimator.calibration_size, random)
        if isinstance(estimator, MinimaxOutlierDetector):
            estimator._check_learnable(len(fit), n_rows)
            estimator._fit_from(_moments(estimator, chunks, masks(fit, sizes)))
        else:
            estimator._fit_part(*sample(chunks, sizes, fit), random)
    _warn_of_copies(estimator, keys, (fit, held_out))
    parts = answers_of(chunks, sizes, held_out, estimator._scores)
    estimator.n_calibration_ = len(held_out)
    scores = parts[0] if len(parts) == 1 else estimator._merged(parts)
    estimator._adopt(estimator._rule(scores))
    if frozen and isinstance(estimator, ConformalClassifier):
        ask = partial(answers_of, chunks, sizes, held_out, estimator._answered_wrong)
        estimator._warn_of_no_error(lambda: sum(ask()), stacklevel=5)
    return random


def _warn_of_copies(estimator: Any, keys: NDArray[Any], split: Split) -> None:
    remembered = estimator._known_rows
    if remembered is not None and remembered.holds_copies():
        warn_of_copied_rows(type(estimator).__name__, keys, split)


def _keys_within(model: Any, X: Any, y: Any) -> list[Any]:
    """Keys of rows as each part of a model sees them that knows the rows of its fit."""
    return [table_keys(rows)[0] for _, rows in knowledge(model, X)]


def _moments(detector: Any, chunks: DaskRows, of_blocks: Any = None) -> ClassMoments:
    """Moments of all rows, or of some of each block, whatever their labels."""
    moments: ClassMoments = chunks.reduce(
        _block_moments,
        ClassMoments.reduce,
        chunks.n_features,
        detector._moment_options(),
        each=of_blocks or [None] * chunks.n_blocks,
    )
    return moments


def _block_moments(
    block: Block, n_features: int, options: dict[str, Any], mask: Mask | None
) -> ClassMoments:
    X, _ = block
    kept = X if mask is None else X[chosen(mask, len(X))]
    return block_moments((kept, None), n_features, options)


# --- calibration: one pass over the rows for each evaluation of the model -------------


def needs_frames(estimator: Any) -> bool:
    """Whether the types of a data frame's columns matter to the estimator."""
    return isinstance(estimator, RiskCalibratedClassifier) and (
        estimator.family in ("categorical", "mixed")
    )


def fit_calibration(estimator: RiskCalibratedClassifier, chunks: DaskRows) -> None:
    """Calibrate on blocks that are loaded once and stay in memory."""
    _check_settings(estimator)
    watch = watching(estimator, None, None)
    reader, trials, sizes, classes, keys = _read(estimator, chunks)
    estimator.n_features_in_ = chunks.n_features
    estimator._reader = reader
    seed, folds = drawn_seed(estimator), None
    if estimator.stopping == "holdout":
        trials = _held_out_trials(estimator, trials, sizes, keys, seed)
    elif estimator.stopping == "cv":
        folds = _folds(estimator, trials, len(classes), seed, sum(sizes))
    settings, names = settings_of(estimator, len(classes)), classes.tolist()
    learned = learn(
        trials, folds, settings=settings, classes=names, seed=seed, watch=watch
    )
    estimator._keep(learned, classes)


def _check_settings(estimator: RiskCalibratedClassifier) -> None:
    estimator._validate_params()
    if estimator.batch_size is not None:
        raise TypeError(
            f"batch_size={estimator.batch_size} picks rows across blocks; leave it "
            "None on dask, where every step takes all rows."
        )
    if estimator.stopping == "cv" and not isinstance(estimator.cv, Integral | None):
        raise TypeError(
            f"cv={estimator.cv!r} splits rows by their position in one array; on dask "
            "give the number of folds."
        )


def _read(
    estimator: RiskCalibratedClassifier, chunks: DaskRows
) -> tuple[Reader, Rows, list[int], NDArray[Any], NDArray[Any]]:
    """Reader, blocks as trials, their sizes, the classes, and the keys of all rows."""
    worker = RiskCalibratedClassifier(family=estimator.family)
    worker.n_features_in_ = chunks.n_features
    if chunks.feature_names is not None and needs_frames(estimator):
        worker.feature_names_in_ = chunks.feature_names
    blocks = chunks.resident()
    heads = blocks.map(_read_head, worker)
    classes = _classes(head[1] for head in heads if head)
    readers = [head[0] for head in heads if head]
    worker._reader = readers[0].merged(readers[1:])
    of_blocks = [head[3] for head in heads if head]
    remember_blocks(estimator, of_blocks)
    keys = np.concatenate([own for own, _ in of_blocks])
    sizes = [head[2] if head else 0 for head in heads]
    trials = blocks.transform(_trial, worker, classes)
    return worker._reader, trials, sizes, classes, keys


def _held_out_trials(
    estimator: RiskCalibratedClassifier,
    trials: Rows,
    sizes: Sequence[int],
    keys: NDArray[Any],
    seed: int,
) -> Rows:
    """Trials with rows held out, and the levels that the others know.

    `keys` (n,) tell equal rows.
    """
    random = np.random.RandomState(seed)
    fit, held_out = hold_out(sum(sizes), estimator.validation_fraction, random)
    _warn_of_copies(estimator, keys, (fit, held_out))
    trials = trials.transform(_held_apart, each=masks(held_out, sizes))
    levels = trials.map(Trial.seen_levels, estimator._reader.n_levels)
    seen = [np.any(parts, axis=0) for parts in zip(*levels, strict=True)]
    estimator._reader = estimator._reader.restricted(seen)
    return trials.transform(Trial.recoded, seen) if seen else trials


def _folds(
    estimator: RiskCalibratedClassifier,
    trials: Rows,
    n_classes: int,
    seed: int,
    n_rows: int,
) -> Iterator[Rows] | None:
    n_folds = USUAL_FOLDS if estimator.cv is None else estimator.cv
    drawn = trials.transform(with_draws, seed)
    deal = dealt(drawn.map(least_draws, n_classes, n_folds), n_folds)
    if deal[0] < 2:
        return None
    deciding = range(deal[0])[: deciding_folds(estimator.cv, n_rows)]
    return (drawn.transform(_fold, deal, k) for k in deciding)


# What happens to one block.


def _read_head(
    chunk: Block, worker: RiskCalibratedClassifier
) -> tuple[Reader, NDArray[Any], int, Any] | None:
    """What the reading of all blocks needs to know about one that has rows."""
    X, y = chunk
    if y is None or len(X) == 0:
        return None
    worker = copy(worker)
    _, labels, *_ = worker._read_training(X, y, None)
    return worker._reader, np.unique(labels), len(labels), table_keys(X)


def _trial(
    chunk: Block, worker: RiskCalibratedClassifier, classes: NDArray[Any]
) -> Trial:
    X, y = chunk
    if y is None or len(X) == 0:
        return Trial(None)
    rows, labels, *_ = worker._read_training(X, y, None, first=False)
    return Trial(LabelledBlock(rows, np.searchsorted(classes, labels)))


def _held_apart(trial: Trial, held_out: Mask) -> Trial:
    n_rows = 0 if trial.fitted is None else len(trial.fitted)
    return trial.apart(chosen(held_out, n_rows))


def _fold(drawn: tuple[Trial, Draws], deal: Deal, k: int) -> Trial:
    trial, draws = drawn
    return trial.apart(fold_of(draws, deal) == k)


# --- folds of rows, whatever their blocks and order: by a hash of class and values ----


#: How many folds there are, draws (sorted) with a fold of their own, and these folds.
Deal = tuple[int, Draws, NDArray[np.intp]]


def dealt(least: Sequence[Sequence[Draws]], n_folds: int) -> Deal:
    """Rule that gives every draw a fold, and every class rows in all folds.

    A draw goes to the fold of its remainder; the `least_draws` of each class, which
    are given of every block, are dealt in order, so that a class with few distinct
    rows is spread as well. There are as many folds as the class with the fewest
    distinct rows has of those, `n_folds` at most.
    """
    by_class = [
        np.unique(np.concatenate(blocks))[:n_folds]
        for blocks in zip(*least, strict=True)
    ]
    n_folds = min(n_folds, *(len(draws) for draws in by_class))
    draws = np.concatenate([draws[:n_folds] for draws in by_class])
    folds = np.tile(np.arange(n_folds), len(by_class))
    order = np.argsort(draws)
    return n_folds, draws[order], folds[order]


def fold_of(draws: Draws, deal: Deal) -> NDArray[np.intp]:
    """Fold of each draw, 0..n_folds - 1."""
    n_folds, known, folds = deal
    place = np.searchsorted(known, draws).clip(max=len(known) - 1)
    remainder = (draws % np.uint64(n_folds)).astype(np.intp)
    return np.where(known[place] == draws, folds[place], remainder)


def with_draws(trial: Trial, seed: int) -> tuple[Trial, Draws]:
    """Rows with a number in 0..2^64 - 1 each: a keyed hash of class and values."""
    rows = trial.fitted
    if rows is None:
        return trial, np.zeros(0, dtype=np.uint64)
    # Adding 0 makes -0.0 and 0.0, which are equal, the same bytes.
    keys = (
        np.column_stack([rows.codes, row_keys(rows.X)]).astype("<f8", order="C") + 0.0
    )
    data, width = keys.tobytes(), keys.itemsize * keys.shape[1]
    key = seed.to_bytes(8, "little")
    digests = [
        blake2b(data[i : i + width], digest_size=8, key=key).digest()
        for i in range(0, len(data), width)
    ]
    return trial, np.frombuffer(b"".join(digests), dtype="<u8")


def least_draws(drawn: tuple[Trial, Draws], n_classes: int, n: int) -> list[Draws]:
    """The least `n` distinct draws of each class."""
    trial, draws = drawn
    codes = draws if trial.fitted is None else trial.fitted.codes
    return [np.unique(draws[codes == k])[:n] for k in range(n_classes)]
