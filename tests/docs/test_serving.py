"""The service of the page on serving answers, by its own test client."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import pytest
from pyarrow import csv

import prudent
from prudent.datasets import BUNDLED

SERVICE = Path(__file__).parents[2] / "docs" / "serving" / "service.py"
WHY = "fastapi and httpx, of the extra `test`, are not installed"


@pytest.fixture
def service(tmp_path, monkeypatch):
    """A client of the service, and the model behind it."""
    pytest.importorskip("fastapi", reason=WHY)
    pytest.importorskip("httpx", reason=WHY)
    with warnings.catch_warnings():  # of what its client will need one day
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    from prudent.cli import main

    path = tmp_path / "model.prudent"
    fit = ["fit", "breast_cancer", "--method", "logistic", "-o", str(path)]
    with pytest.raises(SystemExit) as ended:
        main([*fit, "--promise", "error <= 5%"])
    assert ended.value.code == 0
    monkeypatch.setenv("MODEL", str(path))
    app = runpy.run_path(str(SERVICE))["app"]
    return TestClient(app), prudent.load(path)


def test_the_service_answers_as_the_model_does(service):
    client, model = service
    (sentence,) = client.get("/promise").json()
    assert sentence == str(model.guarantees_[0])
    table = csv.read_csv(BUNDLED["breast_cancer"].path).drop_columns(["diagnosis"])
    table = table.select([*reversed(table.column_names)]).slice(0, 100)
    answers = client.post("/predict", json=table.to_pylist()).json()
    pairs = zip(model.predict(table).tolist(), model.answers(table), strict=True)
    assert answers == [label if known else None for label, known in pairs]
    (one,) = client.post("/predict", json=table.slice(0, 1).to_pylist()).json()
    assert one == answers[0]


def test_a_missing_column_is_the_fault_of_the_request(service):
    client, _ = service
    refused = client.post("/predict", json=[{"mean_radius": 1.0}])
    assert refused.status_code == 422
    assert "the table has no column" in refused.json()["detail"]


@pytest.mark.parametrize("cells", [(1.0, "big"), ("big", 1.0), ("big", "big")])
def test_a_word_among_numbers_is_the_fault_of_the_request(service, cells):
    client, _ = service
    table = csv.read_csv(BUNDLED["breast_cancer"].path).drop_columns(["diagnosis"])
    (row,) = table.slice(0, 1).to_pylist()
    refused = client.post("/predict", json=[row | {"mean_area": c} for c in cells])
    assert refused.status_code == 422


def test_the_example_is_short():
    assert len(SERVICE.read_text(encoding="utf-8").splitlines()) <= 32
