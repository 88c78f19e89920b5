"""The exact test of two solvers on few single questions: all possible tables are enumerated."""

import math
from collections.abc import Iterator

import pytest

from hybrid.core.types import Cell, Metric
from hybrid.stats import EXACT, FEW, combine, contrast, noninferiority
from hybrid.stats.exact import unconditional


def solvers(helped: int, harmed: int, n: int, strata: int = 1) -> tuple[Metric, Metric]:
    """Return two solvers on `n` single questions; the second helps the first `helped` ones and harms `harmed`."""
    first = [0.0] * helped + [1.0] * harmed + [1.0] * (n - helped - harmed)
    second = [1.0] * helped + [0.0] * harmed + [1.0] * (n - helped - harmed)
    return _metric(first, strata), _metric(second, strata)


def _metric(values: list[float], strata: int) -> Metric:
    cells = tuple(Cell(f"t{place % strata}", f"q{place:02}", value, 1.0) for place, value in enumerate(values))
    text = "ratio" if strata == 1 else "mean_of_ratios"
    return Metric("accuracy", combine(cells, text), len(cells), text, cells)


def tables(n: int) -> Iterator[tuple[int, int]]:
    return ((helped, harmed) for helped in range(n + 1) for harmed in range(n + 1 - helped))


@pytest.mark.parametrize("n", [5, 10, 20, FEW - 1])
def test_the_test_never_errs_more_often_than_it_says(n: int) -> None:
    by_table = {table: contrast(*solvers(*table, n)) for table in tables(n)}
    assert {value.test for value in by_table.values()} == {EXACT}
    for level in (0.01, 0.05, 0.1):
        rejected = [table for table, item in by_table.items() if item.p_value is not None and item.p_value <= level]
        for step in range(1, 500):
            share = step / 500
            errs = sum(
                math.comb(n, b + c) * math.comb(b + c, b) * (share / 2) ** (b + c) * (1 - share) ** (n - b - c)
                for b, c in rejected
            )
            assert errs <= level, (level, share)


def test_an_interval_excludes_0_only_where_the_exact_test_rejects() -> None:
    # With the skewed t test alone, the interval of 4 questions helped of 10 would be above 0.
    estimate = contrast(*solvers(4, 0, 10))
    assert estimate.p_value == unconditional(4, 0, 10) > 0.05
    assert estimate.interval is not None
    assert estimate.interval.low == 0 < estimate.interval.high
    assert estimate.interval.method.endswith("exact test")
    assert noninferiority(*solvers(4, 0, 10), 0.05).verdict == "not inferior"
    for table in tables(12):
        item = contrast(*solvers(*table, 12))
        assert item.interval is not None
        assert item.p_value is not None
        assert (item.p_value < 0.05) == (not item.interval.low <= 0 <= item.interval.high)


def test_counts_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="discordant"):
        unconditional(6, 5, 10)
    with pytest.raises(ValueError, match="discordant"):
        unconditional(-1, 0, 10)
