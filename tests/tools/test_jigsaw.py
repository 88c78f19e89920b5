"""Jigsaw on generated puzzles with a known answer, on shapes it must refuse, and on published items."""

from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.errors import ToolError
from hybrid.images import decode
from hybrid.tool import Pixels, Request
from tools.jigsaw import TOOL, JigsawArgs, Place, SeamCosts, compose, correlation, decide, fit_pieces, place, solve


def scene(seed: int, height: int, width: int) -> Pixels:
    """A smooth coloured picture with fine texture."""
    rng = np.random.default_rng(seed)
    coarse = cv2.resize(rng.uniform(40, 215, (5, 6, 3)), (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(coarse + rng.normal(0, 3, (height, width, 3)), 0, 255).astype(np.uint8)


def puzzle(seed: int, height: int = 48, width: int = 64, count: int = 3, right: int = 1) -> tuple[Pixels, ...]:
    """Reference with its lower-right quarter black, then `count` candidates; `right` (from 0) is the true one."""
    whole = scene(seed, 2 * height, 2 * width)
    pieces = [scene(1000 + seed * 10 + n, height, width) for n in range(count)]
    pieces[right] = whole[height:, width:].copy()
    reference = whole.copy()
    reference[height:, width:] = 0
    return (reference, *pieces)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(16, 60), st.integers(16, 60), st.integers(2, 4), st.data())
def test_the_true_piece_wins_wherever_it_stands(seed: int, height: int, width: int, count: int, data: st.DataObject):
    right = data.draw(st.integers(0, count - 1))
    found = solve(puzzle(seed, height, width, count, right))
    assert found.data["best"] == right
    assert len(found.data["candidates"]) == count
    assert 0.5 < found.confidence <= 0.99
    assert 0 < found.data["margin_0_1"] <= 1
    assert f"Image {right + 2} continues" in found.text


@pytest.mark.parametrize("trim", [1, 2, 4])
def test_pieces_cut_on_all_sides_are_placed_and_still_fit(trim: int):
    images = puzzle(3, 80, 90, 3, 2)
    cut = (images[0], *(piece[trim:-trim, trim:-trim] for piece in images[1:]))
    fitted = fit_pieces(cut)
    assert [at for _, at, _ in fitted] == [Place(90 + trim, 80 + trim)] * 3
    assert solve(cut).data["best"] == 2
    by_argument = solve(images, trim_px=trim)
    assert by_argument.data == solve(cut).data


def test_the_picture_is_the_whole_puzzle_with_the_piece_in_place():
    images = puzzle(5, 30, 40, 2, 0)
    before = [image.copy() for image in images]
    picture = solve(images).pictures[0]
    assert picture.box is not None
    assert (picture.of, picture.box.x1, picture.box.y1) == (0, 80, 60)
    assert np.array_equal(picture.pixels[30:, 40:], images[1])
    assert np.array_equal(picture.pixels[:30], images[0][:30])
    assert all(np.array_equal(a, b) for a, b in zip(before, images, strict=True))


def test_a_bright_frame_on_wrong_pieces_is_not_needed():
    images = puzzle(7, 50, 50, 2, 1)
    framed = images[2].copy()
    framed[0], framed[-1], framed[:, 0], framed[:, -1] = 255, 255, 255, 255
    assert solve((images[0], images[1], framed), trim_px=2).data["best"] == 1


def test_equal_pieces_are_undecided_at_chance():
    reference, first, _ = puzzle(1, count=2)
    found = solve((reference, first, first.copy(), first.copy()))
    assert found.data["best"] is None
    assert found.confidence == pytest.approx(1 / 3)
    assert found.pictures == ()
    assert "do not tell" in found.text


def test_flat_pictures_are_undecided_not_a_crash():
    reference = np.full((40, 40, 3), 128, np.uint8)
    reference[20:, 20:] = 0
    flat = np.full((20, 20, 3), 128, np.uint8)
    assert solve((reference, flat, flat)).data["best"] is None


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (np.zeros((1, 1, 3), np.uint8), "image 3 is 1 x 1 px"),
        (np.zeros((48, 40, 3), np.uint8), "expected half the width"),
        (np.zeros((60, 64, 3), np.uint8), "64 x 48 px"),
    ],
)
def test_a_piece_of_another_size_is_refused_by_name(candidate: Pixels, words: str):
    reference, first, _ = puzzle(1, count=2)
    with pytest.raises(ToolError, match=words):
        solve((reference, first, candidate))


def test_a_reference_without_a_hole_is_refused():
    with pytest.raises(ToolError, match="lower-right quarter missing"):
        solve((scene(1, 96, 128), scene(2, 48, 64), scene(3, 48, 64)))


