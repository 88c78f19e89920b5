"""Which calls changed nothing, and what would skipping them save?

same answer as alone: of the questions with a call, those with the answer that the MLLM gives alone. Their calls could
have been skipped: what asking the MLLM alone about exactly these would have cost less, were they known beforehand. A
call that ended in a fault is no call. A model that draws its answers changes some by itself; of repetitions the first
is read.

n: questions that both answered and none failed
source: ours; the question is that of ToolGate, arXiv 2606.03054 (docs/study.md)
values: no bounds

- same answer as alone (0 to 1) = questions with a call and the same answer (or none) alone and with tools / questions
  with a call [n: questions that both answered and none failed, with a call]
- <calls|seconds|tokens|USD> that could have been skipped = sum over questions with a call and an unchanged answer of:
  with tools - alone. None where the cost of a question was not recorded. Seconds are those of model and tools,
  without queues.
- share of <calls|seconds|tokens|USD> = skipped / sum over all questions of: with tools - alone. None where the tools
  cost nothing more. Sums of this run, so without an interval.

Of the questions about which a tool was called, those with the answer that the MLLM gives alone too (or none either
way). To skip their calls is to ask the MLLM alone: each saves what it took with tools minus what it took alone.
ToolGate (arXiv 2606.03054) asks the same of single calls; here the answer before each call is not known, and a question
is skipped whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from hybrid.core.types import Attempt
from hybrid.display.terminal import how_many
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.findings import heard
from hybrid.scoring.groups import is_imported
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.cost import COSTS
from hybrid.scoring.table import Flags, Floats
from hybrid.stats import ratio_interval

NAME: Final = "unchanged"
UNCHANGED: Final = "same answer as alone"
CALLS: Final = "calls"
# In which the saving is told, in this order.
UNITS: Final = (CALLS, "seconds", "tokens", "USD")


def rows(comparison: Comparison) -> Iterator[Result]:
    """For each hybrid solver whose MLLM was asked alone too: the share over all and by task, the saving over all."""
    for group in comparison.groups:
        if group.alone is not None and group.hybrid.folder is not None:
            yield from _of_pair(comparison, group.alone, group.hybrid)


def _of_pair(comparison: Comparison, alone: Scored, hybrid: Scored) -> Iterator[Result]:
    verdicts = heard(hybrid)
    for part in parts(comparison, NAME, alone, hybrid, repeated=False):
        traced = part.only(np.array([name in verdicts and not verdicts[name].no_trace for name in part.seen.ids], bool))
        of_each = [verdicts[name].calls for name in traced.seen.ids]
        calls = np.array([sum(call.fault is None for call in question_calls) for question_calls in of_each], float)
        has_calls, unchanged = calls > 0, (traced.seen.answer[0] == traced.seen.answer[1]) & (calls > 0)
        if not part.row.group:
            # Without any call nothing could have been skipped, in no task either.
            if not has_calls.any():
                return
            unread, failed = (
                len(part) - len(traced),
                sum(call.fault is not None for question_calls in of_each for call in question_calls),
            )
            traced = traced.noted(
                f"{unread} without a readable trace" if unread else "",
                f"{how_many(failed, 'call')} ended in faults, left out" if failed else "",
            )
        if has_calls.any():
            ids = tuple(traced.seen.ids[unchanged])
            share = traced.share(UNCHANGED, unchanged.astype(float), has_calls.astype(float), ids=ids, none="")
            yield from part.gated(share)
        if not part.row.group:
            yield from _savings(traced, (alone, hybrid), calls, unchanged)


def spent(attempt: Attempt | None) -> dict[str, float | None]:
    """By unit the sum over the asks of a question; a unit that one of them lacks is unknown."""
    total: dict[str, float | None] = {}
    for _, unit, price in COSTS:
        parts = [price(exchange.reply.usage) for exchange in attempt.exchanges] if attempt else [None]
        present = [part for part in parts if part is not None]
        total[unit] = sum(present) if len(present) == len(parts) else None
    return total


def _savings(part: Part, pair: tuple[Scored, Scored], calls: Floats, unchanged: Flags) -> Iterator[Result]:
    """In each unit the saving and its share of what the tools cost over all questions; None where it is unknown."""
    # None where another program made the answers.
    attempts: list[Mapping[str, Attempt]] = [
        {} if solver.folder is None or is_imported(solver) else solver.folder.recorded(solver.recorded).without_steps
        for solver in pair
    ]
    spent_alone, spent_hybrid = ([spent(by_id.get(name)) for name in part.seen.ids] for by_id in attempts)
    for unit in UNITS:
        sides = [[0.0] * len(part), calls.tolist()]
        if unit != CALLS:
            sides = [[of[unit] for of in amounts] for amounts in (spent_alone, spent_hybrid)]
        whose = [solver.solver for solver, side in zip(pair, sides, strict=True) if None in side]
        skipped = share = None
        if whose:
            lacking = sum(None in amounts for amounts in zip(*sides, strict=True))
            note = f"{unit} of {' and '.join(whose)} not recorded for {lacking} of {how_many(len(part))}"
        else:
            added = np.array(sides[1], float) - np.array(sides[0], float)
            skipped, total = float(added[unchanged].sum()), float(added.sum())
            units, saved = part.seen.unit.tolist(), np.where(unchanged, added, 0.0)
            share, note = (skipped / total, "") if total > 0 else (None, f"no {unit} more with tools than alone")
            # Where no question costs less with tools their sum is above 0, however few questions there are.
            if share is not None and (added < 0).any() and ratio_interval(saved, added, units) is None:
                share, note = None, f"not given: the {unit} that tools cost do not differ from 0 (95 %)"
        # Sums of this run follow no rule of what no answer counts.
        yield part.number(
            f"{unit} that could have been skipped", skipped, unit=unit, note=note if whose else "", none=""
        )
        yield part.number(f"share of {unit}", share, note=note, none="")


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """How often calls left the answer as it was, and what skipping these would save of what the tools cost."""
    sentences = []
    for group in comparison.groups:
        by_quantity = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if share := by_quantity.get(UNCHANGED):
            count = f"{len(share.ids)} of the {share.n} questions with calls have the answer of {share.a} alone"
            shares = {unit: part.value for unit in UNITS if (part := by_quantity.get(f"share of {unit}"))}
            parts = [f"{100 * value:.0f} % of the {unit}" for unit, value in shares.items() if value is not None]
            costs = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
            saved = f"; skipping their calls saves {costs} that tools cost" if parts else ""
            sentences.append(f"{group.hybrid.solver}: {count}{saved}.")
    return " ".join(sentences)


SECTION = statistic(rows, lead, headings={"a": "alone", "b": "with tools"}, order=119)
