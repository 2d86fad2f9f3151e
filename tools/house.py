"""Count the house: the size and density of the package, beside its goals.

``python tools/house.py`` prints one table; ``python tools/house.py rooms`` counts each
folder; ``python tools/house.py records``, ``short`` and ``long`` list private records,
modules under 80 lines and functions over 60 lines.

What is counted, so that others can repeat it:

- *lines*: all lines of all ``.py`` files under ``src/prudent``.
- *docstring lines*: the lines of the string that opens a module, class or function, and
  of a bare string elsewhere in a body (a note on an attribute).
- *code lines*: lines that are neither blank, nor only a comment, nor of a docstring.
- *signature lines*: from ``def`` to the line before the first statement of the body
  (its docstring counts as one); one line where both stand on it. Decorators and the
  heads of classes are not counted.
- *import lines*: all lines of all ``import`` and ``from`` statements.
- *private record*: a frozen dataclass or a named tuple that is neither exported at the
  top of a package (listed in ``__all__`` of an ``__init__.py``, or in the table of
  public names of ``prudent/__init__.py``) nor listed in ``docs/api.rst``.
- *short module*: fewer than 80 lines, ``__init__.py`` and ``__main__.py`` apart.
- *long function*: more than 60 lines from ``def`` to its end without its docstring.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "prudent"
SHORT_MODULE = 80
LONG_FUNCTION = 60
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file of the package."""

    path: Path
    lines: list[str]
    nodes: list[ast.AST]

    @property
    def name(self) -> str:
        return str(self.path.relative_to(PACKAGE))

    @property
    def room(self) -> str:
        folder = self.path.relative_to(PACKAGE).parent
        return "." if folder == Path() else str(folder)


def read_sources() -> list[Source]:
    sources = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        sources.append(Source(path, text.splitlines(), list(ast.walk(ast.parse(text)))))
    return sources


