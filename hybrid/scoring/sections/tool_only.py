"""Questions solved only with tools, compared with every setting without them, and how many of them may be luck.

    hybrid compare RUN RUN-WITH-CAPTIONS --only tool_only

The settings without tools are all forms of the MLLM alone (images, captions, text only) and all of their repetitions.
After "Do Multimodal Agents Really Benefit from Tool Use?" (arXiv 2606.02357), which counts what is solved with tools
and by at least one setting without; the correction for luck is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.compare import Comparison
from hybrid.scoring.groups import ComparisonGroup, role, word
from hybrid.scoring.overlap import Overlap, SharedQuestion
from hybrid.scoring.result import FRACTION, QUESTIONS, Result, Section
from hybrid.scoring.score import Scored
from hybrid.stats import wilson

NAME: Final = "tool_only"
SOLVED: Final = "tool-only solved"
LOST: Final = "tool-only lost"
WITHOUT_TOO: Final = "solved without tools too"
LUCK: Final = "by luck"
MOST: Final = "by luck at most"


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
                    yield from _of_questions(replace(row, note=note), part, without)


def settings_without_tools(solvers: Sequence[Scored], group: ComparisonGroup) -> tuple[Scored, ...]:
    """Every form of the group's MLLM without tools, repetitions included; the plain one first."""
    model = group.hybrid.model
    own = [one for one in solvers if role(one) == "mllm" and one.model == model and not one.answered_nothing]
    return tuple(sorted(own, key=lambda one: one is not group.alone))


def _of_questions(row: Result, shared: Overlap, without: Sequence[Scored]) -> Iterator[Result]:
    kept = shared.kept
    solved = _ids(kept, lambda right: right[0])
    only = _ids(kept, lambda right: right[0] and not any(right[1:]))
    lost = _ids(kept, lambda right: not right[0] and any(right[1:]))
    counted = replace(row, n=len(kept))
    yield replace(counted, quantity=SOLVED, value=float(len(only)), ids=only)
    yield replace(counted, quantity=LOST, value=float(len(lost)), ids=lost)
    luck = _luck(kept, without)
    if luck is not None:
        yield replace(counted, quantity=LUCK if len(_repetitions(without)) > 1 else MOST, value=luck)
    if solved:
        k, n = len(solved) - len(only), len(solved)
        ends = wilson(k, n)
        low, high = (ends.low, ends.high) if ends else (None, None)
        yield replace(row, quantity=WITHOUT_TOO, unit=FRACTION, value=k / n, n=n, low=low, high=high)


def _ids(kept: Sequence[SharedQuestion], wanted: Callable[[tuple[bool, ...]], bool]) -> tuple[str, ...]:
    return tuple(row.first.id for row in kept if wanted(row.right))


def _luck(kept: Sequence[SharedQuestion], without: Sequence[Scored]) -> float | None:
    """How many questions one more run without tools would solve that the others do not; None at temperature 0.

    With several runs of one setting it is counted: each repetition against all other settings, and the mean of these.
    With one run at a temperature above 0 it is the greatest that the accuracy allows: a question that is right with
    probability p is solved by one run and not by another with p(1 - p), whose sum is at most n a(1 - a) for accuracy a.
    """
    repeated = _repetitions(without)
    if len(repeated) > 1:
        counts = []
        for place in repeated:
            others = [other for other in range(1, len(without) + 1) if other != place]
            counts.append(sum(row.right[place] and not any(row.right[other] for other in others) for row in kept))
        return sum(counts) / len(counts)
    if not _draws(without[0]):
        return None
    accuracy = sum(row.right[1] for row in kept) / len(kept)
    return len(kept) * accuracy * (1 - accuracy)


def _repetitions(without: Sequence[Scored]) -> Collection[int]:
    """The places, from 1, of the runs that asked as the first setting did."""
    kinds = [(word(one), one.folder and one.folder.path) for one in without]
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


COUNTS = "questions that all of these answered and none failed"
PAPER = "arXiv 2606.02357; docs/study.md"

SECTION = Section(
    NAME,
    "What is solved only with tools, and what only without?",
    (
        MetricCard(
            SOLVED, "right with tools and wrong in every setting without", COUNTS, PAPER, values="0 to n, in questions"
        ),
        MetricCard(
            LOST, "wrong with tools and right in a setting without", COUNTS, PAPER, values="0 to n, in questions"
        ),
        MetricCard(
            LUCK,
            "what one more run without tools would solve anew, counted over repetitions",
            COUNTS,
            "ours; docs/study.md",
            "Compare with tool-only solved: as many may be luck.",
            "0 to n, in questions",
        ),
        MetricCard(MOST, "n a(1 - a), of accuracy a", COUNTS, "ours; docs/study.md", values="0 to n, in questions"),
        MetricCard(
            WITHOUT_TOO,
            "questions solved with tools and in a setting without / questions solved with tools",
            "questions solved with tools",
            PAPER,
            "Interval: Wilson.",
        ),
    ),
    rows,
    lead,
    about=(
        "The settings without tools are all forms of the same MLLM alone in this comparison: with images, captions or "
        "text only, and repetitions. A model that draws its answers solves others each time: by luck says how many."
    ),
    headings={"a": "without tools", "b": "with tools"},
    chart="counts",
    charted=(SOLVED, LOST),
    order=117,
)
