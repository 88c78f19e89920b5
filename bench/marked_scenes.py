"""Seeded images with drawn marks at known positions, on which the mark finder is measured and tested.

`marked_scene(np.random.default_rng(7))` varies background, size, ring colour and radius, line, font, letter size,
labels, positions (some cut by the border) and JPEG quality. A score on them is never a benchmark result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import cv2
import numpy as np

from bench.picture_changes import compressed
from hybrid.core.types import Box, Point
from hybrid.marks.drawing import RGB, Color, Font, LabelledBox, MarkStyle, draw_marks, label_patch, label_place
from hybrid.samples.backgrounds import BACKGROUNDS, Background, background
from hybrid.samples.geometry import SAME_ROW_SHARE
from hybrid.samples.objects import share_of_union
from hybrid.tool import Pixels

LABEL_SETS: tuple[tuple[str, ...], ...] = (("A", "B"), ("A", "B", "C", "D"), ("REF",))
RING_COLORS: tuple[Color, ...] = ("red", "white", "grey")
FONTS: tuple[Font, ...] = ("strokes", "bold", "pillow", "opencv")
# Minimum mean difference in grey levels between a ring's colour and its background for the ring to be visible.
MIN_CONTRAST = 40.0
# Minimum visible share of a box's side; a covered side does not show its position.
MIN_SHOWN = 0.5
Meeting = Literal["crossing", "inside", "collinear"]
MEETINGS: tuple[Meeting, ...] = ("crossing", "inside", "collinear")
# Two boxes' sides at most this far apart are on one line: they touch or one covers the other.
COLLINEAR_PX = 4
MIN_BOX_PX = 40
OVERLAP_COLORS: tuple[tuple[Color, Color], ...] = (
    *(("red", "green"), ("green", "red")),
    *(("red", "red"), ("green", "green")),
)
# Minimum length of line by which two boxes of one colour must differ from any other pair of boxes; lines within the
# width of `NEARLY` count as equal.
TOLD_APART_PX = 20
NEARLY = np.ones((5, 5), np.uint8)
# Range of the intersection over union of `overlapping_scene`'s boxes.
OVERLAPS = (0.2, 0.8)
# Largest deviation from the requested overlap, because whole pixels cannot give every value.
SHARE_STEP = 0.02


@dataclass(frozen=True, eq=False)
class MarkedScene:
    """An image (H, W, 3), the marks drawn on it, and their style."""

    pixels: Pixels
    plain: Pixels
    points: tuple[Point, ...]
    boxes: tuple[LabelledBox, ...]
    style: MarkStyle
    background: Background
    jpeg_quality: int | None


def random_style(rng: np.random.Generator) -> MarkStyle:
    """Return a random style: ring colour, outer radius 4..20 px, line 2..5 px, letter 8..18 px, font and gap."""
    radius = int(rng.integers(4, 21))
    return MarkStyle(
        color=RING_COLORS[int(rng.integers(len(RING_COLORS)))],
        radius_px=radius,
        stroke_px=int(rng.integers(2, max(3, min(5, radius // 2) + 1))),
        letter_px=int(rng.integers(8, 19)),
        gap_px=int(rng.integers(2, 13)),
        font=FONTS[int(rng.integers(len(FONTS)))],
    )


def marked_scene(rng: np.random.Generator, style: MarkStyle | None = None) -> MarkedScene:
    """Draw an image with one to four labelled rings, none of which covers another."""
    sample = style or random_style(rng)
    labels = LABEL_SETS[int(rng.integers(len(LABEL_SETS)))]
    points = None
    while points is None:
        height, width = int(rng.integers(220, 420)), int(rng.integers(300, 520))
        kind = BACKGROUNDS[int(rng.integers(len(BACKGROUNDS)))]
        plain = background(rng, kind, height, width)
        points = _places(rng, plain, labels, sample)
    return _draw_scene(rng, kind, plain, points, (), sample)


def _draw_scene(
    rng: np.random.Generator,
    kind: Background,
    plain: Pixels,
    points: tuple[Point, ...],
    boxes: tuple[LabelledBox, ...],
    style: MarkStyle,
) -> MarkedScene:
    """Draw the scene with its marks; seven of ten images are compressed as JPEG."""
    quality = int(rng.integers(70, 97)) if rng.random() < 0.7 else None
    pixels = draw_marks(plain, points, boxes, style)
    pixels = pixels if quality is None else compressed(quality)(pixels)
    return MarkedScene(pixels, plain, points, boxes, style, kind, quality)


def scene_on(rng: np.random.Generator, photograph: Pixels) -> MarkedScene:
    """Draw points A and B on a photograph, in BLINK's colour and size and in a random font, and compress it as JPEG.

    Both points are on one row with a probability of at least `SAME_ROW_SHARE`.
    """
    height, width = photograph.shape[:2]
    y, x = int(rng.integers(30, height - 12)), int(rng.integers(15, width // 2 - 20))
    points = (Point(x, y, "A"), Point(width - 1 - x, y, "B"))
    while rng.random() > SAME_ROW_SHARE:
        (ax, bx), (ay, by) = rng.integers(8, width - 8, 2), rng.integers(8, height - 8, 2)
        if abs(ax - bx) > 40 or abs(ay - by) > 60:
            points = (Point(int(ax), int(ay), "A"), Point(int(bx), int(by), "B"))
            break
    quality = 95 if rng.random() < 0.5 else 85
    style = MarkStyle(font=FONTS[int(rng.integers(len(FONTS)))])
    pixels = compressed(quality)(draw_marks(photograph, points, (), style))
    return MarkedScene(pixels, photograph, points, (), style, "scene", quality)


def boxed_scene(rng: np.random.Generator) -> MarkedScene:
    """Draw an image with a red box A and a green box B, or vice versa, which may cross or touch the border.

    Every side is visible: the background differs from the side's colour by `MIN_CONTRAST`, and at least `MIN_SHOWN` of
    the side is not under the other box's line or a letter.
    """
    while True:
        height, width = int(rng.integers(220, 420)), int(rng.integers(300, 520))
        kind = BACKGROUNDS[int(rng.integers(len(BACKGROUNDS)))]
        plain = background(rng, kind, height, width)
        font = FONTS[int(rng.integers(len(FONTS)))]
        style = MarkStyle(stroke_px=int(rng.integers(2, 4)), letter_px=int(rng.integers(9, 15)), font=font)
        boxes = _two_boxes(rng, height, width)
        sides = _sides_shown(plain, boxes, style)
        if sides is not None and min(sides) == 4:
            return _draw_scene(rng, kind, plain, (), boxes, style)


def _two_boxes(rng: np.random.Generator, height: int, width: int) -> tuple[LabelledBox, ...]:
    """Return two boxes whose upper left corners are apart; one in five has a side moved to the image border."""
    while True:
        corners = [(int(rng.integers(0, width - 60)), int(rng.integers(0, height - 60))) for _ in range(2)]
        if abs(corners[0][0] - corners[1][0]) > 40 and abs(corners[0][1] - corners[1][1]) > 40:
            break
    colors: list[Color] = ["red", "green"]
    rng.shuffle(colors)
    boxes = []
    for (x, y), label, color in zip(corners, "AB", colors, strict=True):
        x1, y1 = int(rng.integers(x + 45, width + 1)), int(rng.integers(y + 45, height + 1))
        side = int(rng.integers(4)) if rng.random() < 0.2 else None
        box = Box(0 if side == 0 else x, 0 if side == 1 else y, width if side == 2 else x1, height if side == 3 else y1)
        boxes.append(LabelledBox(box, label, color))
    return tuple(boxes)


def overlapping_scene(rng: np.random.Generator) -> MarkedScene:
    """Draw an image with two overlapping boxes A and B: one is the other with its sides moved, as in BLINK.

    The intersection over union is uniform in `OVERLAPS`. In a third of the pairs the boxes cross, in a third one is
    inside the other, and in a third one or two sides of both are on one line. Half of the pairs have one colour, the
    other half red and green. The second box and its letter cover those of the first. At least two sides of each box and
    both letters are visible, and no other two boxes with these upper left corners look the same.
    """
    expected, share = MEETINGS[int(rng.integers(len(MEETINGS)))], float(rng.uniform(*OVERLAPS))
    colors = OVERLAP_COLORS[int(rng.integers(len(OVERLAP_COLORS)))]
    while True:
        height, width = int(rng.integers(220, 420)), int(rng.integers(300, 520))
        pair = _overlapping(rng, (height, width), expected, share)
        if pair is None:
            continue
        kind = BACKGROUNDS[int(rng.integers(len(BACKGROUNDS)))]
        plain = background(rng, kind, height, width)
        font = FONTS[int(rng.integers(len(FONTS)))]
        style = MarkStyle(stroke_px=int(rng.integers(2, 4)), letter_px=int(rng.integers(9, 15)), font=font)
        labels = rng.permutation(["A", "B"])
        boxes = tuple(LabelledBox(*entry) for entry in zip(pair, map(str, labels), colors, strict=True))
        letters = share_of_union(*(label_place(item, style) for item in boxes))
        sides = None if letters > 0 else _sides_shown(plain, boxes, style)
        if sides is not None and min(sides) >= 2 and not _ambiguous(plain, boxes, style):
            return _draw_scene(rng, kind, plain, (), boxes, style)


def meeting(a: Box, b: Box) -> Meeting:
    """Return how the outlines of two overlapping boxes meet: sides on one line, one inside the other, or crossing."""
    steps = (b.x0 - a.x0, b.y0 - a.y0, a.x1 - b.x1, a.y1 - b.y1)
    if min(map(abs, steps)) <= COLLINEAR_PX:
        return "collinear"
    return "inside" if min(steps) > 0 or max(steps) < 0 else "crossing"


def _overlapping(rng: np.random.Generator, size: tuple[int, int], expected: Meeting, share: float) -> list[Box] | None:
    """Return two boxes in an image of `size` (H, W), in random order; None if 200 attempts fail."""
    height, width = size
    for _ in range(200):
        x0, x1 = np.sort(rng.integers(0, width + 1, 2))
        y0, y1 = np.sort(rng.integers(0, height + 1, 2))
        first = np.array([x0, y0, x1, y1])
        across, down = x1 - x0, y1 - y0
        step = rng.normal(0, rng.uniform(0.05, 0.4), 4) * (across, down, across, down)
        if expected == "inside":
            step = np.abs(step) * (1, 1, -1, -1)
        elif expected == "collinear":
            near = rng.permutation(4)[: int(rng.integers(1, 3))]
            step[near] = rng.integers(-COLLINEAR_PX, COLLINEAR_PX + 1, len(near)) * (rng.random(len(near)) < 0.5)
        second = np.rint(first + step).clip(0, (width, height, width, height))
        a, b = (Box(*(float(side) for side in box)) for box in (first, second))
        sides = (a.x1 - a.x0, a.y1 - a.y0, b.x1 - b.x0, b.y1 - b.y0)
        if min(sides) < MIN_BOX_PX or meeting(a, b) != expected:
            continue
        overlap = share_of_union(a, b)
        if abs(overlap - share) <= SHARE_STEP and OVERLAPS[0] <= overlap <= OVERLAPS[1]:
            return [a, b] if rng.random() < 0.5 else [b, a]
    return None


def _sides_shown(plain: Pixels, boxes: tuple[LabelledBox, ...], style: MarkStyle) -> list[int] | None:
    """Count the visible sides of each box, the second drawn over the first; None if one has too little contrast."""
    marks, counts = draw_marks(plain, (), boxes, style), []
    for item in boxes:
        color = np.array(RGB[item.color])
        sides = _sides(item.box, style.stroke_px)
        if any(np.abs(plain[place].astype(np.float64) - color).mean() < MIN_CONTRAST for place in sides):
            return None
        counts.append(sum(bool((marks[place] == color).all(axis=-1).mean() >= MIN_SHOWN) for place in sides))
    return counts


def _ambiguous(plain: Pixels, boxes: tuple[LabelledBox, ...], style: MarkStyle) -> bool:
    """Return whether two boxes of one colour look nearly the same with their lower right corners exchanged."""
    a, b = boxes
    if a.color != b.color:
        return False
    blank = np.zeros_like(plain)
    marks = draw_marks(blank, (), boxes, style)
    for across, down in ((True, False), (False, True), (True, True)):
        first, second = (
            replace(item.box, x1=(two if across else item).box.x1, y1=(two if down else item).box.y1)
            for item, two in ((a, b), (b, a))
        )
        if min(first.x1 - first.x0, first.y1 - first.y0, second.x1 - second.x0, second.y1 - second.y0) < MIN_BOX_PX:
            continue
        other = draw_marks(blank, (), (replace(a, box=first), replace(b, box=second)), style)
        if _beyond(marks, other) + _beyond(other, marks) < TOLD_APART_PX * style.stroke_px:
            return True
    return False


def _beyond(pixels: Pixels, other: Pixels) -> int:
    """Count painted pixels of one drawing on black that are not near painted pixels of another."""
    near = cv2.dilate(other.max(axis=-1), NEARLY)
    return int(((pixels.max(axis=-1) > 0) & (near == 0)).sum())


def _sides(box: Box, line_px: int) -> list[tuple[slice, slice]]:
    """Return the rows and columns of the four sides of an outline."""
    x0, y0, x1, y1 = int(box.x0), int(box.y0), int(box.x1), int(box.y1)
    rows, columns = slice(y0, y1), slice(x0, x1)
    return [
        (slice(y0, y0 + line_px), columns),
        (slice(y1 - line_px, y1), columns),
        (rows, slice(x0, x0 + line_px)),
        (rows, slice(x1 - line_px, x1)),
    ]


def _places(
    rng: np.random.Generator, plain: Pixels, labels: tuple[str, ...], style: MarkStyle
) -> tuple[Point, ...] | None:
    """Return positions at which the marks are visible and do not cover each other; None if there are too few."""
    height, width = plain.shape[:2]
    patches = [label_patch(label, style).shape for label in labels]
    reach_x = max(style.radius_px, max(shape[1] for shape in patches) // 2) + 2
    reach_y = style.radius_px + style.gap_px + patches[0][0] + 2
    around = style.radius_px + 3
    points: list[Point] = []
    for label in labels:
        for _ in range(500):
            x, y = int(rng.integers(2, width - 2)), int(rng.integers(2, height - 2))
            is_all = all(abs(x - p.x) > 2 * reach_x or abs(y - p.y) > 2 * reach_y for p in points)
            near = plain[max(0, y - around) : y + around + 1, max(0, x - around) : x + around + 1].astype(np.float64)
            if is_all and np.abs(near - np.array(RGB[style.color])).mean() >= MIN_CONTRAST:
                points.append(Point(x, y, label))
                break
        else:
            return None
    return tuple(points)
