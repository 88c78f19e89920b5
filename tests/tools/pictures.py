"""Pictures for the tests of tools, and the output of the tool `markers` for them."""

from typing import Any

import numpy as np

from hybrid.core.types import Finding
from hybrid.plugins.registry import load
from hybrid.tool import Pixels, Request

READ: dict[tuple[bytes, str], Finding] = {}


def picture(height: int = 90, width: int = 120, seed: int = 0) -> Pixels:
    """Return noise of every colour, (height, width, 3)."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def scene(height: int = 90, width: int = 120, seed: int = 0) -> Pixels:
    """Return noise of every colour that is dark in its upper left quarter, so that the picture shows something."""
    pixels = picture(height, width, seed)
    pixels[: height // 2, : width // 2] //= 4
    return pixels


def markers(pixels: Pixels, **args: Any) -> Finding:
    """Return the markers tool's output, computed once per picture."""
    key = pixels.tobytes(), repr(args)
    if key not in READ:
        tool = load("tools", "markers")
        card = tool.backend("classical")
        (result,) = card.make().run([Request((pixels,), tool.args(**args))])
        READ[key] = Finding(result.text, result.data, result.confidence, "classical", card.version)
    return READ[key]
