"""Monocular depth networks with one convention: relative depth 0..1, larger is nearer, and metres if known.

Depth Anything (Yang et al. 2024) and DPT (Ranftl et al. 2021) predict inverse depth up
to scale and shift, larger is nearer; ZoeDepth (Bhat et al. 2023), Depth Pro (Bochkovskii et al. 2024), Depth Anything
V2's metric models and DINOv2's DPT heads (Oquab et al. 2024) predict metres, larger is farther.
`model = DepthModel(dir_or_id, "cpu")`, then
`depth_map(model.predict([model.prepare(pixels)])[0], metric=model.metric)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.errors import WeightsError
from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import load_verified
from hybrid.tool.networks import in_float32
from tools._shared.batches import in_batches, on_host
from tools._shared.reading import check_elongation, shrink, window_median

DepthValues = npt.NDArray[np.float32]

# Prediction of each `model_type` of transformers, unless its configuration says otherwise (`in_metres`).
FAMILIES: Mapping[str, Literal["inverse", "metres"]] = {
    "depth_anything": "inverse",
    "dpt": "inverse",
    "zoedepth": "metres",
    "depth_pro": "metres",
}
# Families whose authors align corner pixels when they enlarge a map: `DepthAnythingV2.infer_image`. The authors of the
# other families align edges: `DepthPro.infer`, `run_monodepth.py` of isl-org/DPT, `_infer_with_pad_aug` of
# isl-org/ZoeDepth, dinov2/hub/depth/encoder_decoder.py of facebookresearch/dinov2.
CORNERS = ("depth_anything",)
# Names of the last part of the networks, which stays in float32.
HEADS = ("head", "relative_head", "metric_head")
# Longer images are shrunk first: most families resize to a few hundred pixels anyway.
MAX_SIDE_PX = 1024
# Largest useful long side, in pixels, of images for `DepthModel.prepare`: Depth Anything resizes images up to 4 : 1 to
# a short side of 518 px, Depth Pro to a square of 1,536 px.
USEFUL_SIDE_PX = 2072
# Largest range of inverse depth, as a share of its largest value, that counts as rounding: a step of bfloat16 is 0.004
# of its value, and of float32 far less.
FLAT_MAP = 0.004
# Processors scale by the short side, so a strip would become millions of pixels.
MAX_ELONGATION = 8.0
NEAREST_M = 1e-3


@dataclass(frozen=True)
class DepthMap:
    """The depth map of an image, (h, w).

    `nearness` is in 0..1; larger is nearer, and a constant map is 0.5 everywhere. `metres` is None if the network does
    not predict metres.
    """

    nearness: DepthValues
    metres: DepthValues | None = None

    def at(self, x: float, y: float, size: tuple[int, int]) -> dict[str, float]:
        """Return the values at a point of an image of `size` (H, W): `depth_0_1`, and `depth_m` of metric models."""
        read = {"depth_0_1": window_median(self.nearness, x, y, size)}
        return read if self.metres is None else {**read, "depth_m": window_median(self.metres, x, y, size)}


class DepthInput(NamedTuple):
    """Network input of an image, a tensor (1, 3, h, w), and the requested size (H, W) of the map."""

    values: Any
    size: tuple[int, int]


class DepthModel:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        self._checkpoint = load_verified(
            "AutoModelForDepthEstimation",
            weights,
            device=device,
            model_types=tuple(FAMILIES),
            # BEiT backbones compute this index from their size; old files contain a copy.
            harmless=("relative_position_index",),
        )
        self.version = self._checkpoint.version
        for name in HEADS:
            # bfloat16 rounds to 1 part in 256, which would make neighbouring points tie.
            if (head := getattr(self._checkpoint.model, name, None)) is not None:
                in_float32(head)
        config = self._checkpoint.model.config
        self.metric = in_metres(config)
        if self._checkpoint.model_type == "depth_anything" and config.max_depth is None:
            if self.metric:
                raise WeightsError(f"{weights}: config.json of a metric model names no max_depth")
            # Relative models have no scale, but transformers 5 multiplies by `max_depth`, which is null in older
            # configurations.
            self._checkpoint.model.head.max_depth = 1
        if not hasattr(self._checkpoint.processor, "post_process_depth_estimation"):
            raise WeightsError(f"{weights}: its image processor is not one of a depth model")

    def prepare(self, pixels: Pixels) -> DepthInput:
        """Prepare an RGB image (H, W, 3) for the network. Raises `ToolError` if it is more elongated than 8 : 1."""
        check_elongation("depth", pixels, MAX_ELONGATION)
        height, width = pixels.shape[:2]
        target = self._input_size(height, width)
        longest = MAX_SIDE_PX if target is None else max(MAX_SIDE_PX, *target)
        reduced = shrink(pixels, min(longest, USEFUL_SIDE_PX))
        options: dict[str, Any] = {}
        if target is not None and self._checkpoint.model_type == "depth_anything":
            # The processor alone would choose the scale nearest to 1, which for many photographs is half of the
            # authors' size.
            size = {"height": target[0], "width": target[1]}
            options = {"size": size, "keep_aspect_ratio": False, "ensure_multiple_of": 1}
        # Explicit because an image of 3 rows would be taken for one of 3 channels.
        processed = self._checkpoint.process(images=[reduced], input_data_format="channels_last", **options)
        return DepthInput(processed["pixel_values"], (reduced.shape[0], reduced.shape[1]))

    def _input_size(self, height: int, width: int) -> tuple[int, int] | None:
        """Return the network's input size (H, W) for an image if it may exceed `MAX_SIDE_PX`; else None."""
        processor = self._checkpoint.processor
        if not processor.do_resize:
            return None
        if self._checkpoint.model_type == "depth_pro":
            return int(processor.size["height"]), int(processor.size["width"])
        if self._checkpoint.model_type != "depth_anything" or not processor.keep_aspect_ratio:
            return None
        least = int(processor.size["height"]), int(processor.size["width"])
        return lower_bound_size((height, width), least, int(processor.ensure_multiple_of or 1))

    def predict(self, images: Sequence[DepthInput]) -> list[DepthValues]:
        """Run the network on each image; return maps (h, w) of the images' `size`.

        Each input shape takes one forward pass.
        """

        def run(batch: Any, members: Sequence[int]) -> list[DepthValues]:
            outputs = self._checkpoint.model(pixel_values=batch)
            sizes = [images[place].size for place in members]
            # DINOv2's heads get the image at its own size, with a border around it.
            processor = self._checkpoint.processor
            if not getattr(processor, "do_pad", False) or processor.do_resize:
                return self._resized(outputs, sizes)
            seen = (int(batch.shape[-2]), int(batch.shape[-1]))
            return list(map(within, self._resized(outputs, [seen] * len(sizes)), sizes))

        return in_batches([image.values for image in images], self._checkpoint.device, run)

    def _resized(self, outputs: Any, sizes: Sequence[tuple[int, int]]) -> list[DepthValues]:
        """Resize the map of each image to its size (H, W).

        transformers' `post_process_depth_estimation` is not used: it enlarges with bicubic interpolation, which
        undershoots to negative metres near a step.
        """
        import torch

        maps = outputs.predicted_depth.float()
        if self._checkpoint.model_type == "depth_pro":
            # The network predicts inverse depth for a camera whose image is as wide as its focal length. The map is
            # enlarged before it is inverted (`DepthPro.infer` of apple/ml-depth-pro).
            if (angle := outputs.field_of_view) is not None:
                maps = maps * 2 * torch.tan(torch.deg2rad(angle.float()) / 2).reshape(-1, 1, 1)
            inverse = [enlarge(values, size, corners=False) for values, size in zip(maps, sizes, strict=True)]
            return [on_host(1 / values.clamp(1e-4, 1e4)) for values in inverse]
        resized = []
        corners = self._checkpoint.model_type in CORNERS
        for values, (height, width) in zip(maps, sizes, strict=True):
            down, across = self._border(height), self._border(width)
            full = enlarge(values, (height + 2 * down, width + 2 * across), corners=corners)
            resized.append(on_host(full[down : down + height, across : across + width]))
        return resized

    def _border(self, side: int) -> int:
        """Return how many pixels ZoeDepth's processor adds at each end by reflection (`_infer_with_pad_aug`)."""
        pads = self._checkpoint.model_type == "zoedepth" and self._checkpoint.processor.do_pad
        return int(np.sqrt(side / 2) * 3) if pads else 0


