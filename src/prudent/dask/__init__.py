"""Fit and predict on dask collections; the fitted estimator needs no dask."""

from prudent.dask.fitting import fit
from prudent.dask.prediction import predict

__all__ = ["fit", "predict"]
