"""The runner of the papers' experiments and the page that it writes."""

import json
from types import SimpleNamespace

import pytest
from experiments.page import page, section
from experiments.papers import GROUPS, HEAD
from experiments.table import Table, beside, explained

from experiments import __main__ as runner
from experiments import table as tables


def test_every_experiment_belongs_to_a_paper():
    names = runner.experiments(GROUPS)
    assert len(names) == len(set(names)) >= 15
    assert {name.split("_")[0] for name in names} == set(GROUPS)


def test_figures_within_their_error_need_no_reason():
    assert beside(80.04, 80.4, 0.5) == "80.0 / 80.4 / -0.4 ± 0.5"


def test_the_papers_rounding_is_no_deviation():
    assert beside(80.04, 80.0, 0.0) == "80.0 / 80.0 / +0.0 ± 0"


def test_a_deviation_without_reason_is_refused():
    with pytest.raises(ValueError, match=r"80\.0 / 80\.4 .* give a reason"):
        beside(80.04, 80.4, 0.1)


def test_only_the_reasons_in_use_are_listed():
    cells = [[beside(1.0, 2.0, 0.1, "b")], [beside(1.0, 1.0, 0.1, "a")]]
    table = explained(
        Table("t", (), (), ("note",)), ("x",), cells, {"a": "A.", "b": "B."}
    )
    assert table.notes == ("note", "(b) B.")


def test_section_holds_all_cells_notes_and_pictures():
    text = section(Table("Title", ("x", "y"), [(1, 0.123456)], ("why",), ("p.svg",)))
    assert text.startswith("Title\n~~~~~\n")
    for part in (
        "   * - x\n     - y\n   * - 1\n     - 0.1235\n",
        "- why",
        "images/p.svg",
    ):
        assert part in text


def test_page_has_a_heading_for_every_paper_and_the_total_time():
    tables = {"minimax_x": Table("Mine", ("a",), [(1,)])}
    text = page(HEAD, GROUPS, tables, {"minimax_x": 120.0})
    assert all(heading in text for heading, _ in GROUPS.values())
    assert text.index("Lanckriet") < text.index("Mine") < text.index("Nguyen")
    assert "2 minutes" in text


@pytest.fixture
def two_experiments(tmp_path, monkeypatch):
    """A runner with two tiny experiments, and how often each ran."""
    counts = {"minimax_one": 0, "minimax_two": 0}

    def module(name):
        name = name.removeprefix("experiments.")

        def run(quick):
            counts[name] += 1
            return Table(name, ("a",), [(1.5,)])

        def explain(table):
            return Table(table.title, ("a",), [(f"{table.rows[0][0]} explained",)])

        return SimpleNamespace(run=run, explain=explain)

    monkeypatch.setattr(runner, "experiments", lambda _: list(counts))
    monkeypatch.setattr(runner, "import_module", module)
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(runner, "HERE", tmp_path / "experiments")
    monkeypatch.setattr(runner, "folder", lambda: tmp_path)
    (tmp_path / "docs").mkdir()
    return tmp_path, counts


def test_runs_go_on_where_they_stopped_and_the_page_comes_last(two_experiments):
    path, counts = two_experiments
    runner.main(["minimax_one"])
    assert counts == {"minimax_one": 1, "minimax_two": 0}
    assert not (path / "docs" / "papers.rst").exists()
    runner.main([])
    runner.main([])
    assert counts == {"minimax_one": 1, "minimax_two": 1}
    assert "1.5 explained" in (path / "docs" / "papers.rst").read_text("utf-8")


def test_time_is_stored_with_the_result(two_experiments):
    path, _ = two_experiments
    runner.main(["minimax_two"])
    stored = json.loads((path / "results" / "minimax_two.json").read_text("utf-8"))
    assert stored["cpu_seconds"] >= 0
    assert stored["wall_seconds"] >= 0
    assert stored["table"]["rows"] == [[1.5]]


def test_a_quick_run_shows_what_it_measured_and_leaves_the_page_alone(two_experiments):
    path, _ = two_experiments
    runner.main(["--quick"])
    quick = (path / "results" / "papers.rst").read_text("utf-8")
    assert "1.5" in quick
    assert "explained" not in quick
    assert not (path / "docs" / "papers.rst").exists()


def test_unknown_names_are_refused_before_any_work(two_experiments):
    _, counts = two_experiments
    with pytest.raises(SystemExit, match="no experiment .*'nothing'"):
        runner.main(["nothing"])
    assert sum(counts.values()) == 0


def test_missing_data_are_named_before_any_work(two_experiments, monkeypatch):
    path, counts = two_experiments
    monkeypatch.setattr(runner, "folder", lambda: path / "absent")
    with pytest.raises(SystemExit, match="set PRUDENT_DATA"):
        runner.main([])
    assert sum(counts.values()) == 0


def test_pictures_are_the_same_bytes_on_every_run(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    monkeypatch.setattr(tables, "IMAGES", tmp_path)
    for name in ("a.svg", "b.svg"):
        figure = Figure()
        figure.subplots().plot([0, 1])
        tables.save_picture(figure, name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
