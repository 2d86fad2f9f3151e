"""In one look: rows answered, rows handed to a person, and a promise that is broken.

A cut that is read off held-out rows as it stands is wrong about every other time;
that of `SelectiveClassifier` is wrong in at most one case of twenty.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from prudent import SelectiveClassifier

LIMIT, DRAWS = 0.03, 100
WIDTH = 50


def naive_cut(sureness, wrong):
    """The lowest cut above which at most the limit of these rows is wrong."""
    order = np.argsort(-sureness)
    rates = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
    able = np.flatnonzero(rates <= LIMIT)
    return sureness[order[able[-1]]] if len(able) else np.inf


def one_draw(seed):
    """Shares of new rows answered, and wrong among them: by the cut, by the promise."""
    X, y = load_digits(return_X_y=True)
    seen, X_new, labels, y_new = train_test_split(
        X, y, train_size=1000, random_state=seed
    )
    learnt, held, of_learnt, of_held = train_test_split(
        seen, labels, train_size=500, random_state=seed
    )
    model = LinearDiscriminantAnalysis().fit(learnt, of_learnt)
    sureness = model.predict_proba(held).max(axis=1)
    cut = naive_cut(sureness, model.predict(held) != of_held)
    by_cut = model.predict_proba(X_new).max(axis=1) >= cut
    promised = SelectiveClassifier(
        LinearDiscriminantAnalysis(),
        error_rate=LIMIT,
        calibration_size=0.5,
        random_state=seed,
    ).fit(seen, labels)
    by_promise = promised.answers(X_new)
    return [
        # Nothing that is answered is nothing wrong.
        (answered.mean(), (answers != y_new)[answered].sum() / max(1, answered.sum()))
        for answered, answers in (
            (by_cut, model.predict(X_new)),
            (by_promise, promised.predict(X_new)),
        )
    ]


def bar(answered, wrong):
    """Rows as a bar: right, wrong and handed over."""
    n_wrong = max(1, round(WIDTH * answered * wrong))
    n_right = round(WIDTH * answered) - n_wrong
    return "█" * n_right + "×" * n_wrong + "·" * (WIDTH - n_right - n_wrong)


def main():
    """Print the picture."""
    draws = np.array([one_draw(seed) for seed in range(DRAWS)])
    print(f"Asked: of the digits that are answered, at most {LIMIT:.0%} wrong.\n")
    print("                 █ answered rightly  × wrongly  · handed to a person")
    for name, rows in zip(
        ("a naive cut", "prudent"), draws.swapaxes(0, 1), strict=True
    ):
        answered, wrong = rows.mean(axis=0)
        broken = int((rows[:, 1] > LIMIT).sum())
        print(f"{name:15}  {bar(answered, wrong)}")
        print(
            f"{'':15}  {answered:.0%} answered, {1 - answered:.0%} handed over, "
            f"{wrong:.1%} of the answers wrong;\n{'':15}  "
            f"over {LIMIT:.0%} in {broken} of {DRAWS} draws of the rows\n"
        )


if __name__ == "__main__":
    main()
