"""Fit and predict on dask collections; the fitted estimator needs no dask."""

from prudent.dask.blocks import predict
from prudent.dask.fitting import fit

__all__ = ["fit", "predict"]
