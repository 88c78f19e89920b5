"""Dense features of a vision transformer: one vector per patch, read at points of the image.

The networks are DINOv2 (Oquab et al. 2024), also with registers, and DINOv3 (Siméoni et al. 2025), through
transformers. The image is resized but never cropped, so every point keeps its relative position.
`tools/semantic_correspondence/models.py` has the features of Stable Diffusion, and `FeatureModel`, the type of both
families: `feature_map(tool, prepared, model.predict([prepared])[0])` with `prepared = model.prepare(pixels)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import Checkpoint, load_verified
from tools._shared.batches import in_batches, on_host
from tools._shared.reading import check_elongation, whole_picture

FAMILIES = ("dinov2", "dinov2_with_registers", "dinov3_vit")
# Patches along the long side: with patches of 14 px, the network sees an image of 560 px.
PATCHES = 40
MAX_ELONGATION = 8.0

Vector = npt.NDArray[np.float32]
# Features (rows, columns, C) of an image, as the network returns them.
FeatureGrid = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FeatureMap:
    """Features (rows, columns, C) of an image of `size` (H, W), not normalised; `at` returns unit vectors.

    The vectors are interpolated first and normalised afterwards, as in the evaluation of DIFT (`eval_spair.py` of its
    authors: bilinear upsampling, then `F.normalize`), so longer vectors weigh more in the interpolation.
    """

    vectors: FeatureGrid
    size: tuple[int, int]

    def at(self, x: float, y: float) -> Vector:
        """Return the unit vector (C) at a pixel, interpolated between the centres of the nearest four patches."""
        rows, columns = self.vectors.shape[:2]
        row = float(np.clip((y + 0.5) * rows / self.size[0] - 0.5, 0, rows - 1))
        column = float(np.clip((x + 0.5) * columns / self.size[1] - 0.5, 0, columns - 1))
        row_low, column_low = int(row), int(column)
        row_high, column_high = min(row_low + 1, rows - 1), min(column_low + 1, columns - 1)
        down, across = row - row_low, column - column_low
        upper = (1 - across) * self.vectors[row_low, column_low] + across * self.vectors[row_low, column_high]
        lower = (1 - across) * self.vectors[row_high, column_low] + across * self.vectors[row_high, column_high]
        return unit(((1 - down) * upper + down * lower).astype(np.float32))

    def similarity(self, vector: Vector) -> npt.NDArray[np.float32]:
        """Return the cosine (-1..1) of every patch with a unit vector, (rows, columns)."""
        return np.asarray(unit(self.vectors) @ vector, np.float32)


class FeatureInput(NamedTuple):
    """Network input of an image, a tensor (1, 3, h, w), and the image's original size (H, W).

    Families that add noise use `thing`, the name of the object shown, and `seed`, the seed of the noise.
    """

    values: Any
    size: tuple[int, int]
    thing: str = ""
    seed: int = 0


def patch_input(checkpoint: Checkpoint, tool: str, pixels: Pixels, patches: int) -> FeatureInput:
    """Resize an image (H, W, 3), without cropping, to a tensor of full patches, `patches` along the long side.

    Raises:
        ToolError: the image is more elongated than 8 : 1; the message names `tool`.
    """
    check_elongation(tool, pixels, MAX_ELONGATION)
    scale, patch = patches / max(pixels.shape[:2]), int(checkpoint.model.config.patch_size)
    height, width = (max(1, round(side * scale)) * patch for side in pixels.shape[:2])
    return FeatureInput(whole_picture(checkpoint, pixels, height, width), (pixels.shape[0], pixels.shape[1]))


class DenseFeatures:
    """A verified checkpoint of one of `FAMILIES` on a device; errors name `tool`."""

    def __init__(self, weights: str, device: str, tool: str = "semantic_correspondence") -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing or unsuitable, or of none of `FAMILIES`."""
        self._tool = tool
        self._checkpoint = load_verified("AutoModel", weights, device=device, model_types=FAMILIES)
        self.version = self._checkpoint.version
        config = self._checkpoint.model.config
        self._patch = int(config.patch_size)
        # Number of tokens before the patches: the class token, plus the registers if the family has any.
        self._others = 1 + int(getattr(config, "num_register_tokens", 0) or 0)

    def prepare(self, pixels: Pixels, *, thing: str = "", seed: int = 0) -> FeatureInput:
        """Prepare an image (H, W, 3) for the network. Raises `ToolError` if it is more elongated than 8 : 1.

        This family uses neither `thing` nor `seed`.
        """
        return patch_input(self._checkpoint, self._tool, pixels, PATCHES)._replace(thing=thing, seed=seed)

    def predict(self, images: Sequence[FeatureInput]) -> list[FeatureGrid]:
        """Compute the features of each image, (rows, columns, C), in order; up to 32 of one shape share a pass."""

        def run(batch: Any, _: Sequence[int]) -> list[FeatureGrid]:
            tokens = self._checkpoint.model(pixel_values=batch).last_hidden_state
            patches = on_host(tokens[:, self._others :])
            rows, columns = batch.shape[2] // self._patch, batch.shape[3] // self._patch
            return list(patches.reshape(len(batch), rows, columns, -1))

        return in_batches([image.values for image in images], self._checkpoint.device, run)


def feature_map(tool: str, image: FeatureInput, features: FeatureGrid) -> FeatureMap:
    """Return the map of an image. Raises `ToolError`, naming `tool`, if a feature is not finite."""
    check_finite(tool, features)
    return FeatureMap(features, image.size)


def unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Normalise vectors (..., C) to unit length."""
    # A zero vector has no direction: it stays zero, and its cosine with anything is 0.
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6), np.float32)
