"""Does the MLLM use what the tools find?

A finding is right where the specialist's rule, run on what the tools said in this conversation, answers right.
helped: alone wrong, hybrid right; harmed: the reverse; no readable answer is not right. The first repetition is read.

n: questions that the hybrid solver and the MLLM alone answered, and that are right or wrong
source: docs/evidence.md
values: 0 to n, in questions

- correct adoption = questions with: alone wrong, finding right, hybrid right
- confirmed = questions with: alone right, finding right, hybrid right
- ignored evidence = questions with: finding right, hybrid wrong
- over-trust = questions with: alone right, finding wrong, hybrid wrong
- resisted = questions with: alone right, finding wrong, hybrid right
- wrong from both = questions with: alone wrong, finding wrong, hybrid wrong
- right despite both = questions with: alone wrong, finding wrong, hybrid right
- no finding = questions with: a tool that the rule asks was called, and what it said comes to no answer
- wrong tool = questions with: tools were called, and none that the rule asks
- no call = questions with: no tool was called
- unread = questions with: the finding cannot be read as an answer
- adoption rate (0 to 1) = questions with hybrid right / questions with alone wrong and finding right [n: questions
  with alone wrong and finding right]
- over-trust rate (0 to 1) = questions with hybrid wrong / questions with alone right and finding wrong [n: questions
  with alone right and finding wrong]
- harmed against a right finding rate (0 to 1) = questions with hybrid wrong / questions with alone right and finding
  right [n: questions with alone right and finding right]
- harmed without a finding rate (0 to 1) = questions with hybrid wrong / questions with alone right and no finding [n:
  questions with alone right and no finding]
- right findings rate (0 to 1) = questions with finding right / questions with finding right or wrong [n: questions
  with finding right or wrong]
- <class>: <helped|harmed|as found> = questions of the class: alone wrong and hybrid right, the reverse, or answered
  as the findings say [n: questions of the class]
- left out: <why> = questions that are in no class, by reason
- why unread: <why> = questions of the class unread, by reason

`findings.py` judges the finding. Every question that both solvers answered falls into exactly one class (`CLASSES`), so
that every question that tools helped or harmed is in one as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, get_args

from hybrid.benchmarks.base import accuracy
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import definition, statistic
from hybrid.scoring.findings import Heard, Verdict, heard
from hybrid.scoring.result import FRACTION, QUESTIONS, Result, gated, with_interval
from hybrid.scoring.score import Scored, group_of
from hybrid.types import Score

NAME: Final = "evidence"

EvidenceClass = Literal[
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

DEFINED: Final = definition(__doc__)
CLASSES: Final[Mapping[EvidenceClass, str]] = {
    name: DEFINED.formula(name).removeprefix("questions with: ") for name in get_args(EvidenceClass)
}
"""By name what belongs to a class; every question belongs to exactly one."""

WITH_FINDING: Final[Mapping[tuple[bool, Verdict, bool], EvidenceClass]] = {
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


def class_of(alone_right: bool, findings: Heard, hybrid_right: bool) -> EvidenceClass:
    """The one class of a question."""
    if findings.finding in ("right", "wrong"):
        return WITH_FINDING[alone_right, findings.finding, hybrid_right]
    if findings.finding == "unread":
        return "unread"
    if not findings.calls:
        return "no call"
    return "no finding" if findings.to_the_point else "wrong tool"


@dataclass(frozen=True)
class AnsweredQuestion:
    """One question that the hybrid solver and its MLLM alone answered, and what the tools said in between."""

    score: Score
    """The hybrid's."""
    group: str
    alone_right: bool
    said: Heard
    hybrid_right: bool

    @property
    def name(self) -> EvidenceClass:
        """Its class."""
        return class_of(self.alone_right, self.said, self.hybrid_right)

    @property
    def as_found(self) -> bool:
        """Whether the hybrid gave the very answer that the findings come to."""
        return self.said.answer is not None and self.score.answer == self.said.answer


class Rate(NamedTuple):
    """A share of some questions: which it is over, and which of them count."""

    over: Callable[[AnsweredQuestion], bool]
    counts: Callable[[AnsweredQuestion], bool]


RATES: Final[Mapping[str, Rate]] = {
    "adoption": Rate(
        lambda one: not one.alone_right and one.said.finding == "right",
        lambda one: one.hybrid_right,
    ),
    "over-trust": Rate(
        lambda one: one.alone_right and one.said.finding == "wrong",
        lambda one: not one.hybrid_right,
    ),
    "harmed against a right finding": Rate(
        lambda one: one.alone_right and one.said.finding == "right",
        lambda one: not one.hybrid_right,
    ),
    "harmed without a finding": Rate(
        lambda one: one.alone_right and one.said.finding == "none",
        lambda one: not one.hybrid_right,
    ),
    "right findings": Rate(
        lambda one: one.said.finding in ("right", "wrong"),
        lambda one: one.said.finding == "right",
    ),
}
"""By name; `NAME rate` is the quantity."""


