"""Holm's correction against a published example and its bounds."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.stats import holm


def test_holm_published_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    with pytest.raises(ValueError, match="position 1"):
        holm([0.1, 1.5])
    with pytest.raises(ValueError, match="position 0"):
        holm([math.nan])


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_the_raw_and_the_bonferroni_values(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for raw, result in zip(p_values, adjusted, strict=True):
        assert raw <= result <= min(1.0, len(p_values) * raw)
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    assert [adjusted[index] for index in order] == sorted(adjusted)
