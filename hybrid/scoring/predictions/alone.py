"""Questions out of predictions that hold their own gold answers, for scoring without the data; BLINK only.

The other benchmarks' scores need more of a question than a sheet holds. A row without BLINK's own id keeps a name that
is nobody else's (`Jigsaw_index_17`): its place in the data is not known, so it is never paired with another run's
question. A library module of `hybrid.scoring.predictions`.
"""

from __future__ import annotations

from hybrid.benchmarks.base import Benchmark
from hybrid.errors import DataError, UsageError
from hybrid.scoring.predictions.base import Joined, Origin, Recognised, Row
from hybrid.scoring.predictions.join import prediction_of, task_of
from hybrid.types import LETTERS, Kind, Question


def without_data(found: Recognised, benchmark: Benchmark) -> Joined:
    """The rows with the questions that they themselves tell.

    Raises:
        UsageError: a benchmark whose scores need its data.
        DataError: a row without a task of BLINK or an answer among its options, or a question that stands there twice.
    """
    if benchmark.card.name != "blink":
        raise UsageError(f"{found.format}: give the questions of {benchmark.card.name} with --data DIR")
    seen: dict[str, str] = {}
    pairs = []
    for row in found.rows:
        question = _question(row, benchmark)
        if question.id in seen:
            raise DataError(f"{row.where}: {question.id} also stands in {seen[question.id]}")
        seen[question.id] = row.where
        pairs.append((question, prediction_of(row, question)))
    if not pairs:
        raise DataError(f"{found.format}: there is no row")
    return Joined(
        tuple(pairs), Origin(found.format, notes=(*found.notes, "not compared with the data: give --data DIR"))
    )


def _question(row: Row, benchmark: Benchmark) -> Question:
    # Only here: a benchmark's file brings image code along that no other benchmark's scores need.
    from hybrid.benchmarks.blink import TASKS

    task = task_of(row.task or "", benchmark.card)
    if task is None:
        raise DataError(f"{row.where}: {row.task or 'the row'!r} names no task of BLINK")
    _, granularity, marks, wording = TASKS[task]
    choices = row.choices or wording
    if row.answer is None or row.answer not in tuple(LETTERS[: len(choices)]):
        raise DataError(f"{row.where}: the answer {row.answer!r} is none of the {len(choices)} options")
    number = f"index_{row.index}" if row.index is not None else f"doc_{(row.place or 0) - 1}"
    return Question(
        id=row.id or f"{task}_{number}",
        task=task,
        images=(),
        text=row.text or "",
        kind=Kind.CHOICE,
        choices=choices,
        target=f"({row.answer})",
        route=task,
        groups={"granularity": granularity, "visual_prompt": marks},
    )
