"""Coordinates in the frames that models speak: each is taken to pixels of the original."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hybrid.errors import ToolError, UsageError
from hybrid.models.images import fit
from hybrid.registry import load, names
from hybrid.solving.coordinates import (
    FRAMES,
    CoordinateSystem,
    frame_named,
)
from hybrid.solving.image_registry import ImageRegistry
from hybrid.tool import Request
from hybrid.types import Fault, ImageRef, StoredImage

SIZES = st.tuples(st.integers(1, 5000), st.integers(1, 5000))
SHARES = st.floats(0, 1, allow_nan=False)


def image_registry(*sizes: tuple[int, int]) -> ImageRegistry:
    return ImageRegistry(
        [ImageRef(f"img:{n}", StoredImage(str(n) * 64, *size, "image/png")) for n, size in enumerate(sizes, 1)]
    )


def said(frame: CoordinateSystem, x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
    """A point of the original as a model of that frame writes it: the inverse of what is tested."""
    width, height = size
    match frame.name.removesuffix("_yx"):
        case "fractions":
            pair = (x / width, y / height)
        case "thousandths":
            pair = (1000 * x / width, 1000 * y / height)
        case _:
            sent = fit(width, height, frame.sent_pixels or width * height)
            pair = (x * sent[0] / width, y * sent[1] / height)
    return pair[::-1] if frame.name.endswith("_yx") else pair


@given(st.sampled_from(sorted(FRAMES)), SIZES, SHARES, SHARES)
def test_every_frame_comes_back_to_the_point(name: str, size: tuple[int, int], x: float, y: float) -> None:
    frame, point = frame_named(name), (x * size[0], y * size[1])
    assert frame.point(*said(frame, *point, size), size) == pytest.approx(point, abs=1e-6)


@given(SIZES, SHARES, SHARES, st.integers(20_000, 2_000_000))
def test_pixels_of_a_downscaled_copy_are_scaled_up(size: tuple[int, int], x: float, y: float, sent: int) -> None:
    """Within what rounding the copy's sides to whole pixels costs: less than one of its pixels."""
    frame, point = CoordinateSystem("pixels", sent), (x * size[0], y * size[1])
    copy = fit(*size, sent)
    assume(min(copy) > 1)
    one = max(size[0] / copy[0], size[1] / copy[1])
    assert frame.point(*said(frame, *point, size), size) == pytest.approx(point, abs=1.01 * one)


def test_an_image_that_was_sent_whole_keeps_its_pixels() -> None:
    assert CoordinateSystem("pixels", 100 * 50).point(30, 40, (100, 50)) == (30, 40)
    assert CoordinateSystem("pixels", 25 * 50).point(30, 20, (100, 50)) == (60, 40)


@pytest.mark.parametrize("name", ["fractions", "thousandths", "fractions_yx", "thousandths_yx"])
def test_shares_of_the_size_do_not_depend_on_the_copy(name: Any) -> None:
    assert CoordinateSystem(name, 10).point(0.2, 0.4, (100, 50)) == CoordinateSystem(name).point(0.2, 0.4, (100, 50))


def test_y_first_means_the_first_number_of_two_without_names() -> None:
    assert CoordinateSystem("thousandths_yx").point(100, 900, (200, 50)) == (180, 5)


@given(st.sampled_from(["fractions", "thousandths"]), SIZES, SHARES, SHARES)
def test_a_named_coordinate_is_across_or_down_as_its_name_says(
    name: Any, size: tuple[int, int], x: float, y: float
) -> None:
    args: dict[str, Any] = {"point": {"x": x, "y": y}, "box": {"x0": x, "y0": y, "x1": 1.0, "y1": 1.0}}
    first, y_first = (
        CoordinateSystem(chosen).to_pixels(args, image_registry(size), ["img:1"]) for chosen in (name, f"{name}_yx")
    )
    assert first == y_first
    assert frame_named(name).words == frame_named(f"{name}_yx").words
    assert "width (x) and height (y)" in frame_named(name).words


def test_points_and_boxes_are_converted_at_any_depth_and_everything_else_is_left() -> None:
    args: dict[str, Any] = {
        "points": [{"x": 0.5, "y": 0.5, "label": "A"}, {"label": "B"}],
        "box": {"x0": 0.0, "y0": 0.25, "x1": 1.0, "y1": 0.75},
        "names": ["x", "y"],
        "scale": 0.5,
        "x": True,
    }
    converted = CoordinateSystem("fractions").to_pixels(args, image_registry((200, 100)), ["img:1"])
    assert converted == {
        "points": [{"x": 100.0, "y": 50.0, "label": "A"}, {"label": "B"}],
        "box": {"x0": 0.0, "y0": 25.0, "x1": 200.0, "y1": 75.0},
        "names": ["x", "y"],
        "scale": 0.5,
        "x": True,
    }
    assert args["points"] == [{"x": 0.5, "y": 0.5, "label": "A"}, {"label": "B"}]


