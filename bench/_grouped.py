"""How often the interval and the two tests of a difference are right for the grouped metrics of the benchmarks.

Answers are drawn, and the benchmarks' own `summarise` makes metrics of them. Every cluster (a pair of pictures, a
question with its shuffles) has a difficulty of its own: the probability that a row is right is one of `DIFFICULTIES`.
The second solver knows a share `gain` of what the first does not; without a gain the two differ by luck alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench._simulations import LEVEL, held, markdown, rejected
from hybrid.benchmarks.base import accuracy
from hybrid.benchmarks.hvsbench.metrics import summarise as hvsbench
from hybrid.benchmarks.mm_sap import BENCHMARK as MM_SAP
from hybrid.benchmarks.mvp_bench import BENCHMARK as MVP_BENCH
from hybrid.stats import contrast
from hybrid.stats.randomisation import randomisation
from hybrid.types import Metric, Outcome, Score

Floats = NDArray[np.float64]
Sides = tuple[Metric, Metric]

CLUSTERS = (5, 10, 20, 50)
DIFFICULTIES = (0.35, 0.6, 0.8, 0.9, 0.98)
GAIN = 0.5
DRAWS = 999
SHUFFLES = 5
# The task of every fourth question: the macro mean weighs the questions of the large one least.
TASKS = ("large", "large", "middle", "small")
UNLIKE_SHARE = 0.6
# The share of right answers of one solver, and what the other has more, where they are good at different tasks.
UNLIKE = {"large": 0.3, "middle": -0.15, "small": -0.15}
# How often the two solvers answer, where a metric is over what was answered.
ANSWERED = (0.9, 0.3)


@dataclass(frozen=True, slots=True)
class Grouped:
    """One metric over a number of clusters: shares of simulations, and the mean width of the intervals.

    `linearised` and `randomised` are the shares with p < 0.05 by `contrast` and by `randomisation`: the type I error
    where `truth` is 0, else the power.
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
    """A benchmark's metrics: how answers to them are drawn, and their true differences."""

    setting: str
    # Of a number of clusters and the second solver's gain, by name of the metric.
    draw: Callable[[np.random.Generator, int, float], Mapping[str, Sides]]
    truths: Callable[[float], Mapping[str, float]]
    gain: float


def drawn(rng: np.random.Generator, clusters: int) -> Floats:
    """The difficulty of each cluster."""
    return rng.choice(np.array(DIFFICULTIES), clusters)


def raised(right: Floats, gain: float) -> Floats:
    """The probability of a right row of a solver that knows a share `gain` of the rest."""
    return right + gain * (1 - right)


def expected(power: int, gain: float) -> float:
    """Second solver minus first: the difference of the probabilities that all `power` rows of a cluster are right."""
    right = np.array(DIFFICULTIES)
    return float((raised(right, gain) ** power - right**power).mean())


def _score(cluster: int, row: int, task: str, correct: float, **more: Any) -> Score:
    name = f"q{cluster}"
    return Score(f"{name}#s{row}", task, correct, Outcome.ANSWERED, "A", cluster=name, **more)


