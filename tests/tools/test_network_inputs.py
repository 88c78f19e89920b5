"""Inputs of each network: the tensor that the checkpoint's own processor makes of the picture, with scaled prompts.

Pictures have three channels with different levels, so that swapped channels, a missing mean or deviation and an
inverted picture change the tensor by far more than the tolerance.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from hybrid.core.types import Box
from hybrid.tool import Pixels
from tests.tools.tiny_checkpoints import Checkpoints
from tools._shared.args import Spot
from tools._shared.target_heat import TargetHeat
from tools.depth.models import DepthModel
from tools.detection.models import Detector, enlarge, enlarges, is_plain_grounding_dino, resize_and_normalise
from tools.forensics.models import SyntheticDetector
from tools.ocr.models import PaddleReader, RapidReader
from tools.reflectance import IntrinsicModel
from tools.segmentation.models import SegmentationPrompt, segmenter

SMALL, LARGE = (90, 120), (1500, 3000)
IMAGENET = (np.array((0.485, 0.456, 0.406)), np.array((0.229, 0.224, 0.225)))


def picture(height: int, width: int) -> Pixels:
    """Return a picture that is smooth in x and y: red is bright, green is medium and blue is dark."""
    y, x = np.mgrid[:height, :width].astype(np.float32)
    wave = 30 * np.sin(6 * x / width) + 25 * np.cos(9 * y / height)
    return np.stack([180 + wave, 110 + 0.6 * wave, 60 - 0.8 * wave], axis=2).astype(np.uint8)


@contextmanager
def reaching(network: Any) -> Iterator[list[dict[str, Any]]]:
    """Record the arguments of every call to a torch module: keyword arguments by name, positional ones by index."""
    seen: list[dict[str, Any]] = []

    def keep(module: Any, unnamed: tuple[Any, ...], mapping: dict[str, Any]) -> None:
        del module
        seen.append({**{str(place): value for place, value in enumerate(unnamed)}, **mapping})

    handle = network.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


def apart(result: Any, expected: Any) -> float:
    """Return the greatest difference of two tensors; infinite if their shapes differ."""
    result, expected = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    return float(np.abs(result - expected).max()) if result.shape == expected.shape else math.inf


def processed(folder: Path, pixels: Pixels) -> Any:
    """Return the tensor that the processor of a checkpoint, loaded again from its folder, makes of a picture."""
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(folder)(Image.fromarray(pixels), return_tensors="pt").pixel_values


# Tolerance for two tensors that are computed in the same way.
EXACT = 1e-5


@pytest.mark.parametrize("family", ["depth_anything", "depth_pro", "dpt", "dpt_dinov2", "zoedepth"])
def test_depth(depth_checkpoint: Checkpoints, family: str):
    folder, pixels = depth_checkpoint(family), picture(*SMALL)
    model = DepthModel(str(folder), "cpu")
    with reaching(model._checkpoint.model) as seen:
        model.predict([model.prepare(pixels)])
    assert apart(seen[0]["pixel_values"], processed(folder, pixels)) <= EXACT


@pytest.mark.parametrize("family", ["grounding_dino", "rt_detr_v2"])
def test_detection(things_checkpoint: Checkpoints, family: str):
    folder, pixels = things_checkpoint(family), picture(*SMALL)
    model = Detector(str(folder), "cpu")
    with reaching(model._checkpoint.model) as seen:
        model.predict([model.prepare(pixels, ["dog"])])
    assert apart(seen[0]["pixel_values"], processed(folder, pixels)) <= EXACT


@pytest.mark.parametrize("size", [(60, 120), (120, 60), (100, 100), (1000, 2000)])
def test_owlv2_sees_grey_beside_the_picture(things_checkpoint: Checkpoints, size: tuple[int, int]):
    """The authors pad to a square with 0.5, at the right or bottom; the padding has the same share at every size."""
    model = Detector(str(things_checkpoint("owlv2")), "cpu")
    text = model.prepare(picture(*size), ["dog"]).image["pixel_values"][0].numpy()
    processor = model._checkpoint.processor.image_processor
    levels = text * np.array(processor.image_std)[:, None, None] + np.array(processor.image_mean)[:, None, None]
    rows, columns = (round(96 * side / max(size)) for side in size)
    for edge_band in (levels[:, rows + 4 :], levels[:, :, columns + 4 :]):
        assert np.abs(edge_band - 0.5).max(initial=0) <= 0.01
    assert levels[0, : rows - 4, : columns - 4].mean() > 0.65


@pytest.mark.system
@pytest.mark.parametrize("side", [1, 7, 333, 959, 960])
def test_owlv2_enlarges_as_its_processor_does(side: int):
    from transformers import Owlv2ImageProcessor

    processor = Owlv2ImageProcessor()
    square = np.random.default_rng(side).integers(0, 256, (side, side, 3)).astype(np.uint8)
    assert enlarges(processor, square)
    expected = processor(images=Image.fromarray(square), return_tensors="pt")["pixel_values"]
    enlarged = enlarge(processor, square)
    assert (enlarged.shape, enlarged.dtype) == (expected.shape, expected.dtype)
    assert float((enlarged - expected).abs().max()) <= 1e-3
    if side == 960:
        mean, std = (np.asarray(values, np.float32) for values in (processor.image_mean, processor.image_std))
        normalised = (square * np.float32(processor.rescale_factor) - mean) / std
        assert np.array_equal(enlarged[0].numpy(), normalised.transpose(2, 0, 1))
    # A picture that is reduced is smoothed first, which other processors do differently.
    assert not enlarges(processor, np.zeros((961, 961, 3), np.uint8))
    assert not enlarges(Owlv2ImageProcessor(do_normalize=False), square)


@pytest.mark.system
@pytest.mark.parametrize("size", [(480, 640), (37, 500), (1600, 900)])
def test_grounding_dinos_inputs_equal_its_processors(size: tuple[int, int]):
    from transformers import GroundingDinoImageProcessor

    processor, pixels = GroundingDinoImageProcessor(), picture(*size)
    assert is_plain_grounding_dino(processor)
    expected = processor(images=Image.fromarray(pixels), return_tensors="pt")
    inputs = resize_and_normalise(processor, pixels)
    for name in ("pixel_values", "pixel_mask"):
        assert inputs[name].dtype == expected[name].dtype
        assert np.array_equal(inputs[name].numpy(), expected[name].numpy())
    # A processor that pads to one size or leaves out a step is not replaced.
    for other in ({"pad_size": {"height": 1400, "width": 1400}}, {"do_pad": False}, {"do_normalize": False}):
        assert not is_plain_grounding_dino(GroundingDinoImageProcessor(**other))


@pytest.mark.parametrize("family", ["rt_detr_v2", "d_fine", "rf_detr"])
def test_detectors_of_closed_classes_see_one_smoothed_picture(things_checkpoint: Checkpoints, family: str):
    """A checkerboard of single pixels becomes grey when it is reduced, whatever the family's own processor does."""
    model = Detector(str(things_checkpoint(family)), "cpu")
    checkers = np.indices((500, 700)).sum(axis=0) % 2 * 255
    text = model.prepare(checkers[..., None].repeat(3, axis=2).astype(np.uint8), ["dog"]).image["pixel_values"][0]
    assert text.shape[-2:] == (96, 96)
    assert float(text[:, 4:-4, 4:-4].std(dim=(1, 2)).max()) <= 0.1


