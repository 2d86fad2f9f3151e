"""The plane in which classes are seen best."""

from __future__ import annotations

import numpy as np

from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray


def discriminant_axes(moments: ClassMoments) -> tuple[FloatArray, FloatArray]:
    """Two axes of a linear discriminant analysis, (d, 2), and the way back, (2, d).

    Rows times the first have uncorrelated columns of unit spread within the classes;
    plane points times the second are rows again, less what the plane leaves out. In
    coordinates where the pooled within-class covariance is the identity, the axes are
    the leading eigenvectors of the between-class scatter (Fisher 1936). Two classes
    have one such axis only; the second is then the direction, orthogonal to it, in
    which their spreads differ most. Directions without spread are left out, so there
    may be one column only. The largest entry of an axis is positive.
    """
    if len(moments.classes) < 2:
        raise ValueError("discriminant axes need rows of at least two classes.")
    within = moments.within().covariance()[0]
    scale = np.sqrt(np.diag(within))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(within / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]
    whiten = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    colour = (vectors[:, kept] * np.sqrt(values[kept])).T * scale
    means = (moments.mean - moments.pooled().mean) @ whiten
    between = (moments.weight[:, None] * means).T @ means
    axes = np.linalg.eigh(between)[1][:, :-3:-1]
    if len(moments.classes) == 2 and axes.shape[1] == 2:
        spreads = whiten.T @ moments.covariance() @ whiten
        across = np.eye(len(between)) - np.outer(axes[:, 0], axes[:, 0])
        strength, directions = np.linalg.eigh(
            across @ (spreads[1] - spreads[0]) @ across
        )
        axes[:, 1] = directions[:, np.abs(strength).argmax()]
    into = whiten @ axes
    largest = np.abs(into * scale[:, None]).argmax(axis=0)
    signs = np.where(into[largest, np.arange(into.shape[1])] < 0, -1.0, 1.0)
    return into * signs, (axes * signs).T @ colour
