"""Print the lowest declared versions, as constraints for pip.

``python tools/minimum_versions.py > constraints.txt`` pins every dependency to the
version that ``pyproject.toml`` names after its ``>=``; `make test-minimum` runs the
tests with exactly these.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("dask", "solvers", "test")


def main() -> None:
    """Print one `name==version` a line."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in EXTRAS:
        requirements += project["optional-dependencies"].get(extra, [])
    for requirement in requirements:
        match = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement)
        if match:  # an extra of our own names no version
            print("{}=={}".format(*match.groups()))


if __name__ == "__main__":
    main()
