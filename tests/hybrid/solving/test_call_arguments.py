"""Arguments of calls as MLLMs write them, in the form that the tools have."""

from typing import Any

import pytest

from hybrid.errors import ToolError
from hybrid.registry import load
from hybrid.solving.call_arguments import read_arguments
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_registry import ImageRegistry
from hybrid.types import ImageRef, StoredImage
from tests.tables import cases

BOX = {"x0": 1, "y0": 2, "x1": 30, "y1": 40}
POINT = {"x": 3, "y": 4}


def registry(count: int) -> ImageRegistry:
    return ImageRegistry(
        [ImageRef(f"img:{n}", StoredImage(f"{n:064x}", 400, 300, "image/png")) for n in range(1, count + 1)]
    )


def read(tool: str, args: dict[str, Any], images: int = 1, frame: Any = "pixels") -> Any:
    return read_arguments(load("tools", tool), args, CoordinateSystem(frame), registry(images))


IMAGES: tuple[tuple[dict[str, Any], int, tuple[str, ...]], ...] = (
    *(
        ({"image": name}, 2, ("img:2",))
        for name in (
            "img:2",
            "image 2",
            "Image 2",
            "2",
            "img2",
            "<image 2>",
            "Image-2",
            "img_2",
            "IMG:2",
            " img:2 ",
            "[image 2]",
            "image_2",
            "<img:2>",
            "image: 2",
            "#2",
            2,
            ["img:2"],
            '["img:2"]',
            [2],
            "picture 2",
            "<|image_2|>",
            "@img:2",
            "img:2.png",
            "image2.jpg",
            "Figure 2",
            "图2",
            "attachment://img:2",
            "“img：2”.",
        )
    ),
    ({"images": "img:1"}, 2, ("img:1",)),
    ({"images": ["image 1", "image 2"]}, 2, ("img:1", "img:2")),
    ({"images": [0, 1]}, 2, ("img:1", "img:2")),
    ({"img_idx": 0}, 2, ("img:1",)),
    ({"img_idx": 2}, 2, ("img:2",)),
    ({"image_name": "img:2"}, 2, ("img:2",)),
    ({"image": "img:1", "images": ["img:1"]}, 2, ("img:1",)),
    ({"image_path": "img:2"}, 2, ("img:2",)),
    ({"target_image": 2}, 2, ("img:2",)),
    ({"image_2": "img:1", "image_1": "img:2"}, 2, ("img:2", "img:1")),
    ({"first_image": "image 1", "second_image": "image 2"}, 2, ("img:1", "img:2")),
    ({"images": "img:1, img:2"}, 2, ("img:1", "img:2")),
    ({"images": "image 1 and image 2"}, 2, ("img:1", "img:2")),
    ({"arguments": {"image": "img:2"}, "name": "forensics"}, 2, ("img:2",)),
    ({"images": ["img:2"], "args": "{}"}, 2, ("img:2",)),
    ({}, 1, ("img:1",)),
    ({"image": None}, 1, ("img:1",)),
    ({"images": []}, 1, ("img:1",)),
    ({"image": 0}, 1, ("img:1",)),
    # What the registry does not hold is left for it to refuse.
    ({"image": "image 3"}, 2, ("image 3",)),
    ({"image": "the dog"}, 2, ("the dog",)),
    ({"image": "img:01"}, 2, ("img:01",)),
)


@pytest.mark.parametrize(("args", "count", "meant"), IMAGES)
def test_images_are_found_by_name_and_number(args: dict[str, Any], count: int, meant: tuple[str, ...]) -> None:
    images, rest, repairs = read("forensics", args, count)
    assert (images, rest) == (meant, {})
    assert set(repairs) <= {"image name", "image left out", "JSON as text", "arguments in arguments"}


@pytest.mark.parametrize(*cases(__file__, "test_images_that_may_be_others_are_an_error_that_says_what_is_wanted", list))
def test_images_that_may_be_others_are_an_error_that_says_what_is_wanted(args: dict[str, Any], count: int) -> None:
    with pytest.raises(ToolError, match=r"img:1, img:2|not both"):
        read("forensics", args, count)


@pytest.mark.parametrize(*cases(__file__, "test_coordinates_and_lists_are_read_in_the_forms_that_models_learn", list))
def test_coordinates_and_lists_are_read_in_the_forms_that_models_learn(tool: str, args: Any, meant: Any) -> None:
    images, read_as, repairs = read(tool, {"image": "img:1", **args})
    typed = load("tools", tool).parse(read_as).model_dump(exclude_none=True)
    assert (images, typed) == (("img:1",), load("tools", tool).parse(meant).model_dump(exclude_none=True))
    assert bool(repairs) is (args != meant)


@pytest.mark.parametrize(*cases(__file__, "test_two_meanings_stay_an_error", list))
def test_two_meanings_stay_an_error(tool: str, args: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError) as error:
        load("tools", tool).parse(read(tool, {"image": "img:1", **args})[1])
    assert told in str(error.value)


def test_numbers_without_names_are_in_the_order_of_the_frame() -> None:
    for key in ("box", "bbox_2d", "box_2d"):
        assert read("crop", {key: [2, 1, 40, 30]}, frame="thousandths_yx")[1] == {"box": BOX}
    assert read("crop", {"point": [4, 3]}, frame="fractions_yx")[1] == {"point": POINT}
    assert read("crop", {"box": BOX}, frame="thousandths_yx")[1] == {"box": BOX}
