"""`audit`: draw, fit, ask, and test what was promised against the truth."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone, is_outlier_detector

from prudent.auditing.evidence import (
    Answer,
    Answers,
    Draw,
    Tally,
    counted_rate,
    counting_error,
    demands,
    exact_rate,
    is_about_training_rows,
)
from prudent.auditing.laws import ON_REQUEST, STANDARD, Law
from prudent.auditing.result import Audit, AuditRow, AuditVerdict, WorstCase
from prudent.core.binomial import check_fraction
from prudent.core.guarantee import ALARMS, NOT_A_RATE, Guarantee
from prudent.core.selection import holm
from prudent.core.validation import shown

Claim = Guarantee | Callable[[Any], Guarantee | Iterable[Guarantee]] | None

# Fresh rows on which a rate is counted, at once and where a doubt is left.
FRESH_ROWS = (2_000, 18_000)
# Of the model's own numbers, beside those of its rows (seed) and of the fresh rows
# (seed, 1) and (seed, 2).
MODEL_STREAM = 3
# How often one looks, and after how many refusals in a row nothing more is tried.
LOOK_EVERY = 10
MOST_REFUSED = 50
DEFAULT_SIZES = (20, 60, 200)
# Share of the level that is spent on stopping early.
STOPPING_SHARE = 0.1
# Laws that have a name.
LAWS = {**STANDARD, **ON_REQUEST}


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
        returns one. A `random_state` of None is set, anew for each draw.
    claim : Guarantee or callable, default=None
        What is promised by a method that has no `guarantees_`, or a function of the
        fitted model that says it. None: `guarantees_`.
    answer : {"predict", "predict_set", "detect"} or callable, default=None
        How the model answers: a callable (model, X) -> labels, or a bool matrix of
        rows and classes, or bools that are alarms. "detect": `predict` is -1 for
        alarms, and `fit` gets no labels. None: by what the promise is about.
    laws : "standard", Law, list or (X, y), default="standard"
        Laws, names of standard laws, or tables: the rows of a table are a population,
        from which training rows are drawn with replacement. Laws in a list, and laws
        of your own, are run even where they break an assumption of the promise, and
        are then reported apart.
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
    TypeError
        If `factory` is neither an estimator nor a function.
    ValueError
        If an argument is out of range, or a claim is no rate.

    Notes
    -----
    What is tested depends on what is promised:

    - with a confidence c: the number of draws whose true rate lies beyond the bound is
      binomial with a rate of at most 1 - c: exact upper tail;
    - on average: the mean of the true rates against the bounds, by the exact law of the
      sum where calibration rows and rank are known, else by bets (Waudby-Smith and
      Ramdas 2024). A bound that varies from draw to draw must hold on average given its
      value: one that is itself an estimate from the rows may be called broken though it
      is right on average;
    - given assumptions only: the true rate is never beyond. A promise about all laws
      with the moments of the training rows is held to those rows.

    Rates are sums where the law is finite. Elsewhere they are counted on 2000 fresh
    rows for each model, and on 20 000 where that leaves a doubt; a rate counts as
    beyond the bound where its exact lower limit is. Rows are corrected for their number
    (Holm 1979). Draws of a law and size stop early where the e-value of their j-th
    promise, looked at every ten draws, reaches 10 j (j + 1) times the number of laws
    and sizes / `level`; nine tenths of the level are left for Holm's procedure.

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
    if not (callable(factory) or hasattr(factory, "fit")):
        raise TypeError(
            "`factory` must be an estimator or a function that makes one, got "
            f"{shown(factory)}."
        )
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
    drawn = Parallel(n_jobs=n_jobs)(delayed(trial.drawn)(*cell) for cell in cells)
    for cell, (law, _) in zip(drawn, cells, strict=True):
        cell.law = law  # not the copy that another process has made
    return _summary(trial, drawn, level)


def _chosen(laws: Any) -> list[Law]:
    """Laws from names, laws and tables."""
    if isinstance(laws, str) and laws == "standard":
        return list(STANDARD.values())
    is_table = isinstance(laws, tuple) and len(laws) == 2 and hasattr(laws[0], "shape")
    if isinstance(laws, (Law, str)) or is_table:
        laws = [laws]
    chosen = []
    for law in laws:
        if isinstance(law, str):
            if law not in LAWS:
                raise ValueError(f"no law {law!r}; there are {', '.join(LAWS)}.")
            chosen.append(LAWS[law])
        elif isinstance(law, Law):
            chosen.append(law)
        else:
            chosen.append(Law.finite("table", *law))
    if not chosen:
        raise ValueError("`laws` is empty: give at least one.")
    return chosen


# --- the draws: rows of a law, a model fitted to them, promises and truth -------------


@dataclass
class Cell:
    """The draws of one law at one size, by what is promised."""

    law: Law
    size: int
    n_draws: int = 0
    n_promises: int = 0  # of all models fitted, whether they can be tested or not
    tallies: dict[Any, Tally] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    # Draws of rows and of moments that ended in an error.
    refused: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    is_stopped: bool = False


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is audited, and how."""

    factory: Any
    claim: Claim
    answer: Answer
    on_request: bool
    budget: int
    target: float
    random_state: int

    def drawn(self, law: Law, size: int) -> Cell:
        """Make the draws of one law at one size, until one promise is refuted."""
        cell = Cell(law, size)
        for i in range(self.budget):
            seed = self.random_state  # of the first draw, so that it is made again
            if i:
                states = np.random.SeedSequence((self.random_state, i))
                seed = int(states.generate_state(1)[0])
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                for draw, from_moments in self._draws(cell, seed):
                    self._count(cell, draw, from_moments)
            n = cell.n_draws = i + 1
            if n % LOOK_EVERY == 0 and n < self.budget:
                looks = (t.log_e_value(n) >= t.target for t in cell.tallies.values())
                if any(looks):
                    cell.is_stopped = True
                    break
            if not cell.tallies and cell.refused[False] >= MOST_REFUSED:
                break
            if not cell.tallies and n == LOOK_EVERY and not cell.refusals:
                break  # it promises nothing
        return cell

    def _count(self, cell: Cell, draw: Draw, from_moments: bool) -> None:
        """Count a draw where it belongs."""
        claim = draw.claim
        key = (*_kind(claim), draw.place, from_moments)
        if key not in cell.tallies:
            # The shares 1/(j (j + 1)) of all promises of a cell sum to at most 1.
            j = len(cell.tallies) + 1
            cell.tallies[key] = Tally(
                claim,
                is_outside=draw.is_outside,
                from_moments=from_moments,
                horizon=self.budget,
                target=self.target + math.log(j * (j + 1)),
            )
        cell.tallies[key].draws.append(draw)

    def _draws(self, cell: Cell, seed: int) -> Iterator[tuple[Draw, bool]]:
        """Fit to rows, and to their moments where that can be; hold to the truth."""
        X, y = cell.law.draw(cell.size, np.random.default_rng(seed))
        for from_moments in (False, True):
            if from_moments and (
                self.claim is not None or cell.refused[True] >= LOOK_EVERY
            ):
                continue
            try:
                model, seen = self._built(seed), np.ones(len(y), dtype=bool)
                detects = self._detects(model)
                if detects:
                    seen = y != -1  # of rows to learn from; all moments are theirs
                if from_moments:
                    if not hasattr(model, "from_moments"):
                        continue
                    model = self._fitted_to_moments(model, X[seen], y[seen])
                elif detects:
                    model.fit(X[seen])
                else:
                    model.fit(X, y)
                claims = self._claims(model)
                cell.n_promises += len(claims)
                held = self._held(claims, cell.law, model, X[seen], y[seen], seed)
                draws = list(held)
                yield from ((draw, from_moments) for draw in draws)
            except Exception as error:  # no promise was made, whatever went wrong
                cell.refused[from_moments] += 1
                if not from_moments:
                    text = " ".join(str(error).split())[:120]
                    cell.refusals[f"{type(error).__name__}: {text}"] += 1

    def _built(self, seed: int) -> Any:
        """An unfitted model whose own randomness is that of the draw."""
        if hasattr(self.factory, "fit") and not isinstance(self.factory, type):
            model = clone(self.factory, safe=False)
        else:
            model = self.factory()
        if hasattr(model, "get_params") and hasattr(model, "set_params"):
            # The seed itself would give a method the numbers that its rows are made of.
            states = np.random.SeedSequence((seed, 0, MODEL_STREAM))
            own_seed = int(states.generate_state(1)[0])
            free = {
                name: own_seed
                for name, value in model.get_params().items()
                if value is None and name.rpartition("__")[2] == "random_state"
            }
            model.set_params(**free)
        return model

    def _detects(self, model: Any) -> bool:
        """Whether the model learns from rows without labels."""
        if self.answer == "detect":
            return True
        if isinstance(self.claim, Guarantee) and self.claim.quantity in ALARMS:
            return True
        try:
            return bool(is_outlier_detector(model))
        except AttributeError:  # not one of scikit-learn's kind
            return False

    def _fitted_to_moments(self, model: Any, X: Any, y: NDArray[Any]) -> Any:
        """A model given the moments of the rows, which are a law with these moments."""
        detects = self._detects(model)
        labels = np.zeros(len(y), dtype=int) if detects else y
        classes, counts = np.unique(labels, return_counts=True)
        groups = [X[labels == label] for label in classes]
        means = np.array([rows.mean(axis=0) for rows in groups])
        centred = [rows - rows.mean(axis=0) for rows in groups]
        covariances = np.array([rows.T @ rows / len(rows) for rows in centred])
        given = {} if detects else {"classes": classes}
        settings = {**given, **model.get_params(deep=False)}
        return type(model).from_moments(means, covariances, counts, **settings)

    def _claims(self, model: Any) -> tuple[Guarantee, ...]:
        """What a fitted model promises."""
        if self.claim is None:
            return tuple(getattr(model, "guarantees_", ()))
        if isinstance(self.claim, Guarantee):
            return (self.claim,)
        claims = self.claim(model)
        return (claims,) if isinstance(claims, Guarantee) else tuple(claims)

    def _held(
        self,
        claims: tuple[Guarantee, ...],
        law: Law,
        model: Any,
        X: Any,
        y: NDArray[Any],
        seed: int,
    ) -> Iterator[Draw]:
        """The promises of one model and their truth."""
        classes = np.asarray(getattr(model, "classes_", np.unique(y)))
        whole = (X, y, np.full(len(y), 1 / len(y)))
        holding = law.holding(detects=self._detects(model))

        @cache
        def fresh(stage: int) -> tuple[Answers, NDArray[Any]]:
            rng = np.random.default_rng((seed, stage + 1))
            rows, labels = law.draw(FRESH_ROWS[stage], rng)
            return Answers(model, rows, self.answer, classes), labels

        @cache
        def known(rows_of_fit: bool) -> Answers:
            rows = X if rows_of_fit or law.truth is None else law.truth[0]
            return Answers(model, rows, self.answer, classes)

        alike: Counter[Any] = Counter()  # promises of this model of the same kind
        for claim in claims:
            place = alike[_kind(claim)]
            alike[_kind(claim)] += 1
            if claim.quantity in NOT_A_RATE:
                continue
            is_outside = not demands(claim) <= holding
            if is_outside and not self.on_request:
                continue
            own = is_about_training_rows(claim)
            if own or law.truth is not None:
                _, labels, chances = whole if own or law.truth is None else law.truth
                draw = exact_rate(claim, known(own), labels, chances)
            else:
                draw = counted_rate(claim, fresh, counting_error(claim))
            if draw is not None:
                yield replace(draw, seed=seed, place=place, is_outside=is_outside)


