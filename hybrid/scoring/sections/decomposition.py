"""Does the gain come from questions with a call or without, and from gains or less harm?

gain with a call: wrong alone, a tool was called, right with tools; harm: right alone, wrong with tools. gain = gain
with a call + gain without a call - harm with a call - harm without a call + gain by answering - harm by no answer. The
last two cover the questions that the model left unanswered alone or with tools. A call that ended in a fault does not
count as a call. No part shows a cause: blank tools show the effect of offering tools (section gain). Without
repetitions all parts include chance: a model that samples its answers gains and loses some even without tools.

n: questions that both solvers have and neither failed on
source: Ma et al. 2026, arXiv 2602.01334; intervals like those of other shares and differences (docs/study.md)

- gain (-1 to 1) = with tools - alone; gain = gain with a call + gain without a call - harm with a call - harm without
  a call + gain by answering - harm by no answer
- <gain|harm> <with|without> a call = mean over questions of max(with - alone, 0), or of max(alone - with, 0), on
  those that both answered, with a call or without: the product of the three shares below. Ma et al.: call gain, schema
  gain, call harm, schema harm; mass x policy x quality. Rows by set of tools (column tools called) add up to the part
  over all.
- gain by answering = mean over questions of max(with - alone, 0), on those left unanswered alone or with tools
- harm by no answer = mean over questions of max(alone - with, 0), on those left unanswered alone or with tools
- accuracy alone = accuracy of the MLLM without tools, at which the steps of the chart start
- P(<wrong|right> alone) = the share of questions that both answered and that the MLLM gets wrong, or right, without
  tools
- P(<call|no call> | <wrong|right> alone) = the share of these with, or without, a tool call
- P(right with tools | <call|no call>, wrong alone) = the share of these that the MLLM gets right with tools
- P(wrong with tools | <call|no call>, right alone) = the share of these that the MLLM gets wrong with tools

Let a and w in 0..1 be the MLLM's correctness alone and with tools on a question, and c = 1 if it called a tool. Then

    gain = mean(w - a) = gain with a call + gain without a call - harm with a call - harm without a call
           + gain by answering - harm by no answer

exactly, over any questions and for every task. On questions that both answered, gain with a call = mean(c max(w - a,
0)), gain without a call is the same over the other questions, and the harms use max(a - w, 0). Each is a product of
three shares: gain with a call = P(wrong alone) P(call | wrong alone) P(right with tools | call, wrong alone). Ma et al.
"What Does Vision Tool-Use Reinforcement Learning Really Learn?" (arXiv 2602.01334), section "Explain", use the names
call gain, schema gain, call harm, schema harm, and mass x policy x quality. A called tool need not be the cause: tools
that are only offered may harm a question with a call.

Fractions are an extension by this project, for graded answers, for unanswered questions that count as a guess, and for
repetitions. Then 1 - a is the possible gain on a question and a the possible loss, and the last share is the achieved
part of the possible gain with a call: 0..1, as max(w - a, 0) <= 1 - a. For a repeated solver with tools, each part is
the mean over its repetitions, with c and w of the same repetition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from statistics import fmean
from typing import Final

import numpy as np

from hybrid.core.types import Cell, Cells, Combine, Metric
from hybrid.display.tables import signed
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.findings import OutputVerdict, outputs_by_question
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, Result, gated
from hybrid.scoring.score import Floats, answered
from hybrid.scoring.sections import results
from hybrid.stats import Interval, combine, contrast, ends_of, interval

NAME: Final = "decomposition"
GAIN: Final = "gain"
PARTS: Final = ("gain with a call", "gain without a call", "harm with a call", "harm without a call")
# These two parts cover the questions left unanswered alone or with tools: tools made no answer better or worse there.
ANSWERING: Final = ("gain by answering", "harm by no answer")
ALL_PARTS: Final = (*PARTS, *ANSWERING)
# Sign of each part in the gain.
SIGNS: Final = (1, 1, -1, -1)
ALL_SIGNS: Final = (*SIGNS, 1, -1)
EQUATION: Final = "gain = gain with a call + gain without a call - harm with a call - harm without a call"
WITH_ANSWERING: Final = f"{EQUATION} + gain by answering - harm by no answer"
ACCURACY_ALONE: Final = "accuracy alone"


@dataclass(frozen=True)
class Term:
    """One part of the gain as mass x policy x quality, with the names of these quantities."""

    part: str
    mass: str
    policy: str
    quality: str
    # Whether the part covers the questions that the model alone gets right, or those that it gets wrong.
    right: bool
    # Whether the part covers the questions with a call, or those without.
    call: bool

    @property
    def factors(self) -> tuple[str, str, str]:
        """Names of the three shares whose product is the part: mass, policy and quality."""
        return self.mass, self.policy, self.quality


WRONG_ALONE, RIGHT_ALONE = "P(wrong alone)", "P(right alone)"
TERMS: Final = (
    Term(
        PARTS[0],
        WRONG_ALONE,
        policy="P(call | wrong alone)",
        quality="P(right with tools | call, wrong alone)",
        right=False,
        call=True,
    ),
    Term(
        PARTS[1],
        WRONG_ALONE,
        policy="P(no call | wrong alone)",
        quality="P(right with tools | no call, wrong alone)",
        right=False,
        call=False,
    ),
    Term(
        PARTS[2],
        RIGHT_ALONE,
        policy="P(call | right alone)",
        quality="P(wrong with tools | call, right alone)",
        right=True,
        call=True,
    ),
    Term(
        PARTS[3],
        RIGHT_ALONE,
        policy="P(no call | right alone)",
        quality="P(wrong with tools | no call, right alone)",
        right=True,
        call=False,
    ),
)


@dataclass(frozen=True)
class ToolQuestion:
    """A question that the MLLM was asked both alone and with tools.

    `alone` and `with_tools` are the correctness, 0..1, of the two answers; `tools` are the tools that it called.
    """

    id: str
    task: str
    cluster: str
    alone: float
    with_tools: float
    tools: tuple[str, ...]
    # Whether the question has a readable answer both alone and with tools.
    answered: bool = True
    # The later repetitions with tools.
    later: tuple[ToolQuestion, ...] = ()

    @property
    def repetitions(self) -> tuple[ToolQuestion, ...]:
        """All repetitions with tools."""
        return (self, *self.later)

    @cached_property
    def parts(self) -> tuple[float, ...]:
        """The question's contribution to each of `ALL_PARTS`, averaged over its repetitions."""

        def part(repetition: ToolQuestion, term: Term) -> float:
            moved = repetition.alone - repetition.with_tools if term.right else repetition.with_tools - repetition.alone
            return max(moved, 0.0) if repetition.answered and bool(repetition.tools) == term.call else 0.0

        silent = [
            repetition.with_tools - repetition.alone for repetition in self.repetitions if not repetition.answered
        ]
        by_answering = [sum(max(sign * moved, 0.0) for moved in silent) / len(self.repetitions) for sign in (1, -1)]
        if not self.later:
            # The mean of one number is that number.
            return (*(part(self, term) for term in TERMS), *by_answering)
        return (*(fmean(part(repetition, term) for repetition in self.repetitions) for term in TERMS), *by_answering)

    @cached_property
    def answered_share(self) -> float:
        """The share of the question's repetitions with a readable answer both alone and with tools."""
        return fmean(repetition.answered for repetition in self.repetitions) if self.later else float(self.answered)

    def call_share(self, call: bool) -> float:
        """Return the share of repetitions that were answered alone and with tools, and that had a call (or no call)."""
        if not self.later:
            return float(self.answered and bool(self.tools) == call)
        return fmean(repetition.answered and bool(repetition.tools) == call for repetition in self.repetitions)

    @cached_property
    def mean_with_tools(self) -> float:
        """The mean correctness of the question's repetitions with tools."""
        return fmean(repetition.with_tools for repetition in self.repetitions) if self.later else self.with_tools

    def only(self, tools: tuple[str, ...]) -> ToolQuestion:
        """Return a copy in which calls of any other set of tools count as changing nothing."""
        later = tuple(repetition.only(tools) for repetition in self.later)
        return replace(self, with_tools=self.with_tools if self.tools == tools else self.alone, later=later)


