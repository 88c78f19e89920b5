"""Selects the drawn boxes among the outlines found, together with their letters.

Lines of overlapping boxes form more rectangles than were drawn. The selected outlines are those that together explain
the lines of the picture, each with its letter at a corner.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid.core.types import Box
from hybrid.marks.boxes import LABEL_PX, MIN_LETTER, Outline, Strokes, farthest, measured
from hybrid.marks.letters import LetterReading
from hybrid.marks.lines import Mask
from hybrid.marks.pairs import likely

# Score of a letter at an outline's upper left corner, where BLINK draws it; it falls to half at a distance of
# `LABEL_PX`. `ANY_CORNER` is the score at any other corner.
UPPER_LEFT = 0.5
ANY_CORNER = 0.2
# Number of outlines to try per label, by the number of labels.
MAX_OPTIONS = {1: 12, 2: 12, 3: 6, 4: 5, 5: 4}
# Score of a choice of outlines that explains all explainable lines.
EXPLAINED = 2.0
# Bounds that differ by more than this belong to another box.
OTHER_PX = 8
# Minimum ridge height in grey levels at which a line should be explained; fainter lines belong to the picture itself.
EXPLAINED_STEP = 60.0
# Largest distance between a line and the outline that explains it.
BESIDE_LINE_PX = 2


@dataclass(frozen=True, eq=False)
class LetterOption:
    """An outline that a letter may name."""

    outline: Outline
    label: str
    reading: LetterReading
    value: float


@dataclass(frozen=True, slots=True)
class Named:
    """A drawn box with its letter; `lead` is its score margin over the best other outline for this letter."""

    outline: Outline
    label: str
    reading: LetterReading
    lead: float


def name_outlines(
    strokes: Strokes, outlines: Sequence[Outline], readings: Sequence[LetterReading], expected: Sequence[str]
) -> list[Named]:
    """Return the drawn outlines with their letters; each label and each letter is used once.

    `expected` are the requested labels (none: any); a legible letter that was not requested also names its outline.
    """
    options: dict[str, list[LetterOption]] = {}
    for outline in outlines:
        for reading in readings:
            place = _placed(reading.box, outline.box)
            for label, score in likely(reading, expected).items():
                if place >= 0 and score >= MIN_LETTER:
                    value = score + outline.score + place
                    options.setdefault(label, []).append(LetterOption(outline, label, reading, value))
    if not options:
        return []
    most = MAX_OPTIONS[len(options)]
    selected = _choose_outlines(
        strokes,
        [sorted(ranked_options, key=lambda option: -option.value)[:most] for ranked_options in options.values()],
    )
    neighbours = [option.outline for option, _ in selected]
    return [
        Named(measured(strokes, option.outline, neighbours), option.label, option.reading, lead)
        for option, lead in selected
    ]


def _choose_outlines(strokes: Strokes, ranked: Sequence[Sequence[LetterOption]]) -> list[tuple[LetterOption, float]]:
    """Choose at most one option per label to maximise values and explained lines; return options and their leads."""
    explained = {
        id(option): _explained(strokes, option.outline) for options_of_letter in ranked for option in options_of_letter
    }
    choices = []
    for picks in itertools.product(*([*options_of_letter, None] for options_of_letter in ranked)):
        options = [option for option in picks if option is not None]
        clash = any(a.reading is b.reading or a.outline is b.outline for a, b in itertools.combinations(options, 2))
        if options and not clash:
            count = int(np.logical_or.reduce([explained[id(option)] for option in options]).sum())
            choices.append((sum(option.value for option in options), count, options))
    most = max((count for _, count, _ in choices), default=0) or 1
    totals = [(value + EXPLAINED * count / most, options) for value, count, options in choices]
    total, best = max(totals, key=lambda choice: choice[0])
    leads = []
    for option in best:
        # The best total score if this option's letter names another outline.
        rival = max(
            (
                value
                for value, options in totals
                for other in options
                if other.label == option.label and farthest(other.outline.box, option.outline.box) > OTHER_PX
            ),
            default=0.0,
        )
        leads.append((option, total - rival))
    return leads


def _explained(strokes: Strokes, outline: Outline) -> Mask:
    """Return which line pixels an outline explains: the masks of the lines of all colours, concatenated."""
    top_edge, bottom_edge, left_edge, right_edge = outline.corners
    parts = []
    for color in strokes.colors:
        for axis, stops, (start, end) in (
            (0, (top_edge, bottom_edge), (left_edge, right_edge)),
            (1, (left_edge, right_edge), (top_edge, bottom_edge)),
        ):
            for run in strokes.runs(color, axis, EXPLAINED_STEP):
                explained = np.zeros(len(run.on), bool)
                if color == outline.color and min(abs(run.row - stop) for stop in stops) <= BESIDE_LINE_PX:
                    explained[start : end + 1] = run.on[start : end + 1]
                parts.append(explained)
    return np.concatenate(parts) if parts else np.zeros(0, bool)


def _placed(label: Box, box: Box) -> float:
    """Score a letter's black box as the name of an outline: -1 away from it, 0 at a side, more at a corner."""
    d = LABEL_PX
    left_gap = min(abs(label.x0 - box.x0), abs(label.x1 - box.x0))
    above = min(abs(label.y1 - box.y0), abs(label.y0 - box.y0))
    right_gap = min(abs(label.x0 - box.x1), abs(label.x1 - box.x1))
    below = min(abs(label.y1 - box.y1), abs(label.y0 - box.y1))
    aside = max(abs(label.x0 - box.x0), above)
    if aside <= d:
        return UPPER_LEFT * (1 - aside / (2 * d))
    if min(left_gap, right_gap) <= d and min(above, below) <= d:
        return ANY_CORNER
    across = label.x1 >= box.x0 - d and label.x0 <= box.x1 + d
    along = label.y1 >= box.y0 - d and label.y0 <= box.y1 + d
    return 0.0 if (min(above, below) <= d and across) or (min(left_gap, right_gap) <= d and along) else -1.0
