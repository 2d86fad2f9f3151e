"""What the estimators share: validation, the moment seam and set predictions."""

from prudent.estimator_tools.answers import (
    RateMixin,
    counted_answers,
    held_against,
    predict_set,
)
from prudent.estimator_tools.exporting import exported_rule, probability_columns
from prudent.estimator_tools.given_answers import (
    GivenAlarms,
    GivenAnswers,
    answers_from,
    rule_answers,
)
from prudent.estimator_tools.held_out import HeldOutEstimator
from prudent.estimator_tools.moment_fits import (
    MomentFitMixin,
    MomentsMixin,
    covariance_rule,
    is_covariance_estimator,
    warn_repairs,
)
from prudent.estimator_tools.seen_rows import (
    RowNotes,
    refuse_seen_rows,
    remember_rows,
    warn_of_copies,
)
from prudent.estimator_tools.tables import (
    TableColumns,
    TablePipeline,
    matched_by_name,
)
from prudent.estimator_tools.threads import one_thread
from prudent.estimator_tools.validation import (
    Split,
    check_groups,
    check_rows,
    check_training,
    fold_positions,
    frame_columns,
    groups_for,
    hold_out_rows,
    hold_out_unseen,
    positive_weights,
    refuse_dask,
    warn_constant_features,
)

__all__ = [
    "GivenAlarms",
    "GivenAnswers",
    "HeldOutEstimator",
    "MomentFitMixin",
    "MomentsMixin",
    "RateMixin",
    "RowNotes",
    "Split",
    "TableColumns",
    "TablePipeline",
    "answers_from",
    "check_groups",
    "check_rows",
    "check_training",
    "counted_answers",
    "covariance_rule",
    "exported_rule",
    "fold_positions",
    "frame_columns",
    "groups_for",
    "held_against",
    "hold_out_rows",
    "hold_out_unseen",
    "is_covariance_estimator",
    "matched_by_name",
    "one_thread",
    "positive_weights",
    "predict_set",
    "probability_columns",
    "refuse_dask",
    "refuse_seen_rows",
    "remember_rows",
    "rule_answers",
    "warn_constant_features",
    "warn_of_copies",
    "warn_repairs",
]
