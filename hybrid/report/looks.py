"""The places at which the tool calls about a question looked: as marks over its pictures, and in words.

places = PlacesOfQuestion(question)
places.looked(solver, attempt)        # "1 of 2 calls with a region cover an annotated place"
places.marks(image)                   # after all solvers
"""

from __future__ import annotations

from hybrid.core.types import Attempt, Point, Question, StoredImage
from hybrid.report.payload import Mark
from hybrid.scoring.regions import LookedRegion, Place, annotated, covers, looks_of

# Maximum number of boxes to draw; a detector may return hundreds.
MOST_MARKS = 60


class PlacesOfQuestion:
    """The annotated places of a question, and the regions of the calls about it."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._targets = annotated(question)
        self._regions: list[tuple[str, LookedRegion]] = []

    def looked(self, solver: str, attempt: Attempt) -> str:
        """Add a solver's regions; return how many of its calls cover an annotated place; empty if none has a region."""
        looks = looks_of(self._question, attempt) if self._targets else ()
        self._regions += [(f"{solver}: {look.tool}", region) for look in looks for region in look.regions]
        if not looks:
            return ""
        count = sum(any(map(self._is_covering, look.regions)) for look in looks)
        verb = "covers" if count == 1 else "cover"
        return f"{count} of {len(looks)} calls with a region {verb} an annotated place"

    @property
    def words(self) -> str:
        """The annotated places in pixels: `box (4, 3)-(8, 6) in img:1`; empty if there are none."""
        numbers = {image.sha256: number for number, image in reversed([*enumerate(self._question.images, 1)])}
        parts = [f"{_words(target.place)} in img:{numbers[target.image.sha256]}" for target in self._targets]
        more = f"; and {len(parts) - MOST_MARKS} more" if len(parts) > MOST_MARKS else ""
        return "; ".join(parts[:MOST_MARKS]) + more

    def marks(self, image: StoredImage) -> tuple[Mark, ...]:
        """Return the marks of a picture: first the annotated places, then where calls looked."""
        marks = [
            Mark("annotated", "must be seen", _numbers(target.place))
            for target in self._targets
            if target.image.sha256 == image.sha256
        ]
        for label, region in self._regions:
            if region.image.sha256 == image.sha256:
                kind = "covering" if self._is_covering(region) else "elsewhere"
                marks.append(Mark(kind, label, _numbers(region.place)))  # type: ignore[arg-type]  # one of the kinds
        return tuple(marks[:MOST_MARKS])

    def _is_covering(self, region: LookedRegion) -> bool:
        targets = (target for target in self._targets if target.image.sha256 == region.image.sha256)
        return any(covers(region.place, target) for target in targets)


def _numbers(place: Place) -> tuple[float, ...]:
    return (place.x, place.y) if isinstance(place, Point) else (place.x0, place.y0, place.x1, place.y1)


def _words(place: Place) -> str:
    x, y, *end = (f"{number:.0f}" for number in _numbers(place))
    return f"box ({x}, {y})-({end[0]}, {end[1]})" if end else f"point ({x}, {y})"
