"""Segmentation: GrabCut on plain scenes, masks as data, SAM 2 and CLIPSeg through their processors."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from hybrid.core.errors import NoBackend, ToolError
from hybrid.core.types import Box
from hybrid.tool import Evidence, Pixels, Request
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools._shared.args import PointArg, RegionArg
from tools.segmentation import OUTLINE_POINTS, TOOL, GrabCut, LearnedSegmentation, SegmentationArgs, bounds, outline
from tools.segmentation.models import MaskOutput, SegmentationPrompt, segmenter


def scene(height: int = 120, width: int = 160) -> tuple[Pixels, Box]:
    """Return a noisy ground with one blue disc, and the disc's box."""
    pixels = np.full((height, width, 3), (170, 150, 120), np.uint8)
    cv2.circle(pixels, (60, 70), 25, (40, 60, 200), cv2.FILLED)
    noise = np.random.default_rng(0).integers(-12, 13, pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype(np.uint8), Box(35, 45, 86, 96)


def ask(backend: GrabCut | LearnedSegmentation, pixels: Pixels, **arguments: object) -> Evidence:
    return backend.run([Request((pixels,), SegmentationArgs(**arguments))])[0]


def test_a_mask_that_ends_where_the_search_does_is_said_to():
    """The output says that a mask ends where the search does: a bar through the whole picture has no visible end."""
    pixels = np.full((160, 900, 3), (170, 150, 120), np.uint8)
    pixels[60:100] = (40, 60, 200)
    pixels = np.clip(pixels + np.random.default_rng(0).integers(-12, 13, pixels.shape), 0, 255).astype(np.uint8)
    output = ask(GrabCut(), pixels, box={"x0": 400, "y0": 50, "x1": 480, "y1": 110})
    assert "edge of what was searched" in output.text
    assert output.confidence < 0.25
    assert len(output.text) <= 450


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (12, 200)])
def test_too_small_an_image_is_refused(size: tuple[int, int]):
    with pytest.raises(ToolError, match="at least 16 px"):
        ask(GrabCut(), np.zeros((*size, 3), np.uint8), points=[{"x": 0, "y": 0}])


def test_prompts_that_cannot_be_cut_out_are_refused():
    pixels, _ = scene()
    with pytest.raises(NoBackend, match="words need weights"):
        ask(GrabCut(), pixels, words="a disc")
    with pytest.raises(ToolError, match="leaves no background"):
        ask(GrabCut(), pixels, box={"x0": 0, "y0": 0, "x1": 160, "y1": 120})
    with pytest.raises(ToolError, match="outside the image"):
        ask(GrabCut(), pixels, points=[{"x": 160, "y": 10}])


@pytest.mark.parametrize("arguments", [{}, {"words": "x", "points": [{"x": 1, "y": 1}]}, {"away": [{"x": 1, "y": 1}]}])
def test_points_or_a_box_or_else_words(arguments: dict):
    with pytest.raises(ValidationError, match="give points or a box, or else words"):
        SegmentationArgs(**arguments)


@given(st.integers(0, 2**20))
def test_bounds_and_outline_follow_any_mask(seed: int):
    rng = np.random.default_rng(seed)
    mask = cv2.resize(rng.random((6, 8)).astype(np.float32), (80, 60)) > rng.uniform(0.2, 1.0)
    box, line = bounds(mask), outline(mask)
    assert len(line) <= OUTLINE_POINTS
    if box is None:
        assert not mask.any()
        assert line == []
    else:
        assert mask[int(box.y0) : int(box.y1), int(box.x0) : int(box.x1)].sum() == mask.sum()
        assert all(box.x0 <= x < box.x1 and box.y0 <= y < box.y1 for x, y in line)


def test_sam_takes_points_and_boxes(things_checkpoint: Checkpoints):
    backend, (pixels, _) = started("segmentation", things_checkpoint("sam2")), scene()
    prompts: list[dict] = [
        {"points": [{"x": 60, "y": 70}]},
        {"points": [{"x": 60, "y": 70}], "away": [{"x": 10, "y": 10}]},
        {"box": {"x0": 25, "y0": 35, "x1": 96, "y1": 106}},
    ]
    areas = set()
    for prompt in prompts:
        first, second = (ask(backend, pixels, **prompt) for _ in range(2))
        assert first.data == second.data
        assert first.pictures[0].pixels.shape == pixels.shape
        assert 0 <= first.confidence <= 0.9
        areas.add(first.data["area_px"])
    assert len(areas) == 3
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+sam2@")
    with pytest.raises(ToolError, match="takes points or a box, not words"):
        ask(backend, pixels, words="a disc")
    with pytest.raises(ToolError, match="at least 4 px"):
        ask(backend, np.zeros((1, 1, 3), np.uint8), points=[{"x": 0, "y": 0}])


