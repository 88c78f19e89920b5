"""Weight-free descriptions of an image for similarity in content, layout and style.

`describe(pixels)`, then `likeness(first, second)` gives 0..1 for each aspect.

- content: joint colour histogram (Swain and Ballard 1991) and a global histogram of gradient directions (as HOG, Dalal
  and Triggs 2005).
- layout: mean colour and gradient energy on a 6 x 6 grid (as the gist of Oliva and Torralba 2001, without its filters).
- style: means and spreads of colour and saturation, and the energy of gradients at four scales and its distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.reading import shrink

Vector = npt.NDArray[np.float64]

WORK_PX = 256
GRID = 6
DIRECTIONS = 12
SCALES = 4
# Distance at which similarity falls to 1/e; chosen so that unrelated photographs give about 0.2 to 0.4.
SCALE_OF: Mapping[str, float] = {"content": 0.6, "layout": 16.0, "style": 1.0}


class StatisticsDescription(NamedTuple):
    """Statistics of an image: its colours, its gradients, its layout and its style.

    `colours` is a histogram of colours and `directions` one of gradient directions; each sums to 1. `cells` (n, 4) has,
    for each cell of a grid, the mean colour and a measure of its gradients, in L*a*b* units. `style` has measures of
    tone and texture.
    """

    colours: Vector
    directions: Vector
    cells: Vector
    style: Vector


def describe(pixels: Pixels) -> StatisticsDescription:
    """Describe an RGB image (H, W, 3) of any size."""
    import cv2

    work = shrink(pixels, WORK_PX)
    colours = np.asarray(cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float64)
    across = np.asarray(cv2.Sobel(colours[..., 0], cv2.CV_64F, 1, 0), np.float64)
    down = np.asarray(cv2.Sobel(colours[..., 0], cv2.CV_64F, 0, 1), np.float64)
    strength = np.hypot(across, down)
    histogram, _ = np.histogramdd(colours.reshape(-1, 3), bins=(6, 8, 8), range=((0, 100.001), (-80, 80), (-80, 80)))
    angle = np.mod(np.arctan2(down, across), np.pi) / np.pi
    directions, _ = np.histogram(angle, bins=DIRECTIONS, range=(0, 1), weights=strength)
    # Mean colour and four times the root of the mean gradient of each cell, (36, 4).
    cells = np.dstack([colours, np.sqrt(strength) * 4]).astype(np.float32)
    small = cv2.resize(cells, (GRID, GRID), interpolation=cv2.INTER_AREA)
    grid = np.asarray(small, np.float64).reshape(GRID * GRID, 4)
    # Scaled so that unrelated images differ by about 1 in each number.
    chroma = np.hypot(colours[..., 1], colours[..., 2])
    light = colours[..., 0]
    tone = [light.mean() / 20, light.std() / 10, chroma.mean() / 12, chroma.std() / 8]
    tone += [colours[..., k].mean() / 12 for k in (1, 2)]
    tone += list(np.quantile(light, (0.05, 0.95)) / 25)
    energy = []
    level = light
    for _ in range(SCALES):
        smaller = np.asarray(cv2.GaussianBlur(level, (0, 0), 1.5), np.float64)
        energy.append(np.log(np.abs(level - smaller).mean() + 0.05) / 0.5)
        level = smaller[:: 2 if smaller.shape[0] > 1 else 1, :: 2 if smaller.shape[1] > 1 else 1]
    # Flat paint with outlines, soft washes and noise differ in the distribution of the gradients.
    spread = np.log(np.quantile(strength, (0.25, 0.5, 0.75, 0.95)) + 0.5) / 0.7
    style = np.array([*tone, *energy, *spread], np.float64)
    return StatisticsDescription(_shares(histogram.ravel()), _shares(directions), grid, style)


def likeness(first: StatisticsDescription, second: StatisticsDescription) -> dict[str, float]:
    """Return the similarity 0..1 in content, layout and style, and `all`, their mean."""
    content = _hellinger(first.colours, second.colours) + 0.5 * _hellinger(first.directions, second.directions)
    distances = {
        "content": content,
        "layout": float(np.linalg.norm(first.cells - second.cells, axis=1).mean()),
        "style": float(np.abs(first.style - second.style).mean()),
    }
    likenesses = {name: float(np.exp(-distance / SCALE_OF[name])) for name, distance in distances.items()}
    return {**likenesses, "all": sum(likenesses.values()) / len(likenesses)}


def _shares(counts: npt.NDArray[np.float64]) -> Vector:
    total = float(counts.sum())
    return np.asarray(counts / total if total > 1e-12 else np.full(counts.size, 1 / counts.size), np.float64)


def _hellinger(first: Vector, second: Vector) -> float:
    """Return the Hellinger distance 0..1 of two distributions."""
    return float(np.sqrt(max(0.0, 1 - float(np.sqrt(first * second).sum()))))
