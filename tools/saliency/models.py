"""Attention of a self-supervised vision transformer as a saliency map.

The last layer's class token of DINO attends to foreground objects (Caron et al. 2021,
section 4.2.2); DINOv2 (Oquab et al. 2024), DINOv2 with registers (Darcet et al. 2024) and DINOv3 load through
transformers. `model = Attention(dir_or_id, "cpu")`, then `contrasted(model.predict([model.prepare(pixels)])[0])`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from hybrid.errors import WeightsError
from hybrid.tool import Pixels
from tools._shared.backends import check_finite
from tools._shared.batches import in_batches
from tools._shared.checkpoint import load_verified
from tools._shared.reading import check_elongation
from tools.saliency.cues import SaliencyMap, stretch

FAMILIES = ("dinov2", "dinov2_with_registers", "dinov3_vit")
PATCHES = 32
"""Patches along the long side: a patch of 14 px sees an image of 448 px."""
MOST_ELONGATED = 8.0
OUTLIER = 0.98
"""Quantile at which a map is cut: DINOv2 without registers has a few background patches of very large attention."""


MOST_AT_ONCE = 4
"""Images in one pass: the attention of all layers is kept, 170 MB an image of 448 px in a small network."""


@dataclass(frozen=True, eq=False)
class PatchInput:
    """An image as the network takes it, a tensor (1, 3, h, w), and its patches."""

    values: Any
    rows: int
    columns: int


class Attention:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        self._checkpoint = load_verified("AutoModel", weights, device=device, model_types=FAMILIES)
        self.version = self._checkpoint.version
        config = self._checkpoint.model.config
        self._patch = int(config.patch_size)
        # The class token and the registers stand before the patches.
        self._before = 1 + int(getattr(config, "num_register_tokens", 0) or 0)
        # Fused attention does not hand its weights out.
        self._checkpoint.model.set_attn_implementation("eager")
        processor = self._checkpoint.processor
        if not getattr(processor, "image_mean", None) or not getattr(processor, "image_std", None):
            raise WeightsError(f"{weights}: its image processor names no mean and standard deviation")

    def prepare(self, pixels: Pixels) -> PatchInput:
        """An RGB image (H, W, 3) as the network takes it: scaled whole, never cropped.

        Raises:
            ToolError: it is more elongated than 8 : 1.
        """
        height, width = pixels.shape[:2]
        check_elongation("saliency", pixels, MOST_ELONGATED)
        scale = PATCHES / max(height, width)
        rows, columns = max(1, round(height * scale)), max(1, round(width * scale))
        size = (columns * self._patch, rows * self._patch)
        scaled = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
        return PatchInput(self._prepare(scaled), rows, columns)

    def predict(self, images: Sequence[PatchInput]) -> list[SaliencyMap]:
        """Attention of the class token to the patches (rows, columns), mean of the heads; a pass for each shape."""
        import torch

        def run(batch: Any, members: Sequence[int]) -> list[SaliencyMap]:
            with torch.inference_mode():
                values = batch.to(self._checkpoint.device)
                outputs = self._checkpoint.model(pixel_values=values, output_attentions=True)
            heads = outputs.attentions[-1][:, :, 0, self._before :].float().cpu().numpy()
            means = np.asarray(heads.mean(axis=1), np.float32)
            return [means[row].reshape(images[at].rows, images[at].columns) for row, at in enumerate(members)]

        return in_batches([image.values for image in images], run, most=MOST_AT_ONCE)

    def _prepare(self, scaled: Pixels) -> Any:
        # The processor's own resizing would cut the sides off.
        return self._checkpoint.processor(
            images=[scaled],
            return_tensors="pt",
            do_resize=False,
            do_center_crop=False,
            input_data_format="channels_last",
        )["pixel_values"]


def contrasted(values: SaliencyMap) -> SaliencyMap:
    """A map 0..1 of attention to patches. Raises `ToolError`: the network returned no finite number."""
    check_finite("saliency", values)
    return stretch(np.minimum(values, np.quantile(values, OUTLIER)).astype(np.float32))
