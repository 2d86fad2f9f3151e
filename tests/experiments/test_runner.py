"""The runner of the papers' experiments and the page that it writes."""

import json
from functools import partial
from types import SimpleNamespace

import pytest
from experiments.cells import Experiment
from experiments.page import contents, natural, page, pages, section
from experiments.papers import GROUPS, HEAD
from experiments.table import Table, against, with_reasons

from experiments import __main__ as runner
from experiments import cells as store
from experiments import table as tables


def test_every_experiment_belongs_to_a_paper():
    names = runner.experiments(GROUPS)
    assert len(names) == len(set(names)) >= 14
    assert {name.split("_")[0] for name in names} == set(GROUPS)


def test_figures_within_their_error_need_no_reason():
    assert against(80.04, 80.4, 0.5) == "80.0 / 80.4 / -0.4 ± 0.5"


def test_the_papers_rounding_is_no_deviation():
    assert against(80.04, 80.0, 0.0) == "80.0 / 80.0 / 0"


def test_a_deviation_has_its_letter_or_a_mark_that_the_page_may_not_keep():
    assert against(80.04, 80.4, 0.1, "b").endswith("-0.4 ± 0.1 (b)")
    cell = against(80.04, 80.4, 0.1)
    assert cell.endswith("(?)")
    assert with_reasons(Table("t", ("x",), [[cell]]), {}).notes == (
        "(?) not explained.",
    )


def test_a_blank_of_the_paper_is_none():
    assert against(12.3, None, 0.1) == "12.3 / none"


def test_only_the_reasons_in_use_are_listed():
    rows = [[against(1.0, 2.0, 0.1, "b")], [against(1.0, 1.0, 0.1, "a")]]
    table = with_reasons(Table("t", ("x",), rows, ("note",)), {"a": "A.", "b": "B."})
    assert table.notes == ("note", "(b) B.")


def test_section_holds_all_cells_notes_and_pictures():
    text = section(Table("Title", ("x", "y"), [(1, 0.123456)], ("why",), ("p.svg",)))
    assert text.startswith("Title\n~~~~~\n")
    for part in (
        "   * - x\n     - y\n   * - 1\n     - 0.1235\n",
        "- why",
        "/images/p.svg",
    ):
        assert part in text


def test_page_has_a_heading_for_every_paper_and_the_total_time():
    found = {"minimax_x": [Table("Mine", ("a",), [(1,)])]}
    text = page(HEAD, GROUPS, found, {"minimax_x": 120.0})
    assert all(heading in text for heading, _ in GROUPS.values())
    assert text.index("Lanckriet") < text.index("Mine") < text.index("Nguyen")
    assert "2 minutes" in text


def test_each_paper_has_a_page_and_one_page_leads_to_them():
    found = {"minimax_x": [Table("Mine", ("a",), [(1,)], items=("Table 1",))]}
    texts = pages(HEAD, GROUPS, found, {"minimax_x": 120.0})
    assert set(texts) == {"", *GROUPS}
    assert "Mine\n----\n" in texts["minimax"]
    assert all("Mine" not in text for name, text in texts.items() if name != "minimax")
    for name, (heading, _) in GROUPS.items():
        assert f"   papers/{name}\n" in texts[""]
        assert f"{heading}\n{'=' * len(heading)}\n" in texts[name]
    assert "2 minutes" in texts[""]


def test_sections_are_in_the_order_of_the_paper_and_own_tables_come_last():
    found = {
        "minimax_a": [Table("Own", ("a",), [(1,)])],
        "minimax_b": [Table("F", ("a",), [(1,)], items=("Figure 1",))],
        "minimax_c": [Table("T", ("a",), [(1,)], items=("Table 2",))],
    }
    text = page("", {"minimax": ("Paper", "")}, found, {})
    assert text.index("T\n~") < text.index("F\n~") < text.index("Own\n~")


def test_contents_link_to_what_is_there_and_say_why_the_rest_is_not():
    groups = {"minimax": ("Paper", "Text.")}
    found = {"minimax_x": [Table("Mine", ("a",), [(1,)], items=("Table 2",))]}
    text = contents(groups, {"minimax": {"Table 1": "no data."}}, found)
    first, second = text.index("omitted: no data."), text.index(":ref:`Mine <papers-")
    assert first < second
    assert ".. _papers-minimax-table-2:" in section(
        found["minimax_x"][0], prefix="minimax"
    )


def test_items_are_in_the_order_of_a_paper():
    items = ["Figure A.10", "Table IX", "Figure 2", "Table V", "Figure A.9", "Table 10"]
    ordered = [
        "Table 10",
        "Table V",
        "Table IX",
        "Figure 2",
        "Figure A.9",
        "Figure A.10",
    ]
    assert sorted(items, key=natural) == ordered


COUNTS: dict[str, int] = {}


def count(name):
    COUNTS[name] = COUNTS.get(name, 0) + 1
    if COUNTS.get("fails after") == sum(
        v for k, v in COUNTS.items() if k != "fails after"
    ):
        raise KeyboardInterrupt
    return 1.5


