"""Scores drawn rings of any colour: one colour along the circle that differs from the inside and the outside.

At a centre and a radius, samples on the circle are compared with samples `SIDE_PX` further in and out at the same
angles: `D / (D + 2 s + 12)`, where D is the smaller of the two mean absolute differences and s the standard deviation
along the circle, both over three channels (luma, redness, green minus blue), in grey levels. A texture has a large D
and a large s, a flat area has neither, and a drawn ring has only a large D. In noise and texture a circle can have a
large D by chance, but no lower s than adjacent circles; so the score grows by up to `CALM_GAIN` if s is lower than on
adjacent circles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.marks.drawing import Color
from hybrid.tool import Pixels

Map = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.intp]

# Radii of the middle of a ring's line to try, in pixels.
MID_RADII = tuple(range(3, 20))
ANGLES = 16
# Number of centres scored at once, and of samples bounded at once, chosen to fit the processor's cache.
BAND_PIXELS = 4000
BAND_SAMPLES = 48_000
SHIFTED_PIXELS = 16_000
# Minimum side of a window whose scores are bounded by shifting its area to each sample; in smaller windows the samples
# of each centre are read.
MANY_PX = 64
# Number of circles up to which all centres are scored; with more, only the centres whose bounds allow the best score.
FEW_CIRCLES = 5000
# Score below which a circle is not a ring.
LEAST = 0.05
# Resolution of `RingField.bounds`, per grey level: 16 differences of two channels still fit 16 bits.
EIGHTHS = 8
# Largest effect of rounding to `EIGHTHS` on a step over three channels, and on a spread; `ROUNDING` is the float32
# error of a score.
STEP_ERROR, SPREAD_ERROR = 3**0.5 / EIGHTHS, 3**0.5 / (2 * EIGHTHS)
ROUNDING = 1e-4
CALM_GAIN = 0.4
# Differences in grey levels below this are noise.
FLOOR = 12.0
SIDE_PX = 3
# Difference of channels, in grey levels, below which a picture is greyscale.
COLOURLESS = 8.0
# Smallest visible fraction of a circle that the border cuts.
MIN_VISIBLE = 0.27
# Penalty of a ring's score per pixel of horizontal offset from its letter.
ASIDE_COST = 0.035
_MARGIN = MID_RADII[-1] + SIDE_PX + 1


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring candidate. Its centre and the radius to the middle of its line are in pixels.

    `score` is in 0..1; `luma` (0..255) is that of the line.
    """

    x: float
    y: float
    mid_radius_px: float
    score: float
    color: Color
    luma: float


@dataclass(frozen=True, slots=True)
class FieldWindow:
    """Centres to try, in whole pixels of the image; x1 and y1 exclusive."""

    x0: int
    y0: int
    x1: int
    y1: int


