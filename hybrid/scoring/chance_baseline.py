"""The expected score of a guess on given questions, computed without asking.

    guesser = Guesser(benchmark, options, draws=16)
    guess = guesser.of(question)                     # every way in which a guess at it can go, with its probability
    guess.correct, guess.exact                       # 0.25, True
    metrics_of_a_guess(benchmark, questions, [guesser.of(each) for each in questions])

The benchmark's own dialogue is followed once for every answer that a guess may draw (`hybrid.answers.offered`), at
every ask, and each end is scored by the benchmark's own scorer and parser: no rule of a benchmark is repeated here. A
dialogue with more than `MAX_ENDS` ends, or an answer that cannot be listed (a scanpath), is drawn instead, seeded by
the id of the question, and labelled as an estimate.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, TypeVar

from hybrid.answers.offered import draw, list_answers
from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.core.types import Exchange, Kind, Prompt, Question, Reply, Score

# Ends of one dialogue that are followed: all of five letters in order, fifteen choices of parts times five options.
MAX_ENDS = 120
# Two values of a metric that differ by less are one: sums in another order.
SAME = 1e-9
# A metric is tested by so many of its clusters, and so many questions of each.
TESTED_CLUSTERS, TESTED = 3, 2
# Draws of all questions at once: so many questions over all draws, and so many draws at least and at most.
ALL_WHOLE, MIN_WHOLE, MAX_WHOLE = 20_000, 4, 64

T = TypeVar("T")


@dataclass(frozen=True)
class ChanceEnd:
    """One way in which a guess at a question can go: its probability, 0..1, and the verdict."""

    probability: float
    score: Score


@dataclass(frozen=True)
class Guess:
    """A uniform guess at one question; `exact` where its ends are all that there are, else they are equally many draws.

    The scores' `id`, `groups` and `cluster` may be those of another question that is guessed at in the same way.
    """

    ends: tuple[ChanceEnd, ...]
    exact: bool

    @cached_property
    def correct(self) -> float | None:
        """Expected verdict, 0..1; None where there is no verdict but similarities."""
        verdicts = [(end.probability, end.score.correct) for end in self.ends]
        if any(correct is None for _, correct in verdicts):
            return None
        return math.fsum(probability * (correct or 0.0) for probability, correct in verdicts)

    @cached_property
    def variance(self) -> float:
        """Of the verdict's estimate: 0 where it is exact, else of the mean over the draws."""
        if self.exact or self.correct is None or len(self.ends) < 2:
            return 0.0
        return stdev(end.score.correct or 0.0 for end in self.ends) ** 2 / len(self.ends)

    @cached_property
    def by_answer(self) -> Mapping[str, float]:
        """Expected verdict by the answer given, a guess wherever an answer leads to a further ask; empty for draws."""
        right, total = defaultdict[str, float](float), defaultdict[str, float](float)
        for end in self.ends if self.exact else ():
            if end.score.answer is not None and end.score.correct is not None:
                right[end.score.answer] += end.probability * end.score.correct
                total[end.score.answer] += end.probability
        return {answer: value / total[answer] for answer, value in right.items()}

    @cached_property
    def expected(self) -> Score:
        """The expected verdict and values in the form of a score."""
        first = self.ends[0].score
        names = [name for name in first.values if all(name in end.score.values for end in self.ends)]
        values = {name: math.fsum(end.probability * end.score.values[name] for end in self.ends) for name in names}
        return replace(first, correct=self.correct, values=values)


@dataclass(frozen=True)
class Expected:
    """The expected value of a metric for a guess; `error` is its standard error, None for an exact value."""

    value: float
    error: float | None = None


