"""Warped pairs: ground truth for every pixel, occlusion, camera motion and light."""

import io

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from bench._accuracy import bins, by_confidence, format_share
from bench.light_change import DIFFICULTIES, LIGHTS, relit
from bench.pair_bench import Matcher, MatchStore
from bench.warped_pairs import KINDS, photographs, points_of, warped_pair
from hybrid.core.errors import HybridError
from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import render
from tools._shared.reflection import match_either_hand
from tools._shared.view_matches import Matches, MatchView, view_of

SIZE = (240, 180)
SCENE = render(
    random_scene(np.random.default_rng(4)), random_camera(np.random.default_rng(4), *SIZE), np.random.default_rng(4)
).rgb


def smooth() -> np.ndarray:
    """Return smooth colours, so that a position half a pixel away has almost the same colour."""
    small = np.random.default_rng(2).integers(40, 216, (9, 12, 3)).astype(np.uint8)
    return np.asarray(cv2.resize(small, SIZE, interpolation=cv2.INTER_CUBIC), np.uint8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_a_pair_follows_from_its_seed(kind, difficulty) -> None:
    first, second = (warped_pair(np.random.default_rng(6), SCENE, kind, difficulty) for _ in range(2))
    assert np.array_equal(first.images[1], second.images[1])
    assert (
        first.direction
        in {"planar": (None,), "parallax": ("left", "right"), "straight": ("up", "down", "forward", "backward")}[kind]
    )
    (x, y), spots = points_of(np.random.default_rng(0), first)
    assert spots[0] == tuple(first.position_in_second[int(y), int(x)].tolist())
    values = [np.hypot(a - spots[0][0], b - spots[0][1]) for a, b in spots[1:]]
    assert min(values) > 0.08 * np.hypot(*first.images[1].shape[:2])


def test_light_changes_grow_and_move_nothing() -> None:
    pixels = smooth()
    results = []
    for difficulty in DIFFICULTIES:
        changed = [relit(np.random.default_rng(seed), pixels, LIGHTS[difficulty]) for seed in range(12)]
        assert {(item.shape, item.dtype) for item in changed} == {(pixels.shape, pixels.dtype)}
        results.append(np.mean([np.abs(entry.astype(float) - pixels).mean() for entry in changed]))
    assert results == sorted(results)
    assert results[2] > 3 * results[0]


def encoded(level: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (level, level, level)).save(file, "PNG")
    return file.getvalue()


def test_photographs_of_a_table_are_those_of_a_folder_in_one_order(tmp_path) -> None:
    names = ("q_10", "q_2", "q_1")
    rows = [{"idx": name, "image_1": {"bytes": encoded(level)}} for level, name in enumerate(names)]
    (tmp_path / "table").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "table" / "val.parquet")
    (tmp_path / "files").mkdir()
    for level, name in enumerate(names):
        (tmp_path / "files" / f"{name}.png").write_bytes(encoded(level))
    assert photographs(tmp_path / "table") == photographs(tmp_path / "files") == [encoded(2), encoded(0), encoded(1)]
    (tmp_path / "none").mkdir()
    with pytest.raises(HybridError, match="no photographs"):
        photographs(tmp_path / "none")


def counting(version: str, names: list[str]) -> Matcher:
    """Return a matcher that counts its calls."""

    def match(views: tuple[MatchView, MatchView]) -> Matches:
        names.append(version)
        return match_either_hand(*views)

    return Matcher("counting", version, match)


def test_kept_matches_are_of_the_same_views_and_the_same_matcher(tmp_path) -> None:
    store, views = MatchStore(tmp_path), (view_of(SCENE), view_of(SCENE[:, ::-1].copy()))
    names: list[str] = []
    item, other = counting("1", names), counting("2", names)
    first, match = store.match(item, views), store.match(item, views)
    assert names == ["1"]
    assert np.array_equal(first.matches.first, match.matches.first)
    assert (first.matches.matcher, first.seconds) == (match.matches.matcher, match.seconds)
    store.match(item, (views[1], views[0]))
    store.match(other, views)
    assert names == ["1", "1", "2"]
    MatchStore(None).match(item, views)
    assert names == ["1", "1", "2", "1"]


def test_answers_are_counted_by_confidence() -> None:
    answers = [(0.5, False), (0.55, True), (0.94, True), (0.95, True), (1.0, False)]
    rows = [(item.low, item.right, item.n) for item in by_confidence(answers)]
    assert rows == [(0.0, 0, 1), (0.55, 1, 1), (0.9, 1, 1), (0.95, 1, 2)]
    assert bins(answers[3:]) == "{confidence = 0.95, right = 1, n = 2}"
    assert format_share(8, 10).startswith("0.800 [0.49, 0.94] 8/10")
