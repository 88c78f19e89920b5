"""Self-consistency: the vote next to a single sample, and what was refused.

    hybrid run blink --model openai:gpt-4o --solver mllm --setting samples=5
    hybrid compare RUN

Every sample is scored as if it alone had been the reply, by the benchmark's own dialogue and scorer; its sum over the
questions is what one run at the same temperature would have given. A dialogue that would have gone on otherwise after a
sample (another part of a picture, a question asked again) was never asked that way: such a sample has no verdict and is
counted. Best of K is the share of questions that any sample gets right: what a perfect choice among them would reach.

Only solvers that are asked as a whole are told of. Those that ask the MLLM several times of their own accord (the
registry knows) use the vote as one witness of two, and their reply need not be its winner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from hybrid.benchmarks.base import Benchmark, ScoreOptions, accuracy
from hybrid.registry import load, load_solver, solver_names
from hybrid.scoring.compare import Comparison
from hybrid.scoring.draws import at_once
from hybrid.scoring.roles import is_imported, word
from hybrid.scoring.score import Scored, group_of
from hybrid.scoring.told import Number, Told
from hybrid.solving.self_consistency import CONFIDENCE, SAMPLE, VOTE
from hybrid.stats import Interval, interval
from hybrid.tables import NONE, Column, Table, bounds
from hybrid.tables import accuracy as as_accuracy
from hybrid.tables import number as as_number
from hybrid.tables import signed as as_signed
from hybrid.types import Attempt, Exchange, Json, Metric, Outcome, Prompt, Question, Reply, Score, Step

NAME = "sampling"
TITLE = "What does voting over samples gain?"
ACCURACY = "accuracy"
UNANIMOUS = 0.999
SHARES = ((0.0, 0.5), (0.5, 0.75), (0.75, UNANIMOUS), (UNANIMOUS, 1.0))
"""Bins of the winner's share: above the first, up to and with the second; the last are unanimous."""


@dataclass(frozen=True)
class Sampled:
    """One question whose answer was voted on."""

    vote: Score
    """The solver's own score."""
    samples: tuple[Score | None, ...]
    """The score of each sample as the reply; None where the dialogue would have gone on otherwise."""
    last: int
    """Samples of the last vote, which is about the answer."""
    unreadable: int
    """Those of them without a readable answer."""
    refused: int
    """Model calls of all votes that ended in a refusal."""
    drawn: int
    """Samples of all votes."""
    share: float | None
    """Of the readable samples of the last vote those for its winner, 0..1; None where there is no such share."""
    confidence: float | None
    """Probability, 0..1, that the vote claims for its winner."""

    @property
    def known(self) -> tuple[Score, ...]:
        """The samples with a verdict."""
        return tuple(score for score in self.samples if score is not None and score.correct is not None)

    @property
    def single(self) -> float | None:
        """Mean verdict of a single sample."""
        return fmean(score.correct or 0.0 for score in self.known) if self.known else None

    @property
    def best(self) -> float | None:
        """The best verdict of any sample."""
        return max((score.correct or 0.0 for score in self.known), default=None)


@dataclass(frozen=True)
class Voted:
    """Several questions: one task (or group), one bin of shares, or all."""

    name: str
    metric: str
    n: int
    vote: float
    single: float | None
    best: float | None


@dataclass(frozen=True)
class Calibrated:
    """The questions whose winner had such a share of the votes."""

    low: float
    high: float
    n: int
    share: float
    confidence: float | None
    accuracy: float
    interval: Interval | None


def sampled(scored: Scored) -> tuple[Sampled, ...]:
    """The questions of a solver that were voted on; none where its run did not sample, or it samples of its own accord.

    Raises:
        DataError: attempts that cannot be read.
    """
    folder = scored.folder
    if folder is None or is_imported(scored) or word(scored) not in solver_names():
        return ()
    if load_solver(word(scored)).samples_itself:
        return ()
    identity = folder.manifest["identity"]
    if identity.get("samples", 1) == 1:
        return ()
    benchmark: Benchmark = load("hybrid.benchmarks", scored.benchmark)
    options = ScoreOptions(identity.get("protocol", "strict"), scored.abstain)
    attempts = folder.recorded(scored.recorded).by_id
    found = (
        _sampled(benchmark, options, question, attempts[score.id], score)
        for score in scored.scores
        if not score.outcome.failed
        and score.id in attempts
        and isinstance(question := scored.questions[score.id], Question)
    )
    return tuple(each for each in found if each is not None)


