"""The test of two solvers on few single questions: every table of them is counted."""

import math
from collections.abc import Iterator

import pytest

from hybrid.stats import EXACT, FEW, SKEWED_T, SWAPPED, combine, contrast, noninferiority
from hybrid.stats.exact import mcnemar, unconditional
from hybrid.stats.randomisation import randomisation
from hybrid.types import Cell, Metric


def solvers(helped: int, harmed: int, n: int, strata: int = 1) -> tuple[Metric, Metric]:
    """Two solvers on `n` single questions, of which the second helps the first `helped` ones and harms `harmed`."""
    first = [0.0] * helped + [1.0] * harmed + [1.0] * (n - helped - harmed)
    second = [1.0] * helped + [0.0] * harmed + [1.0] * (n - helped - harmed)
    return _metric(first, strata), _metric(second, strata)


def _metric(values: list[float], strata: int) -> Metric:
    cells = tuple(Cell(f"t{place % strata}", f"q{place:02}", value, 1.0) for place, value in enumerate(values))
    how = "ratio" if strata == 1 else "mean_of_ratios"
    return Metric("accuracy", combine(cells, how), len(cells), how, cells)


def tables(n: int) -> Iterator[tuple[int, int]]:
    return ((helped, harmed) for helped in range(n + 1) for harmed in range(n + 1 - helped))


@pytest.mark.parametrize("n", [5, 10, 20, FEW - 1])
def test_the_test_never_errs_more_often_than_it_says(n: int) -> None:
    found = {table: contrast(*solvers(*table, n)) for table in tables(n)}
    assert {one.test for one in found.values()} == {EXACT}
    for level in (0.01, 0.05, 0.1):
        rejected = [table for table, one in found.items() if one.p_value is not None and one.p_value <= level]
        for step in range(1, 500):
            share = step / 500
            errs = sum(
                math.comb(n, b + c) * math.comb(b + c, b) * (share / 2) ** (b + c) * (1 - share) ** (n - b - c)
                for b, c in rejected
            )
            assert errs <= level, (level, share)


def test_five_helped_of_ten() -> None:
    # By hand: of the tables of 10 as far from equal, the greatest probability at any share; McNemar gives 2 / 32.
    found = contrast(*solvers(5, 0, 10))
    assert found.p_value == unconditional(5, 0, 10) == pytest.approx(0.0265, abs=5e-5)
    assert mcnemar(5, 0) == 0.0625
    # All differ, all alike: 2 / 2^n wherever every table but two is nearer.
    assert unconditional(10, 0, 10) == pytest.approx(2 / 2**10)
    assert unconditional(3, 3, 10) == unconditional(0, 0, 10) == 1
    assert unconditional(2, 7, 12) == unconditional(7, 2, 12)


def test_an_interval_excludes_0_only_where_the_exact_test_rejects() -> None:
    # The skewed t alone puts 4 helped of 10 above 0.
    found = contrast(*solvers(4, 0, 10))
    assert found.p_value == unconditional(4, 0, 10) > 0.05
    assert found.interval is not None
    assert found.interval.low == 0 < found.interval.high
    assert found.interval.method.endswith("exact test")
    assert noninferiority(*solvers(4, 0, 10), 0.05).verdict == "not inferior"
    for table in tables(12):
        one = contrast(*solvers(*table, 12))
        assert one.interval is not None
        assert one.p_value is not None
        assert (one.p_value < 0.05) == (not one.interval.low <= 0 <= one.interval.high)


def test_strata_and_partial_credit_are_tested_by_swapping() -> None:
    for a, b in (solvers(6, 0, 11, strata=2), (_metric([0.25] * 6 + [1.0] * 5, 1), _metric([1.0] * 11, 1))):
        found = contrast(a, b)
        assert (found.test, found.p_value) == (SWAPPED, randomisation(a, b).p_value)


def test_many_questions_and_questions_of_several_rows_are_tested_by_the_skewed_t() -> None:
    assert contrast(*solvers(5, 0, FEW)).test == SKEWED_T
    doubled = [
        Metric(
            "m",
            one.value,
            one.n,
            one.combine,
            tuple(Cell("t", f"q{i // 2}", c.numerator, 1.0) for i, c in enumerate(one.cells)),
        )
        for one in solvers(6, 0, 20)
    ]
    assert contrast(*doubled).test == SKEWED_T


def test_counts_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="discordant"):
        unconditional(6, 5, 10)
    with pytest.raises(ValueError, match="discordant"):
        unconditional(-1, 0, 10)
