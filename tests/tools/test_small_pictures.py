"""A small copy of a picture gives weight-free tools a lower confidence: it may be noise under strong compression."""

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from hybrid.tool import Evidence, Pixels, Request
from tools._shared.args import BoxArg, PointArg, RegionArg
from tools.localization import BoxFit, LocalizationArgs
from tools.reflectance import PaintCues, ReflectanceArgs
from tools.saliency import SaliencyArgs, SaliencyCues
from tools.segmentation import GrabCut, SegmentationArgs

# The disc's box, and a box beside it, as shares of the side.
DISC = (0.3, 0.3, 0.7, 0.7)
BESIDE = (0.45, 0.42, 0.95, 0.85)


def draw(side: int) -> Pixels:
    """Return a lit red disc on an uneven ground, drawn at 640 px and reduced."""
    down, across = np.mgrid[:640, :640].astype(np.float32) / 640
    ground = (120 + 60 * down + 20 * np.sin(9 * across + 4 * down))[..., None] * np.array([0.8, 0.95, 1.0])
    disc = (170 + 80 * (across - down))[..., None] * np.array([1.0, 0.25, 0.2])
    picture = np.where(np.hypot(across - 0.5, down - 0.5)[..., None] < 0.2, disc, ground)
    picture += np.random.default_rng(0).normal(0, 3, picture.shape)
    small = cv2.resize(picture.astype(np.float32), (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(np.clip(small, 0, 255), np.uint8)


def box(shares: tuple[float, ...], side: int) -> dict[str, float]:
    return dict(zip(("x0", "y0", "x1", "y1"), [share * side for share in shares], strict=True))


def ask_saliency(pixels: Pixels, side: int) -> Evidence:
    boxes = tuple(BoxArg(**box(shares, side)) for shares in (DISC, (0.05, 0.7, 0.3, 0.95)))
    return SaliencyCues().run([Request((pixels,), SaliencyArgs(boxes=boxes))])[0]


def ask_localization(pixels: Pixels, side: int) -> Evidence:
    boxes = tuple(BoxArg(**box(shares, side), label=label) for shares, label in ((DISC, "A"), (BESIDE, "B")))
    return BoxFit().run([Request((pixels,), LocalizationArgs(name="disc", boxes=boxes))])[0]


def ask_reflectance(pixels: Pixels, side: int) -> Evidence:
    points = (PointArg(x=side * 0.5, y=side * 0.5), PointArg(x=side * 0.85, y=side * 0.5))
    return PaintCues().run([Request((pixels,), ReflectanceArgs(points=points))])[0]


def ask_segmentation(pixels: Pixels, side: int) -> Evidence:
    area = RegionArg(**box((0.25, 0.25, 0.75, 0.75), side))
    return GrabCut().run([Request((pixels,), SegmentationArgs(box=area))])[0]


@pytest.mark.parametrize(
    ("ask", "chance", "side"),
    # The cues of reflectance find no paints in this picture at 64 px.
    [
        (ask_saliency, 0.3, 64),
        (ask_localization, 0.5, 64),
        (ask_reflectance, 1 / 3, 96),
        (ask_segmentation, 0.0, 64),
    ],
)
def test_a_small_copy_of_a_picture_lowers_the_confidence(
    ask: Callable[[Pixels, int], Evidence], chance: float, side: int
) -> None:
    large, small = (ask(draw(px), px).confidence - chance for px in (320, side))
    assert large > 0.04
    assert 0 < small < 0.5 * large
