"""LoFTR (Sun et al. 2021) through kornia.

transformers has no layout for LoFTR: a directory with one `.safetensors` file of the state dict and no `config.json` is
read as the outdoor LoFTR; `{"model_type": "kornia_loftr", "temp_bug_fix": true}` in `config.json` marks the newer
indoor weights. Convert a published `.ckpt` with
`save_file(torch.load(path, weights_only=True)["state_dict"], "loftr.safetensors")`.

The centre of the first pixel is at 0.5: training supervises points through intrinsics whose origin is the upper left
corner of the image (zju3dv/LoFTR, `src/loftr/utils/supervision.py`, `spvs_coarse`; kornia's description of its `LoFTR`
agrees). So a point is scaled to the view by the ratio of the sizes, then shifted by half a pixel. The aspect ratio is
kept except for rounding to full cells, so each axis has its own ratio (`src/utils/dataset.py`, `read_megadepth_gray`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.plugins.weights import weights_sha256
from hybrid.tool import Pixels
from hybrid.tool.checkpoint import fill
from hybrid.tool.networks import grey as grey_picture
from tools._shared.batches import by_form, by_members, doubles, shape, together
from tools._shared.local_features import read_tensors
from tools._shared.view_matches import Matches, PreparedPair

if TYPE_CHECKING:
    import torch

MODEL_TYPE = "kornia_loftr"
# Long side of the input: the cost of attention grows with its fourth power.
MAX_SIDE_PX = 640
MIN_SIDE_PX = 32
# Pairs per pass: the similarity of all cells of both images takes 90 MB per pair.
MAX_AT_ONCE = 4
# The sides of the input are multiples of this, the size of a coarse cell.
STEP_PX = 8


class Loftr:
    """A LoFTR on a device; every tensor came from the file."""

    def __init__(self, folder: Path, weights: str, device: str, *, fixed: bool) -> None:
        """Load the network.

        Args:
            folder: folder of the weights.
            weights: name of the weights in errors.
            device: e.g. "cpu", "cuda:0".
            fixed: whether the weights were trained with the corrected position encoding (`temp_bug_fix`).

        Raises:
            WeightsError: not exactly one file of weights, or tensors that do not fit exactly.
        """
        from kornia.feature import LoFTR
        from kornia.feature.loftr.loftr import default_cfg

        config = copy.deepcopy(default_cfg)
        config["coarse"]["temp_bug_fix"] = fixed
        self.network: Any = LoFTR(pretrained=None, config=config)
        fill(self.network, read_tensors(folder, weights), weights, grey_picture)
        self.network.to(device).eval()
        self.version = f"{MODEL_TYPE}@{weights_sha256(folder)[:12]}"
        self._device = device

    def prepare(self, pictures: tuple[Pixels, Pixels]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a grey tensor (1, 1, h, w) in 0..1 for each image."""
        return _input(pictures[0]), _input(pictures[1])

    def match(self, pairs: Sequence[PreparedPair]) -> list[Matches]:
        """Return the matches of each pair, in pixels of its views; pairs of the same two shapes share a pass."""
        groups = by_form([shape(*pair.values) for pair in pairs], MAX_AT_ONCE)
        return by_members(groups, lambda members: self._pass([pairs[place] for place in members]))

    def _pass(self, pairs: Sequence[PreparedPair]) -> list[Matches]:
        first, second = (together([pair.values[side] for pair in pairs], self._device) for side in (0, 1))
        output = self.network({"image0": first, "image1": second})
        points = [doubles(output[name]) for name in ("keypoints0", "keypoints1")]
        scores, numbers = np.clip(doubles(output["confidence"]), 0, 1), output["batch_indexes"].cpu().numpy()
        matches = []
        for number, pair in enumerate(pairs):
            first_points, second_points = (
                side_points[numbers == number] * np.array([size[1] / seen.shape[-1], size[0] / seen.shape[-2]]) - 0.5
                for side_points, size, seen in zip(points, pair.sizes, pair.values, strict=True)
            )
            matches.append(Matches(first_points, second_points, scores[numbers == number], MODEL_TYPE))
        return matches


def _input(pixels: Pixels) -> torch.Tensor:
    import cv2
    import torch

    height, width = pixels.shape[:2]
    factor = min(1.0, MAX_SIDE_PX / max(height, width))
    size = tuple(max(MIN_SIDE_PX, round(side * factor / STEP_PX) * STEP_PX) for side in (width, height))
    grey = cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), size, interpolation=cv2.INTER_AREA)
    return torch.from_numpy(np.asarray(grey, np.float32) / 255)[None, None]