@dataclass(frozen=True)
class Estimated:
    """A number of the decomposition and its interval; either is None if too few questions meet the condition."""

    value: float | None
    interval: Interval | None


def decompose(questions: Sequence[ToolQuestion], averaging: Combine) -> dict[str, Estimated]:
    """Return by name the gain, its parts, the accuracy alone, and mass, policy and quality of the first four parts.

    Under `mean_of_ratios` each number is the mean over tasks, and policy and quality are ratios of such means, so that
    mass x policy x quality equals the part. The gain has the interval of a difference of two solvers
    (`hybrid.stats.contrast`). All other numbers are shares and have the interval of a share (`interval`).
    """
    alone = np.array([question.alone for question in questions])
    with_tools = np.array([question.mean_with_tools for question in questions])
    parts, ones = np.array([question.parts for question in questions]), np.ones(len(questions))
    alone_metric, hybrid_metric = (_metric(GAIN, questions, value, ones, averaging) for value in (alone, with_tools))
    difference = contrast(alone_metric, hybrid_metric)
    estimates = {GAIN: Estimated(difference.difference, difference.interval), **parts_of(questions, averaging)}
    estimates[ACCURACY_ALONE] = Estimated(alone_metric.value, interval(alone_metric))
    if not all(repetition.answered for question in questions for repetition in question.repetitions):
        estimates |= {
            part: _share(part, questions, parts[:, len(PARTS) + place], ones, averaging)
            for place, part in enumerate(ANSWERING)
        }
    weights = ones
    if averaging == "mean_of_ratios":
        # With these weights a mean over questions equals a mean over tasks.
        size = Counter(question.task for question in questions)
        weights = np.array([len(questions) / len(size) / size[question.task] for question in questions])
    answered_share = np.array([question.answered_share for question in questions])
    for place, term in enumerate(TERMS):
        selected = (alone if term.right else 1 - alone) * answered_share
        estimates[term.mass] = _share(term.mass, questions, selected, ones, averaging)
        call_share = np.array([question.call_share(term.call) for question in questions])
        acted = (alone if term.right else 1 - alone) * call_share * weights
        changed = parts[:, place] * weights
        estimates[term.policy] = _share(term.policy, questions, acted, selected * weights, "ratio")
        estimates[term.quality] = _share(term.quality, questions, changed, acted, "ratio")
    return estimates


