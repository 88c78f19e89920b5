"""Crop: exact regions, grids, sheets; and the origin of every crop."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Point
from hybrid.marks.drawing import draw_marks
from hybrid.tool import Evidence, Pixels, Request
from tests.tables import cases
from tools._shared.args import PointArg, RegionArg
from tools.crop import CropArgs, ExactCrop, GridArg, contact_sheet, cut, tiles

PHOTO = np.random.default_rng(3).integers(0, 256, (90, 120, 3)).astype(np.uint8)


def ask(*images: Pixels, **args: object) -> Evidence:
    return ExactCrop().run([Request(images, CropArgs(**args))])[0]


def test_a_box_at_scale_one_is_the_exact_pixels() -> None:
    evidence = ask(PHOTO, box=RegionArg(x0=10, y0=20, x1=50, y1=60), scale=1)
    (picture,) = evidence.pictures
    assert np.array_equal(picture.pixels, PHOTO[20:60, 10:50])
    assert (picture.box, picture.scale, picture.of) == (Box(10, 20, 50, 60), 1.0, 0)
    assert evidence.data == {"crops": [{"name": "region", "box_px": [10.0, 20.0, 50.0, 60.0], "scale": 1.0}]}
    assert evidence.confidence == 1.0


@settings(max_examples=60)
@given(st.floats(0, 119), st.floats(0, 89), st.floats(0.1, 200), st.floats(0.1, 200), st.none() | st.floats(0.1, 8))
def test_every_box_gives_a_crop_that_lies_in_the_image(x: float, y: float, w: float, h: float, scale: float | None):
    pixels, box, used = cut(PHOTO, Box(x, y, x + w, y + h), scale)
    assert 0 <= box.x0 <= x < box.x1 <= 120
    assert 0 <= box.y0 <= y < box.y1 <= 90
    long_side = max(box.x1 - box.x0, box.y1 - box.y0)
    assert max(pixels.shape[:2]) == round(long_side * used)
    assert min(pixels.shape[:2]) >= 1


def test_a_point_gives_a_square_that_is_moved_inside() -> None:
    (row,) = ask(PHOTO, point=PointArg(x=118, y=45), share=1 / 3).data["crops"]
    assert row["box_px"] == [80.0, 25.0, 120.0, 66.0]


def test_a_point_may_be_given_by_its_drawn_letter() -> None:
    marked = draw_marks(np.full((200, 260, 3), (70, 95, 60), np.uint8), [Point(60, 80, "A"), Point(180, 120, "B")])
    box = ask(marked, point=PointArg(label="B"), share=0.25).data["crops"][0]["box_px"]
    assert abs((box[0] + box[2]) / 2 - 180) < 4
    assert abs((box[1] + box[3]) / 2 - 120) < 4
    with pytest.raises(ToolError, match=r"no drawn point 'D' was found \(found: A, B\)"):
        ask(marked, point=PointArg(label="D"))
    alone = draw_marks(np.full((200, 260, 3), (70, 95, 60), np.uint8), [Point(150, 90, "REF")])
    box = ask(alone, point=PointArg(label="REF"), share=0.15).data["crops"][0]["box_px"]
    assert abs((box[0] + box[2]) / 2 - 150) < 4


@given(st.integers(1, 6), st.integers(1, 6), st.integers(6, 300), st.integers(6, 300))
def test_tiles_cover_every_pixel_once(rows: int, columns: int, height: int, width: int) -> None:
    count = np.zeros((height, width), int)
    for box in tiles((height, width), rows, columns):
        count[int(box.y0) : int(box.y1), int(box.x0) : int(box.x1)] += 1
    assert (count == 1).all()


def test_a_grid_shows_numbers_and_then_each_tile() -> None:
    copied = PHOTO.copy()
    evidence = ask(PHOTO, grid=GridArg(rows=2, columns=3))
    overlay, *parts = evidence.pictures
    assert overlay.box is None
    assert overlay.pixels.shape == PHOTO.shape
    assert not np.array_equal(overlay.pixels, PHOTO)
    assert np.array_equal(PHOTO, copied)
    assert [row["name"] for row in evidence.data["crops"]] == ["1", "2", "3", "4", "5", "6"]
    assert parts[5].box == Box(80, 45, 120, 90)
    with pytest.raises(ToolError, match="cannot be cut into 3 x 2 tiles"):
        ask(PHOTO[:1, :2], grid=GridArg(rows=2, columns=3))


@pytest.mark.parametrize("count", [2, 4, 9])
def test_a_sheet_holds_every_image_at_its_scale(count: int) -> None:
    images = [np.full((100, 448, 3), 20 * number, np.uint8) for number in range(1, count + 1)]
    sheet, places = contact_sheet(images)
    for image, (box, scale) in zip(images, places, strict=True):
        assert scale == 1.0
        assert np.array_equal(sheet[int(box.y0) : int(box.y1), int(box.x0) : int(box.x1)], image)
    evidence = ask(*images)
    assert [row["image"] for row in evidence.data["sheet"]] == list(range(1, count + 1))
    (picture,) = evidence.pictures
    assert picture.box.x0 + places[0][0].x0 / picture.scale == pytest.approx(0)
    assert (picture.box.y1 - picture.box.y0) * picture.scale == pytest.approx(sheet.shape[0])
    with pytest.raises(ToolError, match="for one image"):
        ask(*images, scale=2)


@pytest.mark.parametrize(*cases(__file__, "test_arguments_of_another_form_are_refused"))
def test_arguments_of_another_form_are_refused(bad: dict) -> None:
    with pytest.raises(ValidationError):
        CropArgs.model_validate(bad)


def test_a_region_outside_is_named() -> None:
    with pytest.raises(ToolError, match=r"box 1 \(200, 0, 210, 9\) is outside the image of 120 x 90 px"):
        ask(PHOTO, box=RegionArg(x0=200, y0=0, x1=210, y1=9))


WITHOUT_OPENCV = """
import sys
import numpy as np
from hybrid.core.images import JPEG, encode
from hybrid.serving.threads import one_opencv_thread
from hybrid.tool import Request
from tools.crop import CropArgs, ExactCrop

one_opencv_thread()
found, = ExactCrop().run([Request((np.zeros((90, 120, 3), np.uint8),), CropArgs())])
for picture in found.pictures:
    encode(picture.pixels, JPEG)
assert "cv2" not in sys.modules
import cv2
assert cv2.getNumThreads() == 1
cv2.setNumThreads(2)
one_opencv_thread()
print(cv2.getNumThreads())
"""


@pytest.mark.system
def test_opencv_is_not_imported_for_a_crop_and_has_one_thread_where_it_is() -> None:
    assert subprocess.check_output([sys.executable, "-c", WITHOUT_OPENCV], text=True) == "1\n"
