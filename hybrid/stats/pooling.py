"""One effect over several models: a random-effects mean of their differences, with heterogeneity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid.stats.intervals import Interval
from hybrid.stats.linearised import Floats
from hybrid.stats.scatter import quantile_of, tail_of

# Number of bisection steps for tau^2: enough for the last bit.
_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Pooled:
    """A mean effect over studies (here: models), in the unit of the effects.

    `interval` is for the mean over all such models and `predicted` for the effect of one more model; both need two
    effects. `tau` is the standard deviation of true effects between models. `q` is Cochran's statistic, and `p_q` the
    probability of a value this large by sampling alone. `i2`, 0..1, is the share of the scatter that is not sampling
    error.
    """

    value: float
    interval: Interval | None
    predicted: Interval | None
    p_value: float | None
    tau: float
    q: float
    p_q: float | None
    i2: float


def pooled_effect(effects: Sequence[float], errors: Sequence[float], level: float = 0.95) -> Pooled:
    """Return the random-effects mean of several differences.

    The variance between models is Paule and Mandel's (Journal of Research of the National Bureau of Standards 87 (1982)
    377-385), for which the weighted scatter equals its expected value; Veroniki et al., Research Synthesis Methods 7
    (2016) 55-79, recommend it over DerSimonian and Laird's. The interval is that of Hartung and Knapp (Statistics in
    Medicine 20 (2001) 3875-3889) with Student's t of k - 1 degrees of freedom, and a factor of at least 1 (Roever,
    Knapp and Friede, BMC Medical Research Methodology 15 (2015) 99). The interval of one more model is Higgins,
    Thompson and Spiegelhalter's, with k - 2 degrees of freedom (Journal of the Royal Statistical Society A 172 (2009)
    137-159); it needs three models.

    Args:
        effects: (k,) the difference of each model.
        errors: (k,) its standard error, above 0.
        level: two-sided coverage.

    Raises `ValueError` for no effect, for errors that are not above 0, and for a level outside 0..1.
    """
    y, variance = np.asarray(effects, float), np.asarray(errors, float) ** 2
    if not len(y) or len(y) != len(variance) or not (np.isfinite(y).all() and (variance > 0).all()):
        raise ValueError("pooling needs at least one effect, and each needs a standard error above 0")
    tail, k = tail_of(level), len(y)
    q = _scatter(y, variance, 0.0)
    tau2 = _between(y, variance)
    weights = 1 / (variance + tau2)
    mean = float(weights @ y / weights.sum())
    if k == 1:
        return Pooled(mean, None, predicted=None, p_value=None, tau=0.0, q=q, p_q=None, i2=0.0)
    from scipy.special import chdtrc, stdtr  # slow to import, and only comparisons need it

    factor = max(1.0, _scatter(y, variance, tau2) / (k - 1))
    error = math.sqrt(factor / float(weights.sum()))
    reach = quantile_of(k - 1, tail) * error
    predicted = None
    if k > 2:
        far = quantile_of(k - 2, tail) * math.sqrt(tau2 + error**2)
        predicted = Interval(mean - far, mean + far, "prediction")
    p_value = 2 * float(stdtr(k - 1, -abs(mean) / error))
    i2 = max(0.0, 1 - (k - 1) / q) if q > 0 else 0.0
    interval = Interval(mean - reach, mean + reach, "Hartung-Knapp")
    return Pooled(
        mean,
        interval,
        predicted=predicted,
        p_value=p_value,
        tau=math.sqrt(tau2),
        q=q,
        p_q=float(chdtrc(k - 1, q)),
        i2=i2,
    )


def _scatter(y: Floats, variance: Floats, tau2: float) -> float:
    """Return the weighted sum of squares around the weighted mean at this variance between models."""
    weights = 1 / (variance + tau2)
    return float(weights @ (y - weights @ y / weights.sum()) ** 2)


def _between(y: Floats, variance: Floats) -> float:
    """Return the variance between models at which the weighted scatter is k - 1; 0 if it is smaller even at 0."""
    expected = len(y) - 1
    if expected == 0 or _scatter(y, variance, 0.0) <= expected:
        return 0.0
    low, high = 0.0, float(((y - y.mean()) ** 2).sum()) + float(variance.max())
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if _scatter(y, variance, middle) > expected else (low, middle)
    return high
