"""The families of tests within which p values are adjusted (Holm): one family per claim, the same in every section.

    adjusted(rows, lambda row: family_of_pair(comparison, row.a, row.b))

A claim is what a reader asks of a pair: is the hybrid solver better than its model alone, than the specialists, which
part comes from tools that return nothing? A page states one verdict per difference because every section takes the
family of a difference from here.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.scoring.compare import Comparison
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.result import Family, Result
from hybrid.scoring.score import Scored

GAIN = Family("gain over the model alone")
SPECIALISTS = Family("difference to the specialists")
PARTS = Family("parts of the gain")
SHUFFLED = Family("other questions' findings")
OTHERS = Family("other pairs")
ALL_PAIRS = Family("all pairs")
OTHER_METRICS = Family("other metrics")
EFFECTS = Family("effects")


def family_of_pair(comparison: Comparison, a: str, b: str) -> Family:
    """The family of the headline difference of two solvers, in either order."""
    if not comparison.groups:
        return ALL_PAIRS
    for group in comparison.groups:
        for family, first, second in _claims(group):
            if first is not None and second is not None and {a, b} == {first.solver, second.solver}:
                return family
    return OTHERS


def family_of_tasks(row: Result) -> Family:
    """The family of a difference within a task: all tasks of the same pair and quantity."""
    return Family("tasks of the pair", (*sorted((row.a, row.b)), row.quantity, row.none))


def _claims(group: ComparisonGroup) -> Iterator[tuple[Family, Scored | None, Scored | None]]:
    yield GAIN, group.alone, group.hybrid
    yield SPECIALISTS, group.specialist, group.hybrid
    yield PARTS, group.alone, group.blank
    yield PARTS, group.blank, group.hybrid
    yield SHUFFLED, group.blank, group.shuffled
