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
from hybrid.errors import ToolError, WeightsError
from hybrid.images import decode
from hybrid.marks.drawing import draw_marks
from hybrid.marks.marks import remove_marks
from hybrid.marks.marks_json import marks_from
from hybrid.registry import load
from hybrid.tool import Evidence, Pixels, Request
from hybrid.types import Finding, Point
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
from tools.depth.cues import APPEARANCE, depth_of, measure, sample, score_of, weights
from tools.depth.models import depth_map
from tools.depth.picture import FAR, NEAR

PAIR = DepthArgs(points=(PointArg(x=20, y=70, label="A"), PointArg(x=60, y=15, label="B")))


def picture(seed: int, height: int, width: int) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def ask(pixels: Pixels, args: DepthArgs = PAIR) -> Evidence:
    return DepthCues().run([Request((pixels,), args)])[0]


def markers(pixels: Pixels, labels: tuple[str, ...] = ("A", "B")) -> Finding:
    """The markers tool's finding."""
    tool = load("tools", "markers")
    card = tool.backend("classical")
    backend = card.make()
    backend.setup("cpu", None)
    found = backend.run([Request((pixels,), tool.args(labels=labels, kind="point"))])[0]
    return Finding(found.text, found.data, found.confidence, "classical", card.version)


def ask_marked(pixels: Pixels) -> Evidence:
    request = Request((pixels,), DepthArgs(labels=("A", "B")), {"markers": (markers(pixels),)})
    return DepthCues().run([request])[0]


# Points


def test_given_points_are_read_and_one_outside_is_named():
    spots = spots_of(Request((picture(0, 80, 100),), PAIR))
    assert [(spot.label, spot.x, spot.y) for spot in spots] == [("A", 20, 70), ("B", 60, 15)]
    with pytest.raises(ToolError, match=r"point 2 \(60, 15\) is outside the image of 100 x 12 px"):
        spots_of(Request((picture(0, 12, 100),), DepthArgs(points=(PointArg(x=1, y=1), PointArg(x=60, y=15)))))


@pytest.mark.parametrize(
    "bad", [{"points": [{"x": -1, "y": 0}]}, {"points": [{"x": 1}]}, {"point": []}, {"labels": ["Q"]}]
)
def test_arguments_of_another_form_are_refused(bad: dict):
    with pytest.raises(ValidationError):
        DepthArgs.model_validate(bad)


def test_marked_points_are_read_and_their_paint_is_removed():
    made = item("Relative_Depth", 0, 3)
    marked = made.images[0]
    request = Request((marked,), DepthArgs(), {"markers": (markers(marked),)})
    spots = spots_of(request)
    assert [spot.label for spot in spots] == ["A", "B"]
    for spot, (x, y) in zip(spots, made.facts.points, strict=True):
        assert np.hypot(spot.x - x, spot.y - y) < 2
    clean, before = clean_image(request), marked.copy()
    x, y = made.facts.points[0]
    ring = (slice(y - 6, y + 7), slice(x - 6, x + 7))
    redness = [
        int((area[ring][..., 0].astype(int) - area[ring][..., 1:].max(axis=2)).max()) for area in (marked, clean)
    ]
    assert redness[1] < redness[0] - 60
    assert np.array_equal(marked, before)


def test_a_ring_that_may_be_chance_is_not_compared():
    made = item("Relative_Depth", 0, 3)
    plain = remove_marks(made.images[0], marks_from(markers(made.images[0]).data))
    rings = draw_marks(plain, [Point(120, 100), Point(240, 220)])
    evidence = ask_marked(rings)
    assert evidence.data["points"] == []
    assert evidence.data["nearer"] is None


