"""The page of audits: tables and pictures of what was found, docs/audit.rst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import rc_context, style
from matplotlib.figure import Figure

from experiments.audits import ENTRIES, found
from experiments.table import save_picture
from prudent.auditing import AuditRow
from prudent.plots import AuditDisplay
from prudent.plots.display import BLUE, GREY, RED, STYLE_FILE, legend_beside

PAGE = Path(__file__).parents[1] / "docs" / "audit.rst"
PLAIN = {"svg.fonttype": "none"}
Found = Mapping[str, str]

HEAD = """\
:html_theme.sidebar_secondary.remove: true

.. Written by python -m experiments.audits --page

========================
Promises held to account
========================

Promises of other libraries and of this one, audited by :func:`prudent.audit`
(:doc:`user_guide/audits`): laws whose truth is known, fresh rows for every fit, exact
tests at level 0.01. A promise is taken as its authors state it, in the words quoted
below; where they can be read in two ways the weaker reading is taken.

.. figure:: images/audits_others.svg
   :alt: True rate of each setting of other libraries beside the rate it promises

   Other libraries. Left: the true rate (dot) and the promised one (tick). Right: the
   share of fits beyond the promise, of promises that hold with a confidence, and the
   share that may be. {broken} of {n} settings are broken.

.. figure:: images/audits_own.svg
   :alt: What seven promises of this library said before they were mended, and the truth

   Ours, before they were mended: what was promised (tick) and what was true (cross).

"""
OWN_HEAD = """\
Our own
=======

Eight promises of this library were false when it was first audited, by hand. All were
mended in version 2, before its release. Each lives on as a mutant in the tests, which
the audit must find within 400 draws.

"""
#: Promise, promised, true, of what, and why; without figures where there were none.
OWN = (
    ("Minimax bound on nearly singular data", 0.0075, 0.643, "training rows wrong",
     "The bound was that of exact arithmetic, not of the plane as it predicts."),
    ("Minimax from singular moments", 0.0, 15 / 2100, "finite laws beyond the bound",
     "15 of 2100 laws lay beyond the bound; 42 led to a crash."),
    ("Minimax with bootstrap radii", 0.0, 0.502, "rows wrong",
     "A confidence was drawn from one row."),
    ("Sample weights", 0.05, 55 / 200, "fits beyond the bound",
     "Weights of 100 were counted as rows: 55 of 200 draws, where 10 are allowed."),
    ("Ties in ``MinimaxOutlierDetector``", 0.01, 0.038, "false alarms",
     "The score of a row depended on its batch."),
    ("Categories in ``RiskCalibratedClassifier``", 0.05, 0.27, "fits beyond the bound",
     "The table of levels saw the rows held out."),
    ("``RejectionGame(tie_tol=)``", 0.743, 1.0, "intruders missed",
     "An intruder was missed for sure."),
    ("``LowDensityRejector`` at scales of 1e160", None, None, "",
     "Everything was accepted, without a word."),
)  # fmt: skip
COMPARISON_HEAD = """\
The comparison
==============

``prudent compare --no-best`` on nineteen tables that played no part in its making.

"""
COMPARISON = (
    ("tables that end with exit code 0", "19", "19"),
    ("rows of a table with a promise and a verdict, or with the rows that it needs",
     "209", "209"),
    ("promises of coverage refuted", "0", "0 of 1155; smallest binomial p .007"),
    ("rows missed, as sets always hold the predicted class", "at most 9.3 %", "4.2 %"),
    ("rows missed by the p-values alone (``predict_set(X, allow_empty=True)``), "
     "fourteen tables", "at most 9.12 %", "9.12 % (99 % band 8.8 to 9.5 %)"),
    ("the same on titanic: 1316 rows with 12 different values, and ties count for the "
     "promise", "at most 9.12 %", "3 %"),
)  # fmt: skip
COMPARISON_FOOT = """\
Eleven tables come from R packages (pbc, survey, car90, Hdma, Aids2, titanic, msleep,
crabs, stagec, Mode, Kakadu: words, up to 15 % of the cells missing, 19 classes of
which five have one row). The others: 5000 diamonds of which 2.3 % are flawed,
dermatology, housing, libras, splice, 310 columns on 126 rows, 21 columns with 25 %
missing cells, and 28 drawn classes with singletons. By p-values alone: conformal,
minimax, LDA and logistic regression.

"""
OTHERS_HEAD = """\
Other libraries
===============

Every rate is that of violations: of misses for a coverage. Of each setting the case
(law and number of rows) of the smallest p-value is shown, of all that were drawn; p is
exact, and 1/e where an e-value stopped the draws. ``python -m experiments.audits NAME``
draws a line again, by the name in its first column.

