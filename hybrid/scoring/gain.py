"""What of a hybrid solver's gain comes from the presence of tools, and what from their content (the blank control).

    hybrid compare RUN RUN-WITH-BLANK-TOOLS

gain = hybrid - alone: the same MLLM with and without tools. It is the sum of two parts, on the same questions: presence
= blank - alone (the prompts, the texts of the tools, more turns) and content = hybrid - blank (what the tools say).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hybrid.benchmarks.base import Abstain
from hybrid.scoring.compare import ALL, Comparison, how_tested
from hybrid.scoring.roles import Company, companies
from hybrid.scoring.same_questions import RULES, TOO_MANY_FAILED, SameQuestions, Untested
from hybrid.scoring.score import Scored
from hybrid.scoring.told import Number, Told
from hybrid.stats import Contrast, contrast, holm
from hybrid.tables import NONE, Column, Table, bounds, number, p_value, signed
from hybrid.types import Json, Metric

TITLE = "Does the gain come from what the tools say?"
PARTS = (
    "gain: the hybrid solver minus its MLLM alone. presence: with blank tools minus alone (prompts, texts of tools, "
    "more turns). content: with tools minus with blank tools (what they say). gain = presence + content."
)
SHUFFLED = "shuffled: with findings about other questions minus with blank tools."
TESTED = "p and interval are of the difference in the row; Holm over the tests of all parts in this table."


@dataclass(frozen=True)
class Part:
    """One difference b minus a of a company, under one rule, overall or within a group; `n` counts units."""

    name: str
    a: str
    b: str
    none: Abstain
    metric: str
    group: str
    n: int
    contrast: Contrast
    untested: Untested | None
    p_holm: float | None = None

    def as_json(self) -> dict[str, Json]:
        """The part with every number unrounded."""
        ends = self.contrast.interval
        return {
            "part": self.name,
            "a": self.a,
            "b": self.b,
            "none": self.none,
            "value_a": self.contrast.value_a,
            "value_b": self.contrast.value_b,
            "difference": self.contrast.difference,
            "interval": [ends.low, ends.high] if ends else None,
            "p": self.contrast.p_value,
            "p_holm": self.p_holm,
            "test": self.contrast.test,
            "withheld": self.untested,
        }

    @property
    def number(self) -> Number:
        """The difference as a line of the tidy table."""
        ends, metric, group = self.contrast.interval, self.metric, "" if self.group == ALL else self.group
        value, low, high = self.contrast.difference, ends.low if ends else None, ends.high if ends else None
        p = self.contrast.p_value
        return Number(
            "gain", self.name, "fraction", value, self.a, self.b, metric, group, self.n, low, high, p, self.p_holm,
            none=self.none,
        )  # fmt: skip


@dataclass(frozen=True)
class Split:
    """The parts of one company's gain on the same questions, overall or within a group."""

    company: Company
    same: SameQuestions
    metric: str
    group: str
    parts: tuple[Part, ...]

    def part(self, name: str, none: Abstain) -> Part | None:
        """A part by name and rule; None where a control is not there."""
        return next((part for part in self.parts if (part.name, part.none) == (name, none)), None)

    def as_json(self) -> dict[str, Json]:
        """One record of the section."""
        names = {key: getattr(self.company, key) for key in ("hybrid", "alone", "blank", "shuffled")}
        return {
            **{key: one.solver if one is not None else None for key, one in names.items()},
            "metric": self.metric,
            "group": self.group,
            "questions": self.same.n,
            "failed": sorted(self.same.lost),
            "missing": sorted(self.same.missing),
            "n": self.parts[0].n,
            "clusters": self.parts[0].contrast.clusters,
            "parts": [part.as_json() for part in self.parts],
        }


