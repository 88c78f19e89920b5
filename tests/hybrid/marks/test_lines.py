"""Lines in pictures of so few rows that a row has no neighbour to compare with."""

import numpy as np
import pytest

from hybrid.marks.lines import BESIDE_PX, LineScores


@pytest.mark.parametrize("height", [1, min(BESIDE_PX), 2 * min(BESIDE_PX) - 1])
def test_a_row_without_a_neighbour_is_not_a_ridge(height: int) -> None:
    scores = LineScores(np.full((height, 40), 30, np.float32))
    rows = np.arange(height)
    assert not scores.ridge(rows).any()
    assert scores.hidden(rows)[height // 2].all()
