"""MultiMatch compared with the package multimatch_gaze, and cases in which the package gives no value."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.hvsbench.multimatch import DIMENSIONS, Floats, multimatch
from hybrid.core.errors import DataError

SCREEN = (512, 320)
COLUMNS = [("start_x", "f8"), ("start_y", "f8"), ("duration", "f8")]


def package(first: Floats, second: Floats) -> list[float]:
    multimatch_gaze = pytest.importorskip("multimatch_gaze", reason="the group `dev` is not installed")
    records = [np.array([tuple(row) for row in path], COLUMNS) for path in (first, second)]
    return [float(value) for value in multimatch_gaze.docomparison(*records, screensize=SCREEN)]


def random_paths(seed: int, number: int, decimals: int | None) -> list[Floats]:
    rng = np.random.default_rng(seed)
    results = []
    for _ in range(number):
        path = rng.random((int(rng.integers(3, 13)), 3))
        if decimals is not None:
            path[:, :2] = path[:, :2].round(decimals)
        path[:, 2] = 0.05 + 0.5 * path[:, 2]
        results.append(path * [*SCREEN, 1])
    return results


few_places = st.sampled_from([0.0, 0.25, 0.5, 1.0])
crowded = st.lists(st.tuples(few_places, few_places, st.just(1.0)), min_size=3, max_size=7).map(
    lambda rows: np.array(rows) * [*SCREEN, 1]
)


@settings(max_examples=30)
@given(floats=st.lists(crowded, min_size=2, max_size=4))
def test_equals_the_package_where_nearly_every_alignment_passes_ties(floats: list[Floats]) -> None:
    # Fixations on the same few places: saccades of no length, equal saccades, identical paths.
    pairs = [(a, b) for a in range(len(floats)) for b in range(len(floats))]
    expected = np.array([package(floats[a], floats[b]) for a, b in pairs])
    np.testing.assert_allclose(multimatch(floats, pairs, SCREEN), expected, rtol=0, atol=1e-9)


def path_of(*points: tuple[float, float]) -> Floats:
    return np.array([(x, y, 0.2) for x, y in points])


def test_values_by_hand() -> None:
    # Saccades (30, 0), (30, 0) and (0, 40), (0, 40) from one start: all differences except that of position are equal.
    flat, steep = path_of((0, 0), (30, 0), (60, 0)), path_of((0, 0), (0, 40), (0, 80))
    values = dict(zip(DIMENSIONS, multimatch([flat, steep], [(0, 1)], (60, 80))[0].tolist(), strict=True))
    assert values["shape"] == pytest.approx(1 - 50 / 200)
    assert values["direction"] == pytest.approx(0.5)
    assert values["length"] == pytest.approx(1 - 10 / 100)
    # The alignment is the diagonal: the starts of the saccades are 0 and 50 px apart, so the median is 25 px.
    assert values["position"] == pytest.approx(1 - 25 / 100)
    assert values["duration"] == 1.0


coordinates = st.floats(0, 1, allow_subnormal=False).map(lambda value: round(value, 3))
paths = st.lists(
    st.tuples(coordinates, coordinates, st.floats(0, 2, allow_subnormal=False)), min_size=3, max_size=9
).map(lambda rows: np.array(rows) * [*SCREEN, 1])


@settings(max_examples=60)
@given(first=paths, second=paths)
def test_lies_between_0_and_1_on_the_screen_and_a_path_is_like_itself(first: Floats, second: Floats) -> None:
    values = first.copy(), second.copy()
    different, same = multimatch([first, second], [(0, 1), (0, 0)], SCREEN)
    assert (different >= -1e-12).all()
    assert (different <= 1 + 1e-12).all()
    np.testing.assert_allclose(same, 1, atol=1e-9)
    assert np.array_equal(first, values[0])
    assert np.array_equal(second, values[1])


@settings(max_examples=30)
@given(floats=st.lists(paths, min_size=1, max_size=4))
def test_many_pairs_at_once_are_each_pair_alone(floats: list[Floats]) -> None:
    pairs = [(a, b) for a in range(len(floats)) for b in range(len(floats))]
    together = multimatch(floats, pairs, SCREEN)
    alone = [multimatch([floats[a], floats[b]], [(0, 1)], SCREEN)[0] for a, b in pairs]
    assert np.array_equal(together, np.array(alone))


def test_more_pairs_than_a_batch_holds_of_many_lengths_in_any_order() -> None:
    result = random_paths(5, 100, 2)
    pairs = np.tile(np.random.default_rng(6).permutation(100).reshape(50, 2), (200, 1))
    few = np.concatenate([multimatch(result, pair[None], SCREEN) for pair in pairs[:50]])
    assert np.array_equal(multimatch(result, pairs, SCREEN), np.tile(few, (200, 1)))


def test_no_pairs_give_an_empty_table() -> None:
    assert multimatch([], [], SCREEN).shape == (0, 5)
    assert multimatch([GOOD], [], SCREEN).shape == (0, 5)


GOOD = path_of((0, 0), (1, 1), (2, 2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (GOOD[:2], "scanpath 1 has 2 fixations"),
        (GOOD[:, :2], r"scanpath 1 has the shape \(3, 2\)"),
        (path_of((0, 0), (math.nan, 1), (2, 2)), "scanpath 1 has a number that is not finite"),
        (GOOD * [1, 1, -1], "scanpath 1 .* negative duration"),
    ],
)
def test_refuses_what_the_measure_is_not_defined_for(wrong: Floats, message: str) -> None:
    with pytest.raises(DataError, match=message):
        multimatch([GOOD, wrong, GOOD], [(0, 2)], SCREEN)


@pytest.mark.parametrize("screen", [(0, 320), (512, -1), (math.nan, 1), (math.inf, 1)])
def test_refuses_a_screen_without_area(screen: tuple[float, float]) -> None:
    with pytest.raises(DataError, match="screen"):
        multimatch([GOOD], [(0, 0)], screen)


@pytest.mark.parametrize("pairs", [[(0, 2)], [(-1, 0)]])
def test_refuses_a_path_that_is_not_there(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(DataError, match="counted from 0 to 1"):
        multimatch([GOOD, GOOD], pairs, SCREEN)


@pytest.mark.parametrize("pairs", [[(0, 1, 1)], [0, 1], [(0.0, 1.0)]])
def test_refuses_what_are_no_pairs(pairs: list[object]) -> None:
    with pytest.raises(DataError, match="whole numbers"):
        multimatch([GOOD, GOOD], np.array(pairs), SCREEN)
