"""What a family is, and the shrinkage that all built-in families share.

A family is a probabilistic classifier h(y | x) whose parameters come in closed form
from additive statistics of the data. With m rows, r classes and soft labels
Q (m, r), block k of a statistic is s_k = sum_i Q_ik psi(x_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from prudent.core.types import BoolArray, FloatArray

Statistics = list[FloatArray]


@runtime_checkable
class Family(Protocol):
    """Closed-form probabilistic classifier: the plug-in protocol of the calibration.

    Four methods are required. A family may also have

    - `tied = True`: the classes share parameters, so that one invalid class block
      shortens the step of all of them;
    - `prepare(X)`: what the other methods take in place of `X`, worked out once;
    - `row_constant(X, parameters)`: shape (n_samples,), what `log_joint` leaves out;
      read only with `generative_weight > 0`;
    - `freeze(old, new)`: the statistics after a step under `guard="freeze"`; without
      it an update with an invalid block is refused as a whole.

    Examples
    --------
    Poisson naive Bayes; its calibration climbs to logistic regression on the counts.

    >>> import numpy as np
    >>> from prudent import RiskCalibratedClassifier
    >>> class Poisson:
    ...     def statistics(self, X, Q):
    ...         return [Q.sum(axis=0), Q.T @ X]
    ...
    ...     def parameters(self, s):
    ...         return np.log(s[0] / s[0].sum()), s[1] / s[0][:, None]
    ...
    ...     def log_joint(self, X, parameters):
    ...         log_priors, rates = parameters
    ...         return log_priors + X @ np.log(rates).T - rates.sum(axis=1)
    ...
    ...     def is_valid(self, s):
    ...         return (s[0] > 0) & (s[1] > 0).all(axis=1)
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = rng.poisson(np.where(y[:, None] == 1, [3.0, 4.0], [1.0, 5.0]))
    >>> model = RiskCalibratedClassifier(family=Poisson()).fit(X, y)
    >>> bool(model.loss_curve_[-1] <= model.loss_curve_[0])
    True
    """

    def statistics(self, X: Any, Q: FloatArray) -> Statistics:
        """Arrays with leading axis r, additive over rows, linear in Q (m, r).

        The first is s0 = sum_i Q_i.
        """
        ...

    def parameters(self, statistics: Statistics) -> Any:
        """Parameters in closed form, shrinkage included; any object."""
        ...

    def log_joint(self, X: Any, parameters: Any) -> FloatArray:
        """Log h(x, k) up to a constant of the row, shape (n_samples, r)."""
        ...

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """Whether each class block gives valid parameters, shape (r,)."""
        ...


@dataclass(frozen=True, slots=True)
class PriorStrengths:
    """Shrinkage in equivalent numbers of rows; zero everywhere is maximum likelihood.

    Attributes
    ----------
    classes : float
        m0: p_k = (s0_k + m0 / r) / (M + m0).
    means : float
        m1: mu'_k = s0_k mu_k / (m1 + s0_k), towards the overall mean.
    covariances : float or None
        m2: Sigma'_k = (m2 I + s0_k Sigma_k) / (m2 + s0_k) in standardised units.
        None is 1, or 1 + 0.1 d for full covariances of d features.
    levels : float or tuple of float
        a, or one a_j per categorical feature:
        q_kjl = (s1_kjl + a_j / r_j) / (sum_l s1_kjl + a_j).
    mean : ndarray of shape (d,) or None
        What the means are shrunken towards, in the units of the features, in place
        of the overall mean.
    covariance : ndarray of shape (d, d) or (d,), or None
        What the covariances are shrunken towards, or the variances alone, in place
        of the overall variances.
    exact : bool
        Whether covariances count how far the means were from what they are shrunken
        towards.
    """

    classes: float = 0.0
    means: float = 0.0
    covariances: float | None = 0.0
    levels: float | tuple[float, ...] = 0.0
    mean: FloatArray | None = None
    covariance: FloatArray | None = None
    exact: bool = False


def shrunken_log_priors(s0: FloatArray, strength: float) -> FloatArray:
    """Log p_k with p_k = (s0_k + m0 / r) / (M + m0), shape (r,)."""
    return np.log((s0 + strength / len(s0)) / (s0.sum() + strength))
