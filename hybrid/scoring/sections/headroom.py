"""Could a gain be detected at all?

room: the largest gain that is possible over the model alone. least detectable: the true difference that these questions
detect with 80 % power, given the spread of this run.

n: questions that both have and neither failed; for the two effects, that all three have
source: ours; docs/statistics.md

- room above the model alone = 1 - accuracy alone, by the headline metric [n: as the metric's]
- least detectable gain = the difference of with tools and alone with 80 % power
- least detectable effect of offering = the difference of blank tools and alone with 80 % power
- least detectable effect of output = the difference of with tools and blank tools with 80 % power

The test is that of `differences.py`, at 5 % before adjustment. A headline metric that is not a share has no room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.parts import GAIN, ToolEffect, tool_effects
from hybrid.scoring.result import Result, with_interval
from hybrid.stats import detectable

NAME: Final = "headroom"
ROOM: Final = "room above the model alone"
LEAST: Final = "least detectable "
NONE: Final = "too few questions to detect any difference"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield the room for each hybrid solver's gain, and the least detectable size of each effect."""
    for group in comparison.groups:
        for effect in tool_effects(comparison, group):
            if not effect.is_share:
                continue
            if effect.quantity == GAIN:
                yield _room(effect)
            if not effect.why_untested:
                least = detectable(*effect.metrics)
                row = replace(effect.row(NAME, f"{LEAST}{effect.quantity}"), value=least)
                yield row if least is not None else row.noted(NONE)


def _room(effect: ToolEffect) -> Result:
    """Return the room above the model alone: 1 minus its metric, with the mirrored interval."""
    row = with_interval(effect.row(NAME, ROOM), effect.metrics[0])
    if effect.why_untested:
        row = replace(row, low=None, high=None)
    value, low, high = (None if end is None else 1 - end for end in (row.value, row.high, row.low))
    return replace(row, value=value, low=low, high=high)


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """State the room and the least detectable gain of each solver."""
    rooms = {row.b: row for row in section_rows if row.quantity == ROOM and row.value is not None}
    least = {row.b: row.value for row in section_rows if row.quantity == f"{LEAST}{GAIN}"}
    sentences = []
    for name, room in rooms.items():
        left, size = 100 * (room.value or 0.0), least.get(name)
        size = None if size is None else 100 * size
        # Use one decimal if the two numbers would look equal without decimals.
        digits = int(size is not None and round(size) == round(left))
        sentence = f"{name}: {left:.{digits}f} points are left to gain"
        if name in least:
            if size is None:
                sentence += "; no gain can be detected"
            elif size > left:
                sentence += f"; the smallest gain that can be detected is {size:.{digits}f} points, which is more"
            else:
                sentence += f"; gains of {size:.{digits}f} points or more can be detected"
        sentences.append(f"{sentence}.")
    return " ".join(sentences)


SECTION = statistic(rows, lead, headings={"a": "measured against", "b": "solver"}, order=112)
