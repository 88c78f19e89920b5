"""Put letters and rings together: all marks of one image are drawn in one style, so the choice is made jointly.

A style is a ring's colour and radius and the distance from its centre to its letter's. Every pair of a letter and a
ring above or below it proposes one; the style under which the letters find the best rings wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from hybrid.core.types import Box
from hybrid.marks.drawing import LABELS
from hybrid.marks.letters import LetterReading
from hybrid.marks.rings import ASIDE_COST, MID_RADII, FieldWindow, Ring, RingField, find_rings

MIN_LETTER = 0.45
MIN_RING = 0.3
# Ring score plus letter score from which a letter and a ring are a mark; chance pairs in photographs stay below.
ACCEPT = 1.0
# Ring score, relative to the clearest ring's, from which another of the same style is believed.
ALIKE = 0.5
# Correlation by which a label that was not asked for must be better than one that was.
UNEXPECTED = 0.05
# Correlation by which a label may be worse than a letter's best one and still be meant.
UNCLEAR = 0.15
# Correlation from which a whole letter that was not asked for is believed.
LEGIBLE = 0.6
# Correlation from which a letter is none by the chance of what lies in a ring.
CLEAR_LETTER = 0.9
LETTERS_PER_LABEL = 3
MAX_STYLES = 4
# Score from which a red ring lies where a letter was read; a bold white D is a white ring, so others do not count.
RED_RING = 0.5
# How far a letter's centre may lie beside the ring's; more where the letter's box is cut by the border.
SIDEWAYS_PX = 8
# How much further beside its letter one ring of a picture may lie than another: letters differ in width.
ASIDE_PX = 3.0
AWAY_PX = 62
# Greatest difference of luma between rings of one colour: thin lines blend with their surroundings.
SAME_LUMA = 45.0


@dataclass(frozen=True, slots=True)
class MarkPair:
    """A letter and the ring it may name."""

    label: str
    letter_score: float
    reading: LetterReading
    ring: Ring

    @property
    def score(self) -> float:
        """Ring score plus letter score, less a little for every pixel that the letter stands aside."""
        aside = 0.0 if _cut_sideways(self.reading) else ASIDE_COST * abs(self.reading.centre[0] - self.ring.x)
        return self.ring.score + self.letter_score - aside

    @property
    def away_px(self) -> float:
        """Distance between the rows of the two centres."""
        return abs(self.reading.centre[1] - self.ring.y)


@dataclass(frozen=True, slots=True)
class RingStyle:
    """How the marks of one image are drawn: luma of the line 0..255, lengths in pixels."""

    luma: float
    mid_radius_px: float
    away_px: float
    letter_px: float
    # Between which distances beside a letter that is not cut its ring lies.
    aside: tuple[float, float] = (-SIDEWAYS_PX, SIDEWAYS_PX)
    # Whether letters stand above their rings, below only where there is no room above.
    above: bool = True


def _cut_sideways(reading: LetterReading) -> bool:
    return reading.clipped or reading.box.x0 <= 0


def _window(
    field: RingField, reading: LetterReading, near: float, far: float, side: int, aside: tuple[float, float]
) -> FieldWindow:
    """Centres above (side -1) or below (+1) a letter, between two distances from its centre, and how far beside it."""
    x, y = reading.centre
    rows = (y - far, y - near + 1) if side < 0 else (y + near, y + far + 1)
    return field.window(x + aside[0], rows[0], x + aside[1] + 1, rows[1])


def _useful(readings: Sequence[LetterReading], expected: Sequence[str]) -> list[LetterReading]:
    """The best readings of each label: text in a photograph can hold dozens of letters."""
    useful: list[LetterReading] = []
    for label in LABELS:
        ranked = sorted(readings, key=lambda reading: -reading.score_of(label))
        good = [r for r in ranked if r.score_of(label) >= MIN_LETTER and label in likely(r, expected)]
        useful.extend(r for r in good[:LETTERS_PER_LABEL] if r not in useful)
    return useful


def letters_only(field: RingField, readings: Sequence[LetterReading]) -> list[LetterReading]:
    """The readings that are not red rings themselves: what such a ring encloses can look like a D."""
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
    """Labels that a letter may be and the correlation of each, best first.

    A picture may hold unexpected letters; taken for expected ones, they would move a mark. They are
    believed where they are whole and clear, and count a little less.
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
    """Every plausible pair of a letter and a ring above or below it."""
    pairs: list[MarkPair] = []
    for reading in _useful(readings, expected):
        label, letter_score = next(iter(likely(reading, expected).items()))
        half = (reading.glyph.y1 - reading.glyph.y0) / 2
        for side in (-1, 1):
            at = _window(field, reading, half + 4, AWAY_PX, side, (-SIDEWAYS_PX, SIDEWAYS_PX))
            under = None if _cut_sideways(reading) else reading.centre[0]
            rings = find_rings(field, at, under=under, least=MIN_RING)
            pairs.extend(
                MarkPair(label, letter_score, reading, ring)
                for ring in rings
                if ring.score >= MIN_RING and abs(reading.centre[1] - ring.y) >= ring.mid_radius_px + half
            )
    return pairs


