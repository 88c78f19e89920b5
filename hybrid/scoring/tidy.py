r"""A comparison as one tidy table: one number a line, for a spreadsheet or a data frame.

    hybrid compare RUN --csv > numbers.csv

The columns are `benchmark`, the fields of `hybrid.scoring.told.Number`, and of the solvers `a` and `b` the model and
the run; an empty cell is a number that does not exist. Sections of the tables that every comparison has are `metrics`,
`tasks`, `differences`, `questions` (how many a pair shares) and `outcomes`; every other section is a file of this
folder (`compare_sections.py`).

Names of solvers, tasks and groups may come from data, and a spreadsheet takes a cell for a formula that begins with
`=`, `+`, `-`, `@`, a tab or a line break (OWASP, CSV Injection). Such a name gets an apostrophe in front, which a
spreadsheet does not show; so does one that has apostrophes before such a sign, so that taking one away gives back
every name (`named`). Numbers are numbers, negative ones too. Unlike in the tables, nothing here is rounded.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace

from hybrid.benchmarks.base import accuracy
from hybrid.scoring.compare import ALL, Comparison, Contest
from hybrid.scoring.roles import behind
from hybrid.scoring.same_questions import RULES
from hybrid.scoring.score import Scored, group_of, nothing_answered
from hybrid.scoring.told import FRACTION, Number, Told, unit_of
from hybrid.stats import interval
from hybrid.types import Metric, Outcome

_SIDES = ("model_a", "run_a", "model_b", "run_b")
COLUMNS = ("benchmark", *(field.name for field in fields(Number)), *_SIDES)

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NAMED = re.compile(r"'+[=+\-@\t\r\n]")


def as_csv(found: Comparison, told: Sequence[Told]) -> str:
    r"""A heading and a line for each number (RFC 4180 quoting, lines end in \n)."""
    return lines_as_csv(found.solvers[0].benchmark if found.solvers else "", numbers(found, told), found.solvers)


def lines_as_csv(benchmark: str, lines: Iterable[Number], solvers: Sequence[Scored]) -> str:
    """The table of any numbers of a benchmark, as `as_csv` writes it."""
    known = {one.solver: one for one in solvers}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        own = [getattr(line, field.name) for field in fields(Number)]
        pair = ((line.a, "_a"), (line.b, "_b"))
        sides = {key: value for name, side in pair if name in known for key, value in behind(known[name], side).items()}
        writer.writerow([_cell(benchmark), *map(_cell, own), *(_cell(sides.get(name)) for name in _SIDES)])
    return text.getvalue()


def neutral(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if _FORMULA.match(name) else name


def named(cell: str) -> str:
    """The name that a cell was written for: `neutral` the other way round."""
    return cell[1:] if _NAMED.match(cell) else cell


def numbers(found: Comparison, told: Sequence[Told]) -> Iterator[Number]:
    """Every number of the comparison's own tables, then those of its sections."""
    for solver in found.solvers:
        yield from _metrics(solver)
    for solver in found.solvers:
        yield from _tasks(solver, found.choice.by)
    for contest in found.contests:
        yield from _differences(contest, found)
    for meeting in found.meetings:
        counts = {
            "shared": meeting.shared,
            "only a": meeting.only_a,
            "only b": meeting.only_b,
            "failed": meeting.failed,
        }
        for name, count in counts.items():
            yield Number("questions", name, "questions", float(count), *meeting.pair)
    for solver in found.solvers:
        yield from _outcomes(solver)
    for one in told:
        yield from one.numbers


def _metrics(solver: Scored) -> Iterator[Number]:
    """Every metric under both rules, those that tables leave out among them."""
    for rule in RULES:
        for metric in solver.counted[rule].metrics:
            line = replace(_measured("metrics", metric, solver.solver), metric=metric.name, none=rule)
            yield replace(line, low=None, high=None) if solver.answered_nothing else line


