"""Parse a reply to a scanpath question (HVSBench Q9 and Q12) to three lists X, Y, T, or None.

Follows Table 7 of the HVSBench paper: lists after `X =`, in markdown, in JSON, or below headings such as
`X-coordinates (normalized):` and `Fixation Durations:`. The scorer decides about replies without lists.
"""

import math
import re
from typing import Final

from hybrid.answers.base import Parsed, plain, undecided
from hybrid.core.types import Scanpath

_COORDINATE: Final = r"(?:[-_ ]?(?:coord(?:inate)?s?|values?|positions?|list))?"
_AXES: Final = {
    "x": rf"x{_COORDINATE}",
    "y": rf"y{_COORDINATE}",
    "t": r"(?:t(?:imes?)?|(?:fixation[-_ ])?durations?)(?:[-_ ](?:values?|list|ms))?",
}
_LABEL_END: Final = r"[\"']?\s?(?:\([^()\n]{0,40}\))?\)?\s?[\"']?\s?[=:]\s{0,3}"
_LABELS: Final = {axis: re.compile(rf"(?i)(?<![A-Za-z0-9_]){name}{_LABEL_END}") for axis, name in _AXES.items()}
_IN_BRACKETS: Final = re.compile(r"[\[(]([^\[\]()]*)[\])]?")
_N: Final = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?"
_NUMBER: Final = re.compile(_N)
_UNBRACKETED: Final = re.compile(rf"(?i)(?:{_N}(?:[, \t]{{1,3}}{_N})*)?(?:[, \t+-]{{0,3}}(?:nan|inf)\b)?")
_DOTS: Final = re.compile(r"\.{2,}")


def _axis(text: str, axis: str) -> tuple[float, ...] | None:
    """Return the last list after a label of `axis`; None if it is missing, empty or has anything but numbers."""
    values: tuple[float, ...] = ()
    for label in _LABELS[axis].finditer(text):
        # The list is in brackets, or ends at the first word.
        inside = _IN_BRACKETS.match(text, label.end())
        bare = None if inside else _UNBRACKETED.match(text, label.end())
        content = inside[1] if inside else bare[0] if bare else ""
        if content.strip(" \t\n,"):
            # Dots at the end of a number are removed.
            items = [item.rstrip(".") for item in re.split(r"[,;\s]+", _DOTS.sub(" ", content))]
            numeric = all(_NUMBER.fullmatch(item) for item in items if item)
            values = tuple(float(item) for item in items if item) if numeric else ()
    return values if values and all(map(math.isfinite, values)) else None


def parse_scanpath(text: str) -> Parsed[Scanpath]:
    """Read the scanpath in any text, cut to its shortest list; None if a list is missing or not of numbers.

    The coordinates are returned as written: their range is not checked.
    """
    clean = plain(text)
    x, y, t = (_axis(clean, axis) for axis in _AXES)
    if x is None or y is None or t is None:
        return undecided()
    n = min(len(x), len(y), len(t))
    return Parsed(Scanpath(x[:n], y[:n], t[:n]), "lists")
