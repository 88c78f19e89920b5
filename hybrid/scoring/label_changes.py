"""Data that deviate from the card: tasks with other labels, and incomplete tasks.

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
from hybrid.core.errors import UsageError
from hybrid.core.types import Question, base_id
from hybrid.plugins.registry import load
from hybrid.scoring.compare import Comparison
from hybrid.scoring.published import Published
from hybrid.scoring.score import Counted, Scored, metrics_of

OtherLabels = Literal["refuse", "leave-out", "compare"]


def with_same_labels(solvers: Sequence[Scored], mode: OtherLabels) -> tuple[Scored, ...]:
    """Return the solvers, each with a label for every corrected task whose right answers differ between the solvers.

    `leave-out` removes these tasks.

    Raises:
        UsageError: answers of a corrected task differ, and `mode` is `refuse`.
    """
    for correction in load("hybrid.benchmarks", solvers[0].benchmark).card.corrections if solvers else ():
        # Generated questions have no labels.
        labelled = [solver for solver in solvers if not solver.data.generated]
        if not any(
            question.target != other.target
            # Solvers of one run share their questions, so compare each set of questions once.
            for a, b in itertools.combinations({id(solver.questions): solver for solver in labelled}.values(), 2)
            for name, question in a.questions.items()
            if question.task == correction.task and isinstance(question, Question)
            if isinstance(other := b.questions.get(name), Question)
        ):
            continue
        if mode == "refuse":
            labels_by_solver = {
                solver.solver: correction.labels(solver.questions.values()) or "none" for solver in solvers
            }
            words = ", ".join(f"{name}: {labels}" for name, labels in labels_by_solver.items())
            raise UsageError(
                f"{correction.task}: its labels were corrected on {correction.on} ({correction.said}), and these "
                f"solvers are scored by different ones ({words}): neither the task nor a mean over all tasks can be "
                "compared; --other-labels leave-out compares the other tasks; with --other-labels compare, all of them "
                "are compared as they are"
            )
        if mode == "leave-out":
            solvers = [_without(solver, correction.task) for solver in solvers]
        else:
            label = f"labels of {correction.task} differ"
            solvers = [replace(solver, labels=(*solver.labels, label)) for solver in solvers]
    return tuple(solvers)


def _without(scored: Scored, task: str) -> Scored:
    benchmark: Benchmark = load("hybrid.benchmarks", scored.benchmark)
    questions = {name: question for name, question in scored.questions.items() if question.task != task}

    def drop_task(by_rule: Mapping[UnansweredRule, Counted]) -> dict[UnansweredRule, Counted]:
        remaining = {rule: tuple(score for score in by.scores if score.task != task) for rule, by in by_rule.items()}
        return {rule: Counted(scores, metrics_of(benchmark, questions, scores)) for rule, scores in remaining.items()}

    label = f"without {task}, whose labels differ"
    return replace(
        scored,
        questions=questions,
        counted=drop_task(scored.counted),
        judged=drop_task(scored.judged),
        labels=(*scored.labels, label),
    )


def printed_otherwise(comparison: Comparison) -> tuple[CardCorrection, ...]:
    """Return the corrections that are later than the printed numbers, if some solver lacks the older labels."""
    if comparison.options.other_labels == "compare":
        return ()
    corrections = []
    for correction in comparison.benchmark.card.corrections:
        published = (solver.questions for solver in comparison.solvers if not solver.data.generated)
        labels = {correction.labels(questions.values()) for questions in {id(of): of for of in published}.values()}
        # Labels are unknown for a handful of questions, which are not compared with printed numbers anyway.
        if labels - {None, "unknown", correction.older}:
            corrections.append(correction)
    return tuple(corrections)


def is_concerned(cell: Published, corrections: Sequence[CardCorrection], tasks: Sequence[str]) -> bool:
    """Return whether a printed cell belongs to a corrected task or is a mean over tasks."""
    return bool(corrections) and (
        cell.metric not in tasks or cell.metric in {correction.task for correction in corrections}
    )


def partly_there(scored: Scored) -> list[str]:
    """Return `75 of 150 of Jigsaw` for each task that is incomplete in a run without a limit."""
    selection = scored.manifest.get("taken") if scored.folder else None
    card: BenchmarkCard = load("hybrid.benchmarks", scored.benchmark).card
    if not selection or selection["limit"] is not None or scored.data.generated or scored.data.split != card.splits[0]:
        return []
    present = Counter(
        task for _, task in {(base_id(name), question.task) for name, question in scored.questions.items()}
    )
    return [f"{present[task]} of {most} of {task}" for task, most in card.tasks.items() if 0 < present[task] < most]
