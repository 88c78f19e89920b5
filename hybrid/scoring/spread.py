"""How much a solver varies from one repetition to the next: what an interval over questions does not tell.

    hybrid run blink --model openai:gpt-4o --model-arg temperature=1 --setting repeats=5
    hybrid compare RUN

Every number is over the questions that all repetitions have and none failed, so that only the asking differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybrid.benchmarks.base import Benchmark, accuracy
from hybrid.registry import load
from hybrid.scoring.compare import Comparison
from hybrid.scoring.roles import repetition, role, word
from hybrid.scoring.score import AnyQuestions, Scored, group_of, summary
from hybrid.scoring.told import Number, Told
from hybrid.stats.spread import Spread, spread
from hybrid.tables import NONE, Column, Table, bounds
from hybrid.tables import accuracy as as_accuracy
from hybrid.tables import number as as_number
from hybrid.types import Json, Outcome, Score

NAME = "spread"
TITLE = "How much does a solver vary when it is asked again?"
ACCURACY = "accuracy"
MEANING = (
    "An interval over questions says how far the value would move with other questions of the same kind, asked once as "
    "they were here. It does not cover that the same question, asked again, is answered otherwise: that is the "
    "standard deviation here, and the interval here is of the mean over ever more repetitions of these questions."
)

SAME_TOOLS = "Tools tell every repetition the same: their findings come from the cache the second time."


@dataclass(frozen=True)
class Repetitions:
    """One solver's repetitions in order, on the questions that all of them have."""

    solver: str
    """Its name without a number."""
    names: tuple[str, ...]
    """Of the repetitions as the comparison calls them."""
    questions: AnyQuestions
    """Of their run, which need not be that of the other solvers."""
    scores: tuple[tuple[Score, ...], ...]
    """Of each repetition, over the same questions in the same order; those that one failed are failed in all."""
    uses_tools: bool


@dataclass(frozen=True)
class Varying:
    """One quantity over the repetitions: a metric over all tasks, or the accuracy of one task (or group)."""

    metric: str
    group: str
    """Empty for all."""
    n: int
    """Questions with a verdict; units of the metric for all tasks."""
    values: tuple[float, ...]
    """One for each repetition."""
    found: Spread
    changed: int
    judged: int
    """Of so many questions with a verdict, so many have not the same one in all repetitions."""

    @property
    def share_changed(self) -> float | None:
        """The share of the questions, 0..1, whose verdict differs between repetitions."""
        return self.changed / self.judged if self.judged else None


def repeated_solvers(solvers: Sequence[Scored]) -> tuple[Repetitions, ...]:
    """The solvers that were asked more than once, in the order in which they come."""
    groups: dict[tuple[str | None, str], list[Scored]] = {}
    for one in solvers:
        groups.setdefault((str(one.folder.path) if one.folder else None, word(one)), []).append(one)
    found = []
    for members in groups.values():
        ordered = sorted(members, key=repetition)
        if len(ordered) > 1 and len({repetition(one) for one in ordered}) == len(ordered):
            names = tuple(one.solver for one in ordered)
            found.append(
                Repetitions(names[0], names, ordered[0].questions, _aligned(ordered), role(ordered[0]) == "hybrid")
            )
    return tuple(found)


def _aligned(members: Sequence[Scored]) -> tuple[tuple[Score, ...], ...]:
    tables = [{score.id: score for score in one.scores} for one in members]
    shared = [identity for identity in tables[0] if all(identity in table for table in tables)]
    lost = {identity for identity in shared if any(table[identity].outcome.failed for table in tables)}
    return tuple(
        tuple(replace(table[i], outcome=Outcome.OUTAGE) if i in lost else table[i] for i in shared) for table in tables
    )


def varying(found: Comparison, repeats: Repetitions) -> tuple[Varying, ...]:
    """The headline metric and the accuracy of each task (or group) over a solver's repetitions."""
    benchmark: Benchmark = load("hybrid.benchmarks", found.solvers[0].benchmark)
    rows = []
    tables = [
        {metric.name: metric for metric in summary(benchmark, repeats.questions, scores) if metric.cells}
        for scores in repeats.scores
    ]
    head = next((name for name in benchmark.card.headline if all(name in table for table in tables)), None)
    if head is not None:
        values = [table[head].value for table in tables]
        rows.append(_varying(head, "", tables[0][head].n, values, repeats.scores))
    groups: dict[str, list[int]] = {}
    for place, score in enumerate(repeats.scores[0]):
        groups.setdefault(group_of(score, found.choice.by), []).append(place)
    for name, places in sorted(groups.items()):
        parts = [[scores[place] for place in places] for scores in repeats.scores]
        metrics = [accuracy(ACCURACY, part) for part in parts]
        rows.append(_varying(ACCURACY, name, metrics[0].n, [metric.value for metric in metrics], parts))
    return tuple(row for row in rows if row is not None)


