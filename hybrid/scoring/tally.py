"""One solver's scores: computed from its replies, or read from `RUN/SOLVER/scores.jsonl` while still valid.

    tally(folder, benchmark, "mllm", folder.questions(), ScoreOptions())

Saved scores are valid while all their inputs are the same: replies, questions, the scorer's code and texts, protocol
and rule (`scores.json` next to them). If anything differs, is missing or damaged, the replies are scored again and both
files are rewritten. Saved scores never include a judge's readings.

Read-only folders can be scored too. If recorded answers were lost, every question without an answer counts as failed,
because it is unknown which were lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from hybrid.benchmarks.base import Benchmark, ScoreOptions, UnansweredRule
from hybrid.config import Parse
from hybrid.core.error_text import in_one_line
from hybrid.core.errors import DataError, UsageError
from hybrid.core.secrets import redact
from hybrid.core.types import Attempt, BrokenQuestion, Outcome, Question, Score, Usage
from hybrid.display.terminal import how_many
from hybrid.log.attempts import Recorded
from hybrid.log.codec import codec, to_json
from hybrid.log.folder import ATTEMPTS, QUESTIONS, SCORES, SCORES_BASIS, RunFolder, attempts_of, read_lines
from hybrid.log.manifest import SEAL, seal_of, write_sealed
from hybrid.log.questions import RecordedQuestions
from hybrid.plugins.prompt_texts import text_hash
from hybrid.serving.sources import ours

# Maps each rule for unanswered questions to the other rule.
OTHER: Mapping[UnansweredRule, UnansweredRule] = {"guess": "wrong", "wrong": "guess"}


@dataclass(frozen=True)
class Replies:
    """One solver's attempts at the questions that it was asked, by question id."""

    questions: Iterable[Question | BrokenQuestion]
    attempts: Mapping[str, Attempt]
    # Ids of questions that count as failed if they have no attempt: the questions that were asked but not finished, or
    # all if answers were lost.
    failed: Collection[str] = frozenset()
    # Whether the replies are answers that another program extracted, which are compared without parsing.
    stored: bool = False


@dataclass(frozen=True)
class Tally:
    """One solver's scores before they are summarised, in the order of the questions."""

    scores: tuple[Score, ...]
    # The unanswered questions again, scored by the other rule.
    by_other_rule: tuple[Score, ...]
    # Number of questions that the solver has not been asked yet.
    open: int
    usage: Usage
    # Seconds during which at least one question was being asked; None if not recorded.
    wall_s: float | None
    # One line per problem with the file of attempts.
    damage: tuple[str, ...] = ()
    # Reason why an answered question has no score, by id.
    reasons: Mapping[str, str] = field(default_factory=dict)
    # Reason why the scores were not saved; None if they were.
    not_kept: str | None = None


@dataclass(frozen=True)
class _Basis:
    """The inputs of scores; `inputs` are the sha256 of the run's files, by name."""

    inputs: Mapping[str, str]
    scorer: str
    protocol: Parse
    unanswered: UnansweredRule


@dataclass(frozen=True)
class _ScoresBasis:
    """Content of `scores.json`: the inputs of `scores.jsonl`, the sha256 of that file, and the rest of the tally."""

    basis: _Basis
    scores_sha256: str
    open: int
    wall_s: float | None = None
    usage: Usage = field(default_factory=Usage)
    by_other_rule: tuple[Score, ...] = ()
    damage: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


def tally(
    folder: RunFolder,
    benchmark: Benchmark,
    solver: str,
    questions: RecordedQuestions,
    options: ScoreOptions,
    *,
    keep: bool = True,
) -> Tally:
    """Score every question of the run that was put to this solver, or that could not be asked.

    The scores are saved next to the answers unless `keep` is False, for a run that is still in progress.

    Raises:
        UsageError: the official parse cannot read replies to hybrid's format line.
        DataError: there are answers to questions that the run does not have.
    """
    refuse_our_line(folder, benchmark, questions, options)
    # Hash the files before reading replies, so that anything written meanwhile invalidates these scores.
    identity, extent = folder.manifest["identity"], folder.extent(attempts_of(solver))
    inputs = {
        "identity": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        QUESTIONS: questions.extent.sha256 if questions.extent else "",
        ATTEMPTS: _sha256(folder.path / solver / ATTEMPTS),
        f"{ATTEMPTS} as the manifest has it": extent.sha256 if extent else "",
    }
    basis = _Basis(inputs, scorer_of(benchmark), options.parse, options.unanswered)
    if (cached := _tally_on_disk(folder, solver, basis, questions)) is not None:
        return cached
    stored = identity.get("imported", {}).get("field") == "stored"
    recorded = recorded_of(folder, solver, questions)
    failed = questions.by_id if recorded.damage else recorded.unfinished
    replies = Replies(questions, recorded.without_steps, failed, stored)
    result = replace(tally_replies(benchmark, replies, options), damage=recorded.damage)
    if not keep:
        return result
    try:
        path = folder.write_scores(solver, result.scores)
        rest = (result.open, result.wall_s, result.usage, result.by_other_rule, result.damage, result.reasons)
        new_basis = _ScoresBasis(basis, _sha256(path), *rest)
        write_sealed(path.with_name(SCORES_BASIS), to_json(_ScoresBasis, new_basis))
    except OSError as error:
        reason = f"the scores of {folder.path} cannot be saved there ({error.strerror or error})"
        return replace(result, not_kept=reason)
    return result


