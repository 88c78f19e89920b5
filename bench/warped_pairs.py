"""Pairs of views made from one image, hard enough to tell matchers apart, with ground truth for every pixel.

Example: `warped_pair(generator("evaluate", 1000, 0), pixels, "parallax", "extreme")`. A `planar` pair shows part of the
image as a flat surface under a homography. `parallax` gives it a plausible depth (a receding ground, with regions of
similar colour in front of it) and moves a camera around it to the left or right; `straight` moves it forward, backward,
up or down. Near things then cover other things, and uncover parts that no view has seen. The second view is in
another light (`bench/light_change.py`). `photographs(place)` reads the images of a folder or of a benchmark's parquet
file. A score on these pairs is never a benchmark result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from bench.light_change import LIGHTS, Difficulty, relit
from hybrid.core.errors import HybridError
from hybrid.core.images import decode
from hybrid.samples.item import Spot, until
from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import render
from hybrid.tool import Pixels
from tools._shared.reading import shrink

Kind = Literal["planar", "parallax", "straight"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Photographs are reduced to this side before warping.
MAX_SIDE_PX = 640
# Share of image 1 that image 2 must still show.
MIN_VISIBLE = 0.35
# Points keep this share of a side away from the borders.
MARGIN = 0.08
# Candidates are farther apart than this share of the diagonal.
APART = 0.08
# Samples of image 1 along a side of a pixel, so that a nearer view has no gaps.
SUPERSAMPLED = 2
# Number of regions of similar colour into which an image is divided.
REGIONS = 7
# Number of regions that stand out from the ground.
STANDING = 3

# Names of the negative and the positive direction along each camera axis.
DIRECTIONS = (("left", "right"), ("up", "down"), ("backward", "forward"))

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WarpedPair:
    """Two views; `position_in_second` (H, W, 2) is the x and y in image 2 of each pixel of image 1, NaN if not visible.

    `centre` (3,) is the unit vector from the first camera to the second (right, down, forward) and `turn_deg` the angle
    between the two; None and 0 for a flat picture. `focal_ratio` is the focal length over the longer side.
    """

    images: tuple[Pixels, Pixels]
    position_in_second: npt.NDArray[np.float32]
    centre: Array | None = None
    turn_deg: float = 0.0
    focal_ratio: float = 1.0

    @property
    def direction(self) -> str | None:
        """Return the main direction from the first camera to the second, one of `DIRECTIONS`; None for a flat image."""
        if self.centre is None:
            return None
        axis = int(np.argmax(np.abs(self.centre)))
        return DIRECTIONS[axis][int(self.centre[axis] > 0)]


@dataclass(frozen=True)
class Orbit:
    """A camera motion around the middle of the scene: turns about three camera axes, and a factor of the distance."""

    yaw_deg: float
    pitch_deg: float
    roll_deg: float
    distance: float


# Minimum and maximum turn about the vertical in a parallax set.
ROUND_DEG: Mapping[Difficulty, tuple[float, float]] = {"easy": (6, 12), "medium": (10, 20), "extreme": (12, 30)}
# Maximum turn about the other axes.
TILTS_DEG: Mapping[Difficulty, float] = {"easy": 2, "medium": 4, "extreme": 6}


@dataclass(frozen=True)
class Change:
    """Maximum turn (degrees), scale (natural log), and shift of each corner (share of the size)."""

    turn_deg: float
    log_scale: float
    corner: float


# Turns of at most 30 degrees in the image plane, because people hold cameras upright.
PLANAR_CHANGES: Mapping[Difficulty, Change] = {
    "easy": Change(10, 0.1, 0.04),
    "medium": Change(30, 0.3, 0.12),
    "extreme": Change(30, 0.3, 0.12),
}
# Minimum share of each side that a planar image 2 shows.
CROPS: Mapping[Difficulty, float] = {"easy": 1.0, "medium": 0.85, "extreme": 0.65}


def photographs(place: Path) -> list[bytes]:
    """Return encoded pictures of a folder (*.jpg, *.jpeg, *.png, by path), or `image_1` of its parquet rows by `idx`.

    Raises:
        HybridError: there are no pictures.
    """
    rows = [
        row
        for table in ([place] if place.suffix == ".parquet" else sorted(place.rglob("*.parquet")))
        for row in pq.read_table(table, columns=["idx", "image_1"]).to_pylist()
    ]
    pictures = [row["image_1"]["bytes"] for row in sorted(rows, key=lambda row: str(row["idx"]))]
    files = sorted(path for path in place.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    pictures += [path.read_bytes() for path in files]
    if not pictures:
        raise HybridError(f"no photographs in {place}")
    return pictures


def picture(encoded: Sequence[bytes], number: int, rng: np.random.Generator) -> Pixels:
    """Return photograph `number`, with a long side of at most `MAX_SIDE_PX`, or a rendered scene if there is none."""
    if encoded:
        place = number % len(encoded)
        return shrink(decode(encoded[place], f"photograph {place}"), MAX_SIDE_PX)
    return render(random_scene(rng), random_camera(rng, MAX_SIDE_PX, MAX_SIDE_PX * 3 // 4), rng).rgb


def warped_pair(rng: np.random.Generator, pixels: Pixels, kind: Kind, difficulty: Difficulty) -> WarpedPair:
    """Make a pair from an image (H, W, 3).

    Raises:
        HybridError: no view that shows `MIN_VISIBLE` of the picture was found.
    """

    def attempt() -> WarpedPair | None:
        built = (
            _planar(rng, pixels, difficulty)
            if kind == "planar"
            else orbited(rng, pixels, _orbit(rng, kind, difficulty))
        )
        return built if np.isfinite(built.position_in_second[..., 0]).mean() >= MIN_VISIBLE else None

    item = until("view that shows enough", attempt)
    second = relit(rng, item.images[1], LIGHTS[difficulty])
    return WarpedPair((pixels, second), item.position_in_second, item.centre, item.turn_deg, item.focal_ratio)


def points_of(rng: np.random.Generator, pair: WarpedPair) -> tuple[Spot, tuple[Spot, ...]]:
    """Return a point of image 1 that image 2 shows, and four points of image 2, the first of which is the same point.

    Raises:
        HybridError: image 2 has no room for four points.
    """
    heights, widths = zip(*(image.shape[:2] for image in pair.images), strict=True)
    diagonal = float(np.hypot(heights[1], widths[1]))

    def attempt() -> tuple[Spot, tuple[Spot, ...]] | None:
        x, y = _spot(rng, widths[0], heights[0])
        place = pair.position_in_second[int(y), int(x)]
        sides = (widths[1], heights[1])
        if not all(MARGIN * side < at < (1 - MARGIN) * side for at, side in zip(place, sides, strict=True)):
            return None
        values = [(float(place[0]), float(place[1]))]
        for _ in range(100):
            other = _spot(rng, widths[1], heights[1])
            if all(np.hypot(other[0] - a, other[1] - b) > APART * diagonal for a, b in values):
                values.append(other)
            if len(values) == 4:
                return (x, y), tuple(values)
        return None

    return until("point that both views show", attempt)


def _spot(rng: np.random.Generator, width: int, height: int) -> Spot:
    x, y = (int(rng.uniform(MARGIN * side, (1 - MARGIN) * side)) for side in (width, height))
    return float(x), float(y)


def _planar(rng: np.random.Generator, pixels: Pixels, difficulty: Difficulty) -> WarpedPair:
    """Warp an image by a homography; image 2 shows a part of it."""
    height, width = pixels.shape[:2]
    homography = random_homography(rng, (width, height), PLANAR_CHANGES[difficulty])
    text = rng.uniform(CROPS[difficulty], 1.0)
    corner = rng.uniform(0, 1 - text, 2) * (width, height)
    size = (round(text * width), round(text * height))
    homography = np.array([[1, 0, -corner[0]], [0, 1, -corner[1]], [0, 0, 1.0]]) @ homography
    warped = np.asarray(cv2.warpPerspective(pixels, homography, size, flags=cv2.INTER_LINEAR), np.uint8)
    covered = cv2.warpPerspective(np.full(pixels.shape[:2], 255, np.uint8), homography, size) > 127
    rays = _pixels(width, height) @ homography.T
    with np.errstate(divide="ignore", invalid="ignore"):
        indices = np.where(rays[..., 2:] > 1e-6, rays[..., :2] / rays[..., 2:], np.nan)
    indices[~_within(indices, size)] = np.nan
    return WarpedPair((pixels, _on_ground(warped, covered, pixels)), indices.astype(np.float32))


def random_homography(rng: np.random.Generator, size: tuple[int, int], change: Change) -> Array:
    """Return a homography (3, 3) for an image of `size` (width, height): turn, scale, and shifted corners."""
    corners = np.array([[0, 0], [size[0], 0], [size[0], size[1]], [0, size[1]]], np.float64)
    centre = np.array(size) / 2
    angle = np.deg2rad(rng.uniform(-change.turn_deg, change.turn_deg))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn = turn * np.exp(rng.uniform(-change.log_scale, change.log_scale))
    moved = (corners - centre) @ turn.T + centre + rng.uniform(-change.corner, change.corner, (4, 2)) * size
    result = cv2.getPerspectiveTransform(corners.astype(np.float32), moved.astype(np.float32))
    return np.asarray(result, np.float64)


def _orbit(rng: np.random.Generator, kind: Kind, difficulty: Difficulty) -> Orbit:
    """Return a random motion: `parallax` to the left or right; `straight` forward, backward, up or down."""
    tilt = TILTS_DEG[difficulty]
    if kind == "parallax":
        yaw = rng.uniform(*ROUND_DEG[difficulty]) * rng.choice([-1, 1])
        pitch, roll = rng.uniform(-tilt, tilt, 2)
        offset = rng.uniform(-tilt, tilt) / 30
    else:
        yaw, roll = rng.uniform(-0.3, 0.3), rng.uniform(-tilt, tilt)
        if rng.random() < 0.5:
            pitch, offset = rng.uniform(8, 16) * rng.choice([-1, 1]), 0.0
        else:
            pitch = rng.uniform(-0.3, 0.3)
            offset = rng.uniform(0.12, 0.35) * rng.choice([-1, 1])
    return Orbit(float(yaw), float(pitch), float(roll), float(np.exp(offset)))


def orbited(rng: np.random.Generator, pixels: Pixels, orbit: Orbit) -> WarpedPair:
    """Give an image a plausible depth, and render it from a camera that has moved around the middle of the scene.

    The light stays the same.
    """
    height, width = pixels.shape[:2]
    ratio = float(rng.uniform(0.8, 1.4))
    depth = plausible_depth(rng, pixels)
    turn = np.asarray(cv2.Rodrigues(np.deg2rad([orbit.pitch_deg, orbit.yaw_deg, orbit.roll_deg]))[0], np.float64)
    pivot = np.array([0.0, 0.0, float(np.median(depth))])
    centre = pivot - turn.T @ pivot * orbit.distance
    camera = np.array(
        [[ratio * max(width, height), 0, (width - 1) / 2], [0, ratio * max(width, height), (height - 1) / 2], [0, 0, 1]]
    )

    def seen(points: Array, depths: Array) -> Array:
        rays = points @ np.linalg.inv(camera).T * depths[..., None]
        return np.asarray((rays - centre) @ turn.T @ camera.T, np.float64)

    fine = SUPERSAMPLED
    half = np.array([0.5, 0.5, 0.0])
    dense = (_pixels(width * fine, height * fine) + half) / (fine, fine, 1) - half
    large = (width * fine, height * fine)
    colours = np.asarray(cv2.resize(pixels, large, interpolation=cv2.INTER_LINEAR), np.uint8)
    depths = np.asarray(cv2.resize(depth, large, interpolation=cv2.INTER_NEAREST_EXACT), np.float64)
    second, nearest = _splat(seen(dense, depths), colours, (width, height))
    # Positions of image 1's pixels in image 2, unless something nearer covers them.
    rays = seen(_pixels(width, height), depth)
    with np.errstate(divide="ignore", invalid="ignore"):
        projected = rays[..., :2] / rays[..., 2:]
    inside = _within(projected, (width, height)) & (rays[..., 2] > 1e-3)
    columns, rows = (np.where(inside, np.rint(projected[..., axis]), 0).astype(np.intp) for axis in (0, 1))
    projected[~(inside & (rays[..., 2] <= 1.03 * nearest[rows, columns]))] = np.nan
    text = _on_ground(second, np.isfinite(nearest), pixels)
    angle = float(np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))))
    return WarpedPair((pixels, text), projected.astype(np.float32), centre / np.linalg.norm(centre), angle, ratio)


def plausible_depth(rng: np.random.Generator, pixels: Pixels) -> Array:
    """Return a depth (H, W), around 1: a receding, uneven ground, with regions of similar colour in front of it."""
    height, width = pixels.shape[:2]
    far, near = rng.uniform(0.5, 0.8), rng.uniform(1.1, 1.5)
    nearness = np.linspace(far, near, height)[:, None] * np.ones((1, width))
    uneven = cv2.resize(rng.normal(0, 0.08, (4, 5)), (width, height), interpolation=cv2.INTER_CUBIC)
    labels = _regions(rng, pixels)
    for region in rng.choice(REGIONS, STANDING, replace=False):
        rows = np.flatnonzero((labels == region).any(axis=1))
        if len(rows):
            # Upright things are as near as the ground at their foot.
            foot = nearness[rows[-1], 0]
            nearness = np.where(labels == region, foot * rng.uniform(0.95, 1.25), nearness)
    return np.asarray(1 / np.maximum(nearness * (1 + uneven), 0.2), np.float64)


def _regions(rng: np.random.Generator, pixels: Pixels) -> npt.NDArray[np.int32]:
    """Return labels (H, W) of regions of similar colour and position, with smooth outlines."""
    height, width = pixels.shape[:2]
    small = cv2.GaussianBlur(cv2.resize(pixels, (80, 60), interpolation=cv2.INTER_AREA), (0, 0), 1.5)
    lab = cv2.cvtColor(small, cv2.COLOR_RGB2LAB).reshape(-1, 3).astype(np.float32)
    down, across = np.mgrid[0:60, 0:80].astype(np.float32)
    features = np.column_stack([lab, 1.2 * across.ravel(), 1.2 * down.ravel()]).astype(np.float32)
    start = rng.integers(0, REGIONS, (len(features), 1)).astype(np.int32)
    stop = (cv2.TERM_CRITERIA_MAX_ITER + cv2.TERM_CRITERIA_EPS, 30, 0.5)
    _, labels, _ = cv2.kmeans(features, REGIONS, start, stop, 1, cv2.KMEANS_USE_INITIAL_LABELS)
    masks = [
        cv2.resize(cv2.GaussianBlur((labels.reshape(60, 80) == index).astype(np.float32), (0, 0), 1.5), (width, height))
        for index in range(REGIONS)
    ]
    return np.asarray(np.argmax(np.stack(masks), axis=0), np.int32)


def _pixels(width: int, height: int) -> Array:
    """Return homogeneous pixel coordinates (H, W, 3)."""
    across, down = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
    return np.stack([across, down, np.ones_like(across)], axis=-1)


def _splat(rays: Array, colours: Pixels, size: tuple[int, int]) -> tuple[Pixels, Array]:
    """Project points (h, w, 3), pixels times depth, to an image and its depth, infinite at pixels without a point."""
    width, height = size
    depths = rays[..., 2].ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.rint(rays[..., :2].reshape(-1, 2) / depths[:, None])
    selected = np.flatnonzero((depths > 1e-3) & _within(places, size))
    selected = selected[np.argsort(-depths[selected], kind="stable")]
    index = (places[selected, 1] * width + places[selected, 0]).astype(np.intp)
    out, nearest = np.zeros((height * width, 3), np.uint8), np.full(height * width, np.inf)
    # If several points have the same index, the last one is kept, which is the nearest.
    out[index], nearest[index] = colours.reshape(-1, 3)[selected], depths[selected]
    return out.reshape(height, width, 3), nearest.reshape(height, width)


def _within(places: Array, size: tuple[int, int]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(((places >= 0) & (places <= np.subtract(size, 1))).all(axis=-1))


def _on_ground(text: Pixels, covered: npt.NDArray[np.bool_], pixels: Pixels) -> Pixels:
    """Show the visible image over a blurred ground; gaps of a pixel are filled from their surroundings."""
    height, width = covered.shape
    weight = cv2.GaussianBlur(covered.astype(np.float32), (0, 0), 1.0)
    spread = cv2.GaussianBlur(np.where(covered[..., None], text, 0).astype(np.float32), (0, 0), 1.0)
    closed = spread / np.maximum(weight, 1e-6)[..., None]
    ground = cv2.GaussianBlur(cv2.resize(np.ascontiguousarray(pixels[::-1]), (width, height)), (0, 0), 15)
    filled = np.where((weight > 0.3)[..., None], closed, ground)
    return np.asarray(np.where(covered[..., None], text, np.rint(filled)), np.uint8)