class Guesser:
    """Guesses at the questions of one benchmark. Questions that are scored alike are followed once.

    Args:
        benchmark: whose dialogue and scorer it is.
        options: how replies are read, and what an ask without an answer (a free text) is worth.
        draws: how many stand for what cannot be listed.
    """

    def __init__(self, benchmark: Benchmark, options: ScoreOptions, draws: int) -> None:
        self._benchmark = benchmark.with_texts_read()
        self._options = options
        self._draws = draws
        self._known: dict[object, Guess] = {}

    def of(self, question: Question) -> Guess:
        """The guess at a question.

        Raises:
            DataError, UsageError: the question cannot be scored.
        """
        # All that dialogue and verdict depend on: not the words of a question, nor its pictures.
        target = json.dumps([question.target, question.protocol], sort_keys=True, default=str)
        variant, images = question.id.removeprefix(question.base), len(question.images)
        facts = (question.task, question.kind, question.choices, question.route, question.given)
        key = question.id if question.kind is Kind.SCANPATH else (*facts, target, variant, images)
        if key not in self._known:
            ends = self._listed(question)
            draws = () if ends else (ChanceEnd(1 / self._draws, self._drawn(question, n)) for n in range(self._draws))
            self._known[key] = Guess(ends or tuple(draws), exact=ends is not None)
        return self._known[key]

    def _listed(self, question: Question) -> tuple[ChanceEnd, ...] | None:
        """Every end of the dialogue; None for too many."""
        open_: list[tuple[tuple[str, ...], float]] = [((), 1.0)]
        ends: list[ChanceEnd] = []
        while open_:
            replies, probability = open_.pop()
            outcome = self._follow(question, replies)
            if not isinstance(outcome, Prompt):
                ends.append(ChanceEnd(probability, self._benchmark.score(question, outcome, self._options)))
                continue
            answers = list_answers(outcome)
            if answers is None or len(ends) + len(open_) + len(answers) > MAX_ENDS:
                return None
            # The last is followed first: in this order they come out as they are offered.
            open_ += [((*replies, answer), probability * share) for answer, share in reversed(answers)]
        return tuple(ends)

    def _follow(self, question: Question, replies: Sequence[str]) -> Prompt | tuple[Exchange, ...]:
        """The dialogue as it goes with these replies: all of it, or the first prompt that none of them answers."""
        remaining = iter(replies)

        async def ask(prompt: Prompt) -> Reply:
            text = next(remaining, None)
            if text is None:
                raise _Unanswered(prompt)
            return Reply(text)

        try:
            return at_once(self._benchmark.dialogue(question.without_target(), ask))
        except _Unanswered as end:
            return end.prompt

    def _drawn(self, question: Question, number: int) -> Score:
        rng = random.Random(f"{question.id}/{number}")

        async def ask(prompt: Prompt) -> Reply:
            return Reply(draw(prompt, rng))

        exchanges = at_once(self._benchmark.dialogue(question.without_target(), ask))
        return self._benchmark.score(question, exchanges, self._options)


