"""select_unusual: its bound by enumeration and on fresh draws, tables, errors."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.special import rel_entr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from prudent import ConformalDetector, select_unusual
from prudent.conformal.batch import learned_p_values
from prudent.core.assumptions import Assumption
from prudent.core.selection import select_rows
from prudent.exceptions import PrudentWarning

RATE = 0.1


class LastRow(ClassifierMixin, BaseEstimator):
    """A learner that looks at the order of its rows, as no learner should.

    It calls rows strange that are near the last row it was shown.
    """

    def fit(self, X, y):
        """Remember the last row."""
        self.classes_, self.last_ = np.unique(y), X[-1]
        return self

    def decision_function(self, X):
        """Minus the distance from that row."""
        return -np.abs(X - self.last_).sum(axis=1)


class GivenOrder:
    """Stands for a random state whose next permutation is given."""

    def __init__(self, order):
        self.order = order

    def permutation(self, n):
        """The order given."""
        assert len(self.order) == n
        return np.array(self.order)


def wrong_shares(ordinary, unusual, n_ranking, orders, rates):
    """Mean share of wrong ones for each rate, over all choices of the rows that rank.

    `ordinary` are all ordinary values but those learned from; every order counts alike.
    """
    rows = np.array(ordinary, dtype=float)
    total, n_cases = dict.fromkeys(rates, Fraction(0)), 0
    for ranking in combinations(range(len(rows)), n_ranking):
        others = np.setdiff1d(np.arange(len(rows)), ranking)
        batch = np.append(rows[others], unusual)[:, None]
        for order in orders:
            p_values = learned_p_values(
                LastRow(),
                np.zeros((1, 1)),
                rows[list(ranking), None],
                batch,
                GivenOrder(order),
            )
            n_cases += 1
            for rate in rates:
                mask = select_rows(p_values, n_ranking, rate=float(rate)).mask
                wrong, selected = int(mask[: len(others)].sum()), int(mask.sum())
                total[rate] += Fraction(wrong, max(1, selected))
    return {rate: share / n_cases for rate, share in total.items()}


@pytest.mark.parametrize("ordinary", [[0, 1, 2, 3], [0, 0, 1, 1]])
def test_bound_holds_over_all_orders_whatever_the_learner_makes_of_them(ordinary):
    rates = [Fraction(k, 4) for k in (1, 2, 3)]
    orders = list(permutations(range(5)))
    for rate, share in wrong_shares(ordinary, [9.0], 2, orders, rates).items():
        assert share <= rate * Fraction(2, 3), (rate, share)


def test_rows_in_the_order_given_would_break_the_bound():
    # The last row of the pool is then always of the batch; here it is ordinary.
    rows = np.arange(5.0)
    wrong = []
    for order in permutations(range(5)):
        given = rows[list(order), None]
        p_values = learned_p_values(
            LastRow(), np.zeros((1, 1)), given[:3], given[3:], GivenOrder(range(5))
        )
        wrong.append(select_rows(p_values, 3, rate=0.5).mask.any())
    assert np.mean(wrong) > 0.9


# --- fresh draws ----------------------------------------------------------------------


def normal(rng, n, unusual):
    """Three columns; unusual rows lie aside."""
    return rng.normal(size=(n, 3)) + 2 * unusual


def discrete(rng, n, unusual):
    """Two columns of few values, so that most scores are equal."""
    return rng.integers(0, 3, size=(n, 2)) + rng.integers(0, 2, size=(n, 2)) * unusual


def heavy(rng, n, unusual):
    """No moments, columns of very different size; unusual rows are small."""
    scale = np.array([1e-6, 1.0, 1e6])
    return rng.standard_cauchy((n, 3)) * scale * (0.01 if unusual else 1.0)


LAWS = [normal, discrete, heavy]
CLASSIFIERS = {
    "default": None,
    "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    "neighbours": KNeighborsClassifier(5),
}


def limit(rate, n):
    """Mean of n shares in [0, 1] that exceeds a mean of `rate` by chance .001."""
    grid = np.linspace(rate, 1, 100_001)[1:-1]
    information = rel_entr(grid, rate) + rel_entr(1 - grid, 1 - rate)
    return grid[np.searchsorted(n * information, np.log(1000))]


def mean_wrong_share(law, classifier, n_unusual, n_draws, **options):
    """Of n_draws batches of 40 rows, and 80 ordinary rows."""
    wrong = []
    for seed in range(n_draws):
        rng = np.random.default_rng([7, seed])
        batch = [law(rng, 40 - n_unusual, False), law(rng, n_unusual, True)]
        mask = select_unusual(
            law(rng, 80, False),
            np.vstack(batch),
            classifier,
            false_discovery_rate=RATE,
            random_state=seed,
            **options,
        ).mask
        wrong.append(mask[: 40 - n_unusual].sum() / max(1, mask.sum()))
    return np.mean(wrong)


def holds(law, name, n_unusual, n_draws, **options):
    """Whether the share is not above what is promised by more than chance."""
    promised = RATE if "null_share" in options else RATE * (40 - n_unusual) / 40
    share = mean_wrong_share(law, CLASSIFIERS[name], n_unusual, n_draws, **options)
    return share <= limit(promised, n_draws)


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("n_unusual", [0, 10])
@pytest.mark.parametrize("law", LAWS)
def test_share_of_wrong_ones_on_fresh_draws(law, n_unusual):
    assert holds(law, "default", n_unusual, 100)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("options", [{}, {"null_share": "storey"}])
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("n_unusual", [0, 4, 20])
@pytest.mark.parametrize("law", LAWS)
def test_share_of_wrong_ones_on_many_fresh_draws(law, n_unusual, name, options):
    assert holds(law, name, n_unusual, 1000, **options)


def test_calibration_rows_learned_as_ordinary_would_break_the_bound():
    wrong, classifier = [], CLASSIFIERS["tree"]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        ordinary, batch = normal(rng, 80, False), normal(rng, 40, False)
        labels = np.repeat([0, 1], [80, 40])
        classifier.fit(np.vstack([ordinary, batch]), labels)
        scores = classifier.predict_proba(batch)[:, 1]
        ranking = classifier.predict_proba(ordinary[:40])[:, 1]
        p_values = (1 + (ranking >= scores[:, None]).sum(axis=1)) / 41
        wrong.append(select_rows(p_values, 40, rate=RATE).mask.any())
    assert np.mean(wrong) > limit(RATE, 60)


def test_rows_that_differ_together_are_found_where_a_detector_finds_few():
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ordinary = rng.normal(size=(400, 10))
        unusual = rng.normal(size=(60, 10)) + np.r_[3.0, np.zeros(9)]
        batch = np.vstack([rng.normal(size=(140, 10)), unusual])
        learned = select_unusual(ordinary, batch, random_state=seed).mask
        detector = ConformalDetector(method="split", random_state=seed).fit(ordinary)
        detected = detector.select(batch).mask
        found.append([learned[140:].mean(), detected[140:].mean()])
    learned, detected = np.mean(found, axis=0)
    assert learned > detected + 0.1


# --- tables, settings, errors ---------------------------------------------------------


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    ordinary = rng.normal(size=(200, 3))
    batch = np.vstack([rng.normal(size=(30, 3)), rng.normal(size=(10, 3)) + 4])
    return ordinary, batch


def test_the_promise_in_words(rows):
    selected = select_unusual(*rows, random_state=0)
    promise = selected.guarantee
    assert (promise.quantity, promise.bound, promise.sense) == (
        "false discovery rate",
        0.1,
        "<=",
    )
    assert promise.assumptions == (Assumption.NOT_CHOSEN_IN_BATCH,)
    assert promise.average_over == "calibration rows"
    assert dict(promise.evidence) == {
        "calibration rows": 100.0,
        "n": 40.0,
        "selected": float(selected.mask.sum()),
        "rows learned from": 100.0,
    }
    assert "Marandon" in promise.source
    assert selected.mask[30:].all()
    assert ((selected.p_values > 0) & (selected.p_values <= 1)).all()


def test_the_same_seed_selects_the_same_rows(rows):
    first, second = (select_unusual(*rows, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.p_values, second.p_values)
    other = select_unusual(*rows, random_state=4)
    assert (first.p_values != other.p_values).any()


@pytest.mark.parametrize(
    "table", [pd.DataFrame, csr_array, pl.DataFrame, np.ndarray.tolist]
)
def test_tables_of_any_library_select_the_same_rows(rows, table):
    model = LogisticRegression()
    expected = select_unusual(*rows, model, random_state=0)
    found = select_unusual(*map(table, rows), model, random_state=0)
    np.testing.assert_array_equal(found.mask, expected.mask)
    if table is not csr_array:
        plain = select_unusual(*rows, random_state=0)
        default = select_unusual(*map(table, rows), random_state=0)
        np.testing.assert_array_equal(default.p_values, plain.p_values)


@pytest.mark.parametrize("library", [pd, pl])
def test_numbers_of_two_types_are_numbers(rows, library):
    model = LogisticRegression()
    ordinary, batch = (
        rows[0].round(),
        np.column_stack([rows[1][:, :2].round(), rows[1][:, 2]]),
    )
    names = list("abc")
    frames = [
        library.DataFrame(dict(zip(names, table.T, strict=True)))
        for table in (ordinary, batch)
    ]
    whole = library.DataFrame(
        {name: ordinary[:, j].astype(int) for j, name in enumerate(names)}
    )
    expected = select_unusual(*frames, model, random_state=0)
    found = select_unusual(whole, frames[1], model, random_state=0)
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    turned = select_unusual(frames[1], whole, model, random_state=0)
    assert turned.mask.shape == (200,)
    words = library.DataFrame({"a": ["x"] * 40, "b": batch[:, 1], "c": batch[:, 2]})
    with pytest.raises(
        TypeError, match="column 'a' is Int64 in one of the two .* String"
    ):
        select_unusual(whole, words, model)


def test_a_margin_will_do_and_the_classifier_given_is_not_fitted(rows):
    model = LinearSVC()
    assert select_unusual(*rows, model, random_state=0).mask[30:].all()
    assert not hasattr(model, "coef_")


def test_an_empty_batch_has_no_unusual_rows(rows):
    selected = select_unusual(rows[0], np.empty((0, 3)))
    assert len(selected.mask) == len(selected.p_values) == 0


def test_constant_columns_and_few_rows_are_no_trouble(rows):
    ordinary = np.column_stack([rows[0], np.ones(200)])
    batch = np.column_stack([rows[1], np.ones(40)])
    assert select_unusual(ordinary, batch, random_state=0).mask[30:].all()
    with pytest.warns(PrudentWarning, match="with 1 calibration row"):
        assert not select_unusual(ordinary[:2], batch, random_state=0).mask.any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"false_discovery_rate": 0.0}, "false_discovery_rate"),
        ({"null_share": "half"}, "'one' or 'storey', got 'half'"),
        ({"calibration_size": 1.0}, "calibration_size"),
    ],
)
def test_settings_out_of_range(rows, settings, message):
    with pytest.raises(ValueError, match=message):
        select_unusual(*rows, **settings)


def test_tables_that_do_not_belong_together(rows):
    ordinary, batch = rows
    with pytest.raises(ValueError, match=r"rows of shape \(3,\) and `batch` of \(2,\)"):
        select_unusual(ordinary, batch[:, :2])
    with pytest.raises(ValueError, match="at least 2 rows, one to learn from .* got 1"):
        select_unusual(ordinary[:1], batch)
    frames = [pd.DataFrame(table, columns=list("abc")) for table in rows]
    with pytest.raises(ValueError, match="the columns of the two tables differ"):
        select_unusual(frames[0], frames[1][["b", "a", "c"]])
    with pytest.raises(TypeError, match="are a DataFrame and a ndarray"):
        select_unusual(frames[0], batch)
    with pytest.raises(ValueError, match="NaN"):
        select_unusual(ordinary, np.full((2, 3), np.nan))


def test_an_estimator_that_scores_nothing(rows):
    class Silent(ClassifierMixin, BaseEstimator):
        """Has neither scores nor probabilities."""

    with pytest.raises(TypeError, match="must have `decision_function`"):
        select_unusual(*rows, Silent())


def test_scores_that_are_not_finite_are_refused(rows):
    class Endless(LastRow):
        """Scores nothing finite."""

        def decision_function(self, X):
            return np.full(len(X), np.inf)

    with pytest.raises(ValueError, match="not finite"):
        select_unusual(*rows, Endless())
