"""The sections that hold measurements: promises, alarms, shifts, sets, confusions."""

from __future__ import annotations

import numpy as np

from prudent.evaluation.records import Findings
from prudent.io.errors import cut
from prudent.report import figures
from prudent.report.parts import Section, Table, first_rows, shown_sets

MOST_CLASSES = 12
NO_BREAK, JOINER = "\u00a0", "\u2060"  # keep figures on one line


def promises(findings: Findings) -> Section:
    rows: list[tuple[str, ...]] = []
    said: dict[str, dict[str, None]] = {}
    for row in findings.ran:
        for promise in row.promises:
            guarantee, check = promise.guarantee, promise.check
            low, high = check.interval
            side = "≤" if guarantee.sense == "<=" else "≥"
            rows.append(
                (
                    row.method,
                    guarantee.quantity,
                    "all" if guarantee.scope is None else cut(guarantee.scope),
                    f"{side}{NO_BREAK}{guarantee.bound:.4f}",
                    f"{check.measured:.4f}",
                    f"{low:.3f}{JOINER}–{JOINER}{high:.3f}",
                    check.verdict,
                )
            )
            assumed = " and ".join(guarantee.assumed) or "nothing else"
            basis = f"{guarantee.source}, assuming {assumed}."
            said.setdefault(basis, {})[row.method] = None
    sentences = [
        "Each point is a promise: the bound a method states (x, mean of the folds) "
        "against what happened to rows it had not seen (y, exact interval). Points on "
        "or below the diagonal keep their promise; broken ones are red crosses. Those "
        "asked for come first, then those that methods make by themselves.",
        *(f"{', '.join(methods)}: {basis}" for basis, methods in said.items()),
    ]
    columns = ("method", "quantity", "class", "promised", "measured")
    return Section(
        "promises",
        "Promise and reality",
        sentences,
        lambda: figures.promises(findings),
        "Points: promised bound against measured rate, with a diagonal.",
        [first_rows("Promises", (*columns, "interval", "verdict"), rows)],
        nothing="No method made a promise here.",
    )


def false_alarms(findings: Findings) -> Section:
    curves = [(row.method, row.false_alarms) for row in findings.ran]
    rows = [
        (name, f"{level:g}", f"{count / curve.n:.4f}", f"{count:g} of {curve.n:g}")
        for name, curve in curves
        if curve is not None
        for level, count in zip(curve.levels, curve.false_alarms, strict=True)
    ]
    return Section(
        "false-alarms",
        "False alarms",
        [
            "How often a row is disowned by the rejector of its own class, at every "
            "rate one may ask for. On or below the line is as promised; the band is "
            "the exact interval of each point."
        ],
        lambda: figures.false_alarms(findings),
        "Line: measured against requested false-alarm rate, with intervals.",
        [first_rows("False alarms", ("method", "requested", "measured", "rows"), rows)],
        nothing="No method states a false-alarm rate.",
    )


def shift(findings: Findings) -> Section:
    found = [row.shift for row in findings.ran if row.shift is not None]
    rows = [
        (row.method, *(f"{error:.3f}" for error in row.shift.errors))
        for row in findings.ran
        if row.shift is not None
    ]
    n = found[0].n if found else 0
    shifts = [f"{shift:g}" for shift in (found[0].shifts if found else ())]
    return Section(
        "shift",
        "Shift curve",
        [
            "Error when the tested rows move towards the nearest other class mean, by "
            f"as many pooled standard deviations as the axis says ({n} out-of-fold "
            "rows)."
        ],
        lambda: figures.shift_curves(findings),
        "Lines: error of each method against the length of the shift.",
        [first_rows("Error at each shift", ("method", *shifts), rows)],
        nothing="No method finished.",
    )


