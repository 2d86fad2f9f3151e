"""How useful a classifier would be under a promise, judged by rows to learn from.

A classifier may be chosen among several by anything that its training part says: given
that part, the promise of the rows held out is proved for whatever was chosen there,
and needs no correction. So each candidate scores the training rows out of fold, and
these scores tell what m rows held out later would let it do: the share of rows that it
answers, the size of its sets, or the error of the classes without a limit.

Every function returns two numbers, of which larger is better; the second decides where
the first is equal. It takes what a candidate says of n training rows out of fold:
`sureness` (n,) says how sure the answer to each is and `wrong` (n,) whether that answer
is wrong; `scores` (n, n_classes) are the plausibility of each class, `codes` (n,) the
places of the labels. `n_held_out` is the number m of rows that will be held out;
`confidence` is that of all that is promised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from prudent.core.binomial import high_probability_rank
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.make import SelectiveError
from prudent.rules.rule import Terms
from prudent.rules.scores import ROUNDING, AnswerScores, CalibrationScores

#: Draws of held-out rows, over which the share of rows answered is averaged.
DRAWS = 40
#: Differences of usefulness below this are rounding.
DIGITS = 9
DIGIT = 10.0**-DIGITS


#: Two numbers, larger is better; the second decides where the first is equal.
Usefulness = tuple[float, float]


def ranking(values: Sequence[Usefulness]) -> IntArray:
    """Positions of the candidates, the most useful first.

    Those equal to 1e-9 in both numbers stay in the order given.
    """
    first, second = np.round(np.reshape(values, (-1, 2)), DIGITS).T
    return np.lexsort((-second, -first))


def answers_usefulness(
    sureness: FloatArray,
    wrong: BoolArray,
    n_held_out: int,
    *,
    rate: float,
    confidence: float,
) -> Usefulness:
    """Share of rows that a promise of few wrong answers lets a classifier answer.

    The mean, over 40 draws with replacement of m of the rows, of the share of all n
    rows above the threshold that the drawn rows certify for the error rate `rate`; and
    minus the mean over k of the error rate of the k surest rows.

    Examples
    --------
    >>> import numpy as np
    >>> sure = 1 - np.arange(300) / 600
    >>> answers_usefulness(sure, sure < 0.6, 100, rate=0.05, confidence=0.95)[0]
    0.8109166666666667
    """
    n = len(sureness)
    terms = Terms(confidence=confidence, frozen=True)
    shares = []
    for drawn in np.random.RandomState(0).randint(0, n, (DRAWS, n_held_out)):
        rows = AnswerScores.from_answers(sureness[drawn], wrong[drawn])
        (threshold,) = SelectiveError(scores=rows, terms=terms).rule(rate).thresholds
        shares.append(np.count_nonzero(sureness > threshold) / n)
    errors = AnswerScores.from_answers(sureness, wrong).wrong[1:] / np.arange(1, n + 1)
    return float(np.mean(shares)), -float(errors.mean())


def surest_usefulness(
    sureness: FloatArray, wrong: BoolArray, *, share: float
) -> Usefulness:
    """How few of the answers to the surest share of the rows, in (0, 1], are wrong.

    Minus the error rate of the ceil(share n) surest rows; and minus that of all.
    """
    rows = AnswerScores.from_answers(sureness, wrong)
    k = max(1, math.ceil(share * rows.n_rows - DIGIT))
    return -float(rows.wrong[k] / k), -float(wrong.mean())


def sets_usefulness(
    scores: FloatArray,
    codes: IntArray,
    *,
    rates: float | Sequence[float],
    by_class: bool,
    confidence: float | None,
) -> Usefulness:
    """How small the sets are that miss the label of a row at a promised rate.

    Minus the mean size of the sets of these rows, cut as if the same rows calibrated
    and never empty; and minus the share of rows whose most plausible class is wrong.
    The miss rate is promised over all rows or `by_class`, where `rates` may be that of
    each class, with `confidence` each or on average (None).
    """
    own = np.take_along_axis(scores, codes[:, None], axis=1)[:, 0]
    n_classes = scores.shape[1]
    each = np.broadcast_to(rates, n_classes)
    calibration = CalibrationScores.from_rows(
        own,
        codes if by_class else 0,
        range(n_classes) if by_class else (None,),
        ROUNDING,
    )
    terms = Terms(confidence=confidence, frozen=True)
    cuts = [
        calibration.threshold(c, terms.rank(n, each[c]))
        for c, n in enumerate(calibration.sizes.tolist())
    ]
    members = scores >= np.array(cuts)
    members[np.arange(len(codes)), scores.argmax(axis=1)] = True
    sizes = members.sum(axis=1)
    return -float(sizes.mean()), -_error(scores, codes)


def class_errors_usefulness(
    scores: FloatArray,
    codes: IntArray,
    n_held_out: int,
    *,
    limits: Mapping[int, float],
    confidence: float,
) -> Usefulness:
    """How few rows of the other classes are lost to limits of the error of some.

    `limits` are the largest error of each class limited, the most important first; not
    of all classes. Of a class of n_c rows m_c = n_c m / n will be held out.

    Minus the share of rows of the other classes that get a wrong label, where a class
    c is predicted from its score of rank max(1, floor(k (n_c + 1) / (m_c + 1))) on, k
    the rank that m_c held-out rows would take; and minus the share of rows whose
    best-scored class is wrong.
    """
    n = len(codes)
    each = confidence ** (1 / len(limits))
    labels = np.full(n, -1)
    for c, limit in limits.items():
        own = np.sort(scores[codes == c, c])
        n_own = len(own)
        expected = round(n_own * n_held_out / n)
        rank = high_probability_rank(expected, limit, each) if expected else 0
        rank = max(1, math.floor(rank * (n_own + 1) / (expected + 1)))
        cut = own[min(rank, n_own) - 1] if n_own else -np.inf
        labels[(labels < 0) & (scores[:, c] >= cut)] = c
    others = [c for c in range(scores.shape[1]) if c not in limits]
    rest = np.take(others, scores[:, others].argmax(axis=1))
    labels = np.where(labels < 0, rest, labels)
    counted = np.isin(codes, others)
    lost = float((labels != codes)[counted].mean()) if counted.any() else 0.0
    return -lost, -_error(scores, codes)


def labels_usefulness(scores: FloatArray, codes: IntArray) -> Usefulness:
    """Minus the share of rows whose best-scored class is wrong: without a promise."""
    return -_error(scores, codes), 0.0


def _error(scores: FloatArray, codes: IntArray) -> float:
    return float((scores.argmax(axis=1) != codes).mean())
