"""The pages in a real browser: laid out, printed, and moved by keyboard and pointer."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from tests.chromium import CHROMIUM, SHEET, Browser
from tests.report.conftest import hostile_comparison

from prudent import ThresholdBands, compare
from prudent.cli import main
from prudent.report.explorer import explorer_page, limits_at, seen_at

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

# Texts of cells and verdicts that are cut, and captions of tables wider than their box.
MEASURE = """
(() => {
  const shown = (part) => part.checkVisibility();
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const texts = "th, td, .verdict, h1, h2, p, li, dt, dd, pre, label, caption";
  return {
    cut: all(texts)
      .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
      .map((e) => e.textContent),
    wide: all("table").filter((table) => {
      const box = table.closest(".scroll") || table.parentElement;
      return table.getBoundingClientRect().width > box.clientWidth + 1;
    }).map((table) => table.textContent.trim().slice(0, 30)),
    beyond: document.documentElement.scrollWidth - innerWidth,
    cells: all("th, td").length,
  };
})()
"""
UNFOLD = """
for (const part of document.querySelectorAll("details")) part.open = true;
for (const button of document.querySelectorAll("button.more")) button.click();
"""
PAGES = (
    *("compare", "sets", "detect", "monitor", "broken", "certify", "audit"),
    *("card", "card_of_subgroups"),
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


def prudent(*arguments):
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments), "--quiet"])
    return end.value.code


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report of each kind, as the commands write them."""
    folder = tmp_path_factory.mktemp("pages")
    page = {name: folder / f"{name}.html" for name in PAGES}
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    table = X.assign(
        diagnosis=np.where(y == 0, "malignant", "benign"),
        ward=np.where(np.arange(len(y)) % 3 == 0, "north", "south"),
    ).sample(frac=1, random_state=0)
    table[:380].to_csv(folder / "old.csv", index=False)
    table[380:].to_csv(folder / "new.csv", index=False)
    turned = table[380:].copy()
    turned.iloc[:60, turned.columns.get_loc("diagnosis")] = "malignant"
    turned.to_csv(folder / "turned.csv", index=False)
    old, new, model = folder / "old.csv", folder / "new.csv", folder / "m.prudent"
    truth = ("--truth", "diagnosis")
    methods = ("minimax", "optimistic", "imprecise")
    compare(X, y, methods=methods, promise="error <= 5%").save_report(page["compare"])
    wish = "coverage >= 90% in every class"
    sets = compare(X, y, methods=methods, promise=wish, best=False)
    sets.save_report(page["sets"])
    fitted = prudent(
        *("fit", old, "--target", "diagnosis", "--method", "logistic"),
        *("--promise", "error <= 10%", "-o", model),
    )
    certified = prudent(
        *("certify", new, "-m", model, *truth, "--by", "ward", "--report"),
        *(page["certify"], "--json", folder / "c.json"),
        *("--thresholds", folder / "b.json"),
    )
    detected = prudent(
        *("detect", new, "--target", "diagnosis", "--normal", "benign"),
        *("--report", page["detect"]),
    )
    watched = prudent(
        *("monitor", model, "--data", new, *truth, "--state", folder / "s"),
        *("--reference", old, "--report", page["monitor"]),
    )
    broken = prudent(
        *("monitor", model, "--data", folder / "turned.csv", *truth),
        *("--state", folder / "t", "--report", page["broken"]),
    )
    audited = prudent(
        *("audit", "--method", "minimax", "--laws", "line,normal", "--sizes", "20"),
        *("--budget", "10", "--report", page["audit"]),
    )
    cards = (
        prudent("card", model, "-o", page["card"]),
        prudent(
            *("card", model, "--certificate", folder / "c.json"),
            *("-o", page["card_of_subgroups"]),
        ),
    )
    assert (fitted, certified, detected, watched, audited, *cards) == (0,) * 7
    assert broken == 7
    return page


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_on_a_screen(browser, pages, name, width):
    browser.open(pages[name].as_uri(), width=width)
    first = browser.script(MEASURE)
    browser.script(UNFOLD)
    whole = browser.script(MEASURE)
    for measured in (first, whole):
        assert measured["cut"] == []
        assert measured["beyond"] <= 0
    # On a phone a table of many columns is moved in its own box.
    assert width == 390 or first["wide"] == []
    assert first["cells"] > 3


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_on_paper(browser, pages, name):
    """Also of what is folded on a screen and unfolded to be printed."""
    browser.open(pages[name].as_uri(), width=SHEET, media="print")
    for unfold in ("", UNFOLD):
        browser.script(unfold)
        measured = browser.script(MEASURE)
        assert (measured["cut"], measured["wide"]) == ([], [])


