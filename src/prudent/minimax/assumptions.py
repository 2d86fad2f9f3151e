"""On what a minimax promise rests, in words: both halves of the family say it alike."""

from __future__ import annotations

from typing import Literal

from prudent.core.covariance import CovarianceRule

#: Where the moments and their radii come from.
Origin = Literal["plug-in", "given", "gaussian", "bootstrap"]


def changed_covariances(rule: CovarianceRule, floor: float = 0.0) -> str:
    """What a covariance rule and a floor did to the covariances, "" for nothing."""
    changes = []
    if isinstance(rule, str) or callable(rule):
        if rule != "empirical":
            changes.append(f"regularised by covariance={rule!r}")
    elif rule:
        changes.append(f"shrunk by {rule:g} towards their diagonal")
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
    return f"{sentence}, the covariances {changes}" if changes else sentence
