"""MultiMatch against the package, and where the package has no answer."""

import math

import multimatch_gaze
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.hvsbench.multimatch import DIMENSIONS, Floats, multimatch
from hybrid.errors import DataError

SCREEN = (512, 320)
COLUMNS = [("start_x", "f8"), ("start_y", "f8"), ("duration", "f8")]


def package(first: Floats, second: Floats) -> list[float]:
    records = [np.array([tuple(row) for row in path], COLUMNS) for path in (first, second)]
    return [float(value) for value in multimatch_gaze.docomparison(*records, screensize=SCREEN)]


def random_paths(seed: int, number: int, decimals: int | None) -> list[Floats]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        path = rng.random((int(rng.integers(3, 13)), 3))
        if decimals is not None:
            path[:, :2] = path[:, :2].round(decimals)
        path[:, 2] = 0.05 + 0.5 * path[:, 2]
        found.append(path * [*SCREEN, 1])
    return found


@pytest.mark.parametrize(("decimals", "number"), [(None, 4000), (2, 4000), (1, 2000)])
def test_equals_the_package(decimals: int | None, number: int) -> None:
    first, second = random_paths(1, number, decimals), random_paths(2, number, decimals)
    expected = np.array([package(a, b) for a, b in zip(first, second, strict=True)])
    np.testing.assert_allclose(multimatch(first, second, SCREEN), expected, rtol=0, atol=1e-9)


def path_of(*points: tuple[float, float]) -> Floats:
    return np.array([(x, y, 0.2) for x, y in points])


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_durations_of_zero_are_alike_where_the_package_has_no_number() -> None:
    still = path_of((1, 2), (30, 40), (50, 9)) * [1, 1, 0]
    assert math.isnan(package(still, still)[4])
    assert multimatch([still], [still], SCREEN)[0].tolist() == [1.0] * 5


def test_values_by_hand() -> None:
    # Saccades (30, 0), (30, 0) against (0, 40), (0, 40) from the same start: every difference is the same but position.
    flat, steep = path_of((0, 0), (30, 0), (60, 0)), path_of((0, 0), (0, 40), (0, 80))
    found = dict(zip(DIMENSIONS, multimatch([flat], [steep], (60, 80))[0].tolist(), strict=True))
    assert found["shape"] == pytest.approx(1 - 50 / 200)
    assert found["direction"] == pytest.approx(0.5)
    assert found["length"] == pytest.approx(1 - 10 / 100)
    # The alignment is the diagonal: starts are 0 and 50 apart, median 25.
    assert found["position"] == pytest.approx(1 - 25 / 100)
    assert found["duration"] == 1.0


def test_opposite_directions_across_the_left_axis_are_close() -> None:
    # Angles of +179 and -179 degrees are 2 degrees apart, not 358.
    step = math.tan(math.radians(1))
    up, down = (
        path_of((9, 5), (6, 5 + 3 * step), (3, 5 + 6 * step)),
        path_of((9, 5), (6, 5 - 3 * step), (3, 5 - 6 * step)),
    )
    assert multimatch([up], [down], (10, 10))[0][1] == pytest.approx(1 - 2 / 180)


coordinates = st.floats(0, 1, allow_subnormal=False).map(lambda value: round(value, 3))
paths = st.lists(
    st.tuples(coordinates, coordinates, st.floats(0, 2, allow_subnormal=False)), min_size=3, max_size=9
).map(lambda rows: np.array(rows) * [*SCREEN, 1])


@settings(max_examples=150)
@given(first=paths, second=paths)
def test_lies_between_0_and_1_on_the_screen_and_a_path_is_like_itself(first: Floats, second: Floats) -> None:
    before = first.copy(), second.copy()
    different, same = multimatch([first, first], [second, first], SCREEN)
    assert (different >= -1e-12).all()
    assert (different <= 1 + 1e-12).all()
    np.testing.assert_allclose(same, 1, atol=1e-9)
    assert np.array_equal(first, before[0])
    assert np.array_equal(second, before[1])


@settings(max_examples=60)
@given(pairs=st.lists(st.tuples(paths, paths), min_size=1, max_size=6))
def test_many_pairs_at_once_are_each_pair_alone(pairs: list[tuple[Floats, Floats]]) -> None:
    together = multimatch([a for a, _ in pairs], [b for _, b in pairs], SCREEN)
    alone = [multimatch([a], [b], SCREEN)[0] for a, b in pairs]
    assert np.array_equal(together, np.array(alone))


def test_more_pairs_than_a_chunk_holds() -> None:
    first, second = random_paths(5, 50, None), random_paths(6, 50, None)
    many = multimatch(first * 100, second * 100, SCREEN)
    assert np.array_equal(many, np.tile(multimatch(first, second, SCREEN), (100, 1)))


def test_the_screen_scales_lengths_and_not_directions() -> None:
    first, second = random_paths(7, 1, None), random_paths(8, 1, None)
    small, large = (multimatch(first, second, (512 * k, 320 * k))[0] for k in (1, 2))
    assert small[1] == large[1]
    np.testing.assert_allclose(1 - large[[0, 2, 3]], (1 - small[[0, 2, 3]]) / 2)


def test_no_pairs_give_an_empty_table() -> None:
    assert multimatch([], [], SCREEN).shape == (0, 5)


GOOD = path_of((0, 0), (1, 1), (2, 2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (GOOD[:2], "scanpath 1 has 2 fixations"),
        (GOOD[:, :2], r"scanpath 1 has the form \(3, 2\)"),
        (path_of((0, 0), (math.nan, 1), (2, 2)), "scanpath 1 has a number that is not finite"),
        (GOOD * [1, 1, -1], "scanpath 1 .* negative duration"),
    ],
)
def test_refuses_what_the_measure_is_not_defined_for(wrong: Floats, message: str) -> None:
    for first, second in (([GOOD, wrong, GOOD], [GOOD] * 3), ([GOOD] * 3, [GOOD, wrong, GOOD])):
        with pytest.raises(DataError, match=message):
            multimatch(first, second, SCREEN)


@pytest.mark.parametrize("screen", [(0, 320), (512, -1), (math.nan, 1), (math.inf, 1)])
def test_refuses_a_screen_without_area(screen: tuple[float, float]) -> None:
    with pytest.raises(DataError, match="screen"):
        multimatch([GOOD], [GOOD], screen)


def test_refuses_lists_of_different_lengths() -> None:
    with pytest.raises(DataError, match="2 scanpaths cannot be paired with 1"):
        multimatch([GOOD, GOOD], [GOOD], SCREEN)