def _kind(claim: Guarantee) -> tuple[Any, ...]:
    """What promises of several fits share that are tested together."""
    return (
        claim.quantity,
        claim.scope,
        claim.sense,
        claim.confidence,
        claim.average_over,
        claim.subgroup,
    )


# --- the test of all promises together ------------------------------------------------


def _summary(trial: Trial, cells: list[Cell], level: float) -> Audit:
    """Test all rows together, and find the draw to show."""
    drawn = [(cell, tally) for cell in cells for tally in cell.tallies.values()]
    inside = [(cell, tally) for cell, tally in drawn if not tally.is_outside]
    outside = [(cell, tally) for cell, tally in drawn if tally.is_outside]
    p_values = [_p_value(*pair) for pair in inside]
    refuted = holm(p_values) <= (1 - STOPPING_SHARE) * level
    verdict: AuditVerdict = "no violation found" if inside else "nothing to test"
    if refuted.any():
        verdict = "broken"
    rows = [
        _row(*pair, p, bool(wrong))
        for pair, p, wrong in zip(inside, p_values, refuted, strict=True)
    ]
    broken = [pair for pair, wrong in zip(inside, refuted, strict=True) if wrong]
    refusals: Counter[str] = sum((cell.refusals for cell in cells), Counter())
    return Audit(
        verdict=verdict,
        rows=tuple(rows),
        outside=tuple(_row(*pair, _p_value(*pair), False) for pair in outside),
        worst_case=_worst(trial, broken or inside),
        refusals=dict(refusals.most_common()),
        why_nothing="" if inside else _why_nothing(cells),
        level=level,
        budget=trial.budget,
        random_state=trial.random_state,
    )


