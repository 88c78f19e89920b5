"""Is tool output used where it is needed?

A right output is needed if the model is wrong alone. use of right outputs: the share of these questions that the model
gets right with tools, minus the share with blank tools, because it gets some right without any output. effect of
perfect output: the interval is the 90 % one; output changes nothing if the interval is inside --margin, by either rule
for unanswered questions, and if more than the margin is left to gain. The first repetition is used.

n: questions that all of these have and none failed
source: ours; docs/statistics.md; outputs are judged as in section evidence

- right outputs used = right with tools / questions that are wrong alone with a right output [n: such questions]
- right outputs, blank tools = right with blank tools / the same questions [n: such questions]
- use of right outputs (-1 to 1) = right outputs used - right outputs, blank tools [n: such questions]
- perfect outputs used = right with oracle output / questions that are wrong alone, with a perfect output [n: such
  questions]
- effect of perfect output (-1 to 1) = with oracle output - with blank tools, or without a blank control - alone, by the
  headline metric; its interval is the 90 % one

An output is right if the specialist's rule, run on the tool output of this conversation, gives the right answer
(`findings.py`). The tests are two one-sided ones, as in `equivalence.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.findings import outputs_by_question
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import UNTESTED, Family, Result, adjusted, contrasted, gated, unit_of
from hybrid.scoring.score import Scored
from hybrid.scoring.tally import OTHER
from hybrid.stats import ends_of, equivalence

NAME: Final = "used"
ADOPTED, BLANK, USE = "right outputs used", "right outputs, blank tools", "use of right outputs"
PERFECT_USED, PERFECT = "perfect outputs used", "effect of perfect output"
NOTHING: Final = "changes nothing within"


def rows(comparison: Comparison) -> list[Result]:
    """Return rows over all questions, for each hybrid solver whose MLLM alone was run too."""
    results = [row for group in comparison.groups if group.alone is not None for row in _of_group(comparison, group)]
    return adjusted(results, lambda row: Family(row.quantity))


def _of_group(comparison: Comparison, group: ComparisonGroup) -> Iterator[Result]:
    alone, hybrid, blank, oracle = group.alone, group.hybrid, group.blank, group.oracle
    assert alone is not None  # noqa: S101 - `rows` requires it
    if hybrid.folder is not None:
        yield from _adopted(comparison, (hybrid, alone), ADOPTED, hybrid)
        if blank is not None:
            yield from _beyond_blank(comparison, hybrid, alone, blank)
    if oracle is not None:
        yield from _adopted(comparison, (oracle, alone), PERFECT_USED, hybrid)
        yield from _perfect(comparison, oracle, blank or alone, hybrid)


def _needed(comparison: Comparison, solvers: tuple[Scored, ...]) -> tuple[Part, Part]:
    """Return all shared questions, and the subset that the model alone gets wrong although a tool output is right."""
    part = next(parts(comparison, NAME, *solvers, repeated=False, notes=False))
    verdicts, right = outputs_by_question(solvers[0]), part.seen.correct()[1] == 1
    is_right = np.array([name in verdicts and verdicts[name].finding == "right" for name in part.seen.ids], bool)
    return part, part.only(is_right & ~right)


def _adopted(comparison: Comparison, pair: tuple[Scored, Scored], quantity: str, hybrid: Scored) -> Iterator[Result]:
    part, needed = _needed(comparison, pair)
    if len(needed):
        right = needed.seen.correct()[0] == 1
        ids = tuple(needed.seen.ids[right])
        row = needed.share(quantity, right.astype(float), ids=ids, none="", a=pair[1].solver, b=hybrid.solver)
        yield from part.gated(row)


def _beyond_blank(comparison: Comparison, hybrid: Scored, alone: Scored, blank: Scored) -> Iterator[Result]:
    part, needed = _needed(comparison, (hybrid, alone, blank))
    if not len(needed):
        return
    with_tools, _, with_blank = ((correct == 1).astype(float) for correct in needed.seen.correct())
    # Whether the model alone answers anything decides which outputs it needs, not what these two do with them.
    untested = part.shared.untested(solvers=(hybrid, blank))
    yield from gated([needed.share(BLANK, with_blank, a=alone.solver, b=hybrid.solver, none="")], untested)
    a, b = (needed.seen.ratio(USE, right) for right in (with_blank, with_tools))
    row = needed.number(USE, None, a=blank.solver, b=hybrid.solver, none="")
    yield contrasted(row, a, b, untested)[0]


def _perfect(comparison: Comparison, oracle: Scored, against: Scored, hybrid: Scored) -> Iterator[Result]:
    shared, margin = comparison.overlap(against, oracle), comparison.options.margin
    metrics = shared.headline(comparison.rule)
    if metrics is None or not shared.n:
        return
    a, b = metrics
    unit = unit_of(metrics)
    row = Result(NAME, PERFECT, unit, None, a=against.solver, b=hybrid.solver, n=a.n, none=comparison.rule)
    if reason := shared.untested(metrics):
        difference = None if a.value is None or b.value is None else b.value - a.value
        yield replace(row, value=difference).noted(UNTESTED[reason])
        return
    test = equivalence(a, b, margin)
    low, high = ends_of(test.interval)
    row = replace(row, value=test.difference, low=low, high=high, p=test.p_value, level=0.9)
    other = shared.headline(OTHER[comparison.rule]) or metrics
    is_equal = test.equal and equivalence(other[0], other[1], margin).equal
    # If the score without output is nearly 1, an output cannot change anything.
    has_room = (a.value or 0.0) < 1 - margin
    yield row.noted(f"{NOTHING} {margin:g}" if is_equal and has_room else "")


def changes_nothing(row: Result) -> bool:
    """Return whether perfect output is shown to have no effect beyond the margin."""
    return row.note.startswith(NOTHING) and row.holds


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State for each hybrid solver how many of the right outputs that it needed were used."""
    del comparison
    return " ".join(
        f"Of {row.n} right tool outputs that {row.b} needed, it used {len(row.ids)}."
        for row in section_rows
        if row.quantity == ADOPTED
    )


SECTION = statistic(rows, lead, headings={"a": "measured against", "b": "with tools"}, order=139)
