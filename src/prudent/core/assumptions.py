"""What a promise takes for granted: one sentence for each assumption, written once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np


class Assumption(StrEnum):
    """An assumption of a promise; its value is the sentence that users read.

    Numbers in braces are filled in from the evidence of the promise. Decisions compare
    members, never sentences; files name members by `name`.

    Examples
    --------
    >>> from prudent import Assumption
    >>> print(Assumption.UNSEEN)
    the calibration rows were not used to fit, choose or tune the model
    """

    # Held-out rows rank the new ones.
    EXCHANGEABLE = "the new row is exchangeable with the calibration rows"
    EXCHANGEABLE_CLASS = (
        "the new rows of this class are exchangeable with its calibration rows"
    )
    EXCHANGEABLE_GROUP = (
        "the new rows of this group are exchangeable with its calibration rows"
    )
    EXCHANGEABLE_SUBGROUP = (
        "the new rows that the promise is about are exchangeable with the calibration "
        "rows of this kind"
    )
    EXCHANGEABLE_NORMAL = (
        "the new normal row is exchangeable with the normal calibration rows"
    )
    # The latest rows are held out: earlier ones may follow any law.
    EXCHANGEABLE_LATEST = (
        "the new row is exchangeable with the latest {latest rows:.0f} rows (from "
        "{first})"
    )
    EXCHANGEABLE_CLASS_LATEST = (
        "the new rows of this class are exchangeable with those among the latest "
        "{latest rows:.0f} rows (from {first})"
    )
    EXCHANGEABLE_GROUP_LATEST = (
        "the new rows of this group are exchangeable with those among the latest "
        "{latest rows:.0f} rows (from {first})"
    )
    EXCHANGEABLE_SUBGROUP_LATEST = (
        "the new rows that the promise is about are exchangeable with the rows of this "
        "kind among the latest {latest rows:.0f} (from {first})"
    )
    # All training rows rank the new ones: full and cross-conformal prediction.
    TRAINING_EXCHANGEABLE = "the new row is exchangeable with the training rows"
    TRAINING_EXCHANGEABLE_CLASS = (
        "the new rows of this class are exchangeable with its training rows"
    )
    TRAINING_EXCHANGEABLE_GROUP = (
        "the new rows of this group are exchangeable with its training rows"
    )
    TRAINING_EXCHANGEABLE_SUBGROUP = (
        "the new rows that the promise is about are exchangeable with the training "
        "rows of this kind"
    )
    TRAINING_EXCHANGEABLE_NORMAL = (
        "the new normal row is exchangeable with the training rows"
    )
    # Promises with a confidence.
    INDEPENDENT = (
        "future rows are independent draws from the population of the calibration rows"
    )
    GROUPS = (
        "groups are independent draws from one population, and a future row is a "
        "random row of a new group"
    )
    INDEPENDENT_LATEST = (
        "future rows are independent draws from the population of the latest "
        "{latest rows:.0f} rows (from {first})"
    )
    GROUPS_LATEST = (
        "the latest {latest rows:.0f} groups (from {first}) are independent draws from "
        "one population, and a future row is a random row of a new group of it"
    )
    UNSEEN = "the calibration rows were not used to fit, choose or tune the model"
    KNOWN_LABEL = "the label of the new row is one of the classes of the model"
    PRIOR_SHIFT = "only the class prior differs from that of the calibration rows"
    PREVALENCE = "the share of positive rows among future rows is {prevalence:g}"
    # Promises that rest on moments.
    NORMALITY = "the rows of each class are independent draws from a normal law"
    MOMENTS_GIVEN = "the class means and covariances are exactly those given"
    MOMENTS_GIVEN_RADII = (
        "the class means and covariances lie within the radii of those given"
    )
    MOMENTS_PLUG_IN = "the class means and covariances equal their plug-in estimates"
    MOMENTS_PLUG_IN_RADII = (
        "the class means and covariances lie within the given radii of their plug-in "
        "estimates"
    )
    MOMENTS_GIVEN_OR_PLUG_IN = (
        "the class means and covariances are exactly those given (plug-in estimates "
        "where they come from rows)"
    )
    UNIMODAL = (
        "the rows of each class, seen along the normal of each plane, follow a "
        "unimodal law"
    )
    SHRUNK = "the covariances are shrunk by {shrinkage:g} towards their diagonal"
    REGULARISED = "the covariances are those of a regularised estimate"
    FLOORED = "{floor:g} of each feature's variance is added to the covariances"
    # Promises about other laws than that of the rows behind them.
    SHIFTED = (
        "the rows behind the promise are independent draws from one law, and future "
        "rows follow another law"
    )
    SHIFTED_GROUPS = (
        "the groups behind the promise are independent draws from one law, and a "
        "future row is a random row of a new group, drawn from another law"
    )
    SHIFT_KL = (
        "the Kullback-Leibler divergence of the future rows from the held-out ones "
        "(nats) is at most {shift radius:g}"
    )
    SHIFT_REVERSE_KL = (
        "the Kullback-Leibler divergence of the held-out rows from the future ones "
        "(nats) is at most {shift radius:g}"
    )
    SHIFT_CHI2 = (
        "the chi-squared divergence of the future rows from the held-out ones is at "
        "most {shift radius:g}"
    )
    SHIFT_REVERSE_CHI2 = (
        "the chi-squared divergence of the held-out rows from the future ones is at "
        "most {shift radius:g}"
    )
    SHIFT_HELLINGER = (
        "the squared Hellinger distance between the future and the held-out rows is at "
        "most {shift radius:g}"
    )
    SHIFT_TOTAL_VARIATION = (
        "the total variation distance between the future and the held-out rows is at "
        "most {shift radius:g}"
    )
    SHIFT_LIKELIHOOD_RATIO = (
        "the density of the future rows over that of the held-out ones is at most "
        "{shift radius:g}"
    )
    SHIFT_RENYI = (
        "the Renyi divergence of order {shift order:g} of the future rows from the "
        "held-out ones (nats) is at most {shift radius:g}"
    )
    SHIFT_OF_ANSWERED = "this shift is that of the answered rows"
    SHIFT_OF_CLASS = "this shift is that of the rows of this class"
    SHIFT_OF_THESE = "this shift is that of the rows that the promise is about"
    # Games against an intruder.
    EVENTS_KNOWN = "p is known exactly"
    EVENTS_PLUG_IN = "plug-in density: the estimated probabilities are taken as exact"
    EVENTS_SMOOTHED = (
        "plug-in density: the frequencies, {smoothing:g} added to every count, are "
        "taken as exact"
    )
    INTRUDER_GIVEN = "the intruder follows the given distribution"
    INTRUDER_LISTED = (
        "the intruder follows one of the {intruders:g} given distributions, or mixes "
        "them"
    )
    INTRUDER_ANY = "the intruder is any distribution over the events"
    INTRUDER_FAR = "the intruder is at least {divergence bound:g} away from p"
    INTRUDER_FAR_WHERE_POSITIVE = (
        "the intruder, on the events of positive probability, is at least "
        "{divergence bound:g} away from p"
    )
    DIVERGENCE_CONVEX = "the divergence given is convex in the intruder's distribution"
    # Selections of rows from a batch.
    INDEPENDENT_NORMAL = (
        "new normal rows are independent draws from the population of the normal "
        "calibration rows"
    )
    NOT_CHOSEN_IN_BATCH = (
        "the ordinary rows of the batch are exchangeable with the calibration rows "
        "given the unusual ones, none of which was chosen by looking at the batch"
    )


#: What is assumed of the moments that a promise rests on.
MOMENTS = frozenset(
    {
        Assumption.MOMENTS_GIVEN,
        Assumption.MOMENTS_GIVEN_RADII,
        Assumption.MOMENTS_PLUG_IN,
        Assumption.MOMENTS_PLUG_IN_RADII,
        Assumption.MOMENTS_GIVEN_OR_PLUG_IN,
    }
)
#: Estimates are taken for the truth.
PLUG_IN = frozenset(
    {
        Assumption.MOMENTS_PLUG_IN,
        Assumption.MOMENTS_PLUG_IN_RADII,
        Assumption.MOMENTS_GIVEN_OR_PLUG_IN,
        Assumption.EVENTS_PLUG_IN,
        Assumption.EVENTS_SMOOTHED,
    }
)
#: What is assumed instead where the rows held out are the latest ones.
LATEST = {
    Assumption.EXCHANGEABLE: Assumption.EXCHANGEABLE_LATEST,
    Assumption.EXCHANGEABLE_CLASS: Assumption.EXCHANGEABLE_CLASS_LATEST,
    Assumption.EXCHANGEABLE_GROUP: Assumption.EXCHANGEABLE_GROUP_LATEST,
    Assumption.EXCHANGEABLE_SUBGROUP: Assumption.EXCHANGEABLE_SUBGROUP_LATEST,
    Assumption.INDEPENDENT: Assumption.INDEPENDENT_LATEST,
    Assumption.GROUPS: Assumption.GROUPS_LATEST,
}
#: Rows behind a promise and future rows follow one law.
SAME_LAW = frozenset(
    {
        Assumption.EXCHANGEABLE,
        Assumption.EXCHANGEABLE_CLASS,
        Assumption.EXCHANGEABLE_GROUP,
        Assumption.EXCHANGEABLE_SUBGROUP,
        Assumption.EXCHANGEABLE_NORMAL,
        Assumption.EXCHANGEABLE_LATEST,
        Assumption.EXCHANGEABLE_CLASS_LATEST,
        Assumption.EXCHANGEABLE_GROUP_LATEST,
        Assumption.EXCHANGEABLE_SUBGROUP_LATEST,
        Assumption.TRAINING_EXCHANGEABLE,
        Assumption.TRAINING_EXCHANGEABLE_CLASS,
        Assumption.TRAINING_EXCHANGEABLE_GROUP,
        Assumption.TRAINING_EXCHANGEABLE_SUBGROUP,
        Assumption.TRAINING_EXCHANGEABLE_NORMAL,
        Assumption.INDEPENDENT,
        Assumption.INDEPENDENT_LATEST,
        Assumption.INDEPENDENT_NORMAL,
    }
)


def assumption_of(text: str) -> str:
    """The member that bears this name or sentence; a user's own sentence as it is."""
    if text in Assumption.__members__:
        return Assumption[text]
    try:
        return Assumption(text)
    except ValueError:
        return text


