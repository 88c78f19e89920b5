"""A reply to a question for a point or a box -> its pixels, or None.

A point is two numbers, a box the four of its corners (x0, y0, x1, y1), in brackets or behind `Answer:`; the last that
a reply gives counts. `x = 12, y = 30` and JSON with these keys are read too.
"""

import math
import re
from typing import Final

from hybrid.answers.base import CUE, Parsed, statement, undecided
from hybrid.types import Box, Point

_N: Final = r"-?[0-9]{1,7}(?:\.[0-9]{1,9})?"
_NAMED_POINT: Final = re.compile(rf"(?i)\bx\"?\s?[=:]\s?({_N})[\s,;]{{1,3}}(?:and\s)?\"?y\"?\s?[=:]\s?({_N})")
_CORNERS: Final = ("x0|x1|xmin|x_min|left", "y0|y1|ymin|y_min|top", "x1|x2|xmax|x_max|right", "y1|y2|ymax|y_max|bottom")
_NAMED: Final = (rf"\"?\b(?:{names})\"?\s?[=:]\s?({_N})" for names in _CORNERS)
_NAMED_BOX: Final = re.compile(r"[\s,;]{1,3}".join(_NAMED), re.IGNORECASE)


def _listed(count: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Numbers in brackets, and behind an announcement without brackets."""
    row = r"\s?[,;\s]\s?".join([f"({_N})"] * count)
    announced = re.compile(rf"(?i)(?:{CUE})[\s:=\"']{{0,6}}{row}(?!\s?,?\s?[0-9])")
    return re.compile(rf"[(\[<]\s?{row}\s?[)\]>]"), announced


_POINTS: Final = _listed(2)
_BOXES: Final = _listed(4)
_ALONE: Final = {count: re.compile(r"\s?[,;\s]\s?".join([f"({_N})"] * count) + r"\.?") for count in (2, 4)}


def _last(text: str, count: int, patterns: tuple[re.Pattern[str], ...]) -> tuple[float, ...] | None:
    """The numbers of the last match of any of the patterns, or of the whole text."""
    if whole := _ALONE[count].fullmatch(text):
        return tuple(map(float, whole.groups()))
    matches = [match for pattern in patterns for match in pattern.finditer(text)]
    last = max(matches, key=lambda match: match.end(), default=None)
    return None if last is None else tuple(map(float, last.groups()))


def parse_point(text: str) -> Parsed[Point]:
    """The point that `text`, any text, gives last; of a box its middle; None where it gives neither."""
    clean = statement(text)
    found = _last(clean, 2, (*_POINTS, _NAMED_POINT))
    if found is not None:
        return Parsed(Point(found[0], found[1]), "point")
    box = parse_box(text).value
    if box is None:
        return undecided()
    return Parsed(Point((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2), "middle_of_box")


def parse_box(text: str) -> Parsed[Box]:
    """The box that `text`, any text, gives last, its corners in order; None where it gives none or one without area."""
    found = _last(statement(text), 4, (*_BOXES, _NAMED_BOX))
    if found is None:
        return undecided()
    (x0, x1), (y0, y1) = sorted((found[0], found[2])), sorted((found[1], found[3]))
    return Parsed(Box(x0, y0, x1, y1), "box") if x0 < x1 and y0 < y1 else undecided()


def overlap(one: Box, other: Box) -> float:
    """Intersection over union, 0 to 1."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((box.x1 - box.x0) * (box.y1 - box.y0) for box in (one, other))
    return width * height / (areas - width * height)


def distance(point: Point, other: Point) -> float:
    """In pixels."""
    return math.dist((point.x, point.y), (other.x, other.y))
