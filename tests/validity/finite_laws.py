"""Laws on finitely many rows, so that every true rate is a sum.

A row is the number of an atom. A frozen scorer knows a score for each atom and class;
the truth is the joint probability of atom and class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator


class AtomScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier that looks its scores up."""

    def __init__(self, scores=None):
        self.scores = scores

    def fit(self, X, y):
        raise AssertionError("a frozen model is never fitted")

    @property
    def classes_(self):
        return np.arange(self.scores.shape[1])

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        return self.scores[np.asarray(X)[:, 0].astype(int)]

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


@dataclass(frozen=True)
class FiniteLaw:
    """Joint probabilities (n_atoms, n_classes), and the scores of the model."""

    name: str
    joint: np.ndarray
    scores: np.ndarray

    @property
    def model(self):
        return FrozenEstimator(AtomScores(self.scores))

    @property
    def atoms(self):
        return np.arange(len(self.joint), dtype=float)[:, None]

    def draw(self, n, rng):
        cells = rng.choice(self.joint.size, size=n, p=self.joint.ravel())
        atoms, labels = np.divmod(cells, self.joint.shape[1])
        return atoms[:, None].astype(float), labels

    def share(self, marked):
        """True share of the rows on atoms that are marked."""
        return float(self.joint.sum(axis=1)[marked].sum())

    def error_rate(self, predicted, answered=None):
        """True error rate of labels for the atoms, among answered ones."""
        share = self.joint.sum(axis=1)
        right = self.joint[np.arange(len(share)), predicted]
        if answered is None:
            answered = np.ones(len(share), dtype=bool)
        if not share[answered].sum():
            return 0.0
        return 1 - right[answered].sum() / share[answered].sum()

    def class_error(self, predicted, c):
        """True error rate of one class."""
        return 1 - self.joint[predicted == c, c].sum() / self.joint[:, c].sum()

    def coverage(self, sets, c=None):
        """True probability that a set holds the class, of all rows or of one class."""
        held = self.joint * sets
        if c is None:
            return held.sum()
        return held[:, c].sum() / self.joint[:, c].sum()


def binary_law(name, score, wrong, share=None):
    """Two classes: atoms of these scores of being right, wrong in these shares."""
    score, wrong = np.asarray(score, float), np.asarray(wrong, float)
    share = np.ones(len(score)) if share is None else np.asarray(share, float)
    share = share / share.sum()
    label = np.arange(len(score)) % 2
    joint = np.empty((len(score), 2))
    joint[np.arange(len(score)), label] = share * (1 - wrong)
    joint[np.arange(len(score)), 1 - label] = share * wrong
    # Above one half, so that the label stays the predicted one.
    certainty = 0.5 + (1 + score) / (4 + 2 * score.max())
    scores = np.empty((len(score), 2))
    scores[np.arange(len(score)), label] = certainty
    scores[np.arange(len(score)), 1 - label] = 1 - certainty
    return FiniteLaw(name, joint, scores)


def logistic_law(n_atoms=200):
    """Errors that fall smoothly with the score."""
    score = np.linspace(0, 1, n_atoms)
    return binary_law("falling errors", score, 0.5 / (1 + np.exp(8 * score - 1)))


def constant_law(rate):
    """The law that attains the boundary: an error rate just above the limit."""
    return binary_law("constant", np.arange(300), np.full(300, rate + 1e-9))


def two_regions_law(rate):
    """Above the limit at the top and again below: the union of two bad regions."""
    wrong = np.full(120, rate * 0.4)
    wrong[100:] = rate * 1.3  # the surest atoms, for a while above the limit
    wrong[30:70] = rate * 2.2
    return binary_law("two regions", np.arange(120), wrong)


def few_scores_law(rate):
    """Four scores, most of the rows on the second, errors that do not fall."""
    return binary_law(
        "few scores",
        [0, 1, 2, 3],
        [0.5, rate * 1.05, rate * 0.2, rate * 1.4],
        [0.2, 0.5, 0.2, 0.1],
    )


def rare_class_law(n_atoms=80, seed=0):
    """Three classes, one of them rare, scores on a coarse grid with ties."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.85, 0.1, 0.05])
    place = np.linspace(-4, 4, n_atoms)
    density = np.exp(-((place[:, None] - [-1.0, 0.5, 2.0]) ** 2))
    density *= rng.uniform(0.5, 1.5, density.shape)
    joint = density / density.sum(axis=0) * shares
    posterior = joint / joint.sum(axis=1, keepdims=True)
    return FiniteLaw("rare class", joint, np.round(posterior, 1))


def many_classes_law(n_atoms=60, n_classes=5, seed=1):
    """Five classes and a model whose scores have little to do with them."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(n_atoms * n_classes, 0.3)).reshape(n_atoms, -1)
    posterior = joint / joint.sum(axis=1, keepdims=True)
    noisy = posterior + rng.uniform(0, 0.7, joint.shape)
    return FiniteLaw("noisy scores", joint, noisy)
