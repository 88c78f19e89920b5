"""What a guess, and always the most frequent answer, are worth on these questions: exact where it can be computed.

    found = floor(comparison)
    found.tasks[0].guess          # Expected(0.25): the uniform guess of the solver `chance`, by `draws.py`
    found.tasks[0].frequent       # Frequent("B", 0.31): always B, which the answer key says is right most often

The constant answer is chosen by the key of the very questions that it is scored on, task by task: nobody who does not
know the key can do better with one answer, so it is an upper bound of a constant guess and no solver.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hybrid.benchmarks.base import Benchmark, ScoreOptions, accuracy
from hybrid.registry import load
from hybrid.scoring.compare import Comparison, is_reported
from hybrid.scoring.draws import End, Expected, Guess, Guesser, expected_score, metrics_of_a_guess
from hybrid.scoring.roles import repetition
from hybrid.scoring.score import Scored, group_of
from hybrid.scoring.told import FRACTION, Number, Told, unit_of
from hybrid.stats import Interval, interval
from hybrid.tables import NONE, Column, Table
from hybrid.tables import accuracy as as_accuracy
from hybrid.tables import number as as_number
from hybrid.tables import signed as as_signed
from hybrid.types import Json, Metric, Outcome, Question, Score

NAME = "floor"
TITLE = "What is a guess worth here, and who is above it?"
ACCURACY = "accuracy"
ALL_DRAWN, FEWEST_DRAWS, MOST_DRAWS = 6000, 4, 64
"""Draws for each question that cannot be listed: so many over all questions, within these two."""
OUTSIDE = "*"
"""After a difference from the guess that the solver's interval does not reach."""


@dataclass(frozen=True)
class Frequent:
    """The answer that is right most often, and the share of the questions, 0..1, on which it is."""

    answer: str
    share: float


@dataclass(frozen=True)
class Above:
    """A solver next to the guess at the same questions: its value minus the guess, and the interval of that."""

    solver: str
    n: int
    value: float
    guess: Expected
    interval: Interval | None
    """95 % for the solver's value; the guess is taken as known."""

    @property
    def difference(self) -> float:
        """The solver's value minus that of the guess."""
        return self.value - self.guess.value

    @property
    def excludes_guess(self) -> bool | None:
        """Whether the guess lies outside the solver's interval; None without an interval."""
        if self.interval is None:
            return None
        return not self.interval.low <= self.guess.value <= self.interval.high


@dataclass(frozen=True)
class FloorRow:
    """One task (or group), or one metric over all: the guess, the constant answer, and every solver next to them."""

    name: str
    n: int
    guess: Expected
    frequent: Frequent | None
    above: tuple[Above, ...]
    unit: str = FRACTION
    """Of every value in the row, as `told.unit_of` has it."""


@dataclass(frozen=True)
class Floor:
    """The guess by task and by metric; no row where nothing can be right or wrong."""

    tasks: tuple[FloorRow, ...]
    metrics: tuple[FloorRow, ...]


