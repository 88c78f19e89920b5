"""Points and boxes are read from each form of reply, and the relation between two places is found."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.places import distance, overlap, parse_box, parse_point
from hybrid.core.types import Box, Point
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_a_point_is_read", point=Point))
def test_a_point_is_read(text: str, point: Point) -> None:
    result = parse_point(text)
    assert (result.value, result.rule) == (point, "point")


def test_of_a_box_the_middle_is_the_point() -> None:
    point = parse_point("[10, 20, 30, 60]")
    assert (point.value, point.rule) == (Point(20, 40), "middle_of_box")
    assert parse_point("[10, 20, 10, 60]").value is None


@pytest.mark.parametrize(
    "text",
    [
        "(10, 20), (30, 60)",
        "<|box_start|>(10,20),(30,60)<|box_end|>",
        "<box>10 20 30 60</box>",
        "<x1>10</x1><y1>20</y1><x2>30</x2><y2>60</y2>",
        "(10,20),(30,20),(30,60),(10,60)",
    ],
)
def test_of_two_corners_the_middle_is_the_point(text: str) -> None:
    point = parse_point(text)
    assert (point.value, point.rule) == (Point(20, 40), "middle_of_box")


@pytest.mark.parametrize(
    "text",
    [
        *("(25%, 50%)", "x = 25%, y = 50%", "It is at 25% and 50%.", "(1, 2, 3)", "x = 5", "<point>"),
        *("width: 3, height: 4", "Point: 25%, 50%", "Point: 25, 50.5%", "<x>25%</x><y>50 %</y>", "x: 25 %, y: 50 %"),
        *("[20%, 20%, 80%, 80%]", "<loc0256><loc0256><loc0768><loc0768> dog", "<loc_250><loc_500>", "<x1>20</x1>"),
        *('<points coords="1 1 250 500 2 300 400">dogs</points>', '<points coords="25 50"/>', "Point: 25,50,70"),
        *('{"x": [20, 80], "y": [20, 80]}', "x: [20, 80]", "[20,20,80,20,80,80,20,80]"),
    ],
)
def test_what_is_no_place_in_the_frame_that_was_asked_for_is_not_read(text: str) -> None:
    assert parse_point(text).value is None
    assert parse_box(text).value is None


@pytest.mark.parametrize(
    "text",
    [
        "(1, 2), (3, 4), (5, 6)",
        "[1, 2, 3]",
        '<points x1="1" y1="2"/>',
        "x1 = 3, y1 = 4",
        "(20,20),(80,30),(70,80),(10,70)",
    ],
)
def test_points_are_no_box(text: str) -> None:
    assert parse_box(text).value is None


@pytest.mark.parametrize(*cases(__file__, "test_a_box_is_read_with_its_corners_in_order", box=Box))
def test_a_box_is_read_with_its_corners_in_order(text: str, box: Box) -> None:
    result = parse_box(text)
    assert (result.value, result.rule) == (box, "box")


def test_overlap_and_distance_by_hand() -> None:
    # The intersection is 2 x 3; the boxes are 4 x 4 and 6 x 3.
    assert overlap(Box(0, 0, 4, 4), Box(2, 1, 8, 4)) == pytest.approx(6 / (16 + 18 - 6))
    assert overlap(Box(0, 0, 4, 4), Box(4, 0, 8, 4)) == 0.0
    assert overlap(Box(0, 0, 4, 4), Box(0, 5, 4, 8)) == 0.0
    assert overlap(Box(1, 1, 1.5, 2), Box(1, 1, 1.5, 3)) == pytest.approx(0.5)
    assert distance(Point(1, 2), Point(4, -2)) == 5.0


CORNER = st.integers(0, 50)


@given(CORNER, CORNER, st.integers(1, 50), st.integers(1, 50))
def test_a_written_box_is_read_and_overlaps_itself_wholly(x: int, y: int, width: int, height: int) -> None:
    box = parse_box(f"Answer: {json.dumps([x, y, x + width, y + height])}").value
    assert box == Box(x, y, x + width, y + height)
    assert overlap(box, box) == 1.0
    assert overlap(box, Box(x + width, y, x + 2 * width, y + height)) == 0.0
