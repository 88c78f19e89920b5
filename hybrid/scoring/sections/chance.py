"""What does a guess score here, and which solvers score above it?

guess: a uniform draw among the answers that each prompt allows (the solver `chance`). most frequent answer: the answer
that is right most often in the row, chosen by the answer key.

n: units of the metric
source: ours: exact if the answers can be listed, else over seeded draws
values: in the metric's own unit

- guess = expected value of the metric for a uniform guess at these questions
- most frequent answer (0 to 1) = largest share of questions with the same right answer, task by task [n: questions
  of the task; source: ours: the best that one constant answer per task can do, chosen by the key]
- above guess (-1 to 1, or in the metric's own unit) = value of the solver - guess at the same questions [source:
  ours; the interval is the solver's own, the guess is treated as known]

The constant answer is chosen by the key of the same questions that it is scored on, task by task, so it is an upper
bound for a constant guess and not a solver.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hybrid.benchmarks.base import ScoreOptions, accuracy
from hybrid.core.types import Metric, Outcome, Question, Score
from hybrid.scoring.chance_baseline import ChanceEnd, Expected, Guess, Guesser, metrics_of_a_guess
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.result import FRACTION, Result, unit_of
from hybrid.scoring.score import group_of
from hybrid.stats import ends_of, interval

NAME = "chance"
ACCURACY = "accuracy"
GUESS, FREQUENT, ABOVE = "guess", "most frequent answer", "above guess"
# Draws for each question whose answers cannot be listed: ALL_DRAWN / number of questions, within the two bounds.
ALL_DRAWN, MIN_DRAWS, MAX_DRAWS = 6000, 4, 64


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield the guess by metric and by task, the constant answer by task, and each solver's value above the guess.

    A failed question is left out of both the solver's value and its guess.
    """
    solvers = comparison.solvers
    asked_ids = {score.id for solver in solvers for score in solver.scores}
    # Questions that are not broken and were put to at least one solver.
    questions: dict[str, Question] = {}
    # Solvers of one run share their questions; visit each mapping once.
    for by_id in {id(solver.questions): solver.questions for solver in solvers}.values():
        for identity in by_id:
            if identity in asked_ids and identity not in questions and isinstance(entry := by_id[identity], Question):
                questions[identity] = entry
    # A question that every solver failed may be impossible to score, so its guess is a failure too.
    failed = {score.id: score for solver in solvers for score in solver.scores if score.outcome.failed}
    answered = {score.id for solver in solvers for score in solver.scores if not score.outcome.failed}
    given_up = {
        name: Guess((ChanceEnd(1.0, score),), exact=True) for name, score in failed.items() if name not in answered
    }
    draws = max(MIN_DRAWS, min(MAX_DRAWS, ALL_DRAWN // max(1, len(questions))))
    guesser = Guesser(comparison.benchmark, ScoreOptions(unanswered=comparison.solvers[0].unanswered), draws)
    guesses = {name: given_up.get(name) or guesser.of(question) for name, question in questions.items()}
    yield from _by_task(comparison, guesses)
    yield from _by_metric(comparison, questions, guesses)


def _mean(guesses: Sequence[Guess]) -> Expected | None:
    """Return the mean over these questions; None if none has a verdict."""
    judged = [guess for guess in guesses if guess.correct is not None]
    if not judged:
        return None
    value = math.fsum(guess.correct or 0.0 for guess in judged) / len(judged)
    if all(guess.exact for guess in judged):
        return Expected(value)
    return Expected(value, math.sqrt(math.fsum(guess.variance for guess in judged)) / len(judged))


def _guess_row(guess: Expected, unit: str, metric: str, group: str, n: int) -> Result:
    note = "" if guess.error is None else f"estimated from seeded draws, standard error {guess.error:.3f}"
    return Result(NAME, GUESS, unit, guess.value, metric=metric, group=group, n=n, note=note)


def _above_row(solver: str, metric: Metric, guess: Expected | None, unit: str, group: str) -> Result | None:
    """Return a solver's value minus the guess, with the interval of the value: the guess counts as exactly known."""
    if metric.value is None or guess is None:
        return None
    low, high = (None if end is None else end - guess.value for end in ends_of(interval(metric)))
    above, name = metric.value - guess.value, metric.name
    return Result(NAME, ABOVE, unit, above, a=solver, b="", metric=name, group=group, n=metric.n, low=low, high=high)


def _by_task(comparison: Comparison, guesses: Mapping[str, Guess]) -> Iterator[Result]:
    parts: dict[str, dict[str, list[Score]]] = {}
    for scored in comparison.solvers:
        for score in scored.scores:
            if score.id in guesses and not score.outcome.failed:
                parts.setdefault(group_of(score, comparison.options.by), {}).setdefault(scored.solver, []).append(score)
    for name, solvers in sorted(parts.items()):
        ids = list(dict.fromkeys(score.id for scores in solvers.values() for score in scores))
        guess = _mean([guesses[identity] for identity in ids])
        if guess is None:
            continue
        yield _guess_row(guess, FRACTION, ACCURACY, name, len(ids))
        # Maps each answer to the number of questions on which it is right; empty if answers cannot be listed.
        right = defaultdict[str, float](float)
        judged = [guesses[identity] for identity in ids if guesses[identity].correct is not None]
        for answer, value in (pair for known_guess in judged for pair in known_guess.by_answer.items()):
            right[answer] += value
        if right:
            # Break ties by name.
            often = min(right, key=lambda answer: (-right[answer], answer))
            note = f"always {often}, chosen by the answer key: an upper bound for a constant answer"
            share = right[often] / len(judged)
            yield Result(NAME, FREQUENT, FRACTION, share, metric=ACCURACY, group=name, n=len(ids), note=note)
        for solver, scores in solvers.items():
            guessed = _mean([guesses[score.id] for score in scores])
            if row := _above_row(solver, accuracy(ACCURACY, scores), guessed, FRACTION, name):
                yield row


def _by_metric(
    comparison: Comparison, questions: Mapping[str, Question], guesses: Mapping[str, Guess]
) -> Iterator[Result]:
    card = comparison.benchmark.card
    measured = {
        solver.solver: {metric.name: metric for metric in solver.metrics if metric.cells}
        for solver in comparison.solvers
    }
    names = dict.fromkeys([*card.headline, *(name for metrics in measured.values() for name in metrics)])
    shown_names = [name for name in names if comparison.is_shown(name) or name in card.headline]
    cache: dict[tuple[tuple[str, bool], ...], dict[str, Expected]] = {}
    guessed: dict[str, dict[str, Expected]] = {}
    for scored in comparison.solvers:
        # Most solvers of a comparison were asked the same questions, so their guess is computed only once.
        same = tuple(sorted((score.id, score.outcome.failed) for score in scored.scores))
        if same not in cache:
            # Failed questions are left out of the guess, as they are left out of the solver's value.
            scores = [score for score in scored.scores if score.id in guesses]
            solver_guesses = [
                Guess((ChanceEnd(1.0, replace(guess.ends[0].score, outcome=Outcome.OUTAGE)),), exact=True)
                if score.outcome.failed
                else guess
                for score in scores
                for guess in [guesses[score.id]]
            ]
            asked_questions = [questions[score.id] for score in scores]
            cache[same] = metrics_of_a_guess(comparison.benchmark, asked_questions, solver_guesses, shown_names)
        guessed[scored.solver] = cache[same]
    for name in shown_names:
        of_metric = {solver: metrics[name] for solver, metrics in measured.items() if name in metrics}
        unit = unit_of(of_metric.values())
        above = [
            (row, guess)
            for solver, metric in of_metric.items()
            if (guess := guessed[solver].get(name)) and (row := _above_row(solver, metric, guess, unit, ""))
        ]
        if above:
            most, guess = max(above, key=lambda entry: entry[0].n or 0)
            yield _guess_row(guess, unit, name, "", most.n or 0)
            yield from (row for row, _ in above)


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """Say which solvers are above a guess by the headline metric, and which are not significantly above it."""
    above_rows = [
        row for row in section_rows if row.quantity == ABOVE and not row.group and row.metric == comparison.headline
    ]
    guess = next(
        (r.value for r in section_rows if (r.quantity, r.metric, r.group) == (GUESS, comparison.headline, "")), None
    )
    if guess is None or not above_rows:
        return ""
    above = [row.a for row in above_rows if row.low is not None and row.low > 0]
    others = [row.a for row in above_rows if row.a not in above]
    parts = [f"A guess scores {guess:.3f} ({comparison.headline})"]
    if above:
        parts.append(f"above it (each by its own 95 % interval): {', '.join(above)}")
    if others:
        parts.append(f"not significantly above it: {', '.join(others)}")
    return f"{'; '.join(parts)}."


SECTION = statistic(rows, lead, headings={"a": "solver"}, order=170)