def span(node: ast.stmt) -> set[int]:
    """Numbers of the lines of a statement, from 1."""
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def is_text(node: ast.AST) -> bool:
    """Whether a statement is only a string: a docstring or a note on an attribute."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def docstring_lines(source: Source) -> set[int]:
    numbers: set[int] = set()
    for node in source.nodes:
        if is_text(node):
            assert isinstance(node, ast.Expr)
            numbers |= span(node)
    return numbers


def code_lines(source: Source) -> set[int]:
    written = {
        number
        for number, line in enumerate(source.lines, 1)
        if line.strip() and not line.strip().startswith("#")
    }
    return written - docstring_lines(source)


def functions(source: Source) -> Iterator[Function]:
    for node in source.nodes:
        if isinstance(node, Function):
            yield node


def signature_lines(source: Source) -> set[int]:
    numbers: set[int] = set()
    for function in functions(source):
        last = max(function.lineno, function.body[0].lineno - 1)
        numbers |= set(range(function.lineno, last + 1))
    return numbers & code_lines(source)


def import_lines(source: Source) -> set[int]:
    numbers: set[int] = set()
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            numbers |= span(node)
    return numbers & code_lines(source)


def public_names(sources: list[Source]) -> set[str]:
    """Names that a user may import: from the top of a package or the reference."""
    reference = (ROOT / "docs" / "api.rst").read_text("utf-8")
    names = set(re.findall(r"^ +(?:\w+\.)*(\w+)$", reference, re.MULTILINE))
    for source in sources:
        if source.path.name != "__init__.py":
            continue
        for node in source.nodes:
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id in ("__all__", "_PUBLIC")
                for target in node.targets
            ):
                names |= {
                    item.value
                    for item in ast.walk(node.value)
                    if isinstance(item, ast.Constant) and isinstance(item.value, str)
                }
    return names


def is_record(node: ast.AST) -> bool:
    """Whether a class is a frozen dataclass or a named tuple."""
    if not isinstance(node, ast.ClassDef):
        return False
    if any(ast.unparse(base).endswith("NamedTuple") for base in node.bases):
        return True
    return any(
        isinstance(decorator, ast.Call)
        and ast.unparse(decorator.func).endswith("dataclass")
        and any(
            keyword.arg == "frozen" and ast.unparse(keyword.value) == "True"
            for keyword in decorator.keywords
        )
        for decorator in node.decorator_list
    )


def private_records(sources: list[Source]) -> list[tuple[Source, ast.ClassDef]]:
    public = public_names(sources)
    return [
        (source, node)
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
        and is_record(node)
        and node.name not in public
    ]


def short_modules(sources: list[Source]) -> list[Source]:
    return [
        source
        for source in sources
        if len(source.lines) < SHORT_MODULE
        and source.path.name not in ("__init__.py", "__main__.py")
    ]


def body_length(function: Function) -> int:
    """Lines of a function without its docstring."""
    first = function.body[0]
    docstring = len(span(first)) if is_text(first) else 0
    return len(span(function)) - docstring


def long_functions(sources: list[Source]) -> list[tuple[Source, Function]]:
    return [
        (source, function)
        for source in sources
        for function in functions(source)
        if body_length(function) > LONG_FUNCTION
    ]


def print_summary(sources: list[Source]) -> None:
    """Print each figure beside the goal of the architecture."""
    code = sum(len(code_lines(source)) for source in sources)
    docstrings = sum(len(docstring_lines(source)) for source in sources)
    signatures = sum(len(signature_lines(source)) for source in sources)
    imports = sum(len(import_lines(source)) for source in sources)
    classes = sum(
        isinstance(node, ast.ClassDef) for source in sources for node in source.nodes
    )
    lines = sum(len(source.lines) for source in sources)
    records = len(private_records(sources))
    rows = [
        ("lines under src", f"{lines}", "<= 38000"),
        ("files", f"{len(sources)}", "<= 140"),
        ("code lines", f"{code}", ""),
        (
            "signatures and imports of the code",
            f"{(signatures + imports) / code:.1%}",
            "<= 19 %",
        ),
        ("  signatures", f"{signatures / code:.1%}", ""),
        ("  imports", f"{imports / code:.1%}", ""),
        ("private records (of all classes)", f"{records} ({classes})", "<= 100"),
        ("docstring lines : code lines", f"{docstrings / code:.2f}", ">= .45"),
        ("modules under 80 lines", f"{len(short_modules(sources))}", "with a reason"),
        ("functions over 60 lines", f"{len(long_functions(sources))}", ""),
    ]
    for title, figure, goal in rows:
        print(f"{title:36s} {figure:>14s}   {goal}")


def print_rooms(sources: list[Source]) -> None:
    """Print files, lines and private records of each folder."""
    files = Counter(source.room for source in sources)
    lines = Counter[str]()
    for source in sources:
        lines[source.room] += len(source.lines)
    records = Counter(source.room for source, _ in private_records(sources))
    print(f"{'folder':28s} {'files':>5s} {'lines':>6s} {'records':>7s}")
    for room in sorted(files):
        print(f"{room:28s} {files[room]:5d} {lines[room]:6d} {records[room]:7d}")


def main(arguments: list[str]) -> None:
    sources = read_sources()
    subject = arguments[0] if arguments else "summary"
    if subject == "summary":
        print_summary(sources)
    elif subject == "rooms":
        print_rooms(sources)
    elif subject == "records":
        for source, record in private_records(sources):
            print(f"{source.name}:{record.lineno} {record.name}")
    elif subject == "short":
        for source in short_modules(sources):
            print(f"{source.name} {len(source.lines)}")
    elif subject == "long":
        for source, function in long_functions(sources):
            place = f"{source.name}:{function.lineno}"
            print(f"{place} {function.name} {body_length(function)}")
    else:
        sys.exit(f"{subject!r} is none of: summary, rooms, records, short, long.")


if __name__ == "__main__":
    main(sys.argv[1:])
