"""Procedural surface textures: tileable albedo maps with a mip pyramid, and their sampling on a surface.

Albedo is linear reflectance per RGB channel, 0..1. Run: `texture(np.random.default_rng(0), "bricks", pair)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

# A float32 array; the adjacent docstring gives its shape.
FloatMap = npt.NDArray[np.float32]

# Linear RGB reflectance, each 0..1.
Colour = tuple[float, float, float]

Pattern = Literal["noise", "speckle", "checker", "stripes", "bricks", "tiles", "plain"]
# The patterns with structure; `plain` has none.
PATTERNS: tuple[Pattern, ...] = ("noise", "speckle", "checker", "stripes", "bricks", "tiles")

# Colours that remain distinct under shading; a question may name an object by one of them.
NAMED_COLOURS: Mapping[str, Colour] = {
    "red": (0.62, 0.03, 0.03),
    "green": (0.03, 0.40, 0.06),
    "blue": (0.03, 0.08, 0.60),
    "yellow": (0.80, 0.66, 0.03),
    "purple": (0.26, 0.04, 0.42),
    "orange": (0.82, 0.25, 0.015),
}

MIN_ALBEDO, MAX_ALBEDO = 0.02, 0.95


@dataclass(frozen=True, eq=False)
class Texture:
    """A tileable albedo map, computed on first use, because most surfaces of a picture are not visible.

    `levels` are (side, side, 3) arrays; the side of each is half that of the array before. `drift`, (side, side), is a
    smooth relative change of brightness, or None. It is sampled at another scale, so that repetitions of the tile
    differ.
    """

    albedo: Callable[[], FloatMap]
    texels_per_m: float
    slow: Callable[[], FloatMap] | None = None

    @cached_property
    def levels(self) -> tuple[FloatMap, ...]:
        """The albedo at full resolution, and halved down to one texel."""
        levels = [self.albedo()]
        while levels[-1].shape[0] > 1:
            half = levels[-1].shape[0] // 2
            levels.append(np.asarray(cv2.resize(levels[-1], (half, half), interpolation=cv2.INTER_AREA), np.float32))
        return tuple(levels)

    @cached_property
    def drift(self) -> FloatMap | None:
        """The slow change of brightness."""
        return self.slow() if self.slow is not None else None


@lru_cache(maxsize=8)
def _amplitudes(side: int, slope: float) -> FloatMap:
    """Return spectral amplitudes 1/f^slope for `rfft2` of a (side, side) array, without the mean."""
    rows = np.fft.fftfreq(side)[:, None] * side
    columns = np.fft.rfftfreq(side)[None, :] * side
    frequency = np.hypot(rows, columns)
    frequency[0, 0] = np.inf
    return np.asarray(frequency**-slope, dtype=np.float32)


def fractal_noise(rng: np.random.Generator, side: int, slope: float = 1.0) -> FloatMap:
    """Return tileable multi-octave noise (side, side), mean 0, standard deviation 1; amplitude falls as 1/f^slope."""
    return _noise(rng, side, slope)()


def _noise(rng: np.random.Generator, side: int, slope: float) -> Callable[[], FloatMap]:
    """Draw white noise; return a function that shapes it to `fractal_noise`."""
    white = rng.standard_normal((side, side), dtype=np.float32)

    def shaped() -> FloatMap:
        field = np.fft.irfft2(np.fft.rfft2(white) * _amplitudes(side, slope), s=white.shape)
        return np.asarray(field / field.std(), dtype=np.float32)

    return shaped


def _pattern(rng: np.random.Generator, pattern: Pattern, side: int) -> Callable[[], npt.ArrayLike]:
    """Draw a tileable pattern; return a function that computes its mixing weights (side, side) of the colours, 0..1."""
    cells = 2 * int(rng.integers(2, 5))
    if pattern == "noise":
        noise = _noise(rng, side, 1.2)
        return lambda: 1.0 / (1.0 + np.exp(-2.0 * noise()))
    if pattern == "speckle":
        noise, least = _noise(rng, side, 0.55), rng.uniform(0.4, 1.1)
        return lambda: noise() > least
    if pattern == "stripes":
        axis = int(rng.random() < 0.5)
        noise = _noise(rng, side, 1.6)
        return lambda: 0.5 + 0.5 * np.tanh(4 * np.sin(2 * np.pi * cells * _grid(side)[axis] + noise()))
    if pattern == "checker":
        return lambda: np.floor(_grid(side) * cells).sum(axis=0) % 2
    if pattern == "bricks":

        def bricks() -> npt.ArrayLike:
            rows, columns = _grid(side)
            course = np.floor(rows * 2 * cells)
            return np.asarray(((rows * 2 * cells) % 1 < 0.12) | ((columns * cells + 0.5 * (course % 2)) % 1 < 0.06))

        return bricks
    if pattern == "tiles":
        return lambda: ((_grid(side) * cells) % 1 < 0.05).any(axis=0)
    return lambda: np.zeros((side, side))


def _grid(side: int) -> FloatMap:
    """Return vertical and horizontal positions, (2, side, side), as fractions of the side length."""
    return np.asarray(np.mgrid[0:side, 0:side].astype(np.float32) / side)


def texture(
    rng: np.random.Generator,
    pattern: Pattern,
    colours: tuple[Colour, Colour],
    *,
    texels_per_m: float = 110.0,
    grain: float = 0.22,
    drift: float = 0.25,
    side: int = 256,
) -> Texture:
    """Make a texture that mixes two colours by a pattern.

    Args:
        rng: Source of randomness.
        pattern: Pattern of the colours.
        colours: The two linear colours, each channel 0..1.
        texels_per_m: Resolution on the surface.
        grain: Relative standard deviation of multi-octave noise on top; 0 gives flat colours.
        drift: Relative standard deviation of the slow change between repeats; 0 gives none.
        side: Texels along a side of the tile, a power of two.
    """
    mix = _pattern(rng, pattern, side)
    grains = _noise(rng, side, 0.9) if grain > 0 else None
    waves = _noise(rng, 64, 1.5) if drift > 0 else None

    def albedo() -> FloatMap:
        share = np.asarray(mix(), dtype=np.float32)
        pairs = zip(*colours, strict=True)
        channels = [np.float32(first) * (1 - share) + np.float32(second) * share for first, second in pairs]
        if grains is not None:
            grained = np.exp(grain * grains())
            channels = [channel * grained for channel in channels]
        return np.clip(cv2.merge(channels), MIN_ALBEDO, MAX_ALBEDO).astype(np.float32)

    return Texture(albedo, texels_per_m, None if waves is None else lambda: np.asarray(drift * waves(), np.float32))


def plain(rng: np.random.Generator, colour: Colour, *, grain: float = 0.05) -> Texture:
    """Make a surface of one colour with faint grain and no slow change of brightness."""
    return texture(rng, "plain", (colour, colour), texels_per_m=140.0, grain=grain, drift=0.0, side=128)


def earthy(rng: np.random.Generator, low: float = 0.1, high: float = 0.55) -> tuple[Colour, Colour]:
    """Return two muted colours of different brightness, the first between `low` and `high` (luminance, 0..1)."""
    value = float(np.exp(rng.uniform(np.log(low), np.log(high))))
    ratio = float(rng.choice([rng.uniform(0.35, 0.6), rng.uniform(1.6, 2.6)]))

    def tint(level: float) -> Colour:
        red, green, blue = np.clip(level * (1 + rng.uniform(-0.35, 0.35, 3)), MIN_ALBEDO, MAX_ALBEDO)
        return (float(red), float(green), float(blue))

    return tint(value), tint(float(np.clip(value * ratio, 0.03, 0.85)))


def sample(surface: Texture, u: FloatMap, v: FloatMap, footprint_m: FloatMap) -> FloatMap:
    """Return albedo (H, W, 3) at surface coordinates, filtered to the size of a pixel on the surface.

    Args:
        surface: The texture to sample.
        u: Coordinates along the surface's first axis in metres, (H, W).
        v: Coordinates along its second axis in metres, (H, W).
        footprint_m: Side of a pixel on the surface in metres, (H, W).
    """
    last = len(surface.levels) - 1
    lod = np.clip(np.log2(np.maximum(footprint_m * surface.texels_per_m, 1e-6)), 0, last).astype(np.float32)
    albedo = np.zeros((*u.shape, 3), dtype=np.float32)
    finest, coarsest = lod.min(axis=1), lod.max(axis=1)
    for number, level in enumerate(surface.levels):
        rows = np.flatnonzero((finest < number + 1) & (coarsest > number - 1))
        if rows.size == 0:
            continue
        band = slice(int(rows[0]), int(rows[-1]) + 1)
        scale = surface.texels_per_m / 2**number
        weight = np.maximum(1 - np.abs(lod[band] - number), 0).astype(np.float32)
        albedo[band] += thrice(weight) * _read(level, u[band] * scale, v[band] * scale)
    if surface.drift is not None:
        slow = _read(surface.drift, u * surface.texels_per_m * 0.071, v * surface.texels_per_m * 0.071)
        albedo *= thrice(np.exp(slow))
    return np.asarray(np.clip(albedo, MIN_ALBEDO, MAX_ALBEDO, out=albedo), dtype=np.float32)


def thrice(values: FloatMap) -> FloatMap:
    """Repeat (H, W) in three channels, (H, W, 3).

    This uses OpenCV, because NumPy iterates pixel by pixel over a last axis of three.
    """
    return np.asarray(cv2.merge((values, values, values)))


def _read(level: FloatMap, columns: FloatMap, rows: FloatMap) -> FloatMap:
    """Sample bilinearly with wrap-around, in texels."""
    side = np.float32(level.shape[0])
    # Wrap coordinates first, because cv2.remap stores them as 16-bit integers.
    columns = np.asarray(columns - np.floor(columns / side) * side, dtype=np.float32)
    rows = np.asarray(rows - np.floor(rows / side) * side, dtype=np.float32)
    return np.asarray(cv2.remap(level, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP), np.float32)
