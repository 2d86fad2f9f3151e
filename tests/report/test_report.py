import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import html5lib
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from tests.report.conftest import hostile_comparison

from prudent import compare
from prudent.evaluation.records import Failure
from prudent.report import render as render_findings
from prudent.report.page import LONGEST_NAME, to_svg

SECTIONS = [
    *("answer", "frontier", "promises", "handed-over", "errors", "room", "shift"),
    *("sets", "false-alarms", "regions", "confusion", "time", "data", "appendix"),
]


def render(comparison):
    """The page of a comparison."""
    return render_findings(comparison, comparison.to_dict())


LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
HOSTILE = ('"><img src=x>', "<script>alert(1)</script>", "$x^2$", "a&b")


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text outside them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page(comparison):
    return render(comparison)


@pytest.fixture(scope="module")
def hostile_page():
    return render(hostile_comparison(500, HOSTILE + LETTERS[4:]))


def embedded(page):
    return json.loads(re.search(r'id="prudent-data">(.*?)</script>', page, re.S)[1])


def test_no_line_ends_between_a_figure_and_its_unit(page):
    text = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", "", page, flags=re.DOTALL)
    assert re.search(r"\d\u00a0%", text)
    assert re.findall(r"\d (?:%|ms\b|s\b|kB\b)", text) == []


def test_page_is_valid_html(page):
    html5lib.HTMLParser(strict=True).parse(page)


def test_page_with_hostile_names_is_valid_html(hostile_page):
    html5lib.HTMLParser(strict=True).parse(hostile_page)


def test_all_sections_are_there_in_order(page):
    assert re.findall(r'<section id="([^"]+)"', page) == SECTIONS


@pytest.mark.parametrize("which", ["page", "hostile_page"])
def test_nothing_points_outside_the_page(which, request):
    tags = Elements(request.getfixturevalue(which)).tags
    targets = [
        value
        for _, attributes in tags
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "srcset", "data", "action")
    ]
    assert targets
    assert {t for t in targets if not t.startswith(("#", "data:image/png"))} == set()


def test_page_names_no_address_at_all(page):
    assert "://" not in page


def test_policy_allows_the_script_of_the_page_and_nothing_else(page):
    script = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert len(script) == 1
    assert policy.replace("&#39;", "'") == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'"
    )


def test_no_inline_handlers(hostile_page):
    attributes = {name for _, found in Elements(hostile_page).tags for name in found}
    assert {name for name in attributes if name.startswith("on")} == set()


def test_hostile_names_open_no_element(hostile_page):
    tags = [tag for tag, _ in Elements(hostile_page).tags]
    assert tags.count("script") == 3
    assert "img" not in tags
    assert "b" not in tags


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_read_as_they_are(hostile_page, label):
    assert label in Elements(hostile_page).text


def test_every_figure_has_a_text_alternative(page):
    figures = [found for tag, found in Elements(page).tags if tag == "svg"]
    assert len(figures) == 9
    assert all(f["role"] == "img" and f["aria-label"] for f in figures)


def test_every_figure_stands_beside_a_table(page):
    for section in re.findall(r"<section.*?</section>", page, re.S):
        assert ("<figure>" not in section) or ("<table" in section)


def test_identifiers_are_unique_and_references_resolve(page):
    found = [attributes for _, attributes in Elements(page).tags]
    names = [attributes["id"] for attributes in found if "id" in attributes]
    assert len(names) == len(set(names))
    used = re.findall(r'(?:url\(|href=")#([^)"]+)', page)
    assert set(used) <= set(names)


