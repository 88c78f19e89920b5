"""The conclusion of a comparison: at most five sentences with numbers and intervals, read from the result table.

    for sentence in conclusion(compare(solvers)):
        sentence.id, sentence.text          # "gain.more", "With tools the model answers 48 of 50 right where ..."

In order: what a hybrid solver gains over its model alone, over the specialists alone, what of it comes from what the
tools say, on which tasks it is behind, and what limits the claim. `conclusion_cases.py` has the condition and the words
of each sentence; nothing is tested here that `hybrid compare` does not print.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hybrid.display.terminal import clipped
from hybrid.errors import UsageError
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_cases import WORDS
from hybrid.scoring.conclusion_rows import (
    COUNTS,
    NAME_WIDTH,
    ConclusionRows,
    HeadlinePair,
    count_of,
    ends_of,
    short_name,
    size_of,
    turned,
)
from hybrid.scoring.groups import ComparisonGroup, is_imported, word
from hybrid.scoring.result import FRACTION, Result, adjusted
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.outcomes import UNREADABLE
from hybrid.stats import detectable_difference
from hybrid.types import Outcome

UNREADABLE_SHARE = 0.05
"""Of the questions; calls that could not be read in more of them limit the claim."""
NAMED = 3
"""So many solvers or tasks are named in a list."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a conclusion, and the case that it is of (`conclusion_cases.py`)."""

    id: str
    text: str
    command: str = ""
    """The command that the text ends with."""


def conclusion(comparison: Comparison) -> tuple[Sentence, ...]:
    """At most five sentences; at least one where there is a solver."""
    return tuple(_Conclusion(ConclusionRows(comparison)).sentences())


def _said(case: str, **fields: object) -> Sentence:
    return Sentence(case, WORDS[case].format(**fields), str(fields.get("command", "")))


