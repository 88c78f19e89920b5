"""Fieller's interval of a ratio: it equals a hand computation, is withheld near 0, and has the right coverage."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from hybrid.stats import FIELLER, Interval, ratio_interval


def of(above: list[float], below: list[float], clusters: list[str] | None = None) -> Interval | None:
    return ratio_interval(np.array(above), np.array(below), clusters or range(len(above)))


def test_its_ends_are_the_ratios_that_a_t_test_just_does_not_reject() -> None:
    above, below = [1.0, 0.0, 1.0, -1.0, 1.0, 0.0, 1.0, 1.0] * 2, [1.0, 1.0, 2.0, 1.0, 1.0, 0.0, 1.0, 2.0] * 2
    result = of(above, below)
    assert result is not None
    assert result.method == FIELLER
    for end in (result.low, result.high):
        remaining, size = np.array(above) - end * np.array(below), sum(y * y for y in below) / sum(below)
        variance = len(remaining) * remaining.var(ddof=1) + size**2 * ((1 - end) ** 2 + end**2)
        assert abs(remaining.sum()) / math.sqrt(variance) == pytest.approx(
            student.ppf(0.975, len(remaining) - 1), rel=1e-9
        )
    assert result.low < sum(above) / sum(below) < result.high


@pytest.mark.parametrize(
    "below", [[1.0, -1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], ids=["signs", "one", "two of four"]
)
def test_a_denominator_that_does_not_differ_from_zero_bounds_nothing(below: list[float]) -> None:
    assert of([1.0, 1.0, -1.0, 1.0], below) is None


def test_rows_of_a_cluster_count_as_one() -> None:
    above, below = [1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0]
    assert of([*above, *above], [*below, *below], [*"abcd", *"abcd"]) == of(
        [2 * item for item in above], [2.0, 2, 2, 4]
    )
    assert of([1.0, 1.0], [1.0, 1.0], ["a", "a"]) is None


@pytest.mark.parametrize(("way", "share"), [(0.2, 0.5), (0.2, -0.3), (0.1, 0.9)])
def test_it_holds_the_truth_where_it_is_given(way: float, share: float) -> None:
    """The interval contains the true ratio in 92 to 98 % of 400 draws. In each draw of 200 questions, a question can be
    gained with probability `way`; the share of these that is gained is `share`, or lost if negative."""
    stored = options = 0
    for seed in range(400):
        rng = np.random.default_rng([11, seed])
        below = (rng.random(200) < way).astype(float)
        gained = below * (rng.random(200) < max(share, 0.0)) - (rng.random(200) < max(-share, 0.0) * way)
        result = of(gained.tolist(), below.tolist())
        options += result is not None
        stored += result is not None and result.low <= share <= result.high
    assert options == 400
    assert 0.92 <= stored / options <= 0.98


@pytest.mark.parametrize(("n", "gain", "cost"), [(60, 0.2, 400.0), (200, 0.05, 900.0), (400, 0.0, 50.0)])
def test_the_interval_of_points_by_cost_holds_the_truth_in_any_unit(n: int, gain: float, cost: float) -> None:
    stored = 0
    for seed in range(400):
        rng = np.random.default_rng([seed, n])
        above = rng.choice([-1.0, 0.0, 1.0], n, p=[0.1, 0.8 - gain, 0.1 + gain])
        below = rng.gamma(4.0, cost / 4, n)
        result, scaled = (ratio_interval(above, below * by, range(n), share=False) for by in (1.0, 1000.0))
        assert result is not None
        assert scaled is not None
        assert (scaled.low * 1000, scaled.high * 1000) == pytest.approx((result.low, result.high))
        stored += result.low <= gain / cost <= result.high
    assert stored >= 0.925 * 400
