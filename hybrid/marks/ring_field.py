"""An image prepared for scoring drawn rings at many centres (the score is that of `ring_circles.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.marks.ring_circles import (
    ANGLES,
    EIGHTHS,
    MARGIN,
    MID_RADII,
    SIDE_PX,
    Circles,
    Map,
    Numbers,
    add_channels,
    norm_over_channels,
)
from hybrid.tool import Pixels

# Number of samples bounded at once, by reading each and by shifting the window, chosen to fit the processor's cache.
BAND_SAMPLES = 48_000
SHIFTED_PIXELS = 16_000
# Minimum side of a window whose scores are bounded by shifting its area to each sample; in smaller windows the samples
# of each centre are read.
MANY_PX = 64
# Difference of channels, in grey levels, below which a picture is greyscale.
COLOURLESS = 8.0


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
        padded = np.zeros((3, soft.shape[0] + 2 * MARGIN, soft.shape[1] + 2 * MARGIN), np.float32)
        planes = padded[:, MARGIN:-MARGIN, MARGIN:-MARGIN]
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
        self._shows[MARGIN:-MARGIN, MARGIN:-MARGIN] = True
        for box in hidden:
            rows, columns = (max(0, round(low)) + MARGIN for low in (box.y0, box.x0))
            self._shows[rows : max(0, round(box.y1)) + MARGIN, columns : max(0, round(box.x1)) + MARGIN] = False

    def window(self, x0: float, y0: float, x1: float, y1: float) -> FieldWindow:
        """Clip bounds to the image."""
        return FieldWindow(
            max(0, int(x0)), max(0, int(y0)), min(self.width, int(np.ceil(x1))), min(self.height, int(np.ceil(y1)))
        )

    def scores(self, rows: Numbers, columns: Numbers, radii: Sequence[int]) -> Map:
        """Return ring scores 0..1 at centres (K,) in pixels of the image, for consecutive radii: (radii, K)."""
        circles = Circles.of(tuple(radii))
        stride = self._shows.shape[1]
        return self._score_samples(
            (circles.rows * stride + circles.columns)[:, :, None], rows * stride + columns, circles
        )

    def scores_by_radius(self, rows: Numbers, columns: Numbers, radii: Numbers) -> Map:
        """Return ring scores 0..1 at centres (K,) in pixels of the image, with a separate radius each (K,)."""
        circles, alone = Circles.of(MID_RADII), Circles.of(MID_RADII[:1])
        stride = self._shows.shape[1]
        three = radii - MID_RADII[0] + np.arange(3)[:, None] * SIDE_PX
        offsets = (circles.rows * stride + circles.columns)[:, three]
        return np.asarray(self._score_samples(offsets, rows * stride + columns, alone)[0])

    def _score_samples(self, offsets: Numbers, centres: Numbers, circles: Circles) -> Map:
        """Return scores (radii, K) of samples (ANGLES, circles, K or 1) around centres (K,) in the flat planes."""
        index = offsets + centres
        values = self._planes.reshape(3, -1).take(index, axis=1)
        shows = self._shows.ravel().take(index)
        step = circles.step
        contrast = np.abs(values[:, :, step:] - values[:, :, :-step])
        if shows.all():
            spread = np.asarray(np.sqrt(values.var(axis=1).sum(axis=0)))
            return circles.scores(norm_over_channels(contrast.mean(axis=1)), spread)
        visible = shows.astype(np.float32)
        count = visible.sum(axis=0)
        mean = (values * visible).sum(axis=1) / np.maximum(count, 1)
        squares = ((values - mean[:, None]) ** 2 * visible).sum(axis=1) / np.maximum(count, 1)
        both_visible = visible[:, step:] * visible[:, :-step]
        shared = both_visible.sum(axis=0)
        steps = norm_over_channels((contrast * both_visible).sum(axis=1) / np.maximum(shared, 1))
        return circles.scores(steps, np.asarray(np.sqrt(squares.sum(axis=0))), (count / ANGLES, shared / ANGLES))

    def bounds(self, at: FieldWindow, radii: Sequence[int]) -> tuple[Map, Map]:
        """Return lower and upper bounds of a window's ring scores (radii, h, w), much faster than `scores`."""
        circles, far = Circles.of(tuple(radii)), max(radii) + SIDE_PX
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
        return slice(at.y0 + MARGIN - far, at.y1 + far + MARGIN), slice(at.x0 + MARGIN - far, at.x1 + far + MARGIN)

    def _is_fully_visible(self, at: FieldWindow, far: int) -> bool:
        return bool(self._shows[self._window_slices(at, far)].all())

    def _bounds_by_shifting(self, at: FieldWindow, circles: Circles, far: int) -> tuple[Map, Map]:
        """Return the bounds of a large window without hidden samples, by shifting its area to each sample."""
        eighths = np.rint(np.moveaxis(self._planes[:, *self._window_slices(at, far)], 0, 2) * EIGHTHS).astype(
            np.int16, order="C"
        )
        energy_of = add_channels(np.square(eighths, dtype=np.int32))
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

    def _bounds_by_sampling(self, at: FieldWindow, circles: Circles, far: int) -> tuple[Map, Map]:
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
        energy_of = add_channels(np.square(eighths, dtype=np.int32))
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
        luma = self._planes[0, rows + MARGIN, columns + MARGIN]
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


@lru_cache(maxsize=256)
def _fine_circle(radius: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    angles = np.arange(4 * ANGLES) * (np.pi / 2 / ANGLES)
    return radius * np.cos(angles), radius * np.sin(angles)
