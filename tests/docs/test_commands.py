"""Every command that a page shows is run: here, or by the test of the page."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from prudent.cli.app import COMMANDS, _run

ROOT = Path(__file__).parents[2]
# Pages whose commands are run, with what they print, by a test of their own.
ELSEWHERE = {
    "audits.rst": "tests/cli/test_audit.py",
    "scaling.rst": "tests/docs/test_scaling.py",
    "scores_from_anywhere.rst": "tests/docs/test_scores_from_anywhere.py",
}
# Pages whose commands are run here, after those that make what they start from.
HERE = {
    "README.md": (),
    "certification.rst": (),
    "choosing.rst": (
        "prudent fit table.csv --target y --method lda --promise 'error <= 10%' "
        "-o model.prudent",
        "prudent certify fresh.csv -m model.prudent --target y --json certificate.json",
        "prudent monitor model.prudent --data fresh.csv --target y --state watch.json",
    ),
    "conformal.rst": (),
    "getting_started.rst": (),
    "index.rst": (),
    "monitoring.rst": (),
    "serving.rst": (),
    "subgroups.rst": (),
}
TARGETS = dict.fromkeys(("README.md", "index.rst"), "diagnosis")
TARGETS["getting_started.rst"] = "diagnosis"
# Whole comparisons, with every method.
LONG = set(TARGETS)


def pages():
    """README and the pages of the docs, without those that a build writes."""
    every = [*(ROOT / "docs").rglob("*.rst"), ROOT / "README.md"]
    built = {"_build", "gallery", "generated"}
    return [page for page in every if built.isdisjoint(page.parts)]


def commands(page):
    """Commands at the beginning of a line of a literal block, in their order.

    Those of scores in README.md are run by the test of the page about them.
    """
    text = page.read_text("utf-8").replace("\\\n", " ")
    found = re.findall(r"^(?:\s+|\$ |\s+\$ )(prudent [a-z]+ .*)$", text, re.MULTILINE)
    scores = ("prudent promise ", "rule.json") if page.name == "README.md" else ()
    return [c for c in found if not any(word in c for word in scores)]


def write(path, columns):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines))


def fill(folder, target, *names):
    """Write tables of two classes, or of one, that are told apart."""
    labels = {"status": ("ok", "bad"), "label": ("ok", "bad"), None: ("ok",)}
    words = labels.get(target, ("low", "high"))
    for name in names:
        random = np.random.default_rng(len(name) + sum(map(ord, name)))
        n_rows = 2500 if name == "old.csv" else 300
        codes = random.integers(0, len(words), n_rows)
        columns = {
            "hours": random.normal(5 * codes).round(4),
            "years": random.normal(-5 * codes).round(4),
        }
        if target == "income":
            columns["sex"] = random.choice(["f", "m"], n_rows)
            columns["age"] = random.integers(18, 80, n_rows)
        if target:
            columns[target] = [words[code] for code in codes]
        write(folder / name, columns)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in HERE],
)
def test_commands_of_a_page_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = TARGETS.get(name, "y")
    fill(tmp_path, target, "table.csv", "fresh.csv", "patients.csv")
    fill(tmp_path, target if name in TARGETS else "income", "old.csv", "new.csv")
    fill(tmp_path, None, "normal.csv")
    fill(tmp_path, "label", "today.csv")
    (page,) = [page for page in pages() if page.name == name]
    shown = commands(page)
    assert shown
    for command in [*HERE[name], *shown]:
        if "--target status" in command:
            fill(tmp_path, "status", "table.csv")
        _, *arguments = shlex.split(command, comments=True)
        # 7 and 8: a promise is broken, or the rows have drifted.
        assert _run(arguments, debug=False) in (0, 7, 8), command


def test_no_page_with_commands_is_left_out():
    shown = {page.name for page in pages() if commands(page)}
    assert shown <= set(HERE) | set(ELSEWHERE)
    for name, test in ELSEWHERE.items():
        words = (ROOT / test).read_text("utf-8")
        assert name in words or "audit" in name, name


def test_pages_name_options_that_commands_have(capsys):
    known = set()
    for command in COMMANDS:
        assert _run([command, "--help"], debug=False) == 0
        known |= set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
    for script in [*ROOT.glob("experiments/*.py"), *ROOT.glob("benchmarks/*.py")]:
        known |= set(re.findall(r"--[a-z][a-z-]*", script.read_text("utf-8")))
    beside = [ROOT / name for name in ("CHANGELOG.md", "SECURITY.md")]
    for page in [*pages(), *beside]:
        named = re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", page.read_text("utf-8"))
        assert set(named) <= known, page
