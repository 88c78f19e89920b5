"""Changes to images before they reach a tool: size, grey, gamma, compression, border. The tables use these names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cv2
import numpy as np

from hybrid.tool import Pixels

Change = Callable[[Pixels], Pixels]


def scaled(by: float) -> Change:
    """Scale the image: by area if it is reduced, else by cubic interpolation."""
    method = cv2.INTER_AREA if by < 1 else cv2.INTER_CUBIC
    return lambda pixels: np.asarray(cv2.resize(pixels, None, fx=by, fy=by, interpolation=method), np.uint8)


def grey(pixels: Pixels) -> Pixels:
    """Replace all channels by luma."""
    return np.repeat(np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)[..., None], 3, axis=2)


def gamma(exponent: float) -> Change:
    """Apply a gamma; an exponent below 1 makes the image lighter."""
    return lambda pixels: np.asarray(np.rint(255 * (pixels / 255) ** exponent), np.uint8)


def compressed(quality: int) -> Change:
    """Compress the image as JPEG and decode it."""
    kind = [cv2.IMWRITE_JPEG_QUALITY, quality]
    return lambda pixels: np.ascontiguousarray(
        cv2.imdecode(cv2.imencode(".jpg", pixels[..., ::-1], kind)[1], cv2.IMREAD_COLOR)[..., ::-1]
    )


def padded(pixels: Pixels, by: int = 20) -> Pixels:
    """Add a black border of `by` px."""
    return np.pad(pixels, ((by, by), (by, by), (0, 0)))


CHANGES: Mapping[str, Change] = {
    "as it is": lambda pixels: pixels,
    **{f"{by:g} times": scaled(by) for by in (0.5, 0.75, 1.5, 2, 3, 4)},
    "grey": grey,
    "gamma 0.5": gamma(0.5),
    "gamma 2": gamma(2.0),
    "jpeg 50": compressed(50),
    "jpeg 75 twice": lambda pixels: compressed(75)(compressed(75)(pixels)),
}
