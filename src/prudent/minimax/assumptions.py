"""On what a minimax promise rests, in words: both halves of the family say it alike."""

from __future__ import annotations

from itertools import product
from typing import Literal, get_args

from prudent.core.covariance import CovarianceRule

#: Where the moments and their radii come from.
Origin = Literal["plug-in", "given", "gaussian", "bootstrap"]

NORMALITY = "the rows of each class are independent draws from a normal law"
GIVEN_MOMENTS = (
    "the class means and covariances are exactly those given (plug-in estimates where "
    "they come from rows)"
)
COVARIANCES, SHRUNK, REGULARISED = ", the covariances ", "shrunk by", "regularised by"


def changed_covariances(rule: CovarianceRule, floor: float = 0.0) -> str:
    """What a covariance rule and a floor did to the covariances, "" for nothing."""
    changes = []
    if isinstance(rule, str) or callable(rule):
        if rule != "empirical":
            changes.append(f"{REGULARISED} covariance={rule!r}")
    elif rule:
        changes.append(f"{SHRUNK} {rule:g} towards their diagonal")
    if floor:
        changes.append(f"with {floor:g} of each feature's variance added")
    return ", ".join(changes)


def known_moments(origin: Origin, changes: str, with_radii: bool) -> str:
    """What is taken for known about the classes."""
    if origin == "given":
        moments = "those given"
        verb = "lie within the radii of" if with_radii else "are exactly"
    else:
        moments = "their plug-in estimates"
        verb = "lie within the given radii of" if with_radii else "equal"
    sentence = f"the class means and covariances {verb} {moments}"
    return f"{sentence}{COVARIANCES}{changes}" if changes else sentence


def is_about_rows(assumption: str) -> bool | None:
    """Whether the rows that the moments come from are a law that a promise is about.

    A covariance rule makes covariances of no rows, a floor only larger ones. None: the
    sentence is not about moments.
    """
    known, _, changes = assumption.partition(COVARIANCES)
    if known not in _KNOWN_MOMENTS:
        return None
    return not changes.startswith((SHRUNK, REGULARISED))


_KNOWN_MOMENTS = {GIVEN_MOMENTS} | {
    known_moments(origin, "", with_radii)
    for origin, with_radii in product(get_args(Origin), (False, True))
}
