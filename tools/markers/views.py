"""Search an image for drawn marks at its own size, enlarged, shrunk and brightened, because copies may have any size.

The finder recognises letters about 11 px high, white on black. If some marks are not certain at the image's own size,
the views in which the letters read best are searched as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hybrid.marks.drawing import LABELS
from hybrid.marks.finding import MarkKind, find_marks
from hybrid.marks.letters import Grey, LetterReading, grey_between, read_labels
from hybrid.marks.marks import BoxMark, Marks, PointMark, scale_marks
from hybrid.tool import Pixels
from tools._shared.boxes import overlap
from tools.markers.small_letters import small_letters

# Long side to which longer views are shrunk.
MAX_SIDE_PX = 1536
# A view with a shorter side has no space for a ring with its letter.
MIN_SIDE_PX = 12
# A label is certain from this confidence. No other view is searched if all requested labels are certain. If no labels
# are requested, two certain labels or a lone REF suffice.
SURE = 0.9
# The label that may be the only label in an image.
ALONE = "REF"
# Minimum correlation at which a letter counts for a view.
LEGIBLE = 0.7
# Maximum number of views searched in addition to the image itself; each view takes as long as the image.
MAX_VIEWS = 2
# Lowest confidence of a mark from another view: above that of a clear letter without a visible ring, because small
# letters can be clear by chance.
LIKELY = 0.65
# Smallest lead of a view's sum of confidences over that of the image itself.
BETTER = 0.1


class View(NamedTuple):
    """A scale of an image, and the grey levels between which its letters are read."""

    scale: float
    levels: tuple[int, int] = (0, 255)
    read: Callable[[Grey], list[LetterReading]] = read_labels


AS_IS = View(1.0)
SMALL = View(2.0, read=small_letters)
# Scaling and recompression leave grey near a letter, and a gamma below 1 brightens its box: these views map grey levels
# up to 50 (the last one up to 60) to black.
VIEWS = (View(1.0, (50, 255)), *(View(scale, (50, 255)) for scale in (0.71, 0.5, 0.35, 0.25)), View(2.0, (60, 220)))


class _Readings:
    """The letters of an image (H, W, 3) in each view, read once."""

    def __init__(self, pixels: Pixels) -> None:
        self.pixels = pixels
        self._by_view: dict[View, list[LetterReading]] = {}

    def of(self, view: View) -> list[LetterReading]:
        """Return the letters of a view, in its pixels."""
        if view not in self._by_view:
            self._by_view[view] = view.read(grey_between(_scaled(self.pixels, view), view.levels))
        return self._by_view[view]

    def find_marks(self, view: View, labels: Sequence[str], kind: MarkKind) -> Marks:
        """Find the marks in a view, in pixels of the image."""

        def find(scaled: Pixels) -> Marks:
            return find_marks(scaled, labels, kind, view.levels, lambda _: self.of(view))

        return seen_in(self.pixels, view, find)

    def legible(self, view: View, labels: Sequence[str]) -> float:
        """Return how well a view shows the requested letters: the sum of the correlations of the clear ones."""
        if view.scale * max(self.pixels.shape[:2]) > MAX_SIDE_PX:
            return 0.0
        best = [max((reading.score_of(label) for reading in self.of(view)), default=0.0) for label in labels or LABELS]
        return sum(score for score in best if score >= LEGIBLE)


def find_at_any_size(pixels: Pixels, labels: Sequence[str], kind: MarkKind) -> Marks:
    """Find the marks of an image (H, W, 3) in the view that shows them best, in pixels of the image."""
    readings = _Readings(pixels)
    best = readings.find_marks(AS_IS, labels, kind)
    if _all_sure(best, labels):
        return best
    legible = {view: readings.legible(view, labels) for view in VIEWS}
    likely = sorted((view for view in VIEWS if legible[view] > 0), key=lambda view: -legible[view])[:MAX_VIEWS]
    # SMALL is last: otherwise, chance matches of small letters would displace another view.
    for view in [*likely, SMALL]:
        if view is SMALL and readings.legible(SMALL, labels) <= 0:
            break
        other = readings.find_marks(view, labels, kind)
        better = _complete(other, labels) and _trust(other) > _trust(best) + BETTER
        best = other if better and not (labels and _contradicted(readings, other, labels, kind)) else best
        if _all_sure(best, labels):
            break
    return best


def seen_in(pixels: Pixels, view: View, find: Callable[[Pixels], Marks]) -> Marks:
    """Run `find` on a view of an image (H, W, 3); return marks in pixels of the image."""
    scaled = _scaled(pixels, view)
    if scaled is pixels:
        return find(pixels)
    return scale_marks(find(scaled), pixels.shape[1] / scaled.shape[1], pixels.shape[0] / scaled.shape[0])


def _scaled(pixels: Pixels, view: View) -> Pixels:
    import cv2

    height, width = pixels.shape[:2]
    scale = min(view.scale, MAX_SIDE_PX / max(height, width))
    if scale == 1:
        return pixels
    size = (max(MIN_SIDE_PX, round(width * scale)), max(MIN_SIDE_PX, round(height * scale)))
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LANCZOS4 if view is SMALL else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, size, interpolation=interpolation), np.uint8)


def _all_sure(marks: Marks, labels: Sequence[str]) -> bool:
    labelled = _labelled_marks(marks)
    certain = {mark.label for mark in labelled if mark.confidence >= SURE}
    if labels:
        return certain.issuperset(labels)
    # A lone REF suffices only if no other letter was read, even uncertainly: other letters mean that more marks are
    # drawn.
    return len(certain) >= 2 or (certain == {ALONE} and len(labelled) == 1)


def _complete(marks: Marks, labels: Sequence[str]) -> bool:
    """Return whether a view contains all requested letters: a partial match is more likely chance."""
    likely = {mark.label for mark in _labelled_marks(marks) if mark.confidence >= LIKELY}
    return likely.issuperset(labels) if labels else likely.issuperset(("A", "B")) or "REF" in likely


def _contradicted(readings: _Readings, other: Marks, labels: Sequence[str], kind: MarkKind) -> bool:
    """Return whether the image itself shows another letter where a view reads a requested one.

    A view that reads B where the image reads REF has lost the distinguishing detail.
    """
    read = [mark for mark in _labelled_marks(readings.find_marks(AS_IS, LABELS, kind)) if mark.confidence >= LIKELY]
    return any(_at_one_place(a, b) for a in _labelled_marks(other) for b in read if b.label not in labels)


def _at_one_place(a: PointMark | BoxMark, b: PointMark | BoxMark) -> bool:
    # The letter of a mark has a separate box, None if no letter was read.
    first_box, second_box = a.label_box_px, b.label_box_px
    return first_box is not None and second_box is not None and overlap(first_box, second_box) > 0


def _trust(marks: Marks) -> float:
    return sum(mark.confidence for mark in _labelled_marks(marks))


def _labelled_marks(marks: Marks) -> list[PointMark | BoxMark]:
    return [*(point for point in marks.points if point.label), *(box for box in marks.boxes if box.label)]
