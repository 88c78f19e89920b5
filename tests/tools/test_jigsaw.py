"""Jigsaw on generated puzzles with a known answer, on shapes it must refuse, and on published items."""

from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.core.errors import ToolError
from hybrid.core.images import decode
from hybrid.serving.contract import text_complaints
from hybrid.tool import Pixels
from tools.jigsaw import (
    CONTINUES,
    DOUBTFUL_SEAM,
    RELATED,
    UNSEEN,
    JigsawArgs,
    Opinion,
    SeamCosts,
    correlation,
    decide,
    report,
    solve,
    vote,
    weigh_seams,
)
from tools.jigsaw.checks import CHECKS


def scene(seed: int, height: int, width: int) -> Pixels:
    """Return a smooth coloured picture with fine texture."""
    rng = np.random.default_rng(seed)
    coarse = cv2.resize(rng.uniform(40, 215, (5, 6, 3)), (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(coarse + rng.normal(0, 3, (height, width, 3)), 0, 255).astype(np.uint8)


def puzzle(seed: int, height: int = 48, width: int = 64, count: int = 3, right: int = 1) -> tuple[Pixels, ...]:
    """Return a reference with a black lower-right quarter, then `count` candidates; candidate `right` (from 0) fits."""
    full = scene(seed, 2 * height, 2 * width)
    pieces = [scene(1000 + seed * 10 + n, height, width) for n in range(count)]
    pieces[right] = full[height:, width:].copy()
    reference = full.copy()
    reference[height:, width:] = 0
    return (reference, *pieces)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(16, 60), st.integers(16, 60), st.integers(2, 4), st.data())
def test_the_true_piece_wins_wherever_it_stands(seed: int, height: int, width: int, count: int, data: st.DataObject):
    right = data.draw(st.integers(0, count - 1))
    result = solve(puzzle(seed, height, width, count, right))
    assert result.data["best"] == right
    assert len(result.data["candidates"]) == count
    assert 0.5 < result.confidence <= 0.99
    assert 0 < result.data["margin_0_1"] <= 1
    assert f"Image {right + 2} continues" in result.text


def test_flat_pictures_are_undecided_not_a_crash():
    reference = np.full((40, 40, 3), 128, np.uint8)
    reference[20:, 20:] = 0
    flat = np.full((20, 20, 3), 128, np.uint8)
    assert solve((reference, flat, flat)).data["best"] is None


def test_rounding_does_not_decide_between_pieces_of_one_ground_and_a_faint_line_does():
    reference = np.full((240, 320, 3), 128, np.uint8)
    lined, level = (np.full((120, 160, 3), grey, np.uint8) for grey in (128, 128))
    level[0, ::8] = 129
    for picture, first in ((reference, 180), (lined, 60)):
        picture[first : first + 3] = 134
    reference[120:, 160:] = 0
    evidence = solve((reference, level, lined))
    assert max(row["l1_lab"] for row in evidence.data["candidates"]) < UNSEEN
    assert evidence.data["best"] == 1
    down, across = np.mgrid[:240, :320]
    ramp = np.repeat(((down + across) // 4 + 60)[..., None], 3, axis=2).astype(np.uint8)
    exact, rounded = (ramp[120:, 160:].copy() for _ in range(2))
    rounded[0, ::8] += 1
    ramp[120:, 160:] = 0
    evidence = solve((ramp, rounded, exact))
    assert evidence.data["candidates"][0]["ncc"] > RELATED
    assert evidence.data["best"] is None


def test_noise_with_seams_that_nobody_sees_decides_nothing() -> None:
    # Compression hides the seams, so that only chance distinguishes the pieces.
    for seed in range(4):
        rng = np.random.default_rng((seed, 11))
        images = []
        for _ in range(3):
            noise = np.clip(128 + 40 * rng.normal(size=(64, 64, 1)), 0, 255).astype(np.uint8).repeat(3, axis=2)
            _, data = cv2.imencode(".jpg", noise, [cv2.IMWRITE_JPEG_QUALITY, 10])
            images.append(np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8).copy())
        pieces = [image[32:, 32:].copy() for image in images[1:]]
        images[0][32:, 32:] = 0
        assert solve((images[0], *pieces)).data["best"] is None, seed


def test_a_visible_seam_lowers_the_confidence() -> None:
    reference, piece, other = puzzle(3, count=2, right=0)
    (_, at, _), (_, beside, _) = vote((reference, piece, other))[0]
    confidences = []
    for step in (DOUBTFUL_SEAM, (DOUBTFUL_SEAM + CONTINUES) / 2, CONTINUES):
        fitted = [(piece, at, SeamCosts(3.0, 0.95, step)), (other, beside, SeamCosts(30.0, 0.1, 9.0))]
        confidences.append(weigh_seams((reference, piece, other), fitted).confidence)
    assert confidences == pytest.approx([0.99, 0.745, 0.5])


@pytest.mark.system
def test_four_pieces_and_a_second_opinion_fit_into_the_text_of_a_tool():
    (check,) = (check for check in CHECKS if check.name == "stripes behind an edge 1")
    images = check.pose().images
    assert len(images) == 5
    for opinion in (None, Opinion((0.12, -0.34, -0.56, -0.78), 3, 0.7)):
        assert text_complaints(report(images, vote(images), opinion).text) == []


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


def test_a_trim_that_leaves_nothing_is_refused():
    with pytest.raises(ToolError, match="trim_px=24"):
        solve(puzzle(1), trim_px=24)
    with pytest.raises(ValidationError):
        JigsawArgs(trim_px=-1)


unit = st.floats(0, 60, allow_nan=False)
fits = st.lists(st.builds(SeamCosts, l1=unit, ncc=st.floats(-1, 1), step_ratio=unit), min_size=2, max_size=4)


@given(fits)
def test_a_verdict_is_a_probability_and_does_not_depend_on_the_order(costs: list[SeamCosts]):
    verdict = decide(costs)
    other_rotated = decide(costs[::-1])
    assert 1 / len(costs) <= verdict.confidence <= 0.99
    assert 0 <= verdict.margin <= 1
    assert other_rotated.votes == verdict.votes
    assert other_rotated.confidence == pytest.approx(verdict.confidence)
    if verdict.best is not None:
        assert verdict.votes >= 1


@given(st.integers(0, 10_000), st.integers(8, 40))
def test_correlation_is_bounded_symmetric_and_one_with_itself(seed: int, length: int):
    first, second = np.random.default_rng(seed).normal(size=(2, length, 3)).astype(np.float32)
    assert correlation(first, first) == pytest.approx(1, abs=1e-5)
    assert correlation(first, second) == pytest.approx(correlation(second, first), abs=1e-6)
    assert -1 <= correlation(first, second) <= 1
    assert correlation(first, np.zeros_like(first)) == 0


@pytest.mark.system
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


def _one_over_f(seed: int, height: int, width: int) -> Pixels:
    """Return colour noise whose amplitude falls with the frequency, as that of photographs does."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None])
    frequency[0, 0] = np.inf
    spectrum = np.fft.fft2(rng.normal(size=(height, width, 3)), axes=(0, 1)) / frequency[..., None]
    plane = np.fft.ifft2(spectrum, axes=(0, 1)).real
    return np.asarray(np.clip(128 + 50 * plane / plane.std(), 0, 255), np.uint8)


@pytest.mark.parametrize("seed", range(4))
def test_pieces_of_other_noise_do_not_continue_it(seed: int) -> None:
    pictures = [_one_over_f(10 * seed + n, 240, 320) for n in range(3)]
    reference, corner = pictures[0].copy(), pictures[0][120:, 160:]
    reference[120:, 160:] = 0
    others = [picture[120:, 160:] for picture in pictures[1:]]
    assert solve([reference, *others]).data["best"] is None
    # The noise continues like a texture, so the piece cut from this picture is chosen.
    evidence = solve([reference, others[0], corner])
    assert evidence.data["best"] == 1
    assert evidence.confidence > 0.9
