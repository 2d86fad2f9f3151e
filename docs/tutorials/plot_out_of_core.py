"""
More rows than memory
=====================

Everything the moment methods need from the rows is their :class:`class moments
<prudent.ClassMoments>`: counts, means and scatter of each class. Moments of parts add
up to the moments of the whole. So a table of any size is one pass over blocks of rows,
on one machine or on many.
"""

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits

import prudent.dask
from prudent import (
    ClassMoments,
    ImpreciseDiscriminantAnalysis,
    MinimaxProbabilityClassifier,
    OptimisticScoreClassifier,
)
from prudent.io import iter_batches

# %%
# A table in several files
# ------------------------
# Six parquet files stand in for six thousand.
X, y = load_digits(return_X_y=True)
X = X[:, X.var(axis=0) > 1]
names = [f"pixel{j}" for j in range(X.shape[1])]
folder = Path(tempfile.mkdtemp())
for number, part in enumerate(np.array_split(np.arange(len(X)), 6)):
    table = pa.table({**dict(zip(names, X[part].T, strict=True)), "digit": y[part]})
    pq.write_table(table, folder / f"part{number}.parquet")

# %%
# One pass
# --------
# :func:`prudent.io.iter_batches` reads blocks; ``reduce`` merges their moments in a
# fixed tree, so the result does not depend on luck. The blocks are not kept in memory.
batches = iter_batches(folder, target="digit", batch_rows=500)
moments = ClassMoments.reduce(ClassMoments.from_arrays(*batch) for batch in batches)
print("rows seen:", moments.count.sum(), "in", len(moments.classes), "classes")
print(
    "size of the moments:",
    len(moments.to_bytes()) // 1024,
    "kB, for any number of rows",
)

# %%
# Several models from the same pass
# ---------------------------------
# What is estimated from moments can be estimated again without the rows: another
# shrinkage, another method.
for shrinkage in (0.05, 0.2):
    model = MinimaxProbabilityClassifier(covariance=shrinkage).fit_moments(moments)
    print(f"shrinkage {shrinkage}: worst-case error {model.worst_case_error_:.3f}")
discriminant = ImpreciseDiscriminantAnalysis(covariance_type="tied")
discriminant.fit_moments(moments)

# %%
# The model is the one that ``fit`` gives on all rows.
whole = MinimaxProbabilityClassifier(covariance=0.2).fit(X, y)
print("largest difference:", np.abs(model.coef_ - whole.coef_).max())

# %%
# Prediction is a pass as well.
errors = {"minimax": 0, "imprecise": 0}
for X_block, y_block in iter_batches(folder, target="digit", batch_rows=500):
    errors["minimax"] += (model.predict(X_block) != y_block).sum()
    errors["imprecise"] += (discriminant.predict(X_block) != y_block).sum()
print({name: float(round(wrong / len(X), 3)) for name, wrong in errors.items()})

# %%
# The same on Dask
# ----------------
# ``prudent.dask.fit`` computes the moments of each block where it lies and merges them
# in the same tree. With a ``distributed.Client`` open it runs on the cluster, here on
# threads. The fitted model holds no Dask object. Twenty copies of the table stand in
# for a large one; blocks should hold at least 100 000 numbers.
rows = da.from_array(np.tile(X, (20, 1)), chunks=(9000, X.shape[1]))
labels = da.from_array(np.tile(y, 20), chunks=9000)
on_dask = prudent.dask.fit(MinimaxProbabilityClassifier(covariance=0.2), rows, labels)
print("largest difference:", np.abs(on_dask.coef_ - whole.coef_).max())
answer = prudent.dask.predict(on_dask, rows)  # lazy: a Dask array in the same blocks
print("error:", float((answer != labels).mean().compute().round(3)))

# %%
# A look at what was learned: the mean image of each class is all that is left of it,
# together with its covariance.
figure, axes = plt.subplots(1, 10, figsize=(10, 1.5))
pixels = np.flatnonzero(load_digits().data.var(axis=0) > 1)
for ax, label, mean in zip(axes, moments.classes, moments.mean, strict=True):
    image = np.zeros(64)
    image[pixels] = mean
    ax.imshow(image.reshape(8, 8), cmap="gray_r")
    ax.set(title=str(label), xticks=[], yticks=[])
plt.show()

# %%
# What needs the rows
# -------------------
# A setting that cannot be served from moments hides these methods:
# ``OptimisticScoreClassifier()`` with its default Ledoit-Wolf covariance and tuned
# threshold, the imprecise classifier with ``scale="range"``, every kernel. The error
# names the setting as its cause. ``prudent.dask.fit`` serves the default optimistic
# classifier all the same, with two passes more.
try:
    OptimisticScoreClassifier().fit_moments(moments)
except AttributeError as error:
    print(error.__cause__)
