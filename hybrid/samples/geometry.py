"""Questions about space: which point is nearer, which piece fits, where a point corresponds, how the camera moved.

Run: `relative_depth(np.random.default_rng(0), answer=1)`.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.samples.item import (
    CorrespondenceFacts,
    DepthFacts,
    Item,
    JigsawFacts,
    Matrix,
    MotionFacts,
    Spot,
    pick,
    ringed,
    until,
)
from hybrid.samples.layouts import backdrop, random_camera, random_scene, random_solid, random_texture
from hybrid.samples.scenes import Camera, RenderedView, Scene, SceneBlock, Solid, orbit, render
from hybrid.samples.textures import FloatMap
from hybrid.tool import Pixels

# Minimum ratio of the farther point's depth to the nearer point's.
DEPTH_MARGIN = 1.25
# Share of pairs whose points are on one row, mirrored about the centre, with A on the left: 54 of the 124 pairs in
# BLINK's Relative_Depth val.
SAME_ROW_SHARE = 54 / 124
DEPTH_SIZES = ((500, 375), (500, 375), (500, 333), (500, 333), (375, 500))
JIGSAW_WIDTH = 400
# Heights of the pictures in BLINK's Jigsaw set, repeated by their frequency; all are even.
JIGSAW_HEIGHTS = (220, 220, 220, 210, 210, 232, 230, 226, 212, 186)
# Smallest mean difference of the two pieces in grey levels.
PIECE_DIFFERENCE = 16.0
CANDIDATE_GAP_PX = 45.0

Mask = npt.NDArray[np.bool_]
# A and B, each x, y in whole pixels.
Pair = tuple[tuple[int, int], tuple[int, int]]


def relative_depth(rng: np.random.Generator, answer: int) -> Item:
    """Ask which of two ringed points on smooth patches is closer; their depth ratio is at least `DEPTH_MARGIN`."""
    same_row = rng.random() < SAME_ROW_SHARE
    width, height = DEPTH_SIZES[pick(rng, len(DEPTH_SIZES))]

    def attempt() -> tuple[RenderedView, Pair] | None:
        view = render(random_scene(rng, 9), random_camera(rng, width, height), rng)
        pair = _mirrored_pair(rng, view) if same_row else _free_pair(rng, view)
        return None if pair is None else (view, pair)

    view, pair = until("pair of points at different depths", attempt)
    rgb, depth_m = view.rgb, view.depth_m
    nearer = int(depth_m[pair[1][1], pair[1][0]] < depth_m[pair[0][1], pair[0][0]])
    if nearer != answer and same_row:
        # A stays on the left as in the real set, so mirror the picture instead of swapping the letters.
        rgb, depth_m = np.ascontiguousarray(rgb[:, ::-1]), np.asarray(depth_m[:, ::-1])
    elif nearer != answer:
        pair = (pair[1], pair[0])
    depths = tuple(float(depth_m[y, x]) for x, y in pair)
    return Item(
        "Two points on the image are circled and labeled A and B. Which point is closer to the camera?",
        (ringed(rgb, [(pair[0], "A"), (pair[1], "B")]),),
        ("A is closer", "B is closer"),
        answer,
        DepthFacts(pair, (depths[0], depths[1]), depth_m),
    )


def steady(depth_m: FloatMap, side: int = 9) -> Mask:
    """Return where depth is finite and changes by less than 8 % over a window, away from the borders."""
    filled = np.where(np.isfinite(depth_m), depth_m, 1e6).astype(np.float32)
    window = np.ones((side, side), np.uint8)
    steady = (cv2.dilate(filled, window) / cv2.erode(filled, window) < 1.08) & np.isfinite(depth_m)
    inside = np.zeros_like(steady)
    inside[12:-12, 12:-12] = True
    return np.asarray(steady & inside)


def _mirrored_pair(rng: np.random.Generator, view: RenderedView) -> Pair | None:
    depth = view.depth_m
    still = steady(depth)
    mirrored = depth[:, ::-1]
    with np.errstate(invalid="ignore"):
        ratio = np.maximum(depth, mirrored) / np.minimum(depth, mirrored)
        usable = still & still[:, ::-1] & (ratio > DEPTH_MARGIN) & np.isfinite(ratio)
    width = depth.shape[1]
    usable[:, width // 2 - 20 :] = False
    places = np.flatnonzero(usable)
    if places.size < 50:
        return None
    row, column = divmod(int(places[pick(rng, places.size)]), width)
    return (column, row), (width - 1 - column, row)


def _free_pair(rng: np.random.Generator, view: RenderedView) -> Pair | None:
    """Choose two points, each on a randomly chosen surface, so that small solids are as likely as the ground."""
    still = steady(view.depth_m)
    places = [np.flatnonzero(still & (view.ids == number)) for number in np.unique(view.ids[still])]
    places = [place for place in places if place.size > 100]
    if len(places) < 2:
        return None
    width = view.depth_m.shape[1]
    for _ in range(100):
        picked = [places[pick(rng, len(places))] for _ in range(2)]
        (ay, ax), (by, bx) = (divmod(int(place[pick(rng, place.size)]), width) for place in picked)
        depths = float(view.depth_m[ay, ax]), float(view.depth_m[by, bx])
        if max(depths) / min(depths) > DEPTH_MARGIN and abs(ay - by) >= 8 and np.hypot(ax - bx, ay - by) >= 40:
            return (ax, ay), (bx, by)
    return None


def jigsaw(rng: np.random.Generator, answer: int) -> Item:
    """Ask which of two pieces fits the black lower right quarter; the other piece is from another position or picture.

    Pieces are cut before compression. The bright one-pixel frames of the real pictures, which reveal many of the wrong
    pieces, are not imitated.
    """
    height = JIGSAW_HEIGHTS[pick(rng, len(JIGSAW_HEIGHTS))]
    elsewhere = rng.random() < 0.5

    def attempt() -> tuple[Pixels, Pixels] | None:
        wide = render(random_scene(rng, 12), random_camera(rng, 2 * JIGSAW_WIDTH, height), rng).rgb
        picture = np.ascontiguousarray(wide[:, :JIGSAW_WIDTH])
        if elsewhere:
            camera = random_camera(rng, JIGSAW_WIDTH, height)
            wrong = _lower_right(render(random_scene(rng, 12), camera, rng).rgb)
        else:
            # Take a piece from the right half of the picture, which is twice as wide as the puzzle.
            rows, columns = height // 2, JIGSAW_WIDTH // 2
            y0, x0 = pick(rng, rows + 1), JIGSAW_WIDTH + pick(rng, columns + 1)
            wrong = np.ascontiguousarray(wide[y0 : y0 + rows, x0 : x0 + columns])
        differs = np.abs(wrong.astype(int) - _lower_right(picture).astype(int)).mean() > PIECE_DIFFERENCE
        return (picture, wrong) if differs else None

    picture, wrong = until("wrong jigsaw piece that differs from the right one", attempt)
    piece = _lower_right(picture)
    holed = picture.copy()
    holed[height // 2 :, JIGSAW_WIDTH // 2 :] = 0
    pieces = (piece, wrong) if answer == 0 else (wrong, piece)
    return Item(
        "The lower right corner of the first image is missing. Which one is the missing part, the second image or the "
        "third image? Compare how the edges of each continue the first image.",
        (holed, *pieces),
        ("the second image", "the third image"),
        answer,
        JigsawFacts(picture),
    )


def _lower_right(picture: Pixels) -> Pixels:
    return np.ascontiguousarray(picture[picture.shape[0] // 2 :, picture.shape[1] // 2 :])


def visual_correspondence(rng: np.random.Generator, answer: int) -> Item:
    """Ask where a point of image 1 is in image 2.

    Half of the pairs are planar, with a known homography; the other half are two views of one scene.
    """
    make = _planar_pair if rng.random() < 0.5 else _orbit_pair
    first, second, facts = until("pair of views with four separate corresponding points", lambda: make(rng))
    candidates = list(facts.candidates[1:])
    candidates.insert(answer, facts.candidates[0])
    marked = ringed(second, list(zip(candidates, "ABCD", strict=True)))
    return Item(
        "The first image shows a point circled and labeled REF. The second image shows the same scene after the camera "
        "or the light has changed, with four circled points labeled A, B, C and D. Which of them is the same point as "
        "REF?",
        (ringed(first, [(facts.ref, "REF")]), marked),
        ("Point A", "Point B", "Point C", "Point D"),
        answer,
        CorrespondenceFacts(facts.ref, tuple(candidates), facts.homography, facts.cameras, facts.ref_depth_m),
    )


def _corners(pixels: Pixels) -> npt.NDArray[np.float64]:
    """Return well-textured points (N, 2), whole pixels, separated from each other and from the borders."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    inside = np.zeros_like(grey)
    inside[20:-20, 20:-20] = 255
    corners = cv2.goodFeaturesToTrack(cv2.GaussianBlur(grey, (0, 0), 1.5), 80, 0.02, 18, mask=inside)
    if corners is None:
        return np.zeros((0, 2))
    return np.rint(np.asarray(corners, dtype=np.float64).reshape(-1, 2))