def _sampled(
    benchmark: Benchmark, options: ScoreOptions, question: Question, attempt: Attempt, score: Score
) -> Sampled | None:
    votes = [vote for exchange in attempt.exchanges if (vote := _vote(exchange)) is not None]
    if not votes:
        return None
    each = [_samples(exchange) for exchange in attempt.exchanges]
    count = max(map(len, each))
    last = next(samples for samples in reversed(each) if samples)
    told: Mapping[str, Any] = votes[-1].data
    tally: Mapping[str, int] = told.get("votes") or {}
    confidence = told.get(CONFIDENCE)
    return Sampled(
        vote=score,
        samples=tuple(
            None
            if (exchanges := _alone(benchmark, question, attempt.exchanges, each, number)) is None
            else benchmark.score(question, exchanges, options)
            for number in range(count)
        ),
        last=len(last),
        unreadable=sum(step.data.get("answer") is None for step in last),
        refused=sum(_whole(vote.data.get("refused")) for vote in votes),
        drawn=sum(map(len, each)),
        share=max(tally.values()) / sum(tally.values()) if tally else None,
        confidence=float(confidence) if isinstance(confidence, int | float) else None,
    )


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _vote(exchange: Exchange) -> Step | None:
    return next((s for s in reversed(exchange.reply.steps) if s.kind == "rule" and s.name == VOTE), None)


def _samples(exchange: Exchange) -> list[Step]:
    return [step for step in exchange.reply.steps if step.kind == "rule" and step.name == SAMPLE]


class _Elsewhere(Exception):
    """A prompt that was not put."""


def _alone(
    benchmark: Benchmark, question: Question, exchanges: Sequence[Exchange], each: Sequence[Sequence[Step]], number: int
) -> tuple[Exchange, ...] | None:
    """The dialogue with one sample of every vote as the reply; None where it would have asked something else."""
    place = -1

    async def ask(prompt: Prompt) -> Reply:
        nonlocal place
        place += 1
        if place >= len(exchanges) or _seen(exchanges[place].prompt) != _seen(prompt):
            raise _Elsewhere
        samples = each[place]
        if not samples:
            return exchanges[place].reply
        if number >= len(samples):
            raise _Elsewhere
        return Reply(samples[number].text, Outcome(str(samples[number].data["outcome"])))

    try:
        return at_once(benchmark.dialogue(question.asked(), ask))
    except _Elsewhere:
        return None


def _seen(prompt: Prompt) -> tuple[object, ...]:
    """What tells the prompts of one dialogue apart, in whatever words they were put."""
    return (prompt.kind, prompt.choices, tuple(ref.image.sha256 for ref in prompt.images))


def voted(found: Comparison, rows: Sequence[Sampled]) -> tuple[Voted, ...]:
    """The vote, a single sample and the best of all: by the headline metric, then by task (or group)."""
    benchmark: Benchmark = load("hybrid.benchmarks", found.solvers[0].benchmark)
    return tuple(filter(None, (_headline(benchmark, rows), *_by_task(found, rows))))


def _headline(benchmark: Benchmark, rows: Sequence[Sampled]) -> Voted | None:
    """The headline metric; that of a single sample is the mean over the first, the second, ... sample of everything."""
    votes = _headlines(benchmark, [row.vote for row in rows])
    name = next((name for name in benchmark.card.headline if name in votes), None)
    if name is None:
        return None
    count = max(len(row.samples) for row in rows)
    singles = [_headlines(benchmark, [_nth(row, number) for row in rows]).get(name) for number in range(count)]
    known = [metric.value for metric in singles if metric is not None and metric.value is not None]
    best = _headlines(benchmark, [max(row.known, key=_worth, default=_missing(row)) for row in rows]).get(name)
    vote = votes[name]
    assert vote.value is not None  # noqa: S101 - `_headlines` keeps those with a value
    return Voted("", name, vote.n, vote.value, fmean(known) if known else None, best.value if best else None)