def test_page_has_language_title_and_both_colour_schemes(page):
    assert '<html lang="en">' in page
    assert "<title>prudent: table</title>" in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_styles_do_not_leak_out_of_the_report(page):
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]*\{", "", style))
    loose = {s.strip() for s in selectors if not s.strip().startswith(".prudent")}
    assert loose == {"html"}
    assert "<style" not in re.sub(r"<head>.*?</head>", "", page, flags=re.S)


def test_iris_report_is_small(page):
    assert len(page.encode()) <= 250_000


@pytest.mark.parametrize(
    ("n_features", "classes"),
    [(4, ("a", "b")), (500, HOSTILE + LETTERS[4:]), (5000, LETTERS)],
    ids=["small", "wide", "wider"],
)
def test_report_is_within_its_budget_at_any_size(n_features, classes):
    assert len(render(hostile_comparison(n_features, classes)).encode()) <= 500_000


def test_size_does_not_grow_with_the_rows():
    sizes = [
        len(render(hostile_comparison(10, ("a", "b"), n_rows=n)))
        for n in (1000, 10_000_000)
    ]
    assert abs(sizes[0] - sizes[1]) < 2000


def test_embedded_data_are_those_of_the_comparison(comparison, page):
    found, expected = embedded(page), comparison.to_dict()
    assert [row["method"] for row in found["rows"]] == [
        row["method"] for row in expected["rows"]
    ]
    for ours, theirs in zip(found["rows"], expected["rows"], strict=True):
        assert ours["error"] == pytest.approx(theirs["error"], rel=1e-5)
        assert ours["confusion"] == theirs["confusion"]
    assert found["data"]["classes"] == list(comparison.data.classes)


def test_page_holds_no_value_of_the_data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(0, 1, (60, 3)), np.repeat([0, 1], 30)
    page = render(compare(X, y, methods=("minimax",), baselines=()))
    assert {f"{value:.5g}" for value in X.ravel()} & set(
        re.findall(r"-?\d+\.\d+", page)
    ) == set()


def test_leaderboard_is_the_table_of_the_terminal(comparison, page):
    board = re.search(r'<table class="sortable shortened">(.*?)</table>', page, re.S)[1]
    rows = re.findall(r"<tr>(.*?)</tr>", board, re.S)[1:]
    texts = [tuple(re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)) for row in rows]
    assert texts == [
        tuple(c.replace("'", "&#39;").replace(" %", "\u00a0%") for c in cells)
        for cells in comparison.leaderboard()
    ]


def test_failed_method_shows_its_reason_across_the_row(comparison):
    first, *rest = comparison.rows
    failed = replace(
        first,
        error=None,
        failure=Failure(kind="error", text="column 'b' is <constant>"),
    )
    page = render(replace(comparison, rows=(*rest, failed)))
    assert "FAILED  column &#39;b&#39; is &lt;constant&gt;</td>" in page


def test_nothing_but_failures_still_gives_a_page(comparison):
    rows = tuple(
        replace(row, error=None, failure=Failure(kind="memory", text="no memory"))
        for row in comparison.rows
    )
    page = render(replace(comparison, rows=rows, folds=()))
    html5lib.HTMLParser(strict=True).parse(page)
    assert "No method finished" in page


def test_point_methods_alone_give_a_page(comparison):
    rows = tuple(
        replace(row, asked=None, own=()) for row in comparison.rows if row.is_baseline
    )
    settings = replace(comparison.settings, promise="none")
    page = render(replace(comparison, rows=rows, settings=settings, frontier=None))
    html5lib.HTMLParser(strict=True).parse(page)
    assert "No method made a promise" in page


def test_saved_report_is_the_same_page_byte_for_byte(comparison, page, tmp_path):
    path = comparison.save_report(tmp_path / "report.html")
    assert path.read_bytes() == page.encode()


def test_notebooks_show_what_is_saved(comparison, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "prudent.report.render", lambda shown, *_, **__: shown.data.sha256
    )
    path = comparison.save_report(tmp_path / "report.html")
    assert path.read_text() == comparison._repr_html_() == comparison.data.sha256


def test_times_are_left_out_or_shown(comparison):
    assert "Times are left out" in render(comparison)
    timed = replace(
        comparison,
        rows=tuple(
            replace(row, fit_seconds=0.25, predict_seconds=1e-6)
            for row in comparison.rows
        ),
    )
    assert "250\u00a0ms" in render(timed)


