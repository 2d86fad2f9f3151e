"""Exact laws of watched counts by recursion and enumeration: no simulation."""

from __future__ import annotations

import itertools

import numpy as np


def alarm_probability(log_e, chances, n_rows, log_target):
    """P(log_e(K_n, n) ever >= log_target within n_rows), K a chain of counts.

    `chances(K, n)` is the probability that row n + 1 violates, given K among n.
    Needs log_e to rise with K.
    """
    law = np.zeros(n_rows + 2)
    law[0] = 1.0
    alarmed, least = 0.0, 1
    for n in range(1, n_rows + 1):
        K = np.arange(n)
        p = chances(K, n - 1)
        new = np.zeros_like(law)
        new[:n] = law[:n] * (1 - p)
        new[1 : n + 1] += law[:n] * p
        law = new
        while least <= n and log_e(least, n) < log_target:
            least += 1
        while least > 1 and log_e(least - 1, n) >= log_target:
            least -= 1
        alarmed += law[least : n + 1].sum()
        law[least : n + 1] = 0.0
    return alarmed


def paths(n):
    """All 0-1 sequences of length n, as an array (2^n, n)."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def constant(path, rate):
    """Probability of a path at a constant rate."""
    v = path.sum()
    return rate**v * (1 - rate) ** (len(path) - v)


def urn(path, rank, calibration_rows):
    """Probability of a path under the urn (k + K) / (m + 1 + n)."""
    probability, violations = 1.0, 0.0
    for n, x in enumerate(path):
        p = (rank + violations) / (calibration_rows + 1 + n)
        probability *= p if x else 1 - p
        violations += x
    return probability
