"""Flat pictures as backgrounds: soft blobs, noise, stripes, or shapes with grain.

Run: `background(np.random.default_rng(7), "stripes", 240, 320)`.
"""

from __future__ import annotations

from typing import Literal

import cv2
import numpy as np

from hybrid.tool import Pixels

Background = Literal["blobs", "noise", "stripes", "scene"]
BACKGROUNDS: tuple[Background, ...] = ("blobs", "noise", "stripes", "scene")


def background(rng: np.random.Generator, kind: Background, height: int, width: int) -> Pixels:
    """Make a picture without marks: soft colour blobs, pixel noise, stripes, or flat shapes with grain."""
    base = rng.uniform(30, 225, 3)
    if kind == "blobs":
        field = cv2.resize(rng.normal(0, 1, (6, 8, 3)), (width, height), interpolation=cv2.INTER_CUBIC) * 50
        field = field + rng.normal(0, 6, field.shape) + base
    elif kind == "noise":
        field = cv2.GaussianBlur(rng.normal(0, 1, (height, width, 3)), (0, 0), float(rng.uniform(0.6, 2.5)))
        field = field / field.std() * rng.uniform(20, 60) + base
    elif kind == "stripes":
        rows, columns = np.mgrid[:height, :width]
        turn, length = rng.uniform(0, np.pi), rng.uniform(6, 40)
        wave = np.sign(np.sin((rows * np.sin(turn) + columns * np.cos(turn)) * 2 * np.pi / length))
        field = base + wave[..., None] * rng.uniform(10, 60, 3) + rng.normal(0, 8, (height, width, 3))
    else:
        canvas = np.full((height, width, 3), rng.uniform(30, 225, 3))
        for _ in range(40):
            color = tuple(float(value) for value in rng.uniform(0, 255, 3))
            x, y, w, h = (int(value) for value in rng.integers(0, (width, height, width // 3, height // 3)))
            if rng.random() < 0.5:
                cv2.rectangle(canvas, (x, y), (x + w, y + h), color, -1)
            else:
                cv2.ellipse(canvas, (x, y), (w // 2 + 3, h // 2 + 3), float(rng.uniform(0, 180)), 0, 360, color, -1)
        field = cv2.GaussianBlur(canvas, (0, 0), 0.7) + rng.normal(0, 5, (height, width, 3))
    return np.clip(field, 0, 255).astype(np.uint8)
