"""Preprocess an image: shrink it, remove its drawn marks, read a map at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.core.coordinates import at, size_px
from hybrid.core.errors import ToolError
from hybrid.core.types import Finding
from hybrid.marks.marks import remove_marks, scale_marks
from hybrid.marks.marks_json import marks_from
from hybrid.tool import Pixels
from hybrid.tool.checkpoint import Checkpoint


def whole_picture(checkpoint: Checkpoint, pixels: Pixels, height: int, width: int) -> Any:
    """Resize an RGB image (H, W, 3) to a tensor (1, 3, height, width)."""
    return checkpoint.process(
        images=[pixels],
        # Explicit because an image of 3 rows would be taken for one of 3 channels.
        input_data_format="channels_last",
        do_resize=True,
        size={"height": height, "width": width},
        do_center_crop=False,
    )["pixel_values"]


def square_side(processor: Any) -> int:
    """Return the side, in pixels, of a processor's square input. Raises `ValueError` if it has no such setting."""
    size = (getattr(processor, "do_center_crop", False) and processor.crop_size) or processor.size
    side = size.get("height") or size.get("shortest_edge")
    if not side:
        raise ValueError("the image processor names no size")
    return int(side)


# Side of the median window for reading a point: a single pixel may be on the wrong side of an edge.
WINDOW = 5


def shrink(pixels: Pixels, longest: int) -> Pixels:
    """Shrink an image to a long side of at most `longest` px; return the same array if it is small enough."""
    import cv2

    height, width = pixels.shape[:2]
    factor = longest / max(height, width)
    if factor >= 1:
        return pixels
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def unmarked(pixels: Pixels, markers: Sequence[Finding], longest: int) -> Pixels:
    """Shrink an image to a long side of at most `longest` px and remove the marks that the first of `markers` lists."""
    reduced = shrink(pixels, longest)
    for finding in markers[:1]:
        scale = (reduced.shape[1] / pixels.shape[1], reduced.shape[0] / pixels.shape[0])
        reduced = remove_marks(reduced, scale_marks(marks_from(finding.data), *scale))
    return reduced


def check_size(tool: str, pixels: Pixels, least: int) -> None:
    """Raise `ToolError`, naming `tool`, if a side of the image is below `least` px."""
    height, width = pixels.shape[:2]
    if min(height, width) < least:
        size_text = f"image 1 is {size_px(width, height)} px"
        raise ToolError(f"{tool}: {size_text}; at least {at('width', least)} px a side are needed")


def check_elongation(tool: str, pixels: Pixels, most: float) -> None:
    """Raise `ToolError`, naming `tool`, if the image is more elongated than `most` : 1."""
    height, width = pixels.shape[:2]
    if max(height, width) > most * min(height, width):
        raise ToolError(f"{tool}: an image of {size_px(width, height)} px is too elongated (at most {most:g} : 1)")


def window_median(values: npt.NDArray[np.float32], x: float, y: float, size: tuple[int, int]) -> float:
    """Return the median of a map (h, w) around the point (x, y) of an image of `size` (H, W)."""
    rows, columns = values.shape
    row = min(max(int((y + 0.5) * rows / size[0]), 0), rows - 1)
    column = min(max(int((x + 0.5) * columns / size[1]), 0), columns - 1)
    half = WINDOW // 2
    return float(np.median(values[max(0, row - half) : row + half + 1, max(0, column - half) : column + half + 1]))
