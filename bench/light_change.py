"""Change the light and the camera of an image: gain, gamma, colour, shadows, night, blur, noise.

`relit(np.random.default_rng(0), pixels, LIGHTS["extreme"])` changes only pixel values; nothing moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

Difficulty = Literal["easy", "medium", "extreme"]
DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)

Floats = npt.NDArray[np.float32]

# Lamps in a night image.
LAMPS = 3
# Share of the daylight that remains at night.
NIGHT_GAIN = 0.12


@dataclass(frozen=True)
class Light:
    """Limits for changes of light and camera.

    `log_gain` is the range of the natural logarithm of the factor of all values, up or down; `log_gamma` and
    `log_colour` are the maxima for the exponent and for the factor of one channel; `gradient` is the largest share of
    light that one side of the image loses; `shadows` is the number of cast shadows; `blur_px` is the largest standard
    deviation of a Gaussian blur; `noise_levels` is the standard deviation of the noise in grey levels; `night_share` is
    the share of images that are lit only by lamps.
    """

    log_gain: tuple[float, float]
    log_gamma: float
    log_colour: float
    gradient: float
    shadows: int
    blur_px: float
    noise_levels: float
    night_share: float


LIGHTS: Mapping[Difficulty, Light] = {
    "easy": Light((0.0, 0.15), 0.2, 0.05, 0.1, 0, 0.5, 3.0, 0.0),
    "medium": Light((0.0, 0.4), 0.5, 0.2, 0.4, 1, 1.0, 6.0, 0.0),
    "extreme": Light((0.7, 1.3), 0.7, 0.4, 0.6, 2, 1.2, 24.0, 0.3),
}


def relit(rng: np.random.Generator, pixels: Pixels, light: Light) -> Pixels:
    """Return an image (H, W, 3) after a random change of light and camera within `light`."""
    height, width = pixels.shape[:2]
    gamma = float(np.exp(rng.uniform(-light.log_gamma, light.log_gamma)))
    values = np.asarray((pixels.astype(np.float32) / 255) ** gamma, np.float32)
    # The share of light that remains in shadows of things out of view: polygons with nearly sharp edges.
    remaining = np.ones((height, width), np.float32)
    for _ in range(light.shadows):
        corners = np.rint(rng.uniform(-0.3, 1.3, (4, 2)) * (width, height)).astype(np.int32)
        shade = np.zeros((height, width), np.uint8)
        cv2.fillPoly(shade, [np.asarray(cv2.convexHull(corners), np.int32)], (255,))
        remaining *= 1 - rng.uniform(0.4, 0.75) * cv2.GaussianBlur(shade, (0, 0), 2.0).astype(np.float32) / 255
    values = values * remaining[..., None]
    # A linear ramp in a random direction, from 1 down to the remaining share.
    angle = rng.uniform(0, 2 * np.pi)
    down, across = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    along = (np.cos(angle) * across + np.sin(angle) * down) / (abs(np.cos(angle)) + abs(np.sin(angle)))
    values = values * np.asarray(1 - rng.uniform(0, light.gradient) * (along + 1) / 2, np.float32)[..., None]
    if rng.random() < light.night_share:
        values = values * _lamps(rng, height, width)
    gain = np.exp(rng.uniform(*light.log_gain) * rng.choice([-1, 1]))
    channels = np.exp(rng.uniform(-light.log_colour, light.log_colour, 3)) * gain
    values = np.asarray(values * channels, np.float32)
    sigma = float(rng.uniform(0.0, light.blur_px))
    if sigma > 0:
        values = np.asarray(cv2.GaussianBlur(values, (0, 0), sigma), np.float32)
    noisy = 255 * values + rng.normal(0, light.noise_levels, values.shape)
    return np.asarray(np.clip(np.rint(noisy), 0, 255), np.uint8)


def _lamps(rng: np.random.Generator, height: int, width: int) -> Floats:
    """Return the light (H, W, 3) of a night: remaining daylight, and yellowish lamps that fade with distance."""
    down, across = np.mgrid[0:height, 0:width]
    light = np.full((height, width, 3), NIGHT_GAIN, np.float32)
    for _ in range(LAMPS):
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        reach = rng.uniform(0.15, 0.4) * np.hypot(width, height)
        glow = rng.uniform(0.5, 1.2) / (1 + ((across - x) ** 2 + (down - y) ** 2) / reach**2)
        light += glow[..., None].astype(np.float32) * np.array([1.0, rng.uniform(0.7, 0.95), rng.uniform(0.4, 0.8)])
    return np.asarray(light, np.float32)
