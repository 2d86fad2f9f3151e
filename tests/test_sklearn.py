"""scikit-learn's own checks on every estimator."""

import warnings

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from instances import FAMILIES, expected_failures
from prudent.exceptions import PrudentWarning

INSTANCES = [estimator for family in FAMILIES for estimator in family()]


@parametrize_with_checks(INSTANCES, expected_failed_checks=expected_failures)
def test_sklearn_check(estimator, check):
    with warnings.catch_warnings():
        # The checks fit degenerate data, where documented warnings are right.
        warnings.simplefilter("ignore", PrudentWarning)
        check(estimator)


def test_every_family_lists_its_estimators():
    for family in FAMILIES:
        if not family():
            pytest.fail(f"no instance of {family.__name__}")


def test_estimators_as_they_come_fail_no_check():
    for estimator in INSTANCES:
        given = estimator.get_params(deep=False)
        around = {"estimator": given["estimator"]} if "estimator" in given else {}
        assert expected_failures(type(estimator)(**around)) == {}