def parts_of(questions: Sequence[ToolQuestion], averaging: Combine) -> dict[str, Estimated]:
    """Return the four parts on questions answered both alone and with tools, each as a share of all questions."""
    parts, ones = np.array([question.parts for question in questions]), np.ones(len(questions))
    return {part: _share(part, questions, parts[:, place], ones, averaging) for place, part in enumerate(PARTS)}


def _share(name: str, questions: Sequence[ToolQuestion], above: Floats, below: Floats, averaging: Combine) -> Estimated:
    metric = _metric(name, questions, above, below, averaging)
    return Estimated(metric.value, interval(metric))


def _metric(name: str, questions: Sequence[ToolQuestion], above: Floats, below: Floats, averaging: Combine) -> Metric:
    """Return a ratio over questions with a positive denominator; tasks are strata if they have equal weight."""
    places = np.flatnonzero(below > 0)
    counted = [questions[place] for place in places.tolist()]
    strata = [question.task for question in counted] if averaging == "mean_of_ratios" else repeat("")
    clusters = [question.cluster for question in counted]
    cells = Cells(map(Cell, strata, clusters, above[places].tolist(), below[places].tolist()))
    return Metric(name, combine(cells, averaging), len(cells), averaging, cells)


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield each hybrid solver's decomposition, over all, by task and by tools called, if its MLLM alone was run."""
    for group in comparison.groups:
        if group.alone is not None:
            yield from _of_group(comparison, group, group.alone.solver, comparison.overlap(group.alone, group.hybrid))