@pytest.mark.system
@pytest.mark.shared_data
def test_photographs_without_marks_have_no_points(shared_data: Path):
    # Rings without a letter are seen on these.
    wanted = {"val_Spatial_Relation_143", "val_Spatial_Relation_63", "val_Spatial_Relation_47"}
    rows = [
        row
        for path in sorted((shared_data / "blink" / "Spatial_Relation").glob("val-*.parquet"))
        for row in pq.read_table(path, columns=["idx", "image_1"]).to_pylist()
        if row["idx"] in wanted
    ]
    assert len(rows) == len(wanted)
    for row in rows:
        assert ask_marked(decode(row["image_1"]["bytes"], row["idx"])).data["points"] == [], row["idx"]


def test_the_card_passes_labels_on_to_the_markers():
    need = TOOL.card.needs[0]
    assert need.tool == "markers"
    assert need.args(DepthArgs(labels=("A", "B"))) == {"labels": ["A", "B"], "kind": "point"}


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


def test_faint_evidence_decides_and_says_that_it_is_faint():
    ranking = rank_by_cues([0.02, 0], [Spot("A", 0, 50), Spot("B", 90, 50)], 100)
    assert ranking.nearest == 0
    assert 0.5 < ranking.confidence < 0.51


def test_a_doubtful_mark_lowers_confidence():
    sure, doubtful = Spot("A", 0, 90, 1.0), Spot("A", 0, 90, 0.5)
    other = Spot("B", 0, 10, 1.0)
    assert rank_by_cues([5, 0], [sure, other], 100).confidence == pytest.approx(0.84940, abs=1e-4)
    assert rank_by_cues([5, 0], [doubtful, other], 100).confidence == pytest.approx(0.67470, abs=1e-4)


# Cues


@settings(max_examples=15)
@given(st.integers(0, 99), st.integers(1, 40), st.integers(1, 40))
def test_cues_of_any_image_lie_in_0_to_1(seed: int, height: int, width: int):
    maps = measure(picture(seed, height, width))
    for cue in maps.cues.values():
        assert max(cue.shape) <= 128
        assert np.isfinite(cue).all()
        assert 0 <= cue.min() <= cue.max() <= 1
    at = maps.at(width / 2, height / 2, (height, width))
    assert 0 <= depth_of(at) <= 1
    assert set(at) == {"position", *APPEARANCE}


def test_without_any_structure_only_place_counts():
    maps = measure(np.full((60, 80, 3), 90, np.uint8))
    low, high = (maps.at(40, y, (60, 80)) for y in (50, 10))
    assert low["contrast"] == high["contrast"] == pytest.approx(0.5, abs=0.01)
    assert score_of(low) > score_of(high)


def test_structure_and_warm_colour_speak_for_nearness_by_the_same_weight():
    half = np.full((90, 120, 3), (110, 110, 140), np.uint8)
    half[:, 60:] = (140, 110, 90)
    half[::4, 60:] //= 2
    maps = measure(half)
    plain, rich = maps.at(20, 45, (90, 120)), maps.at(100, 45, (90, 120))
    assert rich["contrast"] > plain["contrast"] + 0.3
    assert rich["warm"] > plain["warm"] + 0.3
    assert weights()["contrast"] == weights()["warm"] > 0
    assert score_of(plain | {"contrast": 1.0}) - score_of(plain) == pytest.approx(0.5 * (1 - plain["contrast"]))


def test_contrast_is_seen_at_edges_and_in_slow_spread():
    """A step smeared over 40 px has hardly an edge and much spread; a fine grating of faint lines has edges."""
    ramp = np.clip((np.arange(200) - 30) * 6, 60, 200).astype(np.uint8)
    smooth = np.repeat(ramp[None], 150, axis=0)
    maps = measure(np.repeat(smooth[..., None], 3, axis=2))
    assert maps.at(42, 75, (150, 200))["contrast"] > maps.at(150, 75, (150, 200))["contrast"] + 0.3
    grating = np.full((150, 200), 120, np.uint8)
    grating[:, 100::2] += 12
    fine = measure(np.repeat(grating[..., None], 3, axis=2))
    assert fine.at(150, 75, (150, 200))["contrast"] > fine.at(40, 75, (150, 200))["contrast"] + 0.3


