"""The papers, in the order of their page, and what each section begins with."""

from __future__ import annotations

HEAD = """\
:html_theme.sidebar_secondary.remove: true

The papers, recomputed
======================

Written by ``python -m experiments``, which recomputes every table and figure that the
data allow; ``PRUDENT_DATA`` names the folder of the data sets. Finished experiments are
kept and not run again. Each one also runs alone, for example ``python -m
experiments.minimax_table2``.

Where a paper prints numbers, a cell reads *ours / paper / difference ± standard error*.
The error is that of ours, over splits or over test rows; the paper's own comes on top,
so many a difference beyond it is chance. Each such difference has a letter, and the
letter its reason below the table.
"""

#: Prefix of the experiments' files -> heading and text.
GROUPS = {
    "minimax": (
        "Lanckriet, El Ghaoui, Bhattacharyya, Jordan 2002",
        "The linear minimax probability machine states an accuracy that holds for "
        "every law with the estimated moments. Breast cancer, pima and the generated "
        "twonorm agree; sonar and ionosphere state 2 to 3 points less than the paper.",
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
        "agree within two errors, but for libras.",
    ),
    "calibration": (
        "Pérez, Echegoyen, Santafé",
        "Training errors of 25 of the 30 data sets. Quadratic and logistic rules agree "
        "digit by digit; naive Bayes where its bins could be recovered.",
    ),
    "adversarial": (
        "El-Yaniv and Nisenson",
        "The paper draws one figure and prints no table. The two further tables "
        "measure the detector against goals of our own. One is missed: the area under "
        "the curve on real sets, 0.024 above one-class SVM in place of 0.03.",
    ),
}
