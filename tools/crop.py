"""Crop: exact regions of an image enlarged, a numbered grid of tiles, or several images side by side on one sheet.

    hybrid tools run crop photo.jpg --args '{"box": {"x0": 40, "y0": 90, "x1": 140, "y1": 160}}' --picture part.png
    hybrid tools run crop photo.jpg --args '{"grid": {"rows": 2, "columns": 3}}'
    hybrid tools run crop one.jpg two.jpg

Without arguments one image gives its four quadrants and several give a contact sheet. Resampling uses Pillow's Lanczos
filter. A crop is a separate image that records its box and scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated, NotRequired, Self

import numpy as np
from pydantic import Field, model_validator, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import at, size_px, span_px
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Corners, Fault, Finding, Json
from hybrid.tool import Args, Claims, Evidence, Picture, Pixels, Request, Tool
from hybrid.tool.backends import WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from tools._shared.args import PointArg, RegionArg, read_boxes, read_points
from tools._shared.boxes import corners
from tools._shared.overlay import DARK, WHITE, extent, write
from tools._shared.wording import wording_of

# Long side of a crop if no scale is requested.
TARGET_PX = 768
MAX_SCALE = 8.0
MAX_SIDE_PX = 4096
# Default side of the square around a point, as a share of the image's longer side.
POINT_SHARE = 0.2
MIN_POINT_PX = 32
MIN_SQUARE_PX = 4
SHEET_TILE_PX = 448
SHEET_GAP_PX = 8
SHEET_COLUMNS = 3
MAX_IMAGES = 9
QUADRANTS = ("upper left", "upper right", "lower left", "lower right")
GREY = (128, 128, 128)


class GridArg(Args):
    """A grid of equal tiles over the whole image."""

    rows: int = Field(ge=1, le=6)
    columns: int = Field(ge=1, le=6)


class CropArgs(Args):
    """Arguments of the crop tool; with one image at most one of box, point and grid."""

    box: RegionArg | None = Field(default=None, description="region")
    point: PointArg | None = Field(default=None, description="centre of a square")
    # A share, because a length in pixels would depend on the coordinate frame in which a model writes.
    share: float | None = Field(default=None, gt=0, le=1, description="its side over the image's longer side")
    grid: GridArg | None = Field(default=None, description="of numbered tiles")
    scale: float | None = Field(
        default=None, ge=0.1, le=MAX_SCALE, description="pixels per image pixel; default: long side about 768"
    )

    @model_validator(mode="after")
    def _one_region(self) -> Self:
        if sum(value is not None for value in (self.box, self.point, self.grid)) > 1:
            raise ValueError("give one of box, point and grid")
        if self.share is not None and self.point is None:
            raise ValueError("share is the side of a square around a point: give the point")
        return self


class CropRow(TypedDict):
    """A region that was cut, in the order of the pictures."""

    name: Annotated[str, Field(description="region, a quadrant or the number of a tile")]
    box_px: Annotated[Corners, Field(description="x0, y0, x1, y1 in image 1")]
    scale: Annotated[float, Field(description="pixels of the crop per pixel of the image")]


class SheetRow(TypedDict):
    """An image on a contact sheet."""

    image: Annotated[int, Field(description="its number, from 1")]
    box_px: Annotated[Corners, Field(description="x0, y0, x1, y1 on the sheet")]
    scale: Annotated[float, Field(description="pixels of the sheet per pixel of the image")]


@with_config(extra="forbid")
class CropData(TypedDict):
    """Data of crop."""

    crops: Annotated[NotRequired[list[CropRow]], Field(description="of a single image")]
    sheet: Annotated[NotRequired[list[SheetRow]], Field(description="of several images")]


def cut(pixels: Pixels, box: Box, scale: float | None) -> tuple[Pixels, Box, float]:
    """Cut and enlarge a region of an image (H, W, 3); return the pixels, the box that was cut and the scale.

    The box is widened to whole pixels and clipped to the image. The scale is reduced if the crop would be longer than
    4,096 px, and raised if its longer side would be shorter than one pixel. It is exact up to rounding to whole pixels.
    """
    height, width = pixels.shape[:2]
    x0, y0 = min(max(0, math.floor(box.x0)), width - 1), min(max(0, math.floor(box.y0)), height - 1)
    x1, y1 = max(x0 + 1, min(width, math.ceil(box.x1))), max(y0 + 1, min(height, math.ceil(box.y1)))
    part = pixels[y0:y1, x0:x1]
    longest = max(part.shape[:2])
    target_scale = min(MAX_SCALE, TARGET_PX / longest) if scale is None else scale
    target_scale = min(target_scale, MAX_SIDE_PX / longest)
    size = max(1, round(part.shape[1] * target_scale)), max(1, round(part.shape[0] * target_scale))
    cut_box = Box(float(x0), float(y0), float(x1), float(y1))
    # Derive the scale from the whole pixels along the longer side, so that a point maps back exactly.
    along = 0 if part.shape[1] >= part.shape[0] else 1
    return resized(part, size), cut_box, size[along] / longest


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize an image (H, W, 3) to `size` (width, height) by Lanczos; pixels are unchanged at the same size."""
    # OpenCV has the same quality and speed but adds some 20 MB to the memory of the worker.
    from PIL import Image

    return np.array(Image.fromarray(np.ascontiguousarray(pixels)).resize(size, Image.Resampling.LANCZOS))


