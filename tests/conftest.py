"""Fixtures of all tests."""

import pytest
from experiments.benchmark_data import folder, load


@pytest.fixture(scope="session")
def benchmark_data():
    """Loader `name -> (X, y)` of the papers' data sets."""
    if not folder().is_dir():
        pytest.skip("the folder of benchmark data sets is absent; set PRUDENT_DATA")
    return load
