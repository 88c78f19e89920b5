"""Degrees of freedom of a metric's variance: the number of clusters that it rests on."""

import pytest

from hybrid.stats.linearised import estimate, rows_of
from hybrid.types import Cell


@pytest.mark.parametrize(
    ("weights", "freedom"),
    [
        ([1.0] * 50, 49),
        # A mean over tasks of 200 + 2 + 2 rests on the four questions of the small ones.
        ([1 / 600] * 200 + [1 / 6] * 4, 3.04),
        ([1 / 300] * 100 + [1 / 60] * 20 + [1 / 15] * 5, 7.3),
    ],
)
def test_a_cluster_counts_by_its_weight(weights: list[float], freedom: float) -> None:
    cells = [Cell("", str(place), weight * (place % 2), weight) for place, weight in enumerate(weights)]
    found = estimate(rows_of(cells, "ratio"), "ratio")
    assert found is not None
    assert found.freedom == pytest.approx(freedom, abs=0.1)