@given(st.floats(0, 30), st.floats(0, 20))
def test_a_sample_lies_between_the_cells_around_it(x: float, y: float):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = sample(values, x, y, (20, 30))
    assert 0 <= found <= 5
    assert sample(np.full((4, 4), 0.7, np.float32), x, y, (20, 30)) == pytest.approx(0.7, abs=1e-6)


def test_the_lower_point_is_nearer_when_nothing_else_speaks():
    found = ask(picture(1, 90, 120))
    assert (found.data["nearer"], found.data["nearer_index"], found.data["rows_differ_px"]) == ("A", 0, 55)
    assert 0.8 < found.confidence <= 0.85
    assert found.data["points"][0]["depth_0_1"] > found.data["points"][1]["depth_0_1"]
    assert "A is nearest" in found.text
    assert "A lies lower in the picture; rows differ by 55 px" in found.text
    assert found.data["decided_by"] == "position"


def test_the_cue_that_decides_is_the_one_that_speaks_most_for_the_nearest():
    half = np.full((90, 120, 3), 120, np.uint8)
    half[:, 60:] = np.random.default_rng(0).integers(0, 255, (90, 60, 1))
    found = ask(half, DepthArgs(points=(PointArg(x=20, y=46, label="A"), PointArg(x=100, y=45, label="B"))))
    assert (found.data["nearer"], found.data["decided_by"]) == ("B", "contrast")
    assert "B has more local contrast; the points lie on one row" in found.text
    assert found.confidence <= 0.6


def test_mirrored_points_of_a_flat_image_are_undecided():
    args = DepthArgs(points=(PointArg(x=20, y=40, label="A"), PointArg(x=79, y=40, label="B")))
    found = ask(np.full((80, 100, 3), 120, np.uint8), args)
    assert found.data["nearer"] is None
    assert found.confidence == 0.5
    assert "undecided" in found.text


@pytest.mark.parametrize(("points", "pictures"), [((), 0), ((PointArg(x=3, y=4),), 1)])
def test_nothing_to_compare_is_said_and_no_map_is_made_up(points: tuple[PointArg, ...], pictures: int):
    found = ask(picture(2, 50, 70), DepthArgs(points=points))
    assert found.data["nearer"] is None
    assert found.confidence == 0.3
    assert "nothing is compared" in found.text
    assert "there is no depth map" in found.text
    assert len(found.pictures) == pictures


def inked(drawn: Pixels, ink: tuple[int, int, int], x: int, y: int) -> bool:
    """Whether a colour, or what a thin line leaves of it, is found around a point."""
    around = drawn[y - 12 : y + 13, x - 12 : x + 13].astype(int)
    return bool((np.abs(around - ink).max(axis=2) < 70).any())


def test_a_picture_without_colour_has_no_warmer_places():
    grey = np.random.default_rng(3).integers(0, 255, (90, 120, 1)).astype(np.uint8).repeat(3, axis=2)
    assert np.ptp(measure(grey).cues["warm"]) == 0


def test_the_picture_is_the_image_with_a_line_between_the_compared_points():
    pixels = np.full((300, 400, 3), 120, np.uint8)
    near, far = PointArg(x=100, y=250, label="A"), PointArg(x=300, y=50, label="B")
    drawn = ask(pixels, DepthArgs(points=(near, far))).pictures[0].pixels
    assert (drawn != pixels).any(axis=2).mean() < 0.12
    assert (drawn[148:153, 198:203] > 200).all(axis=2).any()
    assert (inked(drawn, NEAR, 100, 250), inked(drawn, FAR, 100, 250)) == (True, False)
    assert (inked(drawn, NEAR, 300, 50), inked(drawn, FAR, 300, 50)) == (False, True)
    level = DepthArgs(points=(PointArg(x=20, y=40, label="A"), PointArg(x=379, y=40, label="B")))
    undecided = ask(pixels, level).pictures[0].pixels
    assert not any(inked(undecided, ink, 20, 40) for ink in (NEAR, FAR))


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (3, 5), (2500, 90)])
def test_any_shape_survives(size: tuple[int, int]):
    found = ask(picture(3, *size), DepthArgs(points=(PointArg(x=0, y=0), PointArg(x=size[1] - 1, y=size[0] - 1))))
    assert found.pictures[0].pixels.shape == (*size, 3)
    assert 0 <= found.confidence <= 1