@pytest.fixture
def two_experiments(tmp_path, monkeypatch):
    """A runner with two tiny experiments of two cells each."""
    COUNTS.clear()

    def module(name):
        name = name.removeprefix("experiments.")

        def cells(scale):
            parts = {"quick": 1, "default": 2, "full": 3}[scale]
            return {
                f"{part}": partial(count, f"{name}/{part}") for part in range(parts)
            }

        def made(found):
            item = "Table 1" if name.endswith("one") else "Table 2"
            return [Table(name, ("a",), [(sum(found.values()),)], items=(item,))]

        return SimpleNamespace(cells=cells, tables=made)

    names = ["minimax_one", "minimax_two"]
    monkeypatch.setattr(runner, "experiments", lambda _: names)
    monkeypatch.setattr(store, "import_module", module)
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(runner, "HERE", tmp_path / "experiments")
    monkeypatch.setattr(runner, "folder", lambda: tmp_path)
    (tmp_path / "docs").mkdir()
    return tmp_path


def run(*words):
    runner.main([*words, "--jobs", "1"])


def test_runs_go_on_where_they_stopped_and_the_page_comes_last(two_experiments):
    run("minimax_one")
    assert COUNTS == {"minimax_one/0": 1, "minimax_one/1": 1}
    assert not (two_experiments / "docs" / "papers.rst").exists()
    run()
    run()
    assert set(COUNTS.values()) == {1}
    assert len(COUNTS) == 4
    text = (two_experiments / "docs" / "papers/minimax.rst").read_text("utf-8")
    assert "   * - 3\n" in text


def test_an_interrupted_experiment_keeps_its_finished_cells(two_experiments):
    COUNTS["fails after"] = 2
    with pytest.raises(KeyboardInterrupt):
        run("minimax_one")
    del COUNTS["fails after"]
    run("minimax_one")
    assert COUNTS == {"minimax_one/0": 1, "minimax_one/1": 2}


def test_a_half_written_cell_is_measured_again(two_experiments):
    run("minimax_one")
    path = two_experiments / "results" / "minimax_one.jsonl"
    path.write_text(path.read_text("utf-8")[:-9], encoding="utf-8")
    run("minimax_one")
    assert COUNTS == {"minimax_one/0": 1, "minimax_one/1": 2}
    assert set(Experiment("minimax_one", "default").stored()) == {"0", "1"}


def test_an_experiment_that_only_runs_is_one_cell(two_experiments, monkeypatch):
    def made(quick):
        return Table("Whole", ("a",), [(1 if quick else 2,)], ("note",))

    monkeypatch.setattr(store, "import_module", lambda _: SimpleNamespace(run=made))
    experiment = Experiment("minimax_one", "default")
    assert list(experiment.measure(n_jobs=1)) == ["table"]
    (table,) = experiment.tables()
    assert (table.title, table.rows, table.notes) == ("Whole", [[2]], ["note"])
    assert experiment.missing() == {}


def test_full_adds_repetitions_to_the_stored_ones(two_experiments):
    run()
    run("--full")
    assert set(COUNTS.values()) == {1}
    assert len(COUNTS) == 6
    text = (two_experiments / "docs" / "papers/minimax.rst").read_text("utf-8")
    assert "   * - 4.5\n" in text


def test_tables_do_not_depend_on_which_cell_was_done_first(
    two_experiments, monkeypatch
):
    run("minimax_one")
    experiment = Experiment("minimax_one", "default")
    monkeypatch.setattr(experiment.module, "tables", list)
    path = two_experiments / "results" / "minimax_one.jsonl"
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[::-1], ""]), encoding="utf-8")
    assert experiment.tables() == ["0", "1"]


def test_time_is_stored_with_each_cell(two_experiments):
    run("minimax_two")
    lines = (two_experiments / "results" / "minimax_two.jsonl").read_text("utf-8")
    for cell in map(json.loads, lines.splitlines()):
        assert cell["seconds"] >= 0
        assert cell["value"] == 1.5


def test_a_quick_run_has_its_own_cells_and_leaves_the_page_alone(two_experiments):
    run("--quick")
    assert (two_experiments / "results" / "papers.rst").exists()
    assert not (two_experiments / "docs" / "papers.rst").exists()
    run()
    assert COUNTS["minimax_one/0"] == 2


def test_unknown_names_are_refused_before_any_work(two_experiments):
    with pytest.raises(SystemExit, match="no experiment .*'nothing'"):
        run("nothing")
    assert COUNTS == {}


def test_missing_data_are_named_before_any_work(two_experiments, monkeypatch):
    monkeypatch.setattr(runner, "folder", lambda: two_experiments / "absent")
    with pytest.raises(SystemExit, match="set PRUDENT_DATA"):
        run()
    assert COUNTS == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", runner.experiments(GROUPS))
def test_every_experiment_of_the_papers_runs_from_nothing(
    name, tmp_path, monkeypatch, benchmark_data
):
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    experiment = Experiment(name, "quick")
    keys = list(experiment.measure(n_jobs=1))
    assert set(keys) == set(experiment.tasks())
    assert all(table.rows or table.pictures for table in experiment.tables())


def test_pictures_are_the_same_bytes_on_every_run(tmp_path):
    from matplotlib.figure import Figure

    for name in ("a.svg", "b.svg"):
        figure = Figure()
        figure.subplots().plot([0, 1])
        with tables.pictures_in(tmp_path):
            assert tables.save_picture(figure, name) == name
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
