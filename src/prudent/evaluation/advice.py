"""What a table is for: the method to use, and the promises that can be had."""

from __future__ import annotations

from typing import NamedTuple

from prudent.evaluation.records import Asked, Findings, Frontier, MethodRow

# Less than this share of the rows is no help to anybody.
FEW = 0.05
# Of three classes or more, sets that rule out this share of the others are of use
# even where few rows get one answer.
RULED_OUT = 0.5
# A promise that can be had should answer this share of the rows.
ENOUGH = 0.2
# Most limits in the line of costs.
MOST_COSTS = 4


class Reachable(NamedTuple):
    """A promise that a method can make on this table."""

    promise: str  # as it is asked for
    method: str
    share: float  # of the rows decided; of those of other classes answered rightly


def recommended(findings: Findings) -> MethodRow | None:
    """The row to use: the most useful one that keeps the promise; None without any.

    Among methods that no test tells apart, one whose measured rates lie inside their
    limits goes first.
    """
    able = [row for row in findings.ran if can_be_used(row)]
    if not able:
        return None
    best = able[0]
    same = [best, *(r for r in able if r.no_difference_from == best.method)]
    inside = (row for row in same if row.asked is None or row.asked.is_inside)
    return next(inside, best)


def can_be_used(row: MethodRow) -> bool:
    """Whether a row keeps the promise and is of use to anybody."""
    asked = row.asked
    if asked is None:
        return True
    keeps = asked.kept in ("kept", "consistent")
    # Few answers, more of them wrong than was asked for, are no answer to anybody.
    least = FEW if asked.is_inside else ENOUGH
    return keeps and asked.useful and (share_helped(asked) >= least or narrows(asked))


def share_helped(asked: Asked) -> float:
    """Share of rows decided; for promises about classes, of the others right."""
    if asked.others_error is not None:
        return 1 - asked.others_error
    return asked.decided


def narrows(asked: Asked) -> bool:
    """Whether the sets are of use although few of them hold one class."""
    sets = asked.sets
    if asked.worst_covered is None or sets is None:
        return False
    n_classes = len(sets.class_mean_size)
    return n_classes > 2 and n_classes - sets.mean_size >= RULED_OUT * (n_classes - 1)


def reachable(findings: Findings) -> Reachable | None:
    """The promise nearest to the one asked for that answers enough rows, by the curve.

    A weaker one; or, where the one asked for is kept by always answering the most
    frequent class, a stricter one.
    """
    found = findings.frontier
    if found is None or not found.decided:
        return None
    trivial = trivial_error(findings)
    allowed = [_allowed(found, level) for level in found.levels]
    asked = _allowed(found, found.asked)
    if trivial is not None and asked >= trivial:
        near = [i for i, rate in enumerate(allowed) if rate < trivial]
        near.sort(key=lambda i: -allowed[i])
    else:
        limit = 1.0 if trivial is None else trivial
        near = [i for i, rate in enumerate(allowed) if asked < rate < limit]
        near.sort(key=lambda i: allowed[i])
    possible = [_most(found, i) for i in near]
    enough = [one for one in possible if one.share >= ENOUGH]
    some = [one for one in possible if one.share >= FEW]
    if enough:
        return enough[0]
    return max(some, key=lambda one: one.share, default=None)


def trivial_error(findings: Findings) -> float | None:
    """Error of always answering the most frequent class, if rows are promised about."""
    found = findings.frontier
    if found is None or not found.about_rows:
        return None
    counts = findings.data.class_counts
    return 1 - max(counts) / sum(counts)


def costs(findings: Findings) -> tuple[str, list[tuple[float, float]]] | None:
    """Limits around the one asked for, and what is answered at each; by one method.

    For promises about errors of classes: the method that is recommended, else the one
    that answers most at these limits.
    """
    found = findings.frontier
    if found is None or found.kind != "missed" or not found.decided:
        return None
    here = found.levels.index(found.asked)
    around = range(max(here - 1, 0), len(found.levels))[: MOST_COSTS + 1]
    used = recommended(findings)
    name = max(found.decided, key=lambda m: sum(found.decided[m][i] for i in around))
    if used is not None and used.method in found.decided:
        name = used.method
    shares = found.decided[name]
    shown = [(found.levels[i], shares[i]) for i in around]
    while len(shown) > 1 and shown[0][1] == 0 and shown[1][0] <= found.asked:
        shown = shown[1:]
    return (name, shown[:MOST_COSTS]) if max(shares) > 0 else None


def _allowed(found: Frontier, level: float) -> float:
    return round(1 - level if found.kind == "coverage" else level, 12)


def _most(found: Frontier, i: int) -> Reachable:
    name = max(found.decided, key=lambda method: found.decided[method][i])
    return Reachable(found.promises[i], name, found.decided[name][i])
