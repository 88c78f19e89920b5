"""Where data are not those of the card: labels of a task that are others, and tasks that are partly there.

solvers = with_same_labels(solvers, "refuse")
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from hybrid.benchmarks.base import Benchmark, UnansweredRule
from hybrid.benchmarks.card import BenchmarkCard, CardCorrection
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.scoring.compare import Comparison
from hybrid.scoring.published import Published
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.types import Question, base_id

OtherLabels = Literal["refuse", "leave-out", "compare"]


def with_same_labels(solvers: Sequence[Scored], how: OtherLabels) -> tuple[Scored, ...]:
    """The solvers; with `leave-out` none has a task whose answers differ between two of them, and its labels say so.

    Raises:
        UsageError: answers of a corrected task differ, and nothing else was asked for.
    """
    for correction in load("hybrid.benchmarks", solvers[0].benchmark).card.corrections if solvers else ():
        # Generated questions have no labels.
        labelled = [one for one in solvers if not one.data.generated]
        if not any(
            one.target != other.target
            for a, b in itertools.combinations(labelled, 2)
            for name, one in a.questions.items()
            if one.task == correction.task and isinstance(one, Question)
            if isinstance(other := b.questions.get(name), Question)
        ):
            continue
        if how == "refuse":
            named = {one.solver: correction.labels(one.questions.values()) or "none" for one in solvers}
            words = ", ".join(f"{name}: {labels}" for name, labels in named.items())
            raise UsageError(
                f"{correction.task}: its labels were corrected on {correction.on} ({correction.said}), and these "
                f"solvers are scored by different ones ({words}): neither the task nor a mean over all tasks can be "
                "compared; --other-labels leave-out compares the other tasks, --other-labels compare all as they are"
            )
        if how == "leave-out":
            solvers = [_without(one, correction.task) for one in solvers]
        else:
            label = f"labels of {correction.task} differ"
            solvers = [replace(one, labels=(*one.labels, label)) for one in solvers]
    return tuple(solvers)


def _without(scored: Scored, task: str) -> Scored:
    benchmark: Benchmark = load("hybrid.benchmarks", scored.benchmark)
    questions = {name: one for name, one in scored.questions.items() if one.task != task}

    def kept(counted: Mapping[UnansweredRule, Counted]) -> dict[UnansweredRule, Counted]:
        left = {rule: tuple(one for one in by.scores if one.task != task) for rule, by in counted.items()}
        return {rule: Counted(scores, metrics_of(benchmark, questions, scores)) for rule, scores in left.items()}

    label = f"without {task}, whose labels differ"
    return replace(
        scored,
        questions=questions,
        counted=kept(scored.counted),
        judged=kept(scored.judged),
        labels=(*scored.labels, label),
    )


def printed_otherwise(comparison: Comparison) -> tuple[CardCorrection, ...]:
    """The corrections behind which printed numbers stand, which are of the older labels, and a solver does not."""
    if comparison.options.other_labels == "compare":
        return ()
    found = []
    for correction in comparison.benchmark.card.corrections:
        labels = {correction.labels(one.questions.values()) for one in comparison.solvers if not one.data.generated}
        # Of a handful of questions no printed number is compared with anyway.
        if labels - {None, "unknown", correction.older}:
            found.append(correction)
    return tuple(found)


def is_concerned(cell: Published, corrections: Sequence[CardCorrection], tasks: Sequence[str]) -> bool:
    """Whether a printed cell is of a corrected task, or no cell of one task: a mean over all."""
    return bool(corrections) and (cell.metric not in tasks or cell.metric in {one.task for one in corrections})


def partly_there(scored: Scored) -> list[str]:
    """`75 of 150 of Jigsaw`: the tasks of which a run without a limit has fewer questions than the card."""
    taken = scored.manifest.get("taken") if scored.folder else None
    card: BenchmarkCard = load("hybrid.benchmarks", scored.benchmark).card
    if not taken or taken["limit"] is not None or scored.data.generated or scored.data.split != card.splits[0]:
        return []
    there = Counter(task for _, task in {(base_id(name), one.task) for name, one in scored.questions.items()})
    return [f"{there[task]} of {most} of {task}" for task, most in card.tasks.items() if 0 < there[task] < most]
