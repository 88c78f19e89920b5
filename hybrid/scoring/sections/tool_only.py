"""What is solved only with tools, and what only without?

The settings without tools are all forms of the same MLLM alone in this comparison: with images, captions or text
only, and repetitions. A model that draws its answers solves others each time: by luck says how many.

n: questions that all of these answered and none failed
source: ours; docs/study.md
values: 0 to n, in questions

- tool-only solved = right with tools and wrong in every setting without [source: arXiv 2606.02357; docs/study.md]
- tool-only lost = wrong with tools and right in a setting without [source: arXiv 2606.02357; docs/study.md]
- by luck = what one more run without tools would solve anew, counted over repetitions. Compare with tool-only solved:
  as many may be luck.
- by luck at most = n a(1 - a), of accuracy a
- lost by luck = what one more run without tools would miss that the others solve, counted over repetitions. Compare
  with tool-only lost: as many may be luck.
- lost by luck at most = n a(1 - a), of accuracy a
- solved without tools too (0 to 1) = questions solved with tools and in a setting without / questions solved with
  tools. Interval: Wilson. [n: questions solved with tools; source: arXiv 2606.02357; docs/study.md]

The settings without tools are all forms of the MLLM alone (images, captions, text only) and all of their repetitions.
After "Do Multimodal Agents Really Benefit from Tool Use?" (arXiv 2606.02357), which counts what is solved with tools
and by at least one setting without; the correction for luck is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import ComparisonGroup, repeated_as, role
from hybrid.scoring.overlap import SharedQuestion
from hybrid.scoring.result import FRACTION, QUESTIONS, Result, gated
from hybrid.scoring.score import Scored
from hybrid.stats import combine, interval, wilson
from hybrid.types import Cell, Metric

NAME: Final = "tool_only"
SOLVED: Final = "tool-only solved"
LOST: Final = "tool-only lost"
WITHOUT_TOO: Final = "solved without tools too"
LUCK: Final = "by luck"
MOST: Final = "by luck at most"
LUCK_LOST: Final = "lost by luck"
MOST_LOST: Final = "lost by luck at most"


def rows(found: Comparison) -> Iterator[Result]:
    """Counts for each hybrid solver with at least one setting without tools, over all and by task."""
    for group in found.groups:
        without = settings_without_tools(found.solvers, group)
        if without:
            shared = found.overlap(group.hybrid, *without)
            left_out = f"left out: {shared.left_out}" if shared.left_out else ""
            for name, part in {"": shared, **shared.by_group(found.options.by)}.items():
                if part.kept:
                    note = "; ".join(filter(None, ("" if name else left_out, _luck_note(without))))
                    row = Result(NAME, "", QUESTIONS, None, without[0].solver, group.hybrid.solver, group=name)
                    made = _of_questions(replace(row, note=note, none=found.rule), part.kept, without)
                    yield from gated(made, part.untested(allow_failed=found.options.allow_failed, whole=shared))


def settings_without_tools(solvers: Sequence[Scored], group: ComparisonGroup) -> tuple[Scored, ...]:
    """Every form of the group's MLLM without tools, repetitions included; the plain one first."""
    model = group.hybrid.model
    own = [one for one in solvers if role(one) == "mllm" and one.model == model and not one.answered_nothing]
    return tuple(sorted(own, key=lambda one: one is not group.alone))