def _of_group(comparison: Comparison, group: ComparisonGroup, alone: str, overlap: Overlap) -> Iterator[Result]:
    verdicts = [outputs_by_question(scored) for scored in comparison.repetitions(group.hybrid)]
    parts = overlap.by_group(comparison.options.by)
    questions = {name: part_questions for name, part in parts.items() if (part_questions := _questions(part, verdicts))}
    all_questions = [question for part_questions in questions.values() for question in part_questions]
    if not all_questions:
        return
    headline = overlap.headline(comparison.rule)
    averaging: Combine = "mean_of_ratios" if headline and headline[0].combine == "mean_of_ratios" else "ratio"
    unread = int(overlap.kept.sum()) - len(all_questions)
    failed = sum(
        any(question.id in of and of[question.id].calls and not of[question.id].tools for of in verdicts)
        for question in all_questions
    )
    notes = (
        overlap.left_out,
        f"{unread} without a readable trace" if unread else "",
        f"{failed} with calls that all ended in faults count as without a call" if failed else "",
    )
    row = Result(NAME, GAIN, FRACTION, None, a=alone, b=group.hybrid.solver, none=comparison.rule)
    section_rows = [*rows_of(replace(row, note="; ".join(filter(None, notes))), all_questions, averaging)]
    # Gain and harm with a call, by the set of called tools; these rows add up to the parts over all tools.
    tool_sets = sorted(
        {repetition.tools for question in all_questions for repetition in question.repetitions if repetition.tools}
    )
    for tools in tool_sets if len(tool_sets) > 1 else ():
        only = [question.only(tools) for question in all_questions]
        estimates = parts_of(only, averaging)
        section_rows += [
            _filled(replace(row, quantity=part, metric=" + ".join(tools)), only, estimates[part])
            for part in ("gain with a call", "harm with a call")
        ]
    yield from gated(section_rows, overlap.untested(headline))
    for name, part_questions in questions.items():
        yield from gated(rows_of(replace(row, group=name), part_questions, "ratio"), parts[name].untested())


def _questions(shared: Overlap, verdicts: Sequence[Mapping[str, OutputVerdict]]) -> list[ToolQuestion]:
    """Return the questions that both have, in the overlap's order; those without a readable trace are left out."""
    questions = []
    seen = shared.at(np.flatnonzero(shared.kept))
    # A repetition has a verdict only on the questions that it was asked and did not fail.
    columns = [
        (np.nan_to_num(answers.correct(shared.rule)), answered(answers.answer), at, heard_of)
        for answers, at, heard_of in zip(seen.repetitions[1], seen.positions[1], verdicts, strict=True)
    ]
    alone = ~seen.unanswered[0]
    facts = zip(seen.ids, seen.task, seen.unit, seen.correct()[0].tolist(), strict=True)
    for place, (identity, task, unit, right) in enumerate(facts):
        repeats = [
            ToolQuestion(
                identity,
                task,
                unit,
                alone=right,
                with_tools=float(correct[at[place]]),
                tools=heard_of[identity].tools,
                answered=bool(alone[place] and has_answer[at[place]]),
            )
            for correct, has_answer, at, heard_of in columns
            if identity in heard_of and not heard_of[identity].no_trace
        ]
        if repeats:
            questions.append(replace(repeats[0], later=tuple(repeats[1:])))
    return questions


def rows_of(row: Result, questions: Sequence[ToolQuestion], averaging: Combine) -> Iterator[Result]:
    """Yield the gain, its parts with their question ids, and the factors of each part, as copies of `row`."""
    for name, estimate in decompose(questions, averaging).items():
        if estimate.value is not None:
            detail = name not in (GAIN, *ALL_PARTS)
            yield _filled(replace(row, quantity=name, detail=detail), questions, estimate)


def _filled(row: Result, questions: Sequence[ToolQuestion], estimate: Estimated) -> Result:
    """Return the row with value, interval and, for a part, the ids of its questions."""
    low, high = ends_of(estimate.interval)
    place = ALL_PARTS.index(row.quantity) if row.quantity in ALL_PARTS else None
    ids = () if place is None else tuple(question.id for question in questions if question.parts[place] > 0)
    return replace(row, value=estimate.value, low=low, high=high, n=len(questions), ids=ids)


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State each hybrid solver's equation in numbers, then the effect of offering blank tools if it was measured."""
    sentences = []
    for group in comparison.groups:
        values = {
            row.quantity: row.value
            for row in section_rows
            if (row.b, row.group, row.metric) == (group.hybrid.solver, "", "") and row.value is not None
        }
        if GAIN in values:
            terms = " ".join(
                f"{'+' if sign > 0 else '-'} {values[part]:.3f} ({part})"
                for part, sign in zip(ALL_PARTS, ALL_SIGNS, strict=True)
                if part in values
            )
            sentences.append(f"{group.hybrid.solver}: gain {signed(values[GAIN])} = {terms.removeprefix('+ ')}.")
    return " ".join(
        (*sentences, *(result.lead for result in results(comparison, ("gain",)) if sentences and result.lead))
    )


SECTION = statistic(
    rows,
    lead,
    headings={"metric": "tools called"},
    chart="waterfall",
    charted=(ACCURACY_ALONE, *ALL_PARTS),
    signs=(0, *ALL_SIGNS),
    order=115,
)
