"""Decode the matches of EfficientLoFTR as its authors do (Wang et al., CVPR 2024, section 3.3).

transformers 5.23 has the network, but its own decoding keeps two lists that are not paired (for each cell of image 2
its cell of image 1, and the other way round), refines windows that do not belong together, and mixes the pairs of a
batch; its post-processing then rounds to whole pixels. Only the network's layers are used here: backbone, transformer
and fusion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


class PairedPoints(NamedTuple):
    """Points (N, 2) in pixels of the network's input, scores (N,) 0..1; row k of both belongs together."""

    first: torch.Tensor
    second: torch.Tensor
    scores: torch.Tensor


def match_pairs(model: Any, pixel_values: torch.Tensor) -> list[PairedPoints]:
    """Matches of each pair, `pixel_values` (B, 2, C, H, W) with H and W multiples of 32; one pass of the network.

    `model` is transformers' `EfficientLoFTRForKeypointMatching`.
    """
    config = model.config
    coarse, *residual = model.efficientloftr(pixel_values).feature_maps
    rows, columns = coarse.shape[-2:]
    step = pixel_values.shape[-2] // rows
    points = []
    for place in range(len(coarse)):
        cells, scores = coarse_matches(coarse[place], config)
        # The windows of all cells are large: one pair at a time, as the network's own code does not decode batches.
        layers = [layer[2 * place : 2 * place + 2] for layer in residual]
        fine_first, fine_second = model.refinement_layer(coarse[place : place + 1] / config.hidden_size**0.5, layers)
        first, second = fine_offsets(fine_first[0][cells[:, 0]], fine_second[0][cells[:, 1]], config)
        here, there = (_corner(cells[:, side], columns) * step for side in (0, 1))
        points.append(PairedPoints(here + first, there + second, scores))
    return points


def coarse_matches(coarse: torch.Tensor, config: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Mutual best cells (N, 2) of coarse features (2, C, h, w), as numbers in row order, and their scores (N,)."""
    import torch

    channels, rows, columns = coarse.shape[1:]
    flat = coarse.flatten(2).transpose(1, 2) / channels**0.5
    similarity = flat[0] @ flat[1].T / config.coarse_matching_temperature
    if not config.coarse_matching_skip_softmax:
        similarity = similarity.softmax(0) * similarity.softmax(1)
    best = (similarity == similarity.max(0, keepdim=True).values) & (
        similarity == similarity.max(1, keepdim=True).values
    )
    inner = _inner(rows, columns, config.coarse_matching_border_removal).to(coarse.device)
    kept = best & (similarity > config.coarse_matching_threshold) & inner[:, None] & inner[None, :]
    # One cell a row even where two score the same.
    value, column = kept.int().max(1)
    cells = torch.nonzero(value).flatten()
    pairs = torch.stack([cells, column[cells]], dim=1)
    return pairs, similarity[pairs[:, 0], pairs[:, 1]]


def fine_offsets(first: torch.Tensor, second: torch.Tensor, config: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Where in paired windows the match is: offsets (N, 2) of both in pixels, x first.

    `first` is (N, w * w, C), `second` (N, (w + 2) * (w + 2), C): windows of fine features. The first stage takes the
    best pair of pixels, the second the expectation over 3 x 3 pixels of image 2 in the last channels.
    """
    import torch

    count, area, channels = first.shape
    side, slice_ = int(area**0.5), config.fine_matching_slice_dim
    likeness = first[..., :-slice_] @ second[..., :-slice_].transpose(1, 2) / channels
    likeness = (likeness.softmax(1) * likeness.softmax(2)).reshape(count, area, side + 2, side + 2)
    best = likeness[..., 1:-1, 1:-1].reshape(count, area * area).argmax(1)
    here, there = best // area, best % area
    regress = first[..., -slice_:] @ second[..., -slice_:].transpose(1, 2) / slice_**0.5
    regress = regress.reshape(count, area, side + 2, side + 2)
    steps = torch.arange(-1, 2, device=first.device)
    # Indices of the inner window read in the padded one, as the published weights were trained; -1 is the last.
    rows = (there // side)[:, None, None] + steps[None, :, None]
    columns = (there % side)[:, None, None] + steps[None, None, :]
    numbers = torch.arange(count, device=first.device)[:, None, None]
    around = regress[numbers, here[:, None, None], rows, columns].reshape(count, 9)
    weights = (around / config.fine_matching_regress_temperature).softmax(1).reshape(count, 3, 3)
    expected = torch.stack([(weights.sum(1) * steps).sum(1), (weights.sum(2) * steps).sum(1)], dim=1)
    return _corner(here, side) - side // 2 + 0.5, _corner(there, side) - side // 2 + 0.5 + expected


def _corner(numbers: torch.Tensor, columns: int) -> torch.Tensor:
    """Places (N, 2), x first, float, of cells numbered in row order."""
    import torch

    return torch.stack([numbers % columns, numbers // columns], dim=1).float()


def _inner(rows: int, columns: int, border: int) -> torch.Tensor:
    """Which cells, in row order, are at least `border` cells from the edge."""
    import torch

    inside = torch.zeros(rows, columns, dtype=torch.bool)
    inside[border : rows - border, border : columns - border] = True
    return inside.flatten()