def test_words_are_sought_in_the_processors_picture(things_checkpoint: Checkpoints):
    folder, pixels = things_checkpoint("clipseg"), picture(*SMALL)
    model = TargetHeat(str(folder), "cpu")
    with reaching(model._checkpoint.model) as seen:
        model.predict([model.prepare(pixels, "a cup")])
    assert apart(seen[0]["pixel_values"], processed(folder, pixels)) <= EXACT


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_sam_sees_the_picture_and_its_prompts_at_the_scale_of_its_input(
    things_checkpoint: Checkpoints, size: tuple[int, int]
):
    """SAM 2 scales both sides to 1024 px (128 here), and its prompts likewise.

    `SAM2Transforms` in sam2/utils/transforms.py of facebookresearch/sam2: the input is a square without padding, points
    are multiplied by the resolution over the sides of the image, and the corners of boxes are treated as points.
    """
    model, pixels = segmenter(str(things_checkpoint("sam2")), "cpu"), picture(*size)
    (height, width), side = size, 128
    on, off = Spot(None, 0.25 * width, 0.6 * height), Spot(None, 0.9 * width, 0.2 * height)
    box = Box(0.125 * width, 0.25 * height, 0.5 * width, 0.75 * height)
    with reaching(model._checkpoint.model.vision_encoder) as looks, reaching(model._checkpoint.model) as request:
        model.predict([model.prepare(pixels, SegmentationPrompt(on=(on,), off=(off,), box=box))])
    mean, deviation = IMAGENET
    small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA).astype(np.float64) / 255
    assert apart(next(iter(looks[0].values()))[0], ((small - mean) / deviation).transpose(2, 0, 1)) <= 0.15
    assert apart(request[0]["input_points"][0, 0], [[0.25 * side, 0.6 * side], [0.9 * side, 0.2 * side]]) <= 0.05
    assert request[0]["input_labels"].tolist() == [[[1, 0]]]
    assert apart(request[0]["input_boxes"][0, 0], [0.125 * side, 0.25 * side, 0.5 * side, 0.75 * side]) <= 0.05


