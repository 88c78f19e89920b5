"""One reply a question, for the formats that hold no more, and whether that is enough to score it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.errors import UsageError
from hybrid.exporting.base import ExportedRun, gold
from hybrid.scoring.predictions.base import first
from hybrid.scoring.tally import Replies, tally_replies
from hybrid.types import Attempt, Exchange, Prompt, Question, Reply, Score


@dataclass(frozen=True)
class SingleReply:
    """The last reply to a question, the prompt it answers, the right answer, and the score of the run."""

    question: Question
    prompt: Prompt
    text: str
    gold: str
    score: Score
    place: int
    """Among the questions of its task in the run, from 0."""


@dataclass(frozen=True)
class SingleReplies:
    """The replies in the order of the questions; `notes` are whole sentences about what is left out."""

    rows: tuple[SingleReply, ...]
    notes: tuple[str, ...]


def single_replies(run: ExportedRun, solver: str, form: str) -> SingleReplies:
    """The finished questions of a solver with one reply each; failed ones are left out.

    Raises:
        UsageError: the run rotated its options, a reply read alone would get another score than in the run, or nothing
            is finished. `form` is what the format is called.
    """
    if run.identity.get("rotate"):
        raise UsageError(
            f"{form} cannot hold a run with --rotate: rotated questions are no rows of the benchmark's data"
        )
    (scored,) = (one for one in run.scored if one.recorded == solver)
    scores = {score.id: score for score in scored.scores if not score.outcome.failed}
    attempts = run.folder.recorded(solver).without_steps
    rows = tuple(_rows(run, scores, {name: attempts[name] for name in scores}))
    if not rows:
        raise UsageError(f"{run.folder.path}/{solver} has no finished question that could be exported")
    _refuse_changed(run, rows, form)
    lost = [score.id for score in scored.scores if score.outcome.failed]
    notes = (f"left out: {len(lost)} questions without an answer: {first(lost)}",) if lost else ()
    return SingleReplies(rows, notes)


def _rows(run: ExportedRun, scores: dict[str, Score], attempts: dict[str, Attempt]) -> Iterator[SingleReply]:
    places: dict[str, int] = {}
    for question in run.folder.questions().sound:
        place = places.setdefault(question.task, 0)
        places[question.task] += 1
        if question.id in scores:
            last = attempts[question.id].exchanges[-1]
            right = gold(run.benchmark, question, last.prompt)
            yield SingleReply(question, last.prompt, last.reply.text, right, scores[question.id], place)


def _refuse_changed(run: ExportedRun, rows: tuple[SingleReply, ...], form: str) -> None:
    """Raise `UsageError` where a score needs more than the last reply, which is all that the format keeps."""
    alone = {
        row.question.id: Attempt(row.question.id, (Exchange(_alone(row.question), Reply(row.text)),), 0.0)
        for row in rows
    }
    again = tally_replies(run.benchmark, Replies(tuple(row.question for row in rows), alone), run.options)
    read = {score.id: score for score in again.scores}
    changed = [
        row.question.id
        for row in rows
        if (row.score.correct, row.score.values) != (read[row.question.id].correct, read[row.question.id].values)
    ]
    if changed:
        raise UsageError(
            f"{form} cannot hold this run of {run.benchmark.card.name}: it keeps one reply a question, and the score "
            f"of {len(changed)} of {len(rows)} needs more than the last one ({first(changed)}); parquet and inspect "
            "keep every ask"
        )


def _alone(question: Question) -> Prompt:
    """The prompt as the format holds it."""
    return Prompt((question.text,) if question.text else (), question.kind, question.choices, route=question.route)
