"""Weight-free cues of relative depth at points of an image, combined with weights that are fixed here.

`bench/depth.py` prints what each cue scores and what the weights do out of fold. Every cue is turned so that larger
means nearer and lies in 0..1 within the image.

- position: on a ground seen by an upright camera, what is lower in the picture is nearer (Hoiem, Efros and Hebert,
  "Geometric Context from a Single Image", 2005). It carries most of the evidence, and says nothing on one row.
- contrast: air and a limited depth of field take contrast from what is far (aerial perspective), and the sky has none.
- warm: the same air scatters short wavelengths, so what is far is bluer.

The last two speak of a neighbourhood and know no objects; together they are no map of depth. Distances along paths to
the upper and the lower edge and to the centre were cues before: at points of one row they decided worse than chance or
no better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels
from tools._shared.reading import shrink

# One value a grid cell, shape (h, w).
CueMap = npt.NDArray[np.float32]

# Cells on the long side: finer than the smallest neighbourhood below.
GRID_PX = 128
# Long side at which neighbourhoods are measured.
WORK_PX = 512
# Three neighbourhoods an octave apart, from a face to a person in a group; which one alone mattered little.
CONTRAST_SIGMAS_PX = (6.0, 12.0, 24.0)
WARM_SIGMA_PX = 30.0
# Of b* in L*a*b*: smaller ones are not seen, and a picture without colour has no warmer places.
SEEN_DIFFERENCE = 1.0
# The cues that do not follow from the row, averaged with equal weights.
APPEARANCE = ("contrast", "warm")
# Log odds that a point one full height lower is nearer: 62 % for a tenth of the height, 82 % for three tenths.
POSITION_SLOPE = 5.0
# Log odds between the extremes of both appearance cues: they never exceed 88 % by themselves.
APPEARANCE_SLOPE = 1.0


@dataclass(frozen=True)
class CueMaps:
    """Maps (h, w) in 0..1 of the appearance cues over a whole image, larger is nearer."""

    cues: Mapping[str, CueMap]

    def at(self, x: float, y: float, size: tuple[int, int]) -> dict[str, float]:
        """Each cue at a point of the original image of `size` (H, W); position is exact, not that of a cell."""
        appearance = {name: sample(cue, x, y, size) for name, cue in self.cues.items()}
        return {"position": float(np.clip(y / size[0], 0.0, 1.0))} | appearance


def weights() -> dict[str, float]:
    """Log odds of each cue from one end of its range to the other."""
    return {"position": POSITION_SLOPE} | {name: APPEARANCE_SLOPE / len(APPEARANCE) for name in APPEARANCE}


def score_of(cues: Mapping[str, float]) -> float:
    """Log odds of a point from its cues; only differences between points of one image mean anything."""
    return sum(slope * cues[name] for name, slope in weights().items())


def depth_of(cues: Mapping[str, float]) -> float:
    """Relative depth 0..1 of a point, larger is nearer: its score over the highest one possible."""
    return score_of(cues) / (POSITION_SLOPE + APPEARANCE_SLOPE)


def measure(pixels: Pixels) -> CueMaps:
    """The appearance cues of an RGB image (H, W, 3) uint8 of any size, without drawn marks."""
    import cv2

    work = shrink(pixels, WORK_PX)
    colours = np.asarray(cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float32)
    grid, scale = _grid_size(*pixels.shape[:2]), max(work.shape[:2]) / WORK_PX
    lightness, yellowness = colours[..., 0], colours[..., 2]
    contrasts = [
        _ranks(_resize(found, grid))
        for sigma in CONTRAST_SIGMAS_PX
        for found in (_edges(lightness, sigma * scale), _spread(lightness, sigma * scale))
    ]
    return CueMaps(
        {
            "contrast": np.mean(contrasts, axis=0, dtype=np.float32),
            "warm": _ranks(_resize(_blur(yellowness, WARM_SIGMA_PX * scale), grid), SEEN_DIFFERENCE),
        }
    )


def sample(values: CueMap, x: float, y: float, size: tuple[int, int]) -> float:
    """Bilinear value of a grid at a point of the image of `size` (H, W) that it covers.

    Beyond the centres of the outer cells it is the nearest cell's value.
    """
    rows, columns = values.shape
    v = float(np.clip((y + 0.5) / size[0] * rows - 0.5, 0, rows - 1))
    u = float(np.clip((x + 0.5) / size[1] * columns - 0.5, 0, columns - 1))
    top, left = int(v), int(u)
    below, right = min(top + 1, rows - 1), min(left + 1, columns - 1)
    upper = values[top, left] * (1 - (u - left)) + values[top, right] * (u - left)
    lower = values[below, left] * (1 - (u - left)) + values[below, right] * (u - left)
    return float(upper * (1 - (v - top)) + lower * (v - top))


def _grid_size(height: int, width: int) -> tuple[int, int]:
    factor = min(1.0, GRID_PX / max(height, width))
    return max(1, round(width * factor)), max(1, round(height * factor))


def _ranks(values: npt.NDArray[np.float32], step: float = 1e-4) -> CueMap:
    """Share of cells that are lower by a `step` or more, ties shared: 0.5 everywhere on a constant map."""
    # Rounding keeps float noise from ordering the cells of a flat region.
    rounded = np.round(values.ravel().astype(np.float64) / step)
    # By hand: scipy.stats takes a second to import.
    _, cell, alike = np.unique(rounded, return_inverse=True, return_counts=True)
    lower = (alike.cumsum() - alike / 2)[cell]
    return np.asarray(lower / rounded.size, np.float32).reshape(values.shape)


def _edges(lightness: npt.NDArray[np.float32], sigma: float) -> CueMap:
    """Mean length of the lightness gradient around each pixel."""
    import cv2

    gradient = np.hypot(cv2.Sobel(lightness, cv2.CV_32F, 1, 0), cv2.Sobel(lightness, cv2.CV_32F, 0, 1))
    return _blur(np.asarray(gradient, np.float32), sigma)


def _spread(lightness: npt.NDArray[np.float32], sigma: float) -> CueMap:
    """Standard deviation of lightness around each pixel."""
    mean = _blur(lightness, sigma)
    return np.asarray(np.sqrt(np.maximum(_blur(lightness * lightness, sigma) - mean * mean, 0)), np.float32)


def _blur(values: npt.NDArray[np.float32], sigma: float) -> CueMap:
    import cv2

    return np.asarray(cv2.GaussianBlur(values, (0, 0), max(sigma, 0.5)), np.float32)


def _resize(values: CueMap, grid: tuple[int, int]) -> CueMap:
    import cv2

    return np.asarray(cv2.resize(values, grid, interpolation=cv2.INTER_AREA), np.float32)
