"""The pooled effect of several models: known cases, a second implementation, and the coverage of its interval."""

import math

import numpy as np
import pytest

from hybrid.stats import pooled_effect


def plain(y: list[float], errors: list[float]) -> tuple[float, float, float]:
    """Return mean, half of the interval and tau^2 by a search over a fine grid and sums in plain Python."""
    from scipy.optimize import brentq
    from scipy.stats import t

    def mean_and_scatter(tau2: float) -> tuple[float, float, float]:
        weights = [1 / (error**2 + tau2) for error in errors]
        mean = sum(w * item for w, item in zip(weights, y, strict=True)) / sum(weights)
        return mean, sum(w * (entry - mean) ** 2 for w, entry in zip(weights, y, strict=True)), sum(weights)

    k, tau2 = len(y), 0.0
    if mean_and_scatter(0.0)[1] > k - 1:
        tau2 = float(brentq(lambda current: mean_and_scatter(current)[1] - (k - 1), 0, 1e3, xtol=1e-14))
    mean, scatter, total = mean_and_scatter(tau2)
    return mean, float(t.ppf(0.975, k - 1)) * math.sqrt(max(1.0, scatter / (k - 1)) / total), tau2


def test_two_hundred_random_sets_agree_with_a_second_implementation() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        k = int(rng.integers(2, 9))
        errors = rng.uniform(0.01, 0.08, k).tolist()
        y = (rng.normal(0.05, rng.uniform(0, 0.1), k) + rng.normal(0, errors)).tolist()
        result, (mean, half, tau2) = pooled_effect(y, errors), plain(y, errors)
        assert result.interval is not None
        assert (result.value, result.interval.low, result.interval.high) == pytest.approx(
            (mean, mean - half, mean + half)
        )
        assert result.tau**2 == pytest.approx(tau2, abs=1e-9)
        assert (result.p_value < 0.05) == (not result.interval.low <= 0 <= result.interval.high)  # type: ignore[operator]


def test_equal_effects_have_no_heterogeneity_and_opposite_ones_do() -> None:
    same = pooled_effect([0.1, 0.1, 0.1], [0.02, 0.03, 0.04])
    assert (same.value, same.tau, same.i2) == (pytest.approx(0.1), 0.0, 0.0)
    opposite = pooled_effect([0.3, -0.3, 0.3, -0.3], [0.02] * 4)
    assert opposite.value == pytest.approx(0.0)
    assert opposite.i2 > 0.9
    assert opposite.tau == pytest.approx(math.sqrt(0.36 / 3 - 0.0004))
    assert opposite.predicted is not None
    assert opposite.interval is not None
    assert opposite.predicted.low < opposite.interval.low
    assert (opposite.p_q or 1.0) < 1e-6


@pytest.mark.system
@pytest.mark.parametrize(("k", "tau"), [(3, 0.0), (5, 0.05), (8, 0.1)])
def test_the_interval_holds_the_mean_of_all_models(k: int, tau: float) -> None:
    stored = 0
    for seed in range(400):
        rng = np.random.default_rng([seed, k])
        errors = rng.uniform(0.02, 0.06, k)
        interval = pooled_effect(rng.normal(0.05, np.hypot(tau, errors)), errors).interval
        assert interval is not None
        stored += interval.low <= 0.05 <= interval.high
    assert stored >= 0.92 * 400


def test_one_model_has_no_interval_and_bad_errors_are_refused() -> None:
    assert pooled_effect([0.1], [0.02]).interval is None
    assert pooled_effect([0.1, 0.2], [0.02, 0.02]).predicted is None
    for effects, errors in (([], []), ([0.1], [0.0]), ([0.1, 0.2], [0.1]), ([float("nan")], [0.1])):
        with pytest.raises(ValueError, match="pooling"):
            pooled_effect(effects, errors)
