"""`audit`: draw, fit, ask, and test what was promised against the truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from prudent.auditing.draws import CellResult, Claim, Trial, draw_cell
from prudent.auditing.laws import ON_REQUEST, STANDARD, Law
from prudent.auditing.result import Audit, AuditRow, AuditVerdict, WorstCase
from prudent.auditing.tally import Tally
from prudent.auditing.truth import Answer
from prudent.core.binomial import check_fraction
from prudent.core.guarantee import NOT_A_RATE, Guarantee
from prudent.core.selection import holm
from prudent.core.validation import shown

DEFAULT_SIZES = (20, 60, 200)
# Share of the level that is spent on stopping early.
STOPPING_SHARE = 0.1


def audit(
    factory: Any,
    claim: Claim = None,
    *,
    answer: Answer = None,
    laws: Any = "standard",
    budget: int = 400,
    level: float = 0.01,
    sizes: Iterable[int] = DEFAULT_SIZES,
    random_state: int = 0,
    n_jobs: int | None = 1,
) -> Audit:
    """Hold the promise of a method to account on laws whose truth is known.

    Each draw fits the method to fresh rows, takes its promise and compares it with the
    true rate; exact tests say whether the promise can be true.

    Parameters
    ----------
    factory : estimator or callable
        Unfitted estimator, cloned for each draw, or a function without arguments that
        returns one. A `random_state` of None becomes the seed of the draw.
    claim : Guarantee or callable, default=None
        What is promised by a method that has no `guarantees_`, or a function of the
        fitted model that says it. None: `guarantees_`.
    answer : {"predict", "predict_set", "detect"} or callable, default=None
        How the model answers: a callable (model, X) -> labels, or a bool matrix of
        rows and classes, or bools that are alarms. "detect": `predict` is -1 for
        alarms, and `fit` gets no labels. None: by what the promise is about.
    laws : "standard", Law, list or (X, y), default="standard"
        Laws, names of standard laws, or tables: the rows of a table are a population,
        from which training rows are drawn with replacement. Laws that are named or
        given are run even where they break an assumption of the promise, and are then
        reported apart.
    budget : int, default=400
        Most draws for each law and size.
    level : float, default=0.01
        Largest probability that true promises are called broken, over all laws, sizes
        and promises.
    sizes : iterable of int, default=(20, 60, 200)
        Training rows.
    random_state : int, default=0
        Seed of the first draw; all others follow from it.
    n_jobs : int or None, default=1
        Processes, as in joblib.

    Returns
    -------
    Audit
        Verdict, rows, and the smallest failing draw.

    Raises
    ------
    ValueError
        If an argument is out of range, or a claim is no rate.

    Notes
    -----
    What is tested depends on what is promised:

    - with a confidence c: the number of draws whose true rate lies beyond the bound is
      binomial with a rate of at most 1 - c: exact upper tail;
    - on average: the mean of the true rates against the bounds, by the exact law of the
      sum where calibration rows and rank are known, else by bets (Waudby-Smith and
      Ramdas 2024);
    - given assumptions only: the true rate is never beyond. A promise about all laws
      with the moments of the training rows is held to those rows.

    Rates are sums where the law is finite. Elsewhere they are counted on 2000 fresh
    rows for each model, and on 20 000 where that leaves a doubt; a rate counts as
    beyond the bound where its exact lower limit is. Rows are corrected for their number
    (Holm 1979). Draws stop early where an e-value exceeds ten times rows / `level`; the
    rest of the level, nine tenths, is left for Holm's procedure.

    Examples
    --------
    >>> import prudent
    >>> detector = prudent.MinimaxOutlierDetector(false_alarm_rate=0.1)
    >>> audit = prudent.audit(detector, laws=["line"], sizes=(60,), budget=100)
    >>> audit.verdict
    'no violation found'

    A promise that forgets that a quantile is estimated:

    >>> import numpy as np
    >>> class Largest:
    ...     def fit(self, X):
    ...         self.largest_ = X.max()
    ...         return self
    >>> claim = prudent.Guarantee(quantity="false alarm rate", bound=0.001, sense="<=")
    >>> audit = prudent.audit(
    ...     Largest,
    ...     claim,
    ...     answer=lambda model, X: X[:, 0] > model.largest_,
    ...     laws=["line"],
    ...     sizes=(60,),
    ... )
    >>> audit.verdict
    'broken'
    """
    if not isinstance(budget, Integral) or budget < 1:
        raise ValueError(f"`budget` must be an integer >= 1, got {shown(budget)}.")
    check_fraction("level", level)
    sizes = tuple(sizes)
    if not sizes or not all(isinstance(n, Integral) and n > 0 for n in sizes):
        raise ValueError(f"`sizes` must be integers >= 1, got {sizes}.")
    if answer not in (None, "predict", "predict_set", "detect") and not callable(
        answer
    ):
        raise ValueError(
            "`answer` must be 'predict', 'predict_set', 'detect' or a function of a "
            f"model and rows, got {shown(answer)}."
        )
    if isinstance(claim, Guarantee) and claim.quantity in NOT_A_RATE:
        raise ValueError(NOT_A_RATE[claim.quantity])
    chosen = _chosen(laws)
    cells = [
        (law, int(size))
        for law in chosen
        for size in ((law.sizes or sizes) if sizes == DEFAULT_SIZES else sizes)
    ]
    trial = Trial(
        factory=factory,
        claim=claim,
        answer=answer,
        on_request=not isinstance(laws, str),
        budget=int(budget),
        target=math.log(len(cells) / (STOPPING_SHARE * level)),
        random_state=int(random_state),
    )
    found = Parallel(n_jobs=n_jobs)(delayed(draw_cell)(trial, *cell) for cell in cells)
    return _summary(trial, [one for one in found if one.tallies], found, level)


def _chosen(laws: Any) -> list[Law]:
    """Laws from names, laws and tables."""
    if isinstance(laws, str) and laws == "standard":
        return list(STANDARD.values())
    is_table = isinstance(laws, tuple) and len(laws) == 2 and hasattr(laws[0], "shape")
    if isinstance(laws, (Law, str)) or is_table:
        laws = [laws]
    known = {**STANDARD, **ON_REQUEST}
    chosen = []
    for law in laws:
        if isinstance(law, str):
            if law not in known:
                raise ValueError(f"no law {law!r}; there are {', '.join(known)}.")
            chosen.append(known[law])
        elif isinstance(law, Law):
            chosen.append(law)
        else:
            chosen.append(Law.finite("table", *law))
    if not chosen:
        raise ValueError("`laws` is empty: give at least one.")
    return chosen


def _summary(
    trial: Trial, cells: list[CellResult], tried: list[CellResult], level: float
) -> Audit:
    """Test all rows together, and find the draw to show."""
    inside = [(c, t) for c in cells for t in c.tallies if not t.is_outside]
    outside = [(c, t) for c in cells for t in c.tallies if t.is_outside]
    p_values = [_p_value(*one) for one in inside]
    refuted = holm(p_values) <= (1 - STOPPING_SHARE) * level
    verdict: AuditVerdict = "no violation found" if inside else "nothing to test"
    if refuted.any():
        verdict = "broken"
    rows = [
        _row(*one, p, bool(wrong))
        for one, p, wrong in zip(inside, p_values, refuted, strict=True)
    ]
    shown_from = [one for one, w in zip(inside, refuted, strict=True) if w] or inside
    refusals: Counter[str] = sum((cell.refusals for cell in tried), Counter())
    return Audit(
        verdict=verdict,
        rows=tuple(rows),
        outside=tuple(_row(*one, _p_value(*one), False) for one in outside),
        worst_case=_worst(shown_from),
        refusals=dict(refusals.most_common()),
        level=level,
        budget=trial.budget,
        random_state=trial.random_state,
    )


def _p_value(cell: CellResult, tally: Tally) -> float:
    """Exact if all draws were made, else by the e-value."""
    if not cell.is_stopped:
        return tally.p_value(cell.n_draws)
    log_e = tally.log_e_value(cell.n_draws)
    if log_e < tally.target:  # stopped for another promise's sake
        log_e += math.log(STOPPING_SHARE)
    return math.exp(-max(0.0, log_e))


def _row(cell: CellResult, tally: Tally, p_value: float, is_refuted: bool) -> AuditRow:
    claim = tally.claim
    words = (
        claim.quantity if claim.scope is None else f"{claim.quantity}, {claim.scope}"
    )
    if tally.from_moments:
        words += ", from moments"
    bound = float(tally.bounds.mean())
    truth = float(np.mean([draw.measured.rate for draw in tally.draws]))
    unbounded = math.inf if bound > 0 else 1.0
    allowed = None
    if claim.average_over is None:
        allowed = (1 - (claim.confidence or 1.0)) * cell.n_draws
    return AuditRow(
        law=cell.law.name,
        size=cell.size,
        claim=words,
        claims=len(tally.draws),
        broken=tally.beyond,
        allowed=allowed,
        p_value=p_value,
        mean_bound=bound,
        mean_truth=truth,
        sharpness=bound / truth if truth > 0 else unbounded,
        refused=cell.refused[tally.from_moments],
        is_refuted=is_refuted,
        is_stopped=cell.is_stopped,
    )


def _worst(rows: list[tuple[CellResult, Tally]]) -> WorstCase | None:
    """The smallest failing draw; among those of one size, the one furthest beyond."""
    worst = [(cell, tally.worst()) for cell, tally in rows]
    beyond = [(cell, draw) for cell, draw in worst if draw.excess > 0]
    if not beyond:
        return None
    cell, draw = min(beyond, key=lambda one: (one[0].size, -one[1].excess))
    return WorstCase(
        law=cell.law.name,
        size=cell.size,
        seed=draw.seed,
        claim=draw.claim,
        truth=draw.measured.rate,
    )
