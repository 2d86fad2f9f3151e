"""The explorer: every position says what `at` says, with and without its script."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from prudent import ThresholdBands
from prudent.report.explorer import explorer, limits_at, script, seen_at

RNG = np.random.default_rng(37)
SCORES = RNG.random(700)
FRAUD = RNG.random(700) < SCORES**3
#: How a guarantee is called in the explorer.
CALLED = {
    "class error rate True": "missed",
    "class error rate False": "alarms",
    "flagged share True": "people",
    "error rate None": "error",
    "precision True": "precision",
    "miss rate None": "missed",
    "false alarm rate None": "alarms",
    "flagged share None": "people",
    "precision None": "precision",
    "selective error rate None": "error",
    "answered share None": "answered",
}


def called(promise):
    scope = promise.scope
    return CALLED[f"{promise.quantity} {bool(scope) if scope in (0, 1) else scope}"]


def detector_bands():
    return ThresholdBands.from_marked_scores(
        SCORES,
        FRAUD,
        kind="alarms",
        classes=(1, -1),
        positive=-1,
        detects=True,
        confidence=0.95,
    )


BANDS = {
    "alarms": ThresholdBands.from_scores(SCORES, FRAUD, kind="alarms"),
    "answers": ThresholdBands.from_scores(SCORES, ~FRAUD, kind="answers"),
    "detector": detector_bands(),
    "few": ThresholdBands.from_scores([0.1, 0.5, 0.5], [0, 1, 0], kind="alarms"),
}


def positions(bands, prevalence):
    """What `at` says at each position, by the names of the explorer."""
    given = {} if prevalence is None else {"prevalence": prevalence}
    # A short threshold of the file divides the rows as the exact one does.
    for threshold in bands.to_dict()["threshold"]:
        promises = bands.at(float(threshold), **given)
        yield {called(g): g for g in promises}


def check(bands, prevalence, found):
    """Figures on the safe side of `at`, by no more than the rounding of the file."""
    for limits, promised in zip(found, positions(bands, prevalence), strict=True):
        for name, promise in promised.items():
            value = limits[name]
            slack = 2e-3 if name in ("error", "precision") else 1.01e-4
            if promise.sense == "<=":
                assert promise.bound - 1e-12 <= value <= promise.bound + slack
            else:
                # A ratio of small numbers moves more.
                assert promise.bound + 1e-12 >= value >= promise.bound - 5 * slack
        if "answered" in limits:
            assert limits["people"] == pytest.approx(1 - limits["answered"])


CASES = pytest.mark.parametrize(
    ("name", "prevalence"),
    [
        ("alarms", None),
        ("alarms", 0.05),
        ("answers", None),
        ("detector", None),
        ("detector", 0.01),
        ("few", None),
    ],
)


@CASES
def test_every_position_says_what_at_says(name, prevalence):
    bands = BANDS[name]
    file = bands.to_dict()
    found = [limits_at(file, i, prevalence) for i in range(len(file["threshold"]))]
    check(bands, prevalence, found)


@CASES
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_script_says_the_same(name, prevalence):
    file = json.loads(json.dumps(BANDS[name].to_dict()))
    program = (
        f"{script()}\nconst bands = {json.dumps(file)};\n"
        "const places = bands.threshold.map((_, place) => place);\n"
        f"const given = {json.dumps(prevalence)};\n"
        "console.log(JSON.stringify(places.map((p) => "
        "[limitsAt(bands, p, given), seenAt(bands, p)])));"
        "console.log(JSON.stringify([0, 0.1, 0.35, 1].map((c) => "
        "placeFor(bands, c, given))));"
        "console.log(percent(0.0831, false), percent(0.0839, true), percent(null));"
    )
    ran = subprocess.run(
        ["node", "-e", program], capture_output=True, text=True, check=True
    )
    figures, fitted, texts = ran.stdout.splitlines()
    found = json.loads(figures)
    for place, (limits, seen) in enumerate(found):
        assert limits == pytest.approx(limits_at(file, place, prevalence), abs=1e-14)
        assert seen == pytest.approx(seen_at(file, place))
    check(BANDS[name], prevalence, [limits for limits, _ in found])
    people = [limits["people"] for limits, _ in found]
    for capacity, place in zip((0, 0.1, 0.35, 1), json.loads(fitted), strict=True):
        fits = [i for i, p in enumerate(people) if p is not None and p <= capacity]
        best = -1
        if fits:
            best = fits[-1] if BANDS[name].kind == "answers" else fits[0]
        assert place == best
    assert texts == "8.4\u00a0% 8.3\u00a0% –"


@pytest.mark.parametrize("name", list(BANDS))
def test_a_page_is_complete_without_its_script(name):
    bands = BANDS[name]
    page = explorer(bands.to_dict(), 0.4)
    assert len(page) < 24_000
    assert not re.search(r"(https?:)?//[a-z]|src=|import ", page.replace("// ", ""))
    shown = re.search(r'data-name="position">([^<]+)<', page)[1]
    promised = {called(g): g for g in bands.at(float(shown))}
    for line, promise in promised.items():
        text = re.search(rf'data-name="{line}-limit">([\d.]+)\u00a0%', page)[1]
        rate = float(text) / 100
        if promise.sense == "<=":
            assert promise.bound <= rate + 1e-12
        else:
            assert promise.bound >= rate - 1e-12
        assert abs(promise.bound - rate) < 6e-3
    assert page.count("<input") == page.count("aria-label") - 1 + page.count(
        'data-name="known"'
    ) + page.count('data-name="queue"')
    assert 'class="controls" hidden' in page  # which the script shows
    assert "seen here, not promised" in page


@pytest.mark.parametrize("name", BANDS)
def test_the_threshold_of_a_model_is_shown_first(name):
    """The position shown has the model's own counts, wherever its threshold lies."""
    bands = BANDS[name]
    frame = bands.frame().to_pydict()
    columns = ["missed", "false alarms"]
    if bands.kind == "answers":
        columns = ["wrong", "answered"]
    for row in range(0, len(frame["threshold"]), 7):
        counts = [frame[column][row] for column in columns]
        own = bands.threshold_with(counts)
        assert own == frame["threshold"][row]
        limits = bands.to_dict(own)
        assert len(limits["threshold"]) == len(bands.to_dict()["threshold"]) <= 256
        page = explorer(limits, own, beside_card=True)
        shown = re.search(r'data-name="position">([^<]+)<', page)[1]
        place = list(map(str, limits["threshold"])).index(shown)
        assert limits["violations"][place][:2] == counts
        assert "model's own threshold" in page
    assert bands.threshold_with((-1, 0)) is None
    assert "no single threshold" in explorer(bands.to_dict(), None, beside_card=True)


@pytest.mark.parametrize("name", BANDS)
def test_no_line_ends_between_a_figure_and_its_percent_sign(name):
    page = explorer(BANDS[name].to_dict(), beside_card=True)
    without_data = re.sub(r'<script type="application/json">.*?</script>', "", page)
    assert "90\u00a0%" in page
    assert " %" not in without_data


def test_data_cannot_end_its_element():
    bands = ThresholdBands.from_scores(
        SCORES, np.where(FRAUD, "</script>", "a"), kind="alarms", positive="</script>"
    )
    page = explorer(bands.to_dict())
    assert page.count("</script>") == 2
    assert "&lt;/script&gt;" in page


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_thresholds_beyond_every_score_are_said_in_words():
    calls = '["0.5", "-Infinity", "Infinity"].map(thresholdText)'
    program = f"{script()}\nconsole.log(JSON.stringify({calls}));"
    ran = subprocess.run(
        ["node", "-e", program], capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == [
        "0.5",
        "\u2212\u221e (every row)",
        "\u221e (no row)",
    ]
