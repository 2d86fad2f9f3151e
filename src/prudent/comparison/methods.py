"""The methods that can be compared: name and how to build the estimator.

A family is imported when its method is built, so that one that cannot be imported
costs its own row only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Method:
    """A line of the comparison.

    Attributes
    ----------
    name : str
        Short name, as typed on the command line.
    build : callable
        Maps a random state to an estimator that is not fitted yet.
    is_baseline : bool
        Whether it is there for reference only.
    """

    name: str
    build: Callable[[int], Any]
    is_baseline: bool = False


def _optimistic(random_state: int) -> Any:
    from prudent.optimistic import OptimisticScoreClassifier

    return OptimisticScoreClassifier(random_state=random_state)


def _minimax(random_state: int) -> Any:
    from prudent.minimax import MinimaxProbabilityClassifier

    return MinimaxProbabilityClassifier(random_state=random_state)


def _calibrated(random_state: int) -> Any:
    from prudent.calibration import RiskCalibratedClassifier

    return RiskCalibratedClassifier(random_state=random_state)


def _imprecise(random_state: int) -> Any:
    from prudent.imprecise import ImpreciseDiscriminantAnalysis

    return ImpreciseDiscriminantAnalysis()


def _rejection(random_state: int) -> Any:
    from prudent.comparison.rejection import ClasswiseRejector

    return ClasswiseRejector(random_state=random_state)


def _lda(random_state: int) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _qda(random_state: int) -> Any:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from prudent.comparison.baselines import ShrunkTowardsIdentity

    # Regularised as a user would: a real table often has a singular class.
    discriminant = QuadraticDiscriminantAnalysis(
        solver="eigen", covariance_estimator=ShrunkTowardsIdentity()
    )
    return make_pipeline(StandardScaler(), discriminant)


def _logistic(random_state: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


METHODS = {
    method.name: method
    for method in (
        Method("optimistic", _optimistic),
        Method("minimax", _minimax),
        Method("calibrated", _calibrated),
        Method("imprecise", _imprecise),
        Method("rejection", _rejection),
    )
}
BASELINES = {
    method.name: method
    for method in (
        Method("lda", _lda, is_baseline=True),
        Method("qda", _qda, is_baseline=True),
        Method("logistic", _logistic, is_baseline=True),
    )
}


def choose(methods: Any, baselines: Any) -> tuple[Method, ...]:
    """Methods by name, in the order given; "all" means the five families.

    Raises
    ------
    ValueError
        If a name is unknown or repeated, or nothing is chosen.
    """
    chosen = (
        *_named("methods", methods, METHODS),
        *_named("baselines", baselines, BASELINES),
    )
    if not chosen:
        raise ValueError("nothing to compare: choose at least one method or baseline.")
    return chosen


def _named(argument: str, names: Any, known: dict[str, Method]) -> list[Method]:
    if isinstance(names, str):
        names = list(known) if names == "all" else [names]
    for name in names:
        if name not in known:
            raise ValueError(
                f"`{argument}` must be names among {list(known)}, got {name!r}."
            )
    if len(set(names)) < len(names):
        raise ValueError(f"`{argument}` repeats a name: {list(names)}.")
    return [known[name] for name in names]
