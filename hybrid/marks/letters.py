"""Detects the white letters in black boxes that name drawn marks, and reads them with rendered templates.

A candidate is a bright connected component with dark surroundings on all sides, as a letter in its box on any picture.
It is scaled to a fixed frame and compared with letters rendered in several fonts and sizes by normalised
cross-correlation. No template was cut out of a data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.core.types import Box
from hybrid.marks.drawing import LABELS, Font, letter_mask
from hybrid.tool import Pixels

Grey = npt.NDArray[np.uint8]
Vector = npt.NDArray[np.float32]

BANK_FONTS: tuple[Font, ...] = ("strokes", "bold", "pillow")
BANK_HEIGHTS = (7, 9, 11, 14, 20, 32)
# Grey level above which a pixel may belong to a letter; the letter's box is darker.
BRIGHT = 105
HEIGHTS_PX = (6, 40)
# Fraction of the frame around a letter that must be dark: JPEG and a neighbouring ring may brighten some of it.
SURROUND_DARK = 0.86
FAR_LIGHT = 0.45
# Grey level reached by the brightest tenth of a drawn letter: at least 204 on generated scenes, 253 on BLINK's.
MIN_WHITE = 175
# Largest grey level next to a drawn letter: at most 10 for drawn letters, mostly above 20 in photographs.
MAX_BLACK = 22
# Smallest part of a letter or word from which it can be read if the border cuts it.
MIN_SHOWN = 0.3
# Minimum ratio of width to height at which adjacent letters form a word; it admits "EF", if the border cuts off the R.
MIN_WORD = 1.2
MAX_CANDIDATES = 40
# Rows and columns of the frame for candidates and templates.
FRAME = {"letter": (20, 20), "REF": (20, 48)}


@dataclass(frozen=True, slots=True)
class LetterReading:
    """How well a candidate for a letter fits each label.

    `scores` has the correlation, 0..1, with the best template of each label, the best label first. `glyph` are the
    bounds of the letter, `box` those of the visible part of its black box, in pixels of the image.
    """

    glyph: Box
    box: Box
    scores: tuple[tuple[str, float], ...]
    # Whether the letter touches the image's border, so that a part may be missing.
    clipped: bool

    @property
    def label(self) -> str:
        """The best label."""
        return self.scores[0][0]

    @property
    def score(self) -> float:
        """Correlation of the best label, 0..1."""
        return self.scores[0][1]

    def score_of(self, label: str) -> float:
        """Return the correlation with one label, 0..1; 0 for a label of another shape."""
        return dict(self.scores).get(label, 0.0)

    @property
    def centre(self) -> tuple[float, float]:
        """Centre of the letter."""
        return (self.glyph.x0 + self.glyph.x1 - 1) / 2, (self.glyph.y0 + self.glyph.y1 - 1) / 2


@dataclass(frozen=True)
class GlyphTemplates:
    """Templates of one frame. Each row of `vectors` is one template, as a unit vector with mean 0."""

    labels: tuple[str, ...]
    vectors: Vector
    # Ratio of width to height of each template before scaling.
    aspects: Vector


@lru_cache(maxsize=2)
def bank(frame: str) -> GlyphTemplates:
    """Return the rendered templates for single letters ("letter") or for "REF"."""
    labels = [label for label in LABELS if (len(label) > 1) == (frame == "REF")]
    masks = [
        (label, letter_mask(label, font, height))
        for label in labels
        for font in BANK_FONTS
        for height in BANK_HEIGHTS
        if font != "bold" or height >= 9
    ]
    vectors = np.stack([_vector(mask, FRAME[frame]) for _, mask in masks])
    aspects = np.array([mask.shape[1] / mask.shape[0] for _, mask in masks], np.float32)
    return GlyphTemplates(tuple(label for label, _ in masks), vectors, aspects)


def _vector(patch: Grey, frame: tuple[int, int]) -> Vector:
    import cv2

    rows, columns = frame
    area = patch.shape[0] >= rows and patch.shape[1] >= columns
    scaled = cv2.resize(
        patch.astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA if area else cv2.INTER_LINEAR
    )
    # Blur, because a letter's bounds may be off by one pixel of the frame, so finer detail would disagree.
    soft = cv2.GaussianBlur(scaled, (0, 0), 1.2)
    flat = np.asarray(soft, np.float32).ravel()
    flat = flat - flat.mean()
    return np.asarray(flat / max(float(np.linalg.norm(flat)), 1e-6), np.float32)


def grey_between(pixels: Pixels, levels: tuple[int, int]) -> Grey:
    """Return the luma of an image (H, W, 3), stretched so that the first level is 0 and the second 255."""
    import cv2

    low, high = levels
    table = np.clip((np.arange(256) - low) * 255.0 / (high - low), 0, 255).round().astype(np.uint8)
    return np.asarray(cv2.LUT(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), table), np.uint8)


def read_labels(grey: Grey) -> list[LetterReading]:
    """Read every letter in a dark box in an image (H, W), best correlation first, at most `MAX_CANDIDATES`."""
    import cv2

    padded = np.pad(grey, 3)
    bright = (padded > BRIGHT).astype(np.uint8)
    stats = cv2.connectedComponentsWithStats(bright, connectivity=8)[2]
    parts = np.asarray(stats[1:], np.int32)
    parts = parts[(parts[:, 3] >= 3) & (parts[:, 3] <= HEIGHTS_PX[1]) & (parts[:, 2] <= 3.6 * HEIGHTS_PX[1])]
    # The area outside the image counts as dark, because the border may cut a letter.
    light = np.asarray(cv2.integral(bright), np.int32)
    parts = parts[_surround_light(light, parts, 1) <= (1 - SURROUND_DARK) * 2]
    groups = [(*part[:4], part[2] > 1.5 * part[3]) for part in parts]
    groups += [(*word, True) for word in _words(parts)]
    readings = []
    boxes = np.array([group[:4] for group in groups], np.int32).reshape(-1, 4)
    # A box may end one pixel below its letter, so the second frame may be bright along one side.
    frames = [_surround_light(light, boxes, by) for by in (1, 2)]
    for (x, y, w, h, is_word), near, far in zip(groups, *frames, strict=True):
        if h >= HEIGHTS_PX[0] and near <= 1 - SURROUND_DARK and far <= FAR_LIGHT:
            reading = _read(padded, (int(x), int(y), int(w), int(h)), "REF" if is_word else "letter")
            if reading is not None:
                readings.append(reading)
    readings.sort(key=lambda reading: -reading.score)
    words = [reading for reading in readings if reading.label == "REF" and reading.score > 0.6]
    # A letter within a word is part of the word, and is left out.
    separate = [
        reading
        for reading in readings
        if reading.label == "REF"
        or not any(
            word.glyph.x0 <= reading.centre[0] < word.glyph.x1 and word.glyph.y0 <= reading.centre[1] < word.glyph.y1
            for word in words
        )
    ]
    return separate[:MAX_CANDIDATES]


def _surround_light(light: npt.NDArray[np.int32], boxes: npt.NDArray[np.int32], by: int) -> npt.NDArray[np.float64]:
    """Return the fraction of bright pixels in the one-pixel frame `by` pixels outside each box (x, y, w, h)."""

    def inside(grow: int) -> npt.NDArray[np.int64]:
        x0, y0 = np.maximum(boxes[:, 0] - grow, 0), np.maximum(boxes[:, 1] - grow, 0)
        x1 = np.minimum(boxes[:, 0] + boxes[:, 2] + grow, light.shape[1] - 1)
        y1 = np.minimum(boxes[:, 1] + boxes[:, 3] + grow, light.shape[0] - 1)
        return np.asarray(light[y1, x1] - light[y0, x1] - light[y1, x0] + light[y0, x0], np.int64)

    perimeter = 2 * (boxes[:, 2] + boxes[:, 3] + 4 * by - 2)
    return np.asarray((inside(by) - inside(by - 1)) / perimeter)


def _words(parts: npt.NDArray[np.int32]) -> list[tuple[int, int, int, int]]:
    """Return boxes of possible words: two or three adjacent components of equal height (letters of "REF" may touch)."""
    order = parts[np.argsort(parts[:, 0], kind="stable")]
    order = order[order[:, 3] >= HEIGHTS_PX[0] - 1]
    words = []
    for first in range(len(order)):
        chain = [order[first]]
        for part in order[first + 1 :]:
            last = chain[-1]
            height = max(int(last[3]), int(part[3]))
            gap = int(part[0] - last[0] - last[2])
            if gap > 0.6 * height + 1 or len(chain) == 3:
                break
            if gap >= -1 and abs(int(part[1] - last[1])) <= 1 and abs(int(part[3] - last[3])) <= 2:
                chain.append(part)
                x0, y0 = int(chain[0][0]), min(int(stroke_box[1]) for stroke_box in chain)
                x1, y1 = int(part[0] + part[2]), max(int(stroke_box[1] + stroke_box[3]) for stroke_box in chain)
                words.append((x0, y0, x1 - x0, y1 - y0))
    return [word for word in words if word[2] > MIN_WORD * word[3]]


def _read(padded: Grey, bounds: tuple[int, int, int, int], frame: str) -> LetterReading | None:
    x, y, w, h = bounds
    patch = padded[y : y + h, x : x + w]
    if quantile(patch, 0.9) < MIN_WHITE:
        return None
    height, width = padded.shape[0] - 6, padded.shape[1] - 6
    # Lines of pixels next to the letter's bounds, as far as they are inside the image.
    rows, columns = slice(max(3, y), y + h), slice(max(3, x - 1), min(x + w + 1, width + 3))
    lines = [padded[row, columns] for row in (y - 1, y + h) if 3 <= row < height + 3]
    lines += [padded[rows, column] for column in (x - 1, x + w) if 3 <= column < width + 3]
    if lines and quantile(np.concatenate(lines), 0.5) > MAX_BLACK:
        return None
    glyph = Box(x - 3, y - 3, x + w - 3, y + h - 3)
    box = _dark_box(padded[3:-3, 3:-3], glyph)
    templates = bank(frame)
    # Scaling to the frame loses the aspect ratio, so penalise differences: a bar is not a B.
    stretch = np.abs(np.log(w / h / templates.aspects))
    fit = templates.vectors @ _vector(patch, FRAME[frame]) - 0.5 * np.maximum(0, stretch - 0.25)
    best: dict[str, float] = {}
    for label, value in zip(templates.labels, fit, strict=True):
        best[label] = max(best.get(label, 0.0), float(value))
    for side in ("left", "right", "top", "bottom"):
        # A word may be cut between two letters, where only its box touches the border.
        if {"left": box.x0 <= 0, "right": box.x1 >= width, "top": y <= 3, "bottom": y + h >= height + 3}[side]:
            for label, value in _cut_fits(patch, side).items():
                best[label] = max(best.get(label, 0.0), value)
    ranked = tuple(sorted(best.items(), key=lambda item: -item[1]))
    if not ranked or ranked[0][1] <= 0:
        return None
    clipped = x <= 3 or y <= 3 or x + w >= width + 3 or y + h >= height + 3
    return LetterReading(glyph, box, ranked, clipped)


def quantile(values: npt.NDArray[Any], share: float) -> float:
    """Return the linear quantile of at least one grey level, 0..255, as NumPy computes it.

    NumPy's own function takes twenty times as long for the few pixels of a letter.
    """
    ordered = np.sort(values, axis=None)
    at = share * (len(ordered) - 1)
    low = int(at)
    first, second = float(ordered[low]), float(ordered[min(low + 1, len(ordered) - 1)])
    part = at - low
    # Interpolate from the nearer of the two values, as NumPy does.
    return first + (second - first) * part if part < 0.5 else second - (second - first) * (1 - part)


def _cut_fits(patch: Grey, side: str) -> dict[str, float]:
    """Return correlations with labels cut by the image border on one side; reduced for mostly hidden labels."""
    height, width = patch.shape
    best: dict[str, float] = {}
    for label in LABELS:
        for font in BANK_FONTS:
            if side in ("left", "right"):
                glyph = _mask(label, font, height)
            else:
                glyph = _mask(label, font, round(20 * width / _mask(label, font, 20).shape[1]))
            part = {
                "left": glyph[:, -width:],
                "right": glyph[:, :width],
                "top": glyph[-height:],
                "bottom": glyph[:height],
            }[side]
            fraction = part.size / glyph.size
            if MIN_SHOWN <= fraction < 1:
                fit = float(_vector(patch, FRAME["letter"]) @ _vector(part, FRAME["letter"]))
                best[label] = max(best.get(label, 0.0), fit * (0.75 + 0.25 * fraction))
    return best


@lru_cache(maxsize=512)
def _mask(label: str, font: Font, height: int) -> Grey:
    return letter_mask(label, font, min(max(5, height), 2 * HEIGHTS_PX[1]))


def _dark_box(grey: Grey, glyph: Box) -> Box:
    """Grow the letter's bounds while the next line is dark, by at most 40 % of its height, or 2 px if that is more."""
    x0, y0, x1, y1 = (int(v) for v in (glyph.x0, glyph.y0, glyph.x1, glyph.y1))
    most = max(2, round(0.4 * (y1 - y0)))

    def dark(line: Grey) -> bool:
        return bool(line.size and (line <= BRIGHT - 25).mean() >= SURROUND_DARK)

    left_px = next((n for n in range(most) if not dark(grey[y0:y1, max(0, x0 - n - 1) : x0 - n])), most)
    right_px = next((n for n in range(most) if not dark(grey[y0:y1, x1 + n : x1 + n + 1])), most)
    above = next((n for n in range(most) if not dark(grey[max(0, y0 - n - 1) : max(0, y0 - n), x0:x1])), most)
    below = next((n for n in range(most) if not dark(grey[y1 + n : y1 + n + 1, x0:x1])), most)
    return Box(x0 - left_px, y0 - above, x1 + right_px, y1 + below)


