"""Use of evidence: MLLM alone right or wrong x finding right, wrong or none x hybrid right or wrong, with names.

    hybrid compare RUN --json        # `evidence`: every cell with its ids

`findings.py` judges the finding. Every question that both solvers answered falls into exactly one class (`CLASSES`), so
that every question that tools helped or harmed is in one as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from hybrid.benchmarks.base import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.findings import VERDICTS, Heard, Verdict, heard
from hybrid.scoring.roles import companies
from hybrid.scoring.score import Scored, group_of
from hybrid.scoring.told import Number, Told
from hybrid.stats import Interval, interval
from hybrid.tables import Column, Table, bounds, share
from hybrid.tables import accuracy as fraction
from hybrid.types import Json, Score

NAME: Final = "evidence"
SHOWN_IDS: Final = 5
"""So many ids are named in a note; the data has all."""

JUDGED: Final = (
    "A finding is right where the specialist's rule, run on what the tools said in this conversation, answers right. "
    "helped: alone wrong, hybrid right; harmed: the reverse; no readable answer is not right. as found: the hybrid "
    "gave the very answer that the findings come to."
)
BECAME: Final = (
    "right, wrong, none, unread: findings. adopted: of the questions with a right finding that the MLLM alone has "
    "wrong, those that the hybrid has right. over-trusted: of those with a wrong finding that the MLLM alone has "
    "right, those that the hybrid has wrong."
)
Class = Literal[
    "correct adoption",
    "confirmed",
    "ignored evidence",
    "over-trust",
    "resisted",
    "wrong from both",
    "right despite both",
    "no finding",
    "wrong tool",
    "no call",
    "unread",
]

CLASSES: Final[Mapping[Class, str]] = {
    "correct adoption": "alone wrong, finding right, hybrid right",
    "confirmed": "alone right, finding right, hybrid right",
    "ignored evidence": "finding right, hybrid wrong",
    "over-trust": "alone right, finding wrong, hybrid wrong",
    "resisted": "alone right, finding wrong, hybrid right",
    "wrong from both": "alone wrong, finding wrong, hybrid wrong",
    "right despite both": "alone wrong, finding wrong, hybrid right",
    "no finding": "a tool that the rule asks was called, and what it said comes to no answer",
    "wrong tool": "tools were called, and none that the rule asks",
    "no call": "no tool was called",
    "unread": "nobody can tell what the finding says",
}
"""By name what belongs to a class; every question belongs to exactly one."""

WITH_FINDING: Final[Mapping[tuple[bool, Verdict, bool], Class]] = {
    (False, "right", True): "correct adoption",
    (True, "right", True): "confirmed",
    (False, "right", False): "ignored evidence",
    (True, "right", False): "ignored evidence",
    (True, "wrong", False): "over-trust",
    (True, "wrong", True): "resisted",
    (False, "wrong", False): "wrong from both",
    (False, "wrong", True): "right despite both",
}
"""By MLLM alone right, finding, hybrid right."""


def class_of(alone_right: bool, said: Heard, hybrid_right: bool) -> Class:
    """The one class of a question."""
    if said.finding in ("right", "wrong"):
        return WITH_FINDING[alone_right, said.finding, hybrid_right]
    if said.finding == "unread":
        return "unread"
    if not said.calls:
        return "no call"
    return "no finding" if said.to_the_point else "wrong tool"


@dataclass(frozen=True)
class Case:
    """One question that both solvers answered."""

    score: Score
    """The hybrid's."""
    group: str
    alone_right: bool
    said: Heard
    hybrid_right: bool

    @property
    def name(self) -> Class:
        """Its class."""
        return class_of(self.alone_right, self.said, self.hybrid_right)

    @property
    def as_found(self) -> bool:
        """Whether the hybrid gave the very answer that the findings come to."""
        return self.said.answer is not None and self.score.answer == self.said.answer


@dataclass(frozen=True)
class Use:
    """The questions of a hybrid solver next to its MLLM alone, and by reason the ids of those that are left out."""

    hybrid: str
    alone: str
    cases: tuple[Case, ...]
    left_out: Mapping[str, tuple[str, ...]]

    @property
    def groups(self) -> tuple[str, ...]:
        """The tasks, or values of the group reported by, in order."""
        return tuple(sorted({case.group for case in self.cases}))


class Share(NamedTuple):
    """A rate: over which cases it is, and which of them count."""

    over: Callable[[Case], bool]
    counts: Callable[[Case], bool]
    words: str


