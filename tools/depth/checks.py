"""Known answers of depth on rendered scenes: which of two points is nearer, and where objects end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hybrid.tool import CheckCase, Evidence, KnownAnswer
from tools._shared.known_answers import DEPTH_ANSWERS, depth_item, number, point_args, rows_of

if TYPE_CHECKING:
    from hybrid.samples.item import DepthFacts, Item

Place = tuple[float, float]
# A point of a scene where an object ends, and the unit vector from the object to the background.
Step = tuple[Place, Place]

# Shortest length over which the depth on each side of a step must be nearly constant.
FLAT_PX = 18
STEPS = 8
# Distances from a step in px. The levels of a map are read at `APART_PX` on both sides, and the map must cross their
# middle within `BESIDE_PX` of the step. A map shifted by 8 px fails.
BESIDE_PX, APART_PX = 6.0, 15.0
# Smallest share of the horizontal steps that must be right, and likewise of the vertical steps.
MIN_SHARE = 0.5
# Scale of a scene that is shrunk before the network sees it.
LARGE = 3


def _scene(index: int) -> tuple[Item, DepthFacts]:
    from hybrid.samples.item import DepthFacts

    item = depth_item(index)
    assert isinstance(item.facts, DepthFacts)  # noqa: S101 - the only type of this task
    return item, item.facts


def _nearer(index: int) -> CheckCase:
    item, facts = _scene(index)
    nearer = item.answer

    def validation_error(evidence: Evidence) -> str | None:
        values = [number(point, "depth_0_1") for point in rows_of(evidence, "points")]
        if values[nearer] > values[1 - nearer]:
            return None
        return f"the nearer point has relative depth {values[nearer]:.2f}, the farther one {values[1 - nearer]:.2f}"

    return CheckCase(item.images, {"points": point_args(facts.points)}, validation_error)


def _edges(index: int, scale: int, beside_px: float) -> CheckCase:
    import cv2

    item, facts = _scene(index)
    picture = cv2.resize(item.images[0], None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    selected = steps(facts.depth_m)
    horizontal = np.array([dx != 0 for _, (dx, _) in selected])
    places = [
        ((x + 0.5) * scale - 0.5 + offset_px * dx, (y + 0.5) * scale - 0.5 + offset_px * dy)
        for (x, y), (dx, dy) in selected
        for offset_px in (-APART_PX * scale, -beside_px, beside_px, APART_PX * scale)
    ]

    def validation_error(evidence: Evidence) -> str | None:
        read = [number(point, "depth_0_1") for point in rows_of(evidence, "points")]
        if len(read) != len(places):
            return f"{len(read)} points were read, {len(places)} given"
        values = np.array(read).reshape(-1, 4)
        middle = (values[:, 0] + values[:, 3]) / 2
        right = (values[:, 1] > middle) & (middle > values[:, 2]) & (values[:, 0] > values[:, 3])
        if min(right[horizontal].mean(), right[~horizontal].mean()) >= MIN_SHARE:
            return None
        return f"{right.sum()} of {STEPS} things end within {beside_px:.0f} px of where they do"

    return CheckCase(
        (np.asarray(picture, np.uint8),), {"points": [{"x": x, "y": y} for x, y in places]}, validation_error
    )


def steps(depth_m: npt.NDArray[np.floating]) -> list[Step]:
    """Return `STEPS` points of a depth map (H, W) where it jumps by a factor of at least 1.6 between two flat sides.

    The points are spread over the map.
    """
    places = [((x, y), (side, 0.0)) for y, x, side in _jumps(depth_m)]
    places += [((x, y), (0.0, side)) for x, y, side in _jumps(depth_m.T)]
    return [places[place] for place in np.linspace(0, len(places) - 1, STEPS).round().astype(int)]


def _jumps(depth_m: npt.NDArray[np.floating]) -> list[tuple[float, float, float]]:
    """List the row of each jump, its column between two pixels, and the side of the background (1: larger columns)."""
    rows = range(FLAT_PX, depth_m.shape[0] - FLAT_PX, 8)
    jumps = []
    for row in rows:
        # Check the neighbouring rows as well: a corner is not a step.
        around = depth_m[row - 6 : row + 7]
        windows = np.lib.stride_tricks.sliding_window_view(around, FLAT_PX, axis=1)
        low, high = windows.min(axis=(0, 2)), windows.max(axis=(0, 2))
        first, second = slice(None, -FLAT_PX), slice(FLAT_PX, None)
        flat = high / low < 1.3
        for near, far, side in ((first, second, 1.0), (second, first, -1.0)):
            jump = flat[near] & flat[far] & (low[far] > 1.6 * high[near])
            places = np.flatnonzero(jump)
            jumps += [(float(row), float(place + FLAT_PX - 0.5), side) for place in places[:1]]
    return jumps


CHECKS = (
    *(KnownAnswer(f"nearer point, scene {index}", partial(_nearer, index)) for index in DEPTH_ANSWERS),
    *(KnownAnswer(f"where things end, scene {index}", partial(_edges, index, 1, BESIDE_PX)) for index in (1, 10)),
    KnownAnswer("where things end, a large scene", partial(_edges, 8, LARGE, 2 * BESIDE_PX)),
)
