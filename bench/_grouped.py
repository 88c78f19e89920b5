"""Coverage of intervals, and error rates of both tests of a difference, for the benchmarks' grouped metrics.

Answers are simulated, and the benchmarks' own `summarise` computes metrics from them. Every cluster (a pair of images,
a question with its shuffles) has its own difficulty: the probability that a row is right is one of `DIFFICULTIES`. The
second solver knows a share `gain` of the questions that the first gets wrong; without a gain, they differ by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench._simulations import LEVEL, markdown, rejected, summarise
from hybrid.benchmarks.base import accuracy
from hybrid.benchmarks.hvsbench.metrics import summarise as hvsbench
from hybrid.benchmarks.mm_sap import BENCHMARK as MM_SAP
from hybrid.benchmarks.mvp_bench import BENCHMARK as MVP_BENCH
from hybrid.core.types import Metric, Outcome, Score
from hybrid.stats import contrast
from hybrid.stats.randomisation import randomisation

Floats = NDArray[np.float64]
Sides = tuple[Metric, Metric]

CLUSTERS = (5, 10, 20, 50)
DIFFICULTIES = (0.35, 0.6, 0.8, 0.9, 0.98)
GAIN = 0.5
DRAWS = 999
SHUFFLES = 5
# Tasks of the questions, in turn: half belong to the large task, so the macro mean gives each of them the least weight.
TASKS = ("large", "large", "middle", "small")
UNLIKE_SHARE = 0.6
# Lead of the second solver by task, if the solvers are good at different tasks; the first has the accuracy
# `UNLIKE_SHARE`.
UNLIKE = {"large": 0.3, "middle": -0.15, "small": -0.15}
# Shares of questions that the two solvers answer, for metrics over the answered questions.
ANSWERED = (0.9, 0.3)


@dataclass(frozen=True, slots=True)
class Grouped:
    """One metric for one number of clusters: shares of simulations, and the mean width of the intervals.

    `linearised` and `randomised` are the shares with p < 0.05 by `contrast` and by `randomisation`: the type I error
    if `truth` is 0, else the power.
    """

    metric: str
    clusters: int
    setting: str
    truth: float
    coverage: float
    width: float
    linearised: float
    randomised: float


@dataclass(frozen=True)
class Kind:
    """The metrics of a benchmark: how answers are simulated, and the true differences."""

    setting: str
    benchmark: str
    # For each metric, the possible numbers of rows of a cluster that must all be right; each is equally frequent.
    metrics: Mapping[str, Sequence[int]]
    summarise: Callable[[Sequence[Score]], Sequence[Metric]]
    # Scores of two solvers, from the probability of a right row in each cluster.
    draw: Callable[[np.random.Generator, Sequence[Floats]], Iterator[list[Score]]]
    gain: float
    unlike: bool = False

    def sides(self, rng: np.random.Generator, clusters: int) -> Mapping[str, Sides]:
        """Return the metrics of both solvers in one simulation, by name."""
        if self.unlike:
            # The second solver is better on the large task, worse on the others, and equal in the mean.
            first = np.full(clusters, UNLIKE_SHARE)
            second = first + [UNLIKE[TASKS[place % len(TASKS)]] for place in range(clusters)]
        else:
            first = rng.choice(np.array(DIFFICULTIES), clusters)
            second = raised(first, self.gain)
        item, other = (
            {metric.name: metric for metric in self.summarise(scores)} for scores in self.draw(rng, (first, second))
        )
        return {name: (item[name], other[name]) for name in self.metrics}


def raised(right: Floats, gain: float) -> Floats:
    """Return the probabilities of right rows after a share `gain` of the wrong rows has become right."""
    return right + gain * (1 - right)


def expected(power: int, gain: float) -> float:
    """Return the true difference of the probabilities that all rows of a cluster are right, second minus first."""
    right = np.array(DIFFICULTIES)
    return float((raised(right, gain) ** power - right**power).mean())


def _score(cluster: int, row: int, task: str, correct: float, **more: Any) -> Score:
    name = f"q{cluster}"
    return Score(f"{name}#s{row}", task, correct, Outcome.ANSWERED, "A", cluster=name, **more)


def of_pairs(rng: np.random.Generator, sides: Sequence[Floats]) -> Iterator[list[Score]]:
    """Simulate MVP-Bench: a pair has two or three questions, each about both of its images."""
    questions = rng.integers(2, 4, len(sides[0]))
    for share in sides:
        scores = []
        for pair, count in enumerate(questions):
            for row, correct in enumerate(rng.random(2 * count) < share[pair]):
                groups = {"pair": f"{pair}", "question": f"{pair}/{row // 2}"}
                groups |= {"image": ("natural", "manipulated")[row % 2], "level": ("low", "high")[row // 2 % 2]}
                scores.append(_score(pair, row, "yes_no", float(correct), groups=groups))
        yield scores


def of_shuffles(
    rng: np.random.Generator, sides: Sequence[Floats], answered: Sequence[float] = (1.0, 1.0)
) -> Iterator[list[Score]]:
    """Simulate MM-SAP: a question is asked in five orders of its options; `answered` has each solver's answer rate."""
    for shares, rate in zip(sides, answered, strict=True):
        scores = []
        for question, share in enumerate(shares):
            text = rng.random(SHUFFLES) < rate
            correct = text & (rng.random(SHUFFLES) < share)
            for row in range(SHUFFLES):
                kk, spoke = float(correct[row]), float(text[row])
                values = {"kk": kk, "ku": 0.0, "sa": kk, "refused": 1 - spoke, "answered": spoke, "knew": 0.0}
                scores.append(_score(question, row, "BasicVisQA", kk, values=values))
        yield scores