def region(request: Request[CropArgs]) -> tuple[Box, float]:
    """Return the region that the arguments ask for, and the confidence 0..1 that it is the intended one.

    Raises:
        ToolError: the region is outside the image, or no drawn point has the given letter.
    """
    args, (height, width) = request.args, request.images[0].shape[:2]
    if args.box is not None:
        return read_boxes("crop", [args.box], (height, width))[0], 1.0
    if args.point is None:
        return Box(0, 0, width, height), 1.0
    mark_findings: list[Finding] = []
    if args.point.x is None:
        # Imported here, because few calls name a letter and the modules of the markers tool take 60 ms to import.
        from tools.markers import MarkersArgs, locate

        # The markers tool finds a point given only by its letter. It runs here instead of through the card's `needs`,
        # which would search every image of every call. Only REF is named in the call: a search for any other single
        # letter would accept the nearest drawn letter, while REF is hardly read unless named.
        labels = ("REF",) if args.point.label == "REF" else ()
        marks = locate(request.images[0], MarkersArgs(labels=labels, kind="point"))
        mark_findings = [Finding(marks.text, marks.data, marks.confidence, "classical", "")]
    (spot,) = read_points("crop", [args.point], mark_findings, (height, width))
    longer = max(height, width)
    side = max(MIN_POINT_PX, POINT_SHARE * longer) if args.share is None else args.share * longer
    side = max(MIN_SQUARE_PX, side)
    # Shift rather than clip, so that a point at the border still has its surroundings.
    x0 = min(max(0.0, spot.x + 0.5 - side / 2), max(0.0, width - side))
    y0 = min(max(0.0, spot.y + 0.5 - side / 2), max(0.0, height - side))
    return Box(x0, y0, min(x0 + side, width), min(y0 + side, height)), spot.confidence


def tiles(size: tuple[int, int], rows: int, columns: int) -> list[Box]:
    """Return the boxes of a grid over an image of `size` (H, W), row by row; the boxes tile the image without overlap.

    Raises:
        ToolError: the image has fewer pixels along a side than tiles.
    """
    if size[0] < rows or size[1] < columns:
        raise ToolError(
            f"crop: an image of {size_px(size[1], size[0])} px cannot be cut into {columns} x {rows} tiles",
            Fault.BAD_ARGUMENTS,
        )
    down = [float(round(size[0] * number / rows)) for number in range(rows + 1)]
    across = [float(round(size[1] * number / columns)) for number in range(columns + 1)]
    return [Box(across[c], down[r], across[c + 1], down[r + 1]) for r in range(rows) for c in range(columns)]


def crop_region(request: Request[CropArgs]) -> Evidence:
    """Crop and enlarge one region. Data: `CropData` with `crops`."""
    requested, confidence = region(request)
    pixels, box, scale = cut(request.images[0], requested, request.args.scale)
    text = f"Image 1, {span_px(box, to=' to ')}, at {_times(scale)} times its size: {_size(pixels, -1)} px."
    return Evidence(text, {"crops": [_row("region", box, scale)]}, confidence, (Picture(pixels, box=box, scale=scale),))


def crop_tiles(request: Request[CropArgs], grid: GridArg | None) -> Evidence:
    """Crop and enlarge each tile, preceded by an overlay with the numbers of a grid.

    Data as in `crop_region`; the names are numbers. Without a grid the crops are the four quadrants in reading order.
    """
    image = request.images[0]
    boxes = tiles((image.shape[0], image.shape[1]), *((2, 2) if grid is None else (grid.rows, grid.columns)))
    crops = [cut(image, box, request.args.scale) for box in boxes]
    names = QUADRANTS if grid is None else tuple(str(number) for number in range(1, len(boxes) + 1))
    rows = [_row(name, box, scale) for name, (_, box, scale) in zip(names, crops, strict=True)]
    pictures = tuple(Picture(pixels, box=box, scale=scale) for pixels, box, scale in crops)
    if grid is None:
        lines = [
            f"{name}: {span_px(box, to=' to ')}, x{_times(scale, -number)}."
            for number, (name, (_, box, scale)) in enumerate(zip(names, crops, strict=True), 1)
        ]
        return Evidence("\n".join(["Image 1 in four parts, each enlarged:", *lines]), {"crops": rows}, 1.0, pictures)
    text = (
        f"Image 1 in {grid.rows} rows of {grid.columns} tiles, numbered row by row from the upper left.\n"
        f"The first picture shows the numbers; tile 1 covers {span_px(crops[0][1], to=' to ')}.\n"
        f"Then each tile follows at about {_times(crops[0][2], -2)} times its size."
    )
    return Evidence(text, {"crops": rows}, 1.0, (Picture(partial(draw_grid, image, boxes)), *pictures))


