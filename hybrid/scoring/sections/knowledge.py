"""How much of what only the specialist knows reaches the answer, and how much of what only the MLLM knows is lost.

    hybrid compare RUN --only knowledge

The specialist knows what the MLLM lacks where it answers rightly and the MLLM alone does not; the other way round where
it answers wrongly and the MLLM alone rightly. Where it abstains it says nothing that could reach or harm an answer.
`evidence.py` is about what was found in the hybrid's own calls; here a question counts though nothing was called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hybrid.benchmarks.base import accuracy
from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.compare import Comparison
from hybrid.scoring.overlap import Overlap, SharedQuestion
from hybrid.scoring.result import FRACTION, Result, Section, with_interval

NAME: Final = "knowledge"
REACHED: Final = "right by the specialist only: share kept"
LOST: Final = "right by the model only: share lost"
HYBRID, ALONE, SPECIALIST = range(3)


class Share(NamedTuple):
    """Of which questions a share is, and which of them count."""

    over: Callable[[SharedQuestion], bool]
    counts: Callable[[SharedQuestion], bool]


def _says_wrong(row: SharedQuestion) -> bool:
    return row.scores[SPECIALIST].answer is not None and not row.right[SPECIALIST]


SHARES: Final = {
    REACHED: Share(lambda row: row.right[SPECIALIST] and not row.right[ALONE], lambda row: row.right[HYBRID]),
    LOST: Share(lambda row: row.right[ALONE] and _says_wrong(row), lambda row: not row.right[HYBRID]),
}


def rows(found: Comparison) -> Iterator[Result]:
    """Both shares of each hybrid solver with an MLLM alone and a specialist, over all and by task, with their ids."""
    for group in found.groups:
        if group.alone is not None and group.specialist is not None:
            whole = found.overlap(group.hybrid, group.alone, group.specialist)
            note = f"left out: {whole.left_out}" if whole.left_out else ""
            row = Result(NAME, "", FRACTION, None, group.specialist.solver, group.hybrid.solver)
            if whole.kept:
                yield from _shares(replace(row, note=note), whole)
            for name, part in whole.by_group(found.options.by).items():
                yield from _shares(replace(row, group=name), part)


def _shares(row: Result, shared: Overlap) -> Iterator[Result]:
    """A share of no question is told over all only, without a value."""
    for quantity, share in SHARES.items():
        over = [one for one in shared.kept if share.over(one)]
        if over or not row.group:
            marked = [replace(one.first, correct=float(share.counts(one))) for one in over]
            ids = tuple(one.id for one in marked if one.correct)
            made = with_interval(replace(row, quantity=quantity), accuracy(quantity, marked))
            yield replace(made, n=len(over), ids=ids)


def lead(found: Comparison, made: Sequence[Result]) -> str:
    """How many of the questions that one part alone knows the hybrid solver answers rightly, or loses."""
    said = []
    for group in found.groups:
        own = {row.quantity: row for row in made if row.b == group.hybrid.solver and not row.group}
        if group.alone is not None and own:
            reached, lost = own[REACHED], own[LOST]
            said.append(
                f"{group.hybrid.solver} answers {len(reached.ids)} of the {reached.n} questions rightly that "
                f"{reached.a} knows and {group.alone.solver} alone does not, and loses {len(lost.ids)} of {lost.n} the "
                "other way round."
            )
    return " ".join(said)


OURS = "ours; docs/study.md"

SECTION = Section(
    NAME,
    "How much of what only the specialist knows reaches the answer?",
    (
        MetricCard(
            REACHED,
            "questions that the hybrid answers rightly / questions with specialist right, MLLM alone not right",
            "questions with specialist right and MLLM alone not right, that all three have and none failed",
            OURS,
        ),
        MetricCard(
            LOST,
            "questions that the hybrid does not answer rightly / questions with MLLM alone right, specialist wrong",
            "questions with MLLM alone right and specialist wrong, that all three have and none failed",
            OURS,
        ),
    ),
    rows,
    lead,
    about=(
        "Questions on which the specialist abstains are in neither share. Only right answers count: no answer is not "
        "one. A question counts whether or not the hybrid called a tool about it."
    ),
    headings={"a": "specialist", "b": "hybrid"},
    order=135,
)
