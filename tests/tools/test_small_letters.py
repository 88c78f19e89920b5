"""Small letters equal those of a plain computation that compares every candidate with every rendered box."""

import numpy as np
import pytest

from bench.marked_scenes import marked_scene
from hybrid.core.types import Box
from hybrid.marks.drawing import LABELS
from hybrid.marks.letters import MAX_CANDIDATES, Grey, LetterReading, grey_between
from hybrid.tool import Pixels
from tools.markers.small_letters import BLACK, LEAST, MARGIN_PX, PART, SHARE, WHITE, _unit, boxes, small_letters


def plain_letters(grey: Grey) -> list[LetterReading]:
    """Return the readings from all correlations of all candidates."""
    import cv2

    small = cv2.resize(grey, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    black = cv2.boxFilter((small <= BLACK).astype(np.float32), -1, (7, 7)) >= SHARE
    ys, xs = np.nonzero(black & (cv2.dilate(small, np.ones((3, 3), np.uint8)) >= WHITE))
    padded = np.pad(small, MARGIN_PX, "edge")
    fits = {label: np.full((small.shape[0] + 2, small.shape[1] + 2), -1, np.float32) for label in LABELS}
    sizes = {label: np.zeros((*small.shape, 2), np.int64) for label in LABELS}
    for (height, width), (rows, templates) in boxes().items():
        windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width))
        patches = windows[ys + MARGIN_PX - height // 2, xs + MARGIN_PX - width // 2]
        correlations = templates @ _unit(patches.reshape(len(ys), height * width)).T
        for label, part in rows.items():
            fit = correlations[part].max(axis=0, initial=-1)
            better = fit > fits[label][ys + 1, xs + 1]
            y, x = ys[better], xs[better]
            fits[label][y + 1, x + 1], sizes[label][y, x] = fit[better], (height, width)
    best = np.maximum.reduce(list(fits.values()))[1:-1, 1:-1]
    peaks = np.argwhere((best == cv2.dilate(best, np.ones((5, 5), np.uint8))) & (best >= LEAST)).tolist()
    readings = []
    for y, x in sorted(peaks, key=lambda place: -float(best[tuple(place)]))[:MAX_CANDIDATES]:
        near = {label: float(fit[y : y + 3, x : x + 3].max()) for label, fit in fits.items()}
        scores = tuple(sorted(near.items(), key=lambda item: -item[1]))
        height, width = sizes[scores[0][0]][y, x].tolist()
        x0, y0 = 2 * (x - width // 2), 2 * (y - height // 2)
        x1, y1 = x0 + 2 * width, y0 + 2 * height
        box, glyph = Box(x0 - 2, y0 - 2, x1 + 2, y1 + 2), Box(x0 + 3, y0 + 2, x1 - 3, y1 - 2)
        readings.append(LetterReading(glyph, box, scores, False))
    return readings


def candidates_of(grey: Grey) -> int:
    """Count the pixels that may be the middle of a box."""
    import cv2

    small = cv2.resize(grey, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    black = cv2.boxFilter((small <= BLACK).astype(np.float32), -1, (7, 7)) >= SHARE
    return int(np.count_nonzero(black & (cv2.dilate(small, np.ones((3, 3), np.uint8)) >= WHITE)))


def noise(seed: int, height: int, width: int) -> Pixels:
    """Return blocks of black and white of a few pixels, in which boxes occur by chance."""
    import cv2

    rng = np.random.default_rng(seed)
    values = rng.choice([0, 0, 40, 200, 255], (height // 5, width // 5)).astype(np.uint8)
    grey = cv2.resize(values, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.repeat(np.asarray(grey, np.uint8)[:, :, None], 3, axis=2)


@pytest.mark.parametrize("seed", range(6))
def test_skipping_by_bounds_does_not_change_the_letters(seed: int) -> None:
    scene = marked_scene(np.random.default_rng(7000 + seed)).pixels
    for pixels in (scene, noise(seed, 150 + 40 * seed, 250)):
        grey = grey_between(pixels, (0, 255))
        expected = plain_letters(grey)
        found = small_letters(grey)
        assert [(reading.glyph, reading.box) for reading in found] == [
            (reading.glyph, reading.box) for reading in expected
        ]
        for reading, plain in zip(found, expected, strict=True):
            assert dict(reading.scores) == pytest.approx(dict(plain.scores), abs=2e-6)


def test_pictures_of_the_test_have_more_candidates_than_one_part_and_more_letters_than_reported() -> None:
    grey = grey_between(noise(5, 350, 250), (0, 255))
    assert candidates_of(grey) > PART
    assert len(small_letters(grey)) == MAX_CANDIDATES


@pytest.mark.parametrize("level", [0, 128, 255])
def test_even_pictures_have_no_letters(level: int) -> None:
    assert small_letters(np.full((40, 60), level, np.uint8)) == []
