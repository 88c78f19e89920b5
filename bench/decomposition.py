"""How often the intervals of the decomposition hold the truth: simulated models whose every part is known.

    python -m bench.decomposition --simulations 1000 --questions 400

Three models answer with tools: one that never uses findings, one that copies them, one that the tools' descriptions
alone harm. Questions are independent, of five tasks; the truth is the mean over ten million simulated questions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from hybrid.scoring.sections.decomposition import GAIN, PARTS, ToolQuestion, decompose
from hybrid.stats.bootstrap import interval_of

TASKS = 5
Answers = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
"""Of each question: right alone, right with tools, a tool was called."""
Model = Callable[[np.random.Generator, int], Answers]


def _alone_and_calls(rng: np.random.Generator, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    alone = rng.random(n) < 0.45
    return alone, rng.random(n) < np.where(alone, 0.6, 0.7)


def ignoring(rng: np.random.Generator, n: int) -> Answers:
    """A model that calls tools and answers as it would alone, but for 7 % of its draws."""
    alone, call = _alone_and_calls(rng, n)
    return alone, np.where(rng.random(n) < 0.93, alone, ~alone), call


def copying(rng: np.random.Generator, n: int) -> Answers:
    """A model that repeats the findings, right in 85 %, where it calls a tool."""
    alone, call = _alone_and_calls(rng, n)
    own = np.where(rng.random(n) < 0.9, alone, ~alone)
    return alone, np.where(call, rng.random(n) < 0.85, own), call


def confused(rng: np.random.Generator, n: int) -> Answers:
    """A model that the descriptions of the tools cost 15 % of its right answers, and that gains nothing."""
    alone, call = _alone_and_calls(rng, n)
    return alone, alone & (rng.random(n) < 0.85), call


MODELS: Mapping[str, Model] = {"ignores findings": ignoring, "copies findings": copying, "harmed by schema": confused}


def truth(model: Model) -> NDArray[np.float64]:
    """Gain and parts of a model over ten million questions."""
    rng, total = np.random.default_rng(7), np.zeros(5)
    for _ in range(100):
        alone, right, call = model(rng, 100_000)
        gain, harm = right & ~alone, alone & ~right
        parts = (gain & call, gain & ~call, harm & call, harm & ~call)
        total += [float(right.mean() - alone.mean()), *(float(part.mean()) for part in parts)]
    return np.asarray(total / 100)


def coverage(model: Model, simulations: int, questions: int, seed: int) -> NDArray[np.float64]:
    """How often each interval held the truth; NaN for a part that the model cannot have."""
    known, rng = truth(model), np.random.default_rng(seed)
    held = np.zeros(5)
    for _ in range(simulations):
        alone, right, call = model(rng, questions)
        rows = [
            ToolQuestion(
                str(i), f"task {i % TASKS}", str(i), float(alone[i]), float(right[i]), ("tool",) * int(call[i])
            )
            for i in range(questions)
        ]
        made = decompose(rows, "mean_of_ratios")
        for place in range(5):
            ends = interval_of(made, place)
            held[place] += ends is not None and ends[0] <= known[place] <= ends[1]
    return np.where(known == 0, np.nan, held / simulations)


def main() -> None:
    """Print one line a model."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--simulations", type=int, default=1000)
    options.add_argument("--questions", type=int, default=400)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    print(f"{'':18}" + "".join(f"{name:>13}" for name in (GAIN, *PARTS)))
    for name, model in MODELS.items():
        shares = coverage(model, given.simulations, given.questions, given.seed)
        print(f"{name:18}" + "".join(f"{'-' if np.isnan(one) else f'{one:.3f}':>13}" for one in shares))


if __name__ == "__main__":
    main()