def _why_nothing(cells: list[Cell]) -> str:
    """Why no draw of these laws can be held against a promise."""
    if any(cell.n_promises for cell in cells):
        return "it makes promises, but none about a rate under these laws"
    if all(cell.refused[False] == cell.n_draws for cell in cells):
        return "every draw ended in an error, and none in a promise"
    return "it promises nothing by itself under these laws"


def _p_value(cell: Cell, tally: Tally) -> float:
    """Exact if all draws were made, else by the e-value."""
    if not cell.is_stopped:
        return tally.p_value(cell.n_draws)
    log_e = tally.log_e_value(cell.n_draws)
    if log_e < tally.target:  # stopped for another promise's sake
        log_e += math.log(STOPPING_SHARE)
    return math.exp(-max(0.0, log_e))


def _row(cell: Cell, tally: Tally, p_value: float, is_refuted: bool) -> AuditRow:
    claim = tally.claim
    words = (
        claim.quantity if claim.scope is None else f"{claim.quantity}, {claim.scope}"
    )
    if claim.subgroup is not None:
        words += f", {claim.subgroup}"
    if place := tally.draws[0].place:
        words += f" ({place + 1})"
    if tally.from_moments:
        words += ", from moments"
    bound = float(tally.bounds.mean())
    truth = float(np.mean([draw.rate for draw in tally.draws]))
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


