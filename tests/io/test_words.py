"""What words of a table may be: missing labels, names of columns, times."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.io import TableError, open_table, preparation, survey_table, training_data


@pytest.fixture
def table(tmp_path):
    def write(*lines: str):
        path = tmp_path / "table.csv"
        path.write_text("\n".join(lines) + "\n")
        return open_table(str(path))

    return write


def test_question_mark_is_a_missing_label(table):
    source = table("x,y", "1,u", "2,?", "3,v", "4,NA", "?,u")
    with pytest.raises(TableError) as error:
        training_data(source, "y")
    assert str(error.value) == (
        "1 row has no target 'y' (first at line 3). Use --missing drop-rows"
    )
    data = training_data(source, "y", missing="drop-rows")
    assert data.y.tolist() == ["u", "v", "NA"]
    assert data.rows.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    "lines",
    [
        ("5.1,3.5,setosa", "4.9,3,setosa", "7,3.2,other"),
        ("39,State-gov,<=50K", "50,Self-emp,<=50K", "28,State-gov,>50K"),
        ("p,x,s", "e,x,s", "p,b,y"),
        ("?,1.5,a", "2,3,b", "2,?,a"),
    ],
)
def test_first_line_like_the_others_is_refused(table, lines):
    with pytest.raises(TableError, match="first line looks like data: use --no-header"):
        table(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("id,2019,2020", "1,3,4", "2,5,6"),
        ("country,2019,2020", "Fiji,3,4", "Laos,5,6"),
        ("sex,male,female,y", "male,1,0,u", "female,0,1,v"),
        ("0.1,0.9,y", "a,b,u", "b,a,v"),
        ("x,y", "1,x", "2,y", "3,y"),
        ("a,b", "?,?"),
        ("a,b",) + ("1,2",) * 3,
    ],
)
def test_names_are_names(table, lines):
    assert table(*lines).names == lines[0].split(",")


TIMES = {
    "date": lambda day: f"2024-03-{day:02d}",
    "German date": lambda day: f"{day}.3.2024",
    "stamp": lambda day: f"2024-03-{day:02d}T12:30:00Z",
    "clock": lambda day: f"{day % 12}:{day:02d}",
}


@pytest.mark.parametrize("spelled", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("n_days", [10, 28])
def test_times_are_recognised(table, spelled, n_days):
    rows = [f"{spelled(1 + i % n_days)},{i % 7},{'uv'[i % 2]}" for i in range(28)]
    (note, *_) = survey_table(table("when,x,y", *rows), "y").notes
    assert note.startswith("column 'when' looks like a time")
    leaves = "--drop when leaves it out" if n_days == 10 else "dropped"
    assert leaves in note
    in_iso = spelled(1).startswith("2024-")
    assert ("--time when, written as 2026-03-02" in note) is not in_iso
    assert "--time when" in note


@pytest.mark.parametrize("word", ["3-4", "1.2.3", "12", "v1.2.2024"])
def test_other_words_are_no_times(word):
    assert not preparation.look_like_times([word, "2024-01-01"])


def test_looking_through_different_words_is_linear(tmp_path, monkeypatch):
    """The rows of a part are searched for one word and one gap, not for each word."""
    searched = []
    place = preparation._place
    monkeypatch.setattr(
        preparation, "_place", lambda *given: searched.append(1) or place(*given)
    )
    path = tmp_path / "words.csv"
    rng = np.random.default_rng(0)
    lines = [f"w{i},{x:.3f},{'uv'[i % 2]}" for i, x in enumerate(rng.normal(size=5000))]
    path.write_text("word,x,y\n" + "\n".join(lines) + "\n")
    found = survey_table(open_table(str(path)), "y")
    assert any("dropped as an identifier" in note for note in found.notes)
    assert len(searched) <= 4
