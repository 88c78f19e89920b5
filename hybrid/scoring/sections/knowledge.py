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
from collections.abc import Iterator, Sequence
from typing import Final

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.parts import parts
from hybrid.scoring.result import Result
from hybrid.scoring.table import answered

NAME: Final = "knowledge"
REACHED: Final = "right by the specialist only: share kept"
LOST: Final = "right by the model only: share lost"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Both shares of each hybrid solver with an MLLM alone and a specialist, over all and by task, with their ids."""
    for group in comparison.groups:
        if group.alone is not None and group.specialist is not None:
            solvers = (group.hybrid, group.alone, group.specialist)
            for part in parts(comparison, NAME, *solvers, sides=(group.specialist, group.hybrid)):
                hybrid, alone, specialist = part.seen.right
                says = answered(part.seen.answer[2])
                for quantity, counts, over in (
                    (REACHED, hybrid, says * specialist * (1 - alone)),
                    (LOST, 1 - hybrid, says * (1 - specialist) * alone),
                ):
                    # A share of no question is told over all only, without a value.
                    if over.any() or (len(part) and not part.row.group):
                        ids = tuple(part.seen.ids[over * counts > 0])
                        yield from part.gated(part.share(quantity, over * counts, over, ids=ids))


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """How much of what one part alone knows the hybrid solver answers rightly, or loses."""
    sentences = []
    for group in comparison.groups:
        by_quantity = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if group.alone is not None and by_quantity:
            reached, lost_row = by_quantity[REACHED], by_quantity[LOST]
            sentences.append(
                f"{group.hybrid.solver} answers {_of(reached, 'the ')} questions rightly that "
                f"{reached.a} knows and {group.alone.solver} alone does not, and loses {_of(lost_row)} the "
                "other way round."
            )
    return " ".join(sentences)


def _of(row: Result, the: str = "") -> str:
    """`3 of the 8`; a share where no answer that counts as a guess, or a repetition, makes fractions of them."""
    is_count = math.isclose((row.value or 0.0) * (row.n or 0), len(row.ids))
    return f"{len(row.ids) if is_count else f'{100 * (row.value or 0.0):.0f} %'} of {the}{row.n}"


SECTION = statistic(rows, lead, headings={"a": "specialist", "b": "hybrid"}, order=135)