def test_a_point_belongs_to_the_image_that_it_names() -> None:
    args = {"points": [{"x": 0.5, "y": 0.5}, {"x": 0.5, "y": 0.5, "image": 2}, {"x": 0.5, "y": 0.5, "image": 9}]}
    points = CoordinateSystem("fractions").to_pixels(args, image_registry((200, 100), (40, 80)), ["img:1", "img:2"])[
        "points"
    ]
    assert isinstance(points, list)
    assert [(point["x"], point["y"]) for point in points] == [(100, 50), (20, 40), (100, 50)]


def test_a_point_of_an_image_that_is_not_there_is_left_to_the_call() -> None:
    args = {"point": {"x": 0.5, "y": 0.5}}
    assert CoordinateSystem("fractions").to_pixels(args, image_registry((200, 100)), ["img:7"]) == args
    assert CoordinateSystem("fractions").to_pixels(args, image_registry(), []) == args


def test_an_unknown_frame_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"frame=percent: there are: pixels, fractions, .*probe"):
        frame_named("percent")


def coordinates(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    """Names of numeric fields of a JSON schema that stand for a place."""
    found: set[str] = set()
    for name, field in schema.get("properties", {}).items():
        if "pixels" in field.get("description", "") and "edge" in field["description"]:
            found.add(name)
        for node in (field, field.get("items", {}), *field.get("anyOf", [])):
            if isinstance(node, dict) and "$ref" in node:
                found |= coordinates(definitions[node["$ref"].rpartition("/")[2]], definitions)
    return found


@pytest.mark.parametrize("frame", sorted(FRAMES))
def test_how_much_around_a_point_is_cropped_is_the_same_in_every_frame(frame: str) -> None:
    written = {
        "point": dict(zip(("x", "y"), said(frame_named(frame.removesuffix("_yx")), 60, 40, (200, 100)), strict=True))
    }
    args = frame_named(frame).to_pixels({**written, "share": 0.2}, image_registry((200, 100)), ["img:1"])
    tool = load("tools", "crop")
    request = Request((np.zeros((100, 200, 3), np.uint8),), tool.args.model_validate(args))
    (found,) = tool.backend("classical").make().run([request])
    assert found.data["crops"][0]["box_px"] == [40, 20, 81, 61]


@pytest.mark.parametrize("tool", names("tools"))
def test_every_length_of_a_tool_says_its_unit(tool: str) -> None:
    """A length is not converted, so a model has to be told what it is measured in."""
    for name, field in load("tools", tool).args.model_json_schema()["properties"].items():
        if re.search(r"\b(?:side|radius|length|distance|edge)\b", field.get("description", "")):
            assert re.search(r"pixels|fraction|over (?:the )?(?:image's )?longer side", field["description"]), name


@pytest.mark.parametrize("tool", names("tools"))
def test_every_coordinate_of_a_tool_is_one_that_is_converted(tool: str) -> None:
    schema = load("tools", tool).args.model_json_schema()
    assert coordinates(schema, schema.get("$defs", {})) <= {"x", "y", "x0", "y0", "x1", "y1", "trim_px"}


ANY_NUMBER = (
    st.integers()
    | st.floats()
    | st.sampled_from([10**400, -(10**400), float("inf"), float("-inf"), float("nan"), 1e308, 2**63])
)


@given(st.sampled_from(sorted(FRAMES)), SIZES, ANY_NUMBER, ANY_NUMBER, st.integers(-2, 10**30))
def test_a_number_that_is_no_place_is_refused_in_words(
    name: str, size: tuple[int, int], x: Any, y: Any, image: int
) -> None:
    """Whatever numbers a model writes: they become finite pixels, or an error that the model can read."""
    try:
        found = frame_named(name).to_pixels(
            {"points": [{"x": x, "y": y, "image": image}]}, image_registry(size), ["img:1"]
        )
    except ToolError as error:
        refused = error
    else:
        (point,) = found["points"]  # type: ignore[union-attr, misc]
        assert np.isfinite([point["x"], point["y"]]).all()  # type: ignore[index, call-overload]
        return
    assert refused.fault is Fault.BAD_ARGUMENTS
    assert re.fullmatch(r"[xy]: a coordinate must be a finite number, found .{1,40}", str(refused))