def _varying(
    metric: str, group: str, n: int, values: Sequence[float | None], scores: Sequence[Sequence[Score]]
) -> Varying | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    verdicts = [
        [score.correct for score in each]
        for each in zip(*scores, strict=True)
        if not any(score.outcome.failed for score in each)
    ]
    judged = [each for each in verdicts if None not in each]
    changed = sum(len(set(each)) > 1 for each in judged)
    return Varying(metric, group, n, tuple(known), spread(known), changed, len(judged))


def section(found: Comparison) -> Told | None:
    """A table for each solver that was asked more than once; None where none was."""
    rows = [(repeats, varying(found, repeats)) for repeats in repeated_solvers(found.solvers)]
    told = [(repeats, values) for repeats, values in rows if values]
    if not told:
        return None
    by = found.choice.by or "task"
    return Told(
        NAME,
        TITLE,
        tuple(_table(by, repeats, values) for repeats, values in told),
        tuple(_as_json(repeats, values) for repeats, values in told),
        tuple(number for repeats, values in told for each in values for number in _numbers(repeats, each)),
    )


def _table(by: str, repeats: Repetitions, rows: Sequence[Varying]) -> Table:
    heads = ("n", *repeats.names, "mean", "sd", "range", "95 % of the mean", "changed")
    lines = []
    for row in rows:
        found = row.found
        lines.append(
            (
                row.group or f"all, {row.metric}",
                as_number(row.n),
                *map(as_accuracy, row.values),
                as_accuracy(found.mean),
                as_accuracy(found.sd),
                f"{found.low:z.3f} to {found.high:z.3f}",
                bounds(found.interval, 3),
                NONE if row.share_changed is None else as_accuracy(row.share_changed),
            )
        )
    notes = (
        MEANING,
        "changed: of the row's questions with a verdict, the share whose verdict is not the same in all repetitions.",
        *((SAME_TOOLS,) if repeats.uses_tools else ()),
    )
    title = f"{repeats.solver}, asked {len(repeats.names)} times"
    return Table(title, (Column(by, "left"), *map(Column, heads)), tuple(lines), notes)


def _as_json(repeats: Repetitions, rows: Sequence[Varying]) -> dict[str, Json]:
    return {
        "solver": repeats.solver,
        "repetitions": list(repeats.names),
        "quantities": [_row_json(row) for row in rows],
        "changed": _changed(repeats),
    }


def _row_json(row: Varying) -> dict[str, Json]:
    found = row.found
    return {
        "metric": row.metric,
        "group": row.group,
        "n": row.n,
        "values": list(row.values),
        "mean": found.mean,
        "sd": found.sd,
        "least": found.low,
        "greatest": found.high,
        "interval": None if found.interval is None else [found.interval.low, found.interval.high],
        "changed": row.changed,
        "judged": row.judged,
    }


def _changed(repeats: Repetitions) -> dict[str, Json]:
    """By id the verdicts of the questions that changed, in the order of the repetitions."""
    found: dict[str, Json] = {}
    for each in zip(*repeats.scores, strict=True):
        verdicts = [score.correct for score in each]
        if len(set(verdicts)) > 1 and not any(score.outcome.failed for score in each):
            found[each[0].id] = verdicts
    return found


def _numbers(repeats: Repetitions, row: Varying) -> list[Number]:
    found, ends = row.found, row.found.interval

    def number(quantity: str, value: float | None, a: str = repeats.solver, n: int | None = None) -> Number:
        return Number(NAME, quantity, "fraction", value, a=a, metric=row.metric, group=row.group, n=n or row.n)

    mean = replace(
        number("mean over repetitions", found.mean),
        low=None if ends is None else ends.low,
        high=None if ends is None else ends.high,
    )
    return [
        *(number("value", value, name) for name, value in zip(repeats.names, row.values, strict=True)),
        mean,
        number("standard deviation over repetitions", found.sd),
        number("share of changed verdicts", row.share_changed, n=row.judged),
    ]
