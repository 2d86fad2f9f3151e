"""The card of a report: the answer first, what it rests on, and what can be had."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

import prudent
from prudent import compare
from prudent.plots.display import COLOURS
from prudent.report import render
from prudent.report.answers import of_monitor
from prudent.report.page import _resource


def card_of(page):
    return re.search(r'<div id="card".*?</dl>.*?\n</div>', page, re.S)[0]


def plain(text):
    """Text without the spaces that keep a number and its unit on one line."""
    return text.replace("\xa0", " ")


@pytest.fixture(scope="module")
def page(comparison):
    return render(comparison, comparison.to_dict())


def test_the_answer_comes_before_everything_else(comparison, page):
    assert page.index('id="card"') < page.index("<nav") < page.index("<section")
    card = card_of(page)
    first, *_ = comparison.verdict()
    assert first.split(":")[0] in card
    assert '<p class="verdict">Not contradicted</p>' in card
    assert "Promised: coverage ≥ 90% in every class" in card
    assert "<dt>What it rests on</dt><dd>New rows come from the same source" in card
    assert "a model fitted once may do worse" in card


def test_the_command_can_be_copied(comparison):
    settings = replace(comparison.settings, next_command="prudent fit 'a <b>.csv'")
    shown = replace(comparison, settings=settings)
    page = render(shown, shown.to_dict())
    command = re.search(r'<code id="command">(.*?)</code>', page)[1]
    # Words are marked, so that no line ends within one.
    typed = re.sub("</?span>", "", command)
    assert typed == "prudent fit &#39;a &lt;b&gt;.csv&#39;"
    assert command.startswith("<span>prudent</span> <span>fit</span> ")
    assert re.search(r'<button class="copy"[^>]* hidden>', page)


def test_the_figures_can_be_saved_from_the_page(comparison, page):
    (text,) = re.findall(r'<script type="text/csv"[^>]*>(.*?)</script>', page, re.S)
    lines = [*csv.DictReader(io.StringIO(text))]
    assert [line["method"] for line in lines] == [row.method for row in comparison.rows]
    assert float(lines[0]["error"]) == pytest.approx(comparison.rows[0].error)
    for kind in ("prudent-data", "prudent-csv"):
        assert re.search(f'<a class="save" data-from="{kind}"[^>]* hidden>', page)


def test_a_promise_that_is_not_reached_comes_with_one_that_can_be_had():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = y[:, None] + rng.normal(0, 1.2, (300, 2))
    found = compare(
        X, y, methods=("minimax",), baselines=("lda",), promise="error <= 5%"
    )
    card = card_of(render(found, found.to_dict()))
    assert '<p class="verdict">Not reached</p>' in card
    assert 'class="card bad"' in card
    assert "Reachable on this table" in card or "needs" in card
    assert 'id="command"' not in card


def test_what_few_readers_need_is_folded_and_left_out_of_print(page):
    folded = re.findall(r'<section id="([\w-]+)"[^>]*>\s*<details>', page)
    assert {"shift", "confusion", "appendix", "time"} <= set(folded)
    assert not {"answer", "frontier", "promises", "handed-over"} & set(folded)
    printed = _resource("style.css").split("@media print")[1]
    assert ".prudent details:not([open]) { display: none; }" in printed
    assert ".card { break-inside: avoid-page; }" in printed


@pytest.fixture(scope="module")
def under_an_error_rate():
    X, y = load_breast_cancer(return_X_y=True)
    return compare(
        *(X, np.where(y, "benign", "malignant")),
        methods=("minimax",),
        baselines=("lda",),
        promise="error <= 5%",
    )


def test_best_has_the_confidence_to_itself(under_an_error_rate):
    found = under_an_error_rate
    card = plain(card_of(render(found, found.to_dict())))
    assert "at most 5 % the promise of best is false, with at most 5 % any" in card
    without = replace(found, rows=tuple(row for row in found.rows if not row.chooses))
    card = plain(card_of(render(without, without.to_dict())))
    assert "at most 5 % any of these promises is false." in card


def test_handed_over_rows_are_counted_by_class(under_an_error_rate):
    found = under_an_error_rate
    page = render(found, found.to_dict())
    part = re.search(r'id="handed-over".*?</section>', page, re.S)[0]
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', part)
    (line,) = [cells for name, cells in rows if name == "lda"]
    shares = [int(s) / 100 for s in re.findall(r">(\d+).%<", line)]
    (lda,) = [row for row in found.rows if row.method == "lda"]
    in_all = np.average(shares, weights=found.data.class_counts)
    assert len(shares) == 2
    assert in_all == pytest.approx(1 - lda.asked.decided, abs=0.011)


@pytest.mark.parametrize(
    ("verdicts", "drift", "said"),
    [
        (["consistent"], "drift", "Drift since row 1 062"),
        (["broken", "kept"], "drift", "Broken since row 62"),
        (["kept"], "no drift", "Kept"),
        (["consistent", "kept"], None, "Not contradicted"),
        ([], "no drift", "No drift seen"),
        ([], None, "Nothing is watched"),
    ],
)
def test_a_monitor_says_first_what_has_happened(verdicts, drift, said):
    promises = [
        {
            **{"verdict": verdict, "alarm_row": 62, "n": 10, "measured": 0.101},
            **{"quantity": "error rate", "scope": None, "bound": 0.1, "sense": "<="},
            **{"subgroup": "sex=Female" if verdict == "consistent" else None},
        }
        for verdict in verdicts
    ]
    drifted = None
    if drift is not None:
        drifted = {"verdict": drift, "alarm_row": 1062, "columns": [{}, {}]}
    data = {"promises": promises, "drift": drifted, "level": 0.05}
    worth = ["If true, this monitor ever says BROKEN with probability at most 5 %."]
    answer = of_monitor(data, ["promise"], [["a"]], worth if verdicts else [])
    assert answer.verdict == said
    about_drift = (
        "If nothing drifts, and the columns are independent of each other, it ever "
        "says drift with probability at most 5 %."
    )
    assert answer.not_promised.endswith(about_drift) == (drift is not None)
    assert ("ever says BROKEN" in answer.not_promised) == bool(verdicts)
    if verdicts == ["consistent"]:
        assert answer.sentences == [
            "Of all rows with sex=Female, 10.1 % are answered wrong (limit 10 %): not "
            "contradicted."
        ]


# --- the look -------------------------------------------------------------------------


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def schemes():
    """Colours by name: light, dark, print."""
    style = _resource("style.css")
    parts = (
        style[: style.index("@media")],
        style[style.index("prefers-color-scheme: dark") :].split("@media")[0],
        style[style.index("@media print") :],
    )
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part)) for part in parts]


@pytest.mark.parametrize("scheme", range(3))
@pytest.mark.parametrize("name", ["ink", "soft", "accent", "no", "yes"])
def test_every_text_stands_out_from_the_paper(scheme, name):
    colours = schemes()[scheme]
    assert contrast(colours[name], colours["paper"]) >= 4.5


@pytest.mark.parametrize("colour", COLOURS)
def test_no_line_is_lost_in_the_dark_or_on_paper(colour):
    light, dark, _ = schemes()
    assert contrast(colour, dark["paper"]) >= 3
    assert contrast(colour, light["paper"]) >= 2.2  # with a marker and a dash each


def test_no_text_is_made_faint_by_opacity():
    assert "opacity" not in _resource("style.css")


def test_displays_and_reports_share_one_style_file(comparison):
    pyplot.switch_backend("agg")
    display = prudent.plots.CostCurveDisplay.from_comparison(comparison)
    drawn = [line.get_color() for line in display.lines_]
    assert drawn == list(COLOURS[: len(drawn)])
    page = render(comparison, comparison.to_dict())
    assert all(f"stroke: {colour}" in page for colour in drawn)


def test_a_report_stays_small(page):
    assert len(page.encode()) <= 300_000


def test_a_report_of_many_promises_stays_small():
    """Twelve classes, each with a promise of its own by each method."""
    rng = np.random.default_rng(0)
    y = np.repeat([f"class number {k}" for k in range(12)], 40)
    X = rng.normal(size=(y.size, 9)) + np.repeat(rng.normal(size=(12, 9)), 40, axis=0)
    # Copies stand for the methods that would take a minute here.
    comparison = compare(
        X,
        y,
        methods=[(f"naive bayes {n}", GaussianNB()) for n in range(12)],
        baselines="lda",
        promise="coverage >= 90% in every class",
        best=False,
        cv=2,
    )
    page = render(comparison, comparison.to_dict())
    assert len(page.encode()) <= 300_000
    text = re.search(r'id="prudent-data">(.*?)</script>', page, re.S)[1]
    for row in json.loads(text)["rows"]:
        first, *others = row["asked"]["items"]
        assert {*first} > {*others[0]} >= {"scope", "bound", "measured", "interval"}


def test_the_embedded_data_is_whole(page):
    text = re.search(r'id="prudent-data">(.*?)</script>', page, re.S)[1]
    assert set(json.loads(text)) >= {"rows", "data", "settings"}
