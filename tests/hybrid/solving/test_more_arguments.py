"""Arguments by ordinals, in objects, by corners and by letters, as some models write them."""

from typing import Any

import pytest

from hybrid.errors import ToolError
from hybrid.registry import load
from hybrid.solving.call_arguments import read_arguments
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_registry import ImageRegistry
from hybrid.types import ImageRef, StoredImage
from tests.tables import cases

BOX = {"x0": 1.0, "y0": 2.0, "x1": 30.0, "y1": 40.0}


def read(tool: str, args: dict[str, Any]) -> Any:
    refs = [ImageRef(f"img:{n}", StoredImage(f"{n:064x}", 400, 300, "image/png")) for n in (1, 2)]
    return read_arguments(load("tools", tool), args, CoordinateSystem(), ImageRegistry(refs))


NAMES = ("second image", "The 2nd picture", {"name": "img:2"}, {"id": "img:2"}, [{"name": "img:2"}])


@pytest.mark.parametrize("name", NAMES)
def test_an_image_is_named_by_its_ordinal_or_in_an_object(name: Any) -> None:
    images, _, repairs = read("crop", {"image": name})
    assert images == ("img:2",)
    assert repairs == ("image name",)


@pytest.mark.parametrize(*cases(__file__, "test_a_box_is_two_of_its_corners", list))
def test_a_box_is_two_of_its_corners(args: dict[str, Any]) -> None:
    _, read_args, repairs = read("crop", {"image": "img:1", **args})
    assert read_args == {"box": BOX}
    assert repairs == ("coordinates",)


def test_points_stand_under_their_letters() -> None:
    _, args, repairs = read("depth", {"image": "img:1", "points": {"A": [3, 4], "B": {"x": 5, "y": 6}}})
    assert args == {"points": [{"label": "A", "x": 3.0, "y": 4.0}, {"label": "B", "x": 5.0, "y": 6.0}]}
    assert repairs == ("coordinates",)
    with pytest.raises(ToolError):
        read("depth", {"image": "img:1", "points": {"A": [3]}})