def sheets(printed):
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", printed))


@pytest.mark.parametrize(
    ("name", "fewest", "most"),
    [
        *[("compare", 2, 3), ("sets", 2, 4), ("detect", 1, 1), ("monitor", 1, 2)],
        *[("broken", 1, 1), ("certify", 2, 2), ("audit", 1, 2), ("card", 1, 1)],
    ],
)
def test_a_report_prints_on_few_sheets(browser, pages, name, fewest, most):
    """What follows the answer begins on its sheet, and does not leave it half empty."""
    browser.open(pages[name].as_uri())
    assert fewest <= sheets(browser.printed()) <= most


def test_all_methods_print_on_four_sheets_and_more_where_nothing_is_folded(
    browser, comparison, tmp_path
):
    browser.open(comparison.save_report(tmp_path / "folded.html").as_uri())
    assert 2 <= sheets(browser.printed()) <= 4
    whole = comparison.save_report(tmp_path / "whole.html", print_all=True)
    browser.open(whole.as_uri())
    assert sheets(browser.printed()) > 6


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_words_stand_out_from_the_page(browser, pages, name, is_dark):
    """A contrast of 4.5 at least, also of words and lines of figures on a dark page."""
    browser.open(pages[name].as_uri(), dark=is_dark)
    browser.script(UNFOLD)
    assert browser.script(CONTRAST) == []


