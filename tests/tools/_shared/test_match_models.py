"""Learned matchers: tiny random checkpoints in the real formats through the real path; constructed decoder inputs."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import WeightsError
from hybrid.tool import Pixels
from tests.tools.tiny_checkpoints import Checkpoints
from tools._shared.match_models import MatchModel
from tools._shared.transformers_matchers import coarse_matches, fine_offsets, match_pairs
from tools._shared.view_matches import Matches, MatchView, view_of

pytestmark = pytest.mark.system


def match(model: MatchModel, first: MatchView, second: MatchView) -> Matches:
    return model.predict([model.prepare((first, second))])[0]


FAMILIES = ("efficientloftr", "lightglue", "superglue")
TOLERANCE_PX = 0.01


@pytest.fixture(scope="module")
def checkpoint(things_checkpoint: Checkpoints) -> Checkpoints:
    return things_checkpoint


def test_lightglue_with_a_detector_that_the_library_lacks_is_refused(
    things_checkpoint: Checkpoints, tmp_path: Path
) -> None:
    """The published checkpoint with DISK, which needs code of its own, is refused."""
    folder = Path(shutil.copytree(things_checkpoint("lightglue"), tmp_path / "copy"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"keypoint_detector_config": {"model_type": "disk"}, "trust_remote_code": True}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsError, match="cannot be loaded"):
        MatchModel(str(folder), "cpu")


@pytest.fixture(scope="module")
def pair() -> tuple[Pixels, Pixels]:
    images = item("Multi-view_Reasoning", 0, 5).images
    return images[0], images[1]


def test_loftr_of_kornia_is_read_from_a_state_dict(checkpoint, pair) -> None:
    model = MatchModel(str(checkpoint("kornia")), "cpu")
    assert model.version.startswith("kornia_loftr@")
    small = [np.ascontiguousarray(pixels[100:196, 100:228]) for pixels in pair]
    result = match(model, view_of(small[0]), view_of(small[1]))
    assert result.first.shape == result.second.shape == (len(result), 2)


def test_a_folder_of_another_kind_is_named(tmp_path: Path, checkpoint) -> None:
    with pytest.raises(WeightsError, match="absent"):
        MatchModel(str(tmp_path / "nothing"), "cpu")
    with pytest.raises(WeightsError, match=r"config\.json"):
        MatchModel(str(tmp_path), "cpu")
    other = tmp_path / "other"
    shutil.copytree(checkpoint("efficientloftr"), other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "model_type": "dinov2"}))
    with pytest.raises(WeightsError, match="dinov2"):
        MatchModel(str(other), "cpu")
    (other / "config.json").write_text("{")
    with pytest.raises(WeightsError, match="not JSON"):
        MatchModel(str(other), "cpu")


# Decoding EfficientLoFTR

CONFIG = SimpleNamespace(
    coarse_matching_temperature=0.1,
    coarse_matching_skip_softmax=False,
    coarse_matching_border_removal=0,
    coarse_matching_threshold=0.2,
    fine_matching_slice_dim=2,
    fine_matching_regress_temperature=10.0,
)


def test_cells_with_equal_features_are_paired() -> None:
    import torch

    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    first = 10 * torch.eye(12)
    coarse = torch.stack([first.T.reshape(12, 3, 4), first[order].T.reshape(12, 3, 4)])
    cells, scores = coarse_matches(coarse, CONFIG)
    assert cells[:, 0].tolist() == list(range(12))
    assert [int(order[number]) for number in cells[:, 1]] == list(range(12))
    assert (scores > 0.9).all()


def test_a_border_and_a_threshold_leave_cells_out() -> None:
    import torch

    coarse = torch.stack([(10 * torch.eye(20)).T.reshape(20, 4, 5)] * 2)
    inner = SimpleNamespace(**{**vars(CONFIG), "coarse_matching_border_removal": 1})
    assert coarse_matches(coarse, inner)[0][:, 0].tolist() == [6, 7, 8, 11, 12, 13]
    strict = SimpleNamespace(**{**vars(CONFIG), "coarse_matching_threshold": 1.1})
    assert coarse_matches(coarse, strict)[0].shape == (0, 2)


@pytest.mark.parametrize(("numbers", "target_points"), [((0, 0), (7, 7)), ((3, 5), (2, 6)), ((7, 1), (1, 0))])
def test_the_first_stage_finds_the_pixels_that_agree(numbers: tuple[int, int], target_points: tuple[int, int]) -> None:
    import torch

    first, second = torch.zeros(1, 64, 6), torch.zeros(1, 100, 6)
    first[0, numbers[1] * 8 + numbers[0], 0] = 50
    second[0, (target_points[1] + 1) * 10 + target_points[0] + 1, 0] = 50
    value, two = fine_offsets(first, second, CONFIG)
    assert value[0].tolist() == [numbers[0] - 3.5, numbers[1] - 3.5]
    assert two[0].tolist() == pytest.approx([target_points[0] - 3.5, target_points[1] - 3.5], abs=1e-5)


def test_the_second_stage_moves_towards_the_likelier_neighbour() -> None:
    import torch

    first, second = torch.zeros(1, 64, 6), torch.zeros(1, 100, 6)
    first[0, 27, 0] = second[0, 5 * 10 + 5, 0] = 50
    first[0, 27, 4] = 1
    # The inner pixel (4, 4) is read at row 4, column 4 of the padded window; the neighbour to the right is preferred.
    second[0, 4 * 10 + 5, 4] = 1000
    assert fine_offsets(first, second, CONFIG)[1][0].tolist() == pytest.approx([4 - 3.5 + 1, 4 - 3.5], abs=1e-3)


def test_rows_belong_together_for_the_network_itself(checkpoint, pair) -> None:
    """The swapped pair must give the same coarse cells with the columns swapped."""
    import torch

    model = MatchModel(str(checkpoint("efficientloftr")), "cpu")
    network, processor = model.network.checkpoint.model, model.network.checkpoint.processor
    inputs = processor(images=list(pair), return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        features = network.efficientloftr(inputs).feature_maps[0][0]
        value = coarse_matches(features, network.config)[0].tolist()
        other = coarse_matches(features.flip(0), network.config)[0].tolist()
        ((source_points, target_points, _),) = match_pairs(network, inputs)
    assert sorted(value) == sorted([second, first] for first, second in other)
    # Refinement stays in the 8 px window around each cell, plus one pixel.
    columns, step = features.shape[-1], inputs.shape[-1] // features.shape[-1]
    centres = torch.tensor([[first % columns * step, first // columns * step] for first, _ in value])
    assert ((source_points - centres).abs() <= 3.5).all()
    centres = torch.tensor([[second % columns * step, second // columns * step] for _, second in value])
    assert ((target_points - centres).abs() <= 4.5).all()


# The input of a network, and the positions of its points


def shades(width: int, height: int, seed: int = 0) -> Pixels:
    """Return a smooth picture of every colour: scaling with any filter leaves it unchanged."""
    rng = np.random.default_rng(seed)
    return cv2.resize(rng.integers(0, 256, (5, 6, 3), np.uint8), (width, height), interpolation=cv2.INTER_CUBIC)


def prepare_values(model: MatchModel, first: Pixels, second: Pixels) -> Any:
    return model.prepare((view_of(first), view_of(second))).values


@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_of_the_processors_shape_reach_the_network_as_the_processor_makes_them(family, checkpoint) -> None:
    import torch

    model = MatchModel(str(checkpoint(family)), "cpu")
    processor = model.network.checkpoint.processor
    size = processor.size
    pair = [shades(3 * size["width"], 3 * size["height"], seed) for seed in (1, 2)]
    reference = processor(images=pair, return_tensors="pt", input_data_format="channels_last")["pixel_values"]
    values = prepare_values(model, *pair)
    assert values.shape == reference.shape
    assert torch.equal(values, reference)
    assert 0.1 < float(values.std()) < 0.4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_shape_of_each_picture_is_kept_and_the_rest_is_black(family, checkpoint) -> None:
    import torch

    model = MatchModel(str(checkpoint(family)), "cpu")
    longest = max(model.network.checkpoint.processor.size[side] for side in ("height", "width"))
    lying, upright = shades(4 * longest, 2 * longest, 1), shades(longest, 3 * longest, 2)
    values = prepare_values(model, lying, upright)[0]
    assert values.shape[-2:] == (longest, longest)
    for tensor, (width, height), pixels in zip(
        values, ((longest, longest / 2), (longest / 3, longest)), (lying, upright), strict=True
    ):
        text = torch.nonzero(tensor.abs().amax(0) > 0)
        assert (int(text[:, 1].max()) + 1, int(text[:, 0].max()) + 1) == pytest.approx((width, height), abs=16)
        cut = tensor[0, : int(text[:, 0].max()) + 1, : int(text[:, 1].max()) + 1].numpy()
        grey = cv2.cvtColor(cv2.resize(pixels, cut.shape[::-1], interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
        assert np.abs(cut - grey / 255).mean() < 0.02


def pairs_of(model: MatchModel, sizes: tuple[tuple[int, int], tuple[int, int]]) -> Any:
    return model.prepare(tuple(view_of(shades(width, height)) for width, height in sizes))


@pytest.mark.parametrize(("family", "centre"), [("efficientloftr", 0.5), ("lightglue", 0.0)])
def test_points_go_back_to_each_picture_by_its_own_size(family: str, centre: float, checkpoint) -> None:
    """For both pictures, the middle of the network's input maps to the middle of the original."""
    network = (model := MatchModel(str(checkpoint(family)), "cpu")).network
    pair = pairs_of(model, ((400, 200), (150, 450)))
    fitted = [network._fitted(size) for size in pair.sizes]
    middles = [np.array([[width / 2, height / 2]]) - 0.5 + centre for height, width in fitted]
    result = network._on_pictures(pair, (middles[0], middles[1]), np.ones(1), centre)
    assert result.first[0].tolist() == pytest.approx([199.5, 99.5])
    assert result.second[0].tolist() == pytest.approx([74.5, 224.5])


