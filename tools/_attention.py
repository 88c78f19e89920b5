"""Attention of a self-supervised vision transformer as a saliency map.

A library of `tools/saliency.py`. The last layer's class token of DINO attends to foreground objects (Caron et al. 2021,
section 4.2.2); DINOv2 (Oquab et al. 2024), DINOv2 with registers (Darcet et al. 2024) and DINOv3 load through
transformers. `Attention(dir_or_id, "cpu").maps([pixels])` gives one map an image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError, WeightsError
from hybrid.tool import Pixels
from tools._checkpoint import load_verified
from tools._saliency_maps import stretch

Map = npt.NDArray[np.float32]

FAMILIES = ("dinov2", "dinov2_with_registers", "dinov3_vit")
PATCHES = 32
"""Patches along the long side: a patch of 14 px sees an image of 448 px."""
MOST_ELONGATED = 8.0
OUTLIER = 0.98
"""Quantile at which a map is cut: DINOv2 without registers has a few background patches of very large attention."""


class Attention:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        self._checkpoint = load_verified("AutoModel", weights, device=device, model_types=FAMILIES)
        config = self._checkpoint.model.config
        self._patch = int(config.patch_size)
        # The class token and the registers stand before the patches.
        self._before = 1 + int(getattr(config, "num_register_tokens", 0) or 0)
        # Fused attention does not hand its weights out.
        self._checkpoint.model.set_attn_implementation("eager")
        processor = self._checkpoint.processor
        if not getattr(processor, "image_mean", None) or not getattr(processor, "image_std", None):
            raise WeightsError(f"{weights}: its image processor names no mean and standard deviation")

    @property
    def version(self) -> str:
        """Family and content of the weights."""
        return self._checkpoint.version

    def maps(self, images: Sequence[Pixels]) -> list[Map]:
        """One map 0..1 (rows, columns of patches) for each RGB image (H, W, 3), which is scaled whole, never cropped.

        Raises:
            ToolError: an image is more elongated than 8 : 1, or the network returned no finite number.
        """
        return [self._map(pixels) for pixels in images]

    def _map(self, pixels: Pixels) -> Map:
        import torch

        height, width = pixels.shape[:2]
        if max(height, width) > MOST_ELONGATED * min(height, width):
            raise ToolError(
                f"saliency: an image of {width} x {height} px is too elongated (at most {MOST_ELONGATED:g} : 1)"
            )
        scale = PATCHES / max(height, width)
        rows, columns = max(1, round(height * scale)), max(1, round(width * scale))
        size = (columns * self._patch, rows * self._patch)
        scaled = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
        inputs = self._prepare(scaled).to(self._checkpoint.device)
        with torch.inference_mode():
            outputs = self._checkpoint.model(pixel_values=inputs, output_attentions=True)
        heads = outputs.attentions[-1][0, :, 0, self._before :].float().cpu().numpy()
        values = np.asarray(heads.mean(axis=0), np.float32).reshape(rows, columns)
        if not np.isfinite(values).all():
            raise ToolError("saliency: the network returned values that are not finite")
        return stretch(np.minimum(values, np.quantile(values, OUTLIER)).astype(np.float32))

    def _prepare(self, scaled: Pixels) -> Any:
        # The processor's own resizing would cut the sides off.
        return self._checkpoint.processor(
            images=[scaled],
            return_tensors="pt",
            do_resize=False,
            do_center_crop=False,
            input_data_format="channels_last",
        )["pixel_values"]
