"""Segmentation networks: SAM 2 (Ravi et al. 2024) from points and boxes, CLIPSeg (Lüddecke and Ecker 2022) from words.

A library of `tools/segmentation.py`. `Segmenter(dir_or_id, "cpu")` loads either; the checkpoint's family says what it
can be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError
from hybrid.tool import Pixels
from hybrid.types import Box, Fault
from tools._args import Spot
from tools._checkpoint import find_checkpoint, load_verified, model_type_of

Mask = npt.NDArray[np.bool_]

BY_PLACE = ("sam2", "sam2_video")
"""The published SAM 2 files are those of the video model; the image model reads its part of them."""
BY_WORDS = ("clipseg",)
LEAST_PX = 4
LONGEST_PX = 2048
PRESENT = 0.5
"""CLIPSeg's probability from which a pixel belongs to the words."""


class Segmenter:
    """A verified checkpoint on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        family = model_type_of(find_checkpoint(weights), weights, (*BY_PLACE, *BY_WORDS))
        self.by_words = family in BY_WORDS
        self._checkpoint = load_verified(
            "CLIPSegForImageSegmentation" if self.by_words else "Sam2Model",
            weights,
            device=device,
            processor_class="CLIPSegProcessor" if self.by_words else "Sam2Processor",
            harmless=("position_ids",),
        )

    @property
    def version(self) -> str:
        """Family and content of the weights."""
        return self._checkpoint.version

    def at(self, pixels: Pixels, spots: Sequence[Spot], away: Sequence[Spot], box: Box | None) -> tuple[Mask, float]:
        """Mask (H, W) and the network's own estimate of its intersection over union, 0..1.

        Raises:
            ToolError: the checkpoint takes words only, or the image is too small.
        """
        import torch

        if self.by_words:
            raise ToolError("segmentation: this checkpoint takes words, not points or boxes", Fault.BAD_ARGUMENTS)
        picture, scale = _reduced(pixels)
        prompt: dict[str, Any] = {}
        if spots or away:
            prompt["input_points"] = [[[[s.x * scale[0], s.y * scale[1]] for s in (*spots, *away)]]]
            prompt["input_labels"] = [[[1] * len(spots) + [0] * len(away)]]
        if box is not None:
            edges = (box.x0 * scale[0], box.y0 * scale[1], box.x1 * scale[0], box.y1 * scale[1])
            prompt["input_boxes"] = [[list(edges)]]
        loaded = self._checkpoint
        inputs = loaded.processor(images=picture, return_tensors="pt", **prompt).to(loaded.device)
        # One point fits a part, a thing and a group: the network offers all three and its own estimate of each.
        several = box is None and len(spots) + len(away) == 1
        with torch.inference_mode():
            outputs = loaded.model(**inputs, multimask_output=several)
        masks = loaded.processor.post_process_masks(outputs.pred_masks.float().cpu(), inputs["original_sizes"].cpu())
        best = int(outputs.iou_scores[0, 0].argmax())
        estimate = float(np.clip(outputs.iou_scores[0, 0, best].item(), 0.0, 1.0))
        return _enlarged(np.asarray(masks[0][0, best].numpy(), bool), pixels), estimate

    def named(self, pixels: Pixels, words: str) -> tuple[Mask, float]:
        """Mask (H, W) of what the words name and the mean probability inside of it, 0..1 (0 for an empty mask).

        Raises:
            ToolError: the checkpoint takes points and boxes only, or the image is too small.
        """
        import torch

        if not self.by_words:
            raise ToolError("segmentation: this checkpoint takes points or a box, not words", Fault.BAD_ARGUMENTS)
        picture, _ = _reduced(pixels)
        loaded = self._checkpoint
        inputs = loaded.processor(
            text=[words], images=[picture], padding=True, truncation=True, return_tensors="pt"
        ).to(loaded.device)
        with torch.inference_mode():
            outputs = loaded.model(**inputs)
        logits = outputs.logits.float().cpu().numpy().reshape(outputs.logits.shape[-2:])
        if not np.isfinite(logits).all():
            raise ToolError("segmentation: the network returned values that are not finite")
        map_ = np.asarray(1 / (1 + np.exp(-np.clip(logits, -60, 60))), np.float32)
        size = (pixels.shape[1], pixels.shape[0])
        full = np.asarray(cv2.resize(map_, size, interpolation=cv2.INTER_LINEAR), np.float32)
        mask = full >= PRESENT
        return mask, float(full[mask].mean()) if mask.any() else 0.0


def _reduced(pixels: Pixels) -> tuple[Any, tuple[float, float]]:
    from PIL import Image

    height, width = pixels.shape[:2]
    if min(height, width) < LEAST_PX:
        raise ToolError(f"segmentation: image 1 is {width} x {height} px; at least {LEAST_PX} px a side are needed")
    scale = min(1.0, LONGEST_PX / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = pixels if scale == 1 else np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    return Image.fromarray(small), (size[0] / width, size[1] / height)


def _enlarged(mask: Mask, pixels: Pixels) -> Mask:
    size = (pixels.shape[1], pixels.shape[0])
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST), np.uint8) > 0
