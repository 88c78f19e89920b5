"""Forensics: statistics that follow what they measure, no decision without weights, detectors from a directory."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.errors import ToolError, WeightsError
from hybrid.tool import Pixels, Request
from tests.tables import cases
from tests.tools.pictures import scene
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools.forensics import TOOL, ForensicsArgs, LearnedForensics, NoiseEvidence, judge
from tools.forensics.models import IMAGENET, Plan, prepare, read_plan

HALF = (0.5, 0.5, 0.5)


def noise(seed: int, level: int, side: int = 96) -> Pixels:
    return np.clip(120 + np.random.default_rng(seed).normal(0, level, (side, side, 3)), 0, 255).astype(np.uint8)


def test_the_weight_free_backend_never_decides():
    images = tuple(noise(seed, 5 * (seed + 1)) for seed in range(4))
    first, second = (NoiseEvidence().run([Request(images, ForensicsArgs())])[0] for _ in range(2))
    assert first.data == second.data
    assert first.data["synthetic"] is None
    assert first.confidence <= 0.5
    assert len(first.data["statistics"]) == 4
    assert [picture.of for picture in first.pictures] == [0, 1, 2, 3]
    assert len(first.text.splitlines()) <= 6
    assert max(map(len, first.text.splitlines())) <= 160
    assert len(first.text) <= 450


def test_a_measurement_is_told_with_its_range_and_on_which_side_it_leaves_it():
    images = (noise(0, 12), noise(0, 90), np.full((64, 64, 3), 9, np.uint8))
    (result,) = NoiseEvidence().run([Request(images, ForensicsArgs())])
    line = result.text.splitlines()[1]
    low, high = result.data["photographs"]["residual_std_grey"]
    values = [row["residual_std_grey"] for row in result.data["statistics"]]
    assert values[2] < low < values[0] < high < values[1]
    assert line.startswith(f"Noise, grey levels [{low:.1f} to {high:.1f}], image 1: {values[0]:.1f}, 2: ")
    assert line.endswith(f"2: {values[1]:.1f} (above), 3: 0.0 (below).")
    assert set(result.data["photographs"]) == set(result.data["statistics"][0])


def test_flat_and_tiny_images():
    (result,) = NoiseEvidence().run([Request((np.full((64, 64, 3), 9, np.uint8),), ForensicsArgs())])
    assert result.data["statistics"][0]["residual_std_grey"] == 0
    assert all(np.isfinite(value) for value in result.data["statistics"][0].values())
    with pytest.raises(ToolError, match="at least 32 px"):
        NoiseEvidence().run([Request((np.zeros((1, 1, 3), np.uint8),), ForensicsArgs())])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_the_highest_score_is_named(scores: list[float]):
    result = judge(scores, "x")
    assert 0 <= result.confidence <= 0.85
    synthetic = result.data["synthetic"]
    if synthetic is not None:
        assert scores[synthetic] == max(scores)
    if len(scores) == 1:
        assert (synthetic == 0) is (scores[0] >= 0.5)
        assert (result.data["photograph"] == 0) is (scores[0] < 0.5)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=4))
def test_the_lowest_score_is_the_photograph(scores: list[float]):
    result = judge(scores, "x")
    place, photograph_confidence_0_1 = result.data["photograph"], result.data["photograph_confidence_0_1"]
    low, next_low = sorted(scores)[:2]
    if next_low - low <= 1e-6:
        assert (place, photograph_confidence_0_1) == (None, None)
    else:
        assert scores[place] == low
        assert photograph_confidence_0_1 == pytest.approx(
            min(0.85, 1 / len(scores) + (1 - 1 / len(scores)) * (next_low - low))
        )


@pytest.mark.system
@settings(max_examples=20)
@given(st.integers(1, 300), st.integers(8, 300))
def test_input_has_the_side_of_the_plan(height: int, width: int):
    from timm.data import create_transform

    plan = Plan("x", 64, create_transform((3, 64, 64), mean=HALF, std=HALF), HALF, HALF)
    pixels = np.full((height, width, 3), 255, np.uint8)
    if max(height, width) > 50 * min(height, width):
        with pytest.raises(ToolError, match="too elongated"):
            prepare(pixels, plan)
    else:
        assert prepare(pixels, plan).shape == (3, 64, 64)
        assert np.allclose(prepare(pixels, plan), 1)


@pytest.mark.system
@pytest.mark.parametrize(("side", "short"), [(224, 256), (384, 440)])
def test_community_forensics_has_two_sizes(tmp_path: Path, side: int, short: int):
    """The short side is scaled to 256 px for an input of 224, and to 440 for 384: `preprocess_input` in the authors'
    models.py."""
    config = {"model_size": "small", "input_size": side, "patch_size": 16, "freeze_backbone": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    plan = read_plan(tmp_path, "x")
    # A ramp over the height: the rows that are cut off show how much of the short side was left.
    ramp = np.repeat(np.linspace(0, 255, short)[:, None], 2 * short, axis=1)
    first, last = prepare(np.stack([ramp] * 3, axis=2).astype(np.uint8), plan)[0, [0, -1], side // 2]
    mean, deviation = IMAGENET[0][0], IMAGENET[1][0]
    assert (first * deviation + mean) * (short - 1) == pytest.approx((short - side) / 2, abs=2)
    assert (last * deviation + mean) * (short - 1) == pytest.approx((short + side) / 2 - 1, abs=2)
    (tmp_path / "config.json").write_text(json.dumps({**config, "input_size": 256}))
    with pytest.raises(WeightsError, match="input_size 256; Community Forensics has 224 and 384"):
        read_plan(tmp_path, "x")


@pytest.mark.parametrize("layout", ["timm_detector", "community_detector"])
def test_both_layouts_load_and_score(things_checkpoint: Checkpoints, layout: str):
    backend = started("forensics", things_checkpoint(layout))
    images = (scene(96, 96), scene(96, 96, 1), scene(700, 700, 2))
    first, second = (backend.run([Request(images, ForensicsArgs())])[0] for _ in range(2))
    assert first.data == second.data
    scores = [row["score_0_1"] for row in first.data["scores"]]
    assert first.data["synthetic"] == int(np.argmax(scores))
    assert len(set(scores)) == 3
    assert [picture.pixels.shape for picture in first.pictures] == [pixels.shape for pixels in images]
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+")
    (alone,) = backend.run([Request(images[:1], ForensicsArgs())])
    assert alone.data["scores"][0]["score_0_1"] == pytest.approx(scores[0], abs=1e-5)


@pytest.mark.parametrize(*cases(__file__, "test_a_configuration_that_is_no_detector_is_refused"))
def test_a_configuration_that_is_no_detector_is_refused(
    things_checkpoint: Checkpoints, tmp_path: Path, change: dict, message: str
):
    folder = Path(shutil.copytree(things_checkpoint("timm_detector"), tmp_path / "copy"))
    (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | change))
    with pytest.raises(WeightsError, match=message):
        started("forensics", folder)
    with pytest.raises(ToolError, match="before its weights"):
        LearnedForensics().run([Request((noise(0, 3),), ForensicsArgs())])
