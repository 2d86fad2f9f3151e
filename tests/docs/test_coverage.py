"""The page of what the papers describe: every item placed, every name there."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "coverage.rst").read_text(encoding="utf-8")
#: Items that a reading of each paper finds at least.
ITEMS = {
    "Lanckriet": 32,
    "Nguyen": 28,
    "El-Yaniv": 39,
    "Carranza": 43,
    "Pérez": 48,
}
ROLE = re.compile(r":(class|func|meth|doc):`~?([^`]+)`")
LITERAL = re.compile(r"``([^`]+)``")
TEST = re.compile(r"``(tests/[\w/]+\.py)::(\w+)``")
#: What a row says that has an object and no test; their number may only fall.
NO_TEST = "No test is named."
N_WITHOUT_TEST = 63
LEFT_OUT = ("Not here: ", "Not built in: ", "Not a ", "Open research")


def papers(page):
    """Title of each section and its rows, as (item, where)."""
    parts = re.split(r"\n(\S[^\n]*)\n-{5,}\n", page)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        rows = body.split("\n   * - ")[2:]  # without the directive and its head
        cells = [re.sub(r"\s+", " ", row).strip().split(" - ", 1) for row in rows]
        yield title, [tuple(cell) for cell in cells]


def resolve(name):
    """The object of a dotted name below `prudent`."""
    parts = name.split(".")
    for depth in range(len(parts), -1, -1):
        try:
            found = import_module(".".join(["prudent", *parts[:depth]]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def check_literal(text):
    """A parameter `Name(parameter=)` or an attribute `Name.attribute_` that exists."""
    parameter = re.fullmatch(r"([\w.]+)\((\w+)=\)", text)
    attribute = re.fullmatch(r"([\w.]+)\.(\w+_)", text)
    if parameter:
        assert parameter[2] in inspect.signature(resolve(parameter[1])).parameters, text
    elif attribute:
        documented = inspect.getdoc(resolve(attribute[1])) or ""
        learned = documented.split("Attributes\n----------")[1]
        assert re.search(rf"^[\w, ]*\b{attribute[2]}\b[\w, ]* :", learned, re.M), text
    elif re.match(r"[\w.]+\.\w+$", text):
        resolve(text)


def check_names(where):
    for kind, target in ROLE.findall(where):
        if kind == "doc":
            assert (DOCS / f"{target}.rst").is_file(), target
        else:
            assert callable(resolve(target)), target
    for text in LITERAL.findall(where):
        check_literal(text)


ROWS = [(title, *row) for title, rows in papers(PAGE) for row in rows]


@pytest.mark.parametrize("paper", ITEMS)
def test_no_item_is_missing(paper):
    ((title, rows),) = [entry for entry in papers(PAGE) if entry[0].startswith(paper)]
    assert len(rows) >= ITEMS[paper], title
    assert len({item for item, _ in rows}) == len(rows)


@pytest.mark.parametrize(("title", "item", "where"), ROWS, ids=lambda text: text[:40])
def test_every_item_has_names_that_exist_or_a_reason(title, item, where):
    check_names(where)
    names = ROLE.findall(where) or LITERAL.findall(where)
    reason = where.startswith(LEFT_OUT) and len(where) > 40
    assert names or reason


def check_test(where):
    """A test that the row names exists, and its code uses an object of the row."""
    for path, name in TEST.findall(where):
        source = (DOCS.parent / path).read_text(encoding="utf-8")
        functions = [
            ast.get_source_segment(source, node)
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        assert len(functions) == 1, (path, name)
        body = functions[0].split("(", 1)[1]  # its name proves nothing
        objects = [target for _, target in ROLE.findall(where)]
        objects += [re.sub(r"\(.*", "", text) for text in LITERAL.findall(where)]
        words = {text.rsplit(".", 1)[-1] for text in objects if "::" not in text}
        assert any(re.search(rf"\b{word}\b", body) for word in words), (name, words)


def test_every_row_with_an_object_names_a_test_or_says_that_none_is_named():
    silent, without = [], 0
    for _, item, where in ROWS:
        objects = [name for kind, name in ROLE.findall(where) if kind != "doc"]
        objects += LITERAL.findall(where)
        named, missing = bool(TEST.search(where)), where.endswith(NO_TEST)
        without += missing
        needed = bool(objects) and not where.startswith(LEFT_OUT)
        if named + missing > 1 or (needed and not named and not missing):
            silent.append(item)
    assert silent == []
    assert without <= N_WITHOUT_TEST


@pytest.mark.parametrize("where", [w for *_, w in ROWS if TEST.search(w)])
def test_a_test_that_a_row_names_exists_and_uses_its_object(where):
    check_test(where)


@pytest.mark.parametrize(
    "where",
    [
        ":func:`minimax.solve`. Test: ``tests/docs/test_coverage.py::test_magic``",
        ":func:`minimax.solve`. Test: "
        "``tests/docs/test_coverage.py::test_no_item_is_missing``",
    ],
)
def test_a_missing_or_unrelated_test_is_found(where):
    with pytest.raises(AssertionError):
        check_test(where)


@pytest.mark.parametrize(
    "where",
    [
        ":func:`optimistic.radius_of_truth`",
        ":class:`OmniscientClassifier`",
        ":meth:`~RejectionGame.win`",
        ":doc:`user_guide/magic`",
        "``RejectionGame(luck=)``",
        "``RejectionGame.luck_``",
        "``minimax.MinimaxSolution.luck``",
    ],
)
def test_a_name_that_does_not_exist_is_found(where):
    with pytest.raises((AssertionError, AttributeError, ModuleNotFoundError)):
        check_names(where)
