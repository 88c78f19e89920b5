"""Simulate the coverage of the intervals of the statistic `places`: tool calls on annotated places, nominal 95 %.

    python -m bench.places                 40 draws of each design, about a minute
    python -m bench.places --draws 400     bench/results/places.md

A call looks at the annotated box with the design's probability and at another place otherwise; the answer is right with
probability 0.8 after a look at the place and 0.5 otherwise. If questions share a picture, each of these probabilities
is shifted by one draw per picture. The true chance rate is the mean over all draws.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from bench._frame import options
from bench._review_worlds import DrawnSolver, annotated_questions, box_around, comparison_of, random_box
from hybrid.core.types import Box
from hybrid.scoring.result import Result
from hybrid.scoring.sections import places

RIGHT_AT, RIGHT_ELSEWHERE = 0.8, 0.5
QUANTITIES: Final = (places.AT_PLACE, places.ABOVE, places.RIGHT_AT, places.RIGHT_ELSEWHERE, places.DIFFERENCE)


@dataclass(frozen=True)
class Design:
    """Numbers of questions, shared pictures (0: no sharing) and calls per question; share of calls at the place."""

    name: str
    questions: int
    pictures: int
    most_calls: int
    share_at_place: float
    spread: float = 0.0


DESIGNS: Final = (
    Design("200 questions, a picture and a call each", 200, 0, 1, 0.6),
    Design("160 questions about 40 pictures, 1 to 3 calls", 160, 40, 3, 0.4, 0.2),
    Design("80 questions, seldom at the place", 80, 0, 2, 0.15),
)


def draw(design: Design, seed: int) -> dict[str, Result]:
    """Return the rows of one draw over all questions, by quantity."""
    rng = np.random.default_rng(seed)
    request = annotated_questions(rng, design.questions, design.pictures)
    shifts = rng.uniform(-design.spread, design.spread, (design.pictures or design.questions, 2))
    boxes, right = [], []
    for number, question in enumerate(request):
        target = question.evidence[0].place
        assert isinstance(target, Box)  # noqa: S101 - drawn as a box
        place_shift, answer_shift = shifts[number % len(shifts)]
        hits = rng.random(rng.integers(1, design.most_calls + 1)) < design.share_at_place + place_shift
        boxes.append([box_around(target) if hit else _elsewhere(rng, target) for hit in hits])
        right.append(
            rng.random() < (RIGHT_AT if hits.any() else RIGHT_ELSEWHERE) + answer_shift * design.share_at_place
        )
    solver = DrawnSolver(np.array(right), np.ones(len(request), bool), boxes=boxes)
    with tempfile.TemporaryDirectory() as folder:
        comparison = comparison_of(Path(folder), request, real={"controller": solver})
        return {row.quantity: row for row in places.rows(comparison) if not row.group}


def _elsewhere(rng: np.random.Generator, target: Box) -> Box:
    """Return a box that does not touch the target box."""
    while True:
        box = random_box(rng, 100, 250)
        if box.x1 < target.x0 or box.x0 > target.x1 or box.y1 < target.y0 or box.y0 > target.y1:
            return box


def truth_of(design: Design, quantity: str, values: list[float]) -> float:
    """Return a quantity's true value: the constructed one or, for the chance rate, the mean over the draws."""
    by_design = {
        places.AT_PLACE: design.share_at_place,
        places.RIGHT_AT: RIGHT_AT,
        places.RIGHT_ELSEWHERE: RIGHT_ELSEWHERE,
        places.DIFFERENCE: RIGHT_AT - RIGHT_ELSEWHERE,
    }
    return float(np.mean(values)) if design.spread or quantity not in by_design else by_design[quantity]


def table(draws: int, seed: int) -> list[str]:
    """Return the table as lines."""
    lines = [f"| design, {draws} draws | {' | '.join(QUANTITIES)} |", "|---|" + "---|" * len(QUANTITIES)]
    for design in DESIGNS:
        samples = [draw(design, seed + number) for number in range(draws)]
        cells = []
        for quantity in QUANTITIES:
            rows = [rows[quantity] for rows in samples if quantity in rows and rows[quantity].value is not None]
            truth = truth_of(design, quantity, [row.value or 0.0 for row in rows])
            ends = [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
            inside = sum(low <= truth <= high for low, high in ends)
            cells.append(f"{inside / len(ends):.3f} (truth {truth:.3f})" if ends else "no interval")
        lines.append(f"| {design.name} | {' | '.join(cells)} |")
    return lines


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    flags = options(__doc__, {"--draws": 40, "--seed": 0}, words)
    print("\n".join(table(flags.draws, flags.seed)))


if __name__ == "__main__":
    main()