def _apart(rng: np.random.Generator, targets: npt.NDArray[np.float64], size: tuple[int, int]) -> list[int]:
    """Return indices of up to four targets (N, 2) inside a picture (width, height), `CANDIDATE_GAP_PX` apart."""
    selected: list[int] = []
    low, high = np.array([20.0, 20.0]), np.array(size) - 20.0
    for number in rng.permutation(len(targets)):
        target = targets[number]
        if not (np.isfinite(target).all() and (target > low).all() and (target < high).all()):
            continue
        if all(np.hypot(*(target - targets[other])) > CANDIDATE_GAP_PX for other in selected):
            selected.append(int(number))
        if len(selected) == 4:
            break
    return selected


def _spot(point: npt.NDArray[np.float64]) -> Spot:
    return float(np.rint(point[0])), float(np.rint(point[1]))


def _planar_pair(rng: np.random.Generator) -> tuple[Pixels, Pixels, CorrespondenceFacts] | None:
    """Warp a picture like a flat poster by a homography, with another exposure and new noise."""
    width, height = 480, 360
    poster = render(random_scene(rng, 10), random_camera(rng, 640, 480), rng, noise=1.0).rgb
    # The homography is a rotation of up to 25 degrees, scale 1 to 1.35, mild perspective and shift, about the centre of
    # the picture.
    angle, scale = np.deg2rad(rng.uniform(-25, 25)), rng.uniform(1.0, 1.35)
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    turn = np.array([[cos, -sin, 0], [sin, cos, 0], [rng.uniform(-7e-4, 7e-4), rng.uniform(-7e-4, 7e-4), 1]])
    to_centre = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    back = np.array([[1, 0, width / 2 + rng.uniform(-25, 25)], [0, 1, height / 2 + rng.uniform(-20, 20)], [0, 0, 1]])
    homography = np.asarray(back @ turn @ to_centre)
    shift = np.array([[1, 0, -80], [0, 1, -60], [0, 0, 1]], dtype=np.float64)
    first = np.ascontiguousarray(poster[60 : 60 + height, 80 : 80 + width])
    warped = cv2.warpPerspective(poster, homography @ shift, (width, height), flags=cv2.INTER_LINEAR)
    second = 255 * (warped / 255.0) ** rng.uniform(0.75, 1.3) * rng.uniform(0.85, 1.1)
    second = np.clip(np.rint(second + rng.normal(0, 2.5, second.shape)), 0, 255).astype(np.uint8)
    points = _corners(first)
    if len(points) < 4:
        return None
    targets = cv2.perspectiveTransform(points[None], homography)[0].astype(np.float64)
    selected = _apart(rng, targets, (width, height))
    if len(selected) < 4:
        return None
    rows = [tuple(float(value) for value in row) for row in homography]
    matrix: Matrix = ((*rows[0],), (*rows[1],), (*rows[2],))  # type: ignore[assignment]
    return (
        first,
        second,
        CorrespondenceFacts(
            _spot(points[selected[0]]), tuple(_spot(targets[number]) for number in selected), homography=matrix
        ),
    )


