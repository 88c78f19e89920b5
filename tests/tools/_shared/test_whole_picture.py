"""Inputs of the networks that give features: the tensor of the reference processor, for the whole picture."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

from hybrid.serving.input_check import chart
from hybrid.tool import Pixels, Request
from tests.tools.tiny_checkpoints import Checkpoints
from tools._shared.dense_features import PATCHES, DenseFeatures, FeatureInput
from tools._shared.reading import square_side
from tools.attributes import TextScorer
from tools.saliency import models as saliency
from tools.semantic_correspondence import DenseMatch, SemanticArgs
from tools.similarity.models import ImageFeatures

# Mean, standard deviation and interpolation that the authors of a family trained or evaluated with.
STATISTICS = {
    "dinov2": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), Image.Resampling.BICUBIC),
    "dinov3": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), Image.Resampling.BILINEAR),
    "siglip": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), Image.Resampling.BICUBIC),
}


def reference(pixels: Pixels, family: str, height: int, width: int) -> np.ndarray:
    """Return the picture scaled by Pillow and normalised, (3, height, width), as torchvision's transforms give it."""
    mean, deviation, way = STATISTICS[family]
    scaled = np.asarray(Image.fromarray(pixels).resize((width, height), way), np.float64) / 255
    return ((scaled - np.asarray(mean)) / np.asarray(deviation)).transpose(2, 0, 1)


def photo(height: int, width: int) -> Pixels:
    """Return a chart with soft noise, so that interpolations differ."""
    noise = np.random.default_rng(0).normal(0, 12, (height, width, 3))
    return np.clip(chart(height, width) + noise, 0, 255).astype(np.uint8)


def far_from(values: Any, expected: np.ndarray) -> float:
    """Return the largest difference, in steps of 1/255 of the picture (ImageNet's smallest deviation)."""
    assert tuple(values.shape) == (1, *expected.shape)
    return float(np.abs(values[0].numpy() - expected).max() * 0.22 * 255)


@pytest.mark.parametrize("family", ["dinov2", "dinov3"])
@pytest.mark.parametrize("size", [(600, 900), (90, 70), (3, 20)])
def test_dense_features_and_attention_get_the_whole_picture_normalised(
    things_checkpoint: Checkpoints, family: str, size: tuple[int, int]
) -> None:
    folder, pixels = str(things_checkpoint(family)), photo(*size)
    patch = 14 if family == "dinov2" else 16
    for model, patches in ((DenseFeatures(folder, "cpu"), PATCHES), (saliency.Attention(folder, "cpu"), 32)):
        rows, columns = (round(side * patches / max(size)) for side in size)
        prepared = model.prepare(pixels)
        values = prepared.values
        assert not isinstance(prepared, FeatureInput) or prepared.size == size
        # Allow a difference of 3/255: the resizing has a pass for each axis, and torchvision and Pillow round
        # differently between the two.
        assert far_from(values, reference(pixels, family, rows * patch, columns * patch)) <= 3


@pytest.mark.parametrize(("family", "side"), [("dinov2", 70), ("siglip", 64)])
def test_similarity_compares_the_whole_picture_squeezed_to_a_square(
    things_checkpoint: Checkpoints, family: str, side: int
) -> None:
    model, pixels = ImageFeatures(str(things_checkpoint(family)), "cpu"), photo(120, 400)
    assert far_from(model.prepare(pixels), reference(pixels, family, side, side)) <= 3


def test_a_thing_at_the_side_of_a_wide_picture_counts(things_checkpoint: Checkpoints) -> None:
    """A thing at the side of a wide picture counts; the authors' centre crop of a 16:9 picture would not see its outer
    quarters."""
    import torch
    import transformers

    model, pixels = ImageFeatures(str(things_checkpoint("dinov2")), "cpu"), photo(180, 320)
    changed = pixels.copy()
    changed[:, :60] = 255 - changed[:, :60]
    assert float((model.prepare(pixels) - model.prepare(changed)).abs().max()) > 0.5
    cropped = transformers.AutoImageProcessor.from_pretrained(things_checkpoint("dinov2"))
    seen = [cropped(images=[item], return_tensors="pt")["pixel_values"] for item in (pixels, changed)]
    assert torch.equal(*seen)


@pytest.mark.parametrize("family", ["siglip", "clip"])
def test_attributes_gets_what_the_familys_own_processor_makes(things_checkpoint: Checkpoints, family: str) -> None:
    import torch
    import transformers

    folder, pixels = things_checkpoint(family), photo(150, 200)
    pixel_values = transformers.AutoProcessor.from_pretrained(folder).image_processor(
        images=[Image.fromarray(pixels)], return_tensors="pt"
    )["pixel_values"]
    assert torch.equal(TextScorer(str(folder), "cpu").prepare(pixels)["pixel_values"], pixel_values)


def test_semantic_correspondence_scales_a_large_picture_only_to_what_the_network_takes(
    things_checkpoint: Checkpoints,
) -> None:
    backend, pixels = DenseMatch(), photo(960, 1280)
    backend.setup("cpu", str(things_checkpoint("dinov2")))
    point = {"x": 5, "y": 5}
    prepared = backend.prepare(Request((pixels, pixels), SemanticArgs(point=point, candidates=[point, point])))
    expected = reference(pixels, "dinov2", 30 * 14, 40 * 14)
    # The image is first reduced to 1024 px by area averaging, which smooths noise a little more than a single resize.
    assert all(float(np.abs(image.values[0].numpy() - expected).mean() * 0.22 * 255) < 3 for image in prepared.images)


@pytest.mark.system
def test_the_square_of_a_processor_is_what_it_cuts_or_scales_to() -> None:
    import transformers

    cut = transformers.BitImageProcessor(size={"shortest_edge": 256}, crop_size={"height": 224, "width": 224})
    assert square_side(cut) == 224
    assert square_side(transformers.SiglipImageProcessor(size={"height": 384, "width": 384})) == 384
    cut.do_center_crop = False
    assert square_side(cut) == 256
    cut.size = {}
    with pytest.raises(ValueError, match="the image processor names no size"):
        square_side(cut)
