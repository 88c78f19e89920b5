"""How well texts describe an image: SigLIP and SigLIP 2 (Tschannen et al. 2025) and CLIP (Radford et al. 2021).

A library of `tools/attributes.py`. SigLIP scores every text by itself (sigmoid); CLIP only compares texts (softmax).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError
from hybrid.tool import Pixels
from tools._checkpoint import load_verified

FAMILIES = ("siglip", "siglip2", "clip")
COMPARES = ("clip",)
"""Families whose scores are shares among the texts."""
LONGEST_PX = 1024
MOST_ELONGATED = 50.0


class TextScorer:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        self._checkpoint = load_verified(
            "AutoModel",
            weights,
            device=device,
            processor_class="AutoProcessor",
            model_types=FAMILIES,
            harmless=("position_ids",),
        )
        self.compares = self._checkpoint.model_type in COMPARES

    @property
    def version(self) -> str:
        """Family and content of the weights."""
        return self._checkpoint.version

    def scores(self, pixels: Pixels, texts: Sequence[str]) -> tuple[list[float], list[float]]:
        """Scores 0..1 of the texts (shares where the family compares) and their cosines -1..1 with the image.

        Raises:
            ToolError: the image is more elongated than 50 : 1, or a value is not finite.
        """
        import torch

        loaded = self._checkpoint
        # SigLIP was trained on lower-case texts of a fixed length, CLIP on any.
        wording = list(texts) if self.compares else [text.lower() for text in texts]
        padding = True if self.compares else "max_length"
        longest = int(loaded.model.config.text_config.max_position_embeddings)
        inputs = loaded.processor(
            text=wording,
            images=[_reduced(pixels)],
            padding=padding,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
        ).to(loaded.device)
        with torch.inference_mode():
            outputs = loaded.model(**inputs)
        logits = _floats(outputs.logits_per_image[0])
        cosines = _floats(_unit(outputs.text_embeds) @ _unit(outputs.image_embeds)[0])
        if not (np.isfinite(logits).all() and np.isfinite(cosines).all()):
            raise ToolError("attributes: the network returned values that are not finite")
        shifted = np.exp(logits - logits.max())
        shares = shifted / shifted.sum() if self.compares else 1 / (1 + np.exp(-np.clip(logits, -60, 60)))
        return [float(share) for share in shares], [float(np.clip(cosine, -1, 1)) for cosine in cosines]


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True)


def _floats(tensor: Any) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.float().cpu().numpy(), np.float64)


def _reduced(pixels: Pixels) -> Any:
    from PIL import Image

    height, width = pixels.shape[:2]
    if max(height, width) > MOST_ELONGATED * min(height, width):
        raise ToolError(f"attributes: {width} x {height} px is too elongated (at most {MOST_ELONGATED:g} : 1)")
    scale = min(1.0, LONGEST_PX / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return Image.fromarray(np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8))
