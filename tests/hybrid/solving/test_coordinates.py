"""Coordinates in the frames of models: each is converted to pixels of the original."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hybrid.core.errors import ToolError
from hybrid.core.types import Fault, ImageRef, Json, StoredImage
from hybrid.models.images import fit
from hybrid.solving.controls import clip
from hybrid.solving.coordinates import FRAMES, CoordinateSystem, frame_named
from hybrid.solving.images import ImageRegistry
from hybrid.tool import Args, Card, Tool, json_of_args

SIZES = st.tuples(st.integers(1, 5000), st.integers(1, 5000))
SHARES = st.floats(0, 1, allow_nan=False)


def image_registry(*sizes: tuple[int, int]) -> ImageRegistry:
    return ImageRegistry(
        [ImageRef(f"img:{n}", StoredImage(str(n) * 64, *size, "image/png")) for n, size in enumerate(sizes, 1)]
    )


def to_frame(frame: CoordinateSystem, x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
    """Return a point of the original as a model of that frame writes it: the inverse of the tested function."""
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
    assert frame.point(*to_frame(frame, *point, size), size) == pytest.approx(point, abs=1e-6)


@given(SIZES, SHARES, SHARES, st.integers(20_000, 2_000_000))
def test_pixels_of_a_downscaled_copy_are_scaled_up(size: tuple[int, int], x: float, y: float, sent: int) -> None:
    """Pixels of a downscaled copy are scaled up with an error below one pixel of the copy, whose sides are whole
    pixels."""
    frame, point = CoordinateSystem("pixels", sent), (x * size[0], y * size[1])
    copy = fit(*size, sent)
    assume(min(copy) > 1)
    largest = max(size[0] / copy[0], size[1] / copy[1])
    assert frame.point(*to_frame(frame, *point, size), size) == pytest.approx(point, abs=1.01 * largest)


@given(st.sampled_from(["fractions", "thousandths"]), SIZES, SHARES, SHARES)
def test_a_named_coordinate_is_across_or_down_as_its_name_says(
    name: Any, size: tuple[int, int], x: float, y: float
) -> None:
    args: dict[str, Any] = {"point": {"x": x, "y": y}, "box": {"x0": x, "y0": y, "x1": 1.0, "y1": 1.0}}
    first, y_first = (
        CoordinateSystem(selected).to_pixels(args, image_registry(size), ["img:1"]) for selected in (name, f"{name}_yx")
    )
    assert first == y_first
    assert frame_named(name).words == frame_named(f"{name}_yx").words
    assert "width (x) and height (y)" in frame_named(name).words


ANY_NUMBER = (
    st.integers()
    | st.floats()
    | st.sampled_from([10**400, -(10**400), float("inf"), float("-inf"), float("nan"), 1e308, 2**63])
)


@given(st.sampled_from(sorted(FRAMES)), SIZES, ANY_NUMBER, ANY_NUMBER, st.integers(-2, 10**30))
def test_a_number_that_is_no_place_is_refused_in_words(
    name: str, size: tuple[int, int], x: Any, y: Any, image: int
) -> None:
    """Whatever numbers a model writes, they become finite pixels, or an error that the model can read."""
    try:
        result = frame_named(name).to_pixels(
            {"points": [{"x": x, "y": y, "image": image}]}, image_registry(size), ["img:1"]
        )
    except ToolError as error:
        refused = error
    else:
        (point,) = result["points"]  # type: ignore[union-attr, misc]
        assert np.isfinite([point["x"], point["y"]]).all()  # type: ignore[index, call-overload]
        return
    assert refused.fault is Fault.BAD_ARGUMENTS
    assert re.fullmatch(r"[xy]: a coordinate must be a finite number, found .{1,40}", str(refused))


class _Spot(Args):
    x: float
    y: float
    radius: int | None = 5
    name: str | None = None


class _SpotArgs(Args):
    spots: list[_Spot]
    by_name: dict[str, tuple[_Spot, ...]]
    share: float | None = None


@pytest.mark.parametrize("frame", ["pixels", "fractions"])
def test_a_null_in_place_of_another_default_reaches_the_tool_in_every_frame(frame: str) -> None:
    tool = Tool(Card("spots", "Spots.", "No limits.", ()), _SpotArgs)
    spots: list[Json] = [{"x": 0.5, "y": 1, "radius": None, "name": None}, {"x": 1, "y": 1}]
    args = frame_named(frame).args_in_pixels(
        tool, tool.parse({"spots": spots, "by_name": {"a": spots}}), image_registry((8, 8)), ["img:1"]
    )
    assert isinstance(args, _SpotArgs)
    assert [spot.radius for spot in (*args.spots, *args.by_name["a"])] == [None, 5, None, 5]
    recorded: dict[str, Any] = json_of_args(args)
    assert set(recorded) == {"spots", "by_name"}
    assert [set(spot) for spot in recorded["spots"]] == [{"x", "y", "radius"}] * 2
    assert tool.parse(recorded) == args
    assert [spot["radius"] for spot in recorded["spots"]] == [None, 5]
    clipped: Any = clip(args, [(8, 8)])
    assert clipped.spots[0].radius is None
