"""The page that sets other libraries beside ours."""

from __future__ import annotations

HEAD = """\
:html_theme.sidebar_secondary.remove: true

Other libraries, side by side
=============================

Written by ``python -m experiments --peers`` after ``pip install 'prudent[peers]'``,
on four bundled data sets and, where ``PRUDENT_DATA`` names their folder, on stored
ones, at most 1000 rows of each. Every method sees the same folds.

.. figure:: images/conformal_sizes.svg
   :alt: Mean number of labels in a set over the number of training rows, by library

   Smaller is better at the same promise, in the mean over tables that were fixed before
   any was looked at. The dotted line promises 80 % where the others promise 90 %.

.. figure:: images/guide_alarms.svg
   :alt: False-alarm rates of each detector, one dot a table, beside the rate asked for

   Dots right of the line raised more false alarms than was asked for. One dot a table.

Where a peer is better
----------------------

.. list-table::
   :header-rows: 1
   :widths: 20 40 40

   * - what
     - the peer
     - ours
   * - error on plain problems
     - logistic regression: 0.021 on breast_cancer, 0.225 on pima_diabetes (LDA 0.227),
       in 13 milliseconds
     - risk calibration takes 497 milliseconds
   * - sets with a promise
     - conformal prediction, of MAPIE and crepes (and ours), promises 90 %
     - the imprecise sets promise nothing and fall to 87 % on segment
   * - sets where logistic regression is right
     - MAPIE's cross: up to 5 % smaller on QSAR biodegradation, up to 4 % on blood
       transfusion from 100 rows on; it promises 80 %
     - full conformal prediction, which promises 90 %
   * - sets of a useful size
     - all the others
     - those of the optimistic rule hold 2.675 classes in the mean, those of the minimax
       rule 2.165: they answer other questions
   * - time of a detector
     - KNN and LOF take a tenth to a fifth of the time and rank nearly as well
     - ``ConformalDetector``
   * - intruders missed
     - a kernel density with a held-out cut: 0.453, in a tenth of the time, with the
       same promise and as good a ranking (area under the curve 0.905 for both)
     - ``LowDensityRejector``: 0.507; it may raise no alarm on wine

Where ours is
-------------

- **Error.** Risk calibration has the least mean error, 0.095, before the optimistic
  rule with 0.116, QDA with 0.126 and logistic regression with 0.141. No rule is best
  on every set.
- **Valid sets from few rows.** Full conformal prediction holds out no row: from 40
  rows its sets at 90 % hold 1.265 classes, where crepes' split around logistic
  regression holds 1.535, and MAPIE's cross, which promises about twice the misses,
  1.461. At 95 % it holds 1.458; split needs every label, 3.000, and MAPIE's refuses.
  From 100 rows it holds 1.252 for 1.704 and 1.584, from 200 1.262 for 1.713 and 1.588.
  On ten tables fixed before looking it holds 1.408, 1.255, 1.233 and 1.189 classes from
  40, 100, 200 and 400 rows, MAPIE's cross 1.550, 1.382, 1.341 and 1.283.
- **Intruders caught at a promised rate.** ``ConformalDetector`` promises 5 % and
  missed 0.328; PyOD's KNN missed 0.351 without a promise and 0.502 with a held-out
  cut, LOF 0.343 and 0.542. On satellite it raised 0.076 in these ten draws, and .048
  (standard error .0025) in 150 others.
- **Narrow sets.** The imprecise sets cover 0.948 with 1.074 classes, ``u65`` 0.923;
  MAPIE's around a quadratic rule cover 0.909 with 1.075, ``u65`` 0.872; the posterior
  of that rule alone has ``u65`` 0.889. Part of this is the 30 % of rows that
  conformal prediction holds out, part the better quadratic rule.
- **Promised errors.** Of the others only MRCpy bounds one. The plug-in promise of the
  minimax rule fails on small tables: it held in 6 of 10 cases on sonar, 208 rows and
  60 columns. With radii every promise held, and most were empty, near 1. The holdout
  promise of risk calibration held in 50 of 50 folds; it is 1.6 times the error on
  pima_diabetes and 16 times on iris.
- **False alarms as asked for.** Both of our detectors that hold rows out kept 5 % on
  all nine sets, because they promise it. KNN and LOF kept it too, without a promise.
  ECOD and the isolation forests kept it on seven; one-class SVM raised 0.247, and the
  elliptic envelope 0.524 on digits, where columns outnumber rows.
- **MRCpy** bounds errors too, those of all rows together. Version 3.0.0 runs with
  current scikit-learn once its ``BasePhi`` is given scikit-learn's tags (one line, in
  ``experiments/peers_promises.py``). With Fourier features the bound held in 24 of the
  30 folds of six sets: 0.169 for an error of 0.046 on breast_cancer, 0.166 for 0.211 on
  sonar. A fit took about a second; ``import MRCpy`` needs ``torch`` and ``gurobipy``.
"""

GROUPS = {
    "peers": (
        "What was measured",
        "Read the columns of promises before those of scores: a method that promises "
        "more has less to spend on being right.",
    ),
}