def _tasks(solver: Scored, by: str | None) -> Iterator[Number]:
    """Accuracy of each task or group under both rules, and how many questions have no readable answer."""
    for rule in RULES:
        scores = [score for score in solver.counted[rule].scores if score.correct is not None]
        for group in sorted({group_of(score, by) for score in scores}):
            members = [score for score in scores if group_of(score, by) == group]
            none = sum(score.answer is None and not score.outcome.failed for score in members)
            line = _measured("tasks", accuracy("accuracy", members), solver.solver)
            if nothing_answered(members):
                # Nothing was measured where nothing was answered.
                line = replace(line, low=None, high=None)
            yield replace(line, quantity="accuracy", group=group, none=rule)
            if rule == solver.abstain:
                yield Number("tasks", "none", "questions", float(none), solver.solver, group=group, n=line.n)


def _measured(section: str, metric: Metric, solver: str) -> Number:
    ends = interval(metric)
    low, high = (ends.low, ends.high) if ends else (None, None)
    return Number(section, "value", unit_of((metric,)), metric.value, solver, n=metric.n, low=low, high=high)


def _differences(contest: Contest, found: Comparison) -> Iterator[Number]:
    measured, counts = contest.contrast, contest.counts
    by_name = {one.solver: one.metrics for one in found.solvers}
    pair = [m for name in contest.pair for m in by_name[name] if m.name == contest.metric]
    unit = FRACTION if contest.family == "tasks" else unit_of(pair)
    ends = measured.interval
    line = Number(
        "differences", "difference", unit, measured.difference, *contest.pair, metric=contest.metric,
        group="" if contest.group == ALL else contest.group, n=contest.n, low=ends.low if ends else None,
        high=ends.high if ends else None, p=measured.p_value, p_holm=contest.p_holm, none=found.solvers[0].abstain,
    )  # fmt: skip
    yield line
    bare = replace(line, low=None, high=None, p=None, p_holm=None)
    for name, value in (("value a", measured.value_a), ("value b", measured.value_b)):
        yield replace(bare, quantity=name, value=value)
    if contest.family == "metrics":
        return
    of_questions = {
        "both answered": counts.both_answered,
        "helped": counts.helped,
        "harmed": counts.harmed,
        "none a": counts.none_a,
        "none b": counts.none_b,
        "failed": counts.failed,
    }
    for name, count in of_questions.items():
        yield replace(bare, quantity=name, unit="questions", value=float(count), n=counts.n, none="")


def _outcomes(solver: Scored) -> Iterator[Number]:
    """How the questions ended and what they cost; what nobody recorded is empty."""
    count = Counter(score.outcome for score in solver.scores)
    line = Number("outcomes", "", "questions", None, solver.solver, n=len(solver.scores))
    for kind in Outcome:
        yield replace(line, quantity=kind.value, value=float(count[kind]))
    usage = solver.usage
    if usage is None:
        return
    # A recorded model was called and reports no token: their number is not known, and not 0.
    unknown = usage.model_calls > 0 and usage.input_tokens == usage.output_tokens == 0
    spent: tuple[tuple[str, str, float | None], ...] = (
        ("model calls", "calls", usage.model_calls),
        ("tool calls", "calls", usage.tool_calls),
        ("lost", "calls", usage.tool_faults),
        ("tokens in", "tokens", None if unknown else usage.input_tokens),
        ("tokens out", "tokens", None if unknown else usage.output_tokens),
        ("busy", "seconds", usage.seconds),
        ("wall", "seconds", solver.wall_s),
        ("cost", "USD", usage.cost_usd),
    )
    for name, unit, value in spent:
        yield replace(line, quantity=name, unit=unit, value=value)


def _cell(value: str | float | None) -> str:
    """A name made harmless; a number with all its digits, a whole one without a point."""
    if value is None:
        return ""
    if isinstance(value, str):
        return neutral(value)
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
