"""Arguments of calls as MLLMs write them, in the form that the tools have."""

from typing import Any

import pytest

from hybrid.errors import ToolError
from hybrid.registry import load
from hybrid.solving.call_arguments import read_arguments
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_registry import ImageRegistry
from hybrid.types import ImageRef, StoredImage

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


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ({}, 2),
        ({"image": 7}, 2),
        ({"img_idx": 1}, 2),
        ({"image": "img:1", "images": ["img:2"]}, 2),
        ({"image": {}}, 2),
        ({"image": True}, 2),
    ],
)
def test_images_that_may_be_others_are_an_error_that_says_what_is_wanted(args: dict[str, Any], count: int) -> None:
    with pytest.raises(ToolError, match=r"img:1, img:2|not both"):
        read("forensics", args, count)


SAME: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    *(
        ("crop", {"box": box}, {"box": BOX})
        for box in (
            BOX,
            [1, 2, 30, 40],
            "[1, 2, 30, 40]",
            '{"x0": 1, "y0": 2, "x1": 30, "y1": 40}',
            [[1, 2], [30, 40]],
            {"x1": 1, "y1": 2, "x2": 30, "y2": 40},
            {"xmin": 1, "ymin": 2, "xmax": 30, "ymax": 40},
            {"bbox_2d": [1, 2, 30, 40]},
            {"left": 1, "top": 2, "right": 30, "bottom": 40},
            "(1, 2, 30, 40)",
            "<box>(1,2),(30,40)</box>",
            ["1", "2", "30", "40"],
            "<bbox>1 2 30 40</bbox>",
        )
    ),
    *(
        ("crop", args, {"box": BOX})
        for args in (
            {"bbox_2d": [1, 2, 30, 40]},
            {"bbox": [1, 2, 30, 40]},
            {"bbox": "[1, 2, 30, 40]"},
            {"bounding_box": BOX},
            {"bbox_2d": [1, 2, 30, 40], "label": "a dog"},
            {"roi": [1, 2, 30, 40]},
            {"crop_box": [1, 2, 30, 40]},
            {"box_coordinates": [1, 2, 30, 40]},
            {"box": BOX, "point": None},
            {"x0": 1, "y0": 2, "x1": 30, "y1": 40},
            {"x1": 1, "y1": 2, "x2": 30, "y2": 40},
        )
    ),
    *(
        ("crop", args, {"point": POINT, "share": 0.5})
        for args in (
            {"point": [3, 4], "share": 0.5},
            {"point_2d": [3, 4], "share": 0.5},
            {"point": "[3, 4]", "share": 0.5},
            {"x": 3, "y": 4, "share": 0.5},
            {"point": {"point_2d": [3, 4]}, "share": 0.5},
            {"point": "(3, 4)", "share": 0.5},
            {"coordinates": POINT, "share": 0.5},
        )
    ),
    (
        "depth",
        {"points": [[3, 4], {"point_2d": [5, 6], "label": "B"}]},
        {"points": [POINT, {"x": 5, "y": 6, "label": "B"}]},
    ),
    ("depth", {"points": ["A", {"label": "B"}]}, {"points": [{"label": "A"}, {"label": "B"}]}),
    ("depth", {"points": [3, 4]}, {"points": [POINT]}),
    ("depth", {"points": ["(3, 4)"], "labels": None}, {"points": [POINT]}),
    ("depth", {"points": "A, B"}, {"points": [{"label": "A"}, {"label": "B"}]}),
    ("depth", {"labels": "A, B"}, {"labels": ["A", "B"]}),
    ("depth", {"points": POINT}, {"points": [POINT]}),
    ("depth", {"points": '[{"label": "A"}]'}, {"points": [{"label": "A"}]}),
    ("saliency", {"boxes": [[1, 2, 30, 40]]}, {"boxes": [BOX]}),
    ("saliency", {"bbox_2d": [1, 2, 30, 40]}, {"boxes": [BOX]}),
    ("detection", {"names": "dog"}, {"names": ["dog"]}),
    ("detection", {"names": '["dog", "cat"]'}, {"names": ["dog", "cat"]}),
    ("localization", {"name": "[a sign]"}, {"name": "[a sign]"}),
)


@pytest.mark.parametrize(("tool", "args", "meant"), SAME)
def test_coordinates_and_lists_are_read_in_the_forms_that_models_learn(tool: str, args: Any, meant: Any) -> None:
    images, read_as, repairs = read(tool, {"image": "img:1", **args})
    typed = load("tools", tool).parse(read_as).model_dump(exclude_none=True)
    assert (images, typed) == (("img:1",), load("tools", tool).parse(meant).model_dump(exclude_none=True))
    assert bool(repairs) is (args != meant)


UNCLEAR: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "crop",
        {"box": [30, 40, 1, 2]},
        'box: the second corner must be right of and below the first; write "box": {"x0"',
    ),
    ("crop", {"box": {"x": 1, "y": 2, "width": 9, "height": 9}}, 'write "box": {"x0"'),
    ("crop", {"box": [1, 2, 3]}, 'box: write "box": {"x0"'),
    ("crop", {"point": [1, 2, 3]}, 'point: write "point": {"x"'),
    ("crop", {"box_2d": [1, 2, 30, 40]}, "box_2d: which number is x is not certain"),
    ("depth", {"points": [1, 2, 3, 4]}, 'points: write a list of {"x"'),
    ("crop", {"box": "the dog"}, "wrong arguments for crop: box"),
    ("segmentation", {"point_2d": [3, 4]}, "point_2d: Extra inputs"),
    ("crop", {"bbox": [1, 2, 30, 40], "region": [1, 2, 30, 41]}, "Extra inputs"),
)


@pytest.mark.parametrize(("tool", "args", "told"), UNCLEAR)
def test_two_meanings_stay_an_error(tool: str, args: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError) as error:
        load("tools", tool).parse(read(tool, {"image": "img:1", **args})[1])
    assert told in str(error.value)


def test_numbers_without_names_are_in_the_order_of_the_frame() -> None:
    for key in ("box", "bbox_2d", "box_2d"):
        assert read("crop", {key: [2, 1, 40, 30]}, frame="thousandths_yx")[1] == {"box": BOX}
    assert read("crop", {"point": [4, 3]}, frame="fractions_yx")[1] == {"point": POINT}
    assert read("crop", {"box": BOX}, frame="thousandths_yx")[1] == {"box": BOX}
