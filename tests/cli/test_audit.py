"""`prudent audit`."""

from __future__ import annotations

import json

SMALL = ("--laws", "line", "--sizes", "60", "--budget", "10")


def test_a_method_by_name_with_parameters(prudent):
    outcome = prudent(
        "audit", "--method", "minimax", "--param", "uncertainty=gaussian",
        "--laws", "normal", "--sizes", "60", "--budget", "4",
    )  # fmt: skip
    assert outcome.code == 0
    head, names, *rows = outcome.out.splitlines()
    assert head.startswith("minimax: no violation found: 4 rows of at most 4 draws")
    assert names.split()[:4] == ["law", "rows", "claim", "claims"]
    assert len(rows) == 4


def test_a_class_by_its_path_as_json(prudent):
    outcome = prudent(
        *("audit", "--method", "prudent.MinimaxOutlierDetector", *SMALL, "--json", "-")
    )
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["verdict"] == "no violation found"
    assert found["rows"][0]["claims"] == 10


def test_a_broken_promise_has_its_exit_code(prudent):
    path = "auditing.methods.MuchTooSure"
    outcome = prudent("audit", "--method", path, *SMALL[:-1], "60")
    assert outcome.code == 7
    assert "worst case: The error rate is at most 0.01" in outcome.out


def test_what_is_mistyped(prudent):
    outcome = prudent("audit", "--method", "minimax", "--laws", "nowhere")
    assert outcome.code == 2
    assert "no law 'nowhere'" in outcome.err
    outcome = prudent("audit", "--method", "minimax", "--sizes", "few")
    assert outcome.code == 2
    assert "--sizes" in outcome.err
