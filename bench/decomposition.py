"""Simulate the coverage of the decomposition's intervals, with models for which every part is known.

    python -m bench.decomposition                       100 simulations per design, half a minute on one core
    python -m bench.decomposition --simulations 1000    bench/results/decomposition.md

Three models answer with tools: one never uses tool outputs, one copies them, and one is harmed by the mere descriptions
of the tools. 70 % of the calls go to one tool, 30 % to another. The truth is computed from ten million simulated
questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench._frame import options
from bench._simulations import summarise
from hybrid.core.types import Combine
from hybrid.scoring.sections.decomposition import GAIN, PARTS, TERMS, Estimated, ToolQuestion, decompose, parts_of

# An estimate is regular if at least this many clusters are expected on each of its two sides.
ENOUGH: Final = 10
TOOLS: Final = (("first tool",), ("second tool",))
FIRST: Final = 0.7
BY_TOOL: Final = (PARTS[0], PARTS[2])

# Three masks over questions: right alone, right with tools, and a tool was called.
Answers = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
Model = Callable[[np.random.Generator, int], Answers]


@dataclass(frozen=True)
class Design:
    """The numbers of questions per task and per cluster; half of a cluster copies one draw."""

    name: str
    sizes: tuple[int, ...]
    rows: int = 1

    @property
    def questions(self) -> int:
        """Number of questions over all tasks."""
        return sum(self.sizes)

    @property
    def how(self) -> Combine:
        """How questions are combined: a mean over tasks if there are several, else a plain ratio."""
        return "mean_of_ratios" if len(self.sizes) > 1 else "ratio"


DESIGNS: Final = (
    Design("80 of one task", (80,)),
    Design("200 of five tasks", (40,) * 5),
    Design("400 of five tasks", (80,) * 5),
    Design("400 of five tasks, four a cluster", (80,) * 5, rows=4),
    Design("100 + 20 + 5", (100, 20, 5)),
    Design("200 + 2 + 2", (200, 2, 2)),
)


def _alone_and_calls(rng: np.random.Generator, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    alone = rng.random(n) < 0.45
    return alone, rng.random(n) < np.where(alone, 0.6, 0.7)


def ignoring(rng: np.random.Generator, n: int) -> Answers:
    """Simulate a model that calls tools but answers as it would alone, except for 7 % of its draws."""
    alone, call = _alone_and_calls(rng, n)
    return alone, np.where(rng.random(n) < 0.93, alone, ~alone), call


def copying(rng: np.random.Generator, n: int) -> Answers:
    """Simulate a model that repeats the tool outputs, of which 85 % are right, whenever it calls a tool."""
    alone, call = _alone_and_calls(rng, n)
    indices = np.where(rng.random(n) < 0.9, alone, ~alone)
    return alone, np.where(call, rng.random(n) < 0.85, indices), call


def confused(rng: np.random.Generator, n: int) -> Answers:
    """Simulate a model that loses 15 % of its right answers to the descriptions of the tools and gains nothing."""
    alone, call = _alone_and_calls(rng, n)
    return alone, alone & (rng.random(n) < 0.85), call


MODELS: Mapping[str, Model] = {"ignores findings": ignoring, "copies findings": copying, "harmed by presence": confused}


@dataclass(frozen=True)
class Truth:
    """An estimate's true value, and the shares of questions on its two sides.

    The smaller share decides whether the estimate is regular.
    """

    value: float
    sides: tuple[float, float]

    def regular(self, design: Design) -> bool:
        """Return whether at least `ENOUGH` clusters are expected on each side, in the mean of this design."""
        effective = len(design.sizes) ** 2 / sum(design.rows / size for size in design.sizes)
        return min(self.sides) * effective >= ENOUGH


def truths(model: Model, blocks: int = 100) -> dict[str, Truth]:
    """Return the truths of all estimates of a model, by name, simulated in blocks of 100,000 questions."""
    rng, met = np.random.default_rng(7), Counter[str]()
    for _ in range(blocks):
        alone, right, call = model(rng, 100_000)
        for term in TERMS:
            of = alone if term.right else ~alone
            acted = of & (call if term.call else ~call)
            changed = acted & (~right if term.right else right)
            for name, mask in ((term.mass, of), (term.policy, acted), (term.part, changed)):
                met[name] += int(mask.sum()) if name != term.mass or term.call else 0
    share = {name: count / blocks / 100_000 for name, count in met.items()}
    up, down = (share[PARTS[place]] + share[PARTS[place + 1]] for place in (0, 2))
    payload = {GAIN: Truth(up - down, (up, down))}
    for term in TERMS:
        mass, acted_share, changed_share = share[term.mass], share[term.policy], share[term.part]
        payload[term.part] = Truth(changed_share, (changed_share, 1 - changed_share))
        payload[term.mass] = Truth(mass, (mass, 1 - mass))
        payload[term.policy] = Truth(acted_share / mass, (acted_share, mass - acted_share))
        payload[term.quality] = Truth(changed_share / acted_share, (changed_share, acted_share - changed_share))
    for tools, part_of_calls in zip(TOOLS, (FIRST, 1 - FIRST), strict=True):
        for part in BY_TOOL:
            value = share[part] * part_of_calls
            payload[f"{part}, {tools[0]}"] = Truth(value, (value, 1 - value))
    return payload


def draw_questions(rng: np.random.Generator, model: Model, design: Design) -> list[ToolQuestion]:
    """Simulate the questions of one run."""
    individual, shared = model(rng, design.questions), model(rng, design.questions // design.rows)
    cluster = np.arange(design.questions) // design.rows
    copies = (rng.random(design.questions) < 0.5) & (design.rows > 1)
    alone, right, call = (
        np.where(copies, item[cluster], entry).tolist() for item, entry in zip(shared, individual, strict=True)
    )
    first = (rng.random(design.questions) < FIRST).tolist()
    tasks = [task for task, size in enumerate(design.sizes) for _ in range(size)]
    return [
        ToolQuestion(str(place), f"task {task}", str(of), float(by_own), float(hit), TOOLS[not value] if calls else ())
        for place, (task, of, by_own, hit, value, calls) in enumerate(
            zip(tasks, cluster, alone, right, first, call, strict=True)
        )
    ]


def estimates(questions: Sequence[ToolQuestion], combine: Combine) -> dict[str, Estimated]:
    """Return every estimate of the decomposition, over all questions and by tool."""
    result = decompose(questions, combine)
    for tools in TOOLS:
        only = [
            question if question.tools == tools else replace(question, with_tools=question.alone)
            for question in questions
        ]
        of_tools = parts_of(only, combine)
        result |= {f"{part}, {tools[0]}": of_tools[part] for part in BY_TOOL}
    return result


def coverage(
    model: Model, mapping: Mapping[str, Truth], design: Design, simulations: int, seed: int
) -> dict[str, float]:
    """Return how often the interval of each estimate contains the truth; a missing interval counts as a miss."""
    rng = np.random.default_rng([seed, design.questions, design.rows])
    values = [estimates(draw_questions(rng, model, design), design.how) for _ in range(simulations)]
    return {
        name: summarise([item[name].interval for item in values], truth.value, 1e-9).coverage
        for name, truth in mapping.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a Markdown table for each model, then the range over the regular estimates of all models."""
    flags = options(__doc__, {"--simulations": 100, "--seed": 0}, arguments)
    print(
        f"{flags.simulations:,} simulations per design, seed {flags.seed}, nominal coverage 95 %; values in brackets "
        f"are not regular: fewer than {ENOUGH} clusters are expected on one side"
    )
    regular, others = [], []
    for title, model in MODELS.items():
        expected_values = truths(model)
        shares = [coverage(model, expected_values, design, flags.simulations, flags.seed) for design in DESIGNS]
        print(f"\n## {title}\n\n| estimate | truth | {' | '.join(design.name for design in DESIGNS)} |")
        print("| :--- |" + " ---: |" * (1 + len(DESIGNS)))
        for name, truth in expected_values.items():
            cells = []
            for design, share in zip(DESIGNS, shares, strict=True):
                full = truth.regular(design)
                (regular if full else others).append(share[name])
                cells.append(f"{share[name]:.3f}" if full else f"({share[name]:.3f})")
            print(f"| {name.replace('|', '&#124;')} | {truth.value:.4f} | {' | '.join(cells)} |", flush=True)
    for kind, result in (("regular", regular), ("others", others)):
        inside = sum(0.93 <= item <= 0.97 for item in result)
        print(f"\n{kind}: {min(result):.3f} to {max(result):.3f}, {inside} of {len(result)} in 0.93 to 0.97")


if __name__ == "__main__":
    main()
