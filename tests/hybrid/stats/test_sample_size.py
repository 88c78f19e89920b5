"""The number of questions that a test needs, against published examples and simulation."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.errors import UsageError
from hybrid.stats import TYPICAL_DISCORDANT, sample_size


@pytest.mark.parametrize(
    ("difference", "discordant", "n"),
    # Two calculators after Connor 1987 print these: p01, p10 of 0.45, 0.05 and of 0.30, 0.15.
    [(0.4, 0.5, 23), (-0.4, 0.5, 23), (0.15, 0.45, 155)],
)
def test_sample_size_published_values(difference: float, discordant: float, n: int) -> None:
    assert sample_size(difference, discordant) == n


@settings(deadline=None)
@given(st.floats(0.01, 1), st.floats(0, 1))
def test_sample_size_grows_with_power_and_discordance(difference: float, room: float) -> None:
    discordant = difference + room * (1 - difference)
    assert sample_size(difference, discordant) <= sample_size(difference, 1.0)
    assert sample_size(difference, discordant) <= sample_size(difference, discordant, power=0.9)
    assert sample_size(difference) == sample_size(difference, max(difference, TYPICAL_DISCORDANT))


@pytest.mark.parametrize(
    ("difference", "discordant", "power", "level"),
    [
        (0, None, 0.8, 0.05),
        (1.2, None, 0.8, 0.05),
        (math.nan, None, 0.8, 0.05),
        (0.3, 0.2, 0.8, 0.05),
        (0.1, 1.2, 0.8, 0.05),
        (0.1, None, 1.0, 0.05),
        (0.1, None, 0.8, 0.0),
        (0.1, None, 0.01, 0.05),
    ],
)
def test_sample_size_refuses(difference: float, discordant: float | None, power: float, level: float) -> None:
    with pytest.raises(UsageError, match=r"difference|power"):
        sample_size(difference, discordant, power, level)
