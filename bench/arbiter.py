"""Compare the arbiter's rule with simpler ones, out of fold, on questions that a tool and an MLLM answered.

    python -m bench.arbiter --recorded ../shared/data/blink_outputs    # bench/results/rivals.md

Tools are simulated in many draws. Recorded models (a folder of saved outputs each) are compared in pairs, with the
first in the place of the tool. A rule is fitted on the questions of the other folds, and decides for each question of
its own fold whether it follows the tool. "Follow the better part on a task" is the same rule as "follow the part that
won more of the task's disagreements".
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from statistics import mean, stdev
from typing import Final

import numpy as np
import numpy.typing as npt

from bench._frame import options
from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.benchmarks.base import Benchmark
from hybrid.display.tables import Column, Table, as_markdown
from hybrid.plugins.registry import load
from hybrid.scoring.calibrate import CountedAnswer, measurements
from hybrid.solving.answer_confidence import LIKELY, AnswerConfidence, log_odds, probability
from hybrid.solving.trust import MODEL, MODEL_WEIGHT, TOOL_WEIGHT, Measurement, Trust, fold_of

FOLDS: Final = 5
TOOL: Final = ("tool", "learned")
# Weight of the logistic regression's penalty: almost none, so that a solution exists if one side never loses.
RIDGE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Duel:
    """A question that a tool and an MLLM answered, each right (1) or wrong (0)."""

    id: str
    task: str
    tool: float
    model: float
    # Prior accuracy of the tool, before any measurement.
    claimed: AnswerConfidence
    # Accuracy credited to an MLLM that was not measured.
    usual: float


Rule = Callable[[Sequence[Duel], Sequence[Duel]], Sequence[bool]]


def better_by_task(duels: Sequence[Duel], request: Sequence[Duel]) -> Sequence[bool]:
    """Return, for each question, whether the tool was right at least as often as the MLLM on that task."""
    lead: dict[str, float] = {}
    for item in duels:
        lead[item.task] = lead.get(item.task, 0.0) + item.tool - item.model
    return [lead.get(entry.task, 0.0) >= 0 for entry in request]


def logistic(expected: Sequence[Duel], request: Sequence[Duel]) -> Sequence[bool]:
    """Return, for each question, whether a logistic regression prefers the tool, from the task and the tool's log-odds.

    It is fitted on the questions that only one of tool and MLLM answered correctly.
    """
    tasks = sorted({item.task for item in (*expected, *request)})

    def features(duels: Sequence[Duel]) -> npt.NDArray[np.float64]:
        values = [0.5 if duel.claimed.said is None else duel.claimed.said for duel in duels]
        rows = [
            [float(entry.task == task) for task in tasks] + [log_odds(s)]
            for entry, s in zip(duels, values, strict=True)
        ]
        return np.array(rows).reshape(len(duels), len(tasks) + 1)

    items = [first_item for first_item in expected if first_item.tool != first_item.model]
    x, won = features(items), np.array([item_value.tool > item_value.model for item_value in items], float)
    weights = np.zeros(len(tasks) + 1)
    for _ in range(25):
        p = 1 / (1 + np.exp(-x @ weights))
        curved = (x * (p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(weights))
        weights += np.linalg.solve(curved, x.T @ (won - p) - RIDGE * weights)
    return [bool(value >= 0) for value in features(request) @ weights]


def arbiter(duels: Sequence[Duel], request: Sequence[Duel]) -> Sequence[bool]:
    """Apply the rule with the trust file that `hybrid calibrate` would write from the other folds."""
    results = []
    for item in duels:
        results.append(CountedAnswer(item.id, item.id, (*TOOL, item.task), item.claimed.said, item.tool, item.claimed))
        usual = AnswerConfidence(item.usual)
        results.append(CountedAnswer(item.id, item.id, (*MODEL, item.task), None, item.model, usual))
    trust = Trust(dict(measurements(results)))
    return [_followed(trust, entry) for entry in request]


def _followed(trust: Trust, duel: Duel) -> bool:
    model = trust.model(duel.task, duel.usual, None)
    return trust.tool((*TOOL, duel.task), duel.claimed).lead_over(model) > LIKELY


RIVALS: Final[Mapping[str, Rule]] = {
    # Always follow the tool.
    "specialist": lambda expected_values, request: [True] * len(request),
    "better by task": better_by_task,
    "logistic": logistic,
}
RULES: Final[Mapping[str, Rule]] = {
    **RIVALS,
    "no trust file": lambda cached, question: [_followed(Trust(), item) for item in question],
    "arbiter": arbiter,
}


def out_of_fold(duels: Sequence[Duel]) -> dict[str, list[float]]:
    """Return the results by rule, right (1) or wrong (0).

    `better part` follows whichever part is better on all questions of a task.
    """
    right: dict[str, list[float]] = {name: [] for name in (*RULES, "better part")}
    better = {
        task: sum(duel.tool - duel.model for duel in duels if duel.task == task) >= 0
        for task in {d.task for d in duels}
    }
    for fold in range(FOLDS):
        expected_values, request = (
            [item for item in duels if (fold_of(item.id, FOLDS) == fold) == current] for current in (False, True)
        )
        took = {name: rule(expected_values, request) for name, rule in RULES.items()}
        took["better part"] = [better[entry.task] for entry in request]
        for name, value in took.items():
            right[name] += [
                first_item.tool if tool else first_item.model for tool, first_item in zip(value, request, strict=True)
            ]
    return right


# Functions from a tool's true log-odds to its stated ones.
KINDS: Final[Mapping[str, Callable[[float, random.Random], float]]] = {
    "honest": lambda true, draw: true,
    "overstates": lambda true, draw: 2 * true,
    "understates": lambda true, draw: true / 2,
    "says nothing": lambda true, draw: 1.0,
    "noise": lambda true, draw: draw.gauss(1.0, 1.2),
}
# Approximate accuracies of tool and MLLM on three tasks.
SKILLS: Final = {
    "either": ((0.80, 0.60), (0.60, 0.75), (0.70, 0.70)),
    "alike": ((0.70, 0.70),) * 3,
    "both high": ((0.90, 0.875),) * 3,
}
SIZES: Final = (20, 50, 100)
# Standard deviation, in log-odds, of a question's difficulty, which both parts share.
SHARED: Final = (0.0, 1.5)


def simulated(skills: str, kind: str, size: int, shared: float, seed: int) -> list[Duel]:
    """Simulate `size` questions in each of three tasks."""
    draw, duels = random.Random(f"{skills}/{kind}/{size}/{shared}/{seed}"), []
    for task, (of_tool, of_model) in enumerate(SKILLS[skills]):
        for number in range(size):
            # Use larger log-odds than requested, because the spread below lowers the accuracy.
            true, ease = draw.gauss(1.15 * log_odds(of_tool), 1.2), draw.gauss(0.0, shared)
            right = draw.random() < probability(true + ease), draw.random() < probability(log_odds(of_model) + ease)
            claimed = AnswerConfidence(0.5, probability(KINDS[kind](true, draw)), n=TOOL_WEIGHT)
            name = f"{seed}/{task}/{number}"
            duels.append(Duel(name, f"task {task}", float(right[0]), float(right[1]), claimed, 0.6))
    return duels


def recorded_pairs(folder: Path, prior: PriorAccuracy) -> dict[str, list[Duel]]:
    """Return each pair of recorded models, the first as the tool.

    The questions are those of BLINK val to which both gave a letter.
    """
    messages: dict[str, dict[str, tuple[str, bool]]] = {}
    for path in sorted(folder.glob("*/*.json")):
        rows = [row for row in json.loads(path.read_text())["val"] if row["prediction"] != "(Z)"]
        read = {row["idx"]: (path.stem, row["prediction"] == row["answer"]) for row in rows}
        messages.setdefault(path.parent.name, {}).update(read)
    unmeasured = AnswerConfidence(0.5, n=TOOL_WEIGHT)
    return {
        f"{tool} as the tool, {model}": [
            Duel(
                name,
                task,
                right,
                messages[model][name][1],
                unmeasured,
                prior.accuracy.get(task, 0.5),
            )
            for name, (task, right) in messages[tool].items()
            if name in messages[model]
        ]
        for tool, model in permutations(messages, 2)
    }


def questions(duels: Sequence[Duel]) -> list[dict[str, float]]:
    """Return the results of the rules on each question."""
    right = out_of_fold(duels)
    return [dict(zip(right, row, strict=True)) for row in zip(*right.values(), strict=True)]


def designs(repeats: int) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Yield the name of each design, with every rule's mean accuracy in each simulation.

    A design is the number of questions per task, how the tool states its confidence, and whether difficulty is shared.
    """

    def reached(duels: Sequence[Duel]) -> dict[str, float]:
        return {name: mean(right) for name, right in out_of_fold(duels).items()}

    for size, kind, shared in product(SIZES, KINDS, SHARED):
        values = [simulated(skills, kind, size, shared, seed) for skills in SKILLS for seed in range(repeats)]
        yield f"{size} per task, {kind}{', hard for both' if shared else ''}", [reached(duels) for duels in values]


