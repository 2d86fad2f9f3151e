"""Where a comparison ran: versions, the BLAS, memory."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from typing import Any

import numpy as np

PACKAGES = ("prudent", "numpy", "scipy", "scikit-learn")


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages behind the figures, and the BLAS."""
    versions = {"python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    versions["blas"] = (
        f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    )
    return versions


def peak_memory() -> int | None:
    """Bytes that this process has held at most; None where it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
