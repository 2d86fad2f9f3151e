"""`prudent audit`."""

from __future__ import annotations

import json
import re
from html import unescape

from prudent import LowDensityRejector, audit
from prudent.auditing import STANDARD

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


def test_a_random_state_that_is_given_stays_the_same_in_all_draws(prudent):
    def truth(*param):
        method = "prudent.LowDensityRejector"
        size = "--sizes", "70", "--budget", "3", "--laws", "line"
        outcome = prudent("audit", "--method", method, *param, *size, "--json", "-")
        return json.loads(outcome.out)["rows"][0]["mean_truth"]

    def known(random_state):
        detector = LowDensityRejector(random_state=random_state)
        found = audit(detector, laws=["line"], sizes=(70,), budget=3)
        return found.rows[0].mean_truth

    for seed in (1, 2):
        assert truth("--param", f"random_state={seed}") == known(seed)
    assert truth() == known(None)
    assert len({known(1), known(2), known(None)}) == 3


def test_a_broken_promise_has_its_exit_code(prudent):
    path = "auditing.methods.MuchTooSure"
    outcome = prudent("audit", "--method", path, *SMALL[:-1], "60")
    assert outcome.code == 7
    assert "worst case: The error rate is at most 0.01" in outcome.out


def test_every_law_can_be_named(prudent):
    size = ("--sizes", "20", "--budget", "1")
    outcome = prudent(
        "audit", "--method", "lda", "--laws", ",".join(STANDARD), *size
    )  # LDA promises nothing
    assert outcome.code == 0, outcome.err


def test_what_is_mistyped(prudent):
    outcome = prudent("audit", "--method", "minimax", "--laws", "nowhere")
    assert outcome.code == 2
    assert "no law 'nowhere'" in outcome.err
    outcome = prudent("audit", "--method", "minimax", "--sizes", "few")
    assert outcome.code == 2
    assert "--sizes" in outcome.err


def test_a_report_says_first_what_is_broken_and_how_to_see_it_again(prudent, tmp_path):
    path = tmp_path / "audit.html"
    outcome = prudent(
        *("audit", "--method", "auditing.methods.MuchTooSure", *SMALL[:-1], "60"),
        *("--report", str(path)),
    )
    assert outcome.code == 7
    page = path.read_text(encoding="utf-8")
    assert '<div id="card" class="card bad"' in page
    assert '<p class="verdict">Broken</p>' in page
    assert "1 of 1 line below is refuted" in page
    assert '<th scope="row">line</th><td class="broken">broken</td>' in page
    assert "A method that passes was not caught" in page
    assert 'aria-label="Dots: true rate of each promise' in page
    assert len(page) < 300_000
    embedded = re.search(r'id="prudent-data">(.*?)</script>', page, re.S)[1]
    assert json.loads(embedded)["verdict"] == "broken"
    command = re.search(r'<code id="command">(.*?)</code>', page)[1]
    words = unescape(re.sub("</?span>", "", command)).split()
    assert words[0] == "prudent"
    again = prudent(*words[1:], "--json", "-")
    (row,) = json.loads(again.out)["rows"]
    assert (row["claims"], row["broken"]) == (1, 1)


def test_a_report_of_what_was_not_caught_or_not_tested(prudent, tmp_path):
    path = tmp_path / "audit.html"
    audited = "audit", "--report", str(path), "--quiet", "--method"
    outcome = prudent(*audited, "prudent.MinimaxOutlierDetector", *SMALL)
    assert (outcome.code, outcome.err) == (0, "")
    page = path.read_text(encoding="utf-8")
    assert '<p class="verdict">No violation found</p>' in page
    assert 'id="command"' not in page
    assert prudent(*audited, "sklearn.svm.OneClassSVM", *SMALL).code == 0
    page = path.read_text(encoding="utf-8")
    assert '<p class="verdict">Nothing to test</p>' in page
    assert "<svg" not in page


def test_page_and_terminal_call_one_thing_by_one_word(prudent, tmp_path):
    path = tmp_path / "audit.html"
    outcome = prudent("audit", "--method", "minimax", *SMALL, "--report", path)
    _, heads, *_ = outcome.out.splitlines()
    page = path.read_text(encoding="utf-8")
    on_page = re.findall(r'<th scope="col">(.*?)</th>', page)
    assert " ".join(on_page).replace(" verdict", "").split() == heads.split()


def test_a_figure_of_some_lines_says_how_many_there_are(prudent, tmp_path):
    path = tmp_path / "audit.html"
    audited = ("audit", "--method", "minimax", "--budget", "1", "--report", path)

    def page(laws):
        prudent(*audited, "--sizes", "20,60,200", "--laws", laws)
        return path.read_text(encoding="utf-8")

    assert "Drawn are the first 30 of 36 lines" in page("line,normal,two points")
    assert "Drawn are" not in page("line")


def test_the_first_line_says_why_there_is_nothing_to_test(prudent, tmp_path):
    path = tmp_path / "audit.html"
    outcome = prudent("audit", "--method", "lda", *SMALL, "--report", path)
    why = "it promises nothing by itself under these laws"
    assert outcome.out == f"lda: nothing to test: {why}\n"
    assert f"{why[1:]}.</p>" in path.read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_refused_first(prudent, tmp_path):
    outcome = prudent(
        *("audit", "--method", "minimax", "--report", str(tmp_path / "no" / "a.html"))
    )
    assert outcome.code not in (0, 7)
    assert "a.html" in outcome.err