def sets(findings: Findings) -> Section:
    rows, per_class = [], []
    for row in findings.ran:
        found = shown_sets(row)
        if found is None:
            continue
        rows.append(
            (
                row.method,
                f"{found.coverage:.3f}",
                f"{found.mean_size:.3f}",
                f"{100 * found.undecided:.1f} %",
                " ".join(f"{size}: {n:g}" for size, n in enumerate(found.size_counts)),
            )
        )
        per_class += [
            (row.method, cut(label), f"{covered:.3f}", f"{size:.3f}")
            for label, covered, size in zip(
                findings.data.classes,
                found.class_coverage,
                found.class_mean_size,
                strict=True,
            )
        ]
    columns = ("method", "coverage", "mean size", "undecided", "rows by size")
    by_class = ("method", "class", "coverage", "mean size")
    return Section(
        "sets",
        "Set-valued predictions",
        [
            "A method that may answer with several classes, or with none, errs less "
            "often when it does not know. Left: how often the set holds the truth "
            "against its mean size. Right: how large the sets are."
        ],
        lambda: figures.set_sizes(findings),
        "Points: coverage against mean size. Bars: share of rows by set size.",
        [
            first_rows("Sets", columns, rows),
            first_rows("By class", by_class, per_class),
        ],
        nothing="Every method names one class for each row.",
    )


def regions(findings: Findings) -> Section:
    labels = findings.data.classes[:MOST_CLASSES]
    rows = [
        (
            row.method,
            *(f"{100 * s:.0f} %" for s in row.regions.class_shares[:MOST_CLASSES]),
            f"{100 * row.regions.undecided:.0f} %",
        )
        for row in findings.ran
        if row.regions is not None
    ]
    columns = ("method", *map(cut, labels), "undecided")
    return Section(
        "regions",
        "Decision regions",
        [
            "Each method fitted anew in the plane of the two discriminant axes, the "
            "directions that separate the class means best. Colour is the predicted "
            "class; striped points are undecided. No row is drawn: the page holds "
            "none of the data."
        ],
        lambda: figures.regions(findings),
        "Maps: predicted class in the plane of the discriminant axes.",
        [first_rows("Share of the plane", columns, rows)],
        nothing="There are no two axes to draw.",
    )


def confusion(findings: Findings) -> Section:
    tables = [_confusion_table(findings)]
    sentences = [
        "Rows are true classes, columns predicted ones; colour is the share of the "
        "row, figures are counts."
    ]
    for row in findings.ran:
        path = row.calibration
        if path is None:
            continue
        before, after = np.mean(path.error_before), np.mean(path.error_after)
        sentences.append(
            f"{row.method}: risk-based calibration took the error on the rows fitted "
            f"on from {before:.4f} to {after:.4f} (mean of the folds)."
        )
        figures_of_folds = zip(
            path.error_before, path.error_after, path.best_iterations, strict=True
        )
        lines = [
            (str(fold), f"{old:.4f}", f"{new:.4f}", str(best))
            for fold, (old, new, best) in enumerate(figures_of_folds, start=1)
        ]
        columns = ("fold", "error before", "error after", "iterations")
        tables.append(first_rows(f"Calibration of {row.method}", columns, lines))
    return Section(
        "confusion",
        "Confusion and calibration",
        sentences,
        lambda: figures.confusions(findings),
        "Heat maps: confusion matrix of each method.",
        tables,
        nothing="No method finished.",
    )


def _confusion_table(findings: Findings) -> Table:
    """All counts of few classes; of many, the confusions that happened most."""
    rows, labels = findings.ran, [cut(label) for label in findings.data.classes]
    if len(labels) <= MOST_CLASSES:
        cells = [
            (row.method, label, *(f"{count:g}" for count in counts))
            for row in rows
            for label, counts in zip(labels, row.confusion, strict=True)
        ]
        columns = ("method", "true \\ predicted", *labels)
        return first_rows("Confusion matrices", columns, cells, most=8 * MOST_CLASSES)
    errors = [
        (count, row.method, labels[i], labels[j])
        for row in rows
        for i, counts in enumerate(row.confusion)
        for j, count in enumerate(counts)
        if i != j and count > 0
    ]
    errors.sort(key=lambda error: (-error[0], *error[1:]))
    cells = [(name, true, said, f"{n:g}") for n, name, true, said in errors]
    return first_rows(
        "Most frequent confusions", ("method", "true", "predicted", "rows"), cells
    )