def _orbit_pair(rng: np.random.Generator) -> tuple[Pixels, Pixels, CorrespondenceFacts] | None:
    """Render two views of one scene; points correspond if both cameras see the same spot of a surface there."""
    scene = _around(rng)
    cameras = _two_cameras(rng, float(np.deg2rad(rng.uniform(6, 22))) * float(rng.choice([-1, 1])))
    first_view, second_view = (render(scene, camera, rng) for camera in cameras)
    points = _corners(first_view.rgb)
    # The position of each point in the second view; NaN if it is hidden or on an edge.
    targets = np.full(points.shape, np.nan)
    height, width = second_view.ids.shape
    smooth = steady(first_view.depth_m, 5)
    for number, (x0, y0) in enumerate(points.astype(int)):
        if not smooth[y0, x0]:
            continue
        seen = cameras[1].project(cameras[0].unproject(x0, y0, float(first_view.depth_m[y0, x0]))[None])[0]
        column, row = int(np.rint(seen[0])), int(np.rint(seen[1]))
        if not (0 <= row < height and 0 <= column < width) or second_view.ids[row, column] != first_view.ids[y0, x0]:
            continue
        if abs(float(second_view.depth_m[row, column]) / seen[2] - 1) < 0.02:
            targets[number] = seen[:2]
    selected = _apart(rng, targets, (second_view.rgb.shape[1], second_view.rgb.shape[0]))
    if len(selected) < 4:
        return None
    x, y = _spot(points[selected[0]])
    candidates = tuple(_spot(targets[number]) for number in selected)
    depth = float(first_view.depth_m[int(y), int(x)])
    return first_view.rgb, second_view.rgb, CorrespondenceFacts((x, y), candidates, cameras=cameras, ref_depth_m=depth)