def test_the_text_is_short_and_evidence_repeats_exactly():
    points = tuple(PointArg(x=7 * n, y=3 * n, label=f"point {n}") for n in range(12))
    first, second = (ask(picture(4, 60, 90), DepthArgs(points=points)) for _ in range(2))
    assert first.data == second.data
    assert np.array_equal(first.pictures[0].pixels, second.pictures[0].pixels)
    assert len(first.text.splitlines()) <= 6
    assert max(len(line) for line in first.text.splitlines()) <= 160


@pytest.mark.system
def test_generated_scenes_are_answered_above_chance():
    right = 0.0
    for index in range(12):
        made = item("Relative_Depth", index, 1)
        request = Request(
            made.images,
            DepthArgs(
                points=tuple(PointArg(x=x, y=y, label=n) for n, (x, y) in zip("AB", made.facts.points, strict=True))
            ),
        )
        nearer = DepthCues().run([request])[0].data["nearer"]
        right += 0.5 if nearer is None else nearer == "AB"[made.answer]
    assert right >= 8


# Learned


@given(st.integers(0, 999), st.floats(0.1, 30), st.floats(-5, 5))
def test_inverse_depth_is_normalised_whatever_its_scale(seed: int, scale: float, shift: float):
    values = np.random.default_rng(seed).random((4, 5))
    plain, moved = depth_map(values, metric=False), depth_map(values * scale + shift, metric=False)
    assert plain.metres is None
    assert (plain.nearness.min(), plain.nearness.max()) == (0, 1)
    assert np.allclose(plain.nearness, moved.nearness, atol=1e-3)


def test_metres_turn_round_and_stay_beside():
    made = depth_map(np.array([[1.0, 2.0], [4.0, 4.0]]), metric=True)
    assert made.nearness.tolist() == [[1, pytest.approx(1 / 3)], [0, 0]]
    assert made.at(0, 0, (2, 2)) == {"depth_0_1": pytest.approx(1 / 6), "depth_m": 3.0}
    assert depth_map(np.ones((3, 3)), metric=False).nearness.tolist() == [[0.5] * 3] * 3
    with pytest.raises(ToolError, match="not finite"):
        depth_map(np.array([[np.nan, 1.0]]), metric=False)


def started(folder: Path) -> LearnedDepth:
    backend = LearnedDepth()
    backend.setup("cpu", str(folder))
    return backend


def test_the_learned_backend_answers_through_the_real_processor(depth_checkpoint: Callable[[str], Path]):
    backend = started(depth_checkpoint("depth_anything"))
    images = [picture(5, 90, 120), picture(6, 120, 90), picture(7, 90, 120)]
    together = backend.run([Request((pixels,), PAIR) for pixels in images])
    for pixels, found in zip(images, together, strict=True):
        (alone,) = backend.run([Request((pixels,), PAIR)])
        for a, b in zip(found.data["points"], alone.data["points"], strict=True):
            assert a["depth_0_1"] == pytest.approx(b["depth_0_1"], abs=1e-3)
        assert all(0 <= point["depth_0_1"] <= 1 for point in found.data["points"])
        assert found.pictures[0].pixels.shape == pixels.shape
    assert len({found.data["points"][0]["depth_0_1"] for found in together}) == 3
    code, content = backend.version.split("+")
    assert content.startswith("depth_anything@")
    assert code == TOOL.backend("learned").version
    assert content not in together[0].text


