"""Depth networks: which of them predict metres, and where their maps lie on the picture."""

import numpy as np
import pytest

from tests.tables import stored
from tests.tools.tiny_checkpoints import Checkpoints
from tools.depth.models import DepthModel, depth_map, within

METRES = stored(__file__, "METRES")


@pytest.mark.parametrize(("family", "metres"), METRES.items())
def test_what_a_head_predicts_is_read_from_its_configuration(depth_checkpoint: Checkpoints, family: str, metres: bool):
    """Larger is nearer in every map, so a head that predicts metres is turned.

    Inverse depth: Depth Anything V2 (`DepthAnythingV2.forward`), DPT whatever it was finetuned on (`DPTDepthModel` of
    isl-org/DPT has `invert` outside of the head). Metres: Depth Anything V2 metric (`max_depth * depth` in
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

    Half of it, rounded down, is above and left.
    """
    model = DepthModel(str(depth_checkpoint("dpt_dinov2")), "cpu")
    asked = model.prepare(np.random.default_rng(0).integers(0, 256, (67, 93, 3)).astype(np.uint8))
    assert asked.values.shape[-2:] == (70, 98)
    bright = asked.values[0].sum(dim=0)
    # The border is 0; what the picture shows is not.
    assert (bright[1:68, 2:95] != 0).all()
    assert float(bright[:1].abs().sum() + bright[68:].abs().sum()) == 0
    (found,) = model.predict([asked])
    assert found.shape == (67, 93)
    across = np.tile(np.arange(98, dtype=np.float32), (70, 1))
    assert within(across, (67, 93))[0, 0] == 2
    assert within(across.T[:70], (67, 70)).shape == (67, 70)
