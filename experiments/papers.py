"""The papers, in the order of their page, and what each section begins with."""

from __future__ import annotations

from experiments.page import WIDE

HEAD = f"""\
{WIDE}

The papers, recomputed
======================

Written by ``python -m experiments``, which recomputes every table and figure that the
data allow; ``PRUDENT_DATA`` names the folder of the data sets. Finished cells are kept
and not measured again, so an interrupted run goes on. One experiment alone: for example
``python -m experiments minimax_tables``. ``--full`` repeats what the paper repeats.

Where a paper prints numbers, a cell reads *ours / paper / difference ± standard error*.
The error is that of ours, over splits or over test rows; the paper's own comes on top,
so many a difference beyond it is chance. Training errors have none: there every
difference counts. Each difference beyond the error has a letter, and the letter its
reason below the table. Pictures have the axes of the paper's figures.
"""

#: Prefix of the experiments' files -> heading and text.
GROUPS = {
    "minimax": (
        "Lanckriet, El Ghaoui, Bhattacharyya, Jordan 2002",
        "The linear minimax probability machine states an accuracy that holds for "
        "every law with the estimated moments. Breast cancer and pima agree, the "
        "generated twonorm within 1.3 points; sonar and ionosphere state less than the "
        "paper. With a kernel the accuracy is met; the stated one depends on two "
        "constants that the paper leaves out, and values of them exist that meet both "
        "on four of five sets, within two errors.",
    ),
    "optimistic": (
        "Nguyen, Si, Blanchet 2020",
        "The published splits and the published threshold rule are used, so the "
        "columns with radii of the limit theorem can be compared entry by entry.",
    ),
    "imprecise": (
        "Carranza-Alarcón and Destercke 2019",
        "All 15 data sets and four models, no blank cell. Where the rule does not "
        "depend on the scale of the columns and no covariance is singular, accuracies "
        "agree within two errors, but for libras and two that look swapped. Others "
        "meet the paper in the units of the table or by arithmetic that rounds "
        "densities to 0; the letter (k) is where neither does. A row "
        "takes microseconds where the paper took from 0.3 ms to 35 s.",
    ),
    "calibration": (
        "Pérez, Echegoyen, Santafé",
        "Training errors of 25 of the 30 data sets. Quadratic and logistic rules by "
        "maximum likelihood agree digit by digit, logistic rules a posteriori too, but "
        "for one set; naive Bayes where its bins could be recovered. Gradient descent "
        "of the quadratic rule is another than the paper's. Tables III and V are not "
        "recovered.",
    ),
    "adversarial": (
        "El-Yaniv and Nisenson",
        "The paper draws three figures and prints no table. The two last tables "
        "measure the detector against goals of our own. One is missed: the area under "
        "the curve on real sets.",
    ),
}

#: Prefix -> table or figure of the paper that is not recomputed -> why not.
OMITTED = {
    "minimax": {},
    "optimistic": {},
    "imprecise": {
        "Table 1": "a list of symbols.",
        "Table 2": "a list of the four models, which are the rows of Table 4.",
        "Figure 1": "a sketch of learning and predicting, without data.",
        "Figure 2": "the order of three given numbers, drawn as a graph.",
        "Figure 3": "a sketch without data; Figure 6 shows the same on iris.",
        "Figure 4": "a given partial order of three classes, drawn as a graph.",
    },
    "calibration": {},
    "adversarial": {},
}
