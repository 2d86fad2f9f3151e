"""The page of what the papers describe: every item placed, every name there."""

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "coverage.rst").read_text(encoding="utf-8")
#: Items that a reading of each paper finds at least.
ITEMS = {
    "Lanckriet": 49,
    "Nguyen": 42,
    "El-Yaniv": 59,
    "Carranza": 49,
    "Pérez": 58,
}
ROLE = re.compile(r":(class|func|meth|doc):`~?([^`]+)`")
LITERAL = re.compile(r"``([^`]+)``")
TEST = re.compile(r"``(tests/[\w/]+\.py)::(\w+)``")
#: What makes the objects that users do not make themselves.
MADE_BY = {"MinimaxSolution": "solve", "SecurityCurve": "security_curve"}
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


@cache
def definitions(path):
    """Functions and constants of a file of tests, by name."""
    found = {}
    for node in ast.parse((DOCS.parent / path).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(node.value)
    return found


def words_of(node):
    """Names in a piece of code: variables, attributes, keywords, words in strings."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, (ast.keyword, ast.arg)):
            yield part.arg
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from part.value.split(", ")  # keys, and names of parametrised values


def words_used(path, name):
    """Names in a test and in what it uses of its file."""
    words, waiting = set(), [name]
    while waiting:
        for node in definitions(path).get(waiting.pop(), []):
            new = set(words_of(node)) - words
            words |= new
            waiting += new
    return words


def subjects(where):
    """All that a row names, as pairs (what it belongs to or None, name).

    Functions and classes belong to nothing; parameters, attributes and methods belong
    to a class or function.
    """
    for role, text in ROLE.findall(where):
        *owners, name = text.split(".")
        if role != "doc":
            yield owners[-1] if role == "meth" else None, name
    for text in LITERAL.findall(where):
        member = re.fullmatch(r"(?:\w+\.)*(\w+)(?:\((\w+)=\)|\.(\w+))", text)
        if member:
            yield member[1], member[2] or member[3]


def check_test(where):
    """The tests of a row exist, each uses a name of it, and each name has its test.

    The test of a parameter, attribute or method also uses what it belongs to.
    """
    pairs = list(subjects(where))
    names = {name for pair in pairs for name in pair}
    tests = []
    for path, name in TEST.findall(where):
        assert len(definitions(path).get(name, [])) == 1, (path, name)
        tests.append(words_used(path, name))
        assert names & tests[-1], (name, names)
    for owner, name in pairs:
        needed = {name} if owner is None else {MADE_BY.get(owner, owner), name}
        assert any(needed <= words for words in tests), needed


@pytest.mark.parametrize("paper", ITEMS)
def test_every_row_with_an_object_names_a_test(paper):
    ((_, rows),) = [entry for entry in papers(PAGE) if entry[0].startswith(paper)]
    silent = []
    for item, where in rows:
        objects = [name for role, name in ROLE.findall(where) if role != "doc"]
        objects += LITERAL.findall(where)
        needed = bool(objects) and not where.startswith(LEFT_OUT)
        if needed and not TEST.search(where):
            silent.append(item)
    assert silent == []


@pytest.mark.parametrize("where", [w for *_, w in ROWS if TEST.search(w)])
def test_a_test_that_a_row_names_exists_and_uses_its_object(where):
    check_test(where)


@pytest.mark.parametrize(
    "where",
    [
        ":func:`minimax.solve`. Test: ``tests/docs/test_coverage.py::test_magic``",
        ":func:`minimax.solve`. Test: "
        "``tests/docs/test_coverage.py::test_no_item_is_missing``",
        "``RejectionGame(tie_tol=)``. Test: "  # names the class only
        "``tests/oracle/test_adversarial.py::test_soft_value_equals_the_program_over_events``",
        "``RejectionGame.gap_``, ``RejectionGame(tie_tol=)``. Test: "  # only one of two
        "``tests/oracle/test_adversarial.py::test_soft_value_equals_the_program_over_events``",
        "``OptimisticScoreClassifier(mean_radius=)``. Test: "  # that of another class
        "``tests/minimax/test_classifier.py::test_least_favourable_rows_attain_the_bound``",
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
