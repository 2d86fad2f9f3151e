"""Promises of other libraries, and our own, held to account on laws of known truth.

python -m experiments.audits [NAME ...]    run these, print each, store what was found
python -m experiments.audits --page        write docs/audit.rst from what is stored

What was found is a line of audits_found.csv for each entry.

Each entry states the claim as the authors' own documentation does; what they do not
claim is not audited. Needs the extra `peers`, and MRCpy for its entries.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.covariance import EllipticEnvelope
from sklearn.linear_model import LogisticRegression
from sklearn.svm import OneClassSVM

import prudent
from prudent import Guarantee
from prudent.auditing import Audit, Law

LEVEL = 0.1
LAWS = ("line", "label noise", "six atoms", "integer grid")
FEWER = ("line", "label noise")
FOUND = Path(__file__).parent / "audits_found.csv"
MAPIE = "https://github.com/scikit-learn-contrib/MAPIE/blob/master/doc/content/"
SETS = MAPIE + "conformal-prediction/classification.md"
RISKS = MAPIE + "risk-control/theory.md"
CREPES = "https://github.com/henrikbostrom/crepes"
SKLEARN = "https://scikit-learn.org/stable/modules/generated/sklearn."
PYOD = "https://pyod.readthedocs.io/en/latest/pyod.models.html"
MRCPY = "https://machinelearningbcam.github.io/MRCpy/"


def three_classes() -> Law:
    """Points on a line, three classes that overlap."""
    x = np.linspace(-3.0, 3.0, 200)
    chance = np.exp(-((x[:, None] - [-1.5, 0.0, 1.5]) ** 2)).ravel()
    return Law.finite(
        "three classes", np.repeat(x, 3)[:, None], np.tile([0, 1, 2], 200), chance
    )


@dataclass(frozen=True)
class Entry:
    """A promise of a package: in its own words, as a guarantee, and how it is run."""

    package: str
    what: str
    words: str
    link: str
    claim: Guarantee
    factory: Callable[[], Any]
    answer: Any = None
    laws: Sequence[Any] = LAWS
    sizes: Sequence[int] = (40, 100)
    budget: int = 400


def average(quantity: Any, bound: float, sense: Any) -> Guarantee:
    return Guarantee(
        quantity=quantity, bound=bound, sense=sense, average_over="training samples"
    )


def sure(quantity: Any, bound: float, sense: Any, scope: Any = None) -> Guarantee:
    return Guarantee(
        quantity=quantity, bound=bound, sense=sense, confidence=1 - LEVEL, scope=scope
    )


def on_training_rows(bound: float) -> Guarantee:
    return Guarantee(
        quantity="false alarm rate",
        bound=bound,
        sense="<=",
        # The sentence that holds a claim to the training rows themselves.
        assumptions=("the class means and covariances equal their plug-in estimates",),
    )


def halves(X: Any, y: Any) -> Any:
    half = len(y) // 2
    if len(np.unique(y[:half])) < 2:
        raise ValueError("one class only")
    return X[:half], y[:half], X[half:], y[half:]


class MapieSplit:
    def __init__(self, score: str) -> None:
        self.score = score

    def fit(self, X: Any, y: Any) -> MapieSplit:
        from mapie.classification import SplitConformalClassifier

        X_fit, y_fit, X_held, y_held = halves(X, y)
        model = LogisticRegression().fit(X_fit, y_fit)
        self.classes_ = model.classes_
        self.model_ = SplitConformalClassifier(
            model, confidence_level=1 - LEVEL, conformity_score=self.score
        ).conformalize(X_held, y_held)
        return self


class MapieCross:
    def fit(self, X: Any, y: Any) -> MapieCross:
        from mapie.classification import CrossConformalClassifier

        self.model_ = CrossConformalClassifier(
            LogisticRegression(), confidence_level=1 - LEVEL, cv=5
        ).fit_conformalize(X, y)
        self.classes_ = np.unique(y)
        return self


def mapie_sets(model: Any, X: Any) -> Any:
    return model.model_.predict_set(X)[1][:, :, 0]


class MapieRecall:
    """Each row has one label, so that recall is coverage."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def fit(self, X: Any, y: Any) -> MapieRecall:
        from mapie.risk_control import MultiLabelClassificationController

        X_fit, y_fit, X_held, y_held = halves(X, y)
        model = LogisticRegression().fit(X_fit, y_fit)
        self.classes_ = model.classes_
        self.model_ = MultiLabelClassificationController(
            model.predict_proba, risk="recall", target_level=1 - LEVEL, **self.settings
        ).calibrate(X_held, (y_held[:, None] == self.classes_).astype(int))
        return self


def recalled(model: Any, X: Any) -> Any:
    sets = np.asarray(model.model_.predict(X))
    return sets.reshape(len(X), -1).astype(bool)


