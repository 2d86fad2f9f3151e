"""Fixtures of all tests."""

import sys

import pytest
from experiments.benchmark_data import folder, load
from hypothesis import HealthCheck, settings

# A busy machine is no defect: slow draws and slow examples fail no test.
settings.register_profile(
    "patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


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
