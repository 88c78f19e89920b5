"""The limits of a conclusion's claim: the parts of its last sentence.

"; ".join(limits_of(ConclusionRows(comparison), comparison.groups))
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from hybrid.core.image_clusters import shared_pictures
from hybrid.core.types import Metric
from hybrid.display.terminal import clipped, how_many
from hybrid.models.base import other_models
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_cases import case
from hybrid.scoring.conclusion_rows import ConclusionRows, count_of
from hybrid.scoring.conclusion_words import COUNTS, NAME_WIDTH, NAMED, SUBSTITUTE, listed, number, short_name, unit_of
from hybrid.scoring.faults import noted
from hybrid.scoring.groups import ComparisonGroup, is_imported
from hybrid.scoring.label_changes import partly_there
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.outcomes import UNREADABLE
from hybrid.scoring.tally import OTHER
from hybrid.stats import detectable

UNREADABLE_SHARE = 0.05  # Unreadable calls in more than this share of the questions limit the claim
OVERWEIGHT = 3  # A task whose weight is at least this many times its share of the questions is named among the limits


FAILED = case("limits.failed", "questions failed", "failed and left out: {each}")
OPEN = case("limits.open", "questions are not finished yet", "not finished yet: {each}")
PARTIAL = case("limits.partial", "the data have fewer questions than the benchmark", "the data hold {parts}")
UNANSWERED = case("limits.none", "answers without a reading", "unanswered questions count {counts}: {each}")
UNREADABLE_CALLS = case(
    "limits.unreadable",
    "calls that could not be read in more than 5 % of the questions",
    "{solver} wrote calls that could not be read about {unread} of {n} questions",
)
OTHER_RULE = case(
    "limits.rule",
    "the other rule of what no answer counts has another verdict",
    "with unanswered questions counted {counts}, {parts}",
)
GENERATED = case("limits.generated", "generated questions", "generated questions say nothing of real pictures")
RECORDED = case("limits.recorded", "recorded model", "the model's answers are recordings")


def limits_of(conclusion_rows: ConclusionRows, groups: Sequence[ComparisonGroup]) -> Iterator[str]:
    """Yield the parts of a conclusion's last sentence, about these groups; without groups, about all solvers."""
    # Report only the solvers that the first sentences name; the abstentions of specialists have a sentence of their
    # own.
    concerned = [
        solver for group in groups for solver in (group.hybrid, group.alone, group.blank) if solver is not None
    ]
    solvers = tuple({solver.solver: solver for solver in concerned}.values()) or tuple(
        solver for solver in conclusion_rows.found.solvers if not solver.read_by_judge
    )
    names = {solver.solver for solver in solvers}
    rows = [row for row in conclusion_rows.of("outcomes") if row.a in names]
    found = conclusion_rows.found
    # A repetition that failed entirely has neither judged answers nor the weights of its metric.
    finished = (each for solver in solvers for each in found.finished_repetitions(solver))
    first = next(finished, solvers[0])
    repeated = {solver.solver: found.repetitions(solver) for solver in solvers if solver in found.contestants}
    failed = _counts(repeated, lambda solver: (solver.failed, len(solver.scores)))
    waiting = _counts(repeated, lambda solver: (solver.open, solver.open + len(solver.scores)))
    if failed:
        yield FAILED.fill(each=", ".join(failed))
    if waiting:
        yield OPEN.fill(each=", ".join(waiting))
    yield from _predicted(solvers)
    if partial := partly_there(solvers[0]):
        yield PARTIAL.fill(parts=listed(partial))
    counted = _counted_ids(found, repeated)
    if unanswered := _counts(repeated, lambda solver: _unanswered(solver, counted)):
        judged = any(score.correct is not None for score in first.scores if score.id in counted)
        words = COUNTS if judged else {**COUNTS, "wrong": SUBSTITUTE}
        yield UNANSWERED.fill(each=", ".join(unanswered), counts=words[first.unanswered])
    for row in rows:
        if row.quantity == UNREADABLE and count_of(row) > UNREADABLE_SHARE * (row.n or 0):
            yield UNREADABLE_CALLS.fill(unread=count_of(row), n=row.n, solver=clipped(row.a, NAME_WIDTH))
    yield from _other_models(solvers)
    yield from _faults(conclusion_rows)
    yield from _of_other_rule(conclusion_rows, groups)
    yield from _weights(first.metrics, conclusion_rows.found.headline)
    clusters = {score.id: score.cluster for solver in solvers for score in solver.scores if score.cluster}
    if shared := shared_pictures(clusters.values()):
        yield shared
    if any(solver.data.generated for solver in solvers):
        yield GENERATED.fill()
    if any(is_imported(solver) or (solver.model or "").startswith("replay:") for solver in solvers):
        yield RECORDED.fill()
    yield from _power(conclusion_rows, groups)


def _of_other_rule(conclusion_rows: ConclusionRows, groups: Sequence[ComparisonGroup]) -> Iterator[str]:
    """Yield the differences that the other rule changes.

    The differences from the model alone and from the specialists are left out, because the first two sentences name
    them.
    """
    pairs = [(group.hybrid, group.blank) for group in groups]
    parts = [
        sentence
        for hybrid, other in pairs
        if other is not None and (sentence := conclusion_rows.otherwise(other, hybrid))
    ]
    if parts:
        yield OTHER_RULE.fill(counts=COUNTS[OTHER[conclusion_rows.found.rule]], parts=listed(parts))


OTHER_MODEL = case(
    "limits.model",
    "replies of another model than the one asked for",
    "{others} of {n} replies came from another model than the run asked for ({models})",
)


