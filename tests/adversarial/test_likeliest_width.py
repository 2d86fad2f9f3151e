"""The likeliest width of kernels is found from a few widths uphill."""

import numpy as np
import pytest

from prudent.adversarial.density import model
from prudent.adversarial.density.model import NormalKernels


@pytest.mark.parametrize("n_features", [1, 3, 12])
@pytest.mark.parametrize("law", ["normal", "heavy", "clusters", "repeated"])
def test_the_width_is_the_likeliest_of_all(n_features, law, monkeypatch):
    random = np.random.default_rng(n_features)
    rows = random.normal(size=(150, n_features))
    if law == "heavy":
        rows = random.standard_t(2, size=rows.shape)
    if law == "clusters":
        rows += 8.0 * random.integers(0, 3, size=(150, 1))
    if law == "repeated":
        rows = rows.round()
    uphill = NormalKernels.of_likeliest_width(rows).width
    every = range(len(model._WIDTHS))
    monkeypatch.setattr(model, "_COARSE", tuple(every))
    assert uphill == NormalKernels.of_likeliest_width(rows).width
