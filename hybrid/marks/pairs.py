"""Pairs letters with rings: all marks of one image have one style, so the choice is made jointly.

A style is a ring's colour, its radius, and the distance between the centres of the ring and its letter. Every pair of a
letter and a ring above or below it proposes a style; the style under which the letters find the best rings wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from hybrid.core.types import Box
from hybrid.marks.drawing import LABELS
from hybrid.marks.letters import LetterReading
from hybrid.marks.ring_circles import MID_RADII
from hybrid.marks.ring_field import FieldWindow, RingField
from hybrid.marks.rings import ASIDE_COST, LEAST, Ring, find_rings

MIN_LETTER = 0.45
MIN_RING = 0.3
# Minimum sum of ring and letter score at which they form a mark; chance pairs in photographs stay below.
ACCEPT = 1.0
# Minimum ring score, relative to the clearest ring's, at which another ring of the same style is accepted.
ALIKE = 0.5
# Margin in correlation by which a label that was not requested must exceed one that was.
UNEXPECTED = 0.05
# Largest difference in correlation between a letter's best label and another plausible label.
UNCLEAR = 0.15
# Minimum correlation at which a complete letter that was not requested is accepted.
LEGIBLE = 0.6
# Minimum correlation at which a letter is not a chance match inside a ring.
CLEAR_LETTER = 0.9
LETTERS_PER_LABEL = 3
MAX_STYLES = 4
# Minimum score at which a red ring is assumed at the position of a letter. Only red rings count, because a bold white D
# looks like a white ring.
RED_RING = 0.5
# Largest horizontal offset of a letter's centre from the ring's.
SIDEWAYS_PX = 8
# Largest difference between the horizontal offsets of one picture: letters differ in width.
ASIDE_PX = 3.0
AWAY_PX = 62
# Largest difference of luma between rings of one colour: thin lines blend with their surroundings.
SAME_LUMA = 45.0


@dataclass(frozen=True, slots=True)
class MarkPair:
    """A letter and the ring that it may name."""

    label: str
    letter_score: float
    reading: LetterReading
    ring: Ring

    @property
    def score(self) -> float:
        """Sum of ring and letter score, minus a small penalty per pixel of horizontal offset."""
        aside = 0.0 if _cut_sideways(self.reading) else ASIDE_COST * abs(self.reading.centre[0] - self.ring.x)
        return self.ring.score + self.letter_score - aside

    @property
    def away_px(self) -> float:
        """Vertical distance of the two centres."""
        return abs(self.reading.centre[1] - self.ring.y)


@dataclass(frozen=True, slots=True)
class RingStyle:
    """The style of one image's marks. `luma` (0..255) is that of the rings' lines; lengths are in pixels."""

    luma: float
    mid_radius_px: float
    away_px: float
    letter_px: float
    # Smallest and largest horizontal offset of a ring from a letter that is not cut.
    aside: tuple[float, float] = (-SIDEWAYS_PX, SIDEWAYS_PX)
    # Whether letters are above their rings, and below only without enough space.
    above: bool = True


def _cut_sideways(reading: LetterReading) -> bool:
    return reading.clipped or reading.box.x0 <= 0


def _window(
    field: RingField, reading: LetterReading, near: float, far: float, side: int, aside: tuple[float, float]
) -> FieldWindow:
    """Return the window of centres above (side -1) or below (+1) a letter, at given distances and offsets."""
    x, y = reading.centre
    rows = (y - far, y - near + 1) if side < 0 else (y + near, y + far + 1)
    return field.window(x + aside[0], rows[0], x + aside[1] + 1, rows[1])


def _useful(readings: Sequence[LetterReading], expected: Sequence[str]) -> list[LetterReading]:
    """Return the best readings of each label, because text in a photograph may contain dozens of letters."""
    useful: list[LetterReading] = []
    for label in LABELS:
        ranked = sorted(readings, key=lambda reading: -reading.score_of(label))
        good = [r for r in ranked if r.score_of(label) >= MIN_LETTER and label in likely(r, expected)]
        useful.extend(r for r in good[:LETTERS_PER_LABEL] if r not in useful)
    return useful


def letters_only(field: RingField, readings: Sequence[LetterReading]) -> list[LetterReading]:
    """Return the readings that are not red rings: the inside of such a ring can look like a D."""
    letters = []
    for reading in readings:
        if reading.score >= MIN_LETTER:
            x, y = reading.centre
            half = max(reading.glyph.x1 - reading.glyph.x0, reading.glyph.y1 - reading.glyph.y0) / 2
            radii = [r for r in MID_RADII if half - 3 <= r <= half + 5]
            rings = find_rings(field, field.window(x - 3, y - 3, x + 4, y + 4), radii, least=RED_RING)
            if any(ring.score >= RED_RING and ring.color == "red" for ring in rings):
                continue
        letters.append(reading)
    return letters


def likely(reading: LetterReading, expected: Sequence[str]) -> dict[str, float]:
    """Return the possible labels of a letter with their correlations, best first.

    A picture may contain unexpected letters; mistaken for expected letters, they would shift a mark. Unexpected letters
    are accepted if they are complete and clear, with a slightly lower score.
    """
    value = {
        label: score if not expected or label in expected else score - UNEXPECTED
        for label, score in reading.scores
        if not expected or label in expected or (score >= LEGIBLE and not reading.clipped)
    }
    best = max(value.values(), default=0.0)
    return {
        label: value[label] for label in sorted(value, key=lambda name: -value[name]) if value[label] > best - UNCLEAR
    }


def ring_pairs(field: RingField, readings: Sequence[LetterReading], expected: Sequence[str]) -> list[MarkPair]:
    """Return every plausible pair of a letter and a ring above or below it."""
    pairs: list[MarkPair] = []
    for reading in _useful(readings, expected):
        label, letter_score = next(iter(likely(reading, expected).items()))
        half = (reading.glyph.y1 - reading.glyph.y0) / 2
        for side in (-1, 1):
            at = _window(field, reading, half + 4, AWAY_PX, side, (-SIDEWAYS_PX, SIDEWAYS_PX))
            under = None if _cut_sideways(reading) else reading.centre[0]
            # A ring with a lower score forms no mark with this letter, so it proposes no style.
            rings = find_rings(field, at, under=under, least=max(MIN_RING, _min_ring_score(letter_score)))
            pairs.extend(
                MarkPair(label, letter_score, reading, ring)
                for ring in rings
                if ring.score >= MIN_RING and abs(reading.centre[1] - ring.y) >= ring.mid_radius_px + half
            )
    return pairs


def _min_ring_score(letter_score: float) -> float:
    """Return the ring score below which a pair with a letter cannot reach `ACCEPT`, with room for rounding."""
    return ACCEPT - letter_score - 1e-6


def best_style(
    field: RingField, pairs: Sequence[MarkPair], readings: Sequence[LetterReading], expected: Sequence[str]
) -> tuple[RingStyle | None, list[MarkPair]]:
    """Return the style on which the letters agree, and its marks, each label once; (None, []) without a good pair."""
    best: tuple[float, list[MarkPair], bool] = (0.0, [], True)
    useful = _useful(readings, expected)
    for style in _proposals(pairs):
        assigned = _assign(_of_style(field, style, useful, expected))
        if assigned:
            # Leave out rings with a much lower score, because marks of one style have similar scores.
            clear = max(pair.ring.score for pair in assigned)
            assigned = [pair for pair in assigned if pair.ring.score >= ALIKE * clear]
        total = sum(pair.score - ACCEPT for pair in assigned)
        if total > best[0]:
            best = (total, assigned, style.above)
    _, assigned, above = best
    if not assigned:
        return None, []
    return RingStyle(
        median(pair.ring.luma for pair in assigned),
        median(pair.ring.mid_radius_px for pair in assigned),
        median(pair.away_px for pair in assigned),
        median(pair.reading.glyph.y1 - pair.reading.glyph.y0 for pair in assigned),
        above=above,
    ), assigned


def _proposals(pairs: Sequence[MarkPair]) -> list[RingStyle]:
    """Return the styles of the best pairs, without duplicates."""
    styles: list[RingStyle] = []
    for pair in sorted(pairs, key=lambda pair: -pair.score):
        aside = pair.ring.x - pair.reading.centre[0]
        limits = (-SIDEWAYS_PX, SIDEWAYS_PX) if _cut_sideways(pair.reading) else (aside - ASIDE_PX, aside + ASIDE_PX)
        above = pair.ring.y > pair.reading.centre[1] or pair.ring.y < pair.away_px
        style = RingStyle(pair.ring.luma, pair.ring.mid_radius_px, pair.away_px, 0.0, limits, above)
        is_known = any(
            abs(style.luma - other.luma) <= SAME_LUMA
            and abs(style.mid_radius_px - other.mid_radius_px) <= 1
            and abs(style.away_px - other.away_px) <= 3
            and abs(style.aside[0] - other.aside[0]) <= 2
            and style.above == other.above
            for other in styles
        )
        if pair.score >= ACCEPT and not is_known:
            styles.append(style)
    return styles[:MAX_STYLES]


def _of_style(
    field: RingField, style: RingStyle, readings: Sequence[LetterReading], expected: Sequence[str]
) -> list[MarkPair]:
    """Return pairs of any letter with the best ring at the position predicted by the style."""
    radii = [r for r in MID_RADII if abs(r - style.mid_radius_px) <= 1]
    pairs: list[MarkPair] = []
    for reading in readings:
        # Skip a low-scoring letter inside a white ring of this style, because such an inside can look like a C or a D.
        if reading.score < CLEAR_LETTER:
            x, y = reading.centre
            inside = find_rings(field, field.window(x - 2, y - 2, x + 3, y + 3), radii, least=RED_RING)
            if any(ring.score >= RED_RING and abs(ring.luma - style.luma) <= SAME_LUMA for ring in inside):
                continue
        # The centre of a letter cut by the border differs from that of the complete letter.
        slack = 6 if reading.clipped else 2
        aside = (-SIDEWAYS_PX, SIDEWAYS_PX) if _cut_sideways(reading) else style.aside
        for side in (-1, 1):
            at = _window(field, reading, max(0.0, style.away_px - slack), style.away_px + slack, side, aside)
            labels = likely(reading, expected)
            least = max(LEAST, _min_ring_score(max(labels.values(), default=0.0)))
            rings = [
                ring for ring in find_rings(field, at, radii, least=least) if abs(ring.luma - style.luma) <= SAME_LUMA
            ]
            # All letters of a picture are on one side, except where a ring has no space for its letter.
            if rings and ((side > 0) == style.above or rings[0].y < style.away_px):
                pairs.extend(MarkPair(label, score, reading, rings[0]) for label, score in labels.items())
    return [pair for pair in pairs if pair.score >= ACCEPT]


def _assign(pairs: Sequence[MarkPair]) -> list[MarkPair]:
    """Select pairs, best first, each label, letter and ring once; a ring used as a letter elsewhere is excluded."""
    selected: list[MarkPair] = []
    for pair in sorted(pairs, key=lambda pair: -pair.score):
        min_distance = max(6.0, pair.ring.mid_radius_px)
        if not any(
            pair.label == other.label
            or pair.reading is other.reading
            or max(abs(pair.ring.x - other.ring.x), abs(pair.ring.y - other.ring.y)) <= min_distance
            or holds(pair.reading.glyph, other.ring)
            or holds(other.reading.glyph, pair.ring)
            for other in selected
        ):
            selected.append(pair)
    return selected


def holds(box: Box, ring: Ring) -> bool:
    """Return whether a ring's centre is inside a box."""
    return box.x0 <= ring.x < box.x1 and box.y0 <= ring.y < box.y1


def find_occluded_rings(field: RingField, pairs: Sequence[MarkPair]) -> list[MarkPair]:
    """Refine the rings of the pairs in a field that excludes the area covered by letters."""
    refined = []
    for pair in pairs:
        x, y = pair.ring.x, pair.ring.y
        radii = [r for r in MID_RADII if abs(r - pair.ring.mid_radius_px) <= 1]
        rings = find_rings(field, field.window(x - 2, y - 2, x + 3, y + 3), radii)
        better = [
            ring for ring in rings if abs(ring.luma - pair.ring.luma) <= SAME_LUMA and ring.score > pair.ring.score
        ]
        refined.append(replace(pair, ring=better[0]) if better else pair)
    return refined