@pytest.mark.parametrize(
    "family",
    ["depth_anything_metric", "depth_pro", "zoedepth"],
)
def test_metric_checkpoints_give_metres_and_nearness_falls_with_them(
    depth_checkpoint: Callable[[str], Path], family: str
):
    (found,) = started(depth_checkpoint(family)).run([Request((picture(8, 80, 100),), PAIR)])
    first, second = found.data["points"]
    # An untrained network may see a plane: its depths then differ by less than nearness resolves.
    assert (first["depth_m"] - second["depth_m"]) * (first["depth_0_1"] - second["depth_0_1"]) <= 0
    assert " m" in found.text.splitlines()[-1]


def test_a_second_relative_family_has_no_metres(depth_checkpoint: Callable[[str], Path]):
    (found,) = started(depth_checkpoint("dpt")).run([Request((picture(8, 80, 100),), PAIR)])
    assert set(found.data["points"][0]) == {"label", "x_px", "y_px", "depth_0_1"}


def test_the_learned_backend_survives_odd_shapes_and_refuses_strips(depth_checkpoint: Callable[[str], Path]):
    backend = started(depth_checkpoint("depth_anything"))
    corner = DepthArgs(points=(PointArg(x=0, y=0),))
    for size in ((1, 1), (3, 20), (1500, 1200)):
        (found,) = backend.run([Request((picture(9, *size),), corner)])
        assert found.pictures[0].pixels.shape == (*size, 3)
    with pytest.raises(ToolError, match="too elongated"):
        backend.run([Request((picture(9, 1, 40),), corner)])


def test_a_large_image_is_reduced_and_points_stay_in_its_own_pixels(depth_checkpoint: Callable[[str], Path]):
    made = item("Relative_Depth", 0, 3)
    large = cv2.resize(made.images[0], None, fx=4, fy=4, interpolation=cv2.INTER_LINEAR)
    points = tuple(PointArg(x=4 * x, y=4 * y) for x, y in made.facts.points)
    request = Request((large,), DepthArgs(points=points))
    assert max(clean_image(request).shape) == 1024
    for backend in (DepthCues(), started(depth_checkpoint("depth_anything"))):
        (found,) = backend.run([request])
        (small,) = backend.run(
            [Request(made.images, DepthArgs(points=tuple(PointArg(x=x, y=y) for x, y in made.facts.points)))]
        )
        assert found.pictures[0].pixels.shape == large.shape
        for a, b in zip(found.data["points"], small.data["points"], strict=True):
            assert a["x_px"] == 4 * b["x_px"]
            assert a["depth_0_1"] == pytest.approx(b["depth_0_1"], abs=0.1)


def test_a_configuration_of_older_versions_has_no_scale(depth_checkpoint: Callable[[str], Path], tmp_path: Path):
    for family, refused in (("depth_anything", False), ("depth_anything_metric", True)):
        folder = Path(shutil.copytree(depth_checkpoint(family), tmp_path / family))
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"max_depth": None}))
        if refused:
            with pytest.raises(WeightsError, match="names no max_depth"):
                started(folder)
        else:
            assert started(folder).run([Request((picture(0, 60, 60),), DepthArgs())])


def test_a_damaged_or_absent_checkpoint_is_refused(depth_checkpoint: Callable[[str], Path], tmp_path: Path):
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
        LearnedDepth().run([Request((picture(0, 9, 9),), DepthArgs())])


@pytest.mark.system
@pytest.mark.shared_data
def test_published_items(shared_data: Path):
    rows = pq.read_table(shared_data / "blink" / "Relative_Depth" / "val-00000-of-00001.parquet").to_pylist()
    cv2.setNumThreads(1)
    points, sure = 0.0, []
    # The bench prints the number of all 62.
    for row in (rows := rows[::3]):
        found = ask_marked(decode(row["image_1"]["bytes"], row["idx"]))
        right = found.data["nearer"] == row["answer"][1]
        points += 0.5 if found.data["nearer"] is None else right
        if found.confidence >= 0.8:
            sure.append(right)
    assert points / len(rows) >= 0.68
    assert len(sure) >= 3
    assert sum(sure) / len(sure) >= 0.8
