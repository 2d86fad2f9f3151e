import tracemalloc

import numpy as np
import pytest

from prudent import RiskCalibratedClassifier


@pytest.mark.slow
@pytest.mark.parametrize("family", ["full", "diag", "tied", "tied_diag"])
def test_a_fit_needs_one_copy_of_the_rows_and_little_else(family):
    m, d, r = 100_000, 64, 10
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(m, d)), rng.integers(r, size=m)
    model = RiskCalibratedClassifier(family=family, max_iter=2, stopping="none")
    model.fit(X[:5000], y[:5000])  # loads the compiled loops
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 64e6 + 8 * m * d + 24 * r * d**2 + 32 * m * r
