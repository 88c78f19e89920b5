"""The families of tests within which p values are adjusted (Holm): one family per claim, the same in every section.

    adjusted_by_claim(comparison, rows, lambda row: family_of_pair(comparison, row.a, row.b))

A claim answers a reader's question about a pair. Is the hybrid solver better than its model alone? Is it better than
the specialists? Which part of a gain comes from tools that return nothing? A page states one verdict per difference
because every section takes the family of a difference from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from hybrid.scoring.compare import Comparison
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.result import FRACTION, Family, Result, adjusted, contrasted
from hybrid.scoring.score import Scored

GAIN = Family("gain over the model alone")
SPECIALISTS = Family("difference to the specialists")
PARTS = Family("parts of the gain")
SHUFFLED = Family("other questions' findings")
OTHERS = Family("other pairs")
ALL_PAIRS = Family("all pairs")
OTHER_METRICS = Family("other metrics")
EFFECTS = Family("effects")

# Quantity of a row that another section prints. Here the row only counts as one more test of its family.
ELSEWHERE = "tested elsewhere"


def family_of_pair(comparison: Comparison, a: str, b: str) -> Family:
    """Return the family of the headline difference of two solvers, in either order."""
    if not comparison.groups:
        return ALL_PAIRS
    for group in comparison.groups:
        for family, first, second in _claims(group):
            if first is not None and second is not None and {a, b} == {first.solver, second.solver}:
                return family
    return OTHERS


def adjusted_by_claim(
    comparison: Comparison, rows: Sequence[Result], family: Callable[[Result], Family]
) -> list[Result]:
    """Return a section's rows, with p values also adjusted for pairs of the same family that other sections test.

    Otherwise a difference would have two adjusted p values, one in `differences` and one in `gain`: `gain` has no rows
    for groups without blank tools, and `differences` has none for pairs that `--pairs` leaves out.
    """
    tested = {frozenset((row.a, row.b)) for row in rows if not row.group}
    others = [
        row
        for a, b in _tested_pairs(comparison)
        if frozenset((a.solver, b.solver)) not in tested and (row := _headline_row(comparison, a, b)) is not None
    ]

    def family_of(row: Result) -> Family:
        return family_of_pair(comparison, row.a, row.b) if row.quantity == ELSEWHERE else family(row)

    return adjusted([*rows, *others], family_of)[: len(rows)]


def _tested_pairs(comparison: Comparison) -> Iterator[tuple[Scored, Scored]]:
    """Yield the pairs whose headline difference is tested in `differences` or in `gain`."""
    pairs = [(comparison.named(pair.a), comparison.named(pair.b)) for pair in comparison.pairs]
    for group in comparison.groups:
        if group.blank is not None:
            gain = [solver for solver in (group.alone, group.blank, group.hybrid) if solver is not None]
            pairs += [*pairwise(gain), (gain[0], gain[-1])]
            pairs += [(group.blank, group.shuffled)] if group.shuffled is not None else []
    yield from {frozenset((a.solver, b.solver)): (a, b) for a, b in pairs}.values()


def _headline_row(comparison: Comparison, a: Scored, b: Scored) -> Result | None:
    overlap = comparison.overlap(a, b)
    metrics = overlap.headline(comparison.rule)
    if metrics is None:
        return None
    row = Result("", ELSEWHERE, FRACTION, None, a=a.solver, b=b.solver, metric=metrics[0].name)
    return contrasted(row, metrics[0], metrics[1], overlap.untested(metrics))[0]


def family_of_tasks(row: Result) -> Family:
    """Return the family of a difference within a task: all tasks of the same pair and quantity."""
    return Family("tasks of the pair", (*sorted((row.a, row.b)), row.quantity, row.none))


def _claims(group: ComparisonGroup) -> Iterator[tuple[Family, Scored | None, Scored | None]]:
    yield GAIN, group.alone, group.hybrid
    yield SPECIALISTS, group.specialist, group.hybrid
    yield PARTS, group.alone, group.blank
    yield PARTS, group.blank, group.hybrid
    yield SHUFFLED, group.blank, group.shuffled
