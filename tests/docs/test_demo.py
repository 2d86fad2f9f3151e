"""The demo shows rows answered, rows handed over, and a naive cut that breaks."""

import re

import pytest
from tools import demo


@pytest.mark.filterwarnings("ignore:SelectiveClassifier")
def test_a_naive_cut_breaks_and_rows_are_handed_over(capsys, monkeypatch):
    monkeypatch.setattr(demo, "DRAWS", 20)
    demo.main()
    out = capsys.readouterr().out
    naive, promised = (int(n) for n in re.findall(r"over 3% in (\d+) of 20 draws", out))
    assert naive >= 5 > promised
    handed = [int(n) for n in re.findall(r"(\d+)% handed over", out)]
    assert 0 < handed[0] < handed[1] < 50
    assert out.count("·") > 10