def enlarge(values: Any, size: tuple[int, int], *, corners: bool) -> Any:
    """Resize a map (h, w), a tensor, to `size` (H, W), bilinearly, so that no value leaves the range of the map.

    With `corners` the centres of the corner pixels are aligned, otherwise the edges of the maps.
    """
    from torch.nn.functional import interpolate

    return interpolate(values[None, None], size=size, mode="bilinear", align_corners=corners)[0, 0]


def lower_bound_size(size: tuple[int, int], least: tuple[int, int], multiple: int) -> tuple[int, int]:
    """Return the size (H, W) at which Depth Anything's authors feed an image of `size` (H, W) to the network.

    The aspect ratio is kept, both sides are at least those of `least`, and both are rounded to a multiple of
    `multiple`: `Resize` with `lower_bound` in depth_anything_v2/util/transform.py of DepthAnything/Depth-Anything-V2.
    427 x 640 becomes 518 x 770.
    """
    scale = max(least[0] / size[0], least[1] / size[1])
    rounded = [round(side * scale / multiple) * multiple for side in size]
    height, width = (
        side if side >= bound else math.ceil(bound / multiple) * multiple
        for side, bound in zip(rounded, least, strict=True)
    )
    return height, width


def in_metres(config: Any) -> bool:
    """Return whether a checkpoint predicts metres (larger is farther), from its transformers configuration.

    Depth Anything V2 states it. A DPT head predicts inverse depth, even if fine-tuned on KITTI or NYU: the authors
    invert it afterwards (`DPTDepthModel.forward` in dpt/models.py of isl-org/DPT). A projection before the head marks
    one of DINOv2's heads, which are trained on metres (`DepthBaseDecodeHead.depth_pred` of
    facebookresearch/dinov2; `convert_dinov2_depth_to_hf.py` of transformers adds `add_projection` only to these).
    """
    if FAMILIES[config.model_type] == "metres" or getattr(config, "add_projection", False):
        return True
    return bool(getattr(config, "depth_estimation_type", "relative") == "metric")


def within(padded: DepthValues, size: tuple[int, int]) -> DepthValues:
    """Crop a padded map (h, w) to `size` (H, W); an odd padding pixel is at the bottom and right."""
    y_offset, x_offset = (padded.shape[0] - size[0]) // 2, (padded.shape[1] - size[1]) // 2
    return padded[y_offset : y_offset + size[0], x_offset : x_offset + size[1]]


def depth_map(predicted: npt.NDArray[np.floating], *, metric: bool) -> DepthMap:
    """Convert a network's output (h, w), metres or inverse depth, to a `DepthMap`.

    Metres are inverted before scaling to 0..1, so that a step means the same for all families. A map without relief is
    0.5 everywhere: scaling would turn rounding into depth.

    Raises:
        ToolError: a value is not finite.
    """
    check_finite("depth", predicted)
    values = predicted.astype(np.float32)
    metres = np.maximum(values, NEAREST_M) if metric else None
    inverse = values if metres is None else 1 / metres
    low, high = float(inverse.min()), float(inverse.max())
    if high - low <= FLAT_MAP * max(abs(low), abs(high)):
        return DepthMap(np.full_like(inverse, 0.5), metres)
    return DepthMap(np.clip((inverse - low) / (high - low), 0, 1), metres)
