"""How often does an answer that only the specialist knows reach the hybrid's answer?

Questions on which the specialist abstains are in neither share. Any other missing answer counts by the rule
--unanswered. A question counts whether or not the hybrid called a tool.

n: questions that all three have and none failed on, with the specialist right and the MLLM alone not right
source: ours; docs/study.md

- right by the specialist only: share kept = questions that the hybrid answers correctly / questions with specialist
  right, MLLM alone not right
- right by the model only: share lost = questions that the hybrid does not answer correctly / questions with MLLM alone
  right, specialist wrong [n: questions that all three have and none failed on, with the MLLM
  alone right and the specialist wrong]

The specialist knows what the MLLM lacks if it answers correctly and the MLLM alone does not; the reverse holds if it
answers wrongly and the MLLM alone correctly. If it abstains, it can neither reach nor harm an answer. `evidence.py`
judges the output of the hybrid's own calls; here a question counts even without a call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.parts import parts
from hybrid.scoring.result import Result
from hybrid.scoring.score import answered

NAME: Final = "knowledge"
REACHED: Final = "right by the specialist only: share kept"
LOST: Final = "right by the model only: share lost"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield the shares kept and lost, in total and by task, if a hybrid's MLLM alone and specialist were run too."""
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
                    # A share of no questions has no value; such a row is reported only over all questions.
                    if over.any() or (len(part) and not part.row.group):
                        ids = tuple(part.seen.ids[over * counts > 0])
                        yield from part.gated(part.share(quantity, over * counts, over, ids=ids))


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State how many answers known to only one part the hybrid solver adopts, and how many it loses."""
    sentences = []
    for group in comparison.groups:
        by_quantity = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if group.alone is not None and by_quantity:
            reached, lost_row = by_quantity[REACHED], by_quantity[LOST]
            sentences.append(
                f"{group.hybrid.solver} is right on {_of(reached, 'the ')} questions that only {reached.a} gets right, "
                f"and wrong on {_of(lost_row, 'the ')} questions that only {group.alone.solver} gets right."
            )
    return " ".join(sentences)


def _of(row: Result, the: str = "") -> str:
    """Return `3 of the 8`, or a percentage if guesses or repetitions make counts fractional."""
    is_count = math.isclose((row.value or 0.0) * (row.n or 0), len(row.ids))
    return f"{len(row.ids) if is_count else f'{100 * (row.value or 0.0):.0f} %'} of {the}{row.n}"


SECTION = statistic(rows, lead, headings={"a": "specialist", "b": "hybrid"}, order=135)