def test_sam_3_takes_words_points_and_boxes(things_checkpoint: Checkpoints, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tools.segmentation.models.PRESENT", 0.2)
    backend, (pixels, _) = started("segmentation", things_checkpoint("sam3")), scene()
    prompts: list[dict] = [
        {"words": "a blue disc"},
        {"words": "z " * 90},
        {"points": [{"x": 60, "y": 70}]},
        {"box": {"x0": 25, "y0": 35, "x1": 96, "y1": 106}},
    ]
    requests = [Request((pixels,), SegmentationArgs(**prompt)) for prompt in prompts]
    together = backend.run(requests)
    assert [result.data["prompt"] for result in together] == ["words", "words", "points", "box"]
    assert len({(output.data["area_px"], output.data["score_0_1"]) for output in together}) == 4
    for request, value in zip(requests, together, strict=True):
        assert backend.run([request])[0].data == value.data
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+sam3_video@")


def test_words_of_sam_3_are_cut_out_as_by_the_library(things_checkpoint: Checkpoints, monkeypatch: pytest.MonkeyPatch):
    import torch
    from PIL import Image

    monkeypatch.setattr("tools.segmentation.models.PRESENT", 0.25)
    pixels, _ = scene()
    model = segmenter(str(things_checkpoint("sam3")), "cpu")
    loaded = model._words._checkpoint
    inputs = loaded.processor(images=Image.fromarray(pixels), text="a disc", return_tensors="pt")
    with torch.inference_mode():
        outputs = loaded.model(**{name: inputs[name] for name in ("pixel_values", "input_ids", "attention_mask")})
    (reference,) = loaded.processor.post_process_instance_segmentation(
        outputs, threshold=0.25, mask_threshold=0.25, target_sizes=[pixels.shape[:2]]
    )
    assert len(reference["scores"]) > 1
    (output,) = model.predict([model.prepare(pixels, SegmentationPrompt(words="a disc"))])
    mask, score = model.mask(pixels, output)
    full = reference["masks"].amax(dim=0).bool().numpy()
    # This project joins the masks before it enlarges them, so pixels differ only at the seam between two masks.
    assert (mask == full).mean() > 0.98
    assert score == pytest.approx(float(reference["scores"].max()), abs=1e-5)


def test_what_sam_3_does_not_see_is_not_found(things_checkpoint: Checkpoints, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tools.segmentation.models.PRESENT", 0.99)
    output = ask(started("segmentation", things_checkpoint("sam3")), scene()[0], words="a unicorn")
    assert output.data["found"] is False
    assert (output.data["score_0_1"], output.data["area_px"], output.confidence) == (0.0, 0, 0.3)


def test_clipseg_takes_words(things_checkpoint: Checkpoints):
    backend, (pixels, _) = started("segmentation", things_checkpoint("clipseg")), scene()
    output, other = ask(backend, pixels, words="a blue disc"), ask(backend, pixels, words="zebra")
    assert output.data["prompt"] == "words"
    assert output.data["area_px"] != other.data["area_px"]
    with pytest.raises(ToolError, match="takes words, not points"):
        ask(backend, pixels, points=[{"x": 1, "y": 1}])


@pytest.mark.parametrize("size", [(3000, 4000), (1999, 3001), (90, 120)])
def test_a_mask_is_enlarged_pixel_centre_on_pixel_centre(things_checkpoint: Checkpoints, size: tuple[int, int]):
    """Above 2,048 px the mask of the reduced picture is enlarged with aligned edges, as in Pillow."""
    import torch

    model = segmenter(str(things_checkpoint("sam2")), "cpu")
    scale = min(1.0, 2048 / max(size))
    seen = (round(size[0] * scale), round(size[1] * scale))
    logits = np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32)
    pixels = np.zeros((*size, 3), np.uint8)
    mask, _ = model.mask(pixels, MaskOutput(logits, 0.5, seen))
    (small,) = model._checkpoint.processor.post_process_masks([torch.from_numpy(logits)[None, None]], [seen])
    exact = Image.fromarray(small[0, 0].numpy().astype(np.uint8)).resize(size[::-1], Image.Resampling.NEAREST)
    assert np.array_equal(mask, np.asarray(exact) > 0)


def test_a_mask_by_colour_of_a_large_picture_is_centred_on_the_thing():
    """The mask of a large picture is centred on the thing. A mask that is enlarged from its upper left pixels would be
    off in opposite directions at opposite edges."""
    pixels = np.full((1200, 1600, 3), (170, 150, 120), np.uint8)
    pixels[301:901, 399:1201] = (40, 60, 200)
    output = ask(GrabCut(), pixels, box={"x0": 399, "y0": 301, "x1": 1201, "y1": 901})
    x0, y0, x1, y1 = output.data["box_px"]
    assert abs((x0 + x1) / 2 - 800) <= 1.5
    assert abs((y0 + y1) / 2 - 601) <= 1.5


def test_in_patches_without_a_ground_a_point_names_one_and_a_box_nothing() -> None:
    colours = np.random.default_rng(3).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    picture = colours.repeat(64, axis=0).repeat(64, axis=1)
    args = SegmentationArgs(points=(PointArg(x=224, y=160),))
    (patch,) = GrabCut().run([Request((picture,), args)])
    assert patch.data["found"]
    box = RegionArg(x0=100, y0=90, x1=300, y1=230)
    (nothing,) = GrabCut().run([Request((picture,), SegmentationArgs(box=box))])
    assert (nothing.data["found"], nothing.confidence) == (False, 0.0)