class _Unanswered(Exception):
    """A prompt to which there is no reply yet."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__(prompt.text)
        self.prompt = prompt


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing. Raises `RuntimeError` where it waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a dialogue waited for something else than a reply")


def _of(question: Question, score: Score) -> Score:
    return replace(score, id=question.id, task=question.task, groups=question.groups, cluster=question.cluster)


def metrics_of_a_guess(
    benchmark: Benchmark, questions: Sequence[Question], guesses: Sequence[Guess], names: Sequence[str]
) -> dict[str, Expected]:
    """The expected value of each of the named metrics that these questions have.

    Args:
        benchmark: whose metrics they are.
        questions: those that are guessed at.
        guesses: one for each.
        names: the metrics wanted.
    """
    at_expected = {
        metric.name: metric
        for metric in benchmark.summarise([_of(q, g.expected) for q, g in zip(questions, guesses, strict=True)])
        if metric.name in names and metric.value is not None and metric.cells
    }
    # All questions of some clusters of each metric: drawn by its name where those of others are too few.
    selected: set[str] = set()
    for metric in at_expected.values():
        clusters = {cell.cluster for cell in metric.cells}
        needed = max(0, min(TESTED_CLUSTERS, len(clusters)) - len(clusters & selected))
        selected.update(random.Random(metric.name).sample(sorted(clusters - selected), needed))
    places = [place for place, question in enumerate(questions) if question.unit in selected]
    affine = _affine(benchmark, [questions[place] for place in places], [guesses[place] for place in places])
    drawn_clusters = {q.unit for q, guess in zip(questions, guesses, strict=True) if not guess.exact}
    by_name = {name: Expected(metric.value) for name, metric in at_expected.items() if metric.value is not None}
    inexact = {
        name
        for name, metric in at_expected.items()
        if name not in affine or not drawn_clusters.isdisjoint(cell.cluster for cell in metric.cells)
    }
    draws = _whole_draws(benchmark, questions, guesses) if inexact else []
    for name in inexact:
        values = [draw[name] for draw in draws if name in draw]
        if len(values) > 1:
            # Draws that are used once each have the expected scores as their mean.
            mean = by_name[name].value if name in affine else fmean(values)
            by_name[name] = Expected(mean, stdev(values) / math.sqrt(len(values)))
        else:
            del by_name[name]
    return {name: by_name[name] for name in names if name in by_name}


def _whole_draws(
    benchmark: Benchmark, questions: Sequence[Question], guesses: Sequence[Guess]
) -> list[dict[str, float]]:
    """Every metric of several draws of all questions: as many as there are draws of one that cannot be listed."""
    enough = max(MIN_WHOLE, min(MAX_WHOLE, ALL_WHOLE // max(1, len(questions))))
    count = min((len(guess.ends) for guess in guesses if not guess.exact), default=enough)
    runs = []
    for number in range(count):
        rng = random.Random(f"whole/{number}")
        scores = [
            _of(question, _one(guess, rng) if guess.exact else guess.ends[number].score)
            for question, guess in zip(questions, guesses, strict=True)
        ]
        metrics = benchmark.summarise(scores)
        runs.append({metric.name: metric.value for metric in metrics if metric.value is not None})
    return runs


def _one(guess: Guess, rng: random.Random) -> Score:
    (end,) = rng.choices(guess.ends, [end.probability for end in guess.ends])
    return end.score


def _affine(benchmark: Benchmark, questions: Sequence[Question], guesses: Sequence[Guess]) -> set[str]:
    """The metrics that are affine in the score of every question that is tested.

    The others are at random ends, and once more with those of its unit at their best: a unit that must be right as a
    whole does not move with one question while another is wrong.
    """
    rng = random.Random("affine")
    metric_names, refuted, tested = set[str](), set[str](), Counter[str]()
    for place, question in enumerate(questions):
        tested[question.unit] += 1
        if tested[question.unit] > TESTED:
            continue
        scores = [_of(q, _one(guess, rng)) for q, guess in zip(questions, guesses, strict=True)]
        best = [
            _of(q, max((end.score for end in guess.ends), key=lambda score: score.correct or 0.0))
            if q.unit == question.unit
            else score
            for q, guess, score in zip(questions, guesses, scores, strict=True)
        ]
        for others in (scores, best):

            def values(
                score: Score, question: Question = question, place: int = place, others: list[Score] = others
            ) -> dict[str, float | None]:
                changed = [*others[:place], _of(question, score), *others[place + 1 :]]
                return {metric.name: metric.value for metric in benchmark.summarise(changed) if metric.cells}

            ends = [(end.probability, values(end.score)) for end in _unlike(guesses[place].ends)]
            for name, value in values(guesses[place].expected).items():
                metric_names.add(name)
                parts = [(probability, metric_values.get(name)) for probability, metric_values in ends]
                mean = math.fsum(probability * (part or 0.0) for probability, part in parts)
                if value is None or any(part is None for _, part in parts) or abs(mean - value) > SAME:
                    refuted.add(name)
    return metric_names - refuted


def _unlike(ends: Sequence[ChanceEnd]) -> list[ChanceEnd]:
    """The ends with those as one that have the same verdict, values and outcome."""
    distinct: dict[object, ChanceEnd] = {}
    for end in ends:
        score = end.score
        same = (score.correct, score.outcome, score.answer is None, tuple(sorted(score.values.items())))
        previous = distinct[same].probability if same in distinct else 0.0
        distinct[same] = ChanceEnd(previous + end.probability, score)
    return list(distinct.values())