class MapieBinary:
    def __init__(self, risk: str, target: float, **settings: Any) -> None:
        self.risk, self.target, self.settings = risk, target, settings

    def fit(self, X: Any, y: Any) -> MapieBinary:
        from mapie.risk_control import BinaryClassificationController

        X_fit, y_fit, X_held, y_held = halves(X, y)
        model = LogisticRegression().fit(X_fit, y_fit)
        self.classes_ = model.classes_
        self.model_ = BinaryClassificationController(
            model.predict_proba,
            risk=self.risk,
            target_level=self.target,
            confidence_level=1 - LEVEL,
            **self.settings,
        ).calibrate(X_held, y_held)
        if self.model_.best_predict_param is None:
            raise ValueError("no threshold is given, so nothing is promised")
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(self.model_.predict(X)).astype(int)


class Crepes:
    def __init__(self, smoothing: bool) -> None:
        self.smoothing = smoothing

    def fit(self, X: Any, y: Any) -> Crepes:
        from crepes import WrapClassifier

        X_fit, y_fit, X_held, y_held = halves(X, y)
        self.model_ = WrapClassifier(LogisticRegression())
        self.model_.fit(X_fit, y_fit)
        self.model_.calibrate(X_held, y_held)
        self.classes_ = np.unique(y_fit)
        return self


def crepes_sets(model: Any, X: Any) -> Any:
    return model.model_.predict_set(
        X, labels=False, confidence=1 - LEVEL, smoothing=model.smoothing
    ).astype(bool)


def pyod(name: str) -> Callable[[], Any]:
    def build() -> Any:
        if name == "ECOD":
            from pyod.models.ecod import ECOD as detector
        else:
            from pyod.models.knn import KNN as detector
        return detector(contamination=LEVEL)

    return build


class Mrc:
    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def fit(self, X: Any, y: Any) -> Mrc:
        from MRCpy import MRC
        from MRCpy.phi.base_phi import BasePhi

        # MRCpy 3.0.0 lacks the tags that scikit-learn has asked for since 1.7.
        BasePhi.__sklearn_tags__ = BaseEstimator.__sklearn_tags__
        self.mean_, self.scale_ = X.mean(axis=0), X.std(axis=0) + 1e-12
        self.model_ = MRC(phi="linear", random_state=0, **self.settings)
        self.model_.fit((X - self.mean_) / self.scale_, y)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict((X - self.mean_) / self.scale_)


def mrc_bound(model: Any) -> Guarantee:
    """The bound of a fitted model, read in the weakest way: on average."""
    bound = min(1.0, max(0.0, float(model.model_.get_upper_bound())))
    return average("error rate", bound, "<=")


SETS_WORDS = (
    "the methods allow constructing a prediction set [...] with a marginal coverage "
    "guarantee P{Y in C(X)} >= 1 - alpha"
)
RCPS_WORDS = "RCPS and LTT: Require i.i.d. data: P(R <= alpha) >= 1 - delta"
MRC_WORDS = "Returns the upper bound on the expected loss for the fitted classifier."
COVERED = average("coverage", 1 - LEVEL, ">=")
PYOD_WORDS = (
    "the proportion of outliers in the data set. Used when fitting to define the "
    "threshold on the decision function"
)

