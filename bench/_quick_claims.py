"""Compute the claims about a simulated pair from its answers, without a run folder: `bench.sentences --quick`.

claims_of(tasks, clusters, Answers(alone, read_alone), Answers(tools, read_tools))     # {"gain"}

The decision is made by the product's own code (`HeadlinePair.claim`); only the metrics are summed here, which takes a
hundredth of the time. `tests/bench/test_sentences.py` compares both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from hybrid.core.types import Cell, Combine, Metric
from hybrid.scoring.headline_pair import AnswerSplit, HeadlinePair, hangs_on_rule, is_uneven, shown
from hybrid.scoring.result import FRACTION, Result, contrasted
from hybrid.scoring.score import Scored
from hybrid.stats import combine

# The score of a guess at a question with two choices.
GUESS: Final = 0.5
# A placeholder solver: no property of the solvers themselves affects a claim.
NOBODY: Final = cast(Scored, SimpleNamespace(open=0))
ROW: Final = Result("differences", "difference", FRACTION, None, "mllm", "controller", "accuracy", "", 0)

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """For each question, whether a readable answer would be right, and whether the answer is readable."""

    right: Flags
    read: Flags


@dataclass(frozen=True)
class Sums:
    """The metric of the simulated questions."""

    tasks: Sequence[str]
    clusters: Sequence[str]

    def metric(self, values: NDArray[Any], flags: Flags, *, over_tasks: bool = True) -> Metric:
        """Return the accuracy over the questions that `flags` selects, as a mean over tasks if there are several."""
        several = over_tasks and len(set(self.tasks)) > 1
        rows = zip(self.tasks, self.clusters, values.astype(float).tolist(), flags.tolist(), strict=True)
        cells = tuple(Cell(task if several else "", unit, value, 1.0) for task, unit, value, keep in rows if keep)
        text: Combine = "mean_of_ratios" if several else "ratio"
        return Metric("accuracy", combine(cells, text), len(cells), text, cells)

    def difference(self, a: NDArray[Any], b: NDArray[Any], flags: Flags, *, over_tasks: bool = True) -> Result:
        """Return the tested difference, b minus a."""
        of_a, of_b = (self.metric(values, flags, over_tasks=over_tasks) for values in (a, b))
        return contrasted(ROW, of_a, of_b, None)[0]


def claims_of(tasks: Sequence[str], clusters: Sequence[str], alone: Answers, tools: Answers) -> set[str]:
    """Return the claims of the first sentence, named as in `sentences.toml`."""
    sums, values = Sums(tasks, clusters), np.ones(len(tasks), bool)
    a, b = (answers.right & answers.read for answers in (alone, tools))
    pair = HeadlinePair(NOBODY, NOBODY, rows=(sums.difference(a, b, values),))
    pair = replace(pair, split=_split(sums, alone, tools))
    if not (alone.read & tools.read).all():
        of_alone, of_tools = (np.where(current.read, current.right, GUESS) for current in (alone, tools))
        other = sums.difference(of_alone, of_tools, values)
        pair = replace(pair, other_rule=other if hangs_on_rule(pair, other) else None)
    over_all = sums.difference(a, b, values, over_tasks=False)
    pair = replace(pair, over_all=over_all if is_uneven(pair, over_all) else None)
    uneven = {"tasks and questions disagree"} if pair.state != "open" else set()
    value = {"more": {"gain"}, "less": {"loss"}, "uneven": uneven}.get(pair.claim, set())
    if pair.split is not None and pair.split.matters(pair.state):
        value |= {"more": {"by answering more"}, "less": {"by answering less"}}.get(shown(pair.split.answering), set())
    return value


def _split(sums: Sums, alone: Answers, tools: Answers) -> AnswerSplit | None:
    pair, values = alone.read & tools.read, np.ones(len(sums.tasks), bool)
    if pair.all():
        return None
    a, b = (answers.right & answers.read for answers in (alone, tools))
    answering = sums.difference(a & ~pair, b & ~pair, values)
    if answering.low is None:
        return None
    better = sums.difference(a & pair, b & pair, values)
    counts = int((~alone.read).sum()), int((~tools.read).sum())
    return AnswerSplit(answering, better, sums.difference(a, b, pair) if pair.any() else None, counts)