def floor(found: Comparison) -> Floor:
    """What a guess is worth on the questions of a comparison. A second call on the same comparison costs as much.

    A failed question, which nobody answered, is in the solver's guess no more than in its own value.
    """
    benchmark: Benchmark = load("hybrid.benchmarks", found.solvers[0].benchmark)
    questions = _questions(found.solvers)
    draws = max(FEWEST_DRAWS, min(MOST_DRAWS, ALL_DRAWN // max(1, len(questions))))
    guesser = Guesser(benchmark, ScoreOptions(abstain=found.solvers[0].abstain), draws)
    given_up = _given_up(found.solvers)
    guesses = {name: given_up.get(name) or guesser.of(question) for name, question in questions.items()}
    guessing = _Guessing(benchmark, questions, guesses)
    return Floor(_by_task(found, guessing), _by_metric(found, guessing))


def section(found: Comparison) -> Told | None:
    """A row for each task and each metric; None where nothing of it can be computed."""
    worth = floor(found)
    if not (worth.tasks or worth.metrics):
        return None
    named = [one.solver for one in found.solvers if repetition(one) == 1]
    rows = [("task", row) for row in worth.tasks] + [("metric", row) for row in worth.metrics]
    tables = [_table("metric", worth.metrics, named)] if worth.metrics else []
    if worth.tasks:
        tables.append(_table("task" if found.choice.by is None else found.choice.by, worth.tasks, named))
    return Told(
        NAME,
        TITLE,
        tuple(tables),
        tuple(_as_json(kind, row) for kind, row in rows),
        tuple(number for kind, row in rows for number in _numbers(kind, row)),
    )


def _questions(solvers: Sequence[Scored]) -> dict[str, Question]:
    """The questions that at least one solver was asked and that are not broken."""
    asked = {score.id for one in solvers for score in one.scores}
    found: dict[str, Question] = {}
    # The solvers of one run share their questions, each of which is read from disk.
    for known in {id(one.questions): one.questions for one in solvers}.values():
        for identity in known:
            if identity in asked and identity not in found and isinstance(question := known[identity], Question):
                found[identity] = question
    return found


def _given_up(solvers: Sequence[Scored]) -> dict[str, Guess]:
    """The questions that every solver failed: one of them may be a question that cannot be scored at all."""
    failed = {score.id: score for one in solvers for score in one.scores if score.outcome.failed}
    answered = {score.id for one in solvers for score in one.scores if not score.outcome.failed}
    return {name: Guess((End(1.0, score),), exact=True) for name, score in failed.items() if name not in answered}


@dataclass(frozen=True)
class _Guessing:
    """The guesses at all questions, and what they come to on some of them."""

    benchmark: Benchmark
    questions: Mapping[str, Question]
    guesses: Mapping[str, Guess]

    def scores(self, scores: Sequence[Score]) -> list[Score]:
        """The expected scores of those questions of a solver that did not fail."""
        present = [score.id for score in scores if not score.outcome.failed and score.id in self.guesses]
        return [expected_score(self.questions[identity], self.guesses[identity]) for identity in present]

    def task(self, identities: Sequence[str]) -> Expected | None:
        """The mean over these questions; None where there is no verdict on any."""
        known = [guess for identity in identities if (guess := self.guesses[identity]).correct is not None]
        if not known:
            return None
        value = math.fsum(guess.correct or 0.0 for guess in known) / len(known)
        if all(guess.exact for guess in known):
            return Expected(value)
        return Expected(value, math.sqrt(math.fsum(guess.variance for guess in known)) / len(known))

    def frequent(self, identities: Sequence[str]) -> Frequent | None:
        """The answer that is right most often, of equals the first by name; None where answers are not listed."""
        known = [guess for identity in identities if (guess := self.guesses[identity]).correct is not None]
        right: dict[str, float] = {}
        for guess in known:
            for answer, worth in guess.by_answer.items():
                right[answer] = right.get(answer, 0.0) + worth
        if not right:
            return None
        answer = min(right, key=lambda answer: (-right[answer], answer))
        return Frequent(answer, right[answer] / len(known))

    def metrics(self, scores: Sequence[Score], names: Sequence[str]) -> dict[str, Expected]:
        """The metrics of a guess at a solver's questions, of which those that failed are missing as they are there."""
        kept = [score for score in scores if score.id in self.guesses]
        guesses = [_lost(self.guesses[score.id]) if score.outcome.failed else self.guesses[score.id] for score in kept]
        return metrics_of_a_guess(self.benchmark, [self.questions[score.id] for score in kept], guesses, names)


def _lost(guess: Guess) -> Guess:
    """The same question as one that nobody answered."""
    return Guess((End(1.0, replace(guess.ends[0].score, outcome=Outcome.OUTAGE)),), exact=True)


def _by_task(found: Comparison, guessing: _Guessing) -> tuple[FloorRow, ...]:
    by = found.choice.by
    parts: dict[str, dict[str, list[Score]]] = {}
    for one in found.solvers:
        for score in one.scores:
            if score.id in guessing.guesses and not score.outcome.failed:
                parts.setdefault(group_of(score, by), {}).setdefault(one.solver, []).append(score)
    rows = []
    for name, solvers in sorted(parts.items()):
        asked = list(dict.fromkeys(score.id for scores in solvers.values() for score in scores))
        guess = guessing.task(asked)
        if guess is not None:
            above = tuple(
                each
                for solver, scores in solvers.items()
                if (each := _above(solver, accuracy(ACCURACY, scores), guessing.task([s.id for s in scores])))
            )
            rows.append(FloorRow(name, len(asked), guess, guessing.frequent(asked), above))
    return tuple(rows)


def _above(solver: str, metric: Metric, guess: Expected | None) -> Above | None:
    if metric.value is None or guess is None:
        return None
    return Above(solver, metric.n, metric.value, guess, interval(metric))


def _by_metric(found: Comparison, guessing: _Guessing) -> tuple[FloorRow, ...]:
    card = guessing.benchmark.card
    measured = {one.solver: {metric.name: metric for metric in one.metrics if metric.cells} for one in found.solvers}
    wanted = [
        name
        for name in dict.fromkeys([*card.headline, *(name for known in measured.values() for name in known)])
        if is_reported(name, (*card.reported, *card.headline) if card.reported else ())
    ]
    known: dict[tuple[tuple[str, bool], ...], dict[str, Expected]] = {}
    guessed: dict[str, dict[str, Expected]] = {}
    for one in found.solvers:
        # Most solvers of a comparison were asked the same.
        same = tuple(sorted((score.id, score.outcome.failed) for score in one.scores))
        if same not in known:
            known[same] = guessing.metrics(one.scores, wanted)
        guessed[one.solver] = known[same]
    rows = []
    for name in wanted:
        above = [
            each
            for solver, metrics in measured.items()
            if name in metrics and (each := _above(solver, metrics[name], guessed[solver].get(name)))
        ]
        if above:
            most = max(above, key=lambda each: each.n)
            unit = unit_of(metrics[name] for metrics in measured.values() if name in metrics)
            rows.append(FloorRow(name, most.n, most.guess, None, tuple(above), unit))
    return tuple(rows)


def _table(kind: str, rows: Sequence[FloorRow], named: Sequence[str]) -> Table:
    constant = kind != "metric"
    heads = [
        "n",
        "guess",
        *(["most frequent", "its share"] if constant else []),
        *(f"{name} - guess" for name in named),
    ]
    lines = []
    for row in rows:
        often = row.frequent
        middle = [often.answer if often else NONE, as_accuracy(often.share if often else None)] if constant else []
        by_name = {each.solver: each for each in row.above}
        cells = (_difference(by_name.get(name)) for name in named)
        lines.append((row.name, as_number(row.n), _guessed(row.guess), *middle, *cells))
    return Table(
        f"A guess, by {kind}" if constant else "A guess, by metric",
        (Column(kind, "left"), *map(Column, heads)),
        tuple(lines),
        tuple(_notes(rows, constant=constant)),
    )


def _notes(rows: Sequence[FloorRow], *, constant: bool) -> list[str]:
    notes = [
        "guess: a uniform draw among the answers that each prompt allows (the solver `chance`), from the questions.",
        f"{OUTSIDE}: the solver's 95 % interval does not reach the guess.",
    ]
    if any(row.guess.error is not None for row in rows):
        notes.append("+-: an estimate from seeded draws and its standard error; every other guess is exact.")
    if constant:
        notes.append(
            "most frequent: the one answer that is right most often in the row, chosen by the answer key; its share is "
            "an upper bound of what a constant answer comes to."
        )
    return notes


def _guessed(guess: Expected) -> str:
    return as_accuracy(guess.value) + ("" if guess.error is None else f" +- {guess.error:.3f}")


def _difference(above: Above | None) -> str:
    if above is None:
        return NONE
    return as_signed(above.difference) + (OUTSIDE if above.excludes_guess else "")


def _as_json(kind: str, row: FloorRow) -> dict[str, Json]:
    often = row.frequent
    return {
        kind: row.name,
        "n": row.n,
        "guess": row.guess.value,
        "exact": row.guess.error is None,
        "standard_error": row.guess.error,
        "most_frequent": None if often is None else {"answer": often.answer, "share": often.share},
        "solvers": {each.solver: _above_json(each) for each in row.above},
    }


def _above_json(each: Above) -> dict[str, Json]:
    return {
        "n": each.n,
        "value": each.value,
        "guess": each.guess.value,
        "difference": each.difference,
        "interval": None if each.interval is None else [each.interval.low, each.interval.high],
        "excludes_guess": each.excludes_guess,
    }


def _numbers(kind: str, row: FloorRow) -> list[Number]:
    metric, group = (row.name, "") if kind == "metric" else (ACCURACY, row.name)
    found = [Number(NAME, "guess", row.unit, row.guess.value, metric=metric, group=group, n=row.n)]
    if row.frequent is not None:
        share = row.frequent.share
        found.append(Number(NAME, "most frequent answer", FRACTION, share, metric=metric, group=group, n=row.n))
    for each in row.above:
        ends = each.interval
        found.append(
            Number(
                NAME,
                "above guess",
                row.unit,
                each.difference,
                a=each.solver,
                metric=metric,
                group=group,
                n=each.n,
                low=None if ends is None else ends.low - each.guess.value,
                high=None if ends is None else ends.high - each.guess.value,
            )
        )
    return found
