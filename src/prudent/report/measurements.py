"""The sections that hold measurements: promises, alarms, shifts, sets, confusions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prudent.evaluation.records import Findings, MethodRow
from prudent.report import figures
from prudent.report.parts import Section, Table, cut, draw, first_rows, shown_sets

MOST_CLASSES = 12


def promises(findings: Findings) -> Section:
    rows = [
        (
            row.method,
            promise.guarantee.quantity,
            "all" if promise.guarantee.scope is None else cut(promise.guarantee.scope),
            f"{promise.guarantee.sense} {promise.guarantee.bound:.4f}",
            f"{promise.check.measured:.4f}",
            f"{promise.check.interval[0]:.4f} to {promise.check.interval[1]:.4f}",
            promise.check.verdict,
        )
        for row in findings.ran
        for promise in row.promises
    ]
    sentences = [
        "Each point is a promise: the bound a method states (x, mean of the folds) "
        "against what happened to rows it had not seen (y, exact interval). Points on "
        "or below the diagonal keep their promise; broken ones are red crosses. Those "
        "asked for come first, then those that methods make by themselves.",
        *dict.fromkeys(
            f"{row.method}: {promise.guarantee.source}, assuming "
            + (" and ".join(promise.guarantee.assumptions) or "nothing else")
            + "."
            for row in findings.ran
            for promise in row.promises
        ),
    ]
    if not rows:
        return Section(
            "promises", "Promise and reality", ["No method made a promise here."]
        )
    columns = ("method", "quantity", "class", "promised", "measured")
    return Section(
        "promises",
        "Promise and reality",
        sentences,
        draw(
            figures.promises,
            findings,
            "promises",
            "Points: promised bound against measured rate, with a diagonal.",
        ),
        [first_rows("Promises", (*columns, "interval", "verdict"), rows)],
    )


def false_alarms(findings: Findings) -> Section:
    title = "False alarms"
    curves = [(row.method, row.false_alarms) for row in findings.ran]
    rows = [
        (name, f"{level:g}", f"{count / curve.n:.4f}", f"{count:g} of {curve.n:g}")
        for name, curve in curves
        if curve is not None
        for level, count in zip(curve.levels, curve.false_alarms, strict=True)
    ]
    if not rows:
        return Section("false-alarms", title, ["No method states a false-alarm rate."])
    return Section(
        "false-alarms",
        title,
        [
            "How often a row is disowned by the rejector of its own class, at every "
            "rate one may ask for. On or below the line is as promised; the band is "
            "the exact interval of each point."
        ],
        draw(
            figures.false_alarms,
            findings,
            "false-alarms",
            "Line: measured against requested false-alarm rate, with intervals.",
        ),
        [first_rows("False alarms", ("method", "requested", "measured", "rows"), rows)],
    )


def shift(findings: Findings) -> Section:
    curves = [(row.method, row.shift) for row in findings.ran]
    found = [(label, curve) for label, curve in curves if curve is not None]
    title = "Shift curve"
    if not found:
        return Section("shift", title, ["No method finished."])
    shifts = [f"{shift:g}" for shift in found[0][1].shifts]
    rows = [(label, *(f"{e:.3f}" for e in curve.errors)) for label, curve in found]
    return Section(
        "shift",
        title,
        [
            "Error when the tested rows move towards the nearest other class mean, by "
            "as many pooled standard deviations as the axis says "
            f"({found[0][1].n} out-of-fold rows)."
        ],
        draw(
            figures.shift_curves,
            findings,
            "shift",
            "Lines: error of each method against the length of the shift.",
        ),
        [first_rows("Error at each shift", ("method", *shifts), rows)],
    )


def sets(findings: Findings) -> Section:
    title = "Set-valued predictions"
    found = [(row.method, shown_sets(row)) for row in findings.ran]
    found = [(name, sets) for name, sets in found if sets is not None]
    if not found:
        return Section("sets", title, ["Every method names one class for each row."])
    rows, per_class = [], []
    for name, sets in found:
        assert sets is not None
        rows.append(
            (
                name,
                f"{sets.coverage:.3f}",
                f"{sets.mean_size:.3f}",
                f"{100 * sets.undecided:.1f} %",
                " ".join(f"{size}: {n:g}" for size, n in enumerate(sets.size_counts)),
            )
        )
        per_class += [
            (name, cut(label), f"{covered:.3f}", f"{size:.3f}")
            for label, covered, size in zip(
                findings.data.classes,
                sets.class_coverage,
                sets.class_mean_size,
                strict=True,
            )
        ]
    return Section(
        "sets",
        title,
        [
            "A method that may answer with several classes, or with none, errs less "
            "often when it does not know. Left: how often the set holds the truth "
            "against its mean size. Right: how large the sets are."
        ],
        draw(
            figures.set_sizes,
            findings,
            "sets",
            "Points: coverage against mean size. Bars: share of rows by set size.",
        ),
        [
            first_rows(
                "Sets",
                ("method", "coverage", "mean size", "undecided", "rows by size"),
                rows,
            ),
            first_rows(
                "By class", ("method", "class", "coverage", "mean size"), per_class
            ),
        ],
    )


def regions(findings: Findings) -> Section:
    title = "Decision regions"
    found = [(row.method, row.regions) for row in findings.ran]
    labels = findings.data.classes[:MOST_CLASSES]
    rows = [
        (
            name,
            *(f"{100 * share:.0f} %" for share in regions.class_shares[:MOST_CLASSES]),
            f"{100 * regions.undecided:.0f} %",
        )
        for name, regions in found
        if regions is not None
    ]
    if not rows:
        return Section("regions", title, ["There are no two axes to draw."])
    return Section(
        "regions",
        title,
        [
            "Each method fitted anew in the plane of the two discriminant axes, the "
            "directions that separate the class means best. Colour is the predicted "
            "class; striped points are undecided. No row is drawn: the page holds "
            "none of the data."
        ],
        draw(
            figures.regions,
            findings,
            "regions",
            "Maps: predicted class in the plane of the discriminant axes.",
        ),
        [
            first_rows(
                "Share of the plane",
                ("method", *map(cut, labels), "undecided"),
                rows,
            )
        ],
    )


def confusion(findings: Findings) -> Section:
    rows = findings.ran
    title = "Confusion and calibration"
    if not rows:
        return Section("confusion", title, ["No method finished."])
    tables = [_confusion_table(findings, rows)]
    sentences = [
        "Rows are true classes, columns predicted ones; colour is the share of the "
        "row, figures are counts."
    ]
    paths = [
        (row.method, row.calibration) for row in rows if row.calibration is not None
    ]
    for name, path in paths:
        assert path is not None
        before, after = np.mean(path.error_before), np.mean(path.error_after)
        sentences.append(
            f"{name}: risk-based calibration took the error on the rows fitted on from "
            f"{before:.4f} to {after:.4f} (mean of the folds)."
        )
        lines = [
            (str(fold), f"{old:.4f}", f"{new:.4f}", str(best))
            for fold, (old, new, best) in enumerate(
                zip(
                    path.error_before,
                    path.error_after,
                    path.best_iterations,
                    strict=True,
                ),
                start=1,
            )
        ]
        columns = ("fold", "error before", "error after", "iterations")
        tables.append(first_rows(f"Calibration of {name}", columns, lines))
    drawn = "Heat maps: confusion matrix of each method."
    return Section(
        "confusion",
        title,
        sentences,
        draw(figures.confusions, findings, "confusion", drawn),
        tables,
    )


def _confusion_table(findings: Findings, rows: Sequence[MethodRow]) -> Table:
    """All counts of few classes; of many, the confusions that happened most."""
    labels = [cut(label) for label in findings.data.classes]
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
