"""Answers with at most 5 % wrong: the boundary next to SGR and a cut without proof.

Of each table 70 % train a logistic regression; the rest is the population, from which
held-out rows are drawn with replacement, so that the true error is known. All rules
see the same scores. SGR ("selection with guaranteed risk") is that of Geifman and
El-Yaniv, Selective classification for deep neural networks (2017).

python -m experiments.peers_answers [--quick]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.benchmark_data import folder
from experiments.cells import Scale, Tasks
from experiments.certification_sets import DELTA, RATE, RULES, measure, population
from experiments.table import Table, show

#: Stored tables that leave 200 rows, without copies of one another.
SETS = (
    *("australian", "banknote_authentication", "fourclass", "mammographic_mass"),
    *("adult", "blood_transfusion", "pima_diabetes", "german_numer"),
    *("letter_recognition", "magic", "optdigits", "pulsar", "qsar_biodegradation"),
    *("wine_quality_red", "satellite", "splice", "svmguide3", "vehicle"),
    *("breast_cancer_wisconsin", "vowel", "yeast", "segment", "wall_following"),
)
ROWS, SPLITS, DRAWS = (100, 300, 1000), 4, 50
OURS, PEER, CUT = RULES
NAMES = {OURS: "prudent, boundary", PEER: "SGR", CUT: "largest cut seen to keep it"}


def cells(scale: Scale) -> Tasks:
    """One cell a table and split."""
    if not folder().is_dir():
        return {}
    sets, splits = (SETS[1:3], 1) if scale == "quick" else (SETS, SPLITS)
    return {
        f"{name} {split}": partial(cell, name, split)
        for name in sets
        for split in range(splits)
    }


def cell(name: str, split: int) -> dict[str, dict[str, tuple[float, int]]]:
    """Share answered and false draws of each rule, by the number of held-out rows."""
    scores, wrong = population(name, "logistic", split)
    return {
        str(n): measure(scores, wrong, split, n, DRAWS)
        for n in ROWS
        if n <= len(scores)
    }


def tables(values: Mapping[str, Any]) -> list[Table]:
    """Means over the tables; then the shares on each of them."""
    names = list(dict.fromkeys(key.split()[0] for key in values))
    n_draws = DRAWS * len(values) // len(names)
    found: dict[tuple[str, int], dict[str, tuple[float, int]]] = {}
    for name in names:
        splits = [value for key, value in values.items() if key.split()[0] == name]
        for n in map(int, splits[0]):
            found[name, n] = {
                rule: (
                    float(np.mean([split[str(n)][rule][0] for split in splits])),
                    sum(split[str(n)][rule][1] for split in splits),
                )
                for rule in RULES
            }
    return [summary(found, n_draws), each_table(found, names)]


def summary(found: Mapping[tuple[str, int], Any], n_draws: int) -> Table:
    """One row a number of held-out rows."""
    lines = []
    for n in ROWS:
        here = [rules for (_, rows), rules in found.items() if rows == n]
        if not here:
            continue
        shares = {rule: [rules[rule][0] for rules in here] for rule in RULES}
        false = {rule: [rules[rule][1] for rules in here] for rule in RULES}
        difference = np.subtract(shares[OURS], shares[PEER])
        more, less = int(np.sum(difference > 0)), int(np.sum(difference < 0))
        lines.append(
            (
                f"{n}, {len(here)} tables",
                *(f"{np.mean(shares[rule]):.3f}" for rule in RULES),
                f"{more} / {less}",
                *(
                    f"{np.mean(false[rule]) / n_draws:.1%}; "
                    f"{max(false[rule])} of {n_draws}"
                    for rule in RULES
                ),
            )
        )
    return Table(
        f"Answers with at most {RATE:.0%} wrong, at {1 - DELTA:.0%} confidence: "
        "share answered",
        (
            *(
                "held-out rows",
                *NAMES.values(),
                "tables where we answer more / less than SGR",
            ),
            *(f"false: {name}" for name in NAMES.values()),
        ),
        lines,
        (
            f"{n_draws} draws a table, {DRAWS} from each of {SPLITS} splits, with "
            "logistic regression. A table counts where as many rows are left by "
            "training, 70 % of the rows or 4000. False: draws whose true error among "
            "the answered rows is above the limit, in the mean over tables; and on the "
            f"table with the most. {1 - DELTA:.0%} confidence allows {DELTA:.0%}, "
            f"{round(DELTA * n_draws)} of {n_draws}.",
            "The boundary and SGR promise the same. SGR (Geifman and El-Yaniv 2017) "
            "searches a cut by bisection and tests each at an equal part of the level. "
            "The last rule takes the most answers whose error among the held-out rows "
            "is within the limit, and promises nothing.",
        ),
    )


def each_table(found: Mapping[tuple[str, int], Any], names: list[str]) -> Table:
    """One row a table: share answered by the boundary and by SGR."""
    lines = []
    for name in names:
        line = [name]
        for n in ROWS:
            rules = found.get((name, n))
            line.append(
                f"{rules[OURS][0]:.3f} / {rules[PEER][0]:.3f}" if rules else "–"
            )
        lines.append(line)
    return Table(
        f"Answered on each table: {NAMES[OURS]} / {NAMES[PEER]}",
        ("table", *(f"{n} held-out rows" for n in ROWS)),
        lines,
    )


if __name__ == "__main__":
    scale: Scale = "quick" if "--quick" in sys.argv[1:] else "default"
    for table in tables({key: task() for key, task in cells(scale).items()}):
        show(table)
