"""The questions of some solvers as columns (numpy), one a fact, made from the scores once, when they are asked for.

A solver that was asked again counts with the mean over its repetitions, question by question (`Questions.mean`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.benchmarks.base import Abstain, Benchmark
from hybrid.scoring.score import AnyQuestions, Scored, group_of, summary
from hybrid.types import Metric, Score

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]
Objects = NDArray[np.object_]


class Answers:
    """The columns of one solver, in the order of its scores; a repetition has its own.

    The last entry is that of no question, so that a place of -1 is of a question which the solver lacks.
    """

    def __init__(self, scored: Scored) -> None:
        self.scored = scored
        self.place = {score.id: place for place, score in enumerate(scored.scores)}
        self.failed: Flags = np.array([*(score.outcome.failed for score in scored.scores), False], bool)
        self.answer: Objects = _objects([*(score.answer for score in scored.scores), None])
        self._correct: dict[Abstain, Floats] = {}
        self._metrics: dict[Abstain, tuple[Metric, ...]] = {}
        self.tasks_by_metric: Mapping[str, Sequence[str]] = {}

    def correct(self, rule: Abstain) -> Floats:
        """How right by a rule, 0..1; nan where there is no right and wrong."""
        if rule not in self._correct:
            scores = self.scored.counted[rule].scores
            self._correct[rule] = np.array(
                [np.nan if s.correct is None else s.correct for s in scores] + [np.nan], float
            )
        return self._correct[rule]

    def right(self, rule: Abstain) -> Floats:
        """1 for a right answer, 0 for any other, and for no answer what its rule gives."""
        correct = self.correct(rule)
        return np.where(answered(self.answer), correct == 1, np.nan_to_num(correct))

    def metrics(self, benchmark: Benchmark, questions: AnyQuestions, rule: Abstain) -> tuple[Metric, ...]:
        """The metrics of all its questions."""
        if rule not in self._metrics:
            self._metrics[rule] = summary(benchmark, questions, self.scored.counted[rule].scores)
        return self._metrics[rule]


def answered(answers: Objects) -> Flags:
    """Where there is a readable answer."""
    return np.fromiter((answer is not None for answer in answers), bool, len(answers))


def _objects(values: Sequence[Any]) -> Objects:
    # Of answers of equal length numpy would make a table of their parts.
    made = np.empty(len(values), object)
    made[:] = values
    return made


@dataclass(frozen=True, eq=False)
class Questions:
    """The questions that any of some solvers has, in the order of the first, and where each repetition has them."""

    solvers: tuple[Scored, ...]
    # Of each solver every repetition, itself one.
    again: tuple[tuple[Answers, ...], ...]
    ids: Objects
    # Of each repetition the place of a question among its scores; -1 where it lacks it.
    at: tuple[tuple[Places, ...], ...]

    @classmethod
    def of(cls, again: Sequence[Sequence[Answers]], solvers: Sequence[Scored]) -> Questions:
        """Of the repetitions of each solver."""
        ids = list(dict.fromkeys(name for own in again for one in own for name in one.place))
        at = tuple(
            tuple(np.fromiter((one.place.get(name, -1) for name in ids), np.intp, len(ids)) for one in own)
            for own in again
        )
        return cls(tuple(solvers), tuple(map(tuple, again)), _objects(ids), at)

    @cached_property
    def first(self) -> tuple[Score, ...]:
        """A score that tells task, unit and answer of a question: of the first solver that has it."""
        every = zip(chain(*self.again), chain(*self.at), strict=True)
        known = [(one.scored.scores, at) for one, at in every]
        return tuple(next(scores[at[n]] for scores, at in known if at[n] >= 0) for n in range(len(self.ids)))

    @cached_property
    def unit(self) -> Objects:
        """What statistics resample."""
        return _objects([score.unit for score in self.first])

    @cached_property
    def task(self) -> Objects:
        """The task of each."""
        return _objects([score.task for score in self.first])

    @cached_property
    def missing(self) -> Flags:
        """Where one of them lacks it."""
        lacks: Flags = ~np.all([np.any([at >= 0 for at in own], 0) for own in self.at], 0)
        return lacks

    @cached_property
    def lost(self) -> Flags:
        """Where all of them have it and one of them failed it in every repetition."""
        failed = [
            np.all([(at < 0) | one.failed[at] for one, at in zip(own, places, strict=True)], 0)
            for own, places in zip(self.again, self.at, strict=True)
        ]
        lost: Flags = ~self.missing & np.any(failed, 0)
        return lost

    @cached_property
    def known(self) -> tuple[tuple[Flags, ...], ...]:
        """Of each repetition the questions that count for its solver: the first stands where none is known."""
        found = []
        for own, places in zip(self.again, self.at, strict=True):
            flags = [(at >= 0) & ~one.failed[at] for one, at in zip(own, places, strict=True)]
            flags[0] = flags[0] | ~np.any(flags, 0)
            found.append(tuple(flags))
        return tuple(found)

    def mean(self, column: Any) -> tuple[Floats, ...]:
        """Of each solver the mean of a column over its known repetitions; nan where one of these is."""
        means = []
        for own, places, known in zip(self.again, self.at, self.known, strict=True):
            values = [np.where(flags, column(one)[at], 0.0) for one, at, flags in zip(own, places, known, strict=True)]
            means.append(values[0] if len(own) == 1 else np.sum(values, 0) / np.sum(known, 0))
        return tuple(means)

    @cached_property
    def answer(self) -> tuple[Objects, ...]:
        """Of each solver the first readable answer of its known repetitions."""
        found = []
        for own, places, known in zip(self.again, self.at, self.known, strict=True):
            made = _objects([None] * len(self.ids))
            for one, at, flags in reversed(list(zip(own, places, known, strict=True))):
                # A question that it lacks is told by the answer of another, as failed.
                values = np.where(at >= 0, one.answer[at], _objects([score.answer for score in self.first]))
                made = np.where(flags & answered(values), values, made)
            found.append(made)
        return tuple(found)

    def groups(self, by: str | None) -> dict[str, Places]:
        """The places of each task, or of each value of the group `by`, sorted by name."""
        if by is None:
            names, at = np.unique(self.task.astype(str), return_inverse=True)
            return {str(name): np.flatnonzero(at == n) for n, name in enumerate(names)}
        places: dict[str, list[int]] = defaultdict(list)
        for n in range(len(self.ids)):
            # Predictions without their questions lack some groups that the other side knows.
            every = zip(chain(*self.again), chain(*self.at), strict=True)
            known = (group_of(one.scored.scores[at[n]], by) for one, at in every if at[n] >= 0)
            places[next((name for name in known if name != "-"), "-")].append(n)
        return {name: np.array(places[name], np.intp) for name in sorted(places)}
