"""Attention of a self-supervised vision transformer as a saliency map.

The last layer's class token of DINO attends to foreground objects (Caron et al. 2021, section 4.2.2). The map is row 0
of the attention without its own column, as in `visualize_attention.py` of the authors. They show each head; this module
averages the heads. DINOv2 (Oquab et al. 2024), DINOv2 with registers (Darcet et al. 2024) and DINOv3 load through
transformers. `model = Attention(dir_or_id, "cpu")`, then `contrasted(model.predict([model.prepare(pixels)])[0])`.

DINOv2 without registers stores global information in a few background patches, which then receive most of the attention
(Darcet et al. 2024, section 2). The norm of their features after the last block identifies them: its distribution has
two separate modes, with about 2 % of the patches in the upper one (their figure 3). `without_artifacts` replaces their
attention by that of their neighbours. Networks with registers have no such patches and are unaffected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybrid.core.errors import WeightsError
from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import load_verified
from tools._shared.batches import in_batches, on_host
from tools._shared.dense_features import FAMILIES, FeatureInput, patch_input
from tools.saliency.cues import SaliencyMap, stretch

# Patches along the long side: with patches of 14 px, the network sees an image of 448 px.
PATCHES = 32
# Norm of a patch's feature, relative to the image's median, from which the patch is an artifact. It is an assumption,
# because the paper's threshold (150, for its largest network) does not transfer to other networks.
ARTIFACT = 2.0
# Quantile at which a map is clipped, so that no single patch decides its scale.
OUTLIER = 0.98
# Range of a map, as a share of its mean, below which no patch draws more attention than another: stretched to 0..1, its
# rounding would look like objects.
NO_RELIEF = 0.01


# Images per pass: the attention of all layers is stored, 170 MB per image of 448 px in a small network.
MAX_AT_ONCE = 4


class Attention:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        self._checkpoint = load_verified("AutoModel", weights, device=device, model_types=FAMILIES)
        self.version = self._checkpoint.version
        config = self._checkpoint.model.config
        self._patch = int(config.patch_size)
        # The class token and the registers precede the patches.
        self._before = 1 + int(getattr(config, "num_register_tokens", 0) or 0)
        # Fused attention does not return its weights.
        self._checkpoint.model.set_attn_implementation("eager")
        processor = self._checkpoint.processor
        if not getattr(processor, "image_mean", None) or not getattr(processor, "image_std", None):
            raise WeightsError(f"{weights}: its image processor names no mean and standard deviation")

    def prepare(self, pixels: Pixels) -> FeatureInput:
        """Prepare an RGB image (H, W, 3) for the network. Raises `ToolError` if it is more elongated than 8 : 1."""
        return patch_input(self._checkpoint, "saliency", pixels, PATCHES)

    def predict(self, images: Sequence[FeatureInput]) -> list[SaliencyMap]:
        """Return the class token's attention to patches (rows, columns), averaged over heads; one pass per shape."""

        def run(batch: Any, _: Sequence[int]) -> list[SaliencyMap]:
            outputs = self._checkpoint.model(pixel_values=batch, output_attentions=True, output_hidden_states=True)
            heads = outputs.attentions[-1][:, :, 0, self._before :]
            # The last hidden state is before the final normalisation, which would equalise the norms.
            lengths = outputs.hidden_states[-1][:, self._before :].norm(dim=-1)
            means, long = (on_host(values) for values in (heads.mean(dim=1), lengths))
            grid = (len(batch), batch.shape[2] // self._patch, batch.shape[3] // self._patch)
            return list(map(without_artifacts, means.reshape(grid), long.reshape(grid)))

        return in_batches([image.values for image in images], self._checkpoint.device, run, most=MAX_AT_ONCE)


def without_artifacts(attention: SaliencyMap, lengths: SaliencyMap) -> SaliencyMap:
    """Replace the attention (rows, columns) of artifacts by the median of the valid neighbours.

    Args:
        attention: attention to each patch.
        lengths: norm of each patch's feature before the final normalisation.
    """
    odd = lengths > ARTIFACT * np.median(lengths)
    if not odd.any() or odd.all():
        return attention
    mended = attention.copy()
    for row, column in np.argwhere(odd):
        near = 1
        # An artifact surrounded by artifacts needs a larger window.
        while odd[
            (window := (slice(max(0, row - near), row + near + 1), slice(max(0, column - near), column + near + 1)))
        ].all():
            near += 1
        mended[row, column] = np.median(attention[window][~odd[window]])
    return mended


def contrasted(values: SaliencyMap) -> SaliencyMap:
    """Clip and stretch attention to patches to 0..1, 0 everywhere if it is even.

    Raises `ToolError` for values that are not finite.
    """
    check_finite("saliency", values)
    clipped = np.minimum(values, np.quantile(values, OUTLIER)).astype(np.float32)
    even = float(np.ptp(clipped)) <= NO_RELIEF * float(np.abs(clipped).mean())
    return np.zeros_like(clipped) if even else stretch(clipped)