class _Conclusion:
    """The sentences about one comparison."""

    def __init__(self, rows: ConclusionRows) -> None:
        self._rows = rows
        self._found = rows.found
        # A judge's readings stand next to their solver as a solver of the same run and name.
        groups: dict[object, ComparisonGroup] = {}
        for group in rows.found.groups:
            groups.setdefault((group.hybrid.folder and group.hybrid.folder.path, group.hybrid.recorded), group)
        self._groups = tuple(groups.values())

    def sentences(self) -> Iterator[Sentence]:
        """In the order printed."""
        if not self._found.solvers:
            return
        if all(score.outcome.failed for one in self._found.solvers for score in one.scores):
            yield _said("nothing.answered")
            return
        if not self._groups:
            yield from self._without_tools()
        elif len(self._groups) == 1:
            yield from self._of_one(self._groups[0])
        else:
            yield from self._of_several()
        limits = "; ".join(sentence.text for sentence in self.limits())
        if limits:
            yield Sentence("limits", f"Limits: {limits}.")

    # One solver with tools.

    def _of_one(self, group: ComparisonGroup) -> Iterator[Sentence]:
        gain = None if group.alone is None else self._rows.pair(group.alone, group.hybrid)
        yield _said("gain.absent") if gain is None else _of_pair("gain", gain, _with_tools(gain))
        if group.specialist is None:
            yield _said("specialists.absent")
        else:
            pair = self._rows.pair(group.specialist, group.hybrid)
            yield _of_pair("specialists", pair, _alone("The specialists alone answer", "have", pair))
        if group.blank is None:
            yield _said("content.absent", command=_command(group))
        else:
            pair = self._rows.content(group)
            case: str = pair.state
            if gain is not None and gain.state == "more" and case in ("more", "less", "open"):
                case = "source" if case == "more" else "unshown"
            yield _of_pair("content", pair, _alone("With blank tools it answers", "it has", pair), case)
        yield from self._tasks(group)

    def _tasks(self, group: ComparisonGroup) -> Iterator[Sentence]:
        tested = [] if group.alone is None else self._rows.tasks(group.alone, group.hybrid)
        if len(tested) < 2:
            return
        lost = _lost(tested)
        by = self._by
        if not lost:
            yield _said("tasks.none", tasks=len(tested), by=by)
            return
        held = sum(row.holds for row in lost)
        holds = "none of them holds" if not held else f"{held} of them hold{'s' if held == 1 else ''}"
        parts = _listed([f"{clipped(row.group, NAME_WIDTH)} {_signed(row)}" for row in lost])
        yield _said("tasks.lost", count=len(lost), tasks=len(tested), by=by, parts=parts, held=holds)

    @property
    def _by(self) -> str:
        by = self._found.options.by
        return "tasks" if by is None else f"groups of {clipped(by, NAME_WIDTH)}"

    # Several solvers with tools.

    def _of_several(self) -> Iterator[Sentence]:
        gains = [self._rows.pair(one.alone, one.hybrid) for one in self._groups if one.alone is not None]
        if gains:
            parts, count = _several(gains, ("a gain for", "a loss for"))
            sizes = sorted({pair.n for pair in gains})
            n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            yield _said("gain.several", n=n, tests=_tests(count), parts=parts)
        else:
            yield _said("gain.absent")
        specialists = [
            self._rows.pair(one.specialist, one.hybrid) for one in self._groups if one.specialist is not None
        ]
        if specialists:
            yield _said("specialists.several", parts=_several(specialists, ("ahead", "behind"))[0])
        else:
            yield _said("specialists.absent")
        contents = [self._rows.content(one) for one in self._groups if one.blank is not None]
        if contents:
            yield _said("content.several", parts=_several(contents, ("a gain for", "a loss for"))[0])
        else:
            yield _said("content.absent", command=_command(self._groups[0]))
        lost = [
            f"{short_name(one.hybrid)} {_listed([clipped(row.group, NAME_WIDTH) for row in rows])}"
            for one in self._groups
            if one.alone is not None and (rows := _lost(self._rows.tasks(one.alone, one.hybrid)))
        ]
        yield _said("tasks.several", by=self._by.capitalize(), parts=_listed(lost, "; ") if lost else "none")

    # No solver with tools.

    def _without_tools(self) -> Iterator[Sentence]:
        rule = self._found.solvers[0].abstain
        made = [
            row
            for row in self._rows.of("metrics")
            if (row.metric, row.none) == (self._found.headline, rule) and row.low is not None
        ]
        if not made:
            yield _said("solvers.silent")
            return
        most = max(row.value or 0.0 for row in made)
        best = [row for row in made if row.value == most]
        first = best[0]
        fields = {
            "best": _listed([clipped(row.a, NAME_WIDTH) for row in best]),
            "count": len(self._found.solvers),
            "metric": first.metric,
            "value": f"{first.value:.3f}",
            "n": first.n,
            "interval": f"95 % interval {first.low:.3f} to {first.high:.3f}",
        }
        if len(self._found.solvers) == 1:
            yield _said("solvers.one", **fields)
            return
        yield _said("solvers.ties" if len(best) > 1 else "solvers.best", **fields)
        yield from self._ahead(first.a)

    def _ahead(self, best: str) -> Iterator[Sentence]:
        """Of whom the solver with the highest value is ahead after adjustment over every tested pair."""
        pairs = [self._rows.pair(self._found.named(pair.a), self._found.named(pair.b)) for pair in self._found.pairs]
        tested = [pair.rows[0] for pair in pairs if pair.rows and pair.rows[0].p_holm is not None]
        of_best = [
            turned(row, (row.b, row.a) if row.a == best else (row.a, row.b)) for row in tested if best in (row.a, row.b)
        ]
        if not of_best:
            notes = [row.note for pair in pairs for row in pair.rows if row.note and best in (row.a, row.b)]
            yield _said(
                "ahead.untested", why=next(iter(notes), "no pair of it was chosen, or they share too few questions")
            )
            return
        shown = [row for row in of_best if row.holds and (row.low or 0.0) > 0]
        shown.sort(key=lambda row: -(row.value or 0.0))
        parts = _listed([f"{clipped(row.a, NAME_WIDTH)} by {size_of(row)} ({ends_of(row)})" for row in shown])
        yield _said("ahead.some" if shown else "ahead.none", tests=_tests(len(tested)), parts=parts)

    # What limits the claim.

    def limits(self) -> Iterator[Sentence]:
        """The parts of the last sentence."""
        solvers = self._concerned()
        names = {one.solver for one in solvers}
        rows = [row for row in self._rows.of("outcomes") if row.a in names]
        kinds = {kind.value: kind for kind in Outcome}
        total = sum(len(one.scores) for one in solvers)
        failed = sum(count_of(row) for row in rows if row.quantity in kinds and kinds[row.quantity].failed)
        silent = {kind.value for kind in Outcome if not kind.failed and kind is not Outcome.ANSWERED}
        none = sum(count_of(row) for row in rows if row.quantity in silent)
        waiting = sum(count_of(row) for row in rows if row.quantity == "open")
        if failed:
            yield _said("limits.failed", failed=failed, n=total)
        if waiting:
            yield _said("limits.open", open=waiting)
        if none:
            yield _said("limits.none", none=none, n=total, counts=COUNTS[solvers[0].abstain])
        for row in rows:
            if row.quantity == UNREADABLE and count_of(row) > UNREADABLE_SHARE * (row.n or 0):
                yield _said("limits.unreadable", unread=count_of(row), n=row.n, solver=clipped(row.a, NAME_WIDTH))
        if any(one.data.generated for one in solvers):
            yield _said("limits.generated")
        if any(is_imported(one) or (one.model or "").startswith("replay:") for one in solvers):
            yield _said("limits.recorded")
        yield from self._detectable(solvers)

    def _concerned(self) -> tuple[Scored, ...]:
        """The solvers that the first sentences are about; the specialists' abstentions are in their own sentence."""
        concerned = [
            one for group in self._groups for one in (group.hybrid, group.alone, group.blank) if one is not None
        ]
        return tuple({one.solver: one for one in concerned}.values()) or self._found.solvers

    def _detectable(self, solvers: Sequence[Scored]) -> Iterator[Sentence]:
        """Which difference the questions can show, by the formula of `hybrid plan --questions N`."""
        rows = [row for row in self._rows.of("metrics") if row.a in {one.solver for one in solvers}]
        sizes = [row.n for row in rows if row.metric == self._found.headline and row.unit == FRACTION and row.n]
        if sizes and (self._groups or len(solvers) > 1):
            try:
                least = detectable_difference(min(sizes))
            except UsageError:
                return
            yield _said("limits.size", n=min(sizes), size=f"{math.ceil(100 * least)} points")


