"""Where a named thing is, as heat: CLIPSeg (Lüddecke and Ecker 2022) through transformers.

A library of `tools/scanpath.py`: `TargetHeat(dir_or_id, "cpu").map(pixels, "cup")`.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError
from hybrid.tool import Pixels
from tools._checkpoint import load_verified
from tools._depth_cues import shrink

Map = npt.NDArray[np.float32]
LONGEST_PX = 1024


class TargetHeat:
    """A verified CLIPSeg checkpoint on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        self._checkpoint = load_verified(
            "CLIPSegForImageSegmentation",
            weights,
            device=device,
            processor_class="CLIPSegProcessor",
            model_types=("clipseg",),
            # Indices that old files carry and the model computes.
            harmless=("position_ids",),
        )

    @property
    def version(self) -> str:
        """Family and content of the weights."""
        return self._checkpoint.version

    def map(self, pixels: Pixels, words: str) -> Map:
        """Probability 0..1 (h, w), on the network's grid, that a place of an RGB image (H, W, 3) shows the words.

        Raises:
            ToolError: the network returned no finite number.
        """
        import torch
        from PIL import Image

        loaded = self._checkpoint
        picture = Image.fromarray(_square(shrink(pixels, LONGEST_PX)))
        inputs = loaded.processor(
            text=[words], images=[picture], padding=True, truncation=True, return_tensors="pt"
        ).to(loaded.device)
        with torch.inference_mode():
            logits = loaded.model(**inputs).logits.float().cpu().numpy()
        values = logits.reshape(logits.shape[-2:])
        if not np.isfinite(values).all():
            raise ToolError("scanpath: the network returned values that are not finite")
        return np.asarray(1 / (1 + np.exp(-np.clip(values, -60, 60))), np.float32)


def _square(pixels: Pixels) -> Pixels:
    """A strip squeezed to 4 : 1: the network sees a square anyway, and processors fail on images of one row."""
    height, width = pixels.shape[:2]
    least = max(8, max(height, width) // 4)
    size = (max(width, least), max(height, least))
    return pixels if size == (width, height) else np.asarray(cv2.resize(pixels, size), np.uint8)
