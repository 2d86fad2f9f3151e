import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from prudent.comparison.ties import corrected_p_value

DIFFERENCES = arrays(np.float64, st.integers(2, 12), elements=st.floats(-1, 1))


def test_without_overlap_it_is_the_ordinary_paired_t_test():
    differences = np.array([0.1, 0.3, -0.05, 0.2, 0.12])
    ordinary = stats.ttest_1samp(differences, 0.0).pvalue
    assert corrected_p_value(differences, 0.0) == pytest.approx(ordinary, rel=1e-12)


def test_matches_the_formula_of_nadeau_and_bengio():
    differences = np.array([0.02, 0.0, 0.04, 0.01, 0.03])
    t = 0.02 / np.sqrt((1 / 5 + 1 / 4) * 0.00025)
    expected = 2 * stats.t.sf(t, df=4)
    assert corrected_p_value(differences, 1 / 4) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(DIFFERENCES, st.floats(0, 1))
def test_overlap_never_makes_a_difference_clearer(differences, ratio):
    corrected = corrected_p_value(differences, ratio)
    assert 0 <= corrected_p_value(differences, 0.0) <= corrected + 1e-12
    assert corrected <= 1


@settings(max_examples=50, deadline=None)
@given(DIFFERENCES)
def test_sign_of_the_difference_does_not_matter(differences):
    p_value = corrected_p_value(differences, 0.25)
    assert corrected_p_value(-differences, 0.25) == pytest.approx(p_value)


def test_equal_errors_are_tied():
    assert corrected_p_value(np.zeros(5), 0.25) == 1.0


def test_the_same_difference_in_every_fold_is_no_tie():
    assert corrected_p_value(np.full(5, 0.1), 0.25) == 0.0
