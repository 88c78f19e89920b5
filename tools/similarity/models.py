"""Similarity of features of a vision transformer: cosine, aligned patches, and Gram matrices for style.

The networks are DINOv2 (Oquab et al. 2024), also with registers, DINOv3 (Simeoni et al. 2025), SigLIP (Zhai et al.
2023) and SigLIP 2 (Tschannen et al. 2025; its checkpoints of a fixed size belong to the family `siglip`), through
transformers. `model = ImageFeatures(dir_or_id, "cpu")`, then `describe(model.predict([model.prepare(pixels)])[0])` runs
an image once; `likeness` compares two.

Full images are resized to a square. DINOv2's authors evaluate classes on the centre of an image (short side to 256 px,
224 px crop: `make_classification_eval_transform` of `dinov2/data/transforms.py`); of a 16 : 9 image this crop would
keep 43 % of the area, without the objects at the sides. Perceived similarity is measured on full images resized to a
square (DreamSim, Fu et al. 2023, on DINO, CLIP and OpenCLIP: `Resize((load_size, load_size))` of `get_preprocess_fn`),
which also matches SigLIP's training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import find_checkpoint, load_verified, model_type_of
from tools._shared.batches import in_batches, on_host
from tools._shared.reading import shrink, square_side, whole_picture

Array = npt.NDArray[np.float32]

CLASS_TOKEN = ("dinov2", "dinov2_with_registers", "dinov3_vit")
POOLED = ("siglip",)
MAX_SIDE_PX = 1024
# Relative depths of the layers whose Gram matrices are compared (Gatys et al. 2016 use early layers).
STYLE_LAYERS = (0.25, 0.5)


class FeatureDescription(NamedTuple):
    """The description of an image by the network's features.

    `whole` (C) is the unit vector of the image, and `patches` (n, C) are the unit vectors of its patches in order.
    `grams` has one Gram matrix per style layer.
    """

    whole: Array
    patches: Array
    grams: tuple[Array, ...]


class Layers(NamedTuple):
    """The network's features of an image (C), of its patches (n, C), and of its patches in each style layer."""

    whole: Array
    patches: Array
    styles: tuple[Array, ...]


class ImageFeatures:
    """A verified checkpoint on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        family = model_type_of(find_checkpoint(weights), weights, (*CLASS_TOKEN, *POOLED))
        self._pooled = family in POOLED
        self._checkpoint = load_verified("AutoModel", weights, device=device, model_types=(family,))
        self.version = self._checkpoint.version
        config = self._checkpoint.model.config
        self._side = square_side(self._checkpoint.processor)
        # The class token and the registers precede the patches; SigLIP has neither.
        self._before = 0 if self._pooled else 1 + int(getattr(config, "num_register_tokens", 0) or 0)

    def prepare(self, pixels: Pixels) -> Any:
        """Resize an RGB image (H, W, 3), without cropping, to the network's input (1, 3, side, side)."""
        small = shrink(pixels, MAX_SIDE_PX)
        return whole_picture(self._checkpoint, small, self._side, self._side)

    def predict(self, images: Sequence[Any]) -> list[Layers]:
        """Run the network on prepared images; up to 32 of one shape share a forward pass."""
        return in_batches(images, self._checkpoint.device, self._pass)

    def _pass(self, batch: Any, _: Sequence[int]) -> list[Layers]:
        model = self._checkpoint.model.vision_model if self._pooled else self._checkpoint.model
        outputs: Any = model(pixel_values=batch, output_hidden_states=True)
        pooled = outputs.pooler_output if self._pooled else outputs.last_hidden_state[:, 0]
        layers, last = outputs.hidden_states, len(outputs.hidden_states) - 1
        styles = [layers[max(1, round(share * last))] for share in STYLE_LAYERS]
        host_values = [on_host(values) for values in (pooled, outputs.last_hidden_state, *styles)]
        return [
            Layers(
                host_values[0][place],
                host_values[1][place, self._before :],
                tuple(style[place, self._before :] for style in host_values[2:]),
            )
            for place in range(len(batch))
        ]


def describe(layers: Layers) -> FeatureDescription:
    """Describe an image. Raises `ToolError` if the network returned values that are not finite."""
    check_finite("similarity", layers.whole, layers.patches, *layers.styles)
    grams = []
    for style in layers.styles:
        # Second moments (C, C) of features (n, C), scaled to unit norm: co-occurrence independent of position.
        moments = style.T @ style / max(1, style.shape[0])
        grams.append(np.asarray(moments / max(float(np.linalg.norm(moments)), 1e-9), np.float32))
    return FeatureDescription(_unit(layers.whole), _unit(layers.patches), tuple(grams))


def likeness(first: FeatureDescription, second: FeatureDescription) -> dict[str, float]:
    """Return the similarity 0..1 in content, layout and style, and `all`, their mean.

    Cosines below 0 count as 0. Layout compares the patches at the same position of both images.
    """
    count = min(len(first.patches), len(second.patches))
    cosines = {
        "content": float(first.whole @ second.whole),
        "layout": float((first.patches[:count] * second.patches[:count]).sum(axis=1).mean()),
        "style": float(np.mean([(a * b).sum() for a, b in zip(first.grams, second.grams, strict=True)])),
    }
    likenesses = {name: min(1.0, max(0.0, value)) for name, value in cosines.items()}
    return {**likenesses, "all": sum(likenesses.values()) / len(likenesses)}


def _unit(values: Array) -> Array:
    return np.asarray(values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-9), np.float32)