def _other_models(solvers: Sequence[Scored]) -> Iterator[str]:
    """Yield the number of replies from another model than requested, by the names that servers report."""
    total, others = Counter[str](), Counter[str]()
    for solver in solvers:
        counts = {} if solver.folder is None else solver.manifest.get("answered_by", {}).get(solver.recorded, {})
        total.update(counts)
        others.update(other_models(solver.model or "", counts))
    if others:
        model_names = listed([clipped(name, NAME_WIDTH) for name, _ in others.most_common(NAMED)])
        yield OTHER_MODEL.fill(others=others.total(), n=total.total(), models=model_names)


def _counts(repeated: Mapping[str, Sequence[Scored]], count: Callable[[Scored], tuple[int, int]]) -> list[str]:
    """Return `mllm 3 of 40` for each solver with a count above 0; a repeated solver's repetitions are added up.

    A repetition without any question of this kind is not among the number of repetitions.
    """
    lines = []
    for repetitions in repeated.values():
        counts = [(amount, n) for amount, n in map(count, repetitions) if n]
        amount, n = sum(amount for amount, _ in counts), sum(n for _, n in counts)
        again = f" ({len(counts)} repetitions)" if len(counts) > 1 else ""
        if amount:
            lines.append(f"{short_name(repetitions[0])} {amount} of {n}{again}")
    return lines


def _counted_ids(found: Comparison, names: Iterable[str]) -> frozenset[str]:
    """Return the questions that the headline metric counts for some of these solvers."""
    overlaps = (found.overlap(found.named(name)) for name in names)
    return frozenset(str(name) for overlap in overlaps for name in overlap.ids[overlap.counted])


def _unanswered(solver: Scored, counted: Collection[str]) -> tuple[int, int]:
    """Return how many of a solver's counted questions have no readable answer, and how many did not fail."""
    present = [score for score in solver.scores if not score.outcome.failed and score.id in counted]
    return sum(score.answer is None for score in present), len(present)


PREDICTED = case(
    "limits.predicted",
    "predictions leave questions of the data out",
    "{solver} has predictions for {n} of {whole} questions of the data",
)


def _predicted(solvers: Sequence[Scored]) -> Iterator[str]:
    """Yield how many of the data's questions have a prediction, for each solver that lacks predictions."""
    for solver in solvers:
        if left_out := solver.without_prediction:
            total = len(solver.scores) + left_out
            yield PREDICTED.fill(solver=clipped(solver.solver, NAME_WIDTH), n=len(solver.scores), whole=total)


FAULTS = case("limits.faults", "5 % of a tool's calls or more ended in faults", "{solver} called {tools}")


def _faults(conclusion_rows: ConclusionRows) -> Iterator[str]:
    """Yield the tools whose calls failed too often; solvers with the same tools share a line."""
    faulty: dict[str, list[str]] = {}
    for solver in conclusion_rows.found.solvers:
        if faults := noted(solver):
            faulty.setdefault(listed([*map(str, faults)]), []).append(short_name(solver))
    for tools, names in list(faulty.items())[:NAMED]:
        yield FAULTS.fill(solver=listed(names), tools=tools)


POWER = case(
    "limits.power",
    "a difference of two solvers that was tested",
    "this run can detect differences of about {size} (80% power, {questions})",
)
POWERLESS = case("limits.powerless", "questions too few for any difference", "{questions} cannot show any difference")


def _power(conclusion_rows: ConclusionRows, groups: Sequence[ComparisonGroup]) -> Iterator[str]:
    """Yield the smallest difference that this run can detect; of several pairs, the largest of these differences."""
    parts = [(group.alone or group.specialist or group.blank, group.hybrid) for group in groups]
    pairs = parts or [
        (conclusion_rows.found.named(pair.a), conclusion_rows.found.named(pair.b))
        for pair in conclusion_rows.found.pairs
    ]
    tested = [conclusion_rows.pair(a, b) for a, b in pairs if a is not None]
    tested_states = ("more", "less", "open", "few")
    sizes = [(pair, detectable(*pair.metrics)) for pair in tested if pair.metrics and pair.state in tested_states]
    if not sizes:
        return
    pair, size = max(sizes, key=lambda entry: math.inf if entry[1] is None else entry[1])
    if size is None:
        yield POWERLESS.fill(questions=how_many(pair.n))
    else:
        row = pair.rows[0]
        yield POWER.fill(questions=how_many(pair.n), size=f"{number(size, row.unit)}{unit_of(row)}")


WEIGHT = case(
    "limits.weight",
    "in a mean over tasks, a task with three times the weight of its questions",
    "{tasks} of {total} and {share} of the weight{each}",
)


def _weights(metrics: Sequence[Metric], headline: str | None) -> Iterator[str]:
    """Yield the tasks of a mean over tasks that have far more weight than their share of questions."""
    for metric in metrics:
        if metric.name == headline and metric.combine == "mean_of_ratios":
            count = Counter(cell.stratum for cell in metric.cells if cell.denominator > 0)
            total, tasks = count.total(), len(count)
            heavy = sorted((n, task) for task, n in count.items() if total >= OVERWEIGHT * n * tasks)
            parts = [f"task {clipped(task, NAME_WIDTH)} has {how_many(n)}" for n, task in heavy]
            if parts:
                share = "half" if tasks == 2 else f"1/{tasks}"
                yield WEIGHT.fill(tasks=listed(parts), total=total, share=share, each=" each" if len(parts) > 1 else "")