# Texts whose colour is too near to the background, as WCAG 2 counts it.
CONTRAST = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (text) => {
    const [r, g, b] = parts(text).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (part) => {
    for (let at = part; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return dark ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)";
  };
  const low = [];
  for (const part of document.querySelectorAll("body *")) {
    const own = [...part.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const hidden = !part.getClientRects().length || part.closest("button:disabled");
    if (!own || hidden || part.closest("script, style, option")) continue;
    // Counts of confusions stand on the colours of their cells, dark or light.
    if (part.closest("#confusion svg")) continue;
    const style = getComputedStyle(part);
    const colour = part.closest("svg") ? style.fill : style.color;
    if (!colour.startsWith("rgb")) continue;
    const [a, b] = [light(colour), light(behind(part))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push([part.textContent.trim().slice(0, 30), contrast]);
  }
  return low;
})()
"""


# --- the page of a comparison -----------------------------------------------------


def test_a_long_table_shows_three_rows_until_all_are_asked_for(browser, pages):
    browser.open(pages["compare"].as_uri())
    shown = (
        "[...document.querySelector('table.shortened').tBodies[0].rows]"
        ".filter((row) => row.offsetParent).length"
    )
    note = "document.querySelector('caption .paper').textContent"
    assert browser.script(shown) == 3
    text = browser.script(note)
    browser.click("button.more")
    rows = browser.script(shown)
    assert rows > 3
    assert text == f" (the first three of {rows})"
    browser.click("button.more")
    assert browser.script(shown) == 3
    saving = "document.querySelectorAll('a.save:not([hidden])').length"
    assert browser.script(saving) == 2


@pytest.fixture(scope="module")
def hostile(browser, tmp_path_factory):
    """A report with hostile names."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    classes = ('"><img src=x>', "<script>alert(1)</script>")
    return hostile_comparison(20, classes).save_report(path).as_uri()


def test_hostile_names_run_nothing_and_ask_for_nothing(browser, hostile):
    browser.open(hostile)
    assert browser.said("Log.entryAdded", "Runtime.exceptionThrown") == []
    assert (
        browser.said("Runtime.consoleAPICalled", "Page.javascriptDialogOpening") == []
    )
    asked = [
        event["request"]["url"] for event in browser.said("Network.requestWillBeSent")
    ]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    name = "JSON.parse(document.getElementById('prudent-data').textContent)"
    assert browser.script(f"{name}.data.classes[0]") == '"><img src=x>'
    assert browser.script(MEASURE)["beyond"] <= 0


def test_the_table_sorts_both_ways_and_failures_stay_comparable(browser, hostile):
    browser.open(hostile)
    heads = "[...document.querySelector('.sortable').tHead.rows[0].cells]"
    names = browser.script(f"{heads}.map((head) => head.textContent)")
    column = names.index("error")
    button = f".sortable thead th:nth-child({column + 1}) button"
    rows = "[...document.querySelectorAll('.sortable tbody tr')]"
    errors = f"{rows}.map((row) => (row.cells[{column}] || row).textContent)"
    announced = "document.querySelector('.sortable th[aria-sort]').ariaSort"
    browser.click(button)
    rising = browser.script(errors)
    assert browser.script(announced) == "ascending"
    browser.click(button)
    falling = browser.script(errors)
    assert browser.script(announced) == "descending"
    figures = [float(text.split()[0]) for text in rising if "FAILED" not in text]
    assert figures == sorted(figures)
    assert len(set(figures)) > 3
    assert falling == rising[::-1]


SLIDER = "#frontier .controls [type=range]"
READ = """
(() => {
  const seen = (table) =>
    [...table.tBodies[0].rows].filter((line) => line.checkVisibility())
      .map((line) => [...line.cells].map((cell) => cell.textContent));
  const [costs, classes] = [...document.querySelectorAll("#frontier table")].map(seen);
  return [document.querySelector("#frontier caption").textContent, costs, classes];
})()
"""


def test_the_keyboard_moves_the_promise_and_what_it_costs(browser, pages):
    browser.open(pages["compare"].as_uri())
    as_asked = browser.script(READ)
    data = "JSON.parse(document.getElementById('prudent-data').textContent).frontier"
    curve = browser.script(data)
    place = curve["levels"].index(curve["asked"])
    assert "as asked for" in as_asked[0]
    assert any(wrong != "–" for *_, wrong in as_asked[1])
    browser.script(f"document.querySelector('{SLIDER}').focus()")
    for key, at in (("ArrowRight", place + 1), ("Home", 0), ("End", -1)):
        browser.press(key)
        said, lines, by_class = browser.script(READ)
        promise = curve["promises"][at]
        assert said.startswith(f"{promise}: seen in this comparison, not promised")
        assert "needs fresh rows" in said
        spoken = browser.script(f"document.querySelector('{SLIDER}').ariaValueText")
        assert spoken == promise
        for name, answered, handed_over, wrong in lines:
            share = curve["decided"][name][at]
            assert rate(answered) == pytest.approx(share, abs=5.1e-4)
            assert rate(handed_over) == pytest.approx(1 - share, abs=5.1e-4)
            errors = curve["wrong"][name][at]
            if errors is None:
                assert wrong == "–"
            else:
                assert rate(wrong) == pytest.approx(errors, abs=5.1e-4)
        for name, *shares in by_class:
            told = [of_class[at] for of_class in curve["by_class"][name]]
            assert [rate(share) for share in shares] == pytest.approx(told, abs=5.1e-4)
        assert len(lines) == len(by_class) == len(curve["decided"])
    # Paper has the promise asked for, whatever is on the screen.
    after = browser.script(READ)
    browser.script("dispatchEvent(new Event('beforeprint'))")
    assert browser.script(READ) == as_asked
    browser.script("dispatchEvent(new Event('afterprint'))")
    assert browser.script(READ) == after
    browser.press("Home")
    browser.press("ArrowRight", place)
    assert browser.script(READ) == as_asked


def test_a_method_without_its_tick_is_hidden(browser, pages):
    browser.open(pages["sets"].as_uri())
    caption, *tables = browser.script(READ)
    without = [lines[:1] + lines[2:] for lines in tables]
    for remaining in (without, tables):
        browser.click("#frontier label:nth-of-type(3) input")  # after the slider's
        assert browser.script(READ) == [caption, *remaining]


@pytest.mark.parametrize("name", ["compare", "sets"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_promise_is_cut_at_any_position(browser, pages, name, width):
    browser.open(pages[name].as_uri(), width=width)
    browser.script(f"document.querySelector('{SLIDER}').focus()")
    for key in ("Home", "End"):
        browser.press(key)
        measured = browser.script(MEASURE)
        assert measured["cut"] == []
        assert measured["beyond"] <= 0
        assert width == 390 or measured["wide"] == []


def test_without_its_script_there_is_no_slider(browser, pages):
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["compare"].as_uri())
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    hidden = f"!document.querySelector('{SLIDER}').checkVisibility()"
    assert browser.script(hidden)
    assert "as asked for" in browser.script(READ)[0]


# --- the explorer -----------------------------------------------------------------

RNG = np.random.default_rng(37)
SCORES = RNG.random(700)
FRAUD = RNG.random(700) < SCORES**3
BANDS = {
    "alarms": ThresholdBands.from_scores(SCORES, FRAUD, kind="alarms"),
    "answers": ThresholdBands.from_scores(SCORES, ~FRAUD, kind="answers"),
}
kinds = pytest.mark.parametrize("kind", BANDS)


@pytest.fixture
def explored(browser, tmp_path, kind):
    """A page with sliders, open in the browser, and its limits at every threshold."""
    bands = json.loads(json.dumps(BANDS[kind].to_dict()))
    page = tmp_path / "explorer.html"
    page.write_text(explorer_page(bands, "thresholds"), encoding="utf-8")
    browser.open(page.as_uri())
    return bands


def part(name, attribute="textContent"):
    return f"document.querySelector('[data-name=\"{name}\"]').{attribute}"


def rate(text):
    return float(text.split("\u00a0")[0]) / 100


def assert_is_said(browser, bands, prevalence=None):
    """All numbers of the page are those of the position of its slider."""
    place = int(browser.script(part("threshold", "value")))
    shown = browser.script(part("position"))
    threshold = float(bands["threshold"][place])
    assert "row)" in shown if np.isinf(threshold) else float(shown) == threshold
    assert browser.script(part("threshold", "ariaValueText")) == shown
    limits, seen = limits_at(bands, place, prevalence), seen_at(bands, place)
    for name, limit in limits.items():
        text = browser.script(part(f"{name}-limit"))
        if limit is None:
            assert text == "–"
            continue
        # Rounded to the safe side.
        safe = (
            limit - rate(text)
            if name in ("answered", "precision")
            else (rate(text) - limit)
        )
        assert -1e-9 <= safe <= 1e-3 + 1e-9
        counted = browser.script(part(f"{name}-seen"))
        if counted != "–":
            assert rate(counted) == pytest.approx(seen[name], abs=5.1e-4)
    people = limits["people"]
    rows = int(browser.script(part("queue", "value")))
    expected = "–" if people is None else str(int(np.ceil(rows * people - 1e-9)))
    assert browser.script(part("queue-text")) == expected
    return place


@kinds
def test_the_keyboard_moves_the_threshold_and_the_numbers(browser, explored):
    middle = assert_is_said(browser, explored)
    browser.script("document.querySelector('[data-name=threshold]').focus()")
    browser.press("ArrowRight", 5)
    assert assert_is_said(browser, explored) == middle + 5
    browser.press("ArrowLeft", 2)
    assert assert_is_said(browser, explored) == middle + 3
    browser.press("Home")
    assert assert_is_said(browser, explored) == 0
    browser.press("End")
    assert assert_is_said(browser, explored) == len(explored["threshold"]) - 1


@kinds
def test_the_sliders_are_reached_with_the_tabulator(browser, explored):
    names = []
    for _ in range(3):
        browser.press("Tab")
        names.append(browser.script("document.activeElement.dataset.name"))
    assert names[0] == "threshold"
    assert "capacity" in names


@kinds
def test_the_pointer_drags_the_threshold_and_the_numbers(browser, explored):
    x, y, width, height = browser.box("[data-name=threshold]")
    last = len(explored["threshold"]) - 1
    browser.pointer("mousePressed", x + width / 4, y + height / 2)
    assert assert_is_said(browser, explored) == pytest.approx(last / 4, abs=last / 20)
    browser.pointer("mouseMoved", x + width / 2, y + height / 2)
    browser.pointer("mouseMoved", x + 3 * width / 4, y + height / 2)
    browser.pointer("mouseReleased", x + 3 * width / 4, y + height / 2)
    place = assert_is_said(browser, explored)
    assert place == pytest.approx(3 * last / 4, abs=last / 20)


@kinds
def test_the_time_of_people_chooses_a_threshold_that_keeps_it(browser, explored):
    alarms = {"prevalence": 0.1} if explored["kind"] == "alarms" else {}
    if alarms:
        browser.click("[data-name=known]")
    browser.script("document.querySelector('[data-name=capacity]').focus()")
    browser.press("PageDown", 5)
    capacity = int(browser.script(part("capacity", "value"))) / 1000
    assert 0 < capacity < 1
    place = assert_is_said(browser, explored, **alarms)
    people = [
        limits_at(explored, i, **alarms)["people"]
        for i in range(len(explored["threshold"]))
    ]
    assert people[place] <= capacity
    # One position on leaves people more than they have time for.
    onwards = place - 1 if alarms else place + 1
    assert not 0 <= onwards < len(people) or people[onwards] > capacity
    browser.press("Home")
    assert "no threshold keeps this" in browser.script(part("capacity-text"))


@pytest.mark.parametrize("kind", ["alarms"])
def test_a_share_of_positive_rows_is_assumed_where_it_is_given(browser, explored):
    assert browser.script(part("share", "disabled"))
    browser.click("[data-name=known]")
    assert not browser.script(part("share", "disabled"))
    assert not browser.script(part("assumed", "hidden"))
    browser.script("document.querySelector('[data-name=share]').focus()")
    browser.press("ArrowRight", 20)
    assert browser.script(part("share-text")) == "12.0\u00a0%"
    assert_is_said(browser, explored, prevalence=0.12)
    browser.click("[data-name=known]")
    assert_is_said(browser, explored)


@kinds
def test_rows_of_a_day_are_typed_in(browser, explored):
    browser.script("document.querySelector('[data-name=queue]').select()")
    browser.ask("Input.insertText", text="250")
    assert browser.script(part("queue-rows")) == "250"
    assert_is_said(browser, explored)


@kinds
def test_without_its_script_the_page_shows_the_position_asked_for(
    browser, explored, tmp_path
):
    place = len(explored["threshold"]) // 2
    limits = limits_at(explored, place)
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open((tmp_path / "explorer.html").as_uri())
        dom = browser.ask("DOM.getDocument", depth=-1)["root"]["nodeId"]
        page = browser.ask("DOM.getOuterHTML", nodeId=dom)["outerHTML"]
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert 'class="controls" hidden' in page
    for name, limit in limits.items():
        shown = re.search(rf'data-name="{name}-limit">([^<]+)<', page)[1]
        shown = shown.replace("&nbsp;", "\u00a0")
        assert limit is None or rate(shown) == pytest.approx(limit, abs=1.1e-3)


@kinds
@pytest.mark.parametrize("width", [1280, 390])
def test_the_explorer_is_not_cut_at_any_position(browser, explored, tmp_path, width):
    browser.open((tmp_path / "explorer.html").as_uri(), width=width)
    for key in ("Home", "End"):
        browser.script("document.querySelector('[data-name=threshold]').focus()")
        browser.press(key)
        measured = browser.script(MEASURE)
        assert (measured["cut"], measured["wide"]) == ([], [])
        assert measured["beyond"] <= 0
