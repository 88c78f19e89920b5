"""Depth networks: which of them predict metres, and how their maps align with the picture."""

import dataclasses
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.tables import stored
from tests.tools.tiny_checkpoints import Checkpoints
from tools.depth.models import DepthModel, depth_map, lower_bound_size, within

METRES = stored(__file__, "METRES")


@pytest.mark.parametrize(("family", "metres"), METRES.items())
def test_what_a_head_predicts_is_read_from_its_configuration(depth_checkpoint: Checkpoints, family: str, metres: bool):
    """Larger is nearer in every map, so the output of a head that predicts metres is inverted.

    Inverse depth: Depth Anything V2 (`DepthAnythingV2.forward`), and DPT with any fine-tuning (in isl-org/DPT,
    `DPTDepthModel` inverts outside of the head). Metres: Depth Anything V2 metric (`max_depth * depth` in
    metric_depth/depth_anything_v2/dpt.py), ZoeDepth, Depth Pro, and DINOv2's DPT heads: trained with SigLoss on NYU and
    KITTI in metres (`relu(...) + min_depth` in dinov2/eval/depth/models/decode_heads/decode_head.py; the conversion to
    transformers checks 3.36 at the corner of an indoor picture).
    """
    model = DepthModel(str(depth_checkpoint(family)), "cpu")
    assert model.metric is metres
    predicted = np.array([[1.0, 4.0]], np.float32)
    assert depth_map(predicted, metric=model.metric).nearness.argmax() == (0 if metres else 1)


def test_the_border_of_a_picture_at_its_own_size_is_no_part_of_its_map(depth_checkpoint: Checkpoints):
    """DINOv2's heads see a picture with a border up to the next 14 px (`CenterPadding` in the authors' notebook).

    Half of the border, rounded down, is above and left.
    """
    model = DepthModel(str(depth_checkpoint("dpt_dinov2")), "cpu")
    prepared = model.prepare(np.random.default_rng(0).integers(0, 256, (67, 93, 3)).astype(np.uint8))
    assert prepared.values.shape[-2:] == (70, 98)
    bright = prepared.values[0].sum(dim=0)
    # The border is 0; what the picture shows is not.
    assert (bright[1:68, 2:95] != 0).all()
    assert float(bright[:1].abs().sum() + bright[68:].abs().sum()) == 0
    (prediction,) = model.predict([prepared])
    assert prediction.shape == (67, 93)
    across = np.tile(np.arange(98, dtype=np.float32), (70, 1))
    assert within(across, (67, 93))[0, 0] == 2
    assert within(across.T[:70], (67, 70)).shape == (67, 70)


class Drawn:
    """Replaces a network by a map of three bands (two things before a wall) on the grid of the picture's tensor."""

    def __init__(self, model: DepthModel, bands_m: tuple[float, float, float], edge_px: int) -> None:
        self._inverse = model._checkpoint.model_type == "depth_pro" or not model.metric
        self._bands, self._edge = bands_m, edge_px

    def __call__(self, pixel_values: Any) -> SimpleNamespace:
        import torch

        count, _, height, width = pixel_values.shape
        near, middle, far = self._bands
        third, edge = width / 3, self._edge
        stops = [0, third - edge / 2, third + edge / 2, 2 * third - edge / 2, 2 * third + edge / 2, width]
        row = np.interp(np.arange(width) + 0.5, stops, [near, near, middle, middle, far, far])
        row = 1 / row if self._inverse else row
        maps = torch.from_numpy(row.astype(np.float32)).expand(count, height, width)
        # 2 * tan(fov / 2) is 1: Depth Pro's map is then in metres.
        angle = torch.full((count,), math.degrees(2 * math.atan(0.5)))
        return SimpleNamespace(predicted_depth=maps, field_of_view=angle)


@pytest.mark.parametrize("family", METRES)
def test_no_value_leaves_the_range_of_the_network_at_a_step(depth_checkpoint: Checkpoints, family: str):
    model = DepthModel(str(depth_checkpoint(family)), "cpu")
    pixels = np.random.default_rng(0).integers(0, 256, (300, 400, 3)).astype(np.uint8)
    prepared, network = model.prepare(pixels), model._checkpoint
    for wall_m, edge_px in itertools.product((4.0, 8.0, 30.0, 80.0), range(1, 6)):
        model._checkpoint = dataclasses.replace(network, model=Drawn(model, (1.0, 2.0, wall_m), edge_px))
        (predicted,) = model.predict([prepared])
        low, high = (1.0, wall_m) if model.metric else (1 / wall_m, 1.0)
        assert predicted.shape == (300, 400)
        assert low - 1e-4 <= predicted.min()
        assert predicted.max() <= high + 1e-4
        depth = depth_map(predicted, metric=model.metric)
        values = [depth.at(x, 150, (300, 400)) for x in (60, 200, 340)]
        middle = (0.5 - 1 / wall_m) / (1 - 1 / wall_m)
        assert [value["depth_0_1"] for value in values] == pytest.approx([1, middle, 0], abs=0.01)
        if model.metric:
            assert [value["depth_m"] for value in values] == pytest.approx([1, 2, wall_m], rel=0.01)


@pytest.mark.parametrize("family", METRES)
def test_a_map_is_enlarged_with_corners_or_edges_on_each_other_as_by_its_authors(
    depth_checkpoint: Checkpoints, family: str
):
    """Aligned corners keep the outermost steps of a ramp; aligned edges begin with half a step of the input."""
    import torch

    model = DepthModel(str(depth_checkpoint(family)), "cpu")
    model._border = lambda side: 0  # type: ignore[method-assign]
    ramp = torch.arange(1.0, 5.0)[None, None].expand(1, 4, 4)
    (full,) = model._resized(SimpleNamespace(predicted_depth=ramp, field_of_view=None), [(4, 8)])
    row = 1 / full[0] if family == "depth_pro" else full[0]
    corners = family.startswith("depth_anything")
    assert row[:2].tolist() == pytest.approx([1, 1 + 3 / 7] if corners else [1, 1.25], abs=1e-4)


@pytest.mark.parametrize(
    ("size", "seen"),
    [
        ((427, 640), (518, 770)),
        ((640, 427), (770, 518)),
        ((480, 640), (518, 686)),
        ((518, 518), (518, 518)),
        ((100, 100), (518, 518)),
        ((1080, 1920), (518, 924)),
        ((3000, 4000), (518, 686)),
        ((500, 2000), (518, 2072)),
        ((519, 518), (518, 518)),
    ],
)
def test_depth_anything_sees_at_least_its_authors_size(
    depth_checkpoint: Checkpoints, size: tuple[int, int], seen: tuple[int, int]
):
    """Depth Anything sees at least its authors' size. Source: `Resize` with lower_bound in their
    depth_anything_v2/util/transform.py."""
    assert lower_bound_size(size, (518, 518), 14) == seen
    model = DepthModel(str(depth_checkpoint("depth_anything")), "cpu")
    # The tiny checkpoint's input is 70 px, the real one's 518.
    prepared = model.prepare(np.zeros((*size, 3), np.uint8))
    assert prepared.values.shape[-2:] == lower_bound_size(size, (70, 70), 14)
    assert min(prepared.values.shape[-2:]) >= 70
