"""Segment an object from points or a box by colour alone: GrabCut on a window around the prompt.

Pixels start as object if their colours are typical of the box rather than its surroundings, or of the points; this also
applies outside the box, because boxes are rarely exact. If the mask then follows an edge of the searched area, that
side is moved outwards. If the mask still follows an edge after that, it is marked `cut_off`: either the object is
larger, or its background has the same colours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hybrid.core.errors import ToolError
from hybrid.core.types import Box
from hybrid.tool import Pixels
from tools._shared.args import Spot
from tools._shared.grabcut import Mask, cut
from tools._shared.reading import check_size

# Long side of the window to segment.
MAX_SIDE_PX = 360
MIN_SIDE_PX = 16
# Margin around a box, as a share of its sides, that belongs to the window and shows the background.
CONTEXT = 0.6
# Margin around a box, as a share of its sides, that is searched whatever its colours.
SLACK = 0.06
# First search radius around points, as a share of the long side.
REACH = 0.3
# Distance, as a share of the sides of the searched area, by which a side that the mask follows is moved outwards.
WIDER = 0.2
ROUNDS = 3
# A mask is cut off if more than this share of its extent along a side is on the edge of the searched area.
ALONG = 0.1
# Largest L*a*b* distance from the colours at the point at which a connected pixel starts as object.
NEAR_COLOUR = 18.0
# Radius around a point, as a share of the long side, within which pixels start as object, whatever their colour.
AROUND_POINT = 0.035
# Bins per L*a*b* channel for comparing the colours inside and around a box.
GROUND_BINS = 12
# Pixels of a colour start as background if less than this share of the colour's density is inside the box.
MIN_LIKELY = 0.4
# Pixels outside the box start as object, too, if at least this share of their colour's density is inside it.
GOES_ON = 0.75
# Parts of the mask below this fraction of the largest are specks.
MIN_SHARE = 0.1
# Radius of the disc around a point within which pixels are certainly object, as a share of the long side. A mask of at
# most twice the area of the squares around the discs is discarded.
DOT = 0.006
# Largest L*a*b* distance from the median colour at which a pixel still has that colour.
ONE_COLOUR = 8.0

Seeds = npt.NDArray[np.uint8]
# Left, top, right and bottom in pixels of the window, right and bottom exclusive.
Edges = tuple[int, int, int, int]
# One value per side: left, top, right, bottom.
Sides = tuple[bool, bool, bool, bool]


def cut_out(pixels: Pixels, box: Box | None, on: Sequence[Spot] = (), off: Sequence[Spot] = ()) -> tuple[Mask, bool]:
    """Segment the object in a box, at points or both, excluding the points `off`; in pixels of the image (H, W, 3).

    Returns:
        The mask (H, W) of the object, and whether it is cut off. A mask that is cut off follows the edge of the
        searched area, so the end of the object is unknown.

    Raises:
        ToolError: the image is smaller than 16 px, or the box leaves no background around it.
    """
    height, width = pixels.shape[:2]
    check_size("segmentation", pixels, MIN_SIDE_PX)
    if box is not None and (box.x1 - box.x0) * (box.y1 - box.y0) > 0.97 * height * width:
        raise ToolError("segmentation: the box leaves no background to compare with; give a smaller one")
    window = image_edges = (0, 0, width, height)
    if box is not None:
        x0, y0 = int(box.x0), int(box.y0)
        window = _grown((x0, y0, max(x0 + 1, round(box.x1)), max(y0 + 1, round(box.y1))), CONTEXT, image_edges)
    part = pixels[window[1] : window[3], window[0] : window[2]]
    ends = (window[0] == 0, window[1] == 0, window[2] == width, window[3] == height)
    view = _View(part, on, off, box, window, ends)
    searched = view.first_search()
    mask_cut = first = view.cut(searched)
    sides = view.sides(mask_cut, searched)
    for _ in range(ROUNDS):
        # Move the edges that the mask follows outwards by `WIDER`, within the window.
        far = _grown(searched, WIDER, (0, 0, view.size[1], view.size[0]))
        x_min, y_min, x_max, y_max = (far[k] if sides[k] else searched[k] for k in range(4))
        wider = x_min, y_min, x_max, y_max
        if wider == searched:
            break
        searched, mask_cut = wider, view.cut(wider)
        sides = view.sides(mask_cut, searched)
    cut_off = any(sides)
    # If the mask still follows an edge, it is probably background, so the first mask is closer to the request.
    first = first if cut_off else mask_cut
    mask = np.zeros((height, width), bool)
    import cv2

    size = (part.shape[1], part.shape[0])
    mask[window[1] : window[3], window[0] : window[2]] = (
        np.asarray(cv2.resize(first.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST_EXACT), np.uint8) > 0
    )
    return mask, cut_off


class _View:
    """A shrunk window of the image, with the prompt in its pixels; `ends`: the sides that are sides of the image."""

    def __init__(
        self,
        part: Pixels,
        on: Sequence[Spot],
        off: Sequence[Spot],
        box: Box | None,
        window: Edges,
        ends: Sides,
    ) -> None:
        import cv2

        self._ends = ends
        height, width = part.shape[:2]
        scale = min(1.0, MAX_SIDE_PX / max(height, width))
        self.size = (max(2, round(height * scale)), max(2, round(width * scale)))
        self._small = np.asarray(cv2.resize(part, self.size[::-1], interpolation=cv2.INTER_AREA), np.uint8)
        across, down = self.size[1] / width, self.size[0] / height

        def place(x: float, y: float) -> tuple[int, int]:
            return int((x - window[0]) * across), int((y - window[1]) * down)

        self._on = [place(spot.x, spot.y) for spot in on]
        self._away = [place(spot.x, spot.y) for spot in off]
        self._box: Edges | None = None
        if box is not None:
            (x0, y0), (x1, y1) = place(box.x0, box.y0), place(box.x1, box.y1)
            self._box = (x0, y0, max(x1, x0 + 1), max(y1, y0 + 1))
        self._start = self._things()

    def first_search(self) -> Edges:
        """Return the box with the object's starting pixels and a margin; else the surroundings of the points."""
        image_edges = (0, 0, self.size[1], self.size[0])
        if self._box is not None:
            x0, y0, x1, y1 = _grown(self._box, SLACK, image_edges)
            rows, columns = np.flatnonzero(self._start.any(axis=1)), np.flatnonzero(self._start.any(axis=0))
            if rows.size:
                start = _grown((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1), SLACK, image_edges)
                x0, y0, x1, y1 = min(x0, start[0]), min(y0, start[1]), max(x1, start[2]), max(y1, start[3])
            return x0, y0, x1, y1
        reach = max(3, round(REACH * max(self.size)))
        columns, rows = np.array([x for x, _ in self._on]), np.array([y for _, y in self._on])
        return (
            max(0, int(columns.min()) - reach),
            max(0, int(rows.min()) - reach),
            min(image_edges[2], int(columns.max()) + reach + 1),
            min(image_edges[3], int(rows.max()) + reach + 1),
        )

    def sides(self, mask: Mask, searched: Edges) -> Sides:
        """Return the sides on which a mask follows the edge of the searched area, except where the image ends."""
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if not rows.size:
            return (False,) * 4
        x0, y0, x1, y1 = searched
        tall, wide = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
        lines = ((mask[:, x0], tall), (mask[y0], wide), (mask[:, x1 - 1], tall), (mask[y1 - 1], wide))
        at_end = (x0 == 0, y0 == 0, x1 == self.size[1], y1 == self.size[0])
        x_min, y_min, x_max, y_max = (
            not (at_border and ends) and bool(line.sum() > max(2.0, ALONG * length))
            for (line, length), at_border, ends in zip(lines, at_end, self._ends, strict=True)
        )
        return x_min, y_min, x_max, y_max

    def cut(self, searched: Edges) -> Mask:
        """Run GrabCut within the edges; return the parts of its mask that contain a point, else all but specks."""
        import cv2

        seeds = np.full(self.size, cv2.GC_BGD, np.uint8)
        x0, y0, x1, y1 = searched
        inside = np.s_[y0:y1, x0:x1]
        seeds[inside] = np.where(self._start[inside], cv2.GC_PR_FGD, cv2.GC_PR_BGD)
        if not (seeds == cv2.GC_BGD).any():
            # If everything is searched, the frame of the image is the background.
            for line in (np.s_[:1], np.s_[-1:], np.s_[:, :1], np.s_[:, -1:]):
                seeds[line] = cv2.GC_BGD
        radius = max(1, round(DOT * max(self.size)))
        for places, value in ((self._on, cv2.GC_FGD), (self._away, cv2.GC_BGD)):
            for place in places:
                cv2.circle(seeds, place, radius, value, cv2.FILLED)
        mask = cut(self._small, seeds)
        count, parts = cv2.connectedComponents(mask.astype(np.uint8))
        if self._on:
            selected = np.isin(parts, list({int(parts[y, x]) for x, y in self._on} - {0}))
            dots = len(self._on) * (2 * radius + 1) ** 2
            return selected if selected.sum() > 2 * dots else np.zeros_like(selected)
        areas = np.bincount(parts.ravel(), minlength=count)
        areas[0] = 0
        return np.isin(parts, np.flatnonzero(areas >= max(1.0, MIN_SHARE * areas.max())))

    def _things(self) -> Mask:
        import cv2

        if self._on:
            # Start from the area around the points and add all connected pixels of the same colour.
            blurred = cv2.GaussianBlur(self._small, (0, 0), 1.5).astype(np.float32) / 255
            colours = cv2.cvtColor(blurred, cv2.COLOR_RGB2LAB)
            start = np.zeros(self.size, np.uint8)
            for x, y in self._on:
                window = colours[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].reshape(-1, 3)
                near = np.linalg.norm(colours - np.median(window, axis=0), axis=2) < NEAR_COLOUR
                _, parts = cv2.connectedComponents(near.astype(np.uint8))
                start[(parts == parts[y, x]) & near] = 1
                cv2.circle(start, (x, y), max(1, round(AROUND_POINT * max(self.size))), 1, cv2.FILLED)
            return start > 0
        inside = np.zeros(self.size, bool)
        if self._box is not None:
            x0, y0, x1, y1 = self._box
            inside[y0:y1, x0:x1] = True
        # Density of each pixel's colour inside a mask, relative to the sum of its densities inside and outside, 0..1.
        lab = cv2.cvtColor(cv2.GaussianBlur(self._small, (0, 0), 1.0), cv2.COLOR_RGB2LAB)
        levels = lab.astype(np.int64) * GROUND_BINS // 256
        cells = (levels[..., 0] * GROUND_BINS + levels[..., 1]) * GROUND_BINS + levels[..., 2]
        within, around = (
            np.bincount(cells[region], minlength=GROUND_BINS**3) / max(1, int(region.sum()))
            for region in (inside, ~inside)
        )
        likely = np.asarray((within / np.maximum(within + around, 1e-12))[cells], np.float64)
        unlike = inside & (likely >= MIN_LIKELY)
        if unlike.sum() < MIN_SHARE * inside.sum():
            # The object has the colours of the background, so colours do not help.
            return inside
        beyond = unlike | (likely >= GOES_ON)
        clean = cv2.morphologyEx(beyond.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        count, parts = cv2.connectedComponents(clean)
        shares = np.bincount(parts[inside], minlength=count)
        shares[0] = 0
        # A part with only a small area inside the box belongs to a neighbouring object.
        goes_on = np.isin(parts, np.flatnonzero(shares >= max(1.0, MIN_SHARE * inside.sum())))
        return unlike | goes_on


def _grown(edges: Edges, by: float, limits: Edges) -> Edges:
    """Move the edges outwards by a fraction of their sides, at least 2 px, within the limits."""
    x0, y0, x1, y1 = edges
    across, down = max(2, round(by * (x1 - x0))), max(2, round(by * (y1 - y0)))
    return (
        max(limits[0], x0 - across),
        max(limits[1], y0 - down),
        min(limits[2], x1 + across),
        min(limits[3], y1 + down),
    )


def is_one_colour(pixels: Pixels, mask: Mask) -> bool:
    """Return whether nine tenths of a mask (H, W) of an image (H, W, 3) have one colour."""
    import cv2

    if not mask.any():
        return False
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)[mask]
    off = np.linalg.norm(lab - np.median(lab, axis=0), axis=1)
    return float(np.quantile(off, 0.9)) <= ONE_COLOUR


def contrast(pixels: Pixels, mask: Mask) -> float:
    """Return the colour difference across a mask's edge, in L*a*b* units; 0 without an edge."""
    import cv2

    kernel = np.ones((5, 5), np.uint8)
    mask_u8 = mask.astype(np.uint8)
    inside = mask & (cv2.erode(mask_u8, kernel) == 0)
    outside = ~mask & (cv2.dilate(mask_u8, kernel) > 0)
    if not inside.any() or not outside.any():
        return 0.0
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    return float(np.linalg.norm(lab[inside].mean(axis=0) - lab[outside].mean(axis=0)))
