"""What does an answer cost, and what is it worth?

n: questions that were asked
source: recorded; seconds are the running time of model and tools
values: 0 and above

- <USD|tokens|seconds> per question = total cost of all prompts / questions asked
- value (in the metric's own unit) = the headline metric [n: as the metric's; source: the benchmark's card]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hybrid.core.types import Metric, Outcome, Usage
from hybrid.display.tables import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.result import Result, unit_of, with_interval
from hybrid.scoring.score import Scored

NAME = "cost"
# First words of the note on reused replies, which another run paid for.
REUSED = "replies of earlier runs (--cache-replies)"


def tokens(usage: Usage) -> tuple[int, int] | None:
    """Return the number of tokens in and out; None if unknown."""
    # A recorded model is called but reports no tokens; their number is unknown, not 0.
    silent = usage.model_calls > usage.reused_calls and usage.input_tokens == usage.output_tokens == 0
    return None if usage.uncounted_calls or silent else (usage.input_tokens, usage.output_tokens)


def uncounted(usage: Usage) -> str:
    """Return a note on token counts and costs that are unknown or not counted; empty if nothing is missing."""
    missing, calls = usage.uncounted_calls, usage.model_calls
    notes = [f"tokens and USD unknown: {missing} of {calls} replies came without token counts"] if missing else []
    return "; ".join(filter(None, (*notes, reused_note(usage))))


def reused_note(usage: Usage) -> str:
    """Return a note on replies of earlier runs, which no token count, cost or time covers; empty without reuse."""
    return "" if usage.is_complete else f"{REUSED}: {usage.reused_calls} of {usage.model_calls}, not counted"


# Units of cost, in order of preference. A solver that calls no model costs no dollars and no tokens.
COSTS: tuple[tuple[str, str, Callable[[Usage], float | None]], ...] = (
    (
        "USD per question",
        "USD",
        lambda usage: None if usage.uncounted_calls else usage.cost_usd if usage.model_calls else 0.0,
    ),
    ("tokens per question", "tokens", lambda usage: None if (counts := tokens(usage)) is None else float(sum(counts))),
    ("seconds per question", "seconds", lambda usage: usage.seconds),
)


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield each solver's headline metric and its cost per question.

    The cost is in the first unit of `COSTS` that is known for all solvers and is not 0 for all of them.
    """
    entries: list[tuple[Scored, Metric, Usage, int]] = []
    for solver in comparison.solvers:
        metric = next((m for m in solver.metrics if m.name == comparison.headline and m.value is not None), None)
        count = sum(score.outcome not in (Outcome.OUTAGE, Outcome.BROKEN) for score in solver.scores)
        if metric is not None and solver.usage is not None and count:
            entries.append((solver, metric, solver.usage, count))
    for quantity, unit, price in COSTS:
        untimed = unit == "seconds" and any(solver.in_batches for solver, *_ in entries)
        prices = [None if untimed else price(usage) for _, _, usage, _ in entries]
        if not any(prices) or None in prices:
            continue
        for (solver, metric, usage, count), spent in zip(entries, prices, strict=True):
            per_question = (spent or 0.0) / count
            note = uncounted(usage)
            yield Result(NAME, quantity, unit, per_question, solver.solver, metric=metric.name, n=count, note=note)
            row = Result(NAME, "value", unit_of((metric,)), None, solver.solver, metric=metric.name)
            yield row if solver.answered_nothing else with_interval(row, metric)
        return


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """Name the cheapest and the most expensive solver, among those that paid for all of their replies."""
    spent = [row for row in section_rows if row.quantity != "value" and REUSED not in row.note]
    if not spent:
        return ""
    low, high = (choose(spent, key=lambda row: row.value or 0.0) for choose in (min, max))
    if low.a == high.a:
        return ""
    value = {row.a: accuracy(row.value) for row in section_rows if row.quantity == "value"}
    ends = [f"{row.a}: {row.value:.4g} {row.quantity}, {value.get(row.a, '-')}" for row in (low, high)]
    return f"The least and the most expensive: {'; '.join(ends)}."


SECTION = statistic(rows, lead, headings={"a": "solver"}, chart="scatter", order=290)