def _tests(count: int) -> str:
    return f"{count} test{'' if count == 1 else 's'}"


def _of_pair(sentence: str, pair: HeadlinePair, answers: str, case: str | None = None) -> Sentence:
    return _said(f"{sentence}.{case or pair.state}", answers=answers, **pair.fields())


def _with_tools(pair: HeadlinePair) -> str:
    if pair.right is not None:
        a, b = pair.right
        return f"With tools the model answers {b} of {pair.n} right where it alone answers {a}"
    return f"With tools the model has {_value(pair, 1)} where it alone has {_value(pair, 0)}, over {pair.n} questions"


def _alone(counted: str, has: str, pair: HeadlinePair) -> str:
    """`The specialists alone answer 85 and give no answer to 3`, or their value of the metric."""
    if pair.right is None:
        return f"{counted.rsplit(' ', 2 if 'it' in counted else 1)[0]} {has} {_value(pair, 0)}"
    none = f" and give no answer to {pair.none[0]}" if pair.none[0] and "specialists" in counted else ""
    return f"{counted} {pair.right[0]}{none}"


def _value(pair: HeadlinePair, place: Literal[0, 1]) -> str:
    value = pair.values[place]
    metric = pair.rows[0].metric if pair.rows else ""
    return "no value" if value is None else f"{metric} {value:.3f}"


def _signed(row: Result) -> str:
    sign = "-" if (row.value or 0.0) < 0 else "+"
    return f"({sign}{size_of(row)}, {ends_of(row, signed=True)})"


def _lost(rows: Sequence[Result]) -> list[Result]:
    """The differences whose interval is below 0, the largest first."""
    return sorted((row for row in rows if row.high is not None and row.high < 0), key=lambda row: row.value or 0.0)


def _listed(names: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return between.join(names[:NAMED]) + more


def _several(pairs: Sequence[HeadlinePair], words: tuple[str, str]) -> tuple[str, int]:
    """Which of several differences hold after adjustment over all of them, and how many were tested."""
    rows = [replace(pair.weakest, b=pair.b.solver, p_holm=None) for pair in pairs if pair.rows]
    ready = adjusted(rows, lambda row: row.section)
    kinds: dict[str, list[str]] = {words[0]: [], words[1]: [], "no difference shown for": [], "not tested": []}
    kinds["not tested"] += [short_name(pair.b) for pair in pairs if not pair.rows]
    for row in ready:
        name = clipped(row.b, NAME_WIDTH)
        if row.p_holm is None or row.low is None:
            kinds["not tested"].append(name)
        elif row.holds and row.excludes_zero:
            kinds[words[0] if row.low > 0 else words[1]].append(f"{name} {_signed(row)}")
        else:
            kinds["no difference shown for"].append(name)
    parts = "; ".join(f"{kind} {_listed(names)}" for kind, names in kinds.items() if names)
    return parts, sum(row.p is not None for row in ready)


def _command(group: ComparisonGroup) -> str:
    """The command that asks the same questions with blank tools."""
    run = group.hybrid.folder.path.as_posix() if group.hybrid.folder else "RUN"
    words = ("hybrid", "run", "--config", run, "--solver", word(group.hybrid), "--tool-output", "blank")
    return shlex.join((*words, "--out", f"{run}-blank"))
