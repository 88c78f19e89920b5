"""Detects the drawn marks of an image by combining rings, outlines and letters.

`tools/markers/` runs `find_marks`; other tools read its output with `marks_from` (`marks_json.py`) and paint over the
marks with `remove_marks` (`marks.py`) before they process pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from hybrid.marks.box_letters import name_outlines
from hybrid.marks.boxes import (
    CHANNELS,
    MIN_LETTER,
    BoxColor,
    Outline,
    Strokes,
    distinct_outlines,
    find_outlines,
    measured,
)
from hybrid.marks.drawing import LABELS
from hybrid.marks.letters import Grey, LetterReading, grey_between, partial_score, read_labels
from hybrid.marks.marks import BoxMark, Marks, PointMark
from hybrid.marks.pairs import (
    CLEAR_LETTER,
    MIN_RING,
    SAME_LUMA,
    MarkPair,
    RingStyle,
    best_style,
    find_occluded_rings,
    holds,
    letters_only,
    ring_pairs,
)
from hybrid.marks.ring_field import RingField
from hybrid.marks.rings import Ring, distinct, find_rings, search_everywhere
from hybrid.tool import Pixels

MarkKind = Literal["point", "box", "any"]

# Distance from a ring's outer edge to its letter's centre in BLINK's drawings; used if no letter was found from which
# to measure it.
BLINK_LABEL_OFFSET_PX = 16.0
BLINK_LETTER_PX = 11.0
# Minimum score at which a ring without a readable letter is reported.
RING_ALONE = 0.55
# Minimum sum of ring and letter score at which a mark is accepted without another mark of its style.
CLEAR_ALONE = 1.3
# Letters that are drawn only together with all earlier letters. If such a letter is alone in an image, it is a false
# detection, however clear.
LATER = ("C", "D")
# Minimum confidence at which a mark raises the confidence of other marks in its picture, and the confidence up to which
# it raises them.
COMPANION = 0.8
# `READ_LETTER` is the minimum correlation at which a letter counts as drawn like that of a clear mark; `ALIKE_PX` is
# the largest difference of the radii of their rings.
READ_LETTER = 0.8
ALIKE_PX = 1.5
# Lowest confidence of a mark that is drawn like a clear mark.
MIN_TOGETHER = 0.6
MAX_RING_PX = 46
# Minimum score at which a box without a readable letter is reported.
BOX_ALONE = 0.85
# Smallest lead in score over the second-best box for a letter; with a smaller lead, the lines support both boxes.
MIN_LEAD = 0.03
# Minimum score at which two named boxes are accepted without a search for rings.
BOX_SURE = 0.7


def find_marks(
    pixels: Pixels,
    labels: Sequence[str] = (),
    kind: MarkKind = "any",
    levels: tuple[int, int] = (0, 255),
    read: Callable[[Grey], list[LetterReading]] = read_labels,
) -> Marks:
    """Find rings and boxes and their letters in an image (H, W, 3).

    `labels` are the expected labels, each at most once; empty means any of A-D and REF. `read` finds letters between
    two grey `levels`: a grey up to the first level is black, and one from the second level on is white.
    """
    grey = grey_between(pixels, levels)
    readings = read(grey)
    if kind == "box":
        return Marks(boxes=_find_boxes(pixels, None, readings, labels))
    field = RingField(pixels)
    boxes = () if kind == "point" else _find_boxes(pixels, field, readings, labels)
    labels_seen = {mark.label for mark in boxes if mark.label is not None and mark.edge_score >= BOX_SURE}
    if len(labels_seen) >= 2 and labels_seen.issuperset(labels):
        return Marks(boxes=tuple(mark for mark in boxes if mark.label is not None))
    points = _find_points(pixels, grey, field, readings, labels, _named_confidence(boxes))
    points.sort(key=lambda mark: (mark.label is None, mark.label or "", -mark.ring_score))
    # Each label and letter names one mark. If a ring and an outline both claim it, the kind that explains the letters
    # better keeps it.
    by_rings, by_lines = _named_confidence(points), _named_confidence(boxes)
    if by_lines > by_rings:
        points = [mark for mark in points if not _claimed(mark, boxes)]
    else:
        boxes = tuple(mark for mark in boxes if not _claimed(mark, points))
    # If there are named marks, a ring or an outline without a letter is a false detection.
    if by_lines > 0:
        points = [mark for mark in points if mark.label_box_px is not None]
    if by_rings > 0:
        boxes = tuple(mark for mark in boxes if mark.label is not None)
    return Marks(tuple(points), boxes)


def find_colored_boxes(pixels: Pixels, colors: Sequence[BoxColor]) -> Marks:
    """Find drawn boxes of some colours in an image (H, W, 3), with or without letters, which are not read."""
    strokes = Strokes(pixels, (), CHANNELS)
    outlines = [
        outline for outline in find_outlines(strokes, ()) if outline.color in colors and outline.score >= BOX_ALONE
    ]
    measured_outlines = [measured(strokes, outline) for outline in distinct_outlines(outlines)]
    marks = [
        BoxMark(None, outline.color, outline.box, None, outline.score, 0.0, min(0.98, outline.score))
        for outline in measured_outlines
    ]
    return Marks(boxes=tuple(sorted(marks, key=lambda mark: (mark.color, -mark.edge_score))))


def _named_confidence(marks: Sequence[PointMark | BoxMark]) -> float:
    return sum(mark.confidence for mark in marks if mark.label is not None)


def _claimed(mark: PointMark | BoxMark, others: Sequence[PointMark | BoxMark]) -> bool:
    """Return whether another mark has the label or the letter of this mark."""
    return mark.label is not None and any(
        mark.label == other.label or (mark.label_box_px is not None and mark.label_box_px == other.label_box_px)
        for other in others
    )


def _no_ring(field: RingField, outline: Outline) -> bool:
    """Return whether an outline may take a letter from the rings: it is neither small and faint nor a ring itself."""
    box = outline.box
    width, height = box.x1 - box.x0, box.y1 - box.y0
    # In a colourful picture, small faint outlines occur by chance.
    if outline.score < BOX_ALONE and min(width, height) < MAX_RING_PX - 6:
        return False
    if max(width, height) > MAX_RING_PX:
        return True
    # The outline may be a thick ring; a circle inscribed in a real box touches the box at only four points.
    x, y = (box.x0 + box.x1 - 1) / 2, (box.y0 + box.y1 - 1) / 2
    rings = find_rings(field, field.window(x - 3, y - 3, x + 4, y + 4), least=RING_ALONE)
    return not rings or rings[0].score < RING_ALONE


def _find_points(
    pixels: Pixels,
    grey: Pixels,
    field: RingField,
    readings: Sequence[LetterReading],
    expected: Sequence[str],
    by_boxes: float,
) -> list[PointMark]:
    """Find rings with their letters, including hidden letters unless boxes explain them better (`by_boxes`)."""
    readings = letters_only(field, readings)
    style, pairs = best_style(field, ring_pairs(field, readings, expected), readings, expected)
    faint = _beside_clear_letters(field, pairs, readings, expected)
    if any(pair.ring.score < RING_ALONE for pair in pairs):
        pairs = find_occluded_rings(RingField(pixels, [pair.reading.box for pair in pairs], field), pairs)
    # The marks of one picture have one colour; the colour of a single ring can be misjudged because of JPEG's chroma.
    common = Counter(pair.ring.color for pair in pairs).most_common(1)
    pairs = [replace(pair, ring=replace(pair.ring, color=common[0][0])) for pair in pairs]
    matching = [pair for pair in pairs if not expected or pair.label in expected]
    marks = [
        _point(field, pair.ring, pair.label, pair.reading, pair.letter_score, len(pairs) == 1) for pair in matching
    ]
    marks += [
        replace(_point(field, pair.ring, pair.label, pair.reading, 1.0), confidence=MIN_TOGETHER) for pair in faint
    ]
    missing = _missing([str(mark.label) for mark in marks], expected)
    if by_boxes > _named_confidence(marks):
        return _together(marks)
    if style is None:
        rings = search_everywhere(pixels, field, RING_ALONE)
        style, rings = _common_style(rings, len(expected) or len(LABELS))
        # Letters are assigned in order, so N rings have the first N letters.
        missing = tuple(expected) or LABELS[: max(2, len(rings))]
    elif missing:
        rings = _same_style(field, style, pairs)
    else:
        return _together(marks)
    if style is None:
        return _together(marks)
    return _together([*marks, *_name_rings(grey, field, style, rings, missing, bool(expected))])


def _beside_clear_letters(
    field: RingField, pairs: Sequence[MarkPair], readings: Sequence[LetterReading], expected: Sequence[str]
) -> list[MarkPair]:
    """Return marks of clear letters with faint rings; each ring is placed at the offset that the clearest mark has."""
    clear = max(pairs, key=lambda pair: pair.score, default=None)
    if clear is None or min(clear.letter_score, clear.ring.score / RING_ALONE) < READ_LETTER:
        return []
    # A letter that was not requested needs more evidence.
    least = READ_LETTER if expected else CLEAR_LETTER
    offset = (clear.ring.x - clear.reading.centre[0], clear.ring.y - clear.reading.centre[1])
    by_label: dict[str, MarkPair] = {}
    for reading in readings:
        label, (x, y) = reading.label, (reading.centre[0] + offset[0], reading.centre[1] + offset[1])
        heights = [glyph_owner.glyph.y1 - glyph_owner.glyph.y0 for glyph_owner in (reading, clear.reading)]
        same_height = reading.score >= least and abs(heights[0] - heights[1]) <= ALIKE_PX
        free = all(label != pair.label and reading is not pair.reading for pair in pairs) and label not in by_label
        # A letter near the upper border may be below its ring, because there is no space above.
        inside = 0 <= x < field.width and y < field.height and reading.centre[1] > 2 * offset[1] > 0
        if free and inside and same_height and not reading.clipped and label in (expected or LABELS):
            by_label[label] = MarkPair(label, reading.score, reading, replace(clear.ring, x=round(x), y=round(y)))
    return list(by_label.values())


def _together(marks: Sequence[PointMark]) -> list[PointMark]:
    """Raise the confidence of marks whose style equals that of a mark with a clear ring and letter."""

    def likelier(mark: PointMark) -> PointMark:
        companions = [other for other in marks if other is not mark and other.confidence >= COMPANION]
        if mark.label is None or not companions:
            return mark
        lift = min(COMPANION, 2 * mark.confidence) if any(o.letter_score >= CLEAR_LETTER for o in companions) else 0.0
        # A grey or recompressed ring is faint, but is not a chance detection if its letter is like that of a clear mark
        # of its size.
        if any(
            min(mark.letter_score, other.letter_score) >= READ_LETTER and _drawn_alike(mark, other)
            for other in companions
        ):
            lift = max(lift, MIN_TOGETHER)
        return replace(mark, confidence=max(mark.confidence, lift))

    return [likelier(mark) for mark in marks]


def _drawn_alike(mark: PointMark, other: PointMark) -> bool:
    """Return whether two rings are equally large, or have equally large letters at the same relative position."""
    if abs(other.radius_px - mark.radius_px) <= ALIKE_PX:
        return True
    if mark.label_box_px is None or other.label_box_px is None:
        return False
    boxes = (mark, mark.label_box_px), (other, other.label_box_px)
    first_offsets, second_offsets = (
        (box.y1 - box.y0, spot.x - (box.x0 + box.x1) / 2, spot.y - (box.y0 + box.y1) / 2) for spot, box in boxes
    )
    # Each bound of a letter's box, and a ring's radius, may be off by a pixel.
    return max(abs(p - q) for p, q in zip(first_offsets, second_offsets, strict=True)) <= 2 * ALIKE_PX


def _missing(labels: Sequence[str], expected: Sequence[str]) -> tuple[str, ...]:
    """Return the labels still to be found.

    Without expected labels, these are the gaps before the last label found, and A and B.
    """
    if expected:
        return tuple(label for label in expected if label not in labels)
    letters = [label for label in labels if label != "REF"]
    if not letters:
        return ()
    last = max(LABELS.index(max(letters)), 1)
    return tuple(label for label in LABELS[: last + 1] if label not in labels)


def _same_style(field: RingField, style: RingStyle, pairs: Sequence[MarkPair]) -> list[Ring]:
    """Return more rings of a known radius and colour, best first, without rings inside letters or over known rings."""
    radius = round(style.mid_radius_px)
    window = field.window(0, 0, field.width, field.height)
    rings = find_rings(field, window, [radius], count=2 * len(pairs) + 6, least=MIN_RING)
    similar = [
        ring
        for ring in rings
        if abs(ring.luma - style.luma) <= SAME_LUMA
        and ring.score >= MIN_RING
        and not any(holds(pair.reading.box, ring) for pair in pairs)
    ]
    return distinct([*(replace(pair.ring, score=2.0) for pair in pairs), *similar])[len(pairs) :]


def _common_style(rings: Sequence[Ring], most: int) -> tuple[RingStyle | None, list[Ring]]:
    """Return the style of the best rings, for images without a readable letter, and the rings of that style."""
    good = [ring for ring in rings if ring.score >= RING_ALONE]
    if not good:
        return None, []
    first = good[0]
    similar = [
        r for r in good if abs(r.luma - first.luma) <= SAME_LUMA and abs(r.mid_radius_px - first.mid_radius_px) <= 1.5
    ]
    distance = first.mid_radius_px + 2 + BLINK_LABEL_OFFSET_PX
    return RingStyle(first.luma, first.mid_radius_px, distance, BLINK_LETTER_PX), similar[:most]


def _name_rings(
    grey: Pixels, field: RingField, style: RingStyle, rings: Sequence[Ring], labels: Sequence[str], expected: bool
) -> list[PointMark]:
    """Name rings by the visible parts of their letters; a single remaining label and ring by elimination."""
    scored = [_beside_ring(grey, style, ring, label) for ring in rings for label in labels]
    table = np.array(scored).reshape(len(rings), len(labels))
    marks: list[PointMark] = []
    free_rings, free_labels = list(range(len(rings))), list(range(len(labels)))
    while free_rings and free_labels:
        total = {(r, n): rings[r].score + max(0.0, float(table[r, n])) for r in free_rings for n in free_labels}
        r, n = max(total, key=lambda key: total[key])
        value = max(0.0, float(table[r, n]))
        # Expected position of the letter: below only if no part of it is visible above.
        reach, half_letter = style.away_px + style.letter_px / 2, style.letter_px / 2
        x, y = rings[r].x, rings[r].y
        above = style.above and y - style.away_px + half_letter >= 0
        far = y - reach if above else field.height - 1 - y - reach
        hidden = min(far, x - half_letter, field.width - 1 - x - half_letter) < 0
        is_sure = value >= 0.5 or (expected and len(free_labels) == 1 and hidden)
        if is_sure and expected:
            rival = max(
                (_beside_ring(grey, style, rings[r], other) for other in LABELS if other not in labels), default=0
            )
            # If another letter is at this position, the ring belongs to that letter, unless the border cuts the letter:
            # then the correlations are unreliable.
            is_sure = rival < max(0.5, value + 0.1) or hidden
            value = max(0.0, value - max(0.0, rival - value)) if is_sure else 0.0
        if rings[r].score >= RING_ALONE or value >= 0.5 or (is_sure and rings[r].score >= MIN_RING):
            marks.append(_point(field, rings[r], labels[n] if is_sure else None, None, value if is_sure else 0.0))
        free_rings.remove(r)
        free_labels.remove(n)
    return marks


def _beside_ring(grey: Pixels, style: RingStyle, ring: Ring, label: str) -> float:
    """Return the correlation of the visible part above or below a ring with a letter, -1..1."""
    places = [(ring.x, ring.y + side * style.away_px) for side in (-1, 1)]
    return max(partial_score(grey, label, place, style.letter_px) for place in places)


def _point(
    field: RingField,
    ring: Ring,
    label: str | None,
    reading: LetterReading | None,
    letter_score: float,
    alone: bool = False,
) -> PointMark:
    inner, outer = field.extent(ring.x, ring.y, ring.mid_radius_px)
    edge, letter = min(1.0, ring.score), min(1.0, max(0.0, letter_score))
    # The probability that position and label are right was fitted on generated marks. If no other mark of its style was
    # found, although A to D are drawn together, a mark must be clear.
    doubt = 0.5 if alone and edge + letter < CLEAR_ALONE else 1.0
    by_ring, by_letter = 1 / (1 + np.exp(-(edge - 0.42) * 18)), 1 / (1 + np.exp(-(letter - 0.62) * 14))
    confidence = float(np.clip(doubt * by_ring * (0.35 + 0.65 * by_letter), 0.0, 0.995))
    return PointMark(
        label=label,
        x=ring.x,
        y=ring.y,
        radius_px=outer,
        inner_radius_px=inner,
        color=ring.color,
        label_box_px=reading.box if reading is not None else None,
        ring_score=edge,
        letter_score=letter,
        confidence=confidence * (0.5 if alone and label in LATER else 1.0),
    )


def _find_boxes(
    pixels: Pixels, field: RingField | None, readings: Sequence[LetterReading], expected: Sequence[str]
) -> tuple[BoxMark, ...]:
    """Find drawn boxes with their letters, or else clear outlines. If a ring field is given, exclude rings."""
    letters = [reading for reading in readings if reading.score >= MIN_LETTER]
    strokes = Strokes(pixels, letters)
    outlines = find_outlines(strokes, letters)
    if field is not None:
        outlines = [outline for outline in outlines if _no_ring(field, outline)]
    matched = name_outlines(strokes, outlines, readings, expected)
    labels_expected = set(expected) or {*LABELS}
    marks = [
        _box(match.outline, match.label, match.reading, match.lead)
        for match in matched
        if match.label in labels_expected
    ]
    if not matched:
        marks = [
            _box(measured(strokes, outline)) for outline in distinct_outlines(outlines) if outline.score >= BOX_ALONE
        ]
    return tuple(sorted(marks, key=lambda mark: (mark.label is None, mark.label or "", -mark.edge_score)))


def _box(
    outline: Outline, label: str | None = None, reading: LetterReading | None = None, lead: float = MIN_LEAD
) -> BoxMark:
    letter = reading.score_of(label) if reading is not None and label is not None else 0.0
    by = reading.box if reading is not None else None
    doubt = 1.0 if lead >= MIN_LEAD else 0.5
    confidence = doubt * min(0.98, outline.score * (0.35 + 0.65 * letter))
    return BoxMark(label, outline.color, outline.box, by, outline.score, letter, confidence)
