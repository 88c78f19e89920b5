"""The coordinate frame of a table's boxes and points, and its conversion to pixels of the picture.

    in_pixels({"box": [0.1, 0.2, 0.5, 0.8]}, "normalised", [(640, 480)], "q.jsonl:1")     # {"box": [64, 96, 320, 384]}

Numbers are converted as the table's decimals, so that 0.1 of 640 px is exactly 64 px. The tolerance of a point is in
pixels in every frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, cast

from hybrid.benchmarks.questions.schema import Frame
from hybrid.core.errors import DataError
from hybrid.core.types import Json

# Width and height in pixels.
Size = tuple[int, int]

UNITS: Final[Mapping[Frame, int]] = {"normalised": 1, "thousandths": 1000}
# Largest distance of a number outside its picture, in pixels; it allows for the rounding of annotation tools.
ROUNDING: Final = 0.5
SMALLEST: Final = 1.0
THOUSAND: Final = 1000.0


def coordinates(target: Json) -> tuple[float, ...]:
    """Return the numbers of a box or point, x before y; none for another target."""
    facts: Mapping[str, Any] = target if isinstance(target, Mapping) else {}
    return tuple(cast("Sequence[float]", facts.get("box") or facts.get("point") or ()))


def in_pixels(target: Json, frame: Frame | None, sizes: Sequence[Size], location: str) -> Json:
    """Convert the target of a box or point to pixels of its picture.

    Args:
        target: target from `targets.py`, its numbers in the frame.
        frame: frame of the table; None for pixels.
        sizes: sizes of the question's pictures; without sizes nothing is checked.
        location: file, row and column, for errors.

    Raises:
        DataError: a position outside every picture, or a frame that needs a size if there is none or several.
    """
    numbers = coordinates(target)
    if not numbers or not isinstance(target, Mapping):
        return target
    if (unit := UNITS.get(frame or "pixels")) is not None:
        if len(set(sizes)) != 1:
            reason = "its pictures have different sizes" if sizes else "it has no picture"
            raise DataError(
                f"{location}: frame: {frame} cannot be converted to pixels, because {reason}: give the "
                "positions in pixels"
            )
        numbers = tuple(
            float(Fraction(repr(number)) * sizes[0][place % 2] / unit) for place, number in enumerate(numbers)
        )
    if sizes and not any(_inside(numbers, size) for size in sizes):
        hint = "" if frame is not None else _hint(coordinates(target), sizes)
        listing = ", ".join(f"{number:g}" for number in coordinates(target))
        pictures = ", ".join(f"{width} x {height}" for width, height in dict.fromkeys(sizes))
        frame_note = "" if frame in (None, "pixels") else f" as frame: {frame}"
        raise DataError(f"{location}: [{listing}]{frame_note} is outside the picture of {pictures} px{hint}")
    return {**target, "box" if "box" in target else "point": list(numbers)}


def _inside(numbers: Sequence[float], size: Size) -> bool:
    return all(-ROUNDING <= number <= size[place % 2] + ROUNDING for place, number in enumerate(numbers))


def _hint(numbers: Sequence[float], sizes: Sequence[Size]) -> str:
    if min(numbers) < 0:
        return ""
    if max(numbers) <= THOUSAND:
        return "; a mapping with `frame: thousandths` reads thousandths of width and height"
    return "" if len(sizes) > 1 else "; does it belong to a picture of another size?"


class FrameDoubts:
    """Doubts about the coordinate frame of a table that names none. All rows together show more than a single row."""

    def __init__(self) -> None:
        # Locations where no number is above 1,000: `_large` if a picture has a side above 1,000 px, otherwise `_small`.
        self._large: list[str] = []
        self._small: list[str] = []
        self._beyond = self._outside = False

    def look_at(self, target: Json, sizes: Sequence[Size], location: str) -> Iterator[str]:
        """Check the coordinates of a row; yield the doubt that they alone raise."""
        numbers = coordinates(target)
        if not numbers or not sizes:
            return
        if max(numbers) <= SMALLEST:
            yield (
                f"{location}: no number is larger than 1, but they are read as pixels; write `frame: normalised` in a "
                "mapping for shares of width and height, or `frame: pixels` for pixels"
            )
        elif max(numbers) > THOUSAND:
            self._beyond = True
        elif not any(_inside(numbers, size) for size in sizes):
            self._outside |= min(numbers) >= 0
        else:
            (self._large if max(map(max, sizes)) > THOUSAND else self._small).append(location)

    def of_table(self) -> Iterator[str]:
        """Yield the doubts about all coordinates together."""
        if self._beyond:
            return
        for location in (*self._large, *(self._small if self._outside else ())):
            yield (
                f"{location}: no number of the table is larger than 1,000, though pictures have other sizes, but they "
                "are read as pixels; write `frame: thousandths` in a mapping for thousandths of width and height, or "
                "`frame: pixels` for pixels"
            )