RATES: Final[Mapping[str, Share]] = {
    "adoption": Share(
        lambda case: not case.alone_right and case.said.finding == "right",
        lambda case: case.hybrid_right,
        "alone wrong and finding right: hybrid right",
    ),
    "over-trust": Share(
        lambda case: case.alone_right and case.said.finding == "wrong",
        lambda case: not case.hybrid_right,
        "alone right and finding wrong: hybrid wrong",
    ),
    "harmed against a right finding": Share(
        lambda case: case.alone_right and case.said.finding == "right",
        lambda case: not case.hybrid_right,
        "alone right and finding right: hybrid wrong",
    ),
    "harmed without a finding": Share(
        lambda case: case.alone_right and case.said.finding == "none",
        lambda case: not case.hybrid_right,
        "alone right and no finding: hybrid wrong",
    ),
    "right findings": Share(
        lambda case: case.said.finding in ("right", "wrong"),
        lambda case: case.said.finding == "right",
        "finding right or wrong: finding right",
    ),
}
"""By name; `words` say of which questions, and what of them is counted."""


def section(found: Comparison) -> Told | None:
    """A row for each class of each company with an MLLM alone; None without one."""
    uses = uses_of(found)
    if not uses:
        return None
    by = found.choice.by or "task"
    return Told(
        NAME,
        "Does the MLLM use what the tools find?",
        tuple(table for use in uses for table in (class_table(use), cell_table(use), rate_table(use, by))),
        tuple(record for use in uses for record in (*cell_records(use), *rate_records(use), *left_records(use))),
        tuple(number for use in uses for number in _numbers(use)),
    )


def uses_of(found: Comparison) -> tuple[Use, ...]:
    """The use of evidence by each hybrid solver with real tools whose MLLM was also asked alone."""
    return tuple(
        use_of(company.hybrid, company.alone, found.choice.by)
        for company in companies(found.solvers)
        if company.alone is not None
    )


def use_of(hybrid: Scored, alone: Scored, by: str | None) -> Use:
    """The questions that both solvers have and neither failed, and what was heard from the tools in each."""
    before, said = {score.id: score for score in alone.scores}, heard(hybrid)
    cases: list[Case] = []
    left: defaultdict[str, list[str]] = defaultdict(list)
    for score in hybrid.scores:
        own = before.get(score.id)
        if own is None:
            left["not asked of the MLLM alone"].append(score.id)
        elif own.outcome.failed or score.outcome.failed:
            left["failed"].append(score.id)
        elif own.correct is None or score.correct is None:
            left["graded, neither right nor wrong"].append(score.id)
        else:
            right = own.correct == 1.0, score.correct == 1.0
            cases.append(Case(score, group_of(score, by), right[0], said[score.id], right[1]))
    return Use(hybrid.solver, alone.solver, tuple(cases), {why: tuple(ids) for why, ids in left.items()})


def _parts(use: Use) -> Iterable[tuple[str, tuple[Case, ...]]]:
    """All cases under the empty name, then those of each group."""
    yield "", use.cases
    for group in use.groups:
        yield group, tuple(case for case in use.cases if case.group == group)


def cell_records(use: Use) -> list[dict[str, Json]]:
    """A record for each combination that occurs, over all and in each group, with its ids."""
    records: list[dict[str, Json]] = []
    for group, cases in _parts(use):
        cells: defaultdict[tuple[bool, Verdict, bool, Class], list[Case]] = defaultdict(list)
        for case in cases:
            cells[case.alone_right, case.said.finding, case.hybrid_right, case.name].append(case)
        order = sorted(cells, key=lambda cell: (not cell[0], VERDICTS.index(cell[1]), not cell[2], cell[3]))
        for cell in order:
            inside = cells[cell]
            records.append(
                {
                    "hybrid": use.hybrid,
                    "alone": use.alone,
                    "group": group,
                    "alone_right": cell[0],
                    "finding": cell[1],
                    "hybrid_right": cell[2],
                    "class": cell[3],
                    "n": len(inside),
                    "as_found": sum(case.as_found for case in inside),
                    "ids": [case.score.id for case in inside],
                }
            )
    return records


@dataclass(frozen=True)
class Rate:
    """A rate over some cases, with its 95 % interval: k of n."""

    name: str
    k: int
    n: int
    value: float | None
    interval: Interval | None

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends of the interval."""
        return (self.interval.low, self.interval.high) if self.interval else (None, None)


def rates(cases: Sequence[Case]) -> tuple[Rate, ...]:
    """Every rate, with Wilson's interval or that over clusters."""
    return tuple(_rate(name, each, cases) for name, each in RATES.items())


def _rate(name: str, each: Share, cases: Sequence[Case]) -> Rate:
    inside = [case for case in cases if each.over(case)]
    k, n = sum(map(each.counts, inside)), len(inside)
    found = interval(accuracy(name, [replace(case.score, correct=float(each.counts(case))) for case in inside]))
    return Rate(name, k, n, k / n if n else None, found)


