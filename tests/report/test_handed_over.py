"""Whom the report says to be handed over; rows of the data only where asked for."""

import re

import numpy as np
import pandas as pd
import pytest

from prudent import compare
from prudent.report import render

N = 600


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, N)
    word = np.where(np.abs(x) < 1, "<b>mid</b>", "end")
    others = {f"column {j}": rng.normal(size=N) for j in range(12)}
    frame = pd.DataFrame({**others, "x": x, "word": word})
    return frame, np.where(np.abs(x) < 1, rng.integers(0, 2, N), x > 0)


@pytest.fixture(scope="module")
def found(rows):
    return compare(
        *rows, methods=("calibrated",), baselines=("lda",), promise="error <= 10%"
    )


def part(page):
    return re.search(r'<section id="handed-over".*?</section>', page, re.S)[0]


def test_ranges_stand_beside_the_shares_of_classes(found):
    handed = part(render(found, found.to_dict()))
    method = found.rows[0].method
    assert f"<caption>Where {method} hands over more often</caption>" in handed
    line = re.search(r'<tr><th scope="row">x</th>(.*?)</tr>', handed)[1]
    value, n, inside, elsewhere = re.findall("<td>(.*?)</td>", line)
    assert re.fullmatch(r"-?[\d.]+ to [\d.]+", value)
    assert int(n) > 100
    assert int(inside.split("\xa0")[0]) > 80
    assert int(elsewhere.split("\xa0")[0]) < 60
    assert "&#39;&lt;b&gt;mid&lt;/b&gt;&#39;" in handed
    assert "Seen here, not promised" in handed


def test_rows_are_shown_where_they_are_asked_for(found, rows, tmp_path):
    X, y = rows
    plain = found.save_report(tmp_path / "plain.html").read_text(encoding="utf-8")
    assert "Some rows that" not in plain
    # Nor does the data behind the page say where they stand, and what they are.
    assert found.rows[0].examples
    named = re.findall(r'"examples":(\[.*?\])', plain)
    assert named
    assert set(named) == {"[]"}
    for given in (X, X.to_dict("list")):
        table = X if given is X else pd.DataFrame(given)
        page = found.save_report(tmp_path / "a.html", examples=table).read_text("utf-8")
        handed = part(page)
        method = found.rows[0].method
        assert f"<caption>Some rows that {method} hands over</caption>" in handed
        assert "6 columns more are not shown." in handed
        for place, label in found.rows[0].examples:
            assert str(y[place]) == label
            assert f"<td>{X['x'][place]:.4g}</td>" in handed


def test_arrays_have_examples_too(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(0, 0.7, 300) > 0).astype(int)
    found = compare(
        X, y, methods=("minimax",), baselines=("lda",), promise="error <= 10%"
    )
    page = found.save_report(tmp_path / "a.html", examples=X).read_text("utf-8")
    if found.rows[0].examples:
        place, _ = found.rows[0].examples[0]
        assert f"{X[place, 0]:.4g}" in part(page)
    with pytest.raises(ValueError, match="must be the 300 rows that were compared"):
        found.save_report(tmp_path / "a.html", examples=X[:7])


def test_nothing_is_folded_where_all_is_printed(found, tmp_path):
    page = found.save_report(tmp_path / "a.html", print_all=True).read_text("utf-8")
    assert page.count("<details") == len(re.findall("<details[^>]* open>", page)) > 5
    assert '<table class="sortable">' in page
    folded = render(found, found.to_dict())
    assert "open>" not in folded
    assert '<table class="sortable shortened">' in folded
