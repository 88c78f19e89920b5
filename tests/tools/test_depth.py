"""Depth: reading points, ranking, cues on generated scenes with known depth, the learned path on tiny checkpoints."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import ToolError, WeightsError
from hybrid.core.images import decode
from hybrid.tool import Evidence, Pixels, Request
from tests.tables import cases
from tests.tools.pictures import markers, picture
from tests.tools.tiny_checkpoints import Checkpoints
from tools.depth import (
    TOOL,
    DepthArgs,
    DepthCues,
    LearnedDepth,
    PointArg,
    Spot,
    clean_image,
    rank_by_cues,
    rank_by_map,
    spots_of,
)
from tools.depth.cues import WEIGHTS, depth_of, measure, sample
from tools.depth.models import depth_map

PAIR = DepthArgs(points=(PointArg(x=20, y=70, label="A"), PointArg(x=60, y=15, label="B")))


def ask_marked(pixels: Pixels) -> Evidence:
    request = Request(
        (pixels,), DepthArgs(labels=("A", "B")), {"markers": (markers(pixels, labels=("A", "B"), kind="point"),)}
    )
    return DepthCues().run([request])[0]


# Points


def test_given_points_are_read_and_one_outside_is_named():
    spots = spots_of(Request((picture(80, 100, seed=0),), PAIR))
    assert [(spot.label, spot.x, spot.y) for spot in spots] == [("A", 20, 70), ("B", 60, 15)]
    with pytest.raises(ToolError, match=r"point 2 \(60, 15\) is outside the image of 100 x 12 px"):
        spots_of(Request((picture(12, 100, seed=0),), DepthArgs(points=(PointArg(x=1, y=1), PointArg(x=60, y=15)))))


@pytest.mark.parametrize(
    "bad", [{"points": [{"x": -1, "y": 0}]}, {"points": [{"x": 1}]}, {"point": []}, {"labels": ["Q"]}]
)
def test_arguments_of_another_form_are_refused(bad: dict):
    with pytest.raises(ValidationError):
        DepthArgs.model_validate(bad)


@pytest.mark.system
@pytest.mark.shared_data
def test_photographs_without_marks_have_no_points(shared_data: Path):
    # Items on which rings without a letter are detected.
    values = {"val_Spatial_Relation_143", "val_Spatial_Relation_63", "val_Spatial_Relation_47"}
    rows = [
        row
        for path in sorted((shared_data / "blink" / "Spatial_Relation").glob("val-*.parquet"))
        for row in pq.read_table(path, columns=["idx", "image_1"]).to_pylist()
        if row["idx"] in values
    ]
    assert len(rows) == len(values)
    for row in rows:
        assert ask_marked(decode(row["image_1"]["bytes"], row["idx"])).data["points"] == [], row["idx"]


# Ranking

spot_lists = st.lists(st.builds(Spot, st.none(), st.floats(0, 99), st.floats(0, 99), st.floats(0, 1)), min_size=2)


@given(spot_lists, st.data())
def test_a_ranking_is_a_probability_and_the_nearest_is_the_largest(spots: list[Spot], data: st.DataObject):
    values = data.draw(st.lists(st.floats(0, 1), min_size=len(spots), max_size=len(spots)))
    for ranking in (rank_by_cues(values, spots, 100), rank_by_map(values, spots)):
        assert 0.5 <= ranking.confidence < 1
        if ranking.nearest is not None:
            assert values[ranking.nearest] == max(values)


@given(st.floats(0, 8), st.floats(0, 8), st.floats(3, 90))
def test_confidence_grows_with_the_evidence(first: float, second: float, rows: float):
    spots = [Spot("A", 0, rows), Spot("B", 0, 0)]
    low, high = sorted((first, second))
    assert rank_by_cues([low, 0], spots, 100).confidence <= rank_by_cues([high, 0], spots, 100).confidence
    assert rank_by_map([low / 8, 0], spots).confidence <= rank_by_map([high / 8, 0], spots).confidence


@given(st.floats(0, 8), st.floats(0, 2))
def test_one_row_never_gives_confidence(evidence: float, rows: float):
    ranking = rank_by_cues([evidence, 0], [Spot("A", 0, 50 + rows), Spot("B", 90, 50)], 100)
    assert ranking.confidence <= 0.6
    assert (ranking.nearest is None) == (evidence < 0.001)


def ask_small(run: Callable[[list[Request[DepthArgs]]], list[Evidence]], side: int) -> Evidence:
    """Ask about a low and a high point of a rendered scene with this short side in pixels."""
    image = item("Relative_Depth", 0, 0).images[0]
    small = cv2.resize(image, (side * 4 // 3, side), interpolation=cv2.INTER_AREA)
    points = (PointArg(x=side * 0.6, y=side * 0.9), PointArg(x=side * 0.7, y=side * 0.15))
    return run([Request((np.asarray(small, np.uint8),), DepthArgs(points=points))])[0]


def test_a_small_picture_lowers_the_confidence_and_keeps_the_claim():
    large, small, smallest = (ask_small(DepthCues().run, side) for side in (320, 96, 64))
    assert {evidence.data["nearer_index"] for evidence in (large, small, smallest)} == {0}
    assert large.confidence > 0.8
    assert 0.58 < small.confidence < 0.66
    assert 0.5 < smallest.confidence < 0.56


def test_a_small_picture_lowers_the_confidence_of_a_network_too(depth_checkpoint: Checkpoints):
    evidence = ask_small(started(depth_checkpoint("depth_anything")).run, 64)
    assert evidence.data["nearer_index"] is not None
    assert 0.5 < evidence.confidence < 0.58


# Cues


@settings(max_examples=15)
@given(st.integers(0, 99), st.integers(1, 40), st.integers(1, 40))
def test_cues_of_any_image_lie_in_0_to_1(seed: int, height: int, width: int):
    maps = measure(picture(height, width, seed))
    for cue in maps.cues.values():
        assert max(cue.shape) <= 128
        assert np.isfinite(cue).all()
        assert 0 <= cue.min() <= cue.max() <= 1
    at = maps.at(width / 2, height / 2, (height, width))
    assert 0 <= depth_of(at) <= 1
    assert set(at) == set(WEIGHTS)


@given(st.floats(0, 30), st.floats(0, 20))
def test_a_sample_lies_between_the_cells_around_it(x: float, y: float):
    assert 0 <= sample(np.arange(6, dtype=np.float32).reshape(2, 3), x, y, (20, 30)) <= 5
    assert sample(np.full((4, 4), 0.7, np.float32), x, y, (20, 30)) == pytest.approx(0.7, abs=1e-6)


@pytest.mark.system
def test_generated_scenes_are_answered_above_chance():
    right = 0.0
    for index in range(12):
        drawn_item = item("Relative_Depth", index, 1)
        request = Request(
            drawn_item.images,
            DepthArgs(
                points=tuple(
                    PointArg(x=x, y=y, label=n) for n, (x, y) in zip("AB", drawn_item.facts.points, strict=True)
                )
            ),
        )
        nearer = DepthCues().run([request])[0].data["nearer"]
        right += 0.5 if nearer is None else nearer == "AB"[drawn_item.answer]
    assert right >= 8


@pytest.mark.parametrize("areas", ["two", "squares in grain"])
def test_a_picture_of_flat_areas_decides_nothing(areas: str):
    pixels = np.full((240, 320, 3), (150, 190, 230), np.float32)
    if areas == "two":
        pixels[100:] = (70, 110, 60)
    else:
        rng = np.random.default_rng(3)
        pixels = rng.integers(0, 256, (5, 7, 3)).repeat(48, 0).repeat(48, 1)[:, :320] + rng.normal(0, 10, (240, 320, 3))
    request = Request((np.asarray(np.clip(pixels, 0, 255), np.uint8),), PAIR)
    (evidence,) = DepthCues().run([request])
    assert evidence.data["nearer_index"] is None
    assert evidence.confidence == 0.5


@pytest.mark.parametrize(("square", "blur", "size"), [(20, 4, (160, 160)), (40, 4, (160, 200)), (40, 8, (240, 320))])
def test_soft_blobs_without_an_edge_decide_nothing(square: int, blur: int, size: tuple[int, int]):
    levels = np.random.default_rng(1).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    squares = levels.repeat(square, 0).repeat(square, 1)[: size[0], : size[1]]
    points = tuple(PointArg(x=60, y=y, label=n) for n, y in zip("AB", (40, 130), strict=True))
    blurred = np.asarray(cv2.GaussianBlur(squares, (0, 0), blur), np.uint8)
    (evidence,) = DepthCues().run([Request((blurred,), DepthArgs(points=points))])
    assert (evidence.data["nearer_index"], evidence.confidence) == (None, 0.5)


# Learned


def test_a_map_without_relief_is_flat():
    for level in (0.0, 5.0, -3.0):
        noise = level * (1 + 1e-4 * np.random.default_rng(1).random((6, 8)))
        assert depth_map(noise, metric=False).nearness.tolist() == np.full((6, 8), 0.5).tolist()
    assert depth_map(np.array([[5.0, 5.1]]), metric=False).nearness.tolist() == [[0, 1]]


@given(st.integers(0, 999), st.floats(0.1, 30), st.floats(-5, 5))
def test_inverse_depth_is_normalised_whatever_its_scale(seed: int, scale: float, shift: float):
    values = np.random.default_rng(seed).random((4, 5))
    plain, moved = depth_map(values, metric=False), depth_map(values * scale + shift, metric=False)
    assert plain.metres is None
    assert (plain.nearness.min(), plain.nearness.max()) == (0, 1)
    assert np.allclose(plain.nearness, moved.nearness, atol=1e-3)


def test_metres_turn_round_and_stay_beside():
    built = depth_map(np.array([[1.0, 2.0], [4.0, 4.0]]), metric=True)
    assert built.nearness.tolist() == [[1, pytest.approx(1 / 3)], [0, 0]]
    assert built.at(0, 0, (2, 2)) == {"depth_0_1": pytest.approx(1 / 6), "depth_m": 3.0}
    assert depth_map(np.ones((3, 3)), metric=False).nearness.tolist() == [[0.5] * 3] * 3
    with pytest.raises(ToolError, match="not finite"):
        depth_map(np.array([[np.nan, 1.0]]), metric=False)


def started(folder: Path) -> LearnedDepth:
    backend = LearnedDepth()
    backend.setup("cpu", str(folder))
    return backend


def test_the_learned_backend_answers_through_the_real_processor(depth_checkpoint: Checkpoints):
    backend = started(depth_checkpoint("depth_anything"))
    images = [picture(90, 120, seed=5), picture(120, 90, seed=6), picture(90, 120, seed=7)]
    together = backend.run([Request((pixels,), PAIR) for pixels in images])
    for pixels, result in zip(images, together, strict=True):
        (alone,) = backend.run([Request((pixels,), PAIR)])
        for a, b in zip(result.data["points"], alone.data["points"], strict=True):
            assert a["depth_0_1"] == pytest.approx(b["depth_0_1"], abs=1e-3)
        assert all(0 <= point["depth_0_1"] <= 1 for point in result.data["points"])
        assert result.pictures[0].pixels.shape == pixels.shape
    assert len({output.data["points"][0]["depth_0_1"] for output in together}) == 3
    code, content = backend.version.split("+")
    assert content.startswith("depth_anything@")
    assert code == TOOL.backend("learned").version
    assert content not in together[0].text


@pytest.mark.parametrize(*cases(__file__, "test_metric_checkpoints_give_metres_and_nearness_falls_with_them"))
def test_metric_checkpoints_give_metres_and_nearness_falls_with_them(depth_checkpoint: Checkpoints, family: str):
    (result,) = started(depth_checkpoint(family)).run([Request((picture(80, 100, seed=8),), PAIR)])
    first, second = result.data["points"]
    # Zero is allowed, because an untrained network may give almost the same depth everywhere: both points can then have
    # equal `depth_0_1`.
    assert (first["depth_m"] - second["depth_m"]) * (first["depth_0_1"] - second["depth_0_1"]) <= 0
    assert " m" in result.text.splitlines()[-1]


def test_the_learned_backend_survives_odd_shapes_and_refuses_strips(depth_checkpoint: Checkpoints):
    backend = started(depth_checkpoint("depth_anything"))
    corner = DepthArgs(points=(PointArg(x=0, y=0),))
    for size in ((1, 1), (3, 20), (1500, 1200)):
        (result,) = backend.run([Request((picture(*size, seed=9),), corner)])
        assert result.pictures[0].pixels.shape == (*size, 3)
    with pytest.raises(ToolError, match="too elongated"):
        backend.run([Request((picture(1, 40, seed=9),), corner)])


def test_a_large_image_is_reduced_and_points_stay_in_its_own_pixels(depth_checkpoint: Checkpoints):
    drawn_item = item("Relative_Depth", 0, 3)
    large = cv2.resize(drawn_item.images[0], None, fx=4, fy=4, interpolation=cv2.INTER_LINEAR)
    request = Request((large,), DepthArgs(points=tuple(PointArg(x=4 * x, y=4 * y) for x, y in drawn_item.facts.points)))
    assert max(clean_image(request).shape) == 1024
    for backend in (DepthCues(), started(depth_checkpoint("depth_anything"))):
        (result,) = backend.run([request])
        (small,) = backend.run(
            [
                Request(
                    drawn_item.images, DepthArgs(points=tuple(PointArg(x=x, y=y) for x, y in drawn_item.facts.points))
                )
            ]
        )
        assert result.pictures[0].pixels.shape == large.shape
        for a, b in zip(result.data["points"], small.data["points"], strict=True):
            assert a["x_px"] == 4 * b["x_px"]
            assert a["depth_0_1"] == pytest.approx(b["depth_0_1"], abs=0.1)


def test_a_configuration_of_older_versions_has_no_scale(depth_checkpoint: Checkpoints, tmp_path: Path):
    for family, refused in (("depth_anything", False), ("depth_anything_metric", True)):
        folder = Path(shutil.copytree(depth_checkpoint(family), tmp_path / family))
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"max_depth": None}))
        if refused:
            with pytest.raises(WeightsError, match="names no max_depth"):
                started(folder)
        else:
            assert started(folder).run([Request((picture(60, 60, seed=0),), DepthArgs())])


def test_a_damaged_or_absent_checkpoint_is_refused(depth_checkpoint: Checkpoints, tmp_path: Path):
    from safetensors.torch import load_file, save_file

    good = depth_checkpoint("depth_anything")
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((good / name).read_bytes())
    tensors = load_file(good / "model.safetensors")
    del tensors["neck.convs.0.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsError, match=r"neck\.convs\.0\.weight"):
        started(tmp_path)
    with pytest.raises(WeightsError, match="weights absent"):
        started(tmp_path / "nowhere")
    with pytest.raises(ToolError, match="before its weights"):
        LearnedDepth().run([Request((picture(9, 9, seed=0),), DepthArgs())])


@pytest.mark.system
@pytest.mark.shared_data
def test_published_items(shared_data: Path):
    rows = pq.read_table(shared_data / "blink" / "Relative_Depth" / "val-00000-of-00001.parquet").to_pylist()
    cv2.setNumThreads(1)
    points, results = 0.0, []
    # Every third question suffices here; the bench prints the number for all 62.
    for row in (rows := rows[::3]):
        result = ask_marked(decode(row["image_1"]["bytes"], row["idx"]))
        right = result.data["nearer"] == row["answer"][1]
        points += 0.5 if result.data["nearer"] is None else right
        if result.confidence >= 0.8:
            results.append(right)
    assert points / len(rows) >= 0.68
    assert len(results) >= 3
    assert sum(results) / len(results) >= 0.8
