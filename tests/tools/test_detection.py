"""Detection: geometry of boxes, counts, and every family through its real processor on tiny checkpoints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.core.errors import ToolError
from hybrid.core.types import Box
from hybrid.tool import Evidence, Pixels, Request
from tests.tools.pictures import picture
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools._shared.boxes import overlap
from tools.detection import TOOL, DetectionArgs, LearnedDetection, confidence, report
from tools.detection.models import SAME_OBJECT, Detection, Detector, by_phrase, distinct, gather
from tools.detection.rules import seen_from

SIDE = st.floats(0, 100)
SCORE = st.floats(0.01, 1)


def ask(backend: LearnedDetection, pixels: Pixels, *names: str, threshold: float | None = None) -> Evidence:
    return backend.run([Request((pixels,), DetectionArgs(names=names, threshold=threshold))])[0]


def test_overlap_by_hand():
    assert overlap(Box(0, 0, 10, 10), Box(5, 0, 15, 10)) == pytest.approx(1 / 3)
    assert overlap(Box(0, 0, 10, 10), Box(10, 0, 20, 10)) == 0


@given(st.lists(st.tuples(SCORE, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), max_size=8))
def test_boxes_lie_inside_of_the_image_best_first(rows: list[tuple[float, ...]]):
    scores, boxes = np.array([[row[0]] for row in rows]), np.array([row[1:] for row in rows]).reshape(-1, 4)
    results = gather(["cat"], scores.reshape(-1, 1), boxes, 0.1, (640, 480, 640, 480))
    assert [item.score for item in results] == sorted((entry.score for entry in results), reverse=True)
    for value in results:
        assert 0 <= value.box.x0 < value.box.x1 <= 640
        assert 0 <= value.box.y0 < value.box.y1 <= 480


# Corners of a grid, so that many boxes are equal, nested or share the overlap that decides.
CORNER = st.integers(0, 4)


@given(st.lists(st.tuples(CORNER, CORNER, CORNER, CORNER, st.sampled_from("ab")), max_size=12))
def test_a_box_stays_unless_one_of_its_name_that_stays_before_it_is_the_same_thing(rows: list[tuple]):
    boxes = [Detection(name, 1.0, Box(x, y, x + w + 1, y + h + 1)) for x, y, w, h, name in rows]
    detections: list[Detection] = []
    for box in boxes:
        if all(box.name != other.name or overlap(box.box, other.box) < SAME_OBJECT for other in detections):
            detections.append(box)
    assert distinct(boxes) == detections


@pytest.mark.system
def test_phrases_are_cut_at_full_stops():
    import torch

    tokens = torch.tensor([[0.9, 0.2, 0.3, 0.1, 0.7, 0.0, 0.8]])
    # The tokens are [CLS] a b . c . [SEP].
    assert by_phrase(tokens, [101, 5, 6, 1, 7, 1, 102], 1, 2).tolist() == [[pytest.approx(0.3), pytest.approx(0.7)]]
    with pytest.raises(ToolError, match="too long"):
        by_phrase(tokens, [101, 5, 6, 1], 1, 2)
    with pytest.raises(ToolError, match="name 1 holds no letter"):
        by_phrase(tokens, [101, 1, 6, 1], 1, 2)


@given(st.lists(SCORE, max_size=6), st.floats(0.05, 0.9))
def test_confidence_falls_with_doubtful_candidates(scores: list[float], threshold: float):
    detections = [Detection("cat", score, Box(0, 0, 9, 9)) for score in scores]
    assert 0 < confidence(detections, threshold) <= 0.9
    doubtful = [*detections, Detection("cat", threshold, Box(0, 0, 9, 9))]
    assert confidence(doubtful, threshold) < confidence(detections, threshold)


def test_counts_boxes_and_text_agree():
    values = [Detection("cat", 0.9, Box(0, 0, 40, 30)), Detection("dog", 0.1, Box(50, 10, 90, 60))]
    evidence = report(picture(), ["cat", "dog"], values, 0.2, ["yeti"])
    assert evidence.data["counts"] == {"cat": 1, "dog": 0}
    assert evidence.data["unsupported"] == ["yeti"]
    assert [item.name for item in seen_from(evidence.data)] == ["cat"]
    assert evidence.text.splitlines()[0].startswith("1 x cat in image 1: x 0-40, y 0-30 px (0.90)")
    assert "yeti" in evidence.text
    assert evidence.pictures[0].pixels.shape == (90, 120, 3)


@pytest.mark.parametrize("data", [{}, {"boxes": [{"name": "cat"}]}, {"boxes": "no"}])
def test_a_finding_of_another_shape_is_named(data: dict):
    with pytest.raises(ToolError, match="detection: the finding's boxes"):
        seen_from(data)


@pytest.mark.parametrize("arguments", [{}, {"names": []}, {"names": ["  "]}, {"names": ["a"], "threshold": 1.5}])
def test_wrong_arguments_are_refused(arguments: dict):
    with pytest.raises(ValidationError):
        DetectionArgs(**arguments)


@pytest.mark.parametrize(
    "family", ["owlv2", "grounding_dino", "rt_detr_v2", "rf_detr", "mm_grounding_dino", "d_fine", "deimv2"]
)
def test_every_family_answers_through_its_own_processor(things_checkpoint: Checkpoints, family: str):
    backend, pixels = started("detection", things_checkpoint(family)), picture()
    first, second = (ask(backend, pixels, "people", "cat", threshold=0.02) for _ in range(2))
    assert first.data == second.data
    result = seen_from(first.data)
    assert result
    assert {item.name for item in result} <= {"people", "cat"}
    assert all(0 <= entry.box.x0 < entry.box.x1 <= 120 and 0 <= entry.box.y0 < entry.box.y1 <= 90 for entry in result)
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+")
    assert 0 <= first.confidence <= 1


@pytest.mark.parametrize("family", ["owlv2", "rt_detr_v2", "rf_detr", "d_fine", "deimv2"])
def test_boxes_are_those_of_the_librarys_own_decoding(things_checkpoint: Checkpoints, family: str):
    """Boxes equal those of transformers' own decoders. OWLv2 pads to a square, and the other families do not."""
    import torch
    from PIL import Image

    pixels = picture(60, 120, 3)
    names = ["dog", "cat"] if family == "owlv2" else ["person", "dog", "bus", "dining table", "cat"]
    detector = Detector(str(things_checkpoint(family)), "cpu")
    loaded = detector._checkpoint
    prompts = {"text": [[f"a photo of a {name}" for name in names]], "padding": "max_length", "max_length": 16}
    inputs = loaded.processor(
        images=Image.fromarray(pixels), return_tensors="pt", **(prompts if family == "owlv2" else {})
    )
    # The input itself differs for two families (see test_network_inputs.py).
    inputs = {**inputs, **detector.prepare(pixels, names).image}
    with torch.inference_mode():
        outputs = loaded.model(**inputs)
    decode = getattr(loaded.processor, "post_process_grounded_object_detection", None)
    decode = decode or loaded.processor.post_process_object_detection
    (text,) = decode(outputs, threshold=0.0, target_sizes=torch.tensor([[60, 120]]))
    best = int(text["scores"].argmax())
    (prediction,) = detector.predict([detector.prepare(pixels, names)])
    actual = detector.detections(pixels, names, prediction, 1e-6)[0]
    edges = np.clip(text["boxes"][best].numpy(), 0, [120, 60, 120, 60])
    assert actual.score == pytest.approx(float(text["scores"][best]), abs=1e-5)
    assert [actual.box.x0, actual.box.y0, actual.box.x1, actual.box.y1] == pytest.approx(edges, abs=1e-2)


def test_a_closed_set_says_what_it_does_not_know(things_checkpoint: Checkpoints):
    backend = started("detection", things_checkpoint("rt_detr_v2"))
    assert ask(backend, picture(), "dining tables", "yeti").data["unsupported"] == ["yeti"]
    with pytest.raises(ToolError, match="'yeti' is not among the classes"):
        ask(backend, picture(), "yeti")


def test_odd_shapes_and_large_images(things_checkpoint: Checkpoints):
    backend = started("detection", things_checkpoint("rt_detr_v2"))
    assert ask(backend, picture(120, 1700), "dog").pictures[0].pixels.shape == (120, 1700, 3)
    for size in ((1, 1), (4, 200)):
        with pytest.raises(ToolError, match="too small or too elongated"):
            ask(backend, picture(*size), "dog")