def recorded_of(folder: RunFolder, solver: str, questions: RecordedQuestions) -> Recorded:
    """Return a solver's attempts at these questions. Raises `DataError` if it answers other questions."""
    recorded = folder.recorded(solver)
    unknown = [identity for identity in recorded.by_id if identity not in questions.by_id]
    if unknown:
        count = how_many(len(unknown), verb=("that is", "that are"))
        raise DataError(
            f"{folder.path / attempts_of(solver)} answers {count} not in {folder.path / QUESTIONS} (the first is "
            f"{unknown[0]!r}): the answers belong to another run, or questions were lost"
        )
    return recorded


def tally_replies(benchmark: Benchmark, replies: Replies, options: ScoreOptions) -> Tally:
    """Score every question; questions without a readable answer are scored under both rules."""
    scores: list[Score] = []
    by_other_rule: list[Score] = []
    reasons: dict[str, str] = {}
    spans: list[Span] = []
    usage = Usage()
    waiting = 0
    known_groups: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
    for original in replies.questions:
        # Questions with equal groups share one mapping, which their scores keep.
        question = replace(original, groups=known_groups.setdefault(tuple(original.groups.items()), original.groups))
        attempt = replies.attempts.get(question.id)
        if attempt is not None:
            spans.append((attempt.started, attempt.seconds))
        if isinstance(question, BrokenQuestion):
            scores.append(_unasked(question, Outcome.BROKEN))
        elif attempt is not None:
            usage = sum((exchange.reply.usage for exchange in attempt.exchanges), usage)
            try:
                score, *others = _scored(benchmark, replies, question, attempt, options)
            except UsageError:
                # The error is about the command and would occur for every question.
                raise
            # A scorer that fails on one answer must affect only this question, so that all other paid answers are kept.
            except Exception as error:
                score, others = _unasked(question, Outcome.BROKEN), []
                reasons[question.id] = f"cannot be scored: {redact(in_one_line(error))}"
            scores.append(score)
            by_other_rule += others
        elif question.id in replies.failed:
            scores.append(_unasked(question, Outcome.OUTAGE))
        else:
            waiting += 1
    wall_s = wall_seconds(spans)
    return Tally(tuple(scores), tuple(by_other_rule), waiting, usage, wall_s, reasons=reasons)


def _scored(
    benchmark: Benchmark, replies: Replies, question: Question, attempt: Attempt, options: ScoreOptions
) -> list[Score]:
    """Return the score of a reply and, if the reply has no readable answer, also the score by the other rule."""

    def score(options: ScoreOptions) -> Score:
        if replies.stored:
            return benchmark.score_stored(question, attempt.exchanges[-1].reply.text, options)
        return benchmark.score(question, attempt.exchanges, options)

    first = score(options)
    if first.answer is not None or first.outcome.failed:
        return [first]
    return [first, score(replace(options, unanswered=OTHER[options.unanswered]))]


def _unasked(question: Question | BrokenQuestion, outcome: Outcome) -> Score:
    """Return the score of a question without an attempt."""
    return Score(question.id, question.task, 0.0, outcome, groups=question.groups, cluster=question.cluster)


# Start of an attempt in seconds since 1970 (None if unknown), and its duration in seconds.
Span = tuple[float | None, float]


def wall_seconds(attempts: Sequence[Span]) -> float | None:
    """Return the seconds during which at least one attempt was running; None if a start is unknown.

    Parallel questions count once, and a pause between two commands that continue one run does not count.
    """
    spans = sorted((start, start + max(0.0, lasted)) for start, lasted in attempts if start is not None)
    if len(spans) < len(attempts):
        return None
    total, until = 0.0, 0.0
    for start, end in spans:
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def refuse_our_line(
    folder: RunFolder, benchmark: Benchmark, questions: RecordedQuestions, options: ScoreOptions
) -> None:
    """Raise `UsageError` if the official parse cannot read the replies that the run's format line asked for.

    Predictions that another program saved have no such format line.
    """
    prompts = folder.manifest["identity"].get("prompts")
    if options.parse != "official" or prompts is None or not prompts.get("format_line", True):
        return
    unread = sorted({question.kind for question in questions.sound} - benchmark.card.official_reads)
    if unread:
        raise UsageError(
            f"{folder.path} was asked with hybrid's format line, and the official parse of {benchmark.card.name} does "
            f'not read replies that follow it ("Answer: ..."; {", ".join(unread)}): every one would count as unparsed. '
            f"Run with --protocol official, which sends the papers' wording, or score with --protocol strict"
        )


def scorer_of(benchmark: Benchmark) -> str:
    """Return the hex sha256 of the code (with imports), card and texts by which a benchmark's replies are scored."""
    facts = f"{_code(benchmark.card.name)} {text_hash(benchmark.texts)} {benchmark.card.metrics!r}"
    return hashlib.sha256(facts.encode()).hexdigest()


@cache
def _code(benchmark: str) -> str:
    return ours().sha256((__name__, "hybrid.answers", f"hybrid.benchmarks.{benchmark}"))


def _sha256(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tally_on_disk(folder: RunFolder, solver: str, basis: _Basis, questions: RecordedQuestions) -> Tally | None:
    """Return the saved tally; None if it is damaged or has other inputs."""
    path = folder.path / solver / SCORES
    try:
        data = path.with_name(SCORES_BASIS).read_bytes()
        stored: _ScoresBasis = codec(_ScoresBasis).validate_json(data)
        content = json.loads(data)
        if content.get(SEAL) != seal_of(content) or stored.basis != basis or stored.scores_sha256 != _sha256(path):
            return None
        scores = {score.id: score for score in read_lines(path, Score)}
    except (OSError, ValueError, DataError):
        return None
    ordered = tuple(scores[identity] for identity in questions.by_id if identity in scores)
    return Tally(
        ordered,
        stored.by_other_rule,
        open=stored.open,
        usage=stored.usage,
        wall_s=stored.wall_s,
        damage=stored.damage,
        reasons=stored.reasons,
    )
