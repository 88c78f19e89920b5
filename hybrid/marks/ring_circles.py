"""Ring scores from samples on circles, and their bounds.

At a centre and a radius, samples on the circle are compared with samples `SIDE_PX` further in and out at the same
angles: `D / (D + 2 s + 12)`, where D is the smaller of the two mean absolute differences and s the standard deviation
along the circle, both over three channels (luma, redness, green minus blue), in grey levels. A texture has a large D
and a large s, a flat area has neither, and a drawn ring has only a large D. In noise and texture a circle can have a
large D by chance, but no lower s than adjacent circles; so the score grows by up to `CALM_GAIN` if s is lower than on
adjacent circles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Map = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.intp]

# Radii of the middle of a ring's line to try, in pixels.
MID_RADII = tuple(range(3, 20))
ANGLES = 16
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
# Smallest visible fraction of a circle that the border cuts.
MIN_VISIBLE = 0.27
# Width of the border around an image's planes, in pixels: samples of its outermost centres are read there.
MARGIN = MID_RADII[-1] + SIDE_PX + 1


@dataclass(frozen=True, eq=False)
class Circles:
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
    def of(radii: tuple[int, ...]) -> Circles:
        """Make the circles of these radii, in pixels. Raises `ValueError` if they are not consecutive or too small."""
        if radii != tuple(range(radii[0], radii[-1] + 1)) or radii[0] < SIDE_PX:
            raise ValueError(f"radii of rings must be consecutive and at least {SIDE_PX} px, not {radii}")
        needed = sorted({radius + side for radius in radii for side in (-SIDE_PX, 0, SIDE_PX)})
        angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
        columns, rows = (
            np.array([[round(radius * float(turn(angle))) + MARGIN for radius in needed] for angle in angles])
            for turn in (np.cos, np.sin)
        )
        return Circles(rows, columns, len(radii), min(len(radii), SIDE_PX))

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
        lengths = np.sqrt(add_channels(np.square(differences, dtype=np.float32)))
        steps = np.asarray(lengths / (EIGHTHS * shared), np.float32)
        means_squared = add_channels(np.square(sums, dtype=np.float32)) / counts
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
            (self.rows + far - MARGIN).tolist(), (self.columns + far - MARGIN).tolist(), strict=True
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
        for places in zip(self.rows + far - MARGIN, self.columns + far - MARGIN, strict=True):
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


def add_channels(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum the first three entries of the last axis: NumPy's reduction takes ten times as long on such a short axis."""
    return np.asarray(values[..., 0] + values[..., 1] + values[..., 2])


def norm_over_channels(planes: Map) -> Map:
    """Return the Euclidean norm over the channels: (3, ...) to (...)."""
    return np.asarray(np.sqrt((planes**2).sum(axis=0)))


def _score(step: Map, spread: Map, around: Map) -> Map:
    """Return the ring score that the module docstring defines; higher if the line is calmer than its background."""
    calm = np.maximum(0, around - spread) / (around + FLOOR)
    return np.asarray(np.minimum(1, step / (step + 2 * spread + FLOOR) * (1 + CALM_GAIN * calm)), np.float32)
