"""Makes the pictures of a dialogue: the parts of an image, the small full image, and the full image with lines.

Parts are numbered from 1, column by column as in the released code (`toolkit/`): with four, 1 is upper left, 2 lower
left, 3 upper right, 4 lower right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from hybrid.tool import Pixels

# Columns and rows by number of parts.
GRIDS: Mapping[int, tuple[int, int]] = {4: (2, 2), 6: (3, 2), 8: (4, 2), 9: (3, 3), 16: (4, 4)}

FOUR = ("upper left", "lower left", "upper right", "lower right")
# Widths of the dividing lines: red inside white.
WHITE_PX, RED_PX = 15, 5
# Longest side of a row of parts; a longer row would only be shrunk by the model.
STITCHED_PX = 4096


def place(number: int, splits: int) -> str:
    """Return the position of part `number` in words."""
    if splits == 4:
        return FOUR[number - 1]
    column, row = divmod(number - 1, GRIDS[splits][1])
    return f"column {column + 1} from the left, row {row + 1} from the top"


def places(splits: int) -> str:
    """Return the positions of all parts in words: `1 is the upper left, ...`."""
    return "; ".join(f"{number} is {place(number, splits)}" for number in range(1, splits + 1))


def part_size(width: int, height: int, splits: int) -> tuple[int, int]:
    """Return width and height of each part in pixels; a remainder at the right and bottom belongs to no part."""
    columns, rows = GRIDS[splits]
    return max(1, width // columns), max(1, height // rows)


def cut(pixels: Pixels, splits: int) -> tuple[Pixels, ...]:
    """Return the parts of a picture (H, W, 3) at its own resolution, in order of their numbers."""
    width, height = part_size(pixels.shape[1], pixels.shape[0], splits)
    columns, rows = GRIDS[splits]
    return tuple(
        pixels[row * height : (row + 1) * height, column * width : (column + 1) * width]
        for column in range(columns)
        for row in range(rows)
    )


def shrink_to_part(pixels: Pixels, splits: int) -> Pixels:
    """Shrink the picture (Lanczos) to the size of one of its parts: the protocol's full view."""
    from PIL import Image

    size = part_size(pixels.shape[1], pixels.shape[0], splits)
    return np.array(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS))


def lined(pixels: Pixels, splits: int) -> Pixels:
    """Return a copy with red lines on white between the parts."""
    columns, rows = GRIDS[splits]
    height, width = pixels.shape[:2]
    out = pixels.copy()
    for thickness, rgb in ((WHITE_PX, (255, 255, 255)), (RED_PX, (255, 0, 0))):
        for column in range(1, columns):
            low, high = _band(column * width // columns, thickness, width)
            out[:, low:high] = rgb
        for row in range(1, rows):
            low, high = _band(row * height // rows, thickness, height)
            out[low:high] = rgb
    return out


def _band(middle: int, thickness: int, size: int) -> tuple[int, int]:
    low = max(0, middle - thickness // 2)
    return low, min(size, low + thickness)


def stitch(parts: Sequence[Pixels]) -> Pixels:
    """Join parts of equal height side by side (paper, appendix G.3), shrunk to `STITCHED_PX` if longer."""
    from PIL import Image

    row = Image.fromarray(np.concatenate(parts, axis=1))
    if row.width > STITCHED_PX:
        row = row.resize((STITCHED_PX, max(1, row.height * STITCHED_PX // row.width)), Image.Resampling.LANCZOS)
    return np.array(row)


def turn(start: int, splits: int) -> tuple[int, ...]:
    """Return the parts in the released order: by number from `start` on, cyclically.

    From 2 to 3 and from 4 to 1 this order jumps across the picture, although the paper describes moves to a neighbour.
    """
    return tuple((start - 1 + step) % splits + 1 for step in range(splits))


def stitched_orders(mode: str, start: int | None, choose: bool) -> tuple[tuple[int, ...], ...]:
    """List every choice of two or more of the four parts that a dialogue can show side by side, in order."""
    if mode == "zoom":
        return tuple(row for count in (2, 3, 4) for row in combinations(range(1, 5), count))
    if start is None:
        return ()
    if choose:
        return tuple(row for count in (2, 3, 4) for row in combinations(range(1, 5), count) if start in row)
    return tuple(turn(start, 4)[:count] for count in (2, 3, 4))