def section(found: Comparison) -> Told | None:
    """A row for each part of each company with a blank control, overall and by task; None without such a company."""
    splits = [
        split
        for company in companies(found.solvers)
        if company.blank is not None
        for split in (*_splits(company, found), *_shuffled(company, found))
    ]
    if not splits:
        return None
    overall, by_group = (_adjusted([s for s in splits if (s.group == ALL) is whole]) for whole in (True, False))
    tables = [_overall(overall, found)] if overall else []
    tables += [_by_group(by_group, found)] if by_group else []
    told = (*overall, *by_group)
    numbers = tuple(part.number for split in told for part in split.parts)
    return Told("gain", TITLE, tuple(tables), tuple(split.as_json() for split in told), numbers)


def _splits(company: Company, found: Comparison) -> list[Split]:
    """Gain, presence and content on the questions that all three have; the content alone without the MLLM alone."""
    assert company.blank is not None  # noqa: S101 - the caller asks for companies that have one
    if company.alone is None:
        return _differences(company, (company.blank, company.hybrid), {"content": (0, 1)}, found)
    places = {"gain": (0, 2), "presence": (0, 1), "content": (1, 2)}
    return _differences(company, (company.alone, company.blank, company.hybrid), places, found)


def _shuffled(company: Company, found: Comparison) -> list[Split]:
    """What findings about other questions do, on the questions that both controls have."""
    if company.blank is None or company.shuffled is None:
        return []
    return _differences(company, (company.blank, company.shuffled), {"shuffled": (0, 1)}, found)


def _differences(
    company: Company, solvers: Sequence[Scored], places: Mapping[str, tuple[int, int]], found: Comparison
) -> list[Split]:
    whole = SameQuestions.of(solvers)
    splits = []
    headline = {rule: metrics for rule in RULES if (metrics := whole.headline(rule)) is not None}
    if headline:
        splits.append(_split(company, whole, whole, ALL, headline, places, found))
    for group, same in whole.by_group(found.choice.by).items():
        own = {rule: same.accuracy(rule) for rule in RULES}
        splits.append(_split(company, same, whole, group, own, places, found))
    return splits


def _split(
    company: Company,
    same: SameQuestions,
    whole: SameQuestions,
    group: str,
    metrics: Mapping[Abstain, tuple[Metric, ...]],
    places: Mapping[str, tuple[int, int]],
    found: Comparison,
) -> Split:
    parts = []
    for rule, own in metrics.items():
        untested = same.untested(own, allow_failed=found.choice.allow_failed, whole=whole)
        for name, (a, b) in places.items():
            measured = _contrast(own[a], own[b], untested)
            names = (same.solvers[a].solver, same.solvers[b].solver)
            parts.append(Part(name, *names, rule, own[a].name, group, own[a].n, measured, untested))
    return Split(company, same, parts[0].metric, group, tuple(parts))


def _contrast(a: Metric, b: Metric, untested: Untested | None) -> Contrast:
    if untested is None:
        return contrast(a, b)
    difference = None if a.value is None or b.value is None else b.value - a.value
    return Contrast(a.value, b.value, difference, None, None, "none", len({cell.cluster for cell in a.cells}))


def _adjusted(splits: Sequence[Split]) -> tuple[Split, ...]:
    """The splits of one table with p values adjusted together, each rule for itself."""
    adjusted: dict[tuple[int, str, str], float] = {}
    for rule in RULES:
        tested = [
            ((place, part.name, rule), part.contrast.p_value)
            for place, split in enumerate(splits)
            for part in split.parts
            if part.none == rule and part.contrast.p_value is not None
        ]
        adjusted |= zip((key for key, _ in tested), holm([p for _, p in tested]), strict=True)
    return tuple(
        replace(
            split,
            parts=tuple(replace(part, p_holm=adjusted.get((place, part.name, part.none))) for part in split.parts),
        )
        for place, split in enumerate(splits)
    )


