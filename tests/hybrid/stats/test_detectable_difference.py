"""The detectable difference: `sample_size` inverted."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from hybrid.errors import UsageError
from hybrid.stats import detectable_difference, sample_size


@pytest.mark.parametrize(
    ("questions", "discordant", "difference"),
    # Calculators after Connor 1987 print 23 pairs for p01, p10 of 0.45, 0.05 and 155 for 0.30, 0.15.
    # The last is what `sample_size` gives where all are discordant.
    [(23, 0.5, 0.4), (155, 0.45, 0.15), (sample_size(0.3, 1.0), 1.0, 0.3)],
)
def test_published_examples_inverted(questions: int, discordant: float, difference: float) -> None:
    assert detectable_difference(questions, discordant) <= difference < detectable_difference(questions - 1, discordant)


@settings(deadline=None)
@given(
    st.integers(1, 100_000),
    st.none() | st.floats(0.01, 1),
    st.floats(0.1, 0.99),
    st.floats(0.001, 0.09),
)
def test_so_many_questions_find_it_and_nothing_less(
    questions: int, discordant: float | None, power: float, level: float
) -> None:
    try:
        found = detectable_difference(questions, discordant, power, level)
    except UsageError:
        # Not even the greatest difference there can be is found.
        assert sample_size(discordant or 1.0, discordant, power, level) > questions - 1e-9
        return
    assert 0 < found <= (discordant or 1.0)
    assert sample_size(min(found * (1 + 1e-9), discordant or 1.0), discordant, power, level) <= questions + (
        found == discordant
    )
    assume(found > 1e-6)
    less = found * (1 - 1e-6)
    assert sample_size(less, discordant, power, level) >= questions


@settings(deadline=None)
@given(st.integers(20, 5000), st.floats(0.3, 1), st.floats(0.55, 0.99))
def test_agrees_with_a_numerical_root_of_connor_s_power(questions: int, discordant: float, power: float) -> None:
    def lacking(d: float) -> float:
        z = (d * math.sqrt(questions) - norm.ppf(0.975) * math.sqrt(discordant)) / math.sqrt(discordant - d * d)
        return float(norm.cdf(z)) - power

    end = discordant - 1e-9
    assume(lacking(end) > 0)
    assert detectable_difference(questions, discordant, power) == pytest.approx(brentq(lacking, 1e-9, end), abs=1e-6)


@settings(deadline=None)
@given(st.integers(10, 10_000))
def test_more_questions_show_less(questions: int) -> None:
    assert detectable_difference(questions + 1) < detectable_difference(questions)
    assert detectable_difference(questions, power=0.9) > detectable_difference(questions)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0,), "--questions 0: too few"),
        ((-5,), "--questions -5: too few"),
        ((3,), "--questions 3: too few"),
        ((30, 0.02), r"--questions 30 at 0\.02 discordant: too few"),
        ((100, 0.0), "--discordant"),
        ((100, 1.2), "--discordant"),
        ((100, None, 1.0), "power"),
        ((100, None, 0.03), "power"),
        ((100, None, 0.05, 0.05), "power"),
        ((100, None, 0.8, 0.0), "level"),
    ],
)
def test_refuses(arguments: tuple[int, float | None], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        detectable_difference(*arguments)