def draw_grid(image: Pixels, boxes: Sequence[Box]) -> Pixels:
    """Draw the outlines and numbers (from 1) of boxes on a copy of an image (H, W, 3)."""
    import cv2

    out = image.copy()
    line = max(1, round(min(out.shape[:2]) / 400))
    for box in boxes:
        corners = (int(box.x0), int(box.y0)), (int(box.x1) - 1, int(box.y1) - 1)
        cv2.rectangle(out, *corners, DARK, line + 2)
        cv2.rectangle(out, *corners, WHITE, line)
    for number, box in enumerate(boxes, 1):
        scale = max(0.3, min(box.x1 - box.x0, box.y1 - box.y0) / 220)
        down = extent(str(number), scale)[1]
        write(out, str(number), (int(box.x0) + 3 * line + 3, int(box.y0) + 3 * line + 4 + down), scale)
    return out


def contact_sheet(images: Sequence[Pixels]) -> tuple[Pixels, list[tuple[Box, float]]]:
    """Place named images side by side on a sheet; return it, and the box (in sheet pixels) and scale of each image."""
    columns = min(len(images), 2 if len(images) == 4 else SHEET_COLUMNS)
    rows = math.ceil(len(images) / columns)
    scales = [min(MAX_SCALE, SHEET_TILE_PX / max(image.shape[:2])) for image in images]
    parts = [
        resized(image, (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale))))
        for image, scale in zip(images, scales, strict=True)
    ]
    band = 28
    heights = [max(part.shape[0] for part in parts[row * columns : (row + 1) * columns]) for row in range(rows)]
    tall = sum(heights) + rows * (band + SHEET_GAP_PX) + SHEET_GAP_PX
    sheet = np.full((tall, columns * (SHEET_TILE_PX + SHEET_GAP_PX) + SHEET_GAP_PX, 3), GREY, np.uint8)
    places = []
    for number, (part, scale) in enumerate(zip(parts, scales, strict=True)):
        row, column = divmod(number, columns)
        x = SHEET_GAP_PX + column * (SHEET_TILE_PX + SHEET_GAP_PX)
        y = SHEET_GAP_PX + sum(heights[:row]) + row * (band + SHEET_GAP_PX)
        name = f"image {number + 1}"
        write(sheet, name, (x + 2, y + 3 + extent(name, 0.7)[1]), 0.7)
        sheet[y + band : y + band + part.shape[0], x : x + part.shape[1]] = part
        places.append((Box(x, y + band, x + part.shape[1], y + band + part.shape[0]), scale))
    return sheet, places


def crop_sheet(request: Request[CropArgs]) -> Evidence:
    """Put several images on one sheet. Data: `CropData` with `sheet`.

    Raises:
        ToolError: a region was requested as well, which is possible only for one image.
    """
    args = request.args
    if any(value is not None for value in (args.box, args.point, args.grid, args.scale)):
        raise ToolError(
            "crop: box, point, grid and scale are for one image; several images make a contact sheet",
            Fault.BAD_ARGUMENTS,
        )
    sheet, places = contact_sheet(request.images)
    rows: list[Json] = [
        {"image": number, "box_px": corners(box), "scale": scale} for number, (box, scale) in enumerate(places, 1)
    ]
    text = f"{len(places)} images side by side on one sheet of {_size(sheet, -1)} px, with their names."
    # A sheet has no single parent image. In pixels of the first image, the sheet's box extends beyond that image on all
    # sides.
    (first, scale), (height, width) = places[0], sheet.shape[:2]
    full_box = Box(-first.x0 / scale, -first.y0 / scale, (width - first.x0) / scale, (height - first.y0) / scale)
    return Evidence(text, {"sheet": rows}, 1.0, (Picture(sheet, box=full_box, scale=scale),))


def _times(scale: float, picture: int = -1) -> str:
    return at("ratio", scale, picture, ".2f")


def _size(pixels: Pixels, picture: int) -> str:
    return size_px(pixels.shape[1], pixels.shape[0], picture)


def _row(name: str, box: Box, scale: float) -> dict[str, Json]:
    return {"name": name, "box_px": corners(box), "scale": scale}


class ExactCrop(WeightFree[CropArgs]):
    """The only backend: resampled pixels of the image."""

    def answer(self, request: Request[CropArgs]) -> Evidence:
        """Crop as requested. Raises `ToolError` for a region outside the image."""
        args = request.args
        if len(request.images) > 1:
            return crop_sheet(request)
        # An image one pixel wide or high has no quadrants and is returned in full.
        small = args.grid is None and min(request.images[0].shape[:2]) < 2
        return crop_region(request) if args.box or args.point or small else crop_tiles(request, args.grid)


TOOL = Tool(
    card=tool_card(__file__, ExactCrop),
    args=CropArgs,
    claims=Claims(()),
    wording=wording_of(__file__),
    output=schema_of(CropData),
)
