"""The page that sets other libraries beside ours."""

from __future__ import annotations

HEAD = """\
:html_theme.sidebar_secondary.remove: true

Other libraries, side by side
=============================

Written by ``python -m experiments --peers`` after ``pip install 'prudent[peers]'``,
on four bundled data sets and, where ``PRUDENT_DATA`` names their folder, on stored
ones, at most 1000 rows of each. Every method sees the same folds.

Where a peer is better
----------------------

- **Time, and plain problems.** Logistic regression erred least on breast_cancer
  (0.021) and pima_diabetes (0.225, LDA 0.227). It costs 13 milliseconds where risk
  calibration takes 497.
- **Sets without a promise.** The imprecise sets promise nothing and fall to 87 % on
  segment; conformal prediction, ours or of MAPIE and crepes, promises 90 %.
- **Sets where logistic regression is right.** On QSAR biodegradation MAPIE's cross had
  sets up to 5 % smaller than full conformal prediction, on blood transfusion up to 4 %
  from 100 rows on; it promises 80 % where ours promises 90 %.
- **Sets of a useful size.** Those of the optimistic rule hold 2.675 classes in the
  mean, those of the minimax rule 2.165: they answer other questions.
- **Time of a detector.** KNN and LOF take a tenth to a fifth of the time of
  ``ConformalDetector`` and rank nearly as well. ``LowDensityRejector`` missed 0.507 of
  the intruders and may raise no alarm on wine; a kernel density with a held-out cut
  makes the same promise in a tenth of its time, missed 0.453, and ranks as well
  (area under the curve 0.905 for both).

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
