"""A reply to a question for a point or a box -> its pixels, or None.

A point is two numbers, a box the four of its corners (x0, y0, x1, y1) or two points next to each other; the last
that a reply gives counts. Read are numbers in brackets, behind `Answer:`, or under names (`x = 12, y = 30`, JSON,
attributes of a tag), and the tags of grounding models: `<box>20 20 80 80</box>`, `<point x="25.0" y="50.0">`,
`<|box_start|>(20,20),(80,80)<|box_end|>`. Numbers are those of the reply; one with a percent sign is in no frame that
was asked for and is not read.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hybrid.answers.base import CUE, Parsed, statement, undecided
from hybrid.types import Box, Point

_N: Final = r"[-+]?[0-9]{1,7}(?:\.[0-9]{1,20})?"
_UNIT: Final = r"(?:\s?(?:px|pixels?)\b)?"
_GAP: Final = r"\s?[,;\s]\s?"
_OPEN, _CLOSE = r"(?:[(\[]|<(?:[a-z_]{1,12}>)?)\s?", r"\s?(?:[)\]>]|</)"

# Other names of a side, each without case; w and h are the width and height of a box.
_SIDES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("x", "x0", "xmin", "x_min", "left"), "x0"),
    **dict.fromkeys(("y", "y0", "ymin", "y_min", "top"), "y0"),
    **dict.fromkeys(("x2", "xmax", "x_max", "right"), "x1"),
    **dict.fromkeys(("y2", "ymax", "y_max", "bottom"), "y1"),
    **dict.fromkeys(("w", "width"), "w"),
    **dict.fromkeys(("h", "height"), "h"),
}
_NAME: Final = r"(?:[xy](?:_?(?:min|max)|[0-2])?|left|top|right|bottom|width|height|[wh])"
_ENTRY: Final = rf"[\"']?\b({_NAME})[\"']?\s?[=:]\s?[\"']?({_N})(?![0-9.]*%){_UNIT}[\"']?"
_ENTRIES: Final = re.compile(rf"(?i){_ENTRY}")
# Entries of one place stand next to each other: `x = 12, y = 30`, `x: 12 and y: 30`.
_BETWEEN: Final = re.compile(r"(?i)[\s,;*\-\u2022]{0,6}(?:and\s)?")


def _row(count: int) -> str:
    return _GAP.join([f"({_N}){_UNIT}"] * count)


def _find_bracketed(count: int) -> tuple[re.Pattern[str], ...]:
    """Numbers in brackets or a tag, and behind an announcement without brackets."""
    announced = rf"(?i)(?:{CUE})[\s:=\"']{{0,6}}{_row(count)}(?!\s?,?\s?[0-9]|\s?%)"
    return re.compile(rf"(?i){_OPEN}{_row(count)}{_CLOSE}"), re.compile(announced)


_POINTS: Final = _find_bracketed(2)
_BOXES: Final = _find_bracketed(4)
_ALONE: Final = {count: re.compile(_row(count) + r"\.?", re.IGNORECASE) for count in (2, 4)}
# Two corners: `(20, 20), (80, 80)`, `[[20, 20], [80, 80]]`, `from (20, 20) to (80, 80)`, `top left (20, 20), bottom
# right (80, 80)`; of three points or more none are corners.
_CORNER: Final = re.compile(rf"(?i)[(\[]\s?{_row(2)}\s?[)\]]")
_BETWEEN_CORNERS: Final = re.compile(
    r"(?i)[\s,;:\-\u2013>]{0,4}(?:(?:to|and|through)\s)?(?:the\s)?"
    r"(?:[\"']?(?:bottom|lower)[\s_-]?right[\"']?\s?(?:corner)?[\s:]{0,3}(?:(?:is|at)\s){0,2})?"
)
# Of a tag of points, whose names are those of corners.
_IN_POINTS: Final = re.compile(r"(?i)<points\b[^<>]{0,20000}\Z")

# Where a match ends in the text, and its numbers: two of a point, four of a box.
Found = tuple[int, tuple[float, ...]]


def _matches(text: str, patterns: tuple[re.Pattern[str], ...]) -> Iterator[Found]:
    for pattern in patterns:
        for match in pattern.finditer(text):
            yield match.end(), tuple(map(float, match.groups()))


def _corners(text: str) -> Iterator[Found]:
    """The boxes of exactly two points next to each other."""
    points = list(_CORNER.finditer(text))
    begin = 0
    for place, point in enumerate(points):
        following = points[place + 1] if place + 1 < len(points) else None
        if following is not None and _BETWEEN_CORNERS.fullmatch(text, point.end(), following.start()):
            continue
        run, begin = points[begin : place + 1], place + 1
        if len(run) == 2:
            yield point.end(), tuple(float(number) for corner in run for number in corner.groups())


def _find_named_numbers(text: str) -> Iterator[Found]:
    """Places whose numbers have names, in any order: x0, y0, x1 and y1, or x, y, width and height, or x and y."""
    entries = list(_ENTRIES.finditer(text))
    begin = 0
    for place, entry in enumerate(entries):
        following = entries[place + 1] if place + 1 < len(entries) else None
        if following is not None and _BETWEEN.fullmatch(text, entry.end(), following.start()):
            continue
        run, begin = entries[begin : place + 1], place + 1
        if _IN_POINTS.search(text, max(0, text.rfind("<", 0, run[0].start())), run[0].start()):
            yield from ((y.end(), (float(x[2]), float(y[2]))) for x, y in zip(run[::2], run[1::2], strict=False))
            continue
        yield from ((entry.end(), numbers) for numbers in _places_of([(e[1].casefold(), float(e[2])) for e in run]))


def _places_of(run: list[tuple[str, float]]) -> Iterator[tuple[float, ...]]:
    """The places of entries that stand next to each other, in order."""
    names = {name for name, _ in run}
    # `x1` is the left side where there is an `x2`, and the right one where there is an `x0`.
    first = {"x1": "x0", "y1": "y0"} if names & {"x2", "y2"} else {"x1": "x1", "y1": "y1"}
    sides: dict[str, float] = {}
    for name, number in run:
        side = first.get(name) or _SIDES.get(name, name)
        if side in sides:
            yield from _place_of(sides)
            sides = {}
        sides[side] = number
    yield from _place_of(sides)


def _place_of(sides: Mapping[str, float]) -> Iterator[tuple[float, ...]]:
    if sides.keys() >= {"x0", "y0", "x1", "y1"}:
        yield sides["x0"], sides["y0"], sides["x1"], sides["y1"]
    elif sides.keys() >= {"x0", "y0", "w", "h"}:
        yield sides["x0"], sides["y0"], sides["x0"] + sides["w"], sides["y0"] + sides["h"]
    elif sides.keys() == {"x0", "y0"}:
        yield sides["x0"], sides["y0"]
    elif sides.keys() == {"x1", "y1"}:
        yield sides["x1"], sides["y1"]


# The last of several forms that end at one place counts: a box is more than its second corner.
_BOX_FORMS: Final[tuple[Callable[[str], Iterator[Found]], ...]] = (
    lambda text: _matches(text, _BOXES),
    _corners,
    lambda text: (entry for entry in _find_named_numbers(text) if len(entry[1]) == 4),
)
_POINT_FORMS: Final[tuple[Callable[[str], Iterator[Found]], ...]] = (
    lambda text: _matches(text, _POINTS),
    lambda text: (entry for entry in _find_named_numbers(text) if len(entry[1]) == 2),
)


def _last(text: str, forms: tuple[Callable[[str], Iterator[Found]], ...]) -> Found | None:
    """The place of any of the forms that ends last."""
    return max((entry for form in forms for entry in form(text)), key=lambda entry: entry[0], default=None)


def parse_point(text: str) -> Parsed[Point]:
    """The point that `text`, any text, gives last; of a box its middle; None where it gives neither."""
    clean = statement(text)
    if full_match := _ALONE[2].fullmatch(clean):
        return Parsed(Point(float(full_match[1]), float(full_match[2])), "point")
    point, box, boxed = _last(clean, _POINT_FORMS), parse_box(text).value, _last(clean, _BOX_FORMS)
    if point is not None and (box is None or boxed is None or boxed[0] < point[0]):
        return Parsed(Point(point[1][0], point[1][1]), "point")
    if box is None:
        return undecided()
    return Parsed(Point((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2), "middle_of_box")


def parse_box(text: str) -> Parsed[Box]:
    """The box that `text`, any text, gives last, its corners in order; None where it gives none or one without area."""
    clean = statement(text)
    full_match = _ALONE[4].fullmatch(clean)
    last_box = (0, tuple(map(float, full_match.groups()))) if full_match else _last(clean, _BOX_FORMS)
    if last_box is None:
        return undecided()
    left, top, right, bottom = last_box[1]
    (x0, x1), (y0, y1) = sorted((left, right)), sorted((top, bottom))
    return Parsed(Box(x0, y0, x1, y1), "box") if x0 < x1 and y0 < y1 else undecided()


def overlap(first: Box, second: Box) -> float:
    """Intersection over union, 0 to 1."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((box.x1 - box.x0) * (box.y1 - box.y0) for box in (first, second))
    return width * height / (areas - width * height)


def distance(point: Point, other: Point) -> float:
    """In pixels."""
    return math.dist((point.x, point.y), (other.x, other.y))