"""
ON_FIT = "A statement about the rows of the fit, not about new rows."
#: What a reader must know of an entry, besides the figures.
NOTES = {
    "mapie-rcps-default": (
        "The default bound adds the largest log wealths of two halves of the rows, "
        "each found by itself; the theorem speaks of the largest of one walk."
    ),
    "mapie-cross-lac": (
        "Proved is 1 - 2 alpha, of sets with ``agg_scores='crossval'``; of these, "
        "which are its default, nothing is."
    ),
    "sklearn-one-class-svm": (
        "Counted are rows more than 1e-6 outside, with ``tol=1e-10``: the statement is "
        "about the exact optimum. By default ``predict`` also flags rows on the "
        "boundary, to within the solver's tolerance: .15 of 40 and .11 of 100 rows on "
        "the line. " + ON_FIT
    ),
    "pyod-ecod": ON_FIT,
    "pyod-knn": ON_FIT,
    "sklearn-elliptic-envelope": ON_FIT,
    "mrcpy-default": (
        "Read on average. The bound is that of the deterministic rule, for which a "
        "further problem is solved."
    ),
    "mrcpy-randomised": (
        "Read on average. It assumes that the uncertainty set (``s=0.3``) holds the "
        "true law, and no probability is stated with which it does. "
        "Other draws of the same size gave p = 0.00015 and p = 0.00019."
    ),
}
COLUMNS = (
    *("name", "setting", "verdict", "law, rows", "true rate", "promised"),
    *("fits beyond", "p", "cases, draws"),
)


def write() -> None:
    """Draw the pictures and write the page."""
    lines = found()
    PAGE.write_text(page(lines), encoding="utf-8")
    with style.context(STYLE_FILE), rc_context(PLAIN):
        save_picture(others(lines), "audits_others.svg")
        save_picture(own(), "audits_own.svg")


def page(lines: Mapping[str, Found]) -> str:
    """The page, from what was found."""
    broken = sum(line["refuted"] != "0" for line in lines.values())
    parts = [HEAD.format(n=len(lines), broken=broken), OTHERS_HEAD]
    claims: dict[tuple[str, str, str, str], list[str]] = {}
    for name, line in lines.items():
        entry = ENTRIES[name]
        said = entry.package, line["version"], entry.words, entry.link
        claims.setdefault(said, []).append(name)
    for (package, number, words, link), names in claims.items():
        parts.append(f'{package} {number}: "{words}" (`source <{link}>`__)\n\n')
        parts.append(table(COLUMNS, [cells(name, lines[name]) for name in names]))
        notes = [f"- ``{name}``: {NOTES[name]}\n" for name in names if name in NOTES]
        parts.append("".join([*notes, "\n" if notes else ""]))
    own_rows = [
        (
            promise,
            "" if promised is None else f"{promised:.3g}",
            "" if true is None else f"{true:.3g}",
            *(what, why),
        )
        for promise, promised, true, what, why in OWN
    ]
    heads = "promise", "promised", "true", "of what", "what was wrong"
    parts += [OWN_HEAD, table(heads, own_rows), COMPARISON_HEAD]
    parts += [table(("what", "promised", "found"), COMPARISON), COMPARISON_FOOT]
    return "".join(parts).rstrip("\n") + "\n"


def cells(name: str, line: Found) -> tuple[str, ...]:
    """A setting and the case of its smallest p-value."""
    fits = int(line["claims"]) + int(line["refused"])
    beyond = f"{line['broken']} of {fits}"
    if line["allowed"]:
        beyond += f" ({line['allowed']} may be)"
    stopped = ", stopped early" if line["is_stopped"] == "True" else ""
    is_broken = line["refuted"] != "0"
    verdict = f"**broken** in {line['refuted']} of {line['cases']} cases"
    return (
        *(f"``{name}``", ENTRIES[name].what),
        verdict if is_broken else "no violation found",
        f"{line['law']}, {line['size']}",
        *(line["mean_truth"], line["mean_bound"], beyond + stopped, line["p_value"]),
        f"{line['cases']}, {line['draws']}",
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (heads, *rows):
        first, *others = row
        lines += [f"   * - {first}", *(f"     - {c}".rstrip() for c in others)]
    return "\n".join([*lines, "", ""])


def others(lines: Mapping[str, Found]) -> Figure:
    """True rates of other libraries beside what they promise."""
    rows = [
        AuditRow(
            law=f"{ENTRIES[name].package} {ENTRIES[name].what}",
            size=int(line["size"]),
            claim="",
            claims=int(line["claims"]),
            broken=int(line["broken"]),
            allowed=float(line["allowed"]) if line["allowed"] else None,
            p_value=float(line["p_value"]),
            mean_bound=float(line["mean_bound"]),
            mean_truth=float(line["mean_truth"]),
            sharpness=float("nan"),
            refused=int(line["refused"]),
            is_refuted=line["refuted"] != "0",
            is_stopped=line["is_stopped"] == "True",
        )
        for name, line in lines.items()
    ]
    figure = Figure((9.6, 0.6 + 0.24 * len(rows)), layout="constrained")
    display = AuditDisplay(rows).plot(figure.subplots())
    names = display.frame()["law"].to_pylist()
    display.axes_[0].set_yticks(range(len(names)), names)
    return figure


def own() -> Figure:
    """Promised and true rates of our own promises, before they were mended."""
    shown = [line for line in OWN if line[1] is not None]
    figure = Figure((9.6, 0.6 + 0.28 * len(shown)), layout="constrained")
    ax = figure.subplots()
    places = range(len(shown))
    ax.hlines(
        places, [line[1] for line in shown], [line[2] for line in shown], color=GREY
    )
    ax.plot(
        [line[1] for line in shown], places, "|", color=BLUE, markersize=12,
        markeredgewidth=2.5, clip_on=False, label="promised",
    )  # fmt: skip
    ax.plot(
        [line[2] for line in shown], places, "X", color=RED, clip_on=False, label="true"
    )
    ax.set_yticks(places, [f"{line[0].replace('`', '')}: {line[3]}" for line in shown])
    ax.set(xlabel="share", xlim=(0, 1.02))
    ax.invert_yaxis()
    legend_beside(ax)
    return figure