class _PreparedPlanes(NamedTuple):
    """The blurred image (H, W, 3), its padded planes (3, h, w), and whether it is greyscale."""

    soft: Pixels
    planes: Map
    colourless: bool

    @classmethod
    def of(cls, pixels: Pixels) -> _PreparedPlanes:
        """Prepare an image (H, W, 3)."""
        import cv2

        # Blur by half a pixel, because samples are between pixels and an aliased line would flicker along the circle.
        soft = np.asarray(cv2.GaussianBlur(pixels, (3, 3), 0.6), np.uint8)
        padded = np.zeros((3, soft.shape[0] + 2 * _MARGIN, soft.shape[1] + 2 * _MARGIN), np.float32)
        planes = padded[:, _MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
        _write_planes(soft, planes)
        # In a greyscale picture only a ring's luma is left, which does not reveal its original colour. A few pixels
        # show that most pictures have colours.
        return cls(soft, padded, _is_colourless(planes[1:, ::16, ::16]) and _is_colourless(planes[1:]))


def _write_planes(soft: Pixels, planes: Map) -> None:
    """Write luma, redness, and green minus blue of an image (H, W, 3) to `planes` (3, H, W), in grey levels."""
    import cv2

    red, green, blue = cv2.split(soft)
    luma, redness, difference = planes
    np.multiply(red, np.float32(0.299), out=luma)
    part = np.multiply(green, np.float32(0.587), dtype=np.float32)
    luma += part
    luma += np.multiply(blue, np.float32(0.114), out=part)
    # Halves are exact in float32, so the order of these operations does not matter.
    np.multiply(cv2.add(green, blue, dtype=cv2.CV_32F), np.float32(-0.5), out=redness)
    redness += red
    np.multiply(cv2.subtract(green, blue, dtype=cv2.CV_32F), np.float32(0.5), out=difference)


def _is_colourless(planes: Map) -> bool:
    return bool(max(planes.max(initial=0), -planes.min(initial=0)) < COLOURLESS)


class RingField:
    """An image (H, W, 3) prepared for scoring rings."""

    def __init__(self, pixels: Pixels, hidden: Sequence[Box] = (), like: RingField | None = None) -> None:
        """Prepare the planes.

        Args:
            pixels: the image.
            hidden: areas of the image where other marks cover a ring.
            like: a field of the same image, whose planes are used again.
        """
        self.height, self.width = pixels.shape[:2]
        self.prepared: _PreparedPlanes = _PreparedPlanes.of(pixels) if like is None else like.prepared
        self._soft, self._planes = self.prepared.soft, self.prepared.planes
        self.colourless = self.prepared.colourless
        self._shows: npt.NDArray[np.bool_] = np.zeros(self._planes.shape[1:], np.bool_)
        self._shows[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN] = True
        for box in hidden:
            rows, columns = (max(0, round(low)) + _MARGIN for low in (box.y0, box.x0))
            self._shows[rows : max(0, round(box.y1)) + _MARGIN, columns : max(0, round(box.x1)) + _MARGIN] = False

    def window(self, x0: float, y0: float, x1: float, y1: float) -> FieldWindow:
        """Clip bounds to the image."""
        return FieldWindow(
            max(0, int(x0)), max(0, int(y0)), min(self.width, int(np.ceil(x1))), min(self.height, int(np.ceil(y1)))
        )

    def scores(self, rows: Numbers, columns: Numbers, radii: Sequence[int]) -> Map:
        """Return ring scores 0..1 at centres (K,) in pixels of the image, for consecutive radii: (radii, K)."""
        circles = _Circles.of(tuple(radii))
        stride = self._shows.shape[1]
        return self._score_samples(
            (circles.rows * stride + circles.columns)[:, :, None], rows * stride + columns, circles
        )

    def scores_by_radius(self, rows: Numbers, columns: Numbers, radii: Numbers) -> Map:
        """Return ring scores 0..1 at centres (K,) in pixels of the image, with a separate radius each (K,)."""
        circles, alone = _Circles.of(MID_RADII), _Circles.of(MID_RADII[:1])
        stride = self._shows.shape[1]
        three = radii - MID_RADII[0] + np.arange(3)[:, None] * SIDE_PX
        offsets = (circles.rows * stride + circles.columns)[:, three]
        return np.asarray(self._score_samples(offsets, rows * stride + columns, alone)[0])

    def _score_samples(self, offsets: Numbers, centres: Numbers, circles: _Circles) -> Map:
        """Return scores (radii, K) of samples (ANGLES, circles, K or 1) around centres (K,) in the flat planes."""
        index = offsets + centres
        values = self._planes.reshape(3, -1).take(index, axis=1)
        shows = self._shows.ravel().take(index)
        step = circles.step
        contrast = np.abs(values[:, :, step:] - values[:, :, :-step])
        if shows.all():
            spread = np.asarray(np.sqrt(values.var(axis=1).sum(axis=0)))
            return circles.scores(_length(contrast.mean(axis=1)), spread)
        visible = shows.astype(np.float32)
        count = visible.sum(axis=0)
        mean = (values * visible).sum(axis=1) / np.maximum(count, 1)
        squares = ((values - mean[:, None]) ** 2 * visible).sum(axis=1) / np.maximum(count, 1)
        both_visible = visible[:, step:] * visible[:, :-step]
        shared = both_visible.sum(axis=0)
        steps = _length((contrast * both_visible).sum(axis=1) / np.maximum(shared, 1))
        return circles.scores(steps, np.asarray(np.sqrt(squares.sum(axis=0))), (count / ANGLES, shared / ANGLES))

    def bounds(self, at: FieldWindow, radii: Sequence[int]) -> tuple[Map, Map]:
        """Return lower and upper bounds of a window's ring scores (radii, h, w), much faster than `scores`."""
        circles, far = _Circles.of(tuple(radii)), max(radii) + SIDE_PX
        inner = FieldWindow(
            max(at.x0, far), max(at.y0, far), min(at.x1, self.width - far), min(at.y1, self.height - far)
        )
        wide = min(inner.x1 - inner.x0, inner.y1 - inner.y0) >= MANY_PX
        if not wide or not self._is_fully_visible(inner, far):
            return self._bounds_by_sampling(at, circles, far)
        low, high = np.empty((2, len(radii), at.y1 - at.y0, at.x1 - at.x0), np.float32)
        for part in (
            inner,
            replace(at, y1=inner.y0),
            replace(at, y0=inner.y1),
            replace(inner, x0=at.x0, x1=inner.x0),
            replace(inner, x0=inner.x1, x1=at.x1),
        ):
            if part.x1 > part.x0 and part.y1 > part.y0:
                place = slice(part.y0 - at.y0, part.y1 - at.y0), slice(part.x0 - at.x0, part.x1 - at.x0)
                bounds_of = self._bounds_by_shifting if part is inner else self._bounds_by_sampling
                low[:, *place], high[:, *place] = bounds_of(part, circles, far)
        return low, high

    def _window_slices(self, at: FieldWindow, far: int) -> tuple[slice, slice]:
        """Return rows and columns of the padded planes within `far` of the centres."""
        return slice(at.y0 + _MARGIN - far, at.y1 + far + _MARGIN), slice(at.x0 + _MARGIN - far, at.x1 + far + _MARGIN)

    def _is_fully_visible(self, at: FieldWindow, far: int) -> bool:
        return bool(self._shows[self._window_slices(at, far)].all())

    def _bounds_by_shifting(self, at: FieldWindow, circles: _Circles, far: int) -> tuple[Map, Map]:
        """Return the bounds of a large window without hidden samples, by shifting its area to each sample."""
        eighths = np.rint(np.moveaxis(self._planes[:, *self._window_slices(at, far)], 0, 2) * EIGHTHS).astype(
            np.int16, order="C"
        )
        energy_of = _add_channels(np.square(eighths, dtype=np.int32))
        band = max(1, SHIFTED_PIXELS // (at.x1 - at.x0))
        bands = [
            circles.bounds_of(*circles.sum_shifted(eighths[rows], energy_of[rows], far), None)
            for y in range(0, at.y1 - at.y0, band)
            for rows in [slice(y, y + band + 2 * far)]
        ]
        shape = circles.count, -1, at.x1 - at.x0
        low, high = (
            np.concatenate([part.reshape(shape) for part in parts], axis=1) for parts in zip(*bands, strict=True)
        )
        return low, high

    def _bounds_by_sampling(self, at: FieldWindow, circles: _Circles, far: int) -> tuple[Map, Map]:
        """Return the bounds of any window, by reading the samples of all circles at an angle at once."""
        area = self._window_slices(at, far)
        shows = self._shows[area]
        # Pack three channels and a 1 into one 64-bit number, so that a sample is a single read. Hidden pixels are 0.
        eighths = np.ones((*shows.shape, 4), np.int16)
        eighths[..., :3] = np.rint(np.moveaxis(self._planes[:, *area], 0, 2) * EIGHTHS)
        eighths *= shows[..., None]
        # Mask of a pixel's numbers: all ones if it is visible, else ones only in the last number.
        bits = np.full(eighths.shape, -1, np.int16)
        bits[..., :3] *= shows[..., None]
        energy_of = _add_channels(np.square(eighths, dtype=np.int32))
        packed, visible = eighths.view(np.int64)[..., 0], bits.view(np.int64)[..., 0]
        band = max(1, BAND_SAMPLES // (circles.rows.shape[1] * (at.x1 - at.x0)))
        bands = [
            circles.bounds(packed[rows], energy_of[rows], visible[rows], far)
            for y in range(0, at.y1 - at.y0, band)
            for rows in [slice(y, y + band + 2 * far)]
        ]
        low, high = (np.concatenate(parts, axis=1) for parts in zip(*bands, strict=True))
        return low, high

    def rgb(self, x: float, y: float, mid_radius: float) -> tuple[float, float, float]:
        """Return the mean colour along a circle, each 0..255."""
        red, green, blue = self._line(x, y, mid_radius).mean(axis=0)
        return float(red), float(green), float(blue)

    def _line(self, x: float, y: float, radius: float) -> Map:
        across, down = _fine_circle(radius)
        columns, rows = np.rint(x + across).astype(int), np.rint(y + down).astype(int)
        if not (radius <= x < self.width - radius - 1 and radius <= y < self.height - radius - 1):
            inside = (columns >= 0) & (columns < self.width) & (rows >= 0) & (rows < self.height)
            columns, rows = columns[inside], rows[inside]
        return np.asarray(self._soft[rows, columns], np.float32)

    def share_apart(self, x: float, y: float, radius: float) -> float:
        """Return the share of a circle, 0..1, where both sides differ from it by at least half their mean difference.

        A circle through the gap between a ring and a letter differs from both sides only in this gap.
        """
        angles = np.arange(4 * ANGLES) * (np.pi / 2 / ANGLES)
        rows, columns = (
            np.rint(at + np.multiply.outer((radius, max(0, radius - SIDE_PX), radius + SIDE_PX), turn(angles))).astype(
                int
            )
            for at, turn in ((y, np.sin), (x, np.cos))
        )
        luma = self._planes[0, rows + _MARGIN, columns + _MARGIN]
        contrast = np.abs(luma[1:] - luma[0])
        return float((contrast >= contrast.mean(axis=1, keepdims=True) / 2).all(axis=0).mean())

    def extent(self, x: float, y: float, mid_radius: float) -> tuple[float, float]:
        """Return inner and outer radius of the line in pixels: where its colour is half way to the surroundings."""
        color = self._line(x, y, mid_radius).mean(axis=0)

        def contrast_at(radius: float) -> float:
            line = self._line(x, y, radius)
            return float(np.linalg.norm(line - color, axis=1).mean()) if len(line) else float("inf")

        def reach(direction: int, limit: float) -> float:
            far = contrast_at(max(0.0, mid_radius + direction * (SIDE_PX + 1)))
            radius = mid_radius
            while abs(radius - mid_radius) < limit and contrast_at(radius + 0.5 * direction) < 0.5 * far:
                radius += 0.5 * direction
            return radius

        return max(0.0, reach(-1, min(4.0, mid_radius))), reach(1, 4.0)


@dataclass(frozen=True, eq=False)
class _Circles:
    """Circles of consecutive radii on which a ring's line is sought, and circles inside and outside of each.

    `rows` and `columns` (ANGLES, circles) are the offsets of their samples from a centre in the padded planes. Circle
    `i + step` is `SIDE_PX` outside of circle i, so the line of radius number n is circle `n + step`.
    """

    rows: Numbers
    columns: Numbers
    count: int
    step: int

    @staticmethod
    @lru_cache(maxsize=256)
    def of(radii: tuple[int, ...]) -> _Circles:
        """Make the circles of these radii, in pixels. Raises `ValueError` if they are not consecutive or too small."""
        if radii != tuple(range(radii[0], radii[-1] + 1)) or radii[0] < SIDE_PX:
            raise ValueError(f"radii of rings must be consecutive and at least {SIDE_PX} px, not {radii}")
        needed = sorted({radius + side for radius in radii for side in (-SIDE_PX, 0, SIDE_PX)})
        angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
        columns, rows = (
            np.array([[round(radius * float(turn(angle))) + _MARGIN for radius in needed] for angle in angles])
            for turn in (np.cos, np.sin)
        )
        return _Circles(rows, columns, len(radii), min(len(radii), SIDE_PX))

    def bounds(
        self, packed: npt.NDArray[np.int64], energy_of: npt.NDArray[np.int32], bits: npt.NDArray[np.int64], far: int
    ) -> tuple[Map, Map]:
        """Return lower and upper bounds of ring scores (radii, h, w) from integers in eighths of a grey level.

        Args:
            packed: three channels and a 1 for the centres and `far` pixels around them (h + 2 far, w + 2 far).
            energy_of: the sum of the channels' squares.
            bits: all ones for visible pixels, else those of the last number of `packed`.
            far: the largest offset of a sample.
        """
        height, width = packed.shape[0] - 2 * far, packed.shape[1] - 2 * far
        hidden = not (bits == -1).all()
        sums, energy, differences = self._sum_samples(packed, energy_of, bits if hidden else None, far)
        counts = None
        if hidden:
            counts = sums[..., 3].astype(np.float32)
            # Two samples differ by 1 in the last number if one of them is hidden.
            shared = np.asarray((counts[self.step :] + counts[: -self.step] - differences[..., 3]) / 2, np.float32)
        low, high = self.bounds_of(sums, energy, differences, None if counts is None else (counts, shared))
        return low.reshape(-1, height, width), high.reshape(-1, height, width)

    def bounds_of(
        self,
        sums: npt.NDArray[np.int16],
        energy: npt.NDArray[np.int32],
        differences: npt.NDArray[np.uint16],
        visible: tuple[Map, Map] | None,
    ) -> tuple[Map, Map]:
        """Return lower and upper bounds of ring scores (radii, K) from sums of samples in eighths of a grey level.

        For the sums see `_sum_samples`. `visible` are the numbers of visible samples (circles, K) and of samples that
        circle i shares with circle i + step (circles - step, K); None if all are visible.
        """
        counts: Map | np.float32 = np.float32(ANGLES)
        shared: Map | np.float32 = np.float32(ANGLES)
        shares: tuple[Map, Map] | None = None
        if visible is not None:
            shares = np.asarray(visible[0] / ANGLES, np.float32), np.asarray(visible[1] / ANGLES, np.float32)
            counts, shared = np.maximum(visible[0], 1), np.maximum(visible[1], 1)
        lengths = np.sqrt(_add_channels(np.square(differences, dtype=np.float32)))
        steps = np.asarray(lengths / (EIGHTHS * shared), np.float32)
        means_squared = _add_channels(np.square(sums, dtype=np.float32)) / counts
        variance = np.maximum(energy.astype(np.float32) - means_squared, 0) / counts
        spread = np.asarray(np.sqrt(variance) / EIGHTHS, np.float32)
        low, high = (self.scores(steps, spread, shares, side) + np.float32(side * ROUNDING) for side in (-1, 1))
        return low, high

    def sum_shifted(
        self, eighths: npt.NDArray[np.int16], energy_of: npt.NDArray[np.int32], far: int
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
        """Sum the samples like `_sum_samples`, but of three channels (h + 2 far, w + 2 far, 3) that are all visible."""
        import cv2

        height, width = eighths.shape[0] - 2 * far, eighths.shape[1] - 2 * far
        count, step = self.rows.shape[1], self.step
        total, energy = np.zeros((count, height, width, 3), np.int16), np.zeros((count, height, width), np.int32)
        differences, contrast = np.zeros((count - step, height, width, 3), np.uint16), np.empty_like(total[0])
        for rows, columns in zip(
            (self.rows + far - _MARGIN).tolist(), (self.columns + far - _MARGIN).tolist(), strict=True
        ):
            shifted = [(slice(y, y + height), slice(x, x + width)) for y, x in zip(rows, columns, strict=True)]
            for number, place in enumerate(shifted):
                cv2.add(total[number], eighths[place], dst=total[number])
                cv2.add(energy[number], energy_of[place], dst=energy[number])
            for number, (first, second) in enumerate(zip(shifted, shifted[step:], strict=False)):
                cv2.absdiff(eighths[first], eighths[second], dst=contrast)
                cv2.add(differences[number], contrast.view(np.uint16), dst=differences[number])
        size = height * width
        return total.reshape(count, size, 3), energy.reshape(count, size), differences.reshape(-1, size, 3)

    def _sum_samples(
        self,
        packed: npt.NDArray[np.int64],
        energy_of: npt.NDArray[np.int32],
        bits: npt.NDArray[np.int64] | None,
        far: int,
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
        """Sum each circle's samples over the angles; arguments as for `bounds`, but `bits` is None if all are visible.

        Returns the sums of the four numbers (circles, K, 4), of the energies (circles, K), and of the absolute
        differences between circle i and circle i + step (circles - step, K, 4).
        """
        import cv2

        height, width = packed.shape[0] - 2 * far, packed.shape[1] - 2 * far
        count, size = self.rows.shape[1], height * width
        windows = np.lib.stride_tricks.sliding_window_view
        packed_at, energy_at = windows(packed, (height, width)), windows(energy_of, (height, width))
        bits_at = None if bits is None else windows(bits, (height, width))
        energy, total = np.zeros((count, height, width), np.int32), np.zeros((count, size * 4), np.int16)
        contrast = np.empty((count - self.step, size * 4), np.int16)
        differences = np.zeros(contrast.shape, np.uint16)
        # Process angle by angle, so that the samples stay in the cache. One indexed read gets the samples of all
        # circles.
        for places in zip(self.rows + far - _MARGIN, self.columns + far - _MARGIN, strict=True):
            values = packed_at[places].reshape(count, size).view(np.int16)
            energy += energy_at[places]
            total += values
            cv2.absdiff(values[self.step :], values[: -self.step], dst=contrast)
            if bits_at is not None:
                seen = bits_at[places].reshape(count, size)
                contrast.view(np.int64)[:] &= seen[self.step :] & seen[: -self.step]
            differences += contrast.view(np.uint16)
        return total.reshape(count, size, 4), energy.reshape(count, size), differences.reshape(-1, size, 4)

    def scores(self, steps: Map, spread: Map, visible: tuple[Map, Map] | None = None, side: int = 0) -> Map:
        """Return ring scores (radii, K) from steps between circles (circles - step, K) and spreads (circles, K).

        Args:
            steps: difference of circle i and circle i + step.
            spread: spread of each circle.
            visible: visible shares of each circle and of each step; None if all are visible.
            side: 0 for the scores; -1 and 1 for lower and upper bounds of the scores, if the values are rounded.
        """
        inside, line, outside = (slice(start, start + self.count) for start in (0, self.step, 2 * self.step))
        step, around = np.minimum(steps[inside], steps[line]), np.minimum(spread[inside], spread[outside])
        middle = spread[line]
        if side:
            step = np.maximum(step + np.float32(side * STEP_ERROR), 0)
            middle = np.maximum(middle - np.float32(side * SPREAD_ERROR), 0)
            around = np.maximum(around + np.float32(side * SPREAD_ERROR), 0)
        score = _score(step, middle, around)
        if visible is None:
            return score
        circles, pairs = visible
        least = np.minimum(np.minimum(circles[line], pairs[inside]), pairs[line])
        # Reduce the score of a partly visible circle, because a short arc fits more positions than a full circle does.
        return np.asarray(np.where(least >= MIN_VISIBLE, score * (0.75 + 0.25 * least), 0), np.float32)


@lru_cache(maxsize=256)
def _fine_circle(radius: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    angles = np.arange(4 * ANGLES) * (np.pi / 2 / ANGLES)
    return radius * np.cos(angles), radius * np.sin(angles)


def _add_channels(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum the first three entries of the last axis: NumPy's reduction takes ten times as long on such a short axis."""
    return np.asarray(values[..., 0] + values[..., 1] + values[..., 2])


def _length(planes: Map) -> Map:
    return np.asarray(np.sqrt((planes**2).sum(axis=0)))


def _score(step: Map, spread: Map, around: Map) -> Map:
    """Return the ring score that the module docstring defines; higher if the line is calmer than its background."""
    calm = np.maximum(0, around - spread) / (around + FLOOR)
    return np.asarray(np.minimum(1, step / (step + 2 * spread + FLOOR) * (1 + CALM_GAIN * calm)), np.float32)


def color_name(rgb: tuple[float, float, float]) -> tuple[Color, float]:
    """Return the nearest of red, white and grey to a ring's mean colour, and the quality of the match, 0..1.

    JPEG keeps a thin line's luma and mixes its chroma with that of the surroundings, so luma decides unless the line is
    clearly red.
    """
    red, green, blue = rgb
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    excess = red - max(green, blue)
    tint = max(rgb) - min(rgb)
    fits: dict[Color, float] = {
        "red": 1 - abs(luma - 80) / 160 - max(0.0, 130 - excess) / 130,
        "white": 1 - abs(luma - 245) / 90 - max(0.0, tint - 40) / 250,
        "grey": 1 - abs(luma - 128) / 90 - max(0.0, tint - 40) / 250,
    }
    name = max(fits, key=lambda color: fits[color])
    return name, min(1.0, max(0.0, fits[name]))


def find_rings(
    field: RingField,
    at: FieldWindow,
    radii: Sequence[int] = MID_RADII,
    count: int = 1,
    under: float | None = None,
    least: float = LEAST,
) -> list[Ring]:
    """Return the best rings at each radius, at most `count` each, best first; near the column `under` if given.

    `radii` are consecutive. Rings with a score below `least` may be left out.
    """
    if at.x1 <= at.x0 or at.y1 <= at.y0 or not radii:
        return []
    rings = []
    aside = 0.0 if under is None else ASIDE_COST * np.abs(np.arange(at.x0, at.x1) - under)
    for radius, peaks in zip(radii, _find_peaks(field, at, radii, aside, count, least), strict=True):
        for row, column, score in peaks:
            x, y = at.x0 + column, at.y0 + row
            rgb = field.rgb(x, y, radius)
            color, fit = color_name(rgb)
            fit = min(1.0, 1.6 * field.share_apart(x, y, radius)) if field.colourless else fit
            luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
            rings.append(Ring(x, y, radius, score * (0.65 + 0.35 * fit), color, luma))
    return sorted(rings, key=lambda ring: -ring.score)


def _find_peaks(
    field: RingField,
    at: FieldWindow,
    radii: Sequence[int],
    aside: float | npt.NDArray[np.float64],
    count: int,
    least: float,
) -> list[list[tuple[int, int, float]]]:
    """Return the best centres as (row and column in the window, score): at most `count` per radius, none below `least`.

    Centres are ranked by score minus `aside` (w,). The surroundings of a selected centre are excluded.
    """
    height, width = at.y1 - at.y0, at.x1 - at.x0
    if height * width * (len(radii) + 2 * SIDE_PX) <= FEW_CIRCLES:
        rows, columns = (part.ravel() for part in np.mgrid[at.y0 : at.y1, at.x0 : at.x1])
        lower = upper = field.scores(rows, columns, radii).reshape(-1, height, width)
    else:
        lower, upper = field.bounds(at, radii)
        if len(radii) == 1 and isinstance(aside, float) and aside == 0:
            return [_find_peaks_of_radius(field, at, radii[0], (lower[0], upper[0]), count, least)]
    peaks: list[list[tuple[int, int, float]]] = [[] for _ in radii]
    for _ in range(count):
        going = np.flatnonzero(upper.max(axis=(1, 2)) >= least)
        if lower is not upper:
            _settle(field, at, np.asarray(radii), lower, upper, aside, going)
        for number in going.tolist():
            row, column = divmod(int((lower[number] - aside).argmax()), width)
            score, radius = float(lower[number, row, column]), radii[number]
            if score < least:
                upper[number] = 0
                continue
            peaks[number].append((row, column, score))
            around = slice(max(0, row - radius), row + radius + 1), slice(max(0, column - radius), column + radius + 1)
            lower[number][around] = upper[number][around] = 0
    return peaks


def _find_peaks_of_radius(
    field: RingField, at: FieldWindow, radius: int, bounds: tuple[Map, Map], count: int, least: float
) -> list[tuple[int, int, float]]:
    """Return the peaks of one radius as `_find_peaks` does, without `aside`.

    Only the few centres whose upper bound reaches `least` can be peaks, so only they are compared.
    """
    rows, columns = np.nonzero(bounds[1] >= least)
    lower, upper = (bound[rows, columns] for bound in bounds)
    peaks: list[tuple[int, int, float]] = []
    while len(rows) and len(peaks) < count:
        unsettled = np.flatnonzero((upper >= lower.max()) & (upper > lower))
        for start in range(0, len(unsettled), BAND_PIXELS):
            part = unsettled[start : start + BAND_PIXELS]
            lower[part] = upper[part] = field.scores(rows[part] + at.y0, columns[part] + at.x0, [radius])[0]
        best = int(lower.argmax())
        row, column, score = int(rows[best]), int(columns[best]), float(lower[best])
        if score < least:
            break
        peaks.append((row, column, score))
        left = (np.abs(rows - row) > radius) | (np.abs(columns - column) > radius)
        rows, columns, lower, upper = rows[left], columns[left], lower[left], upper[left]
    return peaks


def _settle(
    field: RingField,
    at: FieldWindow,
    radii: Numbers,
    lower: Map,
    upper: Map,
    aside: float | npt.NDArray[np.float64],
    going: Numbers,
) -> None:
    """Put the exact scores into both bounds (radii, h, w) wherever the best centre of a radius may be."""
    low, high = lower[going], upper[going]
    best = (low - aside).max(axis=(1, 2), keepdims=True)
    numbers, rows, columns = np.nonzero((high - aside >= best) & (high > low))
    numbers = going[numbers]
    for start in range(0, len(rows), BAND_PIXELS):
        part = tuple(values[start : start + BAND_PIXELS] for values in (numbers, rows, columns))
        scores = field.scores_by_radius(part[1] + at.y0, part[2] + at.x0, radii[part[0]])
        lower[part] = upper[part] = scores


def search_everywhere(pixels: Pixels, field: RingField, least: float = LEAST, count: int = 12) -> list[Ring]:
    """Return the best rings of an image at any radius, best first, for pictures without readable letters.

    Rings with a score below `least` may be left out.

    Erosion and dilation along the circle bound the spread in a fraction of the time; only the best centres are scored.
    """
    import cv2

    soft = cv2.GaussianBlur(pixels, (3, 3), 0.6)
    half = (soft[..., 0].astype(np.int16) - soft[..., 1:].mean(axis=2).astype(np.int16)) // 2 + 128
    luma = np.asarray(cv2.cvtColor(soft, cv2.COLOR_RGB2GRAY), np.uint8)
    planes = (luma, np.clip(half, 0, 255).astype(np.uint8))
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    # For each radius and pixel: the midpoint, (2, H, W), and the width, (H, W), of the range of values along a circle.
    bounds = []
    for radius in range(MID_RADII[-1] + SIDE_PX + 1):
        kernel = np.zeros((2 * radius + 1, 2 * radius + 1), np.uint8)
        rows, columns = (np.rint(radius + radius * turn(angles)).astype(int) for turn in (np.sin, np.cos))
        kernel[rows, columns] = 1
        low = np.stack([cv2.erode(plane, kernel) for plane in planes]).astype(np.float32)
        high = np.stack([cv2.dilate(plane, kernel) for plane in planes]).astype(np.float32)
        # Use OpenCV's magnitude, because NumPy takes over ten times as long.
        bounds.append((np.asarray((low + high) / 2, np.float32), np.asarray(cv2.magnitude(*(high - low)), np.float32)))
    rings: list[Ring] = []
    for radius in MID_RADII:
        middle, spread = bounds[radius]
        sides = [cv2.magnitude(*(middle - bounds[max(0, radius + side)][0])) for side in (-SIDE_PX, SIDE_PX)]
        step = np.minimum(sides[0], sides[1])
        quick = step / (step + spread + 12)
        for _ in range(4):
            row, column = divmod(int(quick.argmax()), quick.shape[1])
            at = field.window(column - 2, row - 2, column + 3, row + 3)
            rings.extend(find_rings(field, at, [radius], least=least))
            quick[max(0, row - radius) : row + radius + 1, max(0, column - radius) : column + radius + 1] = 0
    return distinct(rings)[:count]


def distinct(rings: Sequence[Ring]) -> list[Ring]:
    """Return the rings, best first, without those that overlap a better ring."""
    distinct_rings: list[Ring] = []
    for ring in sorted(rings, key=lambda ring: -ring.score):
        if all(
            np.hypot(ring.x - k.x, ring.y - k.y) > max(6.0, ring.mid_radius_px, k.mid_radius_px) for k in distinct_rings
        ):
            distinct_rings.append(ring)
    return distinct_rings
