"""How much of what only the specialist knows reaches the answer?

Questions on which the specialist abstains are in neither share. No other answer that is none counts as named above. A
question counts whether or not the hybrid called a tool about it.

n: questions with specialist right and MLLM alone not right, that all three have and none failed
source: ours; docs/study.md

- right by the specialist only: share kept = questions that the hybrid answers rightly / questions with specialist
  right, MLLM alone not right
- right by the model only: share lost = questions that the hybrid does not answer rightly / questions with MLLM alone
  right, specialist wrong [n: questions with MLLM alone right and specialist wrong, that all three have and none
  failed]

The specialist knows what the MLLM lacks where it answers rightly and the MLLM alone does not; the other way round where
it answers wrongly and the MLLM alone rightly. Where it abstains it says nothing that could reach or harm an answer.
`evidence.py` is about what was found in the hybrid's own calls; here a question counts though nothing was called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.overlap import Overlap, SharedQuestion
from hybrid.scoring.result import FRACTION, Result, gated, with_interval
from hybrid.stats import combine
from hybrid.types import Cell, Metric

NAME: Final = "knowledge"
REACHED: Final = "right by the specialist only: share kept"
LOST: Final = "right by the model only: share lost"
HYBRID, ALONE, SPECIALIST = range(3)


class Share(NamedTuple):
    """How much a question weighs in a share, 0..1, and how much of that counts."""

    over: Callable[[SharedQuestion], float]
    counts: Callable[[SharedQuestion], float]


def _says(row: SharedQuestion) -> bool:
    return row.scores[SPECIALIST].answer is not None


SHARES: Final = {
    REACHED: Share(
        lambda row: _says(row) * row.right[SPECIALIST] * (1 - row.right[ALONE]), lambda row: row.right[HYBRID]
    ),
    LOST: Share(
        lambda row: _says(row) * (1 - row.right[SPECIALIST]) * row.right[ALONE], lambda row: 1 - row.right[HYBRID]
    ),
}


def rows(found: Comparison) -> Iterator[Result]:
    """Both shares of each hybrid solver with an MLLM alone and a specialist, over all and by task, with their ids."""
    for group in found.groups:
        if group.alone is not None and group.specialist is not None:
            whole = found.overlap(group.hybrid, group.alone, group.specialist)
            note = f"left out: {whole.left_out}" if whole.left_out else ""
            row = Result(NAME, "", FRACTION, None, group.specialist.solver, group.hybrid.solver, none=found.rule)
            parts = {"": whole} if whole.kept else {}
            for name, part in {**parts, **whole.by_group(found.options.by)}.items():
                untested = part.untested(allow_failed=found.options.allow_failed, whole=whole)
                yield from gated(_shares(replace(row, group=name, note="" if name else note), part), untested)


def _shares(row: Result, shared: Overlap) -> Iterator[Result]:
    """A share of no question is told over all only, without a value."""
    for quantity, share in SHARES.items():
        over = [(one, weight) for one in shared.kept if (weight := share.over(one))]
        if over or not row.group:
            cells = tuple(Cell("", one.first.unit, weight * share.counts(one), weight) for one, weight in over)
            ids = tuple(one.first.id for one, _ in over if share.counts(one))
            metric = Metric(quantity, combine(cells, "ratio"), len(over), "ratio", cells)
            yield replace(with_interval(replace(row, quantity=quantity), metric), ids=ids)


def lead(found: Comparison, made: Sequence[Result]) -> str:
    """How much of what one part alone knows the hybrid solver answers rightly, or loses."""
    said = []
    for group in found.groups:
        own = {row.quantity: row for row in made if row.b == group.hybrid.solver and not row.group}
        if group.alone is not None and own:
            reached, lost = own[REACHED], own[LOST]
            said.append(
                f"{group.hybrid.solver} answers {_of(reached, 'the ')} questions rightly that "
                f"{reached.a} knows and {group.alone.solver} alone does not, and loses {_of(lost)} the "
                "other way round."
            )
    return " ".join(said)


def _of(row: Result, the: str = "") -> str:
    """`3 of the 8`; a share where no answer that counts as a guess, or a repetition, makes fractions of them."""
    whole = math.isclose((row.value or 0.0) * (row.n or 0), len(row.ids))
    return f"{len(row.ids) if whole else f'{100 * (row.value or 0.0):.0f} %'} of {the}{row.n}"


SECTION = statistic(rows, lead, headings={"a": "specialist", "b": "hybrid"}, order=135)
