"""Questions that were voted on: the score of the vote, and of every sample as if it alone were the reply.

    voted_questions(scored)[0].samples

Each sample is scored by the benchmark's own dialogue and scorer; the total over questions is what one run at the same
temperature would have given. If the dialogue would have continued differently after a sample (another part of a
picture, a repeated question), that next prompt was never sent; such a sample has no verdict, and the section counts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.core.types import Attempt, Exchange, Outcome, Prompt, Question, Reply, Score, Step
from hybrid.plugins.registry import load, load_solver, solver_names
from hybrid.scoring.chance_baseline import at_once
from hybrid.scoring.groups import is_imported, word
from hybrid.scoring.score import Scored
from hybrid.solving.self_consistency import CONFIDENCE, SAMPLE, VOTE


@dataclass(frozen=True)
class VotedQuestion:
    """One question whose answer was voted on."""

    # The solver's own score.
    vote: Score
    # The score of each sample as the reply; None if the dialogue would have continued differently.
    samples: tuple[Score | None, ...]
    # Number of samples in the last vote, which decides the answer.
    last: int
    # Number of samples without a readable answer in the last vote.
    unreadable: int
    # Number of model calls of all votes that ended in a refusal.
    refused: int
    # Number of samples in all votes.
    sample_count: int
    # The winner's share of the readable samples in the last vote, 0..1; None without readable samples.
    share: float | None
    # Probability, 0..1, that the vote claims for its winner.
    confidence: float | None

    @property
    def decided(self) -> tuple[Score, ...]:
        """The samples that have a verdict."""
        return tuple(score for score in self.samples if score is not None and score.correct is not None)

    @property
    def single(self) -> float | None:
        """Mean verdict of the samples."""
        return fmean(score.correct or 0.0 for score in self.decided) if self.decided else None

    @property
    def best(self) -> float | None:
        """Best verdict of any sample."""
        return max((score.correct or 0.0 for score in self.decided), default=None)


def voted_questions(scored: Scored) -> tuple[VotedQuestion, ...]:
    """Return the questions of a solver that were decided by a vote.

    There are none if the run took a single sample, if the solver itself samples, or for imported predictions.

    Raises:
        DataError: unreadable attempts.
    """
    folder = scored.folder
    if folder is None or is_imported(scored) or word(scored) not in solver_names():
        return ()
    identity = scored.identity
    if load_solver(word(scored)).samples_itself or identity.get("samples", 1) == 1:
        return ()
    benchmark: Benchmark = load("hybrid.benchmarks", scored.benchmark)
    options = ScoreOptions(identity.get("protocol", "strict"), scored.unanswered)
    attempts = folder.recorded(scored.recorded).by_id
    votes = (
        _voted(benchmark, options, question, attempts[score.id], score)
        for score in (score for score in scored.scores if not score.outcome.failed and score.id in attempts)
        if isinstance(question := scored.questions[score.id], Question)
    )
    return tuple(vote for vote in votes if vote is not None)


def _voted(
    benchmark: Benchmark, options: ScoreOptions, question: Question, attempt: Attempt, score: Score
) -> VotedQuestion | None:
    def of(name: str) -> list[list[Step]]:
        rules = ([step for step in exchange.reply.steps if step.kind == "rule"] for exchange in attempt.exchanges)
        return [[step for step in ask_steps if step.name == name] for ask_steps in rules]

    votes, sample_lists = [vote_steps[-1] for vote_steps in of(VOTE) if vote_steps], of(SAMPLE)
    if not votes:
        return None
    last = next(samples for samples in reversed(sample_lists) if samples)
    alone = [
        _alone(benchmark, question, attempt.exchanges, sample_lists, number)
        for number in range(max(map(len, sample_lists)))
    ]
    record: Mapping[str, Any] = votes[-1].data
    tally: Mapping[str, int] = record.get("votes") or {}
    confidence = record.get(CONFIDENCE)
    return VotedQuestion(
        vote=score,
        samples=tuple(None if asks is None else benchmark.score(question, asks, options) for asks in alone),
        last=len(last),
        unreadable=sum(step.data.get("answer") is None for step in last),
        refused=sum(count for vote in votes if isinstance(count := vote.data.get("refused"), int)),
        sample_count=sum(map(len, sample_lists)),
        share=max(tally.values()) / sum(tally.values()) if tally else None,
        confidence=float(confidence) if isinstance(confidence, int | float) else None,
    )


class _Elsewhere(Exception):
    """Raised for a prompt that was never sent."""


def _alone(
    benchmark: Benchmark,
    question: Question,
    exchanges: Sequence[Exchange],
    sample_lists: Sequence[Sequence[Step]],
    number: int,
) -> tuple[Exchange, ...] | None:
    """Return the dialogue with sample `number` of every vote as the reply; None if it would continue differently."""
    place = -1

    async def ask(prompt: Prompt) -> Reply:
        nonlocal place
        place += 1
        if place >= len(exchanges) or _seen(exchanges[place].prompt) != _seen(prompt):
            raise _Elsewhere
        samples = sample_lists[place]
        if not samples:
            return exchanges[place].reply
        if number >= len(samples):
            raise _Elsewhere
        return Reply(samples[number].text, Outcome(str(samples[number].data["outcome"])))

    try:
        return at_once(benchmark.dialogue(question.without_target(), ask))
    except _Elsewhere:
        return None


def _seen(prompt: Prompt) -> tuple[object, ...]:
    """Return a key of a prompt within its dialogue that does not depend on its wording."""
    return (prompt.kind, prompt.choices, tuple(ref.image.sha256 for ref in prompt.images))
