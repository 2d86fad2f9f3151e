"""`compare`: the same folds for every method, promises held against fresh rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prudent.comparison.result import Comparison
from prudent.comparison.run import Protocol, run
from prudent.core.classes import as_costs
from prudent.core.guarantee import Guarantee
from prudent.evaluation.child import prepare
from prudent.evaluation.methods import BASELINES, DEFAULT_PROMISE, choose
from prudent.evaluation.table import labelled_rows


def compare(
    X: Any,
    y: Any,
    *,
    promise: str | Guarantee | Sequence[Guarantee] = DEFAULT_PROMISE,
    confidence: float | None = None,
    methods: str | Sequence[Any] | Mapping[str, Any] = "all",
    baselines: Sequence[str] = tuple(BASELINES),
    cv: int = 5,
    n_repeats: int = 1,
    groups: Any = None,
    costs: Any = None,
    random_state: int = 0,
    n_jobs: int = 1,
    time_limit: float | None = None,
    sample: int | None = 100_000,
) -> Comparison:
    """Compare methods on a table under the promise that is asked for.

    Every method, baselines and own estimators included, is wrapped so that it makes
    the promise; rows that it has not seen check it; what is compared is how useful
    each method still is. Every figure is out of fold.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers, and words in data frames. Missing cells become the median with an
        indicator column, words become indicators, learned within each fold; methods
        see arrays of numbers.
    y : array-like of shape (n_samples,)
        Class labels; at least two classes. A class that a training part lacks
        counts as missed there.
    promise : str or Guarantee, default="coverage >= 90% in every class"
        What every method has to promise:

        - ``"coverage >= 90% in every class"``: sets of answers that hold the true
          class for 90 % of the rows of every class, on average over training
          samples or with `confidence` (:class:`~prudent.ConformalClassifier`);
        - ``"coverage >= 95%"``: the same over all rows;
        - ``"error <= 5%"``: of the rows that are answered, at most 5 % wrong
          (:class:`~prudent.SelectiveClassifier`);
        - ``"missed LABEL <= 2%"``, several with ``and``: at most 2 % of the rows of
          a class answered wrongly (:class:`~prudent.NeymanPearsonClassifier`);
        - ``"none"``: methods as they are.
    confidence : float or None, default=None
        Probability over training samples, in (0, 1), that what is promised of a
        fitted model is true: of all classes at once, and for all methods together, so
        that the one chosen keeps it. None: 0.95 of promises about errors and missed
        classes, and coverage on average.
    methods : "all", sequence or mapping, default="all"
        Names among "optimistic", "minimax", "calibrated", "imprecise", "rejection",
        "conformal", dotted paths of classes, and pairs of a name and an estimator;
        or a mapping from names to estimators.
    baselines : sequence of str, default=("majority", "logistic", "lda", "qda", \
"boosting")
        Methods for reference; may be empty.
    cv : int, default=5
        Stratified folds, >= 2; lowered to the rows of the largest class.
    n_repeats : int, default=1
        Times that all folds are drawn anew.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together (of a patient, of a machine) have equal values.
        Folds keep groups whole, and one row of each group, drawn at random, is
        tested: every figure is about a random row of a new group.
    costs : array-like of shape (n_classes, n_classes), default=None
        Cost of answering with the class of a column where that of the row is true;
        the table gains the mean cost of each plain method.
    random_state : int, default=0
        Seed of folds, samples and methods.
    n_jobs : int, default=1
        Folds fitted at a time, in processes; -1 takes all cores.
    time_limit : float, default=None
        Seconds allowed to each method, in (0, inf). With a limit the methods run
        in child processes, which a script has to allow for by
        ``if __name__ == "__main__":``.
    sample : int, default=100_000
        Most rows to fit a method on that needs rows, by a plain draw (with `groups`
        of groups, about so many rows); methods that learn from moments always use
        all rows, unless a promise is asked of them. None: no limit.

    Returns
    -------
    Comparison
        Prints as a table; see `to_frame`, `to_dict`, `save_report` and `rows`. A
        method that failed is a row with its reason.

    Raises
    ------
    ValueError
        If the table or an argument cannot be used.
    InfeasibleError
        If the rows are too few for any method to make the promise, before any fit; it
        says how many are needed, and which promise these rows allow.
    ComparisonInterrupted
        On Ctrl-C: a `KeyboardInterrupt` that carries what was finished.

    Notes
    -----
    Wrappers hold rows of the training part out; the test rows of a fold have no part
    in its promises. A promise is the mean of the folds' bounds weighted by the rows
    tested; one on average over training samples is checked by the law of the sum of the
    folds' counts. The verdicts of all promises of a table share the level 0.05 by
    Holm's procedure, "broken" and "kept" each: of tables of true promises one in twenty
    at most has a broken one.

    Rows are sorted by the share of rows decided rightly less the share decided wrongly
    (of promises about classes, by the error of the others). "No difference" from the
    first one: an exact paired sign-flip test of these gains at level 0.05, corrected
    over methods by Holm's procedure.

    Examples
    --------
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = prudent.compare(X, y, methods=["conformal"], baselines=["lda"])
    >>> [(row.method, row.asked.kept) for row in comparison.rows]
    [('lda', 'consistent'), ('conformal', 'consistent')]
    """
    protocol = Protocol(
        promise=promise,
        confidence=confidence,
        cv=cv,
        n_repeats=n_repeats,
        costs=None if costs is None else as_costs(costs),
        random_state=random_state,
        n_jobs=n_jobs,
        time_limit=time_limit,
        sample=sample,
    )
    chosen = choose(methods, baselines)
    protocol.check()
    if time_limit is not None:
        prepare()
    rows = labelled_rows(X, y, groups)
    command = f"prudent.compare(X, y, cv={cv}, random_state={random_state})"
    return run(rows, chosen, protocol, command=command)
