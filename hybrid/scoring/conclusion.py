"""What a run with its blank control comes to: a few plain sentences, and a row for each task.

    sides = Sides(tools=Answers.of([controller]), blank=..., alone=..., specialist=...)
    for sentence in conclusion(sides, fitting=["blink Jigsaw"], unfitting=["blink Spatial_Relation"]):
        print(sentence)

Differences are paired: `contrast` of the accuracies on the same questions, as `hybrid compare` prints it. A gain or a
loss is said only where its 95 % interval excludes 0 under both rules of what a question without a readable answer
counts (wrong, or a guess); the interval printed is the one that says less. Counts in sentences and in the table are
right answers: no answer is none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from hybrid.benchmarks.base import Abstain, accuracy
from hybrid.scoring.overlap import FAILED_SHARE
from hybrid.scoring.score import Scored
from hybrid.stats import Contrast, contrast, wilson
from hybrid.tables import NONE, Column, Table, bounds
from hybrid.types import Score

RULES: tuple[Abstain, ...] = ("wrong", "chance")
NO_ANSWER = "Intervals are 95 %. none: questions without a readable answer, counted here as not right."


@dataclass(frozen=True)
class Answers:
    """One way of answering some questions: verdicts by question, under both rules of what no answer counts."""

    verdicts: Mapping[Abstain, Mapping[str, Score]]

    @classmethod
    def of(cls, solvers: Sequence[Scored]) -> Answers:
        """Of a solver in one run for each benchmark; tasks are called `BENCHMARK TASK`."""
        named: dict[Abstain, dict[str, Score]] = {rule: {} for rule in RULES}
        for one in solvers:
            for rule in RULES:
                for score in one.counted[rule].scores:
                    if score.correct is not None:
                        own = _named(score, one.benchmark)
                        named[rule][own.id] = own
        return cls(named)

    @property
    def plain(self) -> Mapping[str, Score]:
        """The verdicts in which no answer is wrong."""
        return self.verdicts["wrong"]


def _named(score: Score, benchmark: str) -> Score:
    names = (f"{benchmark} {score.task}", f"{benchmark}/{score.id}", f"{benchmark}/{score.unit}")
    return replace(score, task=names[0], id=names[1], cluster=names[2])


@dataclass(frozen=True)
class Sides:
    """The four ways in which the same questions were answered."""

    tools: Answers
    """The model with tools."""
    blank: Answers
    """The same with tools whose findings are empty."""
    alone: Answers
    """The model without tools."""
    specialist: Answers
    """The tools without the model."""

    def all(self) -> tuple[Answers, ...]:
        """In the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def shared(self, tasks: Collection[str]) -> tuple[str, ...]:
        """The questions of the tasks that all four have, failed ones among them."""
        known = [side.plain for side in self.all()]
        return tuple(name for name, score in known[0].items() if score.task in tasks and all(name in o for o in known))

    def failed(self, names: Collection[str]) -> frozenset[str]:
        """Those of the questions that one of the four failed."""
        return frozenset(name for name in names if any(side.plain[name].outcome.failed for side in self.all()))


@dataclass(frozen=True)
class Count:
    """Of `n` questions `right` were answered rightly and `none` not at all."""

    n: int
    right: int
    none: int

    @classmethod
    def of(cls, side: Answers, names: Collection[str]) -> Count:
        """Of one side on the questions named."""
        found = [side.plain[name] for name in names]
        return cls(len(found), sum(score.correct == 1 for score in found), sum(score.answer is None for score in found))

    def __str__(self) -> str:
        return str(self.right)


def conclusion(
    sides: Sides, fitting: Collection[str], unfitting: Collection[str], *, allow_failed: bool = False
) -> tuple[str, ...]:
    """Sentences on the tasks that some tool fits, on those that none does, and on the specialists.

    Args:
        sides: the four ways; what only some of them have is left out.
        fitting: names of the tasks that a tool fits, as `Answers.of` has them.
        unfitting: names of the tasks that none does.
        allow_failed: conclude also where more than 1 % of the questions failed.
    """
    asked = {name: sides.shared(tasks) for name, tasks in (("fitting", fitting), ("unfitting", unfitting))}
    failed = sides.failed((*asked["fitting"], *asked["unfitting"]))
    total = sum(map(len, asked.values()))
    if not total:
        return ("No question has been answered in all four ways: there is nothing to conclude.",)
    if len(failed) / total > FAILED_SHARE and not allow_failed:
        return (f"{len(failed)} of {total} questions failed: nothing is concluded.",)
    with_tool, without = (tuple(name for name in names if name not in failed) for names in asked.values())
    found = [f"{len(failed)} of {total} questions failed and are left out."] if failed else []
    if with_tool:
        found += [_gain(sides, with_tool), _control(sides, with_tool), _next_to_specialist(sides, with_tool)]
    if without:
        found.append(_where_none_fits(sides, without))
    return tuple(found)


def _gain(sides: Sides, names: Sequence[str]) -> str:
    tools, alone = (Count.of(side, names) for side in (sides.tools, sides.alone))
    said = _difference(sides.alone, sides.tools, names)
    return f"With tools the model answers {tools} of {tools.n} right where it alone answers {alone}: {said}."


