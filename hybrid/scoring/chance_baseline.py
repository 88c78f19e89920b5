"""The expected score of random guessing on given questions, computed without asking a model.

    guesser = Guesser(benchmark, options, draws=16)
    guess = guesser.of(question)                     # every outcome of a guess, with its probability
    guess.correct, guess.exact                       # 0.25, True
    metrics_of_a_guess(benchmark, questions, [guesser.of(each) for each in questions], ["accuracy_macro"])

At each prompt, the benchmark's own dialogue is followed once for every answer that a guess may draw
(`hybrid.answers.offered`). Each end of the dialogue is scored by the benchmark's own scorer and parser, so no rule of a
benchmark is repeated here. A dialogue with more than `MAX_ENDS` ends, or an answer that cannot be listed (a scanpath),
is sampled instead, seeded by the question's id, and labelled as an estimate.
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

# Maximum number of ends of one dialogue; it suffices for all orders of five letters, or for fifteen choices of parts
# times five options.
MAX_ENDS = 120
# Values that differ by less than this count as equal, because sums in another order may differ slightly.
SAME = 1e-9
# Whether a metric is affine is tested on this many clusters, and on this many questions of each cluster.
TESTED_CLUSTERS, TESTED = 3, 2
# Draws for each question: this total divided by the number of questions, within the two bounds.
ALL_WHOLE, MIN_WHOLE, MAX_WHOLE = 20_000, 4, 64

T = TypeVar("T")


@dataclass(frozen=True)
class ChanceEnd:
    """One outcome of a guess at a question: its probability, 0..1, and its score."""

    probability: float
    score: Score


@dataclass(frozen=True)
class Guess:
    """A uniform guess at one question. If `exact`, `ends` lists all outcomes, else equally likely draws of them.

    The scores' `id`, `groups` and `cluster` may belong to another question with the same guesses.
    """

    ends: tuple[ChanceEnd, ...]
    exact: bool

    @cached_property
    def correct(self) -> float | None:
        """Expected verdict, 0..1; None if the question has similarities instead of a verdict."""
        verdicts = [(end.probability, end.score.correct) for end in self.ends]
        if any(correct is None for _, correct in verdicts):
            return None
        return math.fsum(probability * (correct or 0.0) for probability, correct in verdicts)

    @cached_property
    def variance(self) -> float:
        """Variance of the estimated verdict: 0 if the guess is exact, else the variance of the mean over the draws."""
        if self.exact or self.correct is None or len(self.ends) < 2:
            return 0.0
        return stdev(end.score.correct or 0.0 for end in self.ends) ** 2 / len(self.ends)

    @cached_property
    def by_answer(self) -> Mapping[str, float]:
        """Maps each answer to its expected verdict if all replies after this answer are guesses; empty for draws."""
        right, total = defaultdict[str, float](float), defaultdict[str, float](float)
        for end in self.ends if self.exact else ():
            if end.score.answer is not None and end.score.correct is not None:
                right[end.score.answer] += end.probability * end.score.correct
                total[end.score.answer] += end.probability
        return {answer: value / total[answer] for answer, value in right.items()}

    @cached_property
    def expected(self) -> Score:
        """A score with the expected verdict and values."""
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
    """Computes guesses at the questions of one benchmark; questions that are scored alike share one computation.

    Args:
        benchmark: the benchmark whose dialogue and scorer are used.
        options: how replies are read, and the value of a prompt without an answer (a free text).
        draws: number of draws where outcomes cannot be listed.
    """

    def __init__(self, benchmark: Benchmark, options: ScoreOptions, draws: int) -> None:
        self._benchmark = benchmark.with_texts_read()
        self._options = options
        self._draws = draws
        self._known: dict[object, Guess] = {}

    def of(self, question: Question) -> Guess:
        """Return the guess at a question.

        Raises:
            DataError, UsageError: the question cannot be scored.
        """
        # Dialogue and verdict depend on these facts only, not on the question's text or pictures.
        target = json.dumps([question.target, question.protocol], sort_keys=True, default=str)
        variant, images = question.id.removeprefix(question.base), len(question.images)
        facts = (question.task, question.kind, question.choices, question.route, question.given)
        key = question.id if question.kind is Kind.SCANPATH else (*facts, target, variant, images)
        if key not in self._known:
            ends = self._list_ends(question)
            draws = (
                () if ends else (ChanceEnd(1 / self._draws, self._draw_score(question, n)) for n in range(self._draws))
            )
            self._known[key] = Guess(ends or tuple(draws), exact=ends is not None)
        return self._known[key]

    def _list_ends(self, question: Question) -> tuple[ChanceEnd, ...] | None:
        """Return every end of the dialogue; None for too many ends, or for a prompt whose answers cannot be listed."""
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
            # The stack is last in, first out: pushing in reverse keeps the ends in the order of the offered answers.
            open_ += [((*replies, answer), probability * share) for answer, share in reversed(answers)]
        return tuple(ends)

    def _follow(self, question: Question, replies: Sequence[str]) -> Prompt | tuple[Exchange, ...]:
        """Follow the dialogue with these replies; return its exchanges, or the first prompt without a reply."""
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

    def _draw_score(self, question: Question, number: int) -> Score:
        rng = random.Random(f"{question.id}/{number}")

        async def ask(prompt: Prompt) -> Reply:
            return Reply(draw(prompt, rng))

        exchanges = at_once(self._benchmark.dialogue(question.without_target(), ask))
        return self._benchmark.score(question, exchanges, self._options)


class _Unanswered(Exception):
    """Raised for a prompt to which there is no reply yet."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__(prompt.text)
        self.prompt = prompt


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits. Raises `RuntimeError` if it waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a dialogue waited for something other than a reply")


