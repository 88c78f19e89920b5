"""Dense features of a vision transformer: one vector a patch, read at points of the image.

DINOv2 (Oquab et al. 2024), with registers, and
DINOv3 (Siméoni et al. 2025) through transformers. The image is scaled whole, never cropped, so every point keeps its
place. `models.py` has the other family, `FeatureModel` what both are:
`feature_map(tool, prepared, model.predict([prepared])[0])` with `prepared = model.prepare(pixels)`.
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
# Patches along the long side: a patch of 14 px sees an image of 560 px.
PATCHES = 40
MAX_ELONGATION = 8.0

Vector = npt.NDArray[np.float32]
# Features (rows, columns, C) of an image, as the network gives them.
FeatureGrid = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FeatureMap:
    """Features (rows, columns, C) of an image of `size` (H, W), of any length; those read by `at` have length one.

    They are interpolated first and normalised afterwards, as in the evaluation of DIFT (`eval_spair.py` of its authors:
    bilinear upsampling, then `F.normalize`), so that a long feature weighs more between two patches than a short one.
    """

    vectors: FeatureGrid
    size: tuple[int, int]

    def at(self, x: float, y: float) -> Vector:
        """The unit vector (C) at a pixel of the image, between the middles of the nearest four patches."""
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
        """Cosine -1..1 of every patch with a unit vector, (rows, columns)."""
        return np.asarray(unit(self.vectors) @ vector, np.float32)


class FeatureInput(NamedTuple):
    """An image as the network takes it, a tensor (1, 3, h, w), and the size (H, W) that it had.

    `thing` names what is shown and `seed` decides what is drawn, for a family that uses them.
    """

    values: Any
    size: tuple[int, int]
    thing: str = ""
    seed: int = 0


def patch_input(checkpoint: Checkpoint, tool: str, pixels: Pixels, patches: int) -> FeatureInput:
    """An image (H, W, 3) as a tensor of whole patches, `patches` along its long side: scaled whole, never cropped.

    Raises:
        ToolError: in the name of `tool`: the image is more elongated than 8 : 1.
    """
    check_elongation(tool, pixels, MAX_ELONGATION)
    scale, patch = patches / max(pixels.shape[:2]), int(checkpoint.model.config.patch_size)
    height, width = (max(1, round(side * scale)) * patch for side in pixels.shape[:2])
    return FeatureInput(whole_picture(checkpoint, pixels, height, width), (pixels.shape[0], pixels.shape[1]))


class DenseFeatures:
    """A verified checkpoint of one of `FAMILIES` on a device; `tool` is named in errors."""

    def __init__(self, weights: str, device: str, tool: str = "semantic_correspondence") -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        self._tool = tool
        self._checkpoint = load_verified("AutoModel", weights, device=device, model_types=FAMILIES)
        self.version = self._checkpoint.version
        config = self._checkpoint.model.config
        self._patch = int(config.patch_size)
        # The class token, and the registers of the families that have them.
        self._others = 1 + int(getattr(config, "num_register_tokens", 0) or 0)

    def prepare(self, pixels: Pixels, *, thing: str = "", seed: int = 0) -> FeatureInput:
        """An image (H, W, 3) as the network takes it. Raises `ToolError`: it is more elongated than 8 : 1.

        This family uses neither `thing` nor `seed`.
        """
        return patch_input(self._checkpoint, self._tool, pixels, PATCHES)._replace(thing=thing, seed=seed)

    def predict(self, images: Sequence[FeatureInput]) -> list[FeatureGrid]:
        """The network's features of each image, (rows, columns, C), in order; one pass for up to 32 of one shape."""

        def run(batch: Any, _: Sequence[int]) -> list[FeatureGrid]:
            tokens = self._checkpoint.model(pixel_values=batch).last_hidden_state
            patches = on_host(tokens[:, self._others :])
            rows, columns = batch.shape[2] // self._patch, batch.shape[3] // self._patch
            return list(patches.reshape(len(batch), rows, columns, -1))

        return in_batches([image.values for image in images], self._checkpoint.device, run)


def feature_map(tool: str, image: FeatureInput, features: FeatureGrid) -> FeatureMap:
    """The map of an image. Raises `ToolError`, in the name of `tool`: a feature is not finite."""
    check_finite(tool, features)
    return FeatureMap(features, image.size)


def unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Vectors (..., C) at length one."""
    # A vector of zeros has no direction: it stays, and its cosine with anything is 0.
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6), np.float32)
