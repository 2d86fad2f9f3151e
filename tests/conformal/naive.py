"""Full conformal p-values by the definition: one fit for each row, label and bag.

Written from the definitions only: units, scatters, densities and distances of every
bag with one row deleted, computed afresh.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

TIE = 1e-9


def units(Z):
    """Rows of an augmented bag in its units, without constant columns."""
    Z = Z - Z[0]
    largest = np.abs(Z).max(axis=0)
    keep = largest > 0
    if not keep.any():
        return np.zeros((len(Z), 1))
    Z, largest = Z[:, keep], largest[keep]
    sd = largest * np.std(Z / largest, axis=0)
    return Z / 2.0 ** np.floor(np.log2(sd) + 0.5 + 1e-9)


def log_joints(rows, codes, K, x, n, covariance_type, nu, rho):
    """Log joint of x and each class under a model of the n rows of a deleted bag."""
    d = rows.shape[1]
    beta = nu / (n + 1)
    parts = [rows[codes == k] for k in range(K)]
    centred = [part - part.mean(axis=0) for part in parts if len(part)]
    pooled = sum(part.T @ part for part in centred)
    out = np.full(K, -np.inf)
    for k, part in enumerate(parts):
        N = len(part)
        if N == 0:
            continue
        f = x - part.mean(axis=0)
        S = (part - part.mean(axis=0)).T @ (part - part.mean(axis=0))
        r = N / (N + 1)
        if covariance_type in ("full", "tied"):
            if covariance_type == "full":
                G, v = S + beta * pooled + rho * np.eye(d), max(N + nu + rho, d + 1)
            else:
                G, v = pooled + rho * np.eye(d), max(n - K + rho, d + 1)
            Q = f @ np.linalg.solve(G, f)
            out[k] = (
                np.log(N)
                + gammaln(v / 2)
                - gammaln((v - d) / 2)
                + d / 2 * np.log(r)
                - np.linalg.slogdet(G)[1] / 2
                - v / 2 * np.log1p(r * Q)
            )
        elif covariance_type == "diag":
            g, v = np.diag(S) + beta * np.diag(pooled) + rho, max(N + nu + rho, 2)
            out[k] = np.log(N) + np.sum(
                gammaln(v / 2)
                - gammaln((v - 1) / 2)
                + np.log(r / g) / 2
                - v / 2 * np.log1p(r * f**2 / g)
            )
        else:
            g, v = np.trace(pooled) / d + rho, max(n - K + rho, 2)
            out[k] = (
                np.log(N)
                + gammaln(d * v / 2)
                - gammaln(d * (v - 1) / 2)
                + d / 2 * np.log(r / d)
                - d / 2 * np.log(g)
                - d * v / 2 * np.log1p(r * f @ f / (d * g))
            )
    return out


def gaussian_score(rows, codes, K, x, y, n, *, score, covariance_type, nu, rho):
    if not (codes == y).any():
        return np.inf
    joint = log_joints(rows, codes, K, x, n, covariance_type, nu, rho)
    others = np.delete(joint, y)
    if score == "density":
        return -joint[y]
    high = logsumexp(others) if score == "posterior" else others.max()
    return high - joint[y]


def ridge_prediction(rows, codes, x, y):
    """Prediction for x of the target of label y, by kernel ridge on the rows."""

    def kernel(z):
        return np.exp(-2 * np.abs(rows - z).mean(axis=1)) + 1

    matrix = np.stack([kernel(row) for row in rows]) + 0.3 * np.eye(len(rows))
    targets = np.where(codes == y, 1.0, -1.0)
    return kernel(x) @ np.linalg.solve(matrix, targets)


def blend_score(rows, codes, K, x, y, n, **settings):
    if not (codes == y).any():
        return np.inf
    odds = gaussian_score(rows, codes, K, x, y, n, score="posterior", **settings)
    prediction = -4 * ridge_prediction(rows, codes, x, y)
    damped = [np.sign(a) * np.log1p(abs(a)) for a in (odds, prediction)]
    return damped[0] + 2 * damped[1]


def counts(scores, kinds, wanted):
    """Rows of the wanted kind at least as strange as the last of the bag."""
    asked = scores[-1]
    others, chosen = scores[:-1], kinds == wanted
    if asked == np.inf:
        return 0, int(np.sum(others[chosen] == np.inf))
    margin = TIE * (1 + abs(asked))
    larger = int(np.sum(others[chosen] > asked + margin))
    return larger, int(np.sum(others[chosen] >= asked - margin)) - larger


def class_counts(X, codes, K, new, rule, *, condition=None, **settings):
    """`larger` and `equal` of each new row under each label, (m, K, 2)."""
    n = len(X)
    out = np.empty((len(new), K, 2), dtype=int)
    for j, x in enumerate(new):
        Z = units(np.vstack([X, x]))
        for c in range(K):
            labels = np.append(codes, c)
            scores = np.empty(n + 1)
            for i in range(n + 1):
                rest = np.arange(n + 1) != i
                scores[i] = rule(
                    Z[rest], labels[rest], K, Z[i], labels[i], n, **settings
                )
            if condition is None:
                kinds, wanted = np.zeros(n), 0
            elif condition == "class":
                kinds, wanted = codes, c
            else:
                kinds, wanted = condition(X), condition(x[None])[0]
            out[j, c] = counts(scores, kinds, wanted)
    return out


def one_class_scores(Z, kind, *, k=1, rho=1.0):
    """Deleted score of each row of a bag in its units."""
    n, d = len(Z) - 1, Z.shape[1]
    scores = np.empty(n + 1)
    for i in range(n + 1):
        rest = Z[np.arange(n + 1) != i]
        if kind == "distance":
            distances = np.abs(rest - Z[i]).sum(axis=1)
            scores[i] = np.sort(distances)[:k].mean()
        else:
            centred = rest - rest.mean(axis=0)
            f = Z[i] - rest.mean(axis=0)
            scores[i] = f @ np.linalg.solve(centred.T @ centred + rho * np.eye(d), f)
    return scores


def mid_ranks(scores):
    """Twice the mid-ranks; scores within 1e-9 relative of their neighbour tie."""
    order = np.argsort(scores)
    gaps = np.diff(scores[order]) > 1e-9 * np.abs(scores[order][1:]) + 1e-12
    group = np.concatenate([[0], np.cumsum(gaps)])
    places = np.arange(1, len(scores) + 1)
    mean = np.bincount(group, places) / np.bincount(group)
    ranks = np.empty(len(scores))
    ranks[order] = np.rint(2 * mean[group])
    return ranks


def one_class_counts(X, new, kind, **settings):
    """`larger` and `equal` of each new row, (m, 2)."""
    out = np.empty((len(new), 2), dtype=int)
    for j, x in enumerate(new):
        Z = units(np.vstack([X, x]))
        if kind == "combined":
            a = mid_ranks(one_class_scores(Z, "distance", **settings))
            b = mid_ranks(one_class_scores(Z, "ellipsoid", **settings))
            scores = np.maximum(a, b) * 1e3 * len(Z) + a + b
            out[j] = (
                np.sum(scores[:-1] > scores[-1]),
                np.sum(scores[:-1] == scores[-1]),
            )
        else:
            scores = one_class_scores(Z, kind, **settings)
            out[j] = counts(scores, np.zeros(len(X)), 0)
    return out