def best_style(
    field: RingField, pairs: Sequence[MarkPair], readings: Sequence[LetterReading], expected: Sequence[str]
) -> tuple[RingStyle | None, list[MarkPair]]:
    """The style that the letters agree on and the marks of it, each label once; (None, []) where no pair is good."""
    best: tuple[float, list[MarkPair], bool] = (0.0, [], True)
    useful = _useful(readings, expected)
    for style in _proposals(pairs):
        assigned = _assign(_of_style(field, style, useful, expected))
        if assigned:
            # Marks of one style score alike.
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
    """Styles of the best pairs, each once."""
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
    """Pairs of any letter with the best ring where the style says it must be."""
    radii = [r for r in MID_RADII if abs(r - style.mid_radius_px) <= 1]
    pairs: list[MarkPair] = []
    for reading in readings:
        # A doubtful letter may lie where a ring of the style does: a white ring's inside can look like a C or D.
        if reading.score < CLEAR_LETTER:
            x, y = reading.centre
            inside = find_rings(field, field.window(x - 2, y - 2, x + 3, y + 3), radii, least=RED_RING)
            if any(ring.score >= RED_RING and abs(ring.luma - style.luma) <= SAME_LUMA for ring in inside):
                continue
        # A letter cut by the border has its centre elsewhere than the whole one would.
        slack = 6 if reading.clipped else 2
        aside = (-SIDEWAYS_PX, SIDEWAYS_PX) if _cut_sideways(reading) else style.aside
        for side in (-1, 1):
            at = _window(field, reading, max(0.0, style.away_px - slack), style.away_px + slack, side, aside)
            rings = [ring for ring in find_rings(field, at, radii) if abs(ring.luma - style.luma) <= SAME_LUMA]
            # All letters of a picture stand on one side, but no letter above a ring that has no room for it there.
            if rings and ((side > 0) == style.above or rings[0].y < style.away_px):
                pairs.extend(
                    MarkPair(label, score, reading, rings[0]) for label, score in likely(reading, expected).items()
                )
    return [pair for pair in pairs if pair.score >= ACCEPT]


def _assign(pairs: Sequence[MarkPair]) -> list[MarkPair]:
    """Best pairs first, each label, letter and ring once, and no ring that another pair takes for a letter."""
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
    """Whether a ring's centre lies in a box."""
    return box.x0 <= ring.x < box.x1 and box.y0 <= ring.y < box.y1


def unhidden(field: RingField, pairs: Sequence[MarkPair]) -> list[MarkPair]:
    """The pairs with their rings looked for again in a field that leaves out what letters cover."""
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
