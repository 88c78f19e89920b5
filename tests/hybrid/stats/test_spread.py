"""`spread`, the spread of repeated runs, agrees with SciPy and plain sums."""

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from hybrid.stats.spread import spread

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@settings(deadline=None)
@given(VALUES, st.floats(0.5, 0.99))
def test_agrees_with_scipy(values: list[float], level: float) -> None:
    result = spread(values, level)
    assert result.interval is not None
    assert result.sd == pytest.approx(statistics.stdev(values), abs=1e-9)
    assert result.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    half = t.ppf((1 + level) / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    ends = (statistics.fmean(values) - half, statistics.fmean(values) + half)
    assert (result.interval.low, result.interval.high) == pytest.approx(ends, rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(VALUES, st.floats(-100, 100))
def test_order_does_not_matter_and_a_shift_shifts(values: list[float], shift: float) -> None:
    result, other = spread(values), spread([value + shift for value in values])
    assert result == spread(sorted(values))
    assert other.mean == pytest.approx(result.mean + shift, abs=1e-6)
    assert other.sd == pytest.approx(result.sd, abs=1e-6)
    assert result.low <= result.mean <= result.high


def test_one_value_has_no_spread_and_equal_values_none_to_speak_of() -> None:
    item = spread([0.7])
    assert (item.n, item.mean, item.sd, item.low, item.high, item.interval) == (1, 0.7, None, 0.7, 0.7, None)
    same = spread([0.1] * 3)
    assert same.interval is not None
    assert (same.mean, same.sd, same.interval.low, same.interval.high) == (0.1, 0.0, 0.1, 0.1)


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [math.inf]])
def test_refuses_what_has_no_spread(values: list[float]) -> None:
    with pytest.raises(ValueError, match="value"):
        spread(values)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_refuses_a_level_outside(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        spread([1.0, 2.0], level)