@pytest.mark.parametrize("side", [1, 2, 3])
def test_tiny_references_are_refused(side: int):
    tiny = np.zeros((side, side, 3), np.uint8)
    with pytest.raises(ToolError, match="jigsaw"):
        solve((tiny, tiny, tiny))


def test_a_trim_that_leaves_nothing_is_refused():
    with pytest.raises(ToolError, match="trim_px=24"):
        solve(puzzle(1), trim_px=24)
    with pytest.raises(ValidationError):
        JigsawArgs(trim_px=-1)


def test_jpeg_ringing_in_the_hole_is_tolerated():
    images = puzzle(11, 64, 64, 2, 0)
    coded = cv2.imencode(".jpg", images[0], [cv2.IMWRITE_JPEG_QUALITY, 60])[1]
    assert solve((cv2.imdecode(coded, cv2.IMREAD_COLOR), *images[1:])).data["best"] == 0


@pytest.mark.parametrize(("full", "part", "corner"), [((96, 128), (48, 64), (48, 64)), ((97, 127), (48, 64), (49, 63))])
def test_place_of_odd_sizes(full: tuple[int, int], part: tuple[int, int], corner: tuple[int, int]):
    at = place(full, part, 2)
    assert (at.y, at.x) == corner


unit = st.floats(0, 60, allow_nan=False)
fits = st.lists(st.builds(SeamCosts, l1=unit, ncc=st.floats(-1, 1), step_ratio=unit), min_size=2, max_size=4)


@given(fits)
def test_a_verdict_is_a_probability_and_does_not_depend_on_the_order(costs: list[SeamCosts]):
    verdict = decide(costs)
    turned = decide(costs[::-1])
    assert 1 / len(costs) <= verdict.confidence <= 0.99
    assert 0 <= verdict.margin <= 1
    assert turned.votes == verdict.votes
    assert turned.confidence == pytest.approx(verdict.confidence)
    if verdict.best is not None:
        assert verdict.votes >= 1


def test_more_votes_beat_a_larger_margin_and_unanimity_is_surer():
    split = decide([SeamCosts(5, 0.9, 2), SeamCosts(6, 0.8, 1.9)])
    clear = decide([SeamCosts(5, 0.9, 2), SeamCosts(6, 0.8, 2.1)])
    assert (split.best, split.votes) == (0, 2)
    assert (clear.best, clear.votes) == (0, 3)
    assert clear.confidence > split.confidence


@given(st.integers(0, 10_000), st.integers(8, 40))
def test_correlation_is_bounded_symmetric_and_one_with_itself(seed: int, length: int):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, length, 3)).astype(np.float32)
    assert correlation(first, first) == pytest.approx(1, abs=1e-5)
    assert correlation(first, second) == pytest.approx(correlation(second, first), abs=1e-6)
    assert -1 <= correlation(first, second) <= 1
    assert correlation(first, np.zeros_like(first)) == 0


def test_compose_makes_a_new_array():
    reference, piece = np.zeros((16, 16, 3), np.uint8), np.ones((8, 8, 3), np.uint8)
    whole = compose(reference, piece, Place(8, 8))
    assert whole.sum() == piece.sum()
    assert reference.sum() == 0


def test_the_backend_answers_each_request_with_its_own_arguments():
    backend = TOOL.backend("classical").make()
    backend.setup("cpu", None)
    images = puzzle(2, count=2, right=1)
    plain, cut = backend.run([Request(images, JigsawArgs()), Request(images, JigsawArgs(trim_px=2))])
    assert plain.data == solve(images).data
    assert cut.data == solve(images, 2).data != plain.data
    assert len(plain.text.splitlines()) <= 6
    assert max(len(line) for line in plain.text.splitlines()) <= 160


@pytest.mark.shared_data
@pytest.mark.parametrize("cut", [0, 2])
def test_published_puzzles(shared_data: Path, cut: int):
    rows = pq.read_table(shared_data / "blink" / "Jigsaw" / "val-00000-of-00001.parquet").to_pylist()
    right = 0
    for row in rows:
        images = [decode(row[f"image_{n}"]["bytes"], row["idx"]) for n in (1, 2, 3)]
        size = images[1].shape[0]
        pieces = [piece[cut : size - cut, cut : piece.shape[1] - cut] for piece in images[1:]]
        right += solve([images[0], *pieces]).data["best"] == "AB".index(row["answer"][1])
    assert right >= (75 if cut == 0 else 74)
    assert len(rows) == 75
