"""Matching networks of transformers.

They are EfficientLoFTR (Wang et al. 2024), LightGlue (Lindenberger et al. 2023) and SuperGlue (Sarlin et al. 2020).

Differences between the authors' code and this module:

- *Shape.* EfficientLoFTR scales the longer side and crops both to multiples of 32 (zju3dv/EfficientLoFTR,
  `src/utils/dataset.py`, `read_megadepth_gray`, `df=32`). LightGlue scales the longer side (cvg/LightGlue,
  `lightglue/utils.py`, `ImagePreprocessor`, `side="long"`). SuperGlue either scales the longer side or resizes to
  exactly 640 x 480, its default for indoor photographs at 4 : 3 (magicleap/SuperGluePretrainedNetwork,
  `match_pairs.py`, `--resize`). The processors of transformers stretch every image to one size, 640 x 480: a 16 : 9
  image by a third, a portrait one by three quarters. This module keeps the aspect ratio: the longer side is scaled to
  the longer side of the processor's size, in steps of the network's cells. If the two images differ in shape, the
  smaller one is in the upper left of a common input that is black elsewhere. Matches outside an image, or within the
  network's border of the edge between image and padding, are dropped.
- *Coordinates.* EfficientLoFTR, like LoFTR, is supervised through the intrinsics of MegaDepth, so the upper left corner
  of an image is at 0 and the centre of the first pixel at 0.5 (`src/loftr/utils/supervision.py`, `spvs_coarse`).
  SuperPoint, inside LightGlue and SuperGlue, returns pixel indices, whose centres are at 0: `Extractor.extract` of
  `lightglue/utils.py` adds 0.5 before scaling and subtracts it afterwards.
- *Grey.* EfficientLoFTR's authors convert the image to grey and then scale it; the processors scale the three channels
  first. Levels differ by rounding.
- *Points.* LightGlue's authors run SuperPoint on a long side of 1024 px with a detection threshold of 0.0005 and at
  most 2048 points (`superpoint.py`); this module uses the checkpoint's size and threshold, 640 px and 0.005 in the
  published ones, which gives fewer points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.tool import Pixels
from hybrid.tool.checkpoint import load_verified
from tools._shared.batches import doubles, in_batches, together
from tools._shared.view_matches import Matches, Points, PreparedPair

if TYPE_CHECKING:
    import torch


def match_pairs(model: Any, pixel_values: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Match each pair; return points (N, 2) of both images in pixels of the input, and scores (N,) 0..1.

    `model` is transformers' `EfficientLoFTRForKeypointMatching`; `pixel_values` is (B, 2, C, H, W) with H and W
    multiples of 32. The network runs once.
    """
    config = model.config
    coarse, *residual = model.efficientloftr(pixel_values).feature_maps
    rows, columns = coarse.shape[-2:]
    step = pixel_values.shape[-2] // rows
    points = []
    for place in range(len(coarse)):
        cells, scores = coarse_matches(coarse[place], config)
        # Refine one pair at a time, because the windows of all cells take much memory, and because the network's own
        # code cannot decode a batch.
        layers = [layer[2 * place : 2 * place + 2] for layer in residual]
        fine_first, fine_second = model.refinement_layer(coarse[place : place + 1] / config.hidden_size**0.5, layers)
        first, second = fine_offsets(fine_first[0][cells[:, 0]], fine_second[0][cells[:, 1]], config)
        first_corners, second_corners = (_corner(cells[:, side], columns) * step for side in (0, 1))
        points.append((first_corners + first, second_corners + second, scores))
    return points


