"""Which calls changed nothing, and what would skipping them save?

same answer as alone: the share of questions with a call that have the same answer as the MLLM alone. Their calls could
have been skipped; the saving is the difference from the cost of asking the MLLM alone about exactly these questions, if
they had been known beforehand. A call that ended in a fault does not count as a call. A model that samples its
answers changes some of them even without tools. Only the first repetition is used.

n: questions that both solvers answered without a failure
source: ours; the question is from ToolGate, arXiv 2606.03054 (docs/study.md)
values: no bounds

- same answer as alone (0 to 1) = questions with a call and the same answer (or none) alone and with tools / questions
  with a call [n: questions with a call that both solvers answered without a failure]
- <calls|seconds|tokens|USD> that could have been skipped = sum over questions with a call and an unchanged answer of:
  with tools - alone. None if the cost of a question was not recorded. Seconds are those of model and tools,
  without queues.
- share of <calls|seconds|tokens|USD> = skipped / sum over all questions of: with tools - alone. None if the tools
  cost nothing more. Sums of this run, so without an interval.

The section covers the questions with a call that have the same answer as the MLLM alone (or no answer either way).
Skipping their calls means asking the MLLM alone: each question saves its cost with tools minus its cost alone. ToolGate
(arXiv 2606.03054) asks the same about single calls; here the answer before each call is unknown, so the full question
is skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from hybrid.core.types import Usage
from hybrid.display.terminal import how_many
from hybrid.log.lines import OpenFile
from hybrid.scoring.attempt_facts import asks_of
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.findings import outputs_by_question
from hybrid.scoring.groups import is_imported
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import Result
from hybrid.scoring.score import Flags, Floats, Scored
from hybrid.scoring.sections.cost import COSTS
from hybrid.stats import ratio_interval

NAME: Final = "unchanged"
UNCHANGED: Final = "same answer as alone"
SILENT: Final = "of them without an answer either way"
CALLS: Final = "calls"
# Units of the saving, in this order.
UNITS: Final = (CALLS, "seconds", "tokens", "USD")
# What each question cost, by the open file of its attempts and by id.
_SPENT: Final[WeakKeyDictionary[OpenFile, dict[str, Mapping[str, float | None]]]] = WeakKeyDictionary()


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield the share of unchanged answers, in total and by task, and the saving, if a hybrid's MLLM alone was run."""
    for group in comparison.groups:
        if group.alone is not None and group.hybrid.folder is not None:
            yield from _of_pair(comparison, group.alone, group.hybrid)


def _of_pair(comparison: Comparison, alone: Scored, hybrid: Scored) -> Iterator[Result]:
    verdicts = outputs_by_question(hybrid)
    for part in parts(comparison, NAME, alone, hybrid, repeated=False):
        traced = part.only(np.array([name in verdicts and not verdicts[name].no_trace for name in part.seen.ids], bool))
        of_each = [verdicts[name].calls for name in traced.seen.ids]
        calls = np.array([sum(call.fault is None for call in question_calls) for question_calls in of_each], float)
        has_calls, unchanged = calls > 0, (traced.seen.answer[0] == traced.seen.answer[1]) & (calls > 0)
        if not part.row.group:
            # Without any call nothing could have been skipped, so no task needs a row either.
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
            silent = sum(answer is None for answer in traced.seen.answer[0][unchanged])
            yield from part.gated(share.noted(f"{silent} {SILENT}" if silent else ""))
        if not part.row.group:
            yield from _savings(traced, (alone, hybrid), calls, unchanged)


def spent(usages: Sequence[Usage] | None) -> dict[str, float | None]:
    """Return by unit the total cost of a question; None for a unit that one of its exchanges lacks.

    All are None if a reply of another run was reused, because its cost is not in this run.
    """
    total: dict[str, float | None] = {}
    if usages is not None and any(usage.reused_calls for usage in usages):
        return dict.fromkeys(unit for _, unit, _ in COSTS)
    for _, unit, price in COSTS:
        parts = [None] if usages is None else list(map(price, usages))
        present = [part for part in parts if part is not None]
        total[unit] = sum(present) if len(present) == len(parts) else None
    return total


def spent_on(solver: Scored, ids: Collection[str]) -> list[Mapping[str, float | None]]:
    """Return `spent` for each of these questions; all None if another program recorded the answers.

    A question is read once for all sections, as long as the file of attempts does not change.
    """
    recorded = None if solver.folder is None or is_imported(solver) else solver.folder.recorded(solver.recorded)
    if recorded is None or recorded.index.file is None:
        return [spent(None) for _ in ids]
    cache = _SPENT.setdefault(recorded.index.file, {})
    for name in ids:
        if name not in cache:
            cache[name] = spent(asks_of(recorded, name).usages if name in recorded.by_id else None)
    return [cache[name] for name in ids]


def _savings(part: Part, pair: tuple[Scored, Scored], calls: Floats, unchanged: Flags) -> Iterator[Result]:
    """Yield for each unit the saving and its share of the tools' cost over all questions; None if unknown."""
    spent_alone, spent_hybrid = (spent_on(solver, part.seen.ids) for solver in pair)
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
            # The sum is tested only if some question costs less with tools; otherwise it is certainly above 0.
            if share is not None and (added < 0).any() and ratio_interval(saved, added, units) is None:
                share, note = None, f"not given: the {unit} that tools cost do not differ from 0 (95 %)"
        # Calls and costs do not depend on the rule for unanswered questions.
        yield part.number(
            f"{unit} that could have been skipped", skipped, unit=unit, note=note if whose else "", none=""
        )
        yield part.number(f"share of {unit}", share, note=note, none="")


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State how often calls left the answer unchanged, and what share of the tools' cost skipping them would save."""
    sentences = []
    for group in comparison.groups:
        by_quantity = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if share := by_quantity.get(UNCHANGED):
            count = f"{len(share.ids)} of the {share.n} questions with calls have the same answer as {share.a} alone"
            count += "".join(f", {note}" for note in share.note.split("; ") if note.endswith(SILENT))
            shares = {unit: part.value for unit in UNITS if (part := by_quantity.get(f"share of {unit}"))}
            parts = [f"{100 * value:.0f} % of the {unit}" for unit, value in shares.items() if value is not None]
            costs = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
            saved = f"; skipping their calls would save {costs} that tools cost" if parts else ""
            sentences.append(f"{group.hybrid.solver}: {count}{saved}.")
    return " ".join(sentences)


SECTION = statistic(rows, lead, headings={"a": "alone", "b": "with tools"}, order=119)
