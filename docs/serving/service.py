"""Answers of a model that `prudent fit` wrote, over HTTP."""

import os

import pyarrow as pa
from fastapi import FastAPI, HTTPException

import prudent

model = prudent.load(os.environ.get("MODEL", "model.prudent"))
app = FastAPI(title="A model that keeps a promise")


@app.get("/promise")
def promise() -> list[str]:
    """What the model promises, and what that assumes."""
    return [str(guarantee) for guarantee in model.guarantees_]


@app.post("/predict")
def predict(rows: list[dict[str, float | str | None]]) -> list[str | None]:
    """A label for each row, null where the promise does not allow an answer."""
    try:
        table = pa.Table.from_pylist(rows)
        labels = model.predict(table)
    except (ValueError, TypeError) as error:  # no such column, words among numbers
        raise HTTPException(422, str(error)) from error
    pairs = zip(labels, model.answers(table), strict=True)
    return [str(label) if answered else None for label, answered in pairs]
