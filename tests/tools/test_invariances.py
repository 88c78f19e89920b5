"""What changes of a picture change of a tool's answer: nothing, or left and right."""

from collections.abc import Callable, Mapping
from functools import cache

import cv2
import numpy as np
import pytest

from hybrid.benchmarks.blink.sample import item
from hybrid.marks.drawing import draw_marks
from hybrid.marks.marks_json import marks_from
from hybrid.samples.backgrounds import background
from hybrid.tool import Pixels, Request
from hybrid.types import Point
from tools.markers import MarkersArgs, locate
from tools.motion import FeatureMotion, MotionArgs

Change = Callable[[Pixels], Pixels]


def scaled(by: float) -> Change:
    how = cv2.INTER_AREA if by < 1 else cv2.INTER_CUBIC
    return lambda pixels: np.asarray(cv2.resize(pixels, None, fx=by, fy=by, interpolation=how), np.uint8)


def grey(pixels: Pixels) -> Pixels:
    return np.repeat(np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)[..., None], 3, axis=2)


def compressed(pixels: Pixels) -> Pixels:
    return np.asarray(cv2.imdecode(cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 50])[1], 1), np.uint8)


def lighter(pixels: Pixels) -> Pixels:
    return np.asarray(np.rint(255 * np.sqrt(pixels / 255)), np.uint8)


def padded(pixels: Pixels) -> Pixels:
    return np.pad(pixels, ((20, 20), (20, 20), (0, 0)))


CHANGES: Mapping[str, Change] = {
    "1.5 times": scaled(1.5),
    "2 times": scaled(2.0),
    "4 times": scaled(4.0),
    "grey": grey,
    "jpeg": compressed,
    "lighter": lighter,
    "padded": padded,
}


@pytest.mark.parametrize("change", CHANGES)
def test_marks_keep_their_letters_and_places(change: str) -> None:
    plain = background(np.random.default_rng(901), "blobs", 200, 260)
    pixels = CHANGES[change](draw_marks(plain, [Point(60, 80, "A"), Point(180, 150, "B")]))
    by, off = (pixels.shape[1] / 260, 0) if change != "padded" else (1.0, 20)
    found = {
        mark.label: ((mark.x - off) / by, (mark.y - off) / by)
        for mark in marks_from(locate(pixels, MarkersArgs(labels=("A", "B"))).data).points
    }
    assert found == {"A": pytest.approx((60, 80), abs=3), "B": pytest.approx((180, 150), abs=3)}


@cache
def views() -> tuple[Pixels, ...]:
    return tuple(one[::2, ::2].copy() for one in item("Multi-view_Reasoning", 0, 41).images)


def moved(*pair: Pixels) -> object:
    (found,) = FeatureMotion().run([Request(tuple(map(np.ascontiguousarray, pair)), MotionArgs())])
    return found.data["moved"]


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "4 times"])
def test_a_camera_goes_to_the_same_side(change: str) -> None:
    assert moved(*map(CHANGES[change], views())) == moved(*views()) == "left"


def test_a_camera_goes_to_the_other_side_in_a_mirror_and_backwards() -> None:
    first, second = views()
    assert moved(first[:, ::-1], second[:, ::-1]) == moved(second, first) == "right"
