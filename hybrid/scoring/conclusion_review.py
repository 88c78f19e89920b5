"""The sentences of a conclusion that answer a reviewer: what is equal, used, possible, and at what price.

    for case, text in review_sentences(ConclusionRows(comparison), group):
        case, text      # "equal.shown", "Equal within 5 points: with tools and alone (+0 points, 90% CI -2 to +2)."

Each reads the rows of one section and is left out where that section decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.scoring.conclusion_cases import worded
from hybrid.scoring.conclusion_rows import NO_CLAIM, ConclusionRows, ends_of, signed
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.sections.equivalence import is_equal
from hybrid.scoring.tool_effects import GAIN, OFFERING, OUTPUT

# A sentence: its case in `conclusion_cases.toml`, and its text.
Said = tuple[str, str]
# What is equal, by quantity of the section.
EQUAL_PAIRS = {
    GAIN: "with tools and alone",
    OFFERING: "with blank tools and alone",
    OUTPUT: "with tools and with blank tools",
}


def review_sentences(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """The sentences about one solver with tools, in the order printed."""
    yield from _equal(rows, group)


def _equal(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """What is equal within the margin, unless its parts or the rule for unanswered questions tell another story."""
    sides = {
        GAIN: (group.alone, group.hybrid),
        OFFERING: (group.alone, group.blank),
        OUTPUT: (group.blank, group.hybrid),
    }
    tested = {(row.quantity, row.a, row.b): row for row in rows.of("equivalence")}
    parts = []
    for quantity, (a, b) in sides.items():
        if a is None or b is None:
            continue
        row = tested.get((quantity, a.solver, b.solver))
        if row is not None and is_equal(row) and rows.pair(a, b).claim not in NO_CLAIM:
            parts.append(f"{EQUAL_PAIRS[quantity]} ({signed(row)}, 90% CI {ends_of(row)})")
    if parts:
        yield _said("equal.shown", margin=f"{100 * rows.found.options.margin:g}", parts="; ".join(parts))


def _said(case: str, **fields: object) -> Said:
    return case, worded(case, **fields)
