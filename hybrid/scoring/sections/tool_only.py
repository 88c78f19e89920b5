"""What is solved only with tools, and what only without?

The settings without tools are all forms of the MLLM alone in this comparison: with images, captions or text only, and
repetitions. Only a model that samples its answers solves different questions each time; by luck estimates how many.

n: questions that all of these settings answered without a failure
source: ours; docs/study.md
values: 0 to n, in questions

- tool-only solved = right with tools and wrong in every setting without [source: arXiv 2606.02357; docs/study.md]
- tool-only lost = wrong with tools and right in a setting without [source: arXiv 2606.02357; docs/study.md]
- by luck = questions that one more run without tools would newly solve, counted over repetitions. Compare with
  tool-only solved: that many may be luck.
- by luck at most = n a(1 - a), for accuracy a
- lost by luck = questions that one more run without tools would miss and the other runs solve, counted over
  repetitions. Compare with tool-only lost: that many may be luck.
- lost by luck at most = n a(1 - a), for accuracy a
- solved without tools too (0 to 1) = questions solved with tools and in a setting without / questions solved with
  tools. Interval: Wilson for separate questions, otherwise the score
  interval over clusters. [n: questions solved with tools; source: arXiv
  2606.02357; docs/study.md]

The settings without tools are all forms of the MLLM alone (images, captions, text only) and all of their repetitions.
This follows "Do Multimodal Agents Really Benefit from Tool Use?" (arXiv 2606.02357), which counts what is solved with
tools and in at least one setting without; the correction for luck is an addition of this project.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hybrid.core.types import Kind, Question
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import is_imported, repeated_as, role
from hybrid.scoring.model_settings import draws_answers, rates_choices
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import QUESTIONS, Result
from hybrid.scoring.score import Floats, Scored

NAME: Final = "tool_only"
SOLVED: Final = "tool-only solved"
LOST: Final = "tool-only lost"
WITHOUT_TOO: Final = "solved without tools too"
LUCK: Final = "by luck"
BY_LUCK_AT_MOST: Final = "by luck at most"
LUCK_LOST: Final = "lost by luck"
MAX_LOST: Final = "lost by luck at most"
ONCE: Final = "by luck at most: asked once and drawn"
REPEAT: Final = "; --setting repeats=3 measures it"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield counts, in total and by task, for each hybrid solver with at least one setting without tools."""
    for group in comparison.groups:
        # Every form of the group's MLLM without tools, including repetitions; the plain form comes first.
        model, alone = group.hybrid.model, group.alone
        candidates = [
            solver
            for solver in comparison.solvers
            if role(solver) == "mllm" and solver.model == model and not solver.answered_nothing
        ]
        without = sorted(candidates, key=lambda solver: solver is not alone)
        if not without:
            continue
        # Positions of the repetitions of the first setting.
        repeats = [place for place, solver in enumerate(without) if repeated_as(solver) == repeated_as(without[0])]
        drawn_once = len(repeats) == 1 and _draws(without[0])
        for part in parts(comparison, NAME, group.hybrid, *without, sides=(without[0], group.hybrid)):
            if len(part):
                note = _note_on_luck(without[0]) if drawn_once else ""
                yield from _of_part(part.noted(note), repeats, drawn_once=drawn_once)


def _draws(alone: Scored) -> bool:
    """Return whether any answer could differ if asked again: the likelihoods of a choice's options could not."""
    kinds = {question.kind for question in alone.questions.values() if isinstance(question, Question)}
    all_rated = rates_choices(alone.identity) and kinds == {Kind.CHOICE}
    return draws_answers(alone.identity) and not all_rated


def _note_on_luck(alone: Scored) -> str:
    """Return the note on the upper bound of luck.

    Recorded answers cannot be drawn again to measure it, and a run that rates choices by likelihood takes no `repeats`.
    """
    is_recorded = is_imported(alone) or (alone.model or "").startswith("replay:")
    return ONCE if is_recorded or rates_choices(alone.identity) else ONCE + REPEAT


def _of_part(part: Part, repeats: Sequence[int], *, drawn_once: bool) -> Iterator[Result]:
    tools, others = part.seen.right[0], part.seen.right[1:]
    lucky = {SOLVED: LUCK, LOST: LUCK_LOST} if len(repeats) > 1 else {SOLVED: BY_LUCK_AT_MOST, LOST: MAX_LOST}
    for quantity, luck in lucky.items():
        solved = quantity == SOLVED
        yield part.count(quantity, _only(tools, others, solved=solved))
        if (by_chance := _luck(others, repeats, drawn_once=drawn_once, solved=solved)) is not None:
            yield part.number(luck, by_chance, unit=QUESTIONS)
    if tools.any():
        yield from part.gated(part.share(WITHOUT_TOO, tools - _only(tools, others, solved=True), tools))


def _only(column: Floats, others: Sequence[Floats], *, solved: bool) -> Floats:
    """Return by question how far, 0..1, `column` is right and no other is.

    With `solved` False, return how far `column` is wrong and at least one other is right.
    """
    none = np.prod([1 - other for other in others], 0)
    alone: Floats = column * none if solved else (1 - column) * (1 - none)
    return alone


def _luck(right: Sequence[Floats], repeats: Sequence[int], *, drawn_once: bool, solved: bool) -> float | None:
    """Return how many questions one more run without tools would be expected to change by chance.

    With `solved`, these are questions that only this run solves; otherwise questions that it misses and another solves.

    With several runs of one setting, the number is counted: each repetition is compared with all other settings, and
    the counts are averaged. With one run at a temperature above 0 it is an upper bound: a question that is right with
    probability p is right in one run and wrong in another with probability p(1 - p), and the sum of these is at most n
    a(1 - a) for accuracy a. Returns None for a single run at temperature 0.
    """
    if len(repeats) > 1:
        others = {at: [*right[:at], *right[at + 1 :]] for at in repeats}
        return sum(float(_only(right[at], columns, solved=solved).sum()) for at, columns in others.items()) / len(
            others
        )
    if not drawn_once:
        return None
    accuracy = float(right[0].sum()) / len(right[0])
    return len(right[0]) * accuracy * (1 - accuracy)


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State which share of a hybrid's solved questions needs no tools, and how much of the rest may be luck."""
    sentences = []
    for group in comparison.groups:
        by_quantity = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if too := by_quantity.get(WITHOUT_TOO):
            only, luck = by_quantity[SOLVED], by_quantity.get(LUCK) or by_quantity.get(BY_LUCK_AT_MOST)
            chance = f", {luck.quantity} {luck.value:.1f}" if luck else ""
            # Over repetitions the counts are means, and n counts the questions solved in any repetition.
            repeated = len(comparison.repetitions(group.hybrid)) > 1
            solved, digits, mean = (
                ("questions", 1, " (mean over repetitions)") if repeated else (f"{too.n} questions", 0, "")
            )
            share = f"{100 * (too.value or 0):.0f} % of the {solved} solved with tools are solved without too"
            sentences.append(f"{group.hybrid.solver}: {share}, {only.value:.{digits}f} only with tools{mean}{chance}.")
    return " ".join(sentences)


SECTION = statistic(
    rows, lead, headings={"a": "without tools", "b": "with tools"}, chart="counts", charted=(SOLVED, LOST), order=117
)
