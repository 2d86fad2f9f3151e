"""What a promise takes for granted: one sentence for each assumption, written once."""

from __future__ import annotations

from enum import StrEnum


class Assumption(StrEnum):
    """An assumption of a promise; its value is the sentence that users read.

    Decisions compare members, never sentences. Files name members by `name`.
    """

    # Held-out rows rank the new ones.
    EXCHANGEABLE = "the new row is exchangeable with the calibration rows"
    EXCHANGEABLE_CLASS = (
        "the new rows of this class are exchangeable with its calibration rows"
    )
    EXCHANGEABLE_GROUP = (
        "the new rows of this group are exchangeable with its calibration rows"
    )
    EXCHANGEABLE_NORMAL = (
        "the new normal row is exchangeable with the normal calibration rows"
    )
    # All training rows rank the new ones: full and cross-conformal prediction.
    TRAINING_EXCHANGEABLE = "the new row is exchangeable with the training rows"
    TRAINING_EXCHANGEABLE_CLASS = (
        "the new rows of this class are exchangeable with its training rows"
    )
    TRAINING_EXCHANGEABLE_GROUP = (
        "the new rows of this group are exchangeable with its training rows"
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
    UNSEEN = "the calibration rows were not used to fit, choose or tune the model"
    KNOWN_LABEL = "the label of the new row is one of the classes of the model"
    PRIOR_SHIFT = "only the class prior differs from that of the calibration rows"
    # Promises that rest on moments.
    NORMALITY = "the rows of each class are independent draws from a normal law"