def _control(sides: Sides, names: Sequence[str]) -> str:
    """What blank tools come to, and what follows from it where there was a gain."""
    blank = Count.of(sides.blank, names)
    gained = _direction(_weakest(sides.alone, sides.tools, names)) > 0
    by_findings = _direction(_weakest(sides.blank, sides.tools, names)) > 0
    if gained and by_findings:
        return f"With blank tools it answers {blank}: the gain comes from what the tools say."
    if gained:
        return f"With blank tools it answers {blank}: it is not shown that the gain comes from what the tools say."
    words = ("what the tools say brings a gain of", "what the tools say brings a loss of")
    return f"With blank tools it answers {blank}: {_difference(sides.blank, sides.tools, names, words)}."


def _next_to_specialist(sides: Sides, names: Sequence[str]) -> str:
    specialist = Count.of(sides.specialist, names)
    if specialist.none == specialist.n:
        return "The specialists alone give no answer to these."
    words = ("with tools the model is ahead by", "with tools the model is behind by")
    said = _difference(sides.specialist, sides.tools, names, words)
    none = f" and give no answer to {specialist.none}" if specialist.none else ""
    return f"The specialists alone answer {specialist}{none}: {said}."


def _where_none_fits(sides: Sides, names: Sequence[str]) -> str:
    tools, alone, specialist = (Count.of(side, names) for side in (sides.tools, sides.alone, sides.specialist))
    said = _difference(sides.alone, sides.tools, names)
    others = "give no answer" if specialist.none == specialist.n else f"answer {specialist}"
    return (
        f"Where no tool fits it answers {tools} of {tools.n} with tools offered and {alone} alone: {said}; "
        f"the specialists {others} there."
    )


def _weakest(a: Answers, b: Answers, names: Sequence[str]) -> Contrast:
    """Of the differences b minus a under the two rules the one that says less: its interval is nearest to 0."""
    return min((_contrast(a, b, names, rule) for rule in RULES), key=_strength)


def _contrast(a: Answers, b: Answers, names: Sequence[str], rule: Abstain) -> Contrast:
    of_a, of_b = (accuracy("accuracy", [side.verdicts[rule][name] for name in names]) for side in (a, b))
    return contrast(of_a, of_b)


def _strength(found: Contrast) -> float:
    """How far the interval is from 0, negative where it holds it; least where there is none."""
    return -2.0 if found.interval is None else max(found.interval.low, -found.interval.high)


def _direction(found: Contrast) -> int:
    """1 for a gain, -1 for a loss, 0 where the interval holds 0 or there is none."""
    if found.interval is None:
        return 0
    return int(found.interval.low > 0) - int(found.interval.high < 0)


def _difference(
    a: Answers, b: Answers, names: Sequence[str], words: tuple[str, str] = ("a gain of", "a loss of")
) -> str:
    """The difference b minus a in words: no gain and no loss is named where the interval holds 0."""
    if len(names) in (Count.of(a, names).none, Count.of(b, names).none):
        return "nothing to compare, as one of the two answers nothing"
    found = _weakest(a, b, names)
    if found.interval is None or found.difference is None:
        return "too few questions to tell a difference"
    low, high, size = (100 * value for value in (found.interval.low, found.interval.high, abs(found.difference)))
    rule = "" if found == _contrast(a, b, names, "wrong") else "; no answer counts as a guess"
    match _direction(found):
        case 1:
            return f"{words[0]} {size:.0f} points (95 % interval {low:z.0f} to {high:z.0f}{rule})"
        case -1:
            return f"{words[1]} {size:.0f} points (95 % interval {-high:z.0f} to {-low:z.0f}{rule})"
        case _:
            few = f"no difference that {len(names)} questions can show"
            return f"{few} (95 % interval {low:z.0f} to {high:z.0f} points{rule})"


def overview(sides: Sides, names: Mapping[str, str], fitting: Mapping[str, str]) -> Table:
    """A row for each task, and one for those with a tool together; a column for each way of answering.

    Args:
        sides: the four ways; what one of them failed or lacks is left out.
        names: of the four ways, by field of `Sides`.
        fitting: by task, as `Answers.of` names it, the tool that fits, empty where none does.
    """
    with_tool = [task for task, tool in fitting.items() if tool]
    rows = [_row(sides, task, tool, [task]) for task, tool in fitting.items() if tool]
    if len(with_tool) > 1:
        rows.append(_row(sides, "together", "", with_tool))
    rows += [_row(sides, task, NONE, [task]) for task, tool in fitting.items() if not tool]
    columns = (Column("task", "left"), Column("tool", "left"), *(Column(names[field.name]) for field in fields(sides)))
    return Table("Right answers by task", columns, tuple(rows), (NO_ANSWER,))


def _row(sides: Sides, title: str, tool: str, tasks: Collection[str]) -> tuple[str, ...]:
    asked = sides.shared(tasks)
    failed = sides.failed(asked)
    kept = [name for name in asked if name not in failed]
    return (title, tool, *(_cell(Count.of(side, kept)) for side in sides.all()))


def _cell(count: Count) -> str:
    """10/12 [0.55, 0.95]; "12 none" where nothing was answered."""
    if not count.n:
        return NONE
    if count.none == count.n:
        return f"{count.none} none"
    none = f", {count.none} none" if count.none else ""
    return f"{count.right}/{count.n}{none} {bounds(wilson(count.right, count.n))}"