def partial_score(grey: Grey, label: str, centre: tuple[float, float], height_px: float) -> float:
    """Return the best correlation, -1..1, of the visible part of a letter cut by the border, within 1 px of `centre`.

    `centre` is the centre of the complete letter, `height_px` its height. The result is 0 if too little is visible, or
    if the visible part is not white on black.
    """
    return max(
        _overlap_ncc(grey, framed, centre[0] + dx, centre[1] + dy)
        for framed in _framed(label, max(5, round(height_px)))
        for dx in (-1, 0, 1)
        for dy in (-1, 0, 1)
    )


@lru_cache(maxsize=64)
def _framed(label: str, height: int) -> tuple[Grey, ...]:
    """Render a label in each font of the templates, within a black frame."""
    return tuple(np.pad(letter_mask(label, font, height), 1) for font in BANK_FONTS)


def _overlap_ncc(grey: Grey, framed: Grey, x: float, y: float) -> float:
    h, w = framed.shape
    x0, y0 = round(x - (w - 1) / 2), round(y - (h - 1) / 2)
    x_low, y_low = max(0, -x0), max(0, -y0)
    x_high, y_high = min(w, grey.shape[1] - x0), min(h, grey.shape[0] - y0)
    if x_high - x_low < 3 or y_high - y_low < 3 or (x_high - x_low) * (y_high - y_low) < 24:
        return 0.0
    a = framed[y_low:y_high, x_low:x_high].astype(np.float32)
    b = grey[y0 + y_low : y0 + y_high, x0 + x_low : x0 + x_high].astype(np.float32)
    ink = a > 127
    if not ink.any() or ink.all() or quantile(b[~ink], 0.5) > MAX_BLACK or quantile(b[ink], 0.9) < MIN_WHITE:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / norm) if norm > 1e-3 else 0.0
