"""The box of a salient thing at full resolution, on pictures of all shapes; without a clear thing it is approximate."""

import cv2
import numpy as np
import pytest

from hybrid.core.types import Box
from hybrid.tool import Evidence, Pixels, Request
from tools._shared.boxes import overlap
from tools.saliency import SaliencyArgs, SaliencyCues
from tools.saliency.outline import tighten


def ask(pixels: Pixels, args: SaliencyArgs | None = None) -> Evidence:
    return SaliencyCues().run([Request((pixels,), args or SaliencyArgs())])[0]


def scene(size: tuple[int, int], place: tuple[int, int], radius: int, contrast: int, grain: float = 0) -> Pixels:
    """Return a grey disc at (x, y) on grey; `size` is (width, height)."""
    canvas = np.full((size[1], size[0], 3), 128, np.float32)
    cv2.circle(canvas, place, radius, (128 + contrast,) * 3, -1)
    canvas += np.random.default_rng(3).normal(0, grain, canvas.shape) if grain else 0
    return np.clip(canvas, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("size", "place", "radius", "contrast", "grain"),
    [
        ((640, 480), (400, 200), 8, 60, 0),
        ((640, 480), (60, 420), 48, -70, 4),
        ((640, 480), (590, 430), 48, 60, 0),
        ((480, 640), (300, 500), 24, 25, 3),
        ((3000, 600), (1900, 250), 18, 60, 0),
        ((600, 3000), (200, 1900), 36, 60, 8),
        ((12000, 1200), (7500, 500), 36, 60, 0),
    ],
)
def test_the_first_box_is_that_of_the_disc(
    size: tuple[int, int], place: tuple[int, int], radius: int, contrast: int, grain: float
) -> None:
    output = ask(scene(size, place, radius, contrast, grain))
    first = output.data["objects"][0]  # type: ignore[index,call-overload]
    true = Box(place[0] - radius, place[1] - radius, place[0] + radius + 1, place[1] + radius + 1)
    assert overlap(Box(*first["box_px"]), true) >= 0.7
    assert first["outlined"] is True
    assert "about" not in output.text


def test_a_box_without_a_clear_outline_stays_and_is_told_as_about() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    assert tighten(noise, Box(100, 100, 200, 200)) is None
    blurred = cv2.GaussianBlur(noise, (0, 0), 12)
    scene_without_outlines = cv2.normalize(blurred, np.zeros_like(blurred), 0, 255, cv2.NORM_MINMAX)
    # Without any edge the picture would count as noise.
    scene_without_outlines[20:28, 30:38] = 0
    output = ask(np.asarray(scene_without_outlines, np.uint8))
    rows = output.data["objects"]
    assert isinstance(rows, list)
    coarse = [row for row in rows if not row["outlined"]]  # type: ignore[index,call-overload]
    assert coarse
    assert output.text.count("about x") == min(4, len(coarse))


def test_a_tie_and_boxes_of_ground_name_no_first() -> None:
    pixels = scene((320, 240), (160, 120), 30, 60)
    ground = [{"x0": x, "y0": 5, "x1": x + 20, "y1": 25, "label": label} for x, label in ((5, "A"), (280, "B"))]
    output = ask(pixels, SaliencyArgs.model_validate({"boxes": ground}))
    assert output.data["most_salient"] is None
    assert output.confidence < 0.5
    assert "undecided" in output.text
    payload = {"x0": 130, "y0": 90, "x1": 190, "y1": 150, "label": "C"}
    output = ask(pixels, SaliencyArgs.model_validate({"boxes": [*ground, payload]}))
    assert output.data["most_salient"] == "C"
    output = ask(pixels, SaliencyArgs.model_validate({"boxes": [payload, {**payload, "label": "D"}]}))
    assert output.data["most_salient"] is None