def rate_records(use: Use) -> list[dict[str, Json]]:
    """A record for each rate over all questions, and in each group where it is over any."""
    return [
        {
            "hybrid": use.hybrid,
            "alone": use.alone,
            "group": group,
            "rate": rate.name,
            "k": rate.k,
            "n": rate.n,
            "value": rate.value,
            "interval": list(rate.ends) if rate.interval else None,
        }
        for group, cases in _parts(use)
        for rate in rates(cases)
        if rate.n or not group
    ]


def left_records(use: Use) -> list[dict[str, Json]]:
    """A record for each reason why questions are in no class, and why findings are unread, with the ids."""
    both = {"hybrid": use.hybrid, "alone": use.alone, "group": ""}
    reasons = (("left_out", use.left_out), ("unread", unread(use)))
    return [{**both, key: why, "n": len(ids), "ids": list(ids)} for key, found in reasons for why, ids in found.items()]


def unread(use: Use) -> dict[str, tuple[str, ...]]:
    """By reason the ids of the questions of which nobody can tell what was found."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for case in use.cases:
        if case.said.unread is not None:
            found[case.said.unread].append(case.score.id)
    return {why: tuple(ids) for why, ids in found.items()}


def _numbers(use: Use) -> list[Number]:
    found = []
    for group, cases in _parts(use):
        count = Counter(case.name for case in cases)
        found += [
            Number(NAME, name, "questions", count[name], use.alone, use.hybrid, group=group, n=len(cases))
            for name in CLASSES
            if count[name] or not group
        ]
        found += [
            Number(
                NAME,
                f"{rate.name} rate",
                "fraction",
                rate.value,
                use.alone,
                use.hybrid,
                group=group,
                n=rate.n,
                low=rate.ends[0],
                high=rate.ends[1],
            )
            for rate in rates(cases)
            if rate.n or not group
        ]
    return found


def class_table(use: Use) -> Table:
    """Every class with its count, and how many of it tools helped and harmed."""
    rows = []
    for name, words in CLASSES.items():
        inside = [case for case in use.cases if case.name == name]
        helped = sum(case.hybrid_right and not case.alone_right for case in inside)
        harmed = sum(case.alone_right and not case.hybrid_right for case in inside)
        rows.append((name, words, str(len(inside)), str(helped), str(harmed), str(sum(c.as_found for c in inside))))
    columns = ("class", "what belongs to it", "n", "helped", "harmed", "as found")
    return Table(
        f"Use of evidence: {use.hybrid} next to {use.alone}",
        tuple(Column(name, "left" if place < 2 else "right") for place, name in enumerate(columns)),
        tuple(rows),
        (
            JUDGED,
            *_left_notes(use),
        ),
    )


def _left_notes(use: Use) -> list[str]:
    notes = [f"Left out, {why}: {_named(ids)}." for why, ids in use.left_out.items()]
    return [*notes, *(f"unread, {why}: {_named(ids)}." for why, ids in unread(use).items())]


def _named(ids: Sequence[str]) -> str:
    more = ", ..." if len(ids) > SHOWN_IDS else ""
    return f"{len(ids)} ({', '.join(ids[:SHOWN_IDS])}{more})"


def cell_table(use: Use) -> Table:
    """MLLM alone by finding, against the hybrid."""
    count = Counter((case.alone_right, case.said.finding, case.hybrid_right) for case in use.cases)
    rows = [
        (
            "right" if alone else "wrong",
            finding,
            str(count[alone, finding, True]),
            str(count[alone, finding, False]),
        )
        for alone in (True, False)
        for finding in VERDICTS
        if finding != "unread" or any(case.said.finding == "unread" for case in use.cases)
    ]
    return Table(
        f"{use.alone} alone x finding x {use.hybrid}",
        (Column("alone", "left"), Column("finding", "left"), Column("hybrid right"), Column("hybrid wrong")),
        tuple(rows),
    )


def rate_table(use: Use, by: str) -> Table:
    """Findings, adoption and over-trust over all questions and in each group."""
    rows = []
    for group, cases in _parts(use):
        found = {rate.name: rate for rate in rates(cases)}
        verdicts = Counter(case.said.finding for case in cases)
        adopted, trusted = found["adoption"], found["over-trust"]
        rows.append(
            (
                group or "all",
                str(len(cases)),
                *(str(verdicts[verdict]) for verdict in VERDICTS),
                *_shown(adopted),
                *_shown(trusted),
            )
        )
    columns = (by, "n", *VERDICTS, "adopted", "rate", "95 %", "over-trusted", "rate", "95 %")
    return Table(
        f"Findings of {use.hybrid}, and what became of them",
        tuple(Column(name, "left" if place == 0 else "right") for place, name in enumerate(columns)),
        tuple(rows),
        (BECAME,),
    )


def _shown(rate: Rate) -> tuple[str, str, str]:
    return share(rate.k, rate.n), fraction(rate.value), bounds(rate.interval)
