"""The page that sets other libraries beside ours quotes what was measured."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiments.__main__ import experiments
from experiments.certification_sets import measure
from experiments.peers import GROUPS, HEAD
from experiments.peers_subgroups import by_certify

from prudent.core.binomial import upper_limit

PAGE = Path(__file__).parents[2] / "docs" / "peers.rst"
TEXT = " ".join(HEAD.split())


def table(title):
    """Lines of the table of the page whose title starts so, without their heads."""
    page = PAGE.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    body = page.split(f"\n{title}")[1].split(".. list-table::")[1].split("\n\n")[1]
    rows = [row.strip().splitlines() for row in body.split("   * ")[2:]]
    return [[cell.strip().removeprefix("- ") for cell in row] for row in rows]


def figures_of(row):
    """What the text's tables say after the words that a row begins with."""
    return TEXT.split(f"* - {row} - ")[1].split(" * - ")[0]


def test_figures_of_the_text_stand_in_the_tables():
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    tables = page.removeprefix(HEAD).replace("\N{NO-BREAK SPACE}", " ")
    quoted = re.findall(r"\b\d\.\d{3}\b|\b\d+ of \d+\b", HEAD)
    assert len(quoted) > 15
    assert [figure for figure in quoted if figure not in tables] == []


def test_every_experiment_of_the_page_is_on_it():
    names = experiments(GROUPS)
    assert {"peers_answers", "peers_subgroups"} <= set(names)
    assert {line[0] for line in table("What the run cost")} == {*names, "all"}


def test_every_loss_of_size_is_a_cross_in_the_picture():
    page = PAGE.read_text(encoding="utf-8")
    assert "MAPIE's rank" in page
    assert "At an equal promise" in page
    pictures = re.findall(r"figure:: (images/\w+\.svg)", page)
    assert len(pictures) == 6
    assert all((PAGE.parent / picture).is_file() for picture in pictures)
    drawn = (PAGE.parent / "images" / "guide_sizes.svg").read_text(encoding="utf-8")
    assert "ours larger" in drawn


def test_answers_of_the_text_are_those_of_the_table():
    lines = table("Answers with at most 5% wrong")
    held_out = [line[0].split(",")[0] for line in lines]
    row = f"answers with at most 5 % wrong; {', '.join(held_out)} held-out rows"
    _, ours, peer, cut, more_less, *false = zip(*lines, strict=True)
    assert f"answers {', '.join(ours)}; less than SGR on no table" in figures_of(row)
    assert all(cell.endswith(" / 0") for cell in more_less)
    assert f"SGR, at the same promise: {', '.join(peer)}" in TEXT
    worst = [max(int(re.search(r"(\d+) of 200", c)[1]) for c in row) for row in false]
    text = figures_of("false promises of answers")
    assert f"SGR: at most {worst[1]} of 200" in text
    assert f"at most {worst[0]} of 200, where 10 may be" in TEXT
    text = figures_of("answers without a promise")
    share, most = false[2][1].split("; ")
    assert f"answers {cut[1]} of the rows with 300 held out" in text
    assert f"in {share} of the draws, in {most} on one table" in text
    each = [line[2] for line in table("Answered on each table")]
    assert sum(cell.startswith("0.000") for cell in each) == 5
    assert sum("/" in cell for cell in each) == 15


def test_limits_of_the_text_are_those_of_the_table():
    lines = table("Limits of the error in six subgroups")
    text = " ".join(TEXT.split("limits of the error in six subgroups")[1].split())
    ours, each, joint = (lines[i::3] for i in range(3))
    assert [row[0] for row in ours] == ["500", "2000"]

    def listed(rows):
        return ", ".join(row[2] for row in rows)

    assert f"one too low in {listed(ours)} draws" in text
    assert f"in {listed(each)}, and with the level shared" in text
    assert f"among the subgroups in {listed(joint)}" in text
    seconds = ", ".join(str(round(int(row[4]) / 1000)) for row in each)
    assert f"{seconds} seconds" in text
    assert f"{', '.join(row[4] for row in ours)} milliseconds" in text
    text = figures_of("limits by subgroup, of anything")
    assert f"in the mean, {joint[1][3]}, and one was too low in {joint[1][2]}" in text
    assert f"limits of shares alone; {ours[1][3]} in the mean" in TEXT


def test_times_of_the_text_are_those_of_the_tables():
    seconds = dict(
        zip(
            ("LDA", "QDA", "logistic", "minimax", "imprecise", "calibrated"),
            table("Error out of fold")[-1][1:],
            strict=False,
        )
    )
    assert f"in {seconds['logistic']} milliseconds" in TEXT
    assert f"risk calibration takes {seconds['calibrated']} milliseconds" in TEXT
    spent = {line[0]: int(line[5]) for line in table("Detectors asked for")}
    density = spent["LowDensityRejector"] / spent["KDE, held-out cut"]
    assert 6.5 < density < 8
    assert "in a seventh of the time" in TEXT
    methods = (PAGE.parent / "methods.rst").read_text(encoding="utf-8")
    assert "ranks as well in a seventh of the time" in " ".join(methods.split())
    assert "take less than a tenth of the time" in TEXT
    for peer in ("PyOD KNN", "LOF"):
        assert spent[peer] / spent["ConformalDetector"] < 1 / 10


def test_promises_of_the_text_are_those_of_the_table():
    lines = {line[0]: line for line in table("Promised errors")}
    assert f"held in {lines['all'][2].replace(' of 230', ' of 230 cases')}" in TEXT
    empty = [name for name, line in lines.items() if line[2].startswith("1.000")]
    assert f"on {' and '.join(empty)} they are 1 and say nothing" in TEXT


def test_the_boundary_answers_more_than_bisection_and_both_keep_the_promise():
    rng = np.random.default_rng(0)
    scores = rng.random(2000)
    wrong = rng.random(2000) > 0.6 + 0.4 * scores**0.2
    found = measure(scores, wrong, seed=0, n_held_out=300, n_draws=20)
    (ours, our_false), (peer, peer_false), (cut, cut_false) = found.values()
    assert 0 < peer <= ours < cut
    assert max(our_false, peer_false) <= 3 < cut_false


def test_limits_in_subgroups_are_those_of_all_their_claims_at_once():
    subgroup = pd.Series(["a"] * 40 + ["b"] * 60)
    y = np.arange(100) % 2
    answers = np.where(np.arange(100) < 4, 1 - y, y)
    limits = by_certify(answers, y, subgroup)
    # Errors of all rows and of two classes, in all rows and two subgroups.
    level = 0.05 / 9
    assert limits.to_dict() == pytest.approx(
        {"a": upper_limit(4, 40, level=level), "b": upper_limit(0, 60, level=level)}
    )
