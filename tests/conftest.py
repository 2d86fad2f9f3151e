"""Fixtures of all tests."""

import sys

import pytest
from experiments.benchmark_data import folder, load


@pytest.fixture(scope="session")
def benchmark_data():
    """Loader `name -> (X, y)` of the papers' data sets."""
    if not folder().is_dir():
        pytest.skip("the folder of benchmark data sets is absent; set PRUDENT_DATA")
    return load


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Displays draw on new figures, of which matplotlib warns where many stay open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
