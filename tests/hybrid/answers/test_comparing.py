"""Parsed answers as JSON, and the distance of two scanpaths computed by hand."""

import math

import pytest

from hybrid.answers.comparing import Value, as_json, path_distance
from hybrid.answers.views import ViewPlan
from hybrid.core.types import Box, Json, Point, Scanpath


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (Scanpath((0.1, 0.2), (0.3, 0.4), (100, 200)), {"x": [0.1, 0.2], "y": [0.3, 0.4], "t_ms": [100, 200]}),
        (Point(1, 2), [1, 2]),
        (Box(1, 2, 3, 4), [1, 2, 3, 4]),
        (frozenset({3, 1}), [1, 3]),
        (ViewPlan(frozenset({4, 2}), None, frozenset()), {"part": [2, 4], "keep": None, "shift": []}),
        (ViewPlan(None, frozenset({1}), None), {"part": None, "keep": [1], "shift": None}),
        ("A", "A"),
        (3, 3),
        (None, None),
    ],
)
def test_an_answer_as_json(value: Value, json: Json) -> None:
    assert as_json(value) == json


def path(*places: tuple[float, float]) -> Scanpath:
    return Scanpath(*zip(*places, strict=True), tuple(100.0 for _ in places))


def test_the_distance_is_the_mean_over_fixations_at_one_place() -> None:
    item, other = path((0, 0), (0.5, 0.5)), path((0.3, 0.4), (0.5, 0.25))
    assert path_distance(item, other) == path_distance(other, item) == pytest.approx((0.5 + 0.25) / 2)
    assert path_distance(item, item) == 0.0


def test_the_shorter_path_stays_at_its_last_fixation() -> None:
    item, other = path((0, 0), (0.6, 0.8)), path((0, 0), (0.6, 0.8), (0.6, 0.2), (0, 0))
    assert path_distance(item, other) == path_distance(other, item) == pytest.approx((0.6 + 1.0) / 4)


def test_coordinates_are_kept_inside_of_the_image() -> None:
    assert path_distance(path((-2, -3)), path((5, 7))) == math.sqrt(2)
    assert path_distance(path((-2, 0.25)), path((0, 0.75))) == 0.5
    assert path_distance(path((0.25, 9)), path((0.75, 1))) == 0.5


def test_a_path_without_a_fixation_has_no_distance() -> None:
    empty = Scanpath((), (), ())
    for pair in ((empty, path((0, 0))), (path((0, 0)), empty)):
        with pytest.raises(ValueError, match="without fixations"):
            path_distance(*pair)
