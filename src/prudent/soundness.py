"""Sizes and indices in a loaded model, which compiled code follows blindly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.neighbors import BallTree, KDTree
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree

BOOSTERS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
ENSEMBLES = (BaseForest, BaseGradientBoosting)
# No child, in a tree of scikit-learn.
NO_CHILD = -1


def is_sound(estimator: Any) -> bool:
    """Whether they agree in all that predicts by compiled code of scikit-learn."""
    try:
        return all(_is_sound(fitted) for fitted in _compiled(estimator))
    except Exception:  # whatever else is not as a fit leaves it
        return False


def _is_sound(fitted: Any) -> bool:
    if isinstance(fitted, BaseLibSVM):
        return _has_sound_vectors(fitted)
    if isinstance(fitted, BOOSTERS):
        return _has_sound_trees(fitted)
    if isinstance(fitted, ENSEMBLES):
        return _are_of_one_width(fitted)
    if isinstance(fitted, BaseDecisionTree):
        return _has_sound_nodes(fitted)
    return _has_sound_neighbours(fitted)


def _compiled(estimator: Any) -> Iterator[Any]:
    """Yield what predicts by compiled code of scikit-learn, inside an estimator."""
    waiting, seen = [estimator], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        compiled = (*BOOSTERS, *ENSEMBLES, BaseLibSVM, BaseDecisionTree)
        is_compiled = isinstance(item, compiled)
        if is_compiled and any(name.endswith("_") for name in vars(item)):  # fitted
            yield item
        if isinstance(item, (KDTree, BallTree)):
            yield item
        if isinstance(item, (list, tuple, set)):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, np.ndarray) and item.dtype.hasobject:
            waiting += item.ravel().tolist()
        elif is_dataclass(item):
            waiting += [getattr(item, field.name, None) for field in fields(item)]
        elif hasattr(item, "__dict__"):
            waiting += vars(item).values()


def _has_sound_vectors(machine: Any) -> bool:
    n_vectors, counts = len(machine.support_), np.asarray(machine._n_support)
    n_classes = len(counts)
    one = not hasattr(machine, "classes_")
    rows, pairs = (1, 1) if one else (n_classes - 1, n_classes * (n_classes - 1) // 2)
    width = 0 if machine.kernel == "precomputed" else machine.n_features_in_
    n_rows = 0 if machine.kernel == "precomputed" else n_vectors
    return bool(
        machine._sparse is False
        and machine.support_vectors_.shape == (n_rows, width)
        and machine._dual_coef_.shape == (rows, n_vectors)
        and machine._intercept_.shape == (pairs,)
        and machine._probA.shape in {(0,), (pairs,)}
        and machine._probA.shape == machine._probB.shape
        and (one or counts.sum() == n_vectors)
        and counts.min() >= 0
        and np.all((machine.support_ >= 0) & (machine.support_ < machine.shape_fit_[0]))
    )


def _has_sound_trees(booster: Any) -> bool:
    known, position = booster._bin_mapper.make_known_categories_bitsets()
    return known.shape[1:] == (8,) and all(
        _is_sound_tree(tree, booster.n_features_in_, len(known), position)
        for trees in booster._predictors
        for tree in trees
    )


def _is_sound_tree(tree: Any, n_features: int, n_known: int, position: Any) -> bool:
    nodes, bitsets = tree.nodes, tree.raw_left_cat_bitsets
    parents = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[parents]
    categorical = inner[inner["is_categorical"] != 0]
    # A child comes after its parent, so that following them comes to an end.
    return len(nodes) > 0 and bool(
        all(
            np.all((inner[side] > parents) & (inner[side] < len(nodes)))
            for side in ("left", "right")
        )
        and np.all((inner["feature_idx"] >= 0) & (inner["feature_idx"] < n_features))
        and np.all(categorical["bitset_idx"] < len(bitsets))
        and (not len(categorical) or bitsets.shape[1:] == (8,))
        and np.all(position[categorical["feature_idx"]] < n_known)
    )


def _are_of_one_width(ensemble: Any) -> bool:
    """Whether all trees take rows of as many columns, which only one of them checks."""
    trees = np.ravel(np.array(ensemble.estimators_, dtype=object)).tolist()
    return all(tree.n_features_in_ == ensemble.n_features_in_ for tree in trees)


def _has_sound_nodes(estimator: Any) -> bool:
    tree = estimator.tree_
    parents = np.flatnonzero(tree.children_left != NO_CHILD)
    features = tree.feature[parents]
    return bool(
        tree.node_count > 0
        and tree.n_features == estimator.n_features_in_
        and np.all((features >= 0) & (features < tree.n_features))
        # A child comes after its parent, so that following them comes to an end.
        and all(
            np.all((side[parents] > parents) & (side[parents] < tree.node_count))
            for side in (tree.children_left, tree.children_right)
        )
    )


def _has_sound_neighbours(tree: Any) -> bool:
    rows, order, nodes, bounds, _, _, n_nodes, *_, metric, _ = tree.__getstate__()
    n, d = rows.shape
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    _, weights, _ = metric.__getstate__()
    return bool(
        np.array_equal(np.sort(order), np.arange(n))
        and n_nodes == len(nodes) > 0
        and bounds.shape[1:] == (n_nodes, d)
        and np.all(2 * inner + 2 < n_nodes)
        and np.all((nodes["idx_start"] >= 0) & (nodes["idx_end"] <= n))
        and len(weights) in (0, 1, d)
        and (len(weights) != 1 or d == 1 or not weights.any())
    )