def _of(question: Question, score: Score) -> Score:
    return replace(score, id=question.id, task=question.task, groups=question.groups, cluster=question.cluster)


def metrics_of_a_guess(
    benchmark: Benchmark, questions: Sequence[Question], guesses: Sequence[Guess], names: Sequence[str]
) -> dict[str, Expected]:
    """Return the expected value of each named metric that these questions have.

    Args:
        benchmark: the benchmark whose metrics are computed.
        questions: the questions to guess at.
        guesses: one guess for each question.
        names: names of the wanted metrics.
    """
    at_expected = {
        metric.name: metric
        for metric in benchmark.summarise([_of(q, g.expected) for q, g in zip(questions, guesses, strict=True)])
        if metric.name in names and metric.value is not None and metric.cells
    }
    # Test all questions of some clusters of each metric; seed the choice of further clusters by the metric's name.
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
            # Each draw is used once, so the mean over the draws of an affine metric is its value at the expected
            # scores.
            mean = by_name[name].value if name in affine else fmean(values)
            by_name[name] = Expected(mean, stdev(values) / math.sqrt(len(values)))
        else:
            del by_name[name]
    return {name: by_name[name] for name in names if name in by_name}


def _whole_draws(
    benchmark: Benchmark, questions: Sequence[Question], guesses: Sequence[Guess]
) -> list[dict[str, float]]:
    """Return every metric for several draws of all questions, as many as the question with the fewest draws has."""
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
    """Return the metrics that are affine in the score of every tested question.

    The other questions take random ends. A second test sets the rest of the question's unit to its best scores, because
    in a unit that must be right as a whole, one question has no effect while another is wrong.
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

            ends = [(end.probability, values(end.score)) for end in _merge_equal(guesses[place].ends)]
            for name, value in values(guesses[place].expected).items():
                metric_names.add(name)
                parts = [(probability, metric_values.get(name)) for probability, metric_values in ends]
                mean = math.fsum(probability * (part or 0.0) for probability, part in parts)
                if value is None or any(part is None for _, part in parts) or abs(mean - value) > SAME:
                    refuted.add(name)
    return metric_names - refuted


def _merge_equal(ends: Sequence[ChanceEnd]) -> list[ChanceEnd]:
    """Merge the ends that have the same verdict, values and outcome."""
    distinct: dict[object, ChanceEnd] = {}
    for end in ends:
        score = end.score
        same = (score.correct, score.outcome, score.answer is None, tuple(sorted(score.values.items())))
        previous = distinct[same].probability if same in distinct else 0.0
        distinct[same] = ChanceEnd(previous + end.probability, score)
    return list(distinct.values())
