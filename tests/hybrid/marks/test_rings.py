"""Ring scores: computed sample by sample from the definition, bounds that make most scores unnecessary, and peaks."""

import numpy as np
import numpy.typing as npt
import pytest

from hybrid.core.types import Box
from hybrid.marks.ring_circles import ANGLES, CALM_GAIN, FLOOR, MARGIN, MID_RADII, MIN_VISIBLE, SIDE_PX, Circles
from hybrid.marks.ring_field import FieldWindow, RingField
from hybrid.marks.rings import _find_peaks_of_radius, find_rings


def picture(seed: int, height: int = 120, width: int = 150) -> npt.NDArray[np.uint8]:
    """Return smooth colours with noise and two drawn rings, one of them cut by the border."""
    import cv2

    rng = np.random.default_rng(seed)
    rough = cv2.GaussianBlur(rng.normal(size=(height, width, 3)), (0, 0), 1 + 6 * (seed % 2))
    pixels = np.clip(128 + rough * (30 / rough.std()), 0, 255).astype(np.uint8)
    cv2.circle(pixels, (60, 50), 9, (255, 0, 0), 2)
    cv2.circle(pixels, (width - 4, 70), 11, (255, 255, 255), 2)
    return np.asarray(pixels, np.uint8)


def defined_score(pixels: npt.NDArray[np.uint8], hidden: Box | None, x: int, y: int, radius: int) -> float:
    """Compute the score at one centre as the module's docstring defines it, in float64."""
    import cv2

    red, green, blue = np.moveaxis(cv2.GaussianBlur(pixels, (3, 3), 0.6).astype(float), 2, 0)
    planes = np.stack([0.299 * red + 0.587 * green + 0.114 * blue, red - (green + blue) / 2, (green - blue) / 2])
    values, shows = [], []
    for at in (max(0, radius - SIDE_PX), radius, radius + SIDE_PX):
        turns = np.arange(ANGLES) * 2 * np.pi / ANGLES
        places = [(y + round(at * np.sin(turn)), x + round(at * np.cos(turn))) for turn in turns]
        inside = np.array([0 <= row < pixels.shape[0] and 0 <= column < pixels.shape[1] for row, column in places])
        if hidden is not None:
            covered = [hidden.x0 <= column < hidden.x1 and hidden.y0 <= row < hidden.y1 for row, column in places]
            inside &= ~np.array(covered)
        values.append(
            np.array([planes[:, r, c] if ok else np.zeros(3) for (r, c), ok in zip(places, inside, strict=True)])
        )
        shows.append(inside)
    spreads = [float(np.sqrt(v[s].var(axis=0).sum())) if s.any() else 0.0 for v, s in zip(values, shows, strict=True)]
    steps, visible = [], [shows[1].mean()]
    for side in (0, 2):
        pair = shows[1] & shows[side]
        mean = np.abs(values[1] - values[side])[pair].mean(axis=0) if pair.any() else np.zeros(3)
        steps.append(float(np.linalg.norm(mean)))
        visible.append(pair.mean())
    around, spread, least = min(spreads[0], spreads[2]), spreads[1], min(visible)
    calm = max(0.0, around - spread) / (around + FLOOR)
    score = min(1.0, min(steps) / (min(steps) + 2 * spread + FLOOR) * (1 + CALM_GAIN * calm))
    return score * (0.75 + 0.25 * least) if least >= MIN_VISIBLE else 0.0


@pytest.mark.system
@pytest.mark.parametrize("hidden", [None, Box(50, 40, 64, 58)])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_what_is_defined(seed: int, hidden: Box | None) -> None:
    pixels = picture(seed)
    field = RingField(pixels, [] if hidden is None else [hidden])
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 120, 25), rng.integers(0, 150, 25)
    for radii in ([3], [9, 10], [17, 18, 19], list(MID_RADII)):
        scores = field.scores(rows, columns, radii)
        expected = [[defined_score(pixels, hidden, x, y, r) for x, y in zip(columns, rows, strict=True)] for r in radii]
        assert scores == pytest.approx(np.array(expected), abs=1e-4)
        for number, radius in enumerate(radii):
            assert (field.scores_by_radius(rows, columns, np.full(25, radius)) == scores[number]).all()


