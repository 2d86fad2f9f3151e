"""How many functions, files and levels of prudent a fit passes through.

Run: python -m tools.trace_fit. The goal of a split-conformal fit is at most 20
functions in 6 files, 6 deep.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import prudent

PACKAGE = str(Path(prudent.__file__).parent)


def traced(call: Callable[[], Any]) -> tuple[list[str], int]:
    """Functions of the package that a call enters, by file, and how deep it goes.

    Comprehensions and imports are no functions of their own.
    """
    entered: dict[str, None] = {}
    depth = deepest = 0

    def watch(frame: Any, event: str, argument: object) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        named = not code.co_name.startswith("<") and code.co_filename.startswith(
            PACKAGE
        )
        if event == "call" and named:
            depth += 1
            deepest = max(deepest, depth)
            file = Path(code.co_filename).relative_to(PACKAGE)
            entered.setdefault(f"{file}: {code.co_qualname}")
        elif event == "return" and named:
            depth -= 1

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(entered), deepest


def split_fit() -> tuple[list[str], int]:
    """The trace of a split-conformal fit around a model of scikit-learn."""
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000)

    wrapper = prudent.ConformalClassifier(model, method="split", random_state=0)

    def fit() -> None:
        wrapper.fit(X, y)

    fit()  # imports on demand are not the fit's
    return traced(fit)


def main() -> None:
    """Print the functions of a split-conformal fit and the three figures."""
    functions, depth = split_fit()
    files = {function.split(":")[0] for function in functions}
    print(*functions, sep="\n")
    print(f"{len(functions)} functions, {len(files)} files, depth {depth}")


if __name__ == "__main__":
    main()
