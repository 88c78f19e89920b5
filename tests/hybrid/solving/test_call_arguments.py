"""Arguments of calls as MLLMs write them, converted to the form of the tools."""

from typing import Any

import pytest

from hybrid.core.errors import ToolError
from hybrid.core.types import ImageRef, StoredImage
from hybrid.plugins.registry import load
from hybrid.solving.call_arguments import read_arguments
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry
from tests.tables import cases

BOX = {"x0": 1, "y0": 2, "x1": 30, "y1": 40}
POINT = {"x": 3, "y": 4}


def registry(count: int) -> ImageRegistry:
    return ImageRegistry(
        [ImageRef(f"img:{n}", StoredImage(f"{n:064x}", 400, 300, "image/png")) for n in range(1, count + 1)]
    )


def read(tool: str, args: dict[str, Any], images: int = 1, frame: Any = "pixels") -> Any:
    return read_arguments(load("tools", tool), args, CoordinateSystem(frame), registry(images))


@pytest.mark.parametrize(*cases(__file__, "test_images_are_found_by_name_and_number", list, expected=tuple))
def test_images_are_found_by_name_and_number(args: dict[str, Any], count: int, expected: tuple[str, ...]) -> None:
    images, rest, repairs = read("forensics", args, count)
    assert (images, rest) == (expected, {})
    assert set(repairs) <= {"image name", "image left out", "JSON as text", "arguments in arguments"}


@pytest.mark.parametrize(*cases(__file__, "test_images_that_may_be_others_are_an_error_that_says_what_is_wanted", list))
def test_images_that_may_be_others_are_an_error_that_says_what_is_wanted(args: dict[str, Any], count: int) -> None:
    with pytest.raises(ToolError, match=r"img:1, img:2|not both"):
        read("forensics", args, count)


@pytest.mark.parametrize(*cases(__file__, "test_coordinates_and_lists_are_read_in_the_forms_that_models_learn", list))
def test_coordinates_and_lists_are_read_in_the_forms_that_models_learn(tool: str, args: Any, expected: Any) -> None:
    images, read_as, repairs = read(tool, {"image": "img:1", **args})
    typed = load("tools", tool).parse(read_as).model_dump(exclude_none=True)
    assert (images, typed) == (("img:1",), load("tools", tool).parse(expected).model_dump(exclude_none=True))
    assert bool(repairs) is (args != expected)


@pytest.mark.parametrize(*cases(__file__, "test_two_meanings_stay_an_error", list))
def test_two_meanings_stay_an_error(tool: str, args: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolError) as error:
        load("tools", tool).parse(read(tool, {"image": "img:1", **args})[1])
    assert message in str(error.value)


def test_numbers_without_names_are_in_the_order_of_the_frame() -> None:
    for key in ("box", "bbox_2d", "box_2d"):
        assert read("crop", {key: [2, 1, 40, 30]}, frame="thousandths_yx")[1] == {"box": BOX}
    assert read("crop", {"point": [4, 3]}, frame="fractions_yx")[1] == {"point": POINT}
    assert read("crop", {"box": BOX}, frame="thousandths_yx")[1] == {"box": BOX}
