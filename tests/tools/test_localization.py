"""Localization: overlaps and their order, the colour cut on generated scenes, the detected object if there is one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Fault, Finding
from hybrid.marks.drawing import LabelledBox, draw_marks
from hybrid.plugins.registry import load
from hybrid.tool import Request
from tests.tools.pictures import markers
from tools._shared.boxes import overlap as iou
from tools._shared.grabcut import distinctness
from tools.detection import report as detected
from tools.detection.models import Detection
from tools.localization import TOOL, BoxFit, Candidate, DetectedFit, LocalizationArgs, cut_shared, judge


def drawn_boxes(pixels: np.ndarray) -> Finding:
    return markers(pixels, labels=("A", "B"), kind="box")


def given_boxes(*boxes: tuple[float, ...]) -> LocalizationArgs:
    values = [dict(zip(("x0", "y0", "x1", "y1"), box, strict=True), label="AB"[n]) for n, box in enumerate(boxes)]
    return LocalizationArgs(name="thing", boxes=values)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_the_largest_overlap_wins_and_ties_do_not(overlaps: list[float]):
    fit = judge(overlaps, [Candidate(str(n), Box(0, 0, 9, 9)) for n in range(len(overlaps))], 0.9)
    assert 1 / len(overlaps) <= fit.confidence <= 0.9
    if fit.best is not None:
        assert overlaps[fit.best] == max(overlaps)
        assert sorted(overlaps)[-2] < overlaps[fit.best]


def test_the_shared_thing_is_cut_out():
    pixels = np.full((120, 160, 3), (160, 160, 150), np.uint8)
    pixels[40:80, 50:110] = (200, 40, 40)
    assert iou(cut_shared(pixels, [Box(50, 40, 110, 80), Box(70, 50, 130, 100)]), Box(50, 40, 110, 80)) > 0.85
    assert cut_shared(pixels, [Box(0, 0, 20, 20), Box(100, 100, 120, 120)]) is None
    assert cut_shared(pixels[:10, :10], [Box(0, 0, 9, 9), Box(1, 1, 9, 9)]) is None


@pytest.mark.parametrize("side", [8, 16, 32])
def test_no_box_fits_what_is_cut_out_of_noise(side: int):
    values = np.random.default_rng(side).integers(0, 256, (256 // side, 320 // side, 3), dtype=np.uint8)
    pixels = values.repeat(side, axis=0).repeat(side, axis=1)
    (result,) = BoxFit().run([Request((pixels,), given_boxes((80, 60, 240, 180), (100, 80, 290, 200)))])
    assert (result.data["best"], result.confidence) == (None, 0.5)


def test_how_clearly_a_mask_is_one_object():
    pixels = np.full((120, 160, 3), (160, 160, 150), np.uint8)
    mask = np.zeros((120, 160), bool)
    mask[40:80, 50:110] = True
    pixels[mask] = (200, 40, 40)
    assert distinctness(pixels, mask, ~mask) > 0.95
    # Further masks: a concave one, one whose outline is on no edge on one side, and an empty one.
    ell = mask.copy()
    ell[40:60, 70:110] = False
    assert distinctness(np.where(ell[..., None], pixels, 155).astype(np.uint8), ell, ~ell) < 0.8
    beyond = mask.copy()
    beyond[40:80, 110:130] = True
    textured = pixels.copy()
    textured[::8] = 0
    assert distinctness(textured, beyond, ~beyond) < 0.5
    assert distinctness(textured, mask, ~mask) > 0.6
    assert distinctness(pixels, np.zeros_like(mask), mask) == 0.0


@pytest.mark.system
def test_generated_boxes_are_told_apart():
    right = 0
    for index in range(4):
        drawn_item = item("Object_Localization", index, 2)
        # The boxes are given exactly, because this tests the fit, not the mark finder.
        request = Request(
            drawn_item.images, given_boxes(*drawn_item.facts.boxes), {"markers": (drawn_boxes(drawn_item.images[0]),)}
        )
        right += BoxFit().run([request])[0].data["best_index"] == drawn_item.answer
    assert right == 4


@pytest.mark.system
def test_drawn_boxes_are_read_from_the_markers():
    drawn_item = item("Object_Localization", 0, 2)
    request = Request(drawn_item.images, LocalizationArgs(name="x"), {"markers": (drawn_boxes(drawn_item.images[0]),)})
    first, second = (BoxFit().run([request])[0] for _ in range(2))
    assert first.data == second.data
    assert [box["label"] for box in first.data["boxes"]] == ["A", "B"]
    assert first.data["best"] == "AB"[drawn_item.answer]
    assert first.pictures[0].pixels.shape == drawn_item.images[0].shape
    assert len(first.text.splitlines()) <= 6


@pytest.mark.parametrize("backend", [BoxFit(), DetectedFit()])
def test_fewer_than_two_drawn_boxes_are_undecided(backend: BoxFit | DetectedFit):
    blank = np.full((60, 80, 3), 90, np.uint8)
    for pixels, count in ((blank, 0), (draw_marks(blank, boxes=[LabelledBox(Box(20, 20, 60, 50), "A")]), 1)):
        request = Request((pixels,), LocalizationArgs(name="x"), {"markers": (drawn_boxes(pixels),)})
        (result,) = backend.run([request])
        assert (result.data["best"], len(result.data["boxes"])) == (None, count)
        assert f"{count} of the drawn boxes were found" in result.text
        assert result.confidence < 0.5


@pytest.mark.parametrize("backend", [BoxFit(), DetectedFit()])
def test_a_single_box_in_the_arguments_is_a_fault(backend: BoxFit | DetectedFit):
    with pytest.raises(ToolError, match="1 box to compare") as refused:
        backend.run([Request((np.full((60, 80, 3), 90, np.uint8),), given_boxes((1, 1, 20, 20)))])
    assert refused.value.fault is Fault.BAD_ARGUMENTS


def finding(pixels: np.ndarray, *detection: Detection) -> Finding:
    evidence = detected(pixels, ["thing"], detection, 0.05)
    return Finding(evidence.text, evidence.data, evidence.confidence, "learned", "detection-1+test")


def test_the_detected_thing_decides_and_one_elsewhere_does_not():
    pixels = np.full((100, 100, 3), 90, np.uint8)
    args = given_boxes((10, 10, 50, 50), (20, 20, 70, 70))
    elsewhere, detection = Detection("thing", 0.9, Box(80, 80, 99, 99)), Detection("thing", 0.4, Box(19, 20, 69, 71))
    (result,) = DetectedFit().run([Request((pixels,), args, {"detection": (finding(pixels, elsewhere, detection),)})])
    assert result.data["best"] == "B"
    assert result.confidence > 0.6
    (nothing,) = DetectedFit().run([Request((pixels,), args, {"detection": (finding(pixels, elsewhere),)})])
    assert nothing.data["best"] is None
    assert "Undecided" in nothing.text
    with pytest.raises(ToolError, match="was not asked"):
        DetectedFit().run([Request((pixels,), args)])


def test_only_the_learned_backend_needs_detections():
    (marks,) = TOOL.card.needs
    assert marks.args(LocalizationArgs(name="x")) == {"labels": [], "kind": "box"}
    assert marks.args(given_boxes((1, 1, 9, 9), (2, 2, 9, 9))) == {"labels": [], "kind": "box"}
    (detection,) = TOOL.backend("learned").needs
    load("tools", "detection").args.model_validate(detection.args(LocalizationArgs(name=" cat ")))
    assert TOOL.backend("classical").needs == ()
