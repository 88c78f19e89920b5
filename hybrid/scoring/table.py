"""The answers of a solver as numpy columns, one per fact, computed from its scores on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Metric
from hybrid.scoring.score import JUDGED, WITH_FAILED, Scored

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]
Objects = NDArray[np.object_]


class ScoredAnswers:
    """The columns of one solver, in the order of its scores; each repetition has its own.

    The last entry stands for no question, so that index -1 denotes a question that the solver lacks.
    """

    def __init__(self, scored: Scored) -> None:
        self.scored = scored
        self.place = {score.id: place for place, score in enumerate(scored.scores)}
        self.failed: Flags = np.array([*(score.outcome.failed for score in scored.scores), False], bool)
        self.answer: Objects = objects([*(score.answer for score in scored.scores), None])
        self._correct: dict[UnansweredRule, Floats] = {}
        self.tasks_by_metric: Mapping[str, Sequence[str]] = {}

    def correct(self, rule: UnansweredRule) -> Floats:
        """Return the correctness under a rule, 0..1; nan if there is no right and wrong."""
        if rule not in self._correct:
            scores = self.scored.counted[rule].scores
            self._correct[rule] = np.array(
                [np.nan if s.correct is None else s.correct for s in scores] + [np.nan], float
            )
        return self._correct[rule]

    def right(self, rule: UnansweredRule) -> Floats:
        """Return 1 for a right answer, 0 for any other, and the rule's value for a missing answer."""
        correct = self.correct(rule)
        return np.where(answered(self.answer), correct == 1, np.nan_to_num(correct))

    def metrics(self, rule: UnansweredRule) -> tuple[Metric, ...]:
        """Return the metrics over all its questions, which were computed with the scores."""
        metrics = self.scored.counted[rule].metrics
        return tuple(metric for metric in metrics if not metric.name.startswith((WITH_FAILED, JUDGED)))


def answered(answers: Objects) -> Flags:
    """Mark the positions with a readable answer."""
    # A loop of numpy over pointers and short texts; a generator would take twenty times as long.
    flags: Flags = np.not_equal(answers, None).astype(bool)  # type: ignore[call-overload]  # any object may be compared
    return flags


def objects(values: Sequence[Any]) -> Objects:
    """Return a column of arbitrary values."""
    # numpy would turn answers of equal length into a two-dimensional array.
    array = np.empty(len(values), object)
    array[:] = values
    return array
