"""Ridges of lines: in pictures of few rows, in rows that are computed when read, and beside hidden pixels."""

import numpy as np
import pytest

from hybrid.marks.lines import BESIDE_PX, LineScores, mean, median


@pytest.mark.parametrize("height", [1, min(BESIDE_PX), 2 * min(BESIDE_PX) - 1])
def test_a_row_without_a_neighbour_is_not_a_ridge(height: int) -> None:
    scores = LineScores(np.full((height, 40), 30, np.int16))
    rows = np.arange(height)
    assert not scores.ridge(rows).any()
    assert scores.hidden(rows)[height // 2].all()


def ridges(excess: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Compute the ridges of all rows pixel by pixel from the visible values, as the docstrings say."""
    width = excess.shape[1]
    padded = np.pad(excess.astype(float), ((0, 0), (7, 7)), mode="reflect")
    seen = np.pad(~hidden, ((0, 0), (7, 7)), mode="reflect")
    windows, shows = (np.lib.stride_tricks.sliding_window_view(values, 15, axis=1) for values in (padded, seen))
    count = shows.sum(axis=2)
    means = np.where(count > 1.5, (windows * shows).sum(axis=2) / np.maximum(count, 1), np.nan)
    beside = []
    for step in BESIDE_PX:
        border = np.full((step, width), np.nan)
        two = (np.concatenate([border, means[:-step]]), np.concatenate([means[step:], border]))
        beside.append(np.where(np.isnan(two[0]), two[1], np.where(np.isnan(two[1]), two[0], np.maximum(*two))))
    closest = np.fmin(*beside)
    return np.asarray(np.nan_to_num(np.maximum(means - closest, 0)))


@pytest.mark.parametrize("seed", range(4))
def test_lines_are_those_of_the_ridges_of_all_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    excess = rng.integers(-60, 20, (60, 130)).astype(np.int16)
    for row, start, length in ((7, 0, 25), (30, 60, 41), (52, 104, 26)):
        excess[row : row + 2, start : start + length] = 240
    hidden = np.zeros(excess.shape, bool)
    hidden[20:34, 70:75] = seed % 2 == 1
    expected = ridges(excess, hidden)
    lines = LineScores(excess, hidden)
    # Each drawn line is two rows high, and one of them is its middle.
    assert {min((7, 30, 52), key=lambda row: abs(row - run.row)) for run in lines.strongest(60.0)} == {7, 30, 52}
    np.testing.assert_allclose(lines.ridge(np.arange(60)), expected, atol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 7, 10])
def test_means_and_medians_are_numpys(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count).astype(np.float32)
    assert median(values) == float(np.median(values))
    assert mean(values) == float(values.mean())


@pytest.mark.parametrize("width", range(130, 140))
def test_a_line_cut_by_the_border_may_be_half_as_long(width: int) -> None:
    for columns in (slice(0, 10), slice(width - 11, width)):
        excess = np.full((60, width), -40, np.int16)
        excess[30:32, columns] = 240
        assert [run.row for run in LineScores(excess).strongest(60.0)] == [30]