def of_pairs(rng: np.random.Generator, clusters: int, gain: float) -> Mapping[str, Sides]:
    """MVP-Bench: a pair has two or three questions, each on both of its pictures."""
    right, questions = drawn(rng, clusters), rng.integers(2, 4, clusters)
    sides = []
    for share in (right, raised(right, gain)):
        scores = []
        for pair, count in enumerate(questions):
            for row, correct in enumerate(rng.random(2 * count) < share[pair]):
                groups = {"pair": f"{pair}", "question": f"{pair}/{row // 2}"}
                groups |= {"image": ("natural", "manipulated")[row % 2], "level": ("low", "high")[row // 2 % 2]}
                scores.append(_score(pair, row, "yes_no", float(correct), groups=groups))
        sides.append({metric.name: metric for metric in MVP_BENCH.summarise(scores)})
    return {f"MVP-Bench {name}": (sides[0][name], sides[1][name]) for name in ("mAcc", "qAcc.multi")}


def truths_of_pairs(gain: float) -> Mapping[str, float]:
    """All of four or six rows, and both of two."""
    whole = (expected(4, gain) + expected(6, gain)) / 2
    return {"MVP-Bench mAcc": whole, "MVP-Bench qAcc.multi": expected(2, gain)}


def of_shuffles(rng: np.random.Generator, clusters: int, gain: float) -> Mapping[str, Sides]:
    """MM-SAP: a question is asked in five orders of its options."""
    right = drawn(rng, clusters)
    return {"MM-SAP score_sa.total": _shuffled(rng, (right, raised(right, gain)), (1.0, 1.0), "score_sa.total")}


def of_answered(rng: np.random.Generator, clusters: int, gain: float) -> Mapping[str, Sides]:
    """MM-SAP: right of those that were answered, by solvers that answer unequally often."""
    right = drawn(rng, clusters)
    name = "answer_accuracy.BasicVisQA"
    return {f"MM-SAP {name}": _shuffled(rng, (right, raised(right, gain)), ANSWERED, name)}


def _shuffled(rng: np.random.Generator, right: Sequence[Floats], answered: Sequence[float], name: str) -> Sides:
    sides = []
    for shares, rate in zip(right, answered, strict=True):
        scores = []
        for question, share in enumerate(shares):
            said = rng.random(SHUFFLES) < rate
            correct = said & (rng.random(SHUFFLES) < share)
            for row in range(SHUFFLES):
                kk, spoke = float(correct[row]), float(said[row])
                values = {"kk": kk, "ku": 0.0, "sa": kk, "refused": 1 - spoke, "answered": spoke, "knew": 0.0}
                scores.append(_score(question, row, "BasicVisQA", kk, values=values))
        sides.append(next(metric for metric in MM_SAP.summarise(scores) if metric.name == name))
    return sides[0], sides[1]


def of_scanpaths(rng: np.random.Generator, clusters: int, gain: float) -> Mapping[str, Sides]:
    """HVSBench: one similarity in 0..1 for each picture."""
    right = drawn(rng, clusters)
    sides = []
    for shares in (right, raised(right, gain)):
        similar = rng.beta(8 * shares, 8 * (1 - shares))
        values = [dict.fromkeys(("m_shape", "m_dir", "m_len", "m_pos"), float(one)) for one in similar]
        scores = [_score(place, 0, "Q9", 0.0, values=one) for place, one in enumerate(values)]
        sides.append(next(metric for metric in hvsbench(scores) if metric.name == "m_dir.q9"))
    return {"HVSBench m_dir.q9": (sides[0], sides[1])}


def of_tasks(rng: np.random.Generator, clusters: int, gain: float) -> Mapping[str, Sides]:
    """BLINK: single questions of unequally large tasks, whose accuracies are averaged."""
    right = drawn(rng, clusters)
    return _macro(rng, right, raised(right, gain))


def of_unlike_tasks(rng: np.random.Generator, clusters: int, gain: float) -> Mapping[str, Sides]:
    """BLINK: the second solver is better at the large task, worse at the others, and no better in their mean."""
    right = np.full(clusters, UNLIKE_SHARE)
    shift = np.array([UNLIKE[TASKS[place % len(TASKS)]] for place in range(clusters)])
    return _macro(rng, right, raised(right + shift, gain))


def _macro(rng: np.random.Generator, *right: Floats) -> Mapping[str, Sides]:
    sides = []
    for shares in right:
        hits = rng.random(len(shares)) < shares
        scores = [_score(place, 0, TASKS[place % len(TASKS)], float(hit)) for place, hit in enumerate(hits)]
        sides.append(accuracy("accuracy_macro", scores, macro=True))
    return {"BLINK accuracy_macro": (sides[0], sides[1])}


def _mean_of(name: str) -> Callable[[float], Mapping[str, float]]:
    return lambda gain: {name: expected(1, gain)}


def kinds() -> tuple[Kind, ...]:
    """Every kind of metric with no difference and with one, then solvers that are equal and not exchangeable."""
    rows = [
        Kind(setting, draw, truths, gain)
        for setting, gain in (("equal", 0.0), (f"gain {GAIN:g}", GAIN))
        for draw, truths in (
            (of_pairs, truths_of_pairs),
            (of_shuffles, _mean_of("MM-SAP score_sa.total")),
            (of_scanpaths, _mean_of("HVSBench m_dir.q9")),
            (of_tasks, _mean_of("BLINK accuracy_macro")),
        )
    ]
    rows.append(Kind("equal, answer unequally often", of_answered, _mean_of("MM-SAP answer_accuracy.BasicVisQA"), 0.0))
    rows.append(Kind("equal in the mean, tasks not", of_unlike_tasks, _mean_of("BLINK accuracy_macro"), 0.0))
    return tuple(rows)


def grouped(simulations: int, seed: int) -> Iterator[Grouped]:
    """Every row of the table."""
    for place, kind in enumerate(kinds()):
        truths = kind.truths(kind.gain)
        for clusters in CLUSTERS:
            rng = np.random.default_rng([seed, place, clusters])
            made = [kind.draw(rng, clusters, kind.gain) for _ in range(simulations)]
            for name, truth in truths.items():
                yield measured(name, clusters, kind.setting, truth, [one[name] for one in made])


def measured(name: str, clusters: int, setting: str, truth: float, pairs: Sequence[Sides]) -> Grouped:
    """Aggregate the simulations of one metric; no interval and no p value count as not covering and not rejected."""
    by_formula = [contrast(a, b, LEVEL) for a, b in pairs]
    by_swapping = [randomisation(a, b, DRAWS, seed=number) for number, (a, b) in enumerate(pairs)]
    found = held([one.interval for one in by_formula], truth)
    width = float("nan") if found.width is None else found.width
    tests = (rejected([one.p_value for one in tested]) for tested in (by_formula, by_swapping))
    return Grouped(name, clusters, setting, truth, found.coverage, width, *tests)


def printed(rows: Sequence[Grouped]) -> list[str]:
    """A Markdown table: a row for each setting, metric and number of clusters."""
    heads = ("setting", "metric", "clusters", "difference")
    heads += ("coverage (mean width)", "p < 0.05, linearised", "randomised")
    return markdown(
        heads,
        (
            (
                *(one.setting, one.metric, str(one.clusters), f"{one.truth:.3f}"),
                *(f"{one.coverage:.3f} ({one.width:.2f})", f"{one.linearised:.3f}", f"{one.randomised:.3f}"),
            )
            for one in rows
        ),
    )