def _headlines(benchmark: Benchmark, scores: Sequence[Score]) -> dict[str, Metric]:
    return {metric.name: metric for metric in benchmark.summarise(scores) if metric.cells and metric.value is not None}


def _nth(row: Sampled, number: int) -> Score:
    score = row.samples[number] if number < len(row.samples) else None
    return _missing(row) if score is None else score


def _missing(row: Sampled) -> Score:
    return replace(row.vote, outcome=Outcome.OUTAGE)


def _worth(score: Score) -> float:
    return score.correct or 0.0


def _by_task(found: Comparison, rows: Sequence[Sampled]) -> Iterator[Voted]:
    groups: dict[str, list[Sampled]] = {}
    for row in rows:
        if row.vote.correct is not None:
            groups.setdefault(group_of(row.vote, found.choice.by), []).append(row)
    for name, members in sorted(groups.items()):
        single = [row.single for row in members if row.single is not None]
        best = [row.best for row in members if row.best is not None]
        yield Voted(
            name,
            ACCURACY,
            len(members),
            fmean(row.vote.correct or 0.0 for row in members),
            fmean(single) if single else None,
            fmean(best) if best else None,
        )


def calibrated(rows: Sequence[Sampled]) -> tuple[Calibrated, ...]:
    """Accuracy of the vote by the winner's share of the readable samples; bins without a question are left out."""
    found = []
    for low, high in SHARES:
        inside = [
            row for row in rows if row.share is not None and row.vote.correct is not None and low < row.share <= high
        ]
        if inside:
            metric = accuracy(ACCURACY, [row.vote for row in inside])
            claimed = [row.confidence for row in inside if row.confidence is not None]
            found.append(
                Calibrated(
                    low,
                    high,
                    len(inside),
                    fmean(row.share or 0.0 for row in inside),
                    fmean(claimed) if claimed else None,
                    metric.value or 0.0,
                    interval(metric),
                )
            )
    return tuple(found)


def section(found: Comparison) -> Told | None:
    """Two tables for each solver that sampled: the vote by task, and how its share tells right from wrong."""
    each = [(one, rows) for one in found.solvers if (rows := sampled(one))]
    if not each:
        return None
    by = found.choice.by or "task"
    tables: list[Table] = []
    for one, rows in each:
        tables.append(_vote_table(by, one, rows, voted(found, rows)))
        if bins := calibrated(rows):
            tables.append(_share_table(one, bins))
    return Told(
        NAME,
        TITLE,
        tuple(tables),
        tuple(_as_json(found, one, rows) for one, rows in each),
        tuple(number for one, rows in each for number in _numbers(found, one, rows)),
    )


@dataclass(frozen=True)
class Totals:
    """Over all questions of a solver that were voted on."""

    drawn: int
    refused: int
    unreadable: float
    """Share of the samples of the last votes, 0..1."""
    share: float | None
    """Mean share of the winner, 0..1."""
    without: int
    """Samples without a verdict because the dialogue would have gone on otherwise."""


def totals(rows: Sequence[Sampled]) -> Totals:
    """Counts and shares over questions."""
    last = sum(row.last for row in rows)
    shares = [row.share for row in rows if row.share is not None]
    return Totals(
        drawn=sum(row.drawn for row in rows),
        refused=sum(row.refused for row in rows),
        unreadable=sum(row.unreadable for row in rows) / last if last else 0.0,
        share=fmean(shares) if shares else None,
        without=sum(score is None for row in rows for score in row.samples),
    )


