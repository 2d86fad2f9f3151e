"""`predict`: any method of a fitted estimator, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.dask.rows import require_dask

__all__ = ["predict"]


def predict(estimator: Any, X: Any, method: str = "predict") -> Any:
    """Apply a method of a fitted estimator to a dask collection, lazily.

    Parameters
    ----------
    estimator : fitted estimator
        Any with a method of that name.
    X : dask array or data frame of shape (n_samples, n_features)
        Rows.
    method : str, default="predict"
        Such as "predict_proba", "predict_set" or "decision_function".

    Returns
    -------
    dask array of shape (n_samples,) or (n_samples, n_outputs)
        Not computed yet, in the blocks of `X`.

    Raises
    ------
    AttributeError
        If the estimator has no such method.
    TypeError
        If `X` is no dask collection.

    Examples
    --------
    >>> import dask.array as da
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = prudent.MinimaxProbabilityClassifier().fit(X, y)
    >>> blocks = da.from_array(X, chunks=(50, 4))
    >>> prudent.dask.predict(model, blocks).compute().shape
    (150,)
    """
    require_dask()
    apply = getattr(estimator, method)
    if not hasattr(X, "to_delayed"):
        raise TypeError(
            "`X` must be a dask array or data frame, got "
            f"{type(X).__name__}; call the estimator itself."
        )
    if hasattr(X, "columns"):
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            X = X[list(names)]
        sample = apply(X._meta_nonempty.iloc[:1])
        blocks = X.to_delayed()
        sizes: tuple[Any, ...] = (float("nan"),) * len(blocks)
    else:
        X = X.rechunk({1: -1})
        sample = apply(np.zeros((1, X.shape[1])))
        blocks = [block for (block,) in X.to_delayed()]
        sizes = X.chunks[0]
    return _stack(blocks, sizes, apply, sample)


def _stack(blocks: Any, sizes: tuple[Any, ...], apply: Any, sample: Any) -> Any:
    import dask.array as da
    from dask import delayed

    function = delayed(_apply_to_block)
    outputs = sample.shape[1:]
    shared = delayed(apply)
    arrays = [
        da.from_delayed(
            function(shared, block, outputs, sample.dtype),
            shape=(size, *outputs),
            dtype=sample.dtype,
        )
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def _apply_to_block(apply: Any, block: Any, outputs: Any, dtype: Any) -> Any:
    if len(block) == 0:
        return np.empty((0, *outputs), dtype=dtype)
    return apply(block)
