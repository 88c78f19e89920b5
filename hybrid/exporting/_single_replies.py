"""One reply per question, for formats that store only one reply, with a check that this reply suffices for scoring."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hybrid.core.errors import UsageError
from hybrid.core.types import Attempt, Exchange, Prompt, Question, Reply, Score
from hybrid.exporting.base import ExportedRun, gold, lost
from hybrid.scoring.predictions.base import first
from hybrid.scoring.tally import Replies, tally_replies


@dataclass(frozen=True)
class SingleReply:
    """The last reply to a question, the prompt that it answers, the right answer, and the score in the run."""

    question: Question
    prompt: Prompt
    text: str
    gold: str
    score: Score
    place: int  # Index among the questions of its task in the run, from 0


def single_replies(run: ExportedRun, solver: str, form: str) -> tuple[list[SingleReply], tuple[str, ...]]:
    """Return the finished questions of a solver with one reply each, in order, and notes on omitted failed questions.

    `form` is the name of the format, for errors.

    Raises:
        UsageError: the run rotated its options, a reply alone would get another score than in the run, or nothing is
            finished.
    """
    if run.identity.get("rotate"):
        raise UsageError(
            f"{form} cannot represent a run with --rotate, because rotated questions are not rows of the benchmark's "
            "data"
        )
    (scored,) = (scored_solver for scored_solver in run.scored if scored_solver.recorded == solver)
    places: Counter[str] = Counter()
    rows: list[SingleReply] = []
    alone: dict[str, Attempt] = {}
    answered = {question.id: (attempt, score) for question, attempt, score in run.answers(scored, steps=False)}
    for question in scored.questions.values():
        if not isinstance(question, Question):
            continue
        attempt, score = answered.get(question.id, (None, None))
        if attempt is not None and score is not None and not score.outcome.failed:
            prompt, reply = attempt.exchanges[-1].prompt, attempt.exchanges[-1].reply.text
            right = gold(run.benchmark, question, prompt)
            rows.append(SingleReply(question, prompt, text=reply, gold=right, score=score, place=places[question.task]))
            plain_prompt = Prompt(
                (question.text,) if question.text else (), question.kind, question.choices, route=question.route
            )
            alone[question.id] = Attempt(question.id, (Exchange(plain_prompt, Reply(reply)),), 0.0)
        places[question.task] += 1
    if not rows:
        raise UsageError(f"{run.folder.path}/{solver} has no finished question that could be exported")
    # The format keeps only the last reply, so a score that needs more than this reply would differ there.
    new_tally = tally_replies(run.benchmark, Replies([row.question for row in rows], alone), run.options)
    read = {score.id: (score.correct, score.values) for score in new_tally.scores}
    changed = [row.score.id for row in rows if (row.score.correct, row.score.values) != read[row.score.id]]
    if changed:
        raise UsageError(
            f"{form} cannot represent this run of {run.benchmark.card.name}: it keeps one reply per question, and "
            f"the score of {len(changed)} of {len(rows)} needs more than the last one ({first(changed)}); parquet "
            "and inspect keep every prompt"
        )
    return rows, lost(scored)