@pytest.mark.parametrize("family", ["efficientloftr", "lightglue"])
def test_points_beyond_a_picture_or_at_its_seam_are_dropped(family: str, checkpoint) -> None:
    network = (model := MatchModel(str(checkpoint(family)), "cpu")).network
    pair = pairs_of(model, ((400, 200), (200, 400)))
    network._border = 4
    (height, width), full = network._fitted(pair.sizes[0]), pair.values.shape[-2:]
    assert (height < full[0], width) == (True, full[1])
    rows = [1, height - 5, height - 3, height + 2]
    first = np.array([[width - 2, row] for row in rows], float)
    result = network._on_pictures(pair, (first, np.full((4, 2), 3.0)), np.arange(4.0), 0.0)
    assert result.scores.tolist() == [0, 1]


def pointing() -> Any:
    """Return a replacement for LoFTR that reports the middles of its two inputs as one point."""
    import torch

    class Pointing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.given: list[dict[str, torch.Tensor]] = []

        def forward(self, data: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            self.given.append(data)
            middles = [torch.tensor([[value.shape[-1] / 2, value.shape[-2] / 2]]) for value in data.values()]
            payload = {"keypoints0": middles[0], "keypoints1": middles[1], "confidence": torch.ones(1)}
            return {**payload, "batch_indexes": torch.zeros(1, dtype=torch.long)}

    return Pointing()


def test_loftr_sees_grey_pictures_in_their_shape_and_its_points_go_back_by_each_size(checkpoint) -> None:
    model = MatchModel(str(checkpoint("kornia")), "cpu")
    model.network.network = pointing()
    # The first image is resized twice: to a view of 1024 px, then to the input size.
    pictures = (shades(1600, 800, 1), shades(300, 500, 2))
    result = match(model, *map(view_of, pictures))
    # Corner-based: the middle of a picture of 1600 px is at 800, between its pixels 799 and 800.
    assert result.first[0].tolist() == pytest.approx([799.5, 399.5])
    assert result.second[0].tolist() == pytest.approx([149.5, 249.5])
    for tensor, pixels in zip(model.network.network.given[0].values(), pictures, strict=True):
        size = tensor.shape[:1:-1]
        assert max(size) <= 640
        assert size[0] / size[1] == pytest.approx(pixels.shape[1] / pixels.shape[0], rel=0.03)
        grey = cv2.cvtColor(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
        assert np.abs(tensor[0, 0].numpy() - grey / 255).mean() < 0.01


def test_pairs_of_loftr_share_passes_by_shape_and_each_gets_its_own_matches(checkpoint) -> None:
    model = MatchModel(str(checkpoint("kornia")), "cpu")
    # Lower the thresholds, because a tiny network is never certain and finds little in the middle.
    coarse = model.network.network.coarse_matching
    coarse.thr, coarse.border_rm = 0.0, 0
    passes: list[int] = []
    model.network.network.register_forward_pre_hook(lambda _, options: passes.append(len(options[0]["image0"])))
    sizes = ((96, 64), (64, 96), (96, 64), (96, 64))
    pairs = [
        model.prepare((view_of(shades(*size, seed)), view_of(shades(96, 64, seed + 10))))
        for seed, size in enumerate(sizes)
    ]
    together = model._match(pairs)
    assert passes == [3, 1]
    alone = [model._match([pair])[0] for pair in pairs]
    assert [len(entry) for entry in together] == [len(value) for value in alone]
    assert len({len(first_item) for first_item in alone}) > 1
    for batched, single in zip(together, alone, strict=True):
        assert np.abs(batched.first - single.first).max() < TOLERANCE_PX
        assert np.abs(batched.second - single.second).max() < TOLERANCE_PX
        assert np.abs(batched.scores - single.scores).max() < 1e-3