def _worst(trial: Trial, rows: list[tuple[Cell, Tally]]) -> WorstCase | None:
    """The smallest failing draw; among those of one size, the one furthest beyond."""
    worst = [(cell, tally.worst()) for cell, tally in rows]
    beyond = [(cell, draw) for cell, draw in worst if draw.excess > 0]
    if not beyond:
        return None
    cell, draw = min(beyond, key=lambda pair: (pair[0].size, -pair[1].excess))
    return WorstCase(
        law=cell.law.name,
        size=cell.size,
        seed=draw.seed,
        claim=draw.claim,
        truth=draw.rate,
        line=_line(trial, cell, draw.seed),
    )


def _line(trial: Trial, cell: Cell, seed: int) -> str:
    """The call that makes one draw again, with names for what has no text."""
    given = ["factory"]
    if trial.claim is not None:
        given.append("claim")
    if trial.answer is not None:
        text = repr(trial.answer) if isinstance(trial.answer, str) else "answer"
        given.append(f"answer={text}")
    is_named = LAWS.get(cell.law.name) is cell.law
    law = repr(cell.law.name) if is_named else "law"
    given += [f"laws=[{law}]", f"sizes=({cell.size},)", "budget=1"]
    return f"prudent.audit({', '.join(given)}, random_state={seed})"