def coarse_matches(coarse: torch.Tensor, config: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mutually best cells (N, 2) of coarse features (2, C, h, w), as row-major indices, and scores (N,)."""
    import torch

    channels, rows, columns = coarse.shape[1:]
    flat = coarse.flatten(2).transpose(1, 2) / channels**0.5
    similarity = flat[0] @ flat[1].T / config.coarse_matching_temperature
    if not config.coarse_matching_skip_softmax:
        similarity = similarity.softmax(0) * similarity.softmax(1)
    best = (similarity == similarity.max(0, keepdim=True).values) & (
        similarity == similarity.max(1, keepdim=True).values
    )
    # Mask of the cells that are at least `border` cells from the edge.
    border = config.coarse_matching_border_removal
    inside = torch.zeros(rows, columns, dtype=torch.bool)
    inside[border : rows - border, border : columns - border] = True
    inner = inside.flatten().to(coarse.device)
    valid = best & (similarity > config.coarse_matching_threshold) & inner[:, None] & inner[None, :]
    # Take one cell per row, even if two have the same score.
    value, column = valid.int().max(1)
    cells = torch.nonzero(value).flatten()
    pairs = torch.stack([cells, column[cells]], dim=1)
    return pairs, similarity[pairs[:, 0], pairs[:, 1]]


def fine_offsets(first: torch.Tensor, second: torch.Tensor, config: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Locate the match in paired windows; return offsets (N, 2) in pixels for both windows, x first.

    `first` (N, w * w, C) and `second` (N, (w + 2) * (w + 2), C) are windows of fine features. The first stage selects
    the best pair of pixels. The second stage refines the position in image 2: it takes the expectation over 3 x 3
    pixels, computed from the last `fine_matching_slice_dim` channels.
    """
    import torch

    count, area, channels = first.shape
    side, slice_ = int(area**0.5), config.fine_matching_slice_dim
    likeness = first[..., :-slice_] @ second[..., :-slice_].transpose(1, 2) / channels
    likeness = (likeness.softmax(1) * likeness.softmax(2)).reshape(count, area, side + 2, side + 2)
    best = likeness[..., 1:-1, 1:-1].reshape(count, area * area).argmax(1)
    first_cells, second_cells = best // area, best % area
    regress = first[..., -slice_:] @ second[..., -slice_:].transpose(1, 2) / slice_**0.5
    regress = regress.reshape(count, area, side + 2, side + 2)
    steps = torch.arange(-1, 2, device=first.device)
    # Indices of the inner window are applied to the padded window, as in the training of the published weights; the
    # index -1 wraps around.
    rows = (second_cells // side)[:, None, None] + steps[None, :, None]
    columns = (second_cells % side)[:, None, None] + steps[None, None, :]
    numbers = torch.arange(count, device=first.device)[:, None, None]
    around = regress[numbers, first_cells[:, None, None], rows, columns].reshape(count, 9)
    weights = (around / config.fine_matching_regress_temperature).softmax(1).reshape(count, 3, 3)
    expected = torch.stack([(weights.sum(1) * steps).sum(1), (weights.sum(2) * steps).sum(1)], dim=1)
    return _corner(first_cells, side) - side // 2 + 0.5, _corner(second_cells, side) - side // 2 + 0.5 + expected


def _corner(numbers: torch.Tensor, columns: int) -> torch.Tensor:
    """Return the positions (N, 2), x first, float, of cells with row-major indices."""
    import torch

    return torch.stack([numbers % columns, numbers // columns], dim=1).float()


EFFICIENT = "efficientloftr"
FAMILIES = (EFFICIENT, "lightglue", "superglue")
# By family: the sides of an image in the network's input are multiples of this.
STEP_PX = {EFFICIENT: 32, "lightglue": 8, "superglue": 8}
# Size of a cell of EfficientLoFTR's coarse features.
CELL_PX = 8
# Pairs per pass.
MAX_AT_ONCE = 8

# Height and width in pixels.
Size = tuple[int, int]


class TransformersMatcher:
    """A matching network with the processor of its checkpoint, on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the network. Raises `WeightsError` like `load_verified`."""
        self.checkpoint = load_verified("AutoModelForKeypointMatching", weights, device=device, model_types=FAMILIES)
        self.version = self.checkpoint.version
        self._efficient = self.checkpoint.model_type == EFFICIENT
        size = self.checkpoint.processor.size
        self._longest = max(size["height"], size["width"])
        self._step = STEP_PX[self.checkpoint.model_type]
        config = self.checkpoint.model.config
        self._border = (
            config.coarse_matching_border_removal * CELL_PX
            if self._efficient
            else config.keypoint_detector_config.border_removal_distance
        )

    def prepare(self, pictures: tuple[Pixels, Pixels]) -> torch.Tensor:
        """Return a tensor (1, 2, C, h, w): each image, processed by the checkpoint's processor, in the upper left."""
        import torch

        scaled = []
        for pixels in pictures:
            rows, columns = self._fitted((pixels.shape[0], pixels.shape[1]))
            # Processors of matchers accept only pairs.
            processed = self.checkpoint.process(
                images=[pixels, pixels],
                size={"height": rows, "width": columns},
                do_resize=True,
                input_data_format="channels_last",
            )
            scaled.append(processed["pixel_values"][0, 0])
        height, width = (max(picture.shape[axis] for picture in scaled) for axis in (-2, -1))
        values = torch.zeros(1, 2, scaled[0].shape[0], height, width, device=scaled[0].device)
        for side, picture in enumerate(scaled):
            values[0, side, :, : picture.shape[-2], : picture.shape[-1]] = picture
        return values

    def match(self, pairs: Sequence[PreparedPair]) -> list[Matches]:
        """Return the matches of each pair, in pixels of its views; EfficientLoFTR processes several pairs per pass."""

        def dense(batch: torch.Tensor, members: Sequence[int]) -> list[Matches]:
            pair_matches = match_pairs(self.checkpoint.model, batch)
            return [
                self._on_pictures(pairs[place], (doubles(first), doubles(second)), doubles(scores), 0.5)
                for place, (first, second, scores) in zip(members, pair_matches, strict=True)
            ]

        if self._efficient:
            return in_batches([pair.values for pair in pairs], self.checkpoint.device, dense, MAX_AT_ONCE)
        return [self._sparse(pair) for pair in pairs]

    def _fitted(self, size: Size) -> Size:
        """Return the size, in the network's input, of an image of `size`."""
        factor, step = self._longest / max(size), self._step
        height, width = (max(step, round(side * factor / step) * step) for side in size)
        return height, width

    def _sparse(self, pair: PreparedPair) -> Matches:
        """Run LightGlue or SuperGlue, one pair per call.

        In a batch, transformers' LightGlue reorders pairs that stop early, and SuperGlue's optimal transport counts
        padding points.
        """
        checkpoint = self.checkpoint
        outputs = checkpoint.model(pixel_values=together([pair.values], checkpoint.device))
        masks = [outputs.mask[0, side] > 0 for side in (0, 1)]
        # Keypoints are fractions of the input: rounding to pixels would lose the networks' resolution.
        frame_size = np.array([pair.values.shape[-1], pair.values.shape[-2]])
        first_points, second_points = (doubles(outputs.keypoints[0, side][masks[side]]) * frame_size for side in (0, 1))
        partners = doubles(outputs.matches[0, 0][masks[0]]).astype(int)
        scores = doubles(outputs.matching_scores[0, 0][masks[0]])
        valid = (partners >= 0) & (partners < len(second_points)) & (scores > 0)
        return self._on_pictures(pair, (first_points[valid], second_points[partners[valid]]), scores[valid], 0.0)

    def _on_pictures(self, pair: PreparedPair, points: tuple[Points, Points], scores: Any, centre: float) -> Matches:
        """Convert points of the input, with the centre of its first pixel at `centre`, to pixels of the views."""
        inside = np.ones(len(scores), bool)
        placed = []
        for side_points, size in zip(points, pair.sizes, strict=True):
            fitted = self._fitted(size)
            # Mask of the points on the image but not near the edge between image and padding.
            ends = zip(fitted, pair.values.shape[-2:], strict=True)
            height, width = (side - self._border if side < end else end for side, end in ends)
            belongs = np.asarray((side_points[:, 0] < width) & (side_points[:, 1] < height))
            inside &= belongs
            scale = np.array([size[1] / fitted[1], size[0] / fitted[0]])
            placed.append((side_points + 0.5 - centre) * scale - 0.5)
        return Matches(placed[0][inside], placed[1][inside], scores[inside], self.checkpoint.model_type)