def _vote_table(by: str, one: Scored, rows: Sequence[Sampled], lines: Sequence[Voted]) -> Table:
    known = totals(rows)
    most = max(len(row.samples) for row in rows)
    heads = ("n", "vote", "single sample", "vote - single", f"best of {most}")
    cells = tuple(
        (
            line.name or f"all, {line.metric}",
            as_number(line.n),
            as_accuracy(line.vote),
            as_accuracy(line.single),
            NONE if line.single is None else as_signed(line.vote - line.single),
            as_accuracy(line.best),
        )
        for line in lines
    )
    notes = [
        "single sample: the mean over samples, each scored as if it were the reply.",
        f"best of {most}: any sample is right, which no vote can pass.",
        f"Of {known.drawn} samples {known.refused} ended in a refusal; {known.unreadable:.1%} could not be read."
        + ("" if known.share is None else f" The winner had {known.share:.1%} of the readable samples on average."),
    ]
    if known.without:
        notes.append(
            f"{known.without} samples have no verdict: the dialogue would have gone on otherwise after them, or the "
            "budget ended before them."
        )
    return Table(
        f"{one.solver}: the vote over {most} samples", (Column(by, "left"), *map(Column, heads)), cells, tuple(notes)
    )


def _share_table(one: Scored, bins: Sequence[Calibrated]) -> Table:
    columns = (
        Column("share of the winner", "left"),
        *map(Column, ("n", "mean share", "claimed", "vote right", "95 %")),
    )
    lines = tuple(
        (
            _bin(each),
            as_number(each.n),
            as_accuracy(each.share),
            as_accuracy(each.confidence),
            as_accuracy(each.accuracy),
            bounds(each.interval),
        )
        for each in bins
    )
    note = (
        "claimed: the confidence of the vote, the winner's share with one vote added that is cast as a guess would be."
    )
    return Table(f"{one.solver}: is the vote right more often when more samples agree?", columns, lines, (note,))


def _bin(each: Calibrated) -> str:
    if each.low >= UNANIMOUS:
        return "all agree"
    return f"above {each.low:.0%}" + (", not all" if each.high == UNANIMOUS else f" to {each.high:.0%}")


def _as_json(found: Comparison, one: Scored, rows: Sequence[Sampled]) -> dict[str, Json]:
    known = totals(rows)
    return {
        "solver": one.solver,
        "questions": len(rows),
        "samples": known.drawn,
        "refused": known.refused,
        "unreadable_share": known.unreadable,
        "winner_share": known.share,
        "without_verdict": known.without,
        "quantities": [
            {
                "metric": line.metric,
                "group": line.name,
                "n": line.n,
                "vote": line.vote,
                "single_sample": line.single,
                "best": line.best,
            }
            for line in voted(found, rows)
        ],
        "by_share": [
            {
                "above": each.low,
                "to": each.high,
                "n": each.n,
                "share": each.share,
                "claimed": each.confidence,
                "accuracy": each.accuracy,
                "interval": None if each.interval is None else [each.interval.low, each.interval.high],
            }
            for each in calibrated(rows)
        ],
        "ids": {row.vote.id: {"vote": row.vote.correct, "single": row.single, "best": row.best} for row in rows},
    }


def _numbers(found: Comparison, one: Scored, rows: Sequence[Sampled]) -> list[Number]:
    known, numbers = totals(rows), []
    for line in voted(found, rows):
        named = (("vote", line.vote), ("single sample", line.single), ("best of samples", line.best))
        numbers += [
            Number(NAME, quantity, "fraction", value, a=one.solver, metric=line.metric, group=line.name, n=line.n)
            for quantity, value in named
        ]
    for quantity, value in (
        ("share of refusals", known.refused / known.drawn if known.drawn else None),
        ("share of unreadable samples", known.unreadable),
        ("mean share of the winner", known.share),
    ):
        numbers.append(Number(NAME, quantity, "fraction", value, a=one.solver, n=known.drawn))
    for each in calibrated(rows):
        ends = each.interval
        numbers.append(
            Number(
                NAME,
                "accuracy by share of the winner",
                "fraction",
                each.accuracy,
                a=one.solver,
                metric=ACCURACY,
                group=_bin(each),
                n=each.n,
                low=None if ends is None else ends.low,
                high=None if ends is None else ends.high,
            )
        )
    return numbers
