"""`predict`: any method of a fitted estimator, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.dask.blocks import require_dask


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
    dask array of shape (n_samples,) or (n_samples, n_outputs), or tuple of them
        Not computed yet, in the blocks of `X`; a tuple where the method answers with
        one, as `posterior_bounds`.

    Raises
    ------
    AttributeError
        If the estimator has no such method.
    TypeError
        If `X` is no dask collection, or the answers are not arrays of one entry a row.

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
    samples = sample if isinstance(sample, tuple) else (sample,)
    if not all(
        np.shape(part)[:1] == (1,) and hasattr(part, "dtype") for part in samples
    ):
        raise TypeError(
            f"{method!r} of {type(estimator).__name__} does not answer row by row, so "
            "it cannot be asked block by block; call it on rows in memory."
        )
    stacked = _stack(blocks, sizes, apply, samples)
    return stacked if isinstance(sample, tuple) else stacked[0]


def _stack(
    blocks: Any, sizes: tuple[Any, ...], apply: Any, samples: tuple[Any, ...]
) -> tuple[Any, ...]:
    """One array for each of the `samples` of one row, of the answers of all blocks."""
    import dask.array as da
    from dask import delayed

    shared = delayed((apply, [answer[:0] for answer in samples]), traverse=False)
    answers = [delayed(_apply_to_block)(shared, block) for block in blocks]

    def joined(i: int, sample: Any) -> Any:
        parts = [
            da.from_delayed(
                answer[i], shape=(size, *sample.shape[1:]), dtype=sample.dtype
            )
            for answer, size in zip(answers, sizes, strict=True)
        ]
        return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)

    return tuple(joined(i, sample) for i, sample in enumerate(samples))


def _apply_to_block(shared: tuple[Any, Any], block: Any) -> Any:
    apply, empty = shared
    if len(block) == 0:
        return empty
    answer = apply(block)
    return answer if isinstance(answer, tuple) else (answer,)