ENTRIES: dict[str, Entry] = {
    **{
        f"mapie-split-{score}": Entry(
            "MAPIE", f"SplitConformalClassifier, {score}", SETS_WORDS, SETS, COVERED,
            lambda score=score: MapieSplit(score), mapie_sets,
            laws=LAWS if score == "lac" else (three_classes(),),
            sizes=(400,) if score == "raps" else (40, 100),
        )
        for score in ("lac", "aps", "top_k", "raps")
    },
    "mapie-cross-lac": Entry(
        "MAPIE", "CrossConformalClassifier, lac", SETS_WORDS, SETS, COVERED, MapieCross,
        mapie_sets, budget=100,
    ),
    "mapie-crc": Entry(
        "MAPIE", "MultiLabelClassificationController, crc",
        "CRC: Requires exchangeable data: E(R) <= alpha", RISKS, COVERED, MapieRecall,
        recalled,
    ),
    **{
        f"mapie-rcps-{bound or 'default'}": Entry(
            "MAPIE",
            "MultiLabelClassificationController, rcps, "
            + (bound or "default bound (wsr)"),
            RCPS_WORDS, RISKS, sure("coverage", 1 - LEVEL, ">="),
            lambda bound=bound: MapieRecall(
                method="rcps", confidence_level=1 - LEVEL, rcps_bound=bound
            ),
            recalled, FEWER, (100,), 200 if bound else 400,
        )
        for bound in (None, "hoeffding", "bernstein")
    },
    **{
        f"mapie-ltt-{risk}": Entry(
            "MAPIE", f"BinaryClassificationController, {risk}", RCPS_WORDS, RISKS,
            claim,
            lambda risk=risk, target=target: MapieBinary(risk, target),
            laws=("line", "label noise", "integer grid"), sizes=(200, 600), budget=200,
        )
        for risk, target, claim in (
            ("recall", 0.8, sure("class error rate", 0.2, "<=", scope=1)),
            ("accuracy", 0.6, sure("error rate", 0.4, "<=")),
            ("fpr", 0.2, sure("class error rate", 0.2, "<=", scope=0)),
        )
    },
    **{
        f"crepes-{'smoothed' if smoothing else 'plain'}": Entry(
            "crepes", f"WrapClassifier, smoothing={smoothing}",
            "prediction sets and intervals with coverage guarantees", CREPES, COVERED,
            lambda smoothing=smoothing: Crepes(smoothing), crepes_sets,
        )
        for smoothing in (True, False)
    },
    **{
        f"pyod-{name.lower()}": Entry(
            "pyod", f"{name}, contamination", PYOD_WORDS, PYOD, on_training_rows(LEVEL),
            # The rows of the fit: `predict` would score them anew.
            pyod(name), lambda model, X: model.labels_ == 1, budget=100,
        )
        for name in ("ECOD", "KNN")
    },
    "sklearn-one-class-svm": Entry(
        "scikit-learn", "OneClassSVM, nu", "An upper bound on the fraction of training "
        "errors", SKLEARN + "svm.OneClassSVM.html", on_training_rows(LEVEL),
        lambda: OneClassSVM(nu=LEVEL, tol=1e-10),
        lambda model, X: model.decision_function(X) < -1e-6,
    ),
    "sklearn-elliptic-envelope": Entry(
        "scikit-learn", "EllipticEnvelope, contamination", "defined in such a way we "
        "obtain the expected number of outliers [...] in training",
        SKLEARN + "covariance.EllipticEnvelope.html", on_training_rows(LEVEL),
        lambda: EllipticEnvelope(contamination=LEVEL, random_state=0), "detect",
        laws=("label noise", "contaminated"), budget=50,
    ),
    **{
        f"mrcpy-{name}": Entry(
            "MRCpy", f"MRC, linear features, deterministic={deterministic}", MRC_WORDS,
            MRCPY, mrc_bound,
            lambda deterministic=deterministic: Mrc(deterministic=deterministic),
            laws=FEWER, sizes=(40,), budget=150,
        )
        for name, deterministic in (("default", True), ("randomised", False))
    },
}  # fmt: skip


def run(name: str) -> None:
    """Audit one entry and store what was found."""
    entry = ENTRIES[name]
    audit = prudent.audit(
        entry.factory, entry.claim, answer=entry.answer, laws=list(entry.laws),
        sizes=entry.sizes, budget=entry.budget,
    )  # fmt: skip
    print(f"{name}: {audit}", flush=True)
    if not audit.rows:
        return
    lines = found() | {name: summary(audit, version(entry.package))}
    with FOUND.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["entry", *lines[name]], lineterminator="\n")
        writer.writeheader()
        writer.writerows({"entry": e} | lines[e] for e in ENTRIES if e in lines)


def summary(audit: Audit, number: str) -> dict[str, str]:
    """The row of the smallest p-value, and how many there were."""
    row = min(audit.rows, key=lambda row: row.p_value)
    return {
        "version": number,
        "refuted": str(sum(row.is_refuted for row in audit.rows)),
        "cases": str(len(audit.rows)),
        "draws": str(sum(row.claims for row in audit.rows)),
        "laws": "; ".join(sorted({row.law for row in audit.rows})),
        "law": row.law,
        "size": str(row.size),
        "mean_truth": f"{row.mean_truth:.4f}",
        "mean_bound": f"{row.mean_bound:.4f}",
        "broken": str(row.broken),
        "claims": str(row.claims),
        "refused": str(row.refused),
        "allowed": "" if row.allowed is None else f"{row.allowed:.3g}",
        "p_value": f"{row.p_value:.2g}",
        "is_stopped": str(row.is_stopped),
    }


def found() -> dict[str, dict[str, str]]:
    """What was found last, by entry."""
    with FOUND.open(encoding="utf-8", newline="") as file:
        return {line.pop("entry"): line for line in csv.DictReader(file)}


def main(arguments: list[str]) -> None:
    """Run the entries that are named, all without a name; or write the page."""
    if arguments == ["--page"]:
        from experiments import audits_page

        audits_page.write()
        return
    if unknown := set(arguments) - set(ENTRIES):
        sys.exit(f"no entry {sorted(unknown)}; there are {', '.join(ENTRIES)}.")
    for name in arguments or ENTRIES:
        run(name)


if __name__ == "__main__":
    main(sys.argv[1:])