def _around(rng: np.random.Generator) -> Scene:
    """Arrange a textured block at the origin, solids next to and behind it, and a wall in the background."""
    size = float(rng.uniform(0.4, 0.6))
    surface = random_texture(rng, 150.0)
    target = SceneBlock(
        (0.0, 0.0, size), (size, size * float(rng.uniform(0.7, 1.2)), size), float(rng.uniform(0, 3)), surface
    )
    solids: list[Solid] = [target]
    for side in (-1, 1, -1, 1, -1, 1):
        x, y = side * float(rng.uniform(1.1, 3.0)), float(rng.uniform(-0.6, 3.0))
        half = float(rng.uniform(0.22, 0.45))
        if all(np.hypot(x - other.centre[0], y - other.centre[1]) > 1.0 for other in solids):
            solids.append(random_solid(rng, x, y, random_texture(rng, 130.0), half))
    return backdrop(rng, solids, float(rng.uniform(4.0, 6.5)))


def _two_cameras(rng: np.random.Generator, turn_rad: float) -> tuple[Camera, Camera]:
    """Return two cameras that look at the origin, the second `turn_rad` farther to the right on the orbit."""
    lens = (float(rng.uniform(0.85, 1.3)) * 480, 480, 360)
    start, radius, height = float(rng.uniform(-0.35, 0.35)), float(rng.uniform(3.2, 4.4)), float(rng.uniform(0.9, 1.7))
    nudge = float(rng.uniform(0.95, 1.05)), float(rng.uniform(0.92, 1.08))
    target = (0.0, 0.0, 0.45)
    return (
        orbit(target, radius, start, height, lens),
        orbit(target, radius * nudge[0], start + turn_rad, height * nudge[1], lens),
    )


def multi_view_reasoning(rng: np.random.Generator, answer: int) -> Item:
    """Ask whether a camera on an orbit of 8 to 35 degrees went left (clockwise from above) or right."""
    turn = float(np.deg2rad(rng.uniform(8, 35))) * (-1 if answer == 0 else 1)
    scene, cameras = _around(rng), _two_cameras(rng, turn)
    return Item(
        "A video was shot by a camera that moved around an object in a scene where nothing else moved, either "
        "clockwise (left) or counter-clockwise (right). The first image is an early frame, the second image a late "
        "one. Did the camera move left or right?",
        tuple(render(scene, camera, rng).rgb for camera in cameras),
        ("left", "right"),
        answer,
        MotionFacts(cameras),
    )
