"""The page that sets other libraries beside ours."""

from __future__ import annotations

HEAD = """\
:html_theme.sidebar_secondary.remove: true

Other libraries, side by side
=============================

Written by ``python -m experiments --peers`` after ``pip install '.[peers]'``,
on four bundled data sets and, where ``PRUDENT_DATA`` names their folder, on stored
ones. Every method sees the same rows.

.. figure:: images/conformal_sizes.svg
   :alt: Mean number of labels in a set over the number of training rows, by library

   Labels in a set, on those of ten tables fixed before any was looked at that have rows
   enough and that no library refused: smaller is better at the same promise. The dotted
   line promises about 80 %, the uppermost about 90 %, the others 90 %.

.. figure:: images/guide_sizes.svg
   :alt: Our set sizes over those of MAPIE's cross on each table, losses as red crosses

   The same table by table, a mark for each number of training rows: right of the line
   our sets are larger. Asked for the same 90 % MAPIE's cross promises about 80 %; the
   grey ticks are at about an equal promise.

.. figure:: images/guide_answers.svg
   :alt: How much more of each table the boundary answers than SGR, by held-out rows

   Answers with at most 5 % wrong, promised with 95 % confidence by our boundary and by
   SGR: right of the line ours answers more.

.. figure:: images/guide_alarms.svg
   :alt: False-alarm rates of each detector, one dot a table, beside the rate asked for

   Detectors: dots right of the line raised more false alarms than was asked for.

.. figure:: images/guide_errors.svg
   :alt: Error of each method on each table and its mean

   Errors out of fold, one dot a table.

.. figure:: images/guide_sets.svg
   :alt: Coverage and size of set-valued answers, by method

   Sets of several answers, in the mean over six tables.

How sizes are compared
----------------------

- **At an equal promise**, not at equal coverage. MAPIE's cross, with
  ``agg_scores="crossval"``, promises about twice the misses that it is asked for: its
  sets at 95 % promise what the others' do at 90 %. By default it asks the mean of its
  folds' models, of whose sets nothing is proved.
  What a method covered stands in brackets beside each size; one that covered more has
  larger sets for it.
- **With empty sets**, as MAPIE and crepes give them by default, where the tables say
  so. Without them (our default) sets hold the predicted class, too: they cover more,
  and none has fewer than one label, as in the rows *conformal, full* and *imprecise*
  of the table of set-valued answers.
- **MAPIE's rank.** By the formula quoted in `its pull request 973
  <https://github.com/scikit-learn-contrib/MAPIE/pull/973>`__ the split classifier takes
  one rank too high for some numbers of held-out rows: at 90 % for 19, 29, ..., 119. Its
  promise stays true, its sets are larger than need be. With the 30 and 60 rows held out
  here the rank is the right one.

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
       in 7 milliseconds
     - risk calibration takes 285 milliseconds
   * - sets with a promise
     - conformal prediction, of MAPIE and crepes (and ours), promises 90 %
     - the imprecise sets promise nothing and fall to 87 % on segment
   * - sets where logistic regression is right
     - MAPIE's cross: up to 5 % smaller on QSAR biodegradation, up to 4 % on blood
       transfusion; it promises about 80 %
     - full conformal prediction, which promises 90 %
   * - sets of a useful size
     - all the others
     - those of the optimistic rule hold 2.675 classes in the mean, those of the minimax
       rule 2.165: they answer other questions
   * - false promises of answers
     - SGR: at most 2 of 200 on a table
     - the boundary: at most 5 of 200, where 10 may be
   * - answers without a promise
     - the largest cut seen to keep 5 % answers 0.509 of the rows with 300 held out, and
       errs more in 44.3% of the draws, in 147 of 200 on one table
     - the boundary answers 0.309; on five of the fifteen tables hardly a row
   * - limits by subgroup, of anything
     - fairlearn gives intervals of any metric. With 2000 rows, and the level shared
       among the subgroups, its limits are lower in the mean, 0.196, and one was too low
       in 2 of 20 draws
     - ``certify`` gives limits of shares alone; 0.232 in the mean
   * - time of a detector
     - KNN and LOF take less than a tenth of the time and rank nearly as well
     - ``ConformalDetector``
   * - intruders missed
     - a kernel density with a held-out cut: 0.453, in a seventh of the time, with the
       same promise and as good a ranking (area under the curve 0.905 for both)
     - ``LowDensityRejector``: 0.507; it may raise no alarm on wine

Where ours is
-------------

.. list-table::
   :header-rows: 1
   :widths: 22 39 39

   * - what
     - ours
     - the peer
   * - mean error of ten sets
     - risk calibration 0.095, optimistic rule 0.116; no rule is best on every set
     - QDA 0.126, logistic regression 0.141
   * - sets at 90 %, 40 rows
     - full conformal prediction, no row held out: 1.265 classes
     - crepes' split around logistic regression 1.535; MAPIE's cross, which promises
       about twice the misses, 1.445
   * - 100 and 200 rows
     - 1.252, 1.262
     - crepes 1.704, 1.713; MAPIE's cross 1.583, 1.601
   * - sets at 95 %, 40 rows
     - 1.458
     - crepes 3.000, every label; MAPIE's split refuses
   * - ten tables fixed before looking; 40, 100, 200, 400 rows
     - 1.408, 1.255, 1.233, 1.189
     - MAPIE's cross, asked for the same, which makes it promise about 80 %: 1.526,
       1.371, 1.332, 1.284; where it promises about 90 %: 1.791, 1.659, 1.572, 1.477
   * - answers with at most 5 % wrong; 100, 300, 1000 held-out rows
     - the boundary answers 0.179, 0.309, 0.457; less than SGR on no table
     - SGR, at the same promise: 0.000, 0.251, 0.430
   * - limits of the error in six subgroups of adult; 500, 2000 rows
     - ``certify``: one too low in 0 of 20, 0 of 20 draws; 3, 5 milliseconds
     - fairlearn: in 14 of 20, 11 of 20, and with the level shared among the subgroups
       in 13 of 20, 2 of 20; 13, 18 seconds for 1000 bootstrap samples
   * - intruders missed at 5 % false alarms
     - ``ConformalDetector`` promises them and missed 0.328; on satellite it raised
       0.076 in these ten draws, and .048 (standard error .0025) in 150 others
     - PyOD's KNN 0.351 without a promise, 0.502 with a held-out cut; LOF 0.343, 0.542.
       nonconform around KNN 0.497 by held-out rows, and 0.395 by folds, 0.382 by
       bootstrap, for which it claims none
   * - narrow sets
     - imprecise: covers 0.948 with 1.074 classes, ``u65`` 0.923; full conformal
       prediction, which promises 90 %: 0.959 with 1.036, ``u65`` 0.947
     - MAPIE's around a quadratic rule: 0.909 with 1.075, ``u65`` 0.872, holding 30 % of
       the rows out; the posterior of that rule alone has ``u65`` 0.889
   * - promised errors
     - holdout of risk calibration: held in 50 of 50 folds, 1.6 times the error on
       pima_diabetes and 16 times on iris. With radii the minimax rule's held in 98.7%
       of 230 cases; on digits and vowel they are 1 and say nothing. **Its plug-in
       promise fails on small tables**: it held in 6 of 10 cases on sonar, 208 rows and
       60 columns
     - only MRCpy bounds one: held in 24 of the 30 folds of six sets; 0.169 for an error
       of 0.046 on breast_cancer, 0.166 for 0.211 on sonar
   * - false alarms as asked for
     - both detectors that hold rows out kept 5 % on all nine sets
     - KNN and LOF kept it too, without a promise; ECOD and the isolation forests on
       seven; one-class SVM raised 0.247; the elliptic envelope 0.524 on digits, where
       columns outnumber rows

MRCpy 3.0.0, with Fourier features, took 0.4 to 0.9 seconds for a fit. It runs with
current scikit-learn once its ``BasePhi`` is given scikit-learn's tags (one line, in
``experiments/peers_promises.py``); ``import MRCpy`` needs ``torch`` and ``gurobipy``.
"""

GROUPS = {
    "peers": (
        "What was measured",
        "Read the columns of promises before those of scores: a method that promises "
        "more has less to spend on being right.",
    ),
}
