"""Model files that somebody or something altered: exit code 4, and nothing written."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

ALTERATIONS = {
    "shorter": lambda values: values[:-1],
    "empty": lambda values: values[:0],
    "NaN": lambda values: np.full_like(values, np.nan),
    "transposed": lambda values: values.T.copy(),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    frame = pd.DataFrame(rng.normal(size=(300, 3)) + 2 * y[:, None], columns=[*"abc"])
    return frame.assign(y=np.where(y == 1, "sick", "well"))


@pytest.fixture
def command(prudent, tmp_path, rows):
    """Fit a model, and run one of the commands that read it on other rows."""
    rows[:200].to_csv(tmp_path / "fit.csv", index=False)
    rows[200:].to_csv(tmp_path / "new.csv", index=False)
    new, model = tmp_path / "new.csv", tmp_path / "m.prudent"
    commands = {
        "predict": ("predict", new, "-m", model, "-o", tmp_path / "out"),
        "certify": ("certify", new, "-m", model, "--target", "y"),
        "monitor": (
            *("monitor", model, "--data", new, "--target", "y"),
            *("--state", tmp_path / "out"),
        ),
        "card": ("card", model, "-o", tmp_path / "out.html"),
        "export": ("export", model, "-o", tmp_path / "out"),
    }

    def run(name):
        outcome = prudent(*commands[name])
        return outcome, sorted(path.name for path in tmp_path.glob("out*"))

    promise = ("--promise", "error <= 20%", "--method", "logistic")
    fitted = prudent(
        *("fit", tmp_path / "fit.csv", "--target", "y", *promise, "-o", model)
    )
    assert fitted.code == 0
    return run


def altered(path, change):
    """Rewrite the members of a model file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def coefficients(members):
    """Name of the array of shape (1, 3), and its values."""
    arrays = {
        name: np.load(io.BytesIO(content))
        for name, content in members.items()
        if name.endswith(".npy")
    }
    return next((name, a) for name, a in arrays.items() if a.shape == (1, 3))


@pytest.mark.parametrize("name", ["predict", "certify", "monitor"])
@pytest.mark.parametrize("how", ALTERATIONS)
def test_altered_coefficients_are_no_fault_of_the_data(command, tmp_path, how, name):
    def change(members):
        member, values = coefficients(members)
        stream = io.BytesIO()
        np.save(stream, ALTERATIONS[how](values))
        members[member] = stream.getvalue()

    altered(tmp_path / "m.prudent", change)
    outcome, written = command(name)
    assert outcome.code == 4
    assert outcome.err.count("prudent: error: ") == 1
    assert "m.prudent failed in use, or is damaged" in outcome.err
    assert written == []


@pytest.mark.parametrize("name", ["predict", "certify", "monitor", "card", "export"])
def test_altered_promises_are_refused(command, tmp_path, name):
    def change(members):
        schema = json.loads(members["schema.json"])
        text = json.dumps(schema)
        source = text[text.index('"source": ') :]
        stated, _ = json.JSONDecoder().raw_decode(source.removeprefix('"source": '))
        altered_text = text.replace(
            json.dumps(stated), json.dumps({**stated, "content": "{}"})
        )
        assert altered_text != text
        members["schema.json"] = altered_text.encode()

    altered(tmp_path / "m.prudent", change)
    outcome, written = command(name)
    assert outcome.code == 4
    assert outcome.err.count("prudent: error: ") == 1
    assert written == []


def test_data_stay_the_fault_of_the_data(prudent, tmp_path, rows):
    """A number beyond single precision is one that trees refuse in any row."""
    rows.to_csv(tmp_path / "fit.csv", index=False)
    rows[:5].assign(a=1e300).to_csv(tmp_path / "new.csv", index=False)
    forest = "sklearn.ensemble.RandomForestClassifier"
    model = tmp_path / "m.prudent"
    fitted = prudent(
        *("fit", tmp_path / "fit.csv", "--target", "y", "--method", forest),
        *("--param", f"{forest}.n_estimators=5", "-o", model),
    )
    assert fitted.code == 0, fitted.err
    outcome = prudent("predict", tmp_path / "new.csv", "-m", model)
    assert outcome.code == 3
    assert "too large" in outcome.err


def test_a_missing_cell_that_is_only_scaled_is_refused_by_name(command, tmp_path, rows):
    """Scaling leaves it as it is, and logistic regression takes none."""
    rows[200:].assign(a=np.nan).to_csv(tmp_path / "new.csv", index=False)
    outcome, written = command("predict")
    assert outcome.code == 3
    assert "100 missing values in 1 column (a: 100)" in outcome.err
    assert "drop-rows leaves the answers of such rows empty" in outcome.err
    assert written == []


@pytest.mark.parametrize("name", ["certify", "monitor"])
def test_missing_cells_are_refused_without_an_option_that_is_none(
    command, tmp_path, rows, name
):
    rows[200:].assign(a=np.nan).to_csv(tmp_path / "new.csv", index=False)
    outcome, written = command(name)
    assert outcome.code == 3
    assert "100 missing values in 1 column (a: 100)" in outcome.err
    assert "fill these cells, or leave the rows out" in outcome.err
    assert "--missing" not in outcome.err
    assert written == []