def test_paddle_finds_and_reads_lines_in_its_processors_pictures(things_checkpoint: Checkpoints):
    model, pixels = PaddleReader(str(things_checkpoint("ocr")), "cpu"), picture(*SMALL)
    finder, reader = model._finder, model._recogniser
    with reaching(finder.model) as finds, reaching(reader.model) as reads:
        model.read(pixels)
    pixel_values = finder.processor(Image.fromarray(pixels), return_tensors="pt").pixel_values
    assert apart(finds[0]["pixel_values"], pixel_values) <= EXACT
    # This finder reports text everywhere.
    pixel_values = reader.processor(Image.fromarray(pixels), return_tensors="pt").pixel_values
    assert apart(reads[0]["pixel_values"], pixel_values) <= 0.05


@pytest.mark.system
def test_the_package_gets_blue_first():
    """rapidocr expects arrays in OpenCV's order, so blue comes first (here red is 180, green 110 and blue 60)."""
    pytest.importorskip("rapidocr")
    model, seen = RapidReader(), []
    engine = model._engine

    def keep(pixels: Pixels, **more: bool) -> Any:
        seen.append(pixels)
        return engine(pixels, **more)

    model._engine = keep
    pixels = picture(*SMALL)
    model.read(pixels)
    assert apart(seen[0], np.asarray(Image.fromarray(pixels))[:, :, [2, 1, 0]]) <= EXACT


@pytest.mark.parametrize("size", [(300, 400), (1500, 1100)])
def test_community_forensics(things_checkpoint: Checkpoints, size: tuple[int, int]):
    """The short side is resized to 256 px for an input of 224 (440 for 384), bilinearly and antialiased; the middle is
    cropped and normalised.

    `ViTClassifier.preprocess_input` in models.py of JeongsooP/Community-Forensics: torchvision's `Resize` of a PIL
    image with its default, `CenterCrop`, `ToTensor`, `Normalize`.
    """
    model, pixels = SyntheticDetector(str(things_checkpoint("community_detector")), "cpu"), picture(*size)
    pixels = np.clip(pixels.astype(int) + np.random.default_rng(0).integers(-30, 31, pixels.shape), 0, 255)
    pixels = pixels.astype(np.uint8)
    with reaching(model._model) as seen:
        model.predict(model.prepare([pixels]))
    short = min(size)
    height, width = (int(256 * side / short) for side in size)
    small = np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR), np.float64) / 255
    top, left_edge = round((height - 224) / 2), round((width - 224) / 2)
    mean, deviation = IMAGENET
    expected = (small[top : top + 224, left_edge : left_edge + 224] - mean) / deviation
    assert apart(seen[0]["0"][0], expected.transpose(2, 0, 1)) <= EXACT


def test_a_timm_detector_is_fed_as_its_configuration_says(things_checkpoint: Checkpoints):
    """The input follows the fixture's `pretrained_cfg`: a crop of 96 px from a short side of 96 / 0.9, timm's bicubic,
    mean and std 0.5."""
    model, pixels = SyntheticDetector(str(things_checkpoint("timm_detector")), "cpu"), picture(300, 300)
    with reaching(model._model) as seen:
        model.predict(model.prepare([pixels]))
    small = np.asarray(Image.fromarray(pixels).resize((106, 106), Image.Resampling.BICUBIC), np.float64) / 255
    assert apart(seen[0]["0"][0], ((small[5:101, 5:101] - 0.5) / 0.5).transpose(2, 0, 1)) <= EXACT


def test_the_albedo_network_sees_the_picture_in_minus_one_to_one(things_checkpoint: Checkpoints):
    """Marigold's encoder takes red, green and blue scaled to -1..1 (`MarigoldImageProcessor.preprocess`)."""
    pytest.importorskip("diffusers")
    model, pixels = IntrinsicModel(str(things_checkpoint("marigold_iid")), "cpu"), picture(96, 128)
    with reaching(model._pipeline.vae.encoder) as seen:
        model.albedo(pixels, 0)
    (result,) = next(iter(seen[0].values())).float().numpy()
    small = np.asarray(cv2.resize(result.transpose(1, 2, 0), (128, 96), interpolation=cv2.INTER_AREA), np.float64)
    assert apart(small[4:-4, 4:-4], pixels[4:-4, 4:-4] / 127.5 - 1) <= 0.06