@pytest.mark.slow
def test_hostile_table_is_compared_and_reported_within_the_budget():
    rng = np.random.default_rng(0)
    labels = np.array(['"><img', "<script>alert(1)</script>", *LETTERS[2:]])
    codes = np.arange(1560) % 26
    X = rng.normal(size=(1560, 500))
    X[:, :26] += 3 * np.eye(26)[codes]
    names = ["<script>", *(f"column {j}" for j in range(1, 500))]
    table = pd.DataFrame(X, columns=names)
    comparison = compare(
        *(table, labels[codes]),
        cv=2,
        methods=("optimistic",),
        baselines=("lda",),
        best=False,
    )
    page = render(comparison)
    html5lib.HTMLParser(strict=True).parse(page)
    assert len(page.encode()) <= 500_000
    assert [tag for tag, _ in Elements(page).tags].count("script") == 3
    assert all(row.error is not None for row in comparison.rows)


def test_the_promise_asked_for_is_shown_without_the_slider(comparison, page):
    """The slider is hidden until its script has the shares, which are in the data."""
    curve, found = comparison.frontier, embedded(page)["frontier"]
    assert found["promises"] == list(curve.promises)
    assert found["levels"] == pytest.approx(curve.levels)
    assert list(found["decided"]) == list(curve.decided)
    for name, shares in curve.decided.items():
        assert found["decided"][name] == pytest.approx(shares, abs=1e-6)
    section = re.search(r'<section id="frontier".*?</section>', page, re.S)[0]
    assert '<p class="controls" hidden>' in section
    (caption, body), (_, of_classes) = re.findall(
        r"<caption>(.*?)</caption>.*?<tbody>(.*?)</tbody>", section, re.S
    )
    here = curve.levels.index(curve.asked)
    assert html.unescape(caption).startswith(f"{curve.promises[here]}, as asked for")
    assert "seen in this comparison, not promised" in caption
    texts = [re.findall(r">([^<]+)</t[hd]>", row) for row in body.split("</tr>")]
    for row, line in zip(comparison.ran, texts, strict=False):
        share, wrong = curve.decided[row.method][here], row.asked.wrong_when_decided
        assert line[0] == row.method
        for text, figure in zip(line[1:], (share, 1 - share, wrong), strict=True):
            said = "–" if figure is None else f"{100 * figure:.1f}\u00a0%"
            assert text == said
    texts = [re.findall(r">([^<]+)</t[hd]>", row) for row in of_classes.split("</tr>")]
    for row, line in zip(comparison.ran, texts, strict=False):
        shares = [of_class[here] for of_class in curve.by_class[row.method]]
        assert line == [row.method, *(f"{100 * share:.1f}\u00a0%" for share in shares)]
    assert "<details" not in section


@pytest.mark.parametrize(
    ("promise", "columns"),
    [
        ("error <= 10%", ("answered", "handed over", "wrong when answered")),
        ("missed 0 <= 20%", ("others right", "others handed over or wrong")),
        ("missed 0 <= 20% and missed 1 <= 20%", ("decided", "undecided")),
    ],
)
def test_shares_are_named_after_the_promise(promise, columns):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = y[:, None] + rng.normal(0, 0.5, (300, 2))
    methods = {"methods": ("minimax",), "baselines": ("lda",), "best": False}
    page = render(compare(X, y, promise=promise, **methods))
    section = re.search(r'<section id="frontier".*?</section>', page, re.S)[0]
    names = re.findall(r'<th scope="col">([^<]+)</th>', section)
    assert tuple(names[1 : len(columns) + 1]) == columns
    assert ("other classes" in section) == ("others right" in columns)


def test_a_long_name_is_seen_to_be_cut(comparison):
    named = replace(comparison, data=replace(comparison.data, name="n" * 200))
    heading = re.search(r"<h1[^>]*>([^<]*)</h1>", render(named))[1]
    assert len(heading) == LONGEST_NAME
    assert heading.endswith("n…")


def test_texts_that_look_alike_share_their_style():
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure = Figure()
        for place in range(5):
            figure.text(place / 5, place / 5, f"<{place}>", fontsize=7)
        svg = to_svg(figure, "f", "texts")
    texts = re.findall(r"<text([^>]*)>&lt;(\d)&gt;</text>", svg)
    assert [number for _, number in texts] == list("01234")
    assert not any("style" in attributes for attributes, _ in texts)
    assert re.search(r'<g style="font-size: 7px[^"]*"><text[^>]*>&lt;0', svg)
    assert svg.count("<g") == svg.count("</g>")
