"""Statistics of noise and spectrum that differ between cameras and generators, as evidence only.

The residual is what a median filter takes away; the spectrum of a photograph falls
off as a power of frequency, and up-sampling layers may leave periodic peaks in it (Durall, Keuper and Keuper 2020;
Corvi et al. 2023). JPEG, scaling and denoising change all of these at least as much as the origin does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

# The middle of the image is read at its own resolution: scaling would change the statistics.
WINDOW_PX = 512
LEAST_PX = 32

Spectrum = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoiseStatistics:
    """Of the middle of one image; grey levels are 0..255.

    `residual_std`: standard deviation of the median residual, grey levels. `residual_kurtosis`: its excess kurtosis.
    `spectrum_slope`: exponent of the radial power spectrum between 0.05 and 0.45 cycles per pixel. `high_share_0_1`:
    share of the power above 0.25 cycles per pixel, the mean left out. `peak_ratio`: 99.9th percentile of the residual's
    power over its median.
    """

    residual_std: float
    residual_kurtosis: float
    spectrum_slope: float
    high_share_0_1: float
    peak_ratio: float


def measure(pixels: Pixels) -> NoiseStatistics:
    """Statistics of an image (H, W, 3) of at least `LEAST_PX` a side."""
    import cv2

    grey = _middle(np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8))
    residual = grey.astype(np.float64) - cv2.medianBlur(grey, 3).astype(np.float64)
    deviation = float(residual.std())
    centred = residual - residual.mean()
    kurtosis = float((centred**4).mean() / deviation**4 - 3) if deviation > 1e-6 else 0.0
    # Radial frequency of each coefficient, cycles per pixel.
    power, frequency = (
        _power(grey.astype(np.float64)),
        np.asarray(
            np.hypot(np.fft.fftfreq(grey.shape[0])[:, None], np.fft.fftfreq(grey.shape[1])[None, :]), np.float64
        ),
    )
    total = float(power[frequency > 0].sum())
    peaks = _power(residual)[frequency > 0.05]
    return NoiseStatistics(
        deviation,
        kurtosis,
        _slope(power, frequency),
        float(power[frequency > 0.25].sum() / total) if total > 0 else 0.0,
        float(np.percentile(peaks, 99.9) / max(np.median(peaks), 1e-9)) if deviation > 1e-6 else 1.0,
    )


def residual_picture(pixels: Pixels) -> Pixels:
    """The residual of an image, grey 128 where it is zero, eight times enlarged in contrast; the input's size."""
    import cv2

    grey = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)
    residual = grey.astype(np.float64) - cv2.medianBlur(grey, 3).astype(np.float64)
    shown = np.clip(128 + 8 * residual, 0, 255).astype(np.uint8)
    return np.asarray(cv2.cvtColor(shown, cv2.COLOR_GRAY2RGB), np.uint8)


def _middle(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    height, width = (min(side, WINDOW_PX) for side in grey.shape)
    top, left = (grey.shape[0] - height) // 2, (grey.shape[1] - width) // 2
    return np.ascontiguousarray(grey[top : top + height, left : left + width])


def _power(values: Spectrum) -> Spectrum:
    # A window keeps the borders, which do not join up, from spreading over all frequencies.
    window = np.outer(np.hanning(values.shape[0]), np.hanning(values.shape[1]))
    return np.asarray(np.abs(np.fft.fft2((values - values.mean()) * window)) ** 2, np.float64)


def _slope(power: Spectrum, frequency: Spectrum) -> float:
    """Exponent b of power ~ frequency^b by least squares over rings; 0 where there is no power."""
    edges = np.geomspace(0.05, 0.45, 13)
    middles, levels = [], []
    for low, high in pairwise(edges):
        ring = power[(frequency >= low) & (frequency < high)]
        if ring.size and ring.mean() > 0:
            middles.append(np.log((low + high) / 2))
            levels.append(np.log(ring.mean()))
    return float(np.polyfit(middles, levels, 1)[0]) if len(middles) > 1 else 0.0