def _overall(splits: Sequence[Split], found: Comparison) -> Table:
    rule = found.solvers[0].abstain
    other = next(one for one in RULES if one != rule)
    columns = (
        *(Column(name, "left") for name in ("hybrid", "part")),
        *map(Column, ("n", f"none = {rule}", "95 %", "p", "p (Holm)", f"none = {other}", "95 %")),
    )
    rows = []
    for split in splits:
        for part in (part for part in split.parts if part.none == rule):
            second = split.part(part.name, other)
            rows.append(
                (
                    split.company.hybrid.solver,
                    part.name,
                    number(part.n),
                    signed(part.contrast.difference),
                    bounds(part.contrast.interval, 3),
                    p_value(part.contrast.p_value),
                    p_value(part.p_holm),
                    *(
                        (signed(second.contrast.difference), bounds(second.contrast.interval, 3))
                        if second
                        else ("-",) * 2
                    ),
                )
            )
    metrics = ", ".join(dict.fromkeys(split.metric for split in splits))
    return Table(f"The gain of tools and its parts: {metrics}", columns, tuple(rows), _notes(splits))


def _notes(splits: Sequence[Split]) -> tuple[str, ...]:
    notes = [reading for split in splits if (reading := _reading(split))]
    notes.append(PARTS)
    if any(split.part("shuffled", rule) for split in splits for rule in RULES):
        notes.append(SHUFFLED)
    notes += (TESTED, *how_tested(part.contrast for split in splits for part in split.parts))
    untested = {part.untested for split in splits for part in split.parts}
    if "failed" in untested:
        notes.append(TOO_MANY_FAILED)
    if "unanswered" in untested:
        notes.append("Nothing is tested where one of the solvers answered nothing.")
    for split in splits:
        if split.same.left_out:
            names = " / ".join(one.solver for one in split.same.solvers)
            notes.append(f"Questions left out of {names}: {split.same.left_out}.")
    return tuple(notes)


def _reading(split: Split) -> str | None:
    """One sentence, where a gain or a loss holds under both rules of what no answer counts."""
    name = split.company.hybrid.solver
    gain, content = _direction(split, "gain"), _direction(split, "content")
    if content is None:
        return None
    by_content = {1: "what the tools say brings a gain", -1: "what the tools say brings a loss"}.get(content)
    if gain is None:
        return f"{name}: {by_content or 'what the tools say makes no difference that these questions can show'}."
    if gain > 0:
        where = "the gain comes from what the tools say"
        return f"{name}: {where}." if content > 0 else f"{name}: it is not shown that {where}."
    over = "no gain over the MLLM alone is shown" if gain == 0 else "with tools it is behind the MLLM alone"
    return f"{name}: {over}{f'; next to blank tools {by_content}' if by_content else ''}."


def _direction(split: Split, name: str) -> int | None:
    """1 for a gain and -1 for a loss under both rules, 0 where one of them shows neither; None without a test."""
    ends = [part.contrast.interval for rule in RULES if (part := split.part(name, rule)) is not None]
    if not ends or None in ends:
        return None
    signs = {(one.low > 0) - (one.high < 0) for one in ends if one is not None}
    return signs.pop() if len(signs) == 1 else 0


def _by_group(splits: Sequence[Split], found: Comparison) -> Table:
    rule, by = found.solvers[0].abstain, found.choice.by or "task"
    names = [name for name in ("gain", "presence", "content") if any(s.part(name, rule) for s in splits)]
    rows = []
    for split in splits:
        parts = [split.part(name, rule) for name in names]
        if any(parts):
            heads = (split.company.hybrid.solver, split.group, number(split.parts[0].n))
            rows.append((*heads, *map(_cell, parts)))
    columns = (Column("hybrid", "left"), Column(by, "left"), Column("n"), *map(Column, names))
    how = f"Differences in accuracy with 95 % intervals, none = {rule}; --json has p values and the other rule."
    return Table(f"The gain of tools and its parts, by {by}", columns, tuple(rows), (how,))


def _cell(part: Part | None) -> str:
    if part is None:
        return NONE
    ends = part.contrast.interval
    return f"{signed(part.contrast.difference)} {bounds(ends, 2)}" if ends else signed(part.contrast.difference)
