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
from dataclasses import dataclass, replace
from typing import Final

from hybrid.benchmarks.card import metric_of
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.findings import Heard, heard
from hybrid.scoring.groups import is_imported
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, Result, gated, with_interval
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.cost import COSTS
from hybrid.types import Attempt, Cell

NAME: Final = "unchanged"
UNCHANGED: Final = "same answer as alone"
CALLS: Final = "calls"
UNITS: Final = (CALLS, "seconds", "tokens", "USD")
"""In which the saving is told, in this order."""

Spent = Mapping[str, float | None]
"""By unit the cost of a question; None where it was not recorded."""


@dataclass(frozen=True)
class ToolCost:
    """A question that the MLLM answered alone and with tools, and what it cost both times."""

    id: str
    unit: str
    unchanged: bool
    """Whether both gave the same answer, or both none."""
    calls: int
    alone: Spent
    with_tools: Spent

    def added(self, unit: str) -> float | None:
        """Its use with tools minus its use alone; None where one of these is unknown."""
        if unit == CALLS:
            return float(self.calls)
        before, after = self.alone[unit], self.with_tools[unit]
        return None if before is None or after is None else after - before

    @property
    def skipped(self) -> bool:
        """Whether its calls changed nothing."""
        return self.unchanged and self.calls > 0


def rows(found: Comparison) -> Iterator[Result]:
    """For each hybrid solver whose MLLM was asked alone too: the share over all and by task, the saving over all."""
    for group in found.groups:
        if group.alone is not None and group.hybrid.folder is not None:
            yield from _of_pair(found, group.alone, group.hybrid)


def _of_pair(found: Comparison, alone: Scored, hybrid: Scored) -> Iterator[Result]:
    whole = found.overlap(alone, hybrid, repeated=False)
    said = heard(hybrid)
    questions = _questions(whole, said)
    if not any(one.calls for one in questions.values()):
        return
    notes = [whole.left_out]
    if unread := int(whole.kept.sum()) - len(questions):
        notes.append(f"{unread} without a readable trace")
    if lost := sum(call.fault is not None for name in questions for call in said[name].calls):
        notes.append(f"{lost} calls that ended in faults are left out")
    row, allow = Result(NAME, UNCHANGED, FRACTION, None, alone.solver, hybrid.solver), found.options.allow_failed
    own = list(questions.values())
    yield from gated(
        _share(replace(row, note="; ".join(filter(None, notes))), own), whole.untested(allow_failed=allow, whole=whole)
    )
    yield from _savings(row, own)
    for name, part in whole.by_group(found.options.by).items():
        own = [questions[name] for name in part.ids[part.kept] if name in questions]
        yield from gated(_share(replace(row, group=name), own), part.untested(allow_failed=allow, whole=whole))


def _questions(shared: Overlap, said: Mapping[str, Heard]) -> dict[str, ToolCost]:
    """By id the questions that both answered; those without a readable trace are left out."""
    alone, hybrid = shared.solvers
    before, after = _attempts(alone), _attempts(hybrid)
    kept = {}
    one, other = (answer[shared.kept] for answer in shared.answer)
    units = shared.unit[shared.kept]
    for identity, unit, same in zip(shared.ids[shared.kept], units, one == other, strict=True):
        if identity in said and not said[identity].no_trace:
            costs = (spent(before.get(identity)), spent(after.get(identity)))
            calls = sum(call.fault is None for call in said[identity].calls)
            kept[identity] = ToolCost(identity, unit, bool(same), calls, *costs)
    return kept


def _attempts(scored: Scored) -> Mapping[str, Attempt]:
    """A solver's attempts by id; none where another program made the answers."""
    if scored.folder is None or is_imported(scored):
        return {}
    return scored.folder.recorded(scored.recorded).without_steps


def spent(attempt: Attempt | None) -> Spent:
    """By unit the sum over the asks of a question; a unit that one of them lacks is unknown."""
    total: dict[str, float | None] = {}
    for _, unit, price in COSTS:
        parts = [price(exchange.reply.usage) for exchange in attempt.exchanges] if attempt else [None]
        known = [part for part in parts if part is not None]
        total[unit] = sum(known) if len(known) == len(parts) else None
    return total


def _share(row: Result, questions: Sequence[ToolCost]) -> Iterator[Result]:
    called = [one for one in questions if one.calls]
    if called:
        metric = metric_of(UNCHANGED, (Cell("", one.unit, float(one.unchanged), 1.0) for one in called))
        yield replace(with_interval(row, metric), ids=tuple(one.id for one in called if one.unchanged))


def _savings(row: Result, questions: Sequence[ToolCost]) -> Iterator[Result]:
    """In each unit the saving and its share of what the tools cost over all questions; None where it is unknown."""
    counted = replace(row, n=len(questions))
    for unit in UNITS:
        saved = replace(counted, quantity=f"{unit} that could have been skipped", unit=unit)
        share = replace(counted, quantity=f"share of {unit}")
        added = [cost for one in questions if (cost := one.added(unit)) is not None]
        if len(added) < len(questions):
            note = _unknown(row, unit, questions)
            yield from (replace(one, note=note) for one in (saved, share))
            continue
        total, skipped = sum(added), sum(cost for one, cost in zip(questions, added, strict=True) if one.skipped)
        yield replace(saved, value=skipped)
        if total > 0:
            yield replace(share, value=skipped / total)
        else:
            yield replace(share, note=f"no {unit} more with tools than alone")


def _unknown(row: Result, unit: str, questions: Sequence[ToolCost]) -> str:
    """Whose cost in a unit was not recorded, and of how many questions."""
    lacking = [one for one in questions if one.added(unit) is None]
    sides = ((row.a, [one.alone for one in lacking]), (row.b, [one.with_tools for one in lacking]))
    whose = [name for name, costs in sides if any(one[unit] is None for one in costs)]
    return f"{unit} of {' and '.join(whose)} not recorded for {len(lacking)} of {len(questions)} questions"


def lead(found: Comparison, made: Sequence[Result]) -> str:
    """How often calls left the answer as it was, and what skipping these would save of what the tools cost."""
    said = []
    for group in found.groups:
        own = {row.quantity: row for row in made if row.b == group.hybrid.solver and not row.group}
        if share := own.get(UNCHANGED):
            count = f"{len(share.ids)} of the {share.n} questions with calls have the answer of {share.a} alone"
            parts = [
                f"{100 * part.value:.0f} % of the {unit}"
                for unit in UNITS
                if (part := own.get(f"share of {unit}")) is not None and part.value is not None
            ]
            saved = f"; skipping their calls saves {_listed(parts)} that tools cost" if parts else ""
            said.append(f"{group.hybrid.solver}: {count}{saved}.")
    return " ".join(said)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


SECTION = statistic(rows, lead, headings={"a": "alone", "b": "with tools"}, order=119)
