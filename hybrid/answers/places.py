"""Parse a reply to a question that asks for a point or a box; the result is in pixels, or None.

A point is two numbers; a box is the four numbers of its corners (x0, y0, x1, y1), or two consecutive points. The last
point or box in a reply counts. Accepted forms are numbers in brackets, after `Answer:` or `Point:`, or with names (`x =
12, y = 30`, JSON, attributes of a tag, `<x1>20</x1>`), ranges (`x: 20 to 80, y: 20 to 80`), four corners of an upright
rectangle, and the tags of grounding models: `<box>20 20 80 80</box>`, `<point x="25.0" y="50.0">`,
`<|box_start|>(20,20),(80,80)<|box_end|>`. Numbers are returned as written. Forms in other coordinates than a prompt
requests are not accepted: numbers with a percent sign, location tokens (`<loc0256>`, `<loc_250>`), and `<points
coords="1 1 250 500">`, whose numbers are indices and thousandths.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hybrid.answers.base import CUE, Parsed, statement, undecided
from hybrid.core.types import Box, Point

_N: Final = r"[-+]?[0-9]{1,7}(?:\.[0-9]{1,20})?"
_UNIT: Final = r"(?:\s?(?:px|pixels?)\b)?"
_GAP: Final = r"\s?[,;\s]\s?"
_OPEN, _CLOSE = r"(?:[(\[]|<(?:[a-z_]{1,12}>)?)\s?", r"\s?(?:[)\]>]|</)"

# Other names of a side, in any case; w and h are the width and height of a box.
_SIDES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("x", "x0", "xmin", "x_min", "left"), "x0"),
    **dict.fromkeys(("y", "y0", "ymin", "y_min", "top"), "y0"),
    **dict.fromkeys(("x2", "xmax", "x_max", "right"), "x1"),
    **dict.fromkeys(("y2", "ymax", "y_max", "bottom"), "y1"),
    **dict.fromkeys(("w", "width"), "w"),
    **dict.fromkeys(("h", "height"), "h"),
}
_NAME: Final = r"(?:[xy](?:_?(?:min|max)|[0-2])?|left|top|right|bottom|width|height|[wh])"
_SHARE: Final = r"(?![0-9.]*\s?%)"
_IS: Final = r"(?:[\s_-]coord(?:inate)?)?[\"']?(?:\s?[=:≈~]\s?|\sis\s|(?P<bare>\s))"
_ENTRIES: Final = re.compile(
    rf"(?i)<(?P<tag>{_NAME})>\s?(?P<tagged>{_N}){_UNIT}\s?</(?P=tag)>"
    rf"|[\"']?\b(?P<name>{_NAME}){_IS}[\"']?(?P<number>{_N}){_SHARE}{_UNIT}[\"']?"
)
# Entries of one place are adjacent: `x = 12, y = 30`, `x: 12 and y: 30`.
_BETWEEN: Final = re.compile(r"(?i)[\s,;*\-\u2022]{0,6}(?:and\s)?")


# Announcements of a point or a box: `Point: 25, 50`, `The bounding box is 20, 20, 80, 80`.
_LABEL: Final = (
    r"\b(?:points?|locations?|positions?|coordinates?|cent(?:er|re)|bbox|(?:bounding[\s_-]?)?box)(?:_2d)?"
    r"(?:\s[0-9]{1,2})?(?:\s?[:=]|\s(?:is|are|at)(?:\sat)?(?![a-z]))|\bcoordinates?(?=\s[-+0-9])"
)
# Brackets after one name contain the values of one axis: `"x": [20, 80]`.
_NOT_AXIS: Final = "".join(rf"(?<!\b[xy]{quote}[:=]{gap})" for quote in ("", "[\"']") for gap in ("", r"\s"))


def _row(count: int) -> str:
    return _GAP.join([f"({_N}){_UNIT}"] * count)


def _find_bracketed(count: int) -> tuple[re.Pattern[str], ...]:
    """Return patterns for numbers in brackets or a tag, and for numbers after an announcement without brackets."""
    announced = rf"(?i)(?:{CUE}|{_LABEL})[\s:=\"']{{0,6}}{_row(count)}(?!\s?[,;]?\s?(?:and\s)?[0-9]|\s?%|\.[0-9])"
    return re.compile(rf"(?i){_NOT_AXIS}{_OPEN}{_row(count)}{_CLOSE}"), re.compile(announced)


_POINTS: Final = _find_bracketed(2)
_BOXES: Final = _find_bracketed(4)
_ALONE: Final = {count: re.compile(_row(count) + r"\.?", re.IGNORECASE) for count in (2, 4)}
# Two corners: `(20, 20), (80, 80)`, `[[20, 20], [80, 80]]`, `from (20, 20) to (80, 80)`, `top left (20, 20), bottom
# right (80, 80)`; three or more points are not corners.
_CORNER: Final = re.compile(rf"(?i){_NOT_AXIS}[(\[]\s?{_row(2)}\s?[)\]]")
_BETWEEN_CORNERS: Final = re.compile(
    r"(?i)[\s,;:\-\u2013>]{0,4}(?:(?:to|and|through)\s)?(?:the\s)?"
    r"(?:[\"']?(?:bottom|lower)[\s_-]?right[\"']?\s?(?:corner)?[\s:]{0,3}(?:(?:is|at)\s){0,2})?"
)
# The ranges of both axes: `x: 20 to 80, y: 20 to 80`.
_RANGE: Final = rf"(?:\s?[=:]\s?|\s(?:is\s)?(?:from\s)?)({_N}){_UNIT}\s?(?:to|-|\u2013)\s?({_N}){_SHARE}{_UNIT}"
_RANGES: Final = re.compile(rf"(?i)\bx{_RANGE}[\s,;]{{0,3}}(?:and\s)?y{_RANGE}")
# Matches the inside of a `points` tag, whose attributes are named like corners.
_IN_POINTS: Final = re.compile(r"(?i)<points\b[^<>]{0,20000}\Z")

# End of a match in the text, and its numbers: two of a point, four of a box.
Found = tuple[int, tuple[float, ...]]


def _matches(text: str, patterns: tuple[re.Pattern[str], ...]) -> Iterator[Found]:
    for pattern in patterns:
        for match in pattern.finditer(text):
            yield match.end(), tuple(map(float, match.groups()))


def _corners(text: str) -> Iterator[Found]:
    """Yield the boxes of exactly two consecutive points, or of the four points of an upright rectangle in order."""
    points = list(_CORNER.finditer(text))
    begin = 0
    for place, point in enumerate(points):
        following = points[place + 1] if place + 1 < len(points) else None
        if following is not None and _BETWEEN_CORNERS.fullmatch(text, point.end(), following.start()):
            continue
        run, begin = points[begin : place + 1], place + 1
        corners = [(float(corner[1]), float(corner[2])) for corner in run]
        if len(corners) == 5 and corners[0] == corners[4]:
            del corners[4]
        if len(corners) == 2 or _is_upright(corners):
            yield point.end(), (*corners[0], *corners[len(corners) // 2])


def _is_upright(corners: list[tuple[float, float]]) -> bool:
    """Return whether four points are the corners of an upright rectangle, in the order of its outline."""
    if len(corners) != 4:
        return False
    (x0, y0), (x1, y1) = corners[0], corners[2]
    return {corners[1], corners[3]} == {(x0, y1), (x1, y0)} and x0 != x1 and y0 != y1


def _find_named_numbers(text: str) -> Iterator[Found]:
    """Yield places from named numbers in any order: x0, y0, x1 and y1, or x, y, width and height, or x and y."""
    entries = list(_ENTRIES.finditer(text))
    begin = 0
    for place, entry in enumerate(entries):
        following = entries[place + 1] if place + 1 < len(entries) else None
        if following is not None and _BETWEEN.fullmatch(text, entry.end(), following.start()):
            continue
        run, begin = entries[begin : place + 1], place + 1
        if _IN_POINTS.search(text, max(0, text.rfind("<", 0, run[0].start())), run[0].start()):
            pairs = zip(run[::2], run[1::2], strict=False)
            yield from ((y.end(), (_name_and_number(x)[1], _name_and_number(y)[1])) for x, y in pairs)
            continue
        # `left 2 and top 3` may count things, but `left 20, top 20, right 80, bottom 80` is a box.
        shortest = 4 if any(item["bare"] and item["name"].casefold() not in "xy" for item in run) else 2
        places = _places_of([_name_and_number(item) for item in run])
        yield from ((entry.end(), numbers) for numbers in places if len(numbers) >= shortest)


def _find_ranges(text: str) -> Iterator[Found]:
    """Yield boxes from the ranges of both axes."""
    for match in _RANGES.finditer(text):
        x0, x1, y0, y1 = map(float, match.groups())
        yield match.end(), (x0, y0, x1, y1)


def _name_and_number(entry: re.Match[str]) -> tuple[str, float]:
    return (entry["tag"] or entry["name"]).casefold(), float(entry["tagged"] or entry["number"])


def _places_of(run: list[tuple[str, float]]) -> Iterator[tuple[float, ...]]:
    """Yield the places of adjacent entries, in order."""
    names = {name for name, _ in run}
    # `x1` is the left side if there is an `x2`, and the right side if there is an `x0`.
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


# If several forms end at the same position, the last form counts, because a box includes its second corner.
_BOX_FORMS: Final[tuple[Callable[[str], Iterator[Found]], ...]] = (
    lambda text: _matches(text, _BOXES),
    _corners,
    _find_ranges,
    lambda text: (entry for entry in _find_named_numbers(text) if len(entry[1]) == 4),
)
_POINT_FORMS: Final[tuple[Callable[[str], Iterator[Found]], ...]] = (
    lambda text: _matches(text, _POINTS),
    lambda text: (entry for entry in _find_named_numbers(text) if len(entry[1]) == 2),
)


def _last(text: str, forms: tuple[Callable[[str], Iterator[Found]], ...]) -> Found | None:
    """Return the place, in any of the forms, that ends last."""
    return max((entry for form in forms for entry in form(text)), key=lambda entry: entry[0], default=None)


def parse_point(text: str) -> Parsed[Point]:
    """Read the last point in any text, or the centre of the last box; None if there is neither."""
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
    """Read the last box in any text, with ordered corners; None if there is none, or it has no area."""
    clean = statement(text)
    full_match = _ALONE[4].fullmatch(clean)
    last_box = (0, tuple(map(float, full_match.groups()))) if full_match else _last(clean, _BOX_FORMS)
    if last_box is None:
        return undecided()
    left, top, right, bottom = last_box[1]
    (x0, x1), (y0, y1) = sorted((left, right)), sorted((top, bottom))
    return Parsed(Box(x0, y0, x1, y1), "box") if x0 < x1 and y0 < y1 else undecided()


def overlap(first: Box, second: Box) -> float:
    """Return the intersection over union, 0 to 1."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((box.x1 - box.x0) * (box.y1 - box.y0) for box in (first, second))
    return width * height / (areas - width * height)


def distance(point: Point, other: Point) -> float:
    """Return the distance in pixels."""
    return math.dist((point.x, point.y), (other.x, other.y))
