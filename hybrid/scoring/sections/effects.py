"""What do the findings bring without a loop, and the loop and the form of findings beside them?

result effect + loop effect is the gain on the questions that all three have. p is of the difference in the row,
adjusted (Holm) over all effects of its table.

n: questions that both have and none failed
source: arXiv 2606.02357; docs/study.md; paired by question, resampled by cluster
values: -1 to 1

- result effect = result only - alone. What the specialist's finding in the prompt brings, in one call.
- loop effect = hybrid - result only. What choosing and calling tools oneself brings beside that.
- oracle = hybrid with oracle findings - hybrid. What perfect findings would bring. [source: ours]
- text alone = hybrid shown text alone - hybrid. The form of findings: arXiv 2604.12896. [source: docs/study.md]
- pictures alone = hybrid shown pictures alone - hybrid. The form of findings. [source: docs/study.md]

Cells after "Do Multimodal Agents Really Benefit from Tool Use?" (arXiv 2606.02357): result only is the finding in the
prompt without a loop. The effect of the format alone (tools offered, findings blank) is `presence` of section `gain`.
Forms after "Perception Programs" (arXiv 2604.12896). Every row is of the questions that both cells have.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.result import FRACTION, Result, adjusted, paired_contrast, with_contrast
from hybrid.scoring.score import Scored

NAME = "effects"
RESULT, LOOP, ORACLE = "result effect", "loop effect", "oracle"
TEXT, PICTURES = FORMS = "text alone", "pictures alone"

Cells = tuple[str, Scored | None, Scored | None]
"""A quantity and the two cells that it is the difference of: the second minus the first."""


def cells(group: ComparisonGroup) -> tuple[Cells, ...]:
    """The differences of a group's cells; a cell that was not run is None."""
    return (
        (RESULT, group.alone, group.result_only),
        (LOOP, group.result_only, group.hybrid),
        (ORACLE, group.hybrid, group.oracle),
        (TEXT, group.hybrid, group.as_text),
        (PICTURES, group.hybrid, group.as_pictures),
    )


def rows(found: Comparison) -> list[Result]:
    """Each effect whose cells were run, of each hybrid solver, over all and by task."""
    made = [
        row
        for group in found.groups
        for quantity, a, b in cells(group)
        if a is not None and b is not None
        for row in _difference(found, quantity, a, b)
    ]
    return adjusted(made, lambda row: bool(row.group))


def _difference(found: Comparison, quantity: str, a: Scored, b: Scored) -> Iterator[Result]:
    whole = found.overlap(a, b)
    left_out = f"left out: {whole.left_out}" if whole.left_out else ""
    for group, shared in {"": whole, **whole.by_group(found.options.by)}.items():
        metrics = shared.accuracy(found.rule) if group else shared.headline(found.rule)
        if metrics is None:
            continue
        untested = shared.untested(metrics, allow_failed=found.options.allow_failed, whole=whole)
        name, n, note = metrics[0].name, metrics[0].n, "" if group else left_out
        row = Result(NAME, quantity, FRACTION, None, a.solver, b.solver, name, group, n, none=found.rule, note=note)
        yield with_contrast(row, paired_contrast(metrics[0], metrics[1], untested), untested)


SECTION = statistic(rows, chart="intervals", order=125)
