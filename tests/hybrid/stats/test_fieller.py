"""Fieller's interval of a ratio: worked by hand, withheld near 0, and how often it holds the truth."""

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
        residual, size = np.array(above) - end * np.array(below), sum(y * y for y in below) / sum(below)
        variance = len(residual) * residual.var(ddof=1) + size**2 * ((1 - end) ** 2 + end**2)
        assert abs(residual.sum()) / math.sqrt(variance) == pytest.approx(
            student.ppf(0.975, len(residual) - 1), rel=1e-9
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
    """400 draws of 200 questions: on the way with probability `way`, of which the hybrid takes a share."""
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
