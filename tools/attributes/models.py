"""How well texts describe an image: SigLIP and SigLIP 2 (Tschannen et al. 2025) and CLIP (Radford et al. 2021).

SigLIP scores every text by itself (sigmoid); CLIP only compares texts (softmax).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import load_verified
from tools._shared.batches import by_shape, on_host, together
from tools._shared.reading import check_elongation, shrink

FAMILIES = ("siglip", "siglip2", "clip")
# Families whose scores are shares among the texts.
COMPARES = ("clip",)
LONGEST_PX = 1024
MOST_ELONGATED = 50.0


class Comparison(NamedTuple):
    """Logits and cosines of one image with each of its texts, (n)."""

    logits: npt.NDArray[np.float64]
    cosines: npt.NDArray[np.float64]


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
        self.version = self._checkpoint.version
        self.compares = self._checkpoint.model_type in COMPARES

    def prepare(self, pixels: Pixels) -> dict[str, Any]:
        """An image as the network takes it, by the network's names of it, each (1, ...).

        Raises:
            ToolError: the image is more elongated than 50 : 1.
        """
        from PIL import Image

        check_elongation("attributes", pixels, MOST_ELONGATED)
        reduced = Image.fromarray(shrink(pixels, LONGEST_PX))
        return dict(self._checkpoint.process(images=[reduced]))

    def predict(self, images: Sequence[Mapping[str, Any]], texts: Sequence[Sequence[str]]) -> list[Comparison]:
        """Every image compared with its own texts, in one forward pass for images of one shape."""
        import torch

        loaded, words = self._checkpoint, list(dict.fromkeys(text for wanted in texts for text in wanted))
        read = self._tokenized(words).to(loaded.device)
        columns = [[words.index(text) for text in wanted] for wanted in texts]

        comparisons: dict[int, Comparison] = {}
        for members in by_shape([image["pixel_values"] for image in images]):
            batch = {name: together([images[at][name] for at in members], loaded.device) for name in images[0]}
            with torch.inference_mode():
                outputs = loaded.model(**batch, **read)
                cosines = _floats(_unit(outputs.image_embeds) @ _unit(outputs.text_embeds).T)
            logits = _floats(outputs.logits_per_image)
            for row, at in enumerate(members):
                comparisons[at] = Comparison(logits[row, columns[at]], cosines[row, columns[at]])
        return [comparisons[place] for place in range(len(images))]

    def _tokenized(self, texts: Sequence[str]) -> Any:
        # SigLIP was trained on lower-case texts of a fixed length, CLIP on any.
        return self._checkpoint.processor(
            text=list(texts) if self.compares else [text.lower() for text in texts],
            padding=True if self.compares else "max_length",
            truncation=True,
            max_length=int(self._checkpoint.model.config.text_config.max_position_embeddings),
            return_tensors="pt",
        )

    def scores(self, comparison: Comparison) -> tuple[list[float], list[float]]:
        """Scores 0..1 of the texts (shares where the family compares) and their cosines -1..1 with the image.

        Raises:
            ToolError: a value is not finite.
        """
        check_finite("attributes", comparison.logits, comparison.cosines)
        shifted = np.exp(comparison.logits - comparison.logits.max())
        shares = shifted / shifted.sum() if self.compares else 1 / (1 + np.exp(-np.clip(comparison.logits, -60, 60)))
        return [float(share) for share in shares], [float(np.clip(cosine, -1, 1)) for cosine in comparison.cosines]


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True)


def _floats(tensor: Any) -> npt.NDArray[np.float64]:
    return on_host(tensor).astype(np.float64)
