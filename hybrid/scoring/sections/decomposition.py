"""Where the gain comes from: calls or the tools' mere presence, gains on failures or harm to what was right alone.

    hybrid compare RUN --only decomposition

With a and w in 0..1 for how right the MLLM is alone and with tools on a question, and c = 1 where it called a tool,

    gain = mean(w - a) = call gain + schema gain - call harm - schema harm

exactly, in every resample and for every task: call gain = mean(c max(w - a, 0)), schema gain the same of the questions
without a call, and the harms with max(a - w, 0). Each is mass x policy x quality: of call gain P(wrong alone),
P(call | wrong alone) and P(right with tools | call, wrong alone). Ma et al., "What Does Vision Tool-Use Reinforcement
Learning Really Learn?" (arXiv 2602.01334), section "Explain"; graded answers are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hybrid.benchmarks.card import MetricCard
from hybrid.display.tables import signed
from hybrid.scoring.compare import Comparison
from hybrid.scoring.findings import Heard, heard
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.overlap import PLAIN, Overlap
from hybrid.scoring.result import FRACTION, Result, Section
from hybrid.stats.bootstrap import Resampled, Sample, bootstrap, interval_of, mean_of
from hybrid.stats.linearised import Floats
from hybrid.types import Combine

NAME: Final = "decomposition"
GAIN: Final = "gain"
PARTS: Final = ("call gain", "schema gain", "call harm", "schema harm")
SIGNS: Final = (1, 1, -1, -1)
"""How each part enters the gain."""


@dataclass(frozen=True)
class Term:
    """One part of the gain as mass x policy x quality, each a ratio of two columns of `Row`."""

    part: str
    mass: str
    policy: str
    quality: str
    selected: int
    """The column of the questions that the mass counts."""
    acted: int
    """Of those, the questions with (or without) a call."""
    changed: int
    """Of those, what changed: the part itself."""


QUESTIONS, DIFFERENCE, WRONG, RIGHT = range(4)
WRONG_CALL, WRONG_NO_CALL, RIGHT_CALL, RIGHT_NO_CALL = range(4, 8)
CALL_GAIN, SCHEMA_GAIN, CALL_HARM, SCHEMA_HARM = range(8, 12)
"""The columns of a question: see `_columns`."""

WRONG_ALONE, RIGHT_ALONE = "P(wrong alone)", "P(right alone)"
TERMS: Final = (
    Term(
        PARTS[0],
        WRONG_ALONE,
        "P(call | wrong alone)",
        "P(right with tools | call, wrong alone)",
        WRONG,
        WRONG_CALL,
        CALL_GAIN,
    ),
    Term(
        PARTS[1],
        WRONG_ALONE,
        "P(no call | wrong alone)",
        "P(right with tools | no call, wrong alone)",
        WRONG,
        WRONG_NO_CALL,
        SCHEMA_GAIN,
    ),
    Term(
        PARTS[2],
        RIGHT_ALONE,
        "P(call | right alone)",
        "P(wrong with tools | call, right alone)",
        RIGHT,
        RIGHT_CALL,
        CALL_HARM,
    ),
    Term(
        PARTS[3],
        RIGHT_ALONE,
        "P(no call | right alone)",
        "P(wrong with tools | no call, right alone)",
        RIGHT,
        RIGHT_NO_CALL,
        SCHEMA_HARM,
    ),
)


@dataclass(frozen=True)
class ToolQuestion:
    """A question that the MLLM answered alone and with tools: how right, 0..1, and the tools that it called."""

    id: str
    task: str
    cluster: str
    alone: float
    with_tools: float
    tools: tuple[str, ...]

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """Its contribution to each of `PARTS`."""
        gain, harm = max(self.with_tools - self.alone, 0.0), max(self.alone - self.with_tools, 0.0)
        return (gain, 0.0, harm, 0.0) if self.tools else (0.0, gain, 0.0, harm)


def _columns(question: ToolQuestion) -> tuple[float, ...]:
    wrong, right, call = 1 - question.alone, question.alone, float(bool(question.tools))
    of_mass = (wrong * call, wrong * (1 - call), right * call, right * (1 - call))
    return (1.0, question.with_tools - question.alone, wrong, right, *of_mass, *question.parts)


def decompose(questions: Sequence[ToolQuestion], how: Combine) -> Resampled:
    """Gain, its four parts, then mass, policy and quality of each part: 17 numbers with their resamples.

    Under `mean_of_ratios` each is the mean over tasks, and policy and quality are ratios of such means, so that mass x
    policy x quality is the part. A quality is NaN where nothing is in its condition.
    """
    sample = Sample.of(
        [_columns(one) for one in questions], [one.cluster for one in questions], [one.task for one in questions]
    )

    def numbers(sums: Floats) -> Floats:
        mean = [mean_of(sums, column, QUESTIONS, how) for column in range(sums.shape[-1])]
        made = [mean[DIFFERENCE], *(mean[term.changed] for term in TERMS)]
        for term in TERMS:
            made += [
                mean[term.selected],
                _over(mean[term.acted], mean[term.selected]),
                _over(mean[term.changed], mean[term.acted]),
            ]
        return np.stack(made, axis=-1)

    return bootstrap(sample, numbers)


def _over(above: Floats, below: Floats) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
    return ratio


def rows(found: Comparison) -> list[Result]:
    """The decomposition of each hybrid solver whose MLLM was asked alone too: over all, by task and by tools called."""
    return [row for group in found.groups for row in _of_group(found, group)]


def _of_group(found: Comparison, group: ComparisonGroup) -> Iterator[Result]:
    if group.alone is None or group.hybrid.folder is None:
        return
    whole = found.overlap(group.alone, group.hybrid)
    said = heard(group.hybrid)
    questions = {name: _questions(part, said) for name, part in whole.by_group(found.options.by).items()}
    every = [one for own in questions.values() for one in own]
    if not every:
        return
    headline = whole.headline(PLAIN)
    how: Combine = "mean_of_ratios" if headline and headline[0].combine == "mean_of_ratios" else "ratio"
    notes = [f"left out: {whole.left_out}"] if whole.left_out else []
    if unread := len(whole.kept) - len(every):
        notes.append(f"{unread} without a readable trace")
    row = Result(NAME, GAIN, FRACTION, None, group.alone.solver, group.hybrid.solver, none=PLAIN)
    yield from rows_of(replace(row, note="; ".join(notes)), every, how)
    yield from _by_tools(row, every, how)
    for name, own in questions.items():
        if own:
            yield from rows_of(replace(row, group=name), own, "ratio")


def _questions(shared: Overlap, said: Mapping[str, Heard]) -> list[ToolQuestion]:
    """The questions that both answered, in the order of the overlap; those without a readable trace are left out."""
    kept = []
    for row in shared.kept:
        alone, with_tools = row.scores
        one = said.get(with_tools.id)
        if one is not None and not one.no_trace:
            tools = tuple(sorted({call.tool for call in one.calls}))
            values = (float(alone.correct or 0.0), float(with_tools.correct or 0.0))
            kept.append(ToolQuestion(alone.id, alone.task, alone.unit, *values, tools))
    return kept


def rows_of(row: Result, questions: Sequence[ToolQuestion], how: Combine) -> Iterator[Result]:
    """The gain, its parts with the questions behind them, and the factors of each part, each in a copy of `row`."""
    made = decompose(questions, how)
    names = (GAIN, *PARTS, *(factor for term in TERMS for factor in (term.mass, term.policy, term.quality)))
    seen = set()
    for place, name in enumerate(names):
        value = float(made.values[place])
        if name in seen or not np.isfinite(value):
            continue
        seen.add(name)
        ends = interval_of(made, place) or (None, None)
        ids: tuple[str, ...] = ()
        if name in PARTS:
            ids = tuple(one.id for one in questions if one.parts[PARTS.index(name)] > 0)
        yield replace(
            row,
            quantity=name,
            value=value,
            n=len(questions),
            low=ends[0],
            high=ends[1],
            ids=ids,
            detail=name not in (GAIN, *PARTS),
        )


def _by_tools(row: Result, questions: Sequence[ToolQuestion], how: Combine) -> Iterator[Result]:
    """Call gain and call harm by the set of tools that were called: they add up to those over all."""
    called = sorted({one.tools for one in questions if one.tools})
    if len(called) < 2:
        return
    for tools in called:
        only = [one if one.tools == tools else replace(one, with_tools=one.alone) for one in questions]
        made = decompose(only, how)
        for part in ("call gain", "call harm"):
            place = 1 + PARTS.index(part)
            low, high = interval_of(made, place) or (None, None)
            ids = tuple(one.id for one in only if one.parts[place - 1] > 0)
            name = " + ".join(tools)
            value, count = float(made.values[place]), len(questions)
            yield replace(row, quantity=part, metric=name, value=value, n=count, low=low, high=high, ids=ids)


def lead(found: Comparison, made: Sequence[Result]) -> str:
    """The equation of each hybrid solver in numbers."""
    said = []
    for group in found.groups:
        own = {
            row.quantity: row.value
            for row in made
            if (row.b, row.group, row.metric) == (group.hybrid.solver, "", "") and row.value is not None
        }
        if GAIN in own:
            terms = " ".join(
                f"{'+' if sign > 0 else '-'} {part} {own[part]:.3f}"
                for part, sign in zip(PARTS, SIGNS, strict=True)
                if part in own
            )
            said.append(f"{group.hybrid.solver}: gain {signed(own[GAIN])} = {terms.removeprefix('+ ')}.")
    return " ".join(said)


COUNTS = "questions that both answered and none failed"
SOURCE = "Ma et al. 2026, arXiv 2602.01334; intervals BCa over clusters (docs/study.md)"


def _card(name: str, formula: str, about: str = "", values: str = "0 to 1") -> MetricCard:
    return MetricCard(name, formula, COUNTS, SOURCE, about, values)


SECTION = Section(
    NAME,
    "Where does the gain come from: calls or presence, gains or harm?",
    (
        _card(GAIN, "with tools - alone = call gain + schema gain - call harm - schema harm", values="-1 to 1"),
        _card(
            "<call|schema> <gain|harm>",
            "mass x policy x quality; mean of max(with - alone, 0), or of max(alone - with, 0), over questions "
            "with (call) or without (schema) a tool call",
            "By set of tools called in the column tools; these add up to the part over all.",
        ),
        _card("P(<wrong|right> alone)", "mass: the share that the MLLM gets wrong, or right, without tools"),
        _card("P(<call|no call> | <wrong|right> alone)", "policy: the share of these with, or without, a tool call"),
        _card(
            "P(right with tools | <call|no call>, wrong alone)",
            "quality: the share of these that the MLLM gets right with tools",
        ),
        _card(
            "P(wrong with tools | <call|no call>, right alone)",
            "quality: the share of these that the MLLM gets wrong with tools",
        ),
    ),
    rows,
    lead,
    about=(
        "call gain: wrong alone, a tool was called, right with tools. schema gain: the same without a call, so that "
        "only the tools' descriptions and the loop differ. call harm, schema harm: right alone and wrong with tools. "
        "gain = call gain + schema gain - call harm - schema harm. Without repetitions chance is in all four: a model "
        "that draws its answers gains and loses by itself."
    ),
    headings={"metric": "tools called"},
    chart="waterfall",
    # The mass of the harms is the accuracy alone.
    charted=(RIGHT_ALONE, *PARTS),
    signs=(0, *SIGNS),
    order=115,
)
