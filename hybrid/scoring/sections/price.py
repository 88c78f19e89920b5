"""What does a point of gain cost, and would more samples of the model alone gain as much?

points per 1,000 tokens, per second: the gain over all questions / the extra cost of tools over the model alone. For
the same price, the model alone could be sampled several times, with a vote over its answers: samples are repetitions
(--setting repeats=K), in their order; in a tie, the earliest answer wins.

n: questions that both have and neither failed, and whose cost is known
source: ours; docs/statistics.md; Fieller's interval over clusters
values: no bounds

- points per 1,000 tokens = 100,000 (right with tools - right alone) / (tokens with tools - tokens alone), sums over
  questions
- points per second = 100 (right with tools - right alone) / (seconds with tools - seconds alone), sums over questions
- samples at the same price = cost with tools / cost of one sample alone, rounded down, at least 1; in tokens where they
  are known, else in seconds
- gain over samples at the same price (-1 to 1) = with tools - majority of that many samples alone, or of all
  if fewer were drawn; at least three

Gains count right answers with equal weight per question, even if the headline metric is a mean over tasks. A rate is
given only if the extra cost of tools differs from 0 (95 %) and is at least one token or 0.01 s per question: a solver
with tools that costs less than the model alone has no price. The majority needs repetitions of the model alone. Seconds
are those of model and tools, without queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import ComparisonGroup, is_imported
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import FRACTION, Family, Result, adjusted, contrasted
from hybrid.scoring.score import Floats, Scored
from hybrid.scoring.sections.unchanged import spent_on
from hybrid.stats import ratio_interval

NAME: Final = "price"
# For each rate, the unit of cost, and the number of such units that the rate refers to.
RATES: Final = {"points per 1,000 tokens": ("tokens", 1_000.0), "points per second": ("seconds", 1.0)}
# Minimum extra cost of tools per question for a meaningful rate: recorded replies take no time.
LEAST_ADDED: Final = {"tokens": (1.0, "a token"), "seconds": (0.01, "0.01 s")}
SAMPLES, MAJORITY = "samples at the same price", "gain over samples at the same price"
LEAST_SAMPLES: Final = 3
TOO_FEW: Final = "samples were asked and not"
NEAR_ZERO: Final = "not given: the {} that tools cost do not differ from 0 (95 %)"
TOO_CHEAP: Final = "not given: tools cost less than {} a question more than the model alone"


def rows(comparison: Comparison) -> list[Result]:
    """Return the rows of each hybrid solver whose MLLM alone was run too; p values are adjusted by quantity."""
    results = [row for group in comparison.groups if group.alone is not None for row in _of_group(comparison, group)]
    return adjusted(results, lambda row: Family(row.quantity))


def _of_group(comparison: Comparison, group: ComparisonGroup) -> Iterator[Result]:
    assert group.alone is not None  # noqa: S101 - `rows` only passes groups that have it
    part = next(parts(comparison, NAME, group.alone, group.hybrid, repeated=False))
    costs = {unit: _costs(part, unit) for unit, _ in RATES.values()}
    for quantity, (unit, amount) in RATES.items():
        if (cost := costs[unit]) is not None:
            yield from part.gated(_rate(part, quantity, unit, amount, cost))
    paid = next((cost for unit in ("tokens", "seconds") if (cost := costs[unit]) is not None), None)
    if paid is not None and paid[0].sum() > 0:
        yield from _same_price(comparison, group, float(paid[1].sum() / paid[0].sum()))


def _costs(part: Part, unit: str) -> tuple[Floats, Floats] | None:
    """Return the cost of each question alone and with tools; None if any cost is missing."""
    sides = []
    for solver in part.seen.solvers:
        of = _spent(solver, part.seen.ids.tolist(), unit)
        if of is None:
            return None
        sides.append(of)
    return (sides[0], sides[1]) if len(sides[0]) and all(side.any() for side in sides) else None


def _spent(solver: Scored, ids: Sequence[str], unit: str) -> Floats | None:
    if solver.folder is None or is_imported(solver) or (unit == "seconds" and solver.in_batches):
        return None
    amounts = [of[unit] for of in spent_on(solver, ids)]
    return None if None in amounts else np.array(amounts, float)


def _rate(part: Part, quantity: str, unit: str, amount: float, costs: tuple[Floats, Floats]) -> Result:
    alone, hybrid = map(np.nan_to_num, part.seen.correct())
    gained, added = hybrid - alone, costs[1] - costs[0]
    row = part.number(quantity, None, unit=f"points per {unit}")
    least, in_words = LEAST_ADDED[unit]
    if float(added.mean()) < least:
        return row.noted(TOO_CHEAP.format(in_words))
    interval = ratio_interval(gained, added, part.seen.unit.tolist(), share=False)
    if interval is None:
        return row.noted(NEAR_ZERO.format(unit))
    scale = 100 * amount
    value = scale * float(gained.sum()) / float(added.sum())
    ends = sorted((scale * interval.low, scale * interval.high))
    return part.number(quantity, value, unit=f"points per {unit}", low=ends[0], high=ends[1])


def _same_price(comparison: Comparison, group: ComparisonGroup, ratio: float) -> Iterator[Result]:
    """Yield the number of samples, and the gain over their majority if the model alone was asked more than once."""
    assert group.alone is not None  # noqa: S101 - `rows` requires it
    samples, repeats = max(1, int(ratio + 1e-9)), comparison.repetitions(group.alone)
    number = min(samples, len(repeats))
    part = next(
        parts(comparison, NAME, *repeats[:number], group.hybrid, repeated=False, sides=(group.alone, group.hybrid))
    )
    note = (
        ""
        if number == samples
        else f"only {len(repeats)} of these {samples} samples were asked: --setting repeats={samples}"
    )
    yield part.number(SAMPLES, float(samples), unit="samples").noted(note)
    # With two different samples the first would win, which is not a majority.
    if number < LEAST_SAMPLES:
        return
    right = majority(
        [answers.tolist() for answers in part.seen.answer[:number]],
        [np.nan_to_num(correct) for correct in part.seen.correct()[:number]],
    )
    hybrid = np.nan_to_num(part.seen.correct()[number])
    a, b = (part.seen.ratio("accuracy", solver) for solver in (right, hybrid))
    row = part.number(MAJORITY, None, unit=FRACTION, n=a.n).noted(note)
    yield contrasted(row, a, b, part.shared.untested())[0]


def majority(answers: Sequence[Sequence[object]], right: Sequence[Floats]) -> Floats:
    """Return the correctness of the most frequent answer.

    A tie goes to the earliest answer. If no sample has an answer, the first sample counts.

    Args:
        answers: the answers of each sample, one per question; None if not readable.
        right: (n,), 0..1, the correctness of each sample.
    """
    scores = []
    for place, replies in enumerate(zip(*answers, strict=True)):
        votes = Counter(answer for answer in replies if answer is not None)
        # `Counter` keeps the order in which answers came, and `max` returns the first of equal counts.
        winner = max(votes, key=votes.__getitem__, default=None)
        scores.append(float(right[replies.index(winner)][place]))
    return np.array(scores, float)


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """State the price of a point for each solver."""
    return " ".join(
        f"{row.b}: {row.value:.3g} {row.quantity}."
        for row in section_rows
        if row.quantity in RATES and row.value is not None
    )


SECTION = statistic(rows, lead, headings={"a": "alone", "b": "with tools"}, order=291)