@pytest.mark.parametrize("hidden", [None, Box(50, 40, 64, 58)])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_every_score(seed: int, hidden: Box | None) -> None:
    field = RingField(picture(seed), [] if hidden is None else [hidden])
    at = FieldWindow(0, 0, 150, 120)
    rows, columns = (part.ravel() for part in np.mgrid[:120, :150])
    for radii in ([3], [8, 9], list(MID_RADII)):
        low, high = field.bounds(at, radii)
        for start in range(0, rows.size, 3000):
            part = slice(start, start + 3000)
            scores = field.scores(rows[part], columns[part], radii)
            assert (low.reshape(len(radii), -1)[:, part] <= scores).all()
            assert (high.reshape(len(radii), -1)[:, part] >= scores).all()
        # Bounds that exclude nothing would be useless.
        assert float(np.median(high - low)) < 0.05


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("under", [None, 62.0])
@pytest.mark.parametrize("radii", [(9, 10, 11), (10,)])
@pytest.mark.parametrize("least", [0.3, 0.05])
def test_peaks_are_those_of_all_scores(count: int, under: float | None, radii: tuple[int, ...], least: float) -> None:
    for seed in range(3):
        field, at = RingField(picture(seed)), FieldWindow(20, 0, 150, 100)
        rows, columns = (part.ravel() for part in np.mgrid[0:100, 20:150])
        aside = 0.0 if under is None else 0.035 * np.abs(np.arange(20, 150) - under)
        expected = []
        for radius in radii:
            scores = field.scores(rows, columns, [radius]).reshape(100, 130).copy()
            for _ in range(count):
                row, column = divmod(int((scores - aside).argmax()), 130)
                if scores[row, column] < least:
                    break
                expected.append((column + 20, row, radius))
                around = (
                    slice(max(0, row - radius), row + radius + 1),
                    slice(max(0, column - radius), column + radius + 1),
                )
                scores[around] = 0
        rings = find_rings(field, at, radii, count, under, least=least)
        assert expected
        assert sorted((ring.x, ring.y, ring.mid_radius_px) for ring in rings) == sorted(expected)


@pytest.mark.parametrize("seed", range(5))
def test_peaks_of_one_radius_are_apart(seed: int) -> None:
    scores = np.random.default_rng(seed).random((40, 50)).astype(np.float32)
    left, expected = scores.copy(), []
    for _ in range(12):
        row, column = divmod(int(left.argmax()), 50)
        if left[row, column] < 0.8:
            break
        expected.append((row, column, float(left[row, column])))
        left[max(0, row - 6) : row + 7, max(0, column - 6) : column + 7] = 0
    assert 5 < len(expected) <= 12
    # Bounds that are equal are scores already, so the field is not read.
    bounds = scores.copy(), scores.copy()
    field = RingField(picture(0))
    assert _find_peaks_of_radius(field, FieldWindow(0, 0, 50, 40), 6, bounds, 12, 0.8) == expected


@pytest.mark.parametrize("radii", [[3], [10], [8, 9]])
def test_both_ways_to_compute_bounds_agree(radii: list[int]) -> None:
    field = RingField(picture(1))
    inner = FieldWindow(25, 25, 120, 90)
    circles, far = Circles.of(tuple(radii)), max(radii) + SIDE_PX
    shifted, sampled = (
        bounds(inner, circles, far) for bounds in (field._bounds_by_shifting, field._bounds_by_sampling)
    )
    assert all((first == second).all() for first, second in zip(shifted, sampled, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_planes_are_luma_and_halves_of_differences(seed: int) -> None:
    import cv2

    pixels = np.random.default_rng(seed).integers(0, 256, (40, 50, 3)).astype(np.uint8)
    red, green, blue = cv2.split(cv2.GaussianBlur(pixels, (3, 3), 0.6).astype(np.float32))
    expected = np.stack([0.299 * red + 0.587 * green + 0.114 * blue, red - (green + blue) / 2, (green - blue) / 2])
    field = RingField(pixels)
    assert (field.prepared.planes[:, MARGIN:-MARGIN, MARGIN:-MARGIN] == expected).all()
    assert not field.colourless


@pytest.mark.parametrize(("x", "y"), [(0, 0), (16, 32), (5, 7), (49, 39)])
def test_one_coloured_place_makes_a_picture_colourful(x: int, y: int) -> None:
    pixels = np.full((40, 50, 3), 90, np.uint8)
    assert RingField(pixels).colourless
    pixels[y, x] = 255, 0, 0
    assert not RingField(pixels).colourless


def test_a_field_like_another_has_its_planes_and_its_own_hidden_areas() -> None:
    pixels, hidden = picture(0), [Box(50, 40, 64, 58)]
    rows, columns = (part.ravel() for part in np.mgrid[30:70, 40:80])
    first = RingField(pixels)
    scores = first.scores(rows, columns, [9])
    like = RingField(pixels, hidden, first)
    assert (like.scores(rows, columns, [9]) == RingField(pixels, hidden).scores(rows, columns, [9])).all()
    assert (first.scores(rows, columns, [9]) == scores).all()
    assert not (like.scores(rows, columns, [9]) == scores).all()


def test_radii_that_are_not_consecutive_are_refused() -> None:
    with pytest.raises(ValueError, match="consecutive"):
        RingField(picture(0)).scores(np.array([5]), np.array([5]), [4, 6])