def name_of_assumption(assumption: str) -> str:
    """How files call an assumption: members by name, a user's own by its sentence."""
    return assumption.name if isinstance(assumption, Assumption) else assumption


class _Numbers(dict[str, Any]):
    """Evidence; a number that is missing from it is left open."""

    def __missing__(self, name: str) -> str:
        return _Open()


class _Open(str):
    """What stands for a number that is not known."""

    def __format__(self, spec: str) -> str:
        return "some amount"


def sentence_of(assumption: str, evidence: Mapping[str, float]) -> str:
    """The sentence of an assumption, with the numbers of the evidence filled in."""
    if isinstance(assumption, Assumption):
        numbers = _Numbers(evidence)
        first = first_in_words(evidence)
        if first is not None:
            numbers["first"] = first
        return assumption.value.format_map(numbers)
    return assumption


def first_in_words(evidence: Mapping[str, float]) -> str | None:
    """When the first of the latest rows was taken; None where no time is known."""
    for name in ("first time", "first date"):
        if name in evidence:
            return time_in_words(evidence[name], dated=name == "first date")
    return None


def time_in_words(time: float, *, dated: bool) -> str:
    """A time as a reader sees it: a number, or with `dated` seconds since 1970 (UTC).

    Examples
    --------
    >>> from prudent.core.assumptions import time_in_words
    >>> time_in_words(1772409600, dated=True), time_in_words(17.5, dated=False)
    ('2026-03-02', '17.5')
    """
    if not dated:
        return f"{time:.15g}"
    day, _, moment = str(np.datetime64(int(time), "s")).partition("T")
    return day if moment == "00:00:00" else f"{day} {moment.removesuffix(':00')}"