def of_scanpaths(rng: np.random.Generator, sides: Sequence[Floats]) -> Iterator[list[Score]]:
    """Simulate HVSBench: one similarity in 0..1 per image."""
    for shares in sides:
        values = [
            dict.fromkeys(("m_shape", "m_dir", "m_len", "m_pos"), float(item))
            for item in rng.beta(8 * shares, 8 * (1 - shares))
        ]
        yield [_score(place, 0, "Q9", 0.0, values=value) for place, value in enumerate(values)]


def of_tasks(rng: np.random.Generator, sides: Sequence[Floats]) -> Iterator[list[Score]]:
    """Simulate BLINK: single questions in tasks of unequal sizes; the accuracies of tasks are averaged."""
    for shares in sides:
        hits = rng.random(len(shares)) < shares
        yield [_score(place, 0, TASKS[place % len(TASKS)], float(hit)) for place, hit in enumerate(hits)]


def kinds() -> Iterator[Kind]:
    """Yield every kind of metric without and with a true difference, then with equal but not exchangeable solvers."""
    macro = {"accuracy_macro": (1,)}

    def mean_of_tasks(scores: Sequence[Score]) -> Sequence[Metric]:
        return [accuracy("accuracy_macro", scores, macro=True)]

    for setting, gain in (("equal", 0.0), (f"gain {GAIN:g}", GAIN)):
        of_both = {"mAcc": (4, 6), "qAcc.multi": (2,)}
        yield Kind(setting, "MVP-Bench", of_both, MVP_BENCH.summarise, of_pairs, gain)
        yield Kind(setting, "MM-SAP", {"score_sa.total": (1,)}, MM_SAP.summarise, of_shuffles, gain)
        yield Kind(setting, "HVSBench", {"m_dir.q9": (1,)}, hvsbench, of_scanpaths, gain)
        yield Kind(setting, "BLINK", macro, mean_of_tasks, of_tasks, gain)
    unequally = partial(of_shuffles, answered=ANSWERED)
    of_answered = {"answer_accuracy.BasicVisQA": (1,)}
    yield Kind("equal, answer unequally often", "MM-SAP", of_answered, MM_SAP.summarise, unequally, 0.0)
    yield Kind("equal means, unequal tasks", "BLINK", macro, mean_of_tasks, of_tasks, 0.0, unlike=True)


def grouped(simulations: int, seed: int) -> Iterator[Grouped]:
    """Yield every row of the table."""
    for place, kind in enumerate(kinds()):
        for clusters in CLUSTERS:
            rng = np.random.default_rng([seed, place, clusters])
            values = [kind.sides(rng, clusters) for _ in range(simulations)]
            for name, powers in kind.metrics.items():
                truth = sum(expected(power, kind.gain) for power in powers) / len(powers)
                title = f"{kind.benchmark} {name}"
                yield measured(title, clusters, kind.setting, truth, [item[name] for item in values])


def measured(name: str, clusters: int, setting: str, truth: float, pairs: Sequence[Sides]) -> Grouped:
    """Aggregate the simulations of one metric; a missing interval or p value counts as not covering or not rejected."""
    by_formula = [contrast(a, b, LEVEL) for a, b in pairs]
    by_swapping = [randomisation(a, b, DRAWS, seed=number) for number, (a, b) in enumerate(pairs)]
    result = summarise([item.interval for item in by_formula], truth)
    width = float("nan") if result.width is None else result.width
    tests = (rejected([entry.p_value for entry in tested]) for tested in (by_formula, by_swapping))
    return Grouped(name, clusters, setting, truth, result.coverage, width, *tests)


def printed(rows: Sequence[Grouped]) -> list[str]:
    """Return a Markdown table with a row for each setting, metric and number of clusters."""
    heads = ("setting", "metric", "clusters", "difference")
    heads += ("coverage (mean width)", "p < 0.05, linearised", "randomised")
    lines = []
    for row in rows:
        values = (row.setting, row.metric, str(row.clusters), f"{row.truth:.3f}")
        rates = (f"{row.coverage:.3f} ({row.width:.2f})", f"{row.linearised:.3f}", f"{row.randomised:.3f}")
        lines.append((*values, *rates))
    return markdown(heads, lines)
