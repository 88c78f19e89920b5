"""Heat map of the position of a named object: CLIPSeg (Lüddecke and Ecker 2022) through transformers.

`model = TargetHeat(dir_or_id, "cpu")`, then
`probability("scanpath", model.predict([model.prepare(pixels, "cup")])[0])`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import INDICES, load_verified
from tools._shared.batches import in_batches, on_host

HeatMap = npt.NDArray[np.float32]
FAMILY = "clipseg"


class SearchInput(NamedTuple):
    """Network input of an image, a tensor (1, 3, h, w), and the words to look for."""

    values: Any
    words: str


class TargetHeat:
    """A verified CLIPSeg checkpoint on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing or unsuitable, or if its model is not CLIPSeg."""
        self._checkpoint = load_verified(
            "CLIPSegForImageSegmentation",
            weights,
            device=device,
            processor_class="CLIPSegProcessor",
            model_types=(FAMILY,),
            harmless=INDICES,
        )
        self.version = self._checkpoint.version

    def prepare(self, pixels: Pixels, words: str) -> SearchInput:
        """Prepare the words to look for, and an RGB image (H, W, 3), which the network sees as a square."""
        from PIL import Image

        inputs = self._checkpoint.process(images=[Image.fromarray(pixels)])
        return SearchInput(inputs["pixel_values"], words)

    def predict(self, sought: Sequence[SearchInput]) -> list[HeatMap]:
        """Return logits (h, w), on the network's grid, that a position shows the words; up to 32 images per pass."""
        loaded = self._checkpoint

        def run(batch: Any, members: Sequence[int]) -> list[HeatMap]:
            words = [sought[place].words for place in members]
            read = loaded.processor(text=words, padding=True, truncation=True, return_tensors="pt").to(loaded.device)
            return list(on_host(loaded.model(pixel_values=batch, **read).logits))

        return in_batches([target.values for target in sought], loaded.device, run)


def probability(tool: str, logits: HeatMap) -> HeatMap:
    """Convert logits (h, w) to probabilities 0..1. Raises `ToolError`, naming `tool`, if one is not finite."""
    check_finite(tool, logits)
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -60, 60))), np.float32)
