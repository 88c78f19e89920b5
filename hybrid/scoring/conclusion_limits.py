"""The limits of a conclusion's claim: the parts of its last sentence.

"; ".join(limits_of(ConclusionRows(comparison), comparison.groups))
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybrid.display.terminal import clipped, how_many
from hybrid.models.answering import other_models
from hybrid.same_pictures import shared_pictures
from hybrid.scoring.conclusion_cases import worded
from hybrid.scoring.conclusion_rows import (
    COUNTS,
    NAME_WIDTH,
    NAMED,
    ConclusionRows,
    count_of,
    listed,
    number,
    short_name,
    unit_of,
)
from hybrid.scoring.faults import noted
from hybrid.scoring.groups import ComparisonGroup, is_imported
from hybrid.scoring.label_changes import partly_there
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.outcomes import UNREADABLE
from hybrid.scoring.tally import OTHER
from hybrid.stats import detectable
from hybrid.types import Metric

UNREADABLE_SHARE = 0.05  # Of the questions; calls that could not be read in more of them limit the claim
OVERWEIGHT = 3  # From so many times the weight of its questions on, a task is named among the limits


def limits_of(found: ConclusionRows, groups: Sequence[ComparisonGroup]) -> Iterator[str]:
    """The parts of the last sentence of a conclusion, about these groups or, without any, all solvers."""
    # Those that the first sentences are about; the specialists' abstentions are in their own sentence.
    concerned = [one for group in groups for one in (group.hybrid, group.alone, group.blank) if one is not None]
    solvers = tuple({one.solver: one for one in concerned}.values()) or tuple(
        one for one in found.found.solvers if not one.read_by_judge
    )
    names = {one.solver for one in solvers}
    rows = [row for row in found.of("outcomes") if row.a in names]
    failed = [f"{short_name(solver)} {solver.failed} of {len(solver.scores)}" for solver in solvers if solver.failed]
    waiting = [
        f"{short_name(solver)} {solver.open} of {solver.open + len(solver.scores)}" for solver in solvers if solver.open
    ]
    if failed:
        yield worded("limits.failed", each=", ".join(failed))
    if waiting:
        yield worded("limits.open", each=", ".join(waiting))
    yield from _predicted(solvers)
    if partial := partly_there(solvers[0]):
        yield worded("limits.partial", parts=listed(partial))
    counts = {short_name(solver): _unanswered(solver) for solver in solvers}
    unanswered = [f"{name} {count} of {n}" for name, (count, n) in counts.items() if count]
    if unanswered:
        yield worded("limits.none", each=", ".join(unanswered), counts=COUNTS[solvers[0].unanswered])
    for row in rows:
        if row.quantity == UNREADABLE and count_of(row) > UNREADABLE_SHARE * (row.n or 0):
            yield worded("limits.unreadable", unread=count_of(row), n=row.n, solver=clipped(row.a, NAME_WIDTH))
    yield from _other_models(solvers)
    yield from _faults(found)
    # Of the model alone and of the specialists the first two sentences say it.
    pairs = [(group.hybrid, group.blank) for group in groups]
    parts = [said for hybrid, other in pairs if other is not None and (said := found.otherwise(other, hybrid))]
    if parts:
        yield worded("limits.rule", counts=COUNTS[OTHER[found.found.rule]], parts=listed(parts))
    yield from _weights(solvers[0].metrics, found.found.headline)
    if shared := max((shared_pictures(score.cluster for score in one.scores) for one in solvers), key=len):
        yield shared
    if any(one.data.generated for one in solvers):
        yield worded("limits.generated")
    if any(is_imported(one) or (one.model or "").startswith("replay:") for one in solvers):
        yield worded("limits.recorded")
    yield from _power(found, groups)


def _other_models(solvers: Sequence[Scored]) -> Iterator[str]:
    """Replies of another model than the one that the run asked for, as the servers name them."""
    total, others = Counter[str](), Counter[str]()
    for one in solvers:
        counts = {} if one.folder is None else one.manifest.get("answered_by", {}).get(one.recorded, {})
        total.update(counts)
        others.update(other_models(one.model or "", counts))
    if others:
        named = listed([clipped(name, NAME_WIDTH) for name, _ in others.most_common(NAMED)])
        yield worded("limits.model", others=others.total(), n=total.total(), models=named)


def _unanswered(solver: Scored) -> tuple[int, int]:
    """How many of a solver's questions have no readable answer, and how many did not fail."""
    present = [score for score in solver.scores if not score.outcome.failed]
    return sum(score.answer is None for score in present), len(present)


def _predicted(solvers: Sequence[Scored]) -> Iterator[str]:
    """The part of the data's questions that predictions have, where it is not all."""
    for one in solvers:
        if left_out := one.without_prediction:
            whole = len(one.scores) + left_out
            yield worded("limits.predicted", solver=clipped(one.solver, NAME_WIDTH), n=len(one.scores), whole=whole)


def _faults(found: ConclusionRows) -> Iterator[str]:
    """Tools whose calls ended in faults often enough to limit what is said; the same of several solvers once."""
    faulty: dict[str, list[str]] = {}
    for one in found.found.solvers:
        if faults := noted(one):
            faulty.setdefault(listed([*map(str, faults)]), []).append(short_name(one))
    for tools, names in list(faulty.items())[:NAMED]:
        yield worded("limits.faults", solver=listed(names), tools=tools)


def _power(found: ConclusionRows, groups: Sequence[ComparisonGroup]) -> Iterator[str]:
    """Which difference the questions of this run can show, by its spread; of several pairs the greatest."""
    parts = [(one.alone or one.specialist or one.blank, one.hybrid) for one in groups]
    pairs = parts or [(found.found.named(pair.a), found.found.named(pair.b)) for pair in found.found.pairs]
    tested = [found.pair(a, b) for a, b in pairs if a is not None]
    said = ("more", "less", "open", "few")
    sizes = [(one, detectable(*one.metrics)) for one in tested if one.metrics and one.state in said]
    if not sizes:
        return
    pair, size = max(sizes, key=lambda one: math.inf if one[1] is None else one[1])
    if size is None:
        yield worded("limits.powerless", questions=how_many(pair.n))
    else:
        row = replace(pair.rows[0], value=size)
        yield worded("limits.power", questions=how_many(pair.n), size=f"{number(size, row.unit)}{unit_of(row)}")


def _weights(metrics: Sequence[Metric], headline: str | None) -> Iterator[str]:
    """The tasks of a mean over tasks that weigh far more than their questions."""
    for metric in metrics:
        if metric.name == headline and metric.combine == "mean_of_ratios":
            count = Counter(cell.stratum for cell in metric.cells if cell.denominator > 0)
            total, tasks = count.total(), len(count)
            heavy = sorted((n, task) for task, n in count.items() if total >= OVERWEIGHT * n * tasks)
            said = [f"task {clipped(task, NAME_WIDTH)} has {how_many(n)}" for n, task in heavy]
            if said:
                share = "half" if tasks == 2 else f"1/{tasks}"
                yield worded("limits.weight", tasks=listed(said), total=total, share=share)