def table(title: str, groups: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    """Return a row per group, with the mean over its draws; the last columns are the arbiter's differences.

    The standard error is that of the difference from the best rival, over draws or over questions.
    """
    rows, results = [], []
    for name, group in groups.items():
        of = {rule: mean(item[rule] for item in group) for rule in (*RULES, "better part")}
        best = max(RIVALS, key=of.__getitem__)
        error = stdev(entry["arbiter"] - entry[best] for entry in group) / len(group) ** 0.5
        results.append((of["arbiter"] - of[best], of["arbiter"] - of["better part"]))
        less, neighbour = (f"{value:+.4f}" for value in results[-1])
        rows.append((name, *(f"{of[rule]:.3f}" for rule in RULES), less, f"{error:.4f}", neighbour))
    for word, of_all in (("mean", mean), ("minimum", min)):
        less, neighbour = (f"{of_all(first_item):+.4f}" for first_item in zip(*results, strict=True))
        rows.append((word, *[""] * len(RULES), less, "", neighbour))
    heads = (*RULES, "minus the best rival", "standard error", "minus the better part")
    return Table(title, (Column("", "left"), *map(Column, heads)), tuple(rows))


# Candidate thresholds: leads, in standard deviations, at which a tool replaces the MLLM's answer.
LEADS: Final = (0.0, LIKELY, 0.5, 1.0, 1.64)
# Standard deviations, in log-odds, of the difference in skill between tool and MLLM, and of the tool's skill between
# counted and new pictures.
APART: Final = (0.3, 0.7, 1.2)
ELSEWHERE: Final = (0.0, 0.4)


def losses(size: int, value: float, elsewhere: float, draws: int) -> list[tuple[float, float]]:
    """Return for each of `LEADS` the losses per answer, 0..1, by replacing a better answer and by keeping a worse one.

    Tool and MLLM, each equally likely to be the better one, are each measured on `size` questions.
    """
    rng = np.random.default_rng(0)
    middle, difference = rng.normal(0.7, 0.5, draws), rng.normal(0.0, value, draws)
    tool, model = (1 / (1 + np.exp(-(middle + side * difference / 2))) for side in (1, -1))
    seen = 1 / (1 + np.exp(-(middle + difference / 2 + rng.normal(0.0, elsewhere, draws))))
    of_tool, of_model = size + TOOL_WEIGHT, size + MODEL_WEIGHT
    p = (rng.binomial(size, seen) + TOOL_WEIGHT * 0.5) / of_tool
    m = (rng.binomial(size, model) + MODEL_WEIGHT * 0.6) / of_model
    lead = np.log(p / (1 - p)) - np.log(m / (1 - m))
    lead /= np.sqrt(1 / (of_tool * p * (1 - p)) + 1 / (of_model * m * (1 - m)))
    gain = tool - model
    return [
        (
            float(np.where(lead > least, np.maximum(-gain, 0), 0).mean()),
            float(np.where(lead > least, 0, np.maximum(gain, 0)).mean()),
        )
        for least in LEADS
    ]


def overruling(draws: int) -> Table:
    """Return the points lost by replacing a better answer and by keeping a worse one.

    There is a row per size, spread of skills and kind of count, and a column per lead.
    """
    rows = []
    for size, differences, elsewhere in product(SIZES, APART, ELSEWHERE):
        cells = [f"{harm:.4f} + {missed:.4f}" for harm, missed in losses(size, differences, elsewhere, draws)]
        rows.append((f"{size} counted, skills {differences} apart{', on other pictures' if elsewhere else ''}", *cells))
    return Table("overruling", (Column("", "left"), *(Column(f"lead {lead:g}") for lead in LEADS)), tuple(rows))


def lead_by_task(duels: Sequence[Duel]) -> dict[str, float]:
    """Return by task the tool's lead over the MLLM, in standard deviations, measured on these questions."""
    leads = {}
    for task in {duel.task for duel in duels}:
        items = [duel for duel in duels if duel.task == task]
        right = [sum(values) for values in zip(*((duel.tool, duel.model) for duel in items), strict=True)]
        counts = {(*TOOL, task): Measurement(right[0], len(items)), (*MODEL, task): Measurement(right[1], len(items))}
        trust = Trust(counts)
        leads[task] = trust.tool((*TOOL, task), items[0].claimed).lead_over(trust.model(task, items[0].usual, None))
    return leads


def held_out(pairs: Mapping[str, Sequence[Duel]]) -> Table:
    """Measure on odd-numbered items of BLINK val, decide on even ones; return a row per lead, over all pairs and tasks.

    A part counts as worse if it gets fewer of a task's even items right.
    """
    cells = []
    for duels in pairs.values():
        halves = [[duel for duel in duels if int(duel.id.rsplit("_", 1)[1]) % 2 == odd] for odd in (1, 0)]
        for task, lead in lead_by_task(halves[0]).items():
            values = [duel for duel in halves[1] if duel.task == task]
            cells.append((lead, mean(duel.tool for duel in values), mean(duel.model for duel in values)))
    rows = []
    for least in LEADS:
        combined = [tool if lead > least else model for lead, tool, model in cells]
        harm = [max(0.0, cell[2] - current) for current, cell in zip(combined, cells, strict=True)]
        missed = [max(0.0, cell[1] - own_rows) for own_rows, cell in zip(combined, cells, strict=True)]
        means = (mean(combined), mean(harm), mean(missed))
        below = (f"{sum(loss > 0 for loss in losses)} of {len(cells)}" for losses in (harm, missed))
        rows.append((f"{least:g}", *(f"{value:.4f}" for value in means), *below))
    heads = ("lead", "combined", "below the MLLM", "below the tool", "tasks below the MLLM", "tasks below the tool")
    return Table("held out", tuple(map(Column, heads)), tuple(rows))


# A specialist for BLINK's Relative_Depth whose measured accuracy is too high: number of right answers on its items, and
# number of items.
COUNTED: Final = (47, 62)
ELSEWHERE_RIGHT: Final = 42 / 62


def overcounted(draws: int) -> Table:
    """Return the arbiter's accuracy with an overrated specialist, for MLLMs of several accuracies.

    Both are measured on the same number of items.
    """
    benchmark: Benchmark = load("hybrid.benchmarks", "blink")
    usual, (right, n) = benchmark.card.prior_accuracy.accuracy["Relative_Depth"], COUNTED
    key, unmeasured = (*TOOL, ""), AnswerConfidence(0.5, n=TOOL_WEIGHT)
    rng, rows = np.random.default_rng(0), []
    for accuracy in np.arange(0.60, 0.84, 0.03):
        leads = []
        for counts in rng.binomial(n, accuracy, draws).tolist():
            trust = Trust({key: Measurement(right, n), (*MODEL, ""): Measurement(counts, n)})
            leads.append(trust.tool(key, unmeasured).lead_over(trust.model("", usual, None)))
        shares = [float(np.mean(np.array(leads) > least)) for least in LEADS]
        cells = (f"{share * ELSEWHERE_RIGHT + (1 - share) * accuracy:.3f}" for share in shares)
        rows.append((f"{accuracy:.2f}", *cells))
    return Table("overestimated", (Column("MLLM"), *(Column(f"lead {least:g}") for least in LEADS)), tuple(rows))


def main() -> None:
    """Print the five tables in Markdown."""
    flags = options(__doc__, {"--recorded": ..., "--repeats": 150})
    benchmark: Benchmark = load("hybrid.benchmarks", "blink")
    pairs = recorded_pairs(flags.recorded, benchmark.card.prior_accuracy)
    print(as_markdown(table("recorded", {name: questions(duels) for name, duels in pairs.items()})))
    print(as_markdown(held_out(pairs)))
    print(as_markdown(overcounted(2_000)))
    print(as_markdown(overruling(100_000)))
    print(as_markdown(table("simulated", dict(designs(flags.repeats)))))


if __name__ == "__main__":
    main()
