"""Loops that run by themselves until they are worth compiling."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from prudent.monitoring import kernels


def streams(rng):
    """Arguments of `restart_rows` on a few rows, rates and averages."""
    ratios = np.geomspace(1.01, 500, kernels.N_STAKES)
    for settings in ((0.1, 0, 1, 20.0), (0.1, 5, 61, 20.0), (0.0, 0, 1, 20.0)):
        losses = (rng.random(700) < 0.3).astype(float)
        counts = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
        stakes, trace = np.zeros(kernels.N_STAKES), np.zeros((256, 3))
        yield losses, stakes, counts, trace, ratios, settings


def test_a_loop_gives_what_its_compiled_form_gives():
    plain, compiled = (streams(np.random.default_rng(0)) for _ in range(2))
    for first, second in zip(plain, compiled, strict=True):
        with np.errstate(all="ignore"):
            kernels.restart_rows.function(*first)
        kernels.restart_rows.compiled(*second)
        for before, after in zip(first[1:4], second[1:4], strict=True):
            np.testing.assert_allclose(before, after, rtol=1e-12)


@pytest.mark.parametrize(("batches", "loaded"), [(20, False), (50, True)])
def test_numba_is_loaded_for_long_streams_only(batches, loaded):
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(f"""
                import sys
                from prudent import Guarantee, PromiseMonitor
                promise = Guarantee(quantity="error rate", bound=0.1, sense="<=")
                monitor = PromiseMonitor(promise)
                for batch in range({batches}):
                    monitor.update([0.0] * 99 + [1.0])
                print(monitor.n_, "numba" in sys.modules)
            """),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.split() == [str(100 * batches), str(loaded)], ended.stderr
