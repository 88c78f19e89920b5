"""Non-inferiority: verdicts by hand, the paired score test of Tango (1998), and agreement of test and interval."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import Cell, Combine, Metric
from hybrid.stats import combine, contrast, noninferiority


def metric(cells: Sequence[Cell], mode: Combine = "ratio") -> Metric:
    return Metric("m", combine(cells, mode), len(cells), mode, tuple(cells))


def plain(values: Sequence[float]) -> Metric:
    return metric([Cell("", f"q{place}", float(value), 1.0) for place, value in enumerate(values)])


def solvers(count: int, helped: int, harmed: int, none: int) -> tuple[Metric, Metric]:
    """Return two solvers with these counts of questions right for both, only the second, only the first, and
    neither."""
    a = [1] * count + [0] * helped + [1] * harmed + [0] * none
    b = [1] * count + [1] * helped + [0] * harmed + [0] * none
    return plain(a), plain(b)


def tango(helped: int, harmed: int, n: int, difference: float) -> float:
    """Return the score statistic of a true difference: Tango, Statistics in Medicine 17 (1998) 891-908."""
    b = -helped - harmed + (2 * n - helped + harmed) * difference
    c = -harmed * difference * (1 - difference)
    q = (math.sqrt(b * b - 8 * n * c) - b) / (4 * n)
    return (helped - harmed - n * difference) / math.sqrt(n * (2 * q + difference * (1 - difference)))


def tango_interval(helped: int, harmed: int, n: int) -> tuple[float, float]:
    middle, z = (helped - harmed) / n, norm.ppf(0.975)
    low = brentq(lambda d: tango(helped, harmed, n, d) - z, -1 + 1e-9, middle)
    return low, brentq(lambda d: tango(helped, harmed, n, d) + z, middle, 1 - 1e-9)


def test_the_reference_is_what_was_published() -> None:
    # Soft contact lenses, 44 pairs, one for the standard only, margin 0.1: Tango 1998, section 6.
    assert tango(0, 1, 44, -0.1) == pytest.approx(1.709, abs=5e-4)
    assert norm.sf(tango(0, 1, 44, -0.1)) == pytest.approx(0.044, abs=5e-4)
    # Airway hyper-responsiveness (1, 1, 7, 12): Fagerland, Lydersen and Laake, Statistics in Medicine 33 (2014) 2850.
    assert tango_interval(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_the_published_example_has_the_published_verdict() -> None:
    # One-sided at 5 % as in the paper: chemical disinfection is not inferior; at 2.5 % it is undecided.
    a, b = solvers(43, 0, 1, 0)
    assert noninferiority(a, b, 0.1, level=0.9).verdict == "not inferior"
    result = noninferiority(a, b, 0.1)
    assert result.verdict == "undecided"
    assert result.p_value == pytest.approx(0.044, abs=0.002)


CELLS = st.lists(
    st.tuples(st.sampled_from("xy"), st.sampled_from("abcdefgh"), st.integers(0, 3), st.integers(0, 3)),
    min_size=3,
    max_size=14,
)


@settings(deadline=None)
@given(CELLS, st.sampled_from(["ratio", "mean_of_ratios"]), st.floats(0.01, 0.9), st.floats(0.6, 0.99))
def test_verdict_interval_and_p_value_are_one(
    rows: list[tuple[str, str, int, int]], combine: Combine, margin: float, level: float
) -> None:
    a, b = (metric([Cell(row[0], row[1], float(row[side]), 3.0) for row in rows], combine) for side in (2, 3))
    result = noninferiority(a, b, margin, level)
    assume(result.interval is not None and result.p_value is not None)
    assert result.interval is not None
    assert result.p_value is not None
    assert result.interval == contrast(a, b, level).interval
    assume(abs(result.interval.low + margin) > 1e-9)
    assert (result.p_value < (1 - level) / 2) == (result.interval.low > -margin)
    assert (result.verdict in ("superior", "not inferior")) == (result.interval.low > -margin)
    assert (result.verdict == "inferior") == (result.interval.high < -margin)
    wider = noninferiority(a, b, margin + 0.05, level)
    assert wider.p_value is not None
    assert wider.p_value <= result.p_value + 1e-12


@pytest.mark.parametrize("margin", [0.0, -0.05, math.nan, math.inf])
def test_a_margin_must_be_above_0(margin: float) -> None:
    with pytest.raises(UsageError, match=r"--margin .*above 0"):
        noninferiority(plain([1, 0]), plain([1, 1]), margin)


def test_other_questions_are_refused() -> None:
    with pytest.raises(DataError, match="'q2'"):
        noninferiority(plain([1, 0]), plain([1, 0, 1]), 0.1)
    with pytest.raises(ValueError, match="level"):
        noninferiority(plain([1, 0]), plain([1, 0]), 0.1, level=1.0)