@dataclass(frozen=True)
class EvidenceUse:
    """The questions of a hybrid solver next to its MLLM alone, and by reason the ids of those that are left out."""

    answered: tuple[AnsweredQuestion, ...]
    left_out: Mapping[str, tuple[str, ...]]


def evidence_use(hybrid: Scored, alone: Scored, by: str | None) -> EvidenceUse:
    """The questions that both solvers have and neither failed, and what was heard from the tools in each."""
    before, findings = {score.id: score for score in alone.scores}, heard(hybrid)
    answered: list[AnsweredQuestion] = []
    left: defaultdict[str, list[str]] = defaultdict(list)
    for score in hybrid.scores:
        score_alone = before.get(score.id)
        if score_alone is None:
            left["not asked of the MLLM alone"].append(score.id)
        elif score_alone.outcome.failed or score.outcome.failed:
            left["failed"].append(score.id)
        elif score_alone.correct is None or score.correct is None:
            left["graded, neither right nor wrong"].append(score.id)
        else:
            right = score_alone.correct == 1.0, score.correct == 1.0
            answered.append(AnsweredQuestion(score, group_of(score, by), right[0], findings[score.id], right[1]))
    return EvidenceUse(tuple(answered), {why: tuple(ids) for why, ids in left.items()})


def rows(comparison: Comparison) -> Iterator[Result]:
    """Every class with its ids and every rate, over all and by group, for each hybrid solver with an MLLM alone."""
    for group in comparison.groups:
        if group.alone is not None:
            use = evidence_use(group.hybrid, group.alone, comparison.options.by)
            row = Result(NAME, "", QUESTIONS, None, group.alone.solver, group.hybrid.solver)
            whole = comparison.overlap(group.alone, group.hybrid, repeated=False)
            parts = {"": whole, **whole.by_group(comparison.options.by)}
            for name in ("", *sorted({one.group for one in use.answered})):
                own = [one for one in use.answered if name in ("", one.group)]
                shared = parts.get(name, whole)
                untested = shared.untested(allow_failed=comparison.options.allow_failed, whole=whole)
                yield from gated(_part(replace(row, group=name), own), untested)
            for why, ids in use.left_out.items():
                yield replace(row, quantity=f"left out: {why}", value=float(len(ids)), ids=ids)
            for why in sorted({one.said.unread for one in use.answered if one.said.unread is not None}):
                ids = tuple(one.score.id for one in use.answered if one.said.unread == why)
                yield replace(row, quantity=f"why unread: {why}", value=float(len(ids)), ids=ids)


def _part(row: Result, answered: Sequence[AnsweredQuestion]) -> Iterator[Result]:
    row = replace(row, n=len(answered))
    for name in CLASSES:
        inside = [one for one in answered if one.name == name]
        if not inside and row.group:
            continue
        ids = tuple(one.score.id for one in inside)
        yield replace(row, quantity=name, value=float(len(inside)), ids=ids)
        for what, members in {
            "helped": [one for one in inside if one.hybrid_right and not one.alone_right],
            "harmed": [one for one in inside if one.alone_right and not one.hybrid_right],
            "as found": [one for one in inside if one.as_found],
        }.items():
            if members:
                ids = tuple(one.score.id for one in members)
                quantity = f"{name}: {what}"
                yield replace(row, quantity=quantity, value=float(len(ids)), n=len(inside), ids=ids, detail=True)
    for rated, rate in RATES.items():
        inside = [one for one in answered if rate.over(one)]
        if inside or not row.group:
            metric = accuracy(rated, [replace(one.score, correct=float(rate.counts(one))) for one in inside])
            yield replace(with_interval(row, metric), quantity=f"{rated} rate", unit=FRACTION, n=len(inside))


def lead(comparison: Comparison, made: Sequence[Result]) -> str:
    """How often each hybrid solver took a right finding and fell for a wrong one."""
    del comparison
    parts = []
    for row in made:
        if row.quantity == "adoption rate" and not row.group:
            trusted = next(r for r in made if (r.quantity, r.a, r.b, r.group) == ("over-trust rate", row.a, row.b, ""))
            parts.append(
                f"{row.b} took up {_of(row)} right findings that {row.a} needed, and followed {_of(trusted)} wrong "
                "ones against its own right answer."
            )
    return " ".join(parts)


def _of(row: Result) -> str:
    return f"{round((row.value or 0.0) * (row.n or 0))} of {row.n}"


def _about() -> str:
    """The explanation, then each class and rate in a line."""
    rates = [DEFINED.formula(f"{name} rate").removeprefix("questions with ") for name in RATES]
    counted = dict(zip(RATES, (rate.split(" / questions with ") for rate in rates), strict=True))
    lines = [f"{name}: {words}." for name, words in CLASSES.items()]
    lines += [f"{name} rate, {over}: {counts}." for name, (counts, over) in counted.items()]
    return "\n".join((DEFINED.about, *lines))


SECTION = statistic(
    rows,
    lead,
    about=_about(),
    headings={"a": "alone", "b": "hybrid"},
    chart="counts",
    charted=tuple(CLASSES),
    order=140,
)