def _of_questions(row: Result, kept: Sequence[SharedQuestion], without: Sequence[Scored]) -> Iterator[Result]:
    places = range(1, len(without) + 1)
    counted = replace(row, n=len(kept))
    quantities = (
        (SOLVED, LUCK if len(_repetitions(without)) > 1 else MOST, _solved_by),
        (LOST, LUCK_LOST if len(_repetitions(without)) > 1 else MOST_LOST, _missed_by),
    )
    for quantity, luck, of in quantities:
        each = [(one.first.id, of(one, 0, places)) for one in kept]
        ids = tuple(identity for identity, count in each if count)
        yield replace(counted, quantity=quantity, value=math.fsum(count for _, count in each), ids=ids)
        if (by_chance := _luck(kept, without, of)) is not None:
            yield replace(counted, quantity=luck, value=by_chance)
    cells = [
        Cell("", one.first.unit, one.right[0] - _solved_by(one, 0, places), one.right[0])
        for one in kept
        if one.right[0]
    ]
    if cells:
        metric = Metric(WITHOUT_TOO, combine(cells, "ratio"), len(cells), "ratio", tuple(cells))
        whole = all(cell.numerator in (0, 1) and cell.denominator == 1 for cell in cells)
        ends = wilson(round(sum(cell.numerator for cell in cells)), len(cells)) if whole else interval(metric)
        low, high = (ends.low, ends.high) if ends else (None, None)
        share = replace(row, quantity=WITHOUT_TOO, unit=FRACTION, value=metric.value, n=len(cells))
        yield replace(share, low=low, high=high)


ByOne = Callable[[SharedQuestion, int, Iterable[int]], float]
"""How much a question counts for one of its solvers next to the others."""


def _solved_by(row: SharedQuestion, place: int, others: Iterable[int]) -> float:
    """Right by the solver at this place, and by none of the others."""
    return row.right[place] * math.prod(1 - row.right[other] for other in others)


def _missed_by(row: SharedQuestion, place: int, others: Iterable[int]) -> float:
    """Not right by the solver at this place, and right by one of the others."""
    return (1 - row.right[place]) * (1 - math.prod(1 - row.right[other] for other in others))


def _luck(kept: Sequence[SharedQuestion], without: Sequence[Scored], of: ByOne) -> float | None:
    """How many questions one more run without tools would solve, or miss, that the others do not; None where none can.

    With several runs of one setting it is counted: each repetition against all other settings, and the mean of these.
    With one run at a temperature above 0 it is the greatest that the accuracy allows: a question that is right with
    probability p is right in one run and not in another with p(1 - p), whose sum is at most n a(1 - a) for accuracy a.
    """
    repeated = _repetitions(without)
    if len(repeated) > 1:
        counts = []
        for place in repeated:
            others = [other for other in range(1, len(without) + 1) if other != place]
            counts.append(sum(of(row, place, others) for row in kept))
        return sum(counts) / len(counts)
    if not _draws(without[0]):
        return None
    accuracy = sum(row.right[1] for row in kept) / len(kept)
    return len(kept) * accuracy * (1 - accuracy)


def _repetitions(without: Sequence[Scored]) -> Collection[int]:
    """The places, from 1, of the runs that asked as the first setting did."""
    kinds = list(map(repeated_as, without))
    return [place for place, kind in enumerate(kinds, 1) if kind == kinds[0]]


def _draws(scored: Scored) -> bool:
    """Whether the model draws its answers, so that it may answer otherwise when asked again."""
    if scored.folder is None:
        return True
    model = scored.manifest["identity"].get("model")
    return not (isinstance(model, Mapping) and model.get("temperature") == 0)


def _luck_note(without: Sequence[Scored]) -> str:
    if len(_repetitions(without)) > 1 or not _draws(without[0]):
        return ""
    return "by luck at most: asked once and drawn; --setting repeats=3 measures it"


def lead(found: Comparison, made: Sequence[Result]) -> str:
    """Of what each hybrid solver solves, how much is solved without tools too, and what luck leaves of the rest."""
    said = []
    for group in found.groups:
        own = {row.quantity: row for row in made if row.b == group.hybrid.solver and not row.group}
        if too := own.get(WITHOUT_TOO):
            only, luck = own[SOLVED], own.get(LUCK) or own.get(MOST)
            chance = f", {luck.quantity} {luck.value:.1f}" if luck else ""
            share = f"{100 * (too.value or 0):.0f} % of the {too.n} questions solved with tools are solved without too"
            said.append(f"{group.hybrid.solver}: {share}, {only.value:.0f} only with tools{chance}.")
    return " ".join(said)


SECTION = statistic(
    rows, lead, headings={"a": "without tools", "b": "with tools"}, chart="counts", charted=(SOLVED, LOST), order=117
)
