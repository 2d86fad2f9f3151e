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


@pytest.mark.slow
def test_the_audits_that_a_page_shows_find_what_it_says(tmp_path, monkeypatch):
    """No promise of ours is called broken, but for chance: not in these draws."""
    monkeypatch.chdir(tmp_path)
    (page,) = [page for page in pages() if page.name == "audits.rst"]
    for command in commands(page):
        assert _run(shlex.split(command)[1:], debug=False) == 0, command


def test_no_page_with_commands_is_left_out():
    shown = {page.name for page in pages() if commands(page)}
    assert shown == {*HERE, *ELSEWHERE, "audits.rst"}
    for name, test in ELSEWHERE.items():
        assert name in (ROOT / test).read_text("utf-8"), name


def spoken(page):
    """Text of a page in one line, without the marks of comments."""
    return " ".join(re.sub(r"^ *#", "", page.read_text("utf-8"), flags=re.M).split())


# Commands within sentences, and in tutorials, after those that make what they read.
WITHIN = {
    "docs/user_guide/time.rst": (
        "prudent fit table.csv --target ill --method logistic --promise 'error <= 20%' "
        "--time admitted -o model.prudent",
    ),
    "docs/getting_started.rst": ("prudent describe patients.csv --target diagnosis",),
    "docs/user_guide/certification.rst": (
        "prudent certify new.csv -m model.prudent --target diagnosis",
        "prudent plan --bound 0.05 --expected 0.02",
    ),
    "docs/scores_from_anywhere.rst": ("prudent export model.prudent -o rule.json",),
    "docs/tutorials/plot_choose_at_the_desk.py": (
        "prudent certify desk.csv -m fraud.prudent --truth y --positive fraud "
        "--thresholds bands.json --report desk.html",
    ),
    "docs/tutorials/plot_promise_in_production.py": (
        "prudent detect normal.csv --model-out model.prudent",
        "prudent monitor model.prudent --data today.csv --target label --normal ok "
        "--state watch.json --report watch.html",
    ),
}


@pytest.mark.parametrize("name", WITHIN)
def test_commands_within_sentences_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, "diagnosis", "patients.csv", "table.csv", "new.csv")
    fill(tmp_path, "label", "today.csv")
    fill(tmp_path, None, "normal.csv")
    fit = (
        "prudent fit table.csv --target diagnosis --method lda --promise 'error <= 9%'"
    )
    before = [f"{fit} -o model.prudent"]
    if "time" in name:
        text = Path("table.csv").read_text().replace("diagnosis", "ill").split("\n")
        days = [
            f"{line},2026-{n // 28 + 1:02}-{n % 28 + 1:02}"
            for n, line in enumerate(text[1:])
        ]
        Path("table.csv").write_text("\n".join([f"{text[0]},admitted", *days]))
        before = []
    if "desk" in name:
        for table in ("table.csv", "desk.csv"):
            fill(tmp_path, "y", table)
            text = Path(table).read_text()
            Path(table).write_text(text.replace("high", "fraud"))
        before = ["prudent fit table.csv --target y --method lda -o fraud.prudent"]
    for command in [*before, *WITHIN[name]]:
        _, *arguments = shlex.split(command)
        assert _run(arguments, debug=False) in (0, 7, 8), command
    said = spoken(ROOT / name).replace("\\ ", "")
    assert all(" ".join(command.split()) in said for command in WITHIN[name])


def test_no_command_within_a_sentence_is_left_out():
    for page in [*pages(), *(ROOT / "docs" / "tutorials").glob("*.py")]:
        for command in re.findall(r"``(prudent [a-z]+ [^`]+)``", spoken(page)):
            whole = re.search(r"\.(csv|prudent|json)\b|--bound", command)
            known = WITHIN.get(page.relative_to(ROOT).as_posix(), ())
            assert not whole or command in known, f"{page}: {command}"


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
