"""The rows of the result table that conclusions use.

pair = ConclusionRows(compare(solvers)).pair(alone, hybrid)
pair.state, pair.right       # "more", (21, 48)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybrid.display.terminal import clipped
from hybrid.scoring.attempt_facts import asks_of
from hybrid.scoring.compare import Comparison, SolverPair
from hybrid.scoring.conclusion_words import NAME_WIDTH, short_name
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.headline_pair import AnswerSplit, HeadlinePair, hangs_on_rule, is_uneven, shown
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import Result, contrasted
from hybrid.scoring.score import Scored, answered
from hybrid.scoring.sections import results
from hybrid.scoring.sections.answered import ANSWERING, BETTER, BOTH, RIGHT_A, SILENT, SPOKEN
from hybrid.scoring.tally import OTHER

# The sections that a conclusion reads; those that `conclusion_review.py` reads come last.
REVIEW = ("headroom", "equivalence", "used", "selection", "called", "places", "pooled", "price")
SECTIONS = ("metrics", "differences", "helped", "gain", "effects", "outcomes", "answered", *REVIEW)


def are_counts(values: Sequence[float | None], right: Sequence[int], n: int) -> bool:
    """Return whether each value of a metric equals the number of right answers divided by the number of questions."""
    return all(value is not None and abs(value * n - k) < 1e-6 for value, k in zip(values, right, strict=True))


class ConclusionRows:
    """The rows of a comparison from which conclusions are drawn."""

    def __init__(
        self, comparison: Comparison, sections: Sequence[str] = SECTIONS, differences: Sequence[Result] | None = None
    ) -> None:
        """Read the rows of these sections.

        `differences` passes the rows of the section `differences` while that section is still being computed.
        """
        self.found = comparison
        self._by_section = {result.name: result.rows for result in results(comparison, sections)}
        if differences is not None:
            self._by_section["differences"] = tuple(differences)
        # The rows of each section by their two solvers: a comparison of many solvers looks up each of its pairs.
        self._by_pair: dict[str, dict[frozenset[str], list[Result]]] = {}

    def of(self, section: str) -> tuple[Result, ...]:
        """Return the rows of one section; empty if it could not be computed."""
        return self._by_section.get(section, ())

    def between(self, section: str, names: tuple[str, str]) -> list[Result]:
        """Return the rows of a pair in a section, with the two solvers in the order of `names`."""
        if section not in self._by_pair:
            by_pair = self._by_pair[section] = {}
            for row in self.of(section):
                by_pair.setdefault(frozenset((row.a, row.b)), []).append(row)
        return [turned(row, names) for row in self._by_pair[section].get(frozenset(names), ())]

    def pair(self, a: Scored, b: Scored) -> HeadlinePair:
        """Return the headline difference of two solvers, in whichever order the pair was tested."""
        names = (a.solver, b.solver)
        differences = [row for row in self.between("differences", names) if not row.group]
        metric = next((row.metric for row in differences if row.quantity == "helped"), None)
        rows = {row.quantity: row for row in differences if row.metric == metric}
        metrics = self.found.overlap(a, b).headline(b.unanswered)
        chosen = self.found.options.pairs
        is_chosen = chosen is None or any(set(each) == set(names) for each in chosen)
        found = None if metrics is None else (metrics[0], metrics[1])
        pair = HeadlinePair(a, b, metrics=found, is_chosen=is_chosen)
        if not rows:
            return pair
        n, values = rows["helped"].n or 0, (rows["value a"].value, rows["value b"].value)
        verdicts = [(row.quantity.split(" -> "), count_of(row)) for row in self.between("helped", names)]
        right = tuple(sum(k for outcomes, k in verdicts if outcomes[place] == "right") for place in (0, 1))
        is_count = bool(verdicts) and are_counts(values, right, n)
        # Repetitions count as their mean, which is not a number of right answers.
        is_count = is_count and all(len(self.found.repetitions(solver)) == 1 for solver in (a, b))
        count, none = (right[0], right[1]), (count_of(rows["none a"]), count_of(rows["none b"]))
        pair = replace(pair, rows=(rows["difference"],), values=values, none=none, count=count)
        pair = replace(pair, right=count if is_count else None)
        shared = self.found.overlap(a, b)
        pair = replace(_count_failed_and_silent(pair, shared), n=n, split=self._split(names, shared))
        return replace(pair, other_rule=self._other_rule(pair, shared), over_all=self._over_all(pair, shared))

    def tested_pair(self, a: Scored, b: Scored) -> HeadlinePair:
        """Return a pair of the section on gain, which tests it even if `--pairs` leaves it out.

        Its claim then needs the same rows as that of any other pair: without them, a difference that comes from
        answering at all would count as one of better answers. The comparison remembers such a pair, because several
        sentences and sections need it.
        """
        pair = self.pair(a, b)
        if pair.rows or self.found.options.pairs is None:
            return pair
        known, names = self.found.tested, (a.solver, b.solver)
        if names not in known:
            # Only the pairs differ, so this comparison shares the cached overlaps and answers.
            of_pair = replace(self.found, options=replace(self.found.options, pairs=(SolverPair(*names),)))
            known[names] = ConclusionRows(of_pair, ("differences", "helped", "answered")).pair(a, b)
        tested: HeadlinePair = known[names]
        return tested

    def _split(self, names: tuple[str, str], shared: Overlap, group: str = "") -> AnswerSplit | None:
        """Split the difference by which solver answered; None without an interval, or if both answered all."""
        rows = {(row.quantity, row.group): row for row in self.between("answered", names)}
        answering = rows.get((ANSWERING, group))
        if answering is None or answering.low is None:
            return None
        shares = [share[shared.counted] for share in shared.silent_share]
        more = _is_of_more_answers(shared, answering.value or 0.0)
        mixed = any(bool(np.any((share > 0) & (share < 1))) for share in shares)
        both = rows.get(("difference", BOTH))
        in_every = mixed and shared.with_answers().n < shared.answered_by_all.sum()
        some = bool(shared.answered_by_all[shared.counted].any())
        return AnswerSplit(
            answering,
            rows[BETTER, group],
            both=both,
            unanswered=(float(shares[0].sum()), float(shares[1].sum())),
            more_answered=more,
            mixed_repetitions=mixed,
            both_in_every=in_every,
            some_both=some,
            questions=rows[RIGHT_A, BOTH].n if (RIGHT_A, BOTH) in rows else None,
        )

    def _other_rule(self, pair: HeadlinePair, shared: Overlap) -> Result | None:
        """Return the difference by the other rule for unanswered questions, if it has another sign or state."""
        if pair.state not in ("more", "less", "open") or not np.any(shared.unanswered):
            return None
        metrics = shared.headline(OTHER[shared.rule])
        if metrics is None:
            return None
        row = contrasted(pair.rows[0], metrics[0], metrics[1], shared.untested(metrics))[0]
        return row if hangs_on_rule(pair, row) else None

    def _over_all(self, pair: HeadlinePair, shared: Overlap) -> Result | None:
        """For a mean over tasks, return the difference over all questions if it leads to another conclusion."""
        if pair.metrics is None or pair.metrics[0].combine != "mean_of_ratios":
            return None
        a, b = shared.accuracy(shared.rule)
        row = contrasted(pair.rows[0], a, b, shared.untested())[0]
        return row if is_uneven(pair, row) else None

    def where_answered(self, specialist: Scored, other: Scored) -> tuple[HeadlinePair, dict[str, Result]]:
        """Return the pair on the questions that specialists answer, and the rows of the other questions by quantity.

        If they answer all or none, return the full pair and no rows.
        """
        pair = self.pair(specialist, other)
        rows = [row for row in self.of("answered") if (row.a, row.b) == (specialist.solver, other.solver)]
        answering, silent = ({row.quantity: row for row in rows if row.group == group} for group in (SPOKEN, SILENT))
        if not (answering and silent):
            return pair, {}
        values = (answering["value a"].value, answering["value b"].value)
        n = answering.get("right a", answering["difference"]).n or 0
        right = (count_of(answering.get("right a")), count_of(answering.get("right b")))
        right_counts = right if "right a" in answering and are_counts(values, right, n) else None
        part = replace(pair, rows=(answering["difference"],), values=values, right=right_counts, none=(0, 0), n=n)
        overlap = self.found.overlap(specialist, other)
        shared = overlap.with_failed(answered(overlap.answer[0]))
        metrics = shared.headline(shared.rule)
        part = replace(part, metrics=None if metrics is None else (metrics[0], metrics[1]))
        part = _count_failed_and_silent(part, shared)
        part = replace(part, count=right, split=self._split((specialist.solver, other.solver), shared, SPOKEN))
        return replace(part, other_rule=self._other_rule(part, shared), over_all=self._over_all(part, shared)), silent

    def part(self, group: ComparisonGroup, a: Scored, b: Scored, quantity: str) -> HeadlinePair:
        """Return a difference of the section `gain`, over the questions that all solvers of the gain have."""
        names = (a.solver, b.solver)
        solvers = [solver for solver in (group.alone, group.blank, group.hybrid) if solver is not None]
        pair = _count_failed_and_silent(self.tested_pair(a, b), self.found.overlap(*solvers))
        rows = [row for row in self.of("gain") if (row.a, row.b, row.quantity) == (*names, quantity) and not row.group]
        return replace(pair, rows=tuple(rows), n=self.pair(a, b).n or next((row.n or 0 for row in rows), 0))

    def called(self, solver: Scored) -> tuple[int, int]:
        """Return the number of answered questions with a tool call, and the number of answered questions."""
        if solver.folder is None:
            return 0, 0
        recorded = solver.folder.recorded(solver.recorded)
        answered = [score.id for score in solver.scores if not score.outcome.failed and score.id in recorded.by_id]
        has_calls = (any(usage.tool_calls for usage in asks_of(recorded, name).usages) for name in answered)
        return sum(has_calls), len(answered)

    def otherwise(self, a: Scored, b: Scored) -> str | None:
        """Return how b compares to a by the other rule for unanswered questions; None if both rules agree."""
        shared = self.found.overlap(a, b)
        if not np.any(shared.unanswered):
            return None
        verdict, other = (shared.shown(rule) for rule in (shared.rule, OTHER[shared.rule]))
        words = {1: "ahead of", -1: "behind", 0: "not significantly different from"}
        return None if other is None or verdict == other else f"{short_name(b)} is {words[other]} {short_name(a)}"

    def tasks(self, a: Scored, b: Scored) -> list[Result]:
        """Return the tested differences b minus a within each task; p values are adjusted over the pair's tasks."""
        names = (a.solver, b.solver)
        rows = [row for row in self.between("differences", names) if row.group and row.quantity == "difference"]
        return [row for row in rows if row.low is not None]

    def unscored_tasks(self, a: Scored, b: Scored) -> list[str]:
        """Return the tasks of which no answer is right or wrong, so that they have no difference of accuracies."""
        shared = self.found.overlap(a, b)
        scored = set(shared.task[shared.kept].astype(str))
        names = [name for name in dict.fromkeys(shared.task[shared.present].astype(str)) if name not in scored]
        return [] if self.found.options.by is not None else [clipped(name, NAME_WIDTH) for name in names]

    def is_of_answers(self, a: Scored, b: Scored, row: Result) -> bool:
        """Return whether a task's difference does not depend on unanswered questions: see `is_of_answers`."""
        return is_of_answers(self.found, a, b, row)


def is_of_answers(comparison: Comparison, a: Scored, b: Scored, row: Result) -> bool:
    """Return whether a task's difference does not depend on unanswered questions.

    The state of the difference must be the same on the questions that both answered, and on all questions by either
    rule.
    """
    part = comparison.overlap(a, b).groups(comparison.options.by)[row.group]
    if not np.any(part.unanswered):
        return True
    views = (part.with_answers().accuracy(part.rule), part.accuracy(OTHER[part.rule]))
    return all(shown(contrasted(row, of_a, of_b, None)[0]) == shown(row) for of_a, of_b in views)


def _count_failed_and_silent(pair: HeadlinePair, shared: Overlap) -> HeadlinePair:
    """Return the pair with the failed questions of the overlap that decides whether to test, and which is silent there.

    The overlap may have a third solver, in the order of which a and b are.
    """
    names, metrics = (pair.a.solver, pair.b.solver), shared.headline(shared.rule)
    if metrics is not None:
        by_solver = zip(metrics, shared.solvers, strict=True)
        metrics = tuple(metric for metric, solver in by_solver if solver.solver in names)
    silent = tuple(solver.solver for solver in shared.without_answers(metrics, (pair.a, pair.b)))
    return replace(pair, failed=int(shared.lost.sum()), asked=int((~shared.missing).sum()), silent=silent)


def _is_of_more_answers(overlap: Overlap, answering: float) -> bool:
    """Return whether at least half of the part from answering exists because one solver answered more questions.

    That share is computed as if both solvers had gained equally on each question that only one of them answered. A
    question weighs as in the headline metric, times the share of pairs of repetitions in which only one solver answered
    it. If one of these questions is neither right nor wrong, only the numbers of questions decide.
    """
    silent_a, silent_b = (np.where(overlap.counted, share, 0.0) for share in overlap.silent_share)
    only_a, only_b = (1 - silent_a) * silent_b, silent_a * (1 - silent_b)
    if not overlap.kept[only_a + only_b > 0].all():
        return float(only_b.sum() - only_a.sum()) * answering > 0
    metrics, weight = overlap.headline(overlap.rule), np.ones(len(overlap))
    if metrics is not None and metrics[0].combine == "mean_of_ratios":
        sizes = Counter(overlap.task[overlap.kept].tolist())
        weight = np.array([1 / max(1, sizes[task]) for task in overlap.task])
    # Correctness above the credit for no answer, in the repetitions where the other solver gives no answer.
    gained, lost = silent_a * (overlap.right[1] - overlap.credit), silent_b * (overlap.right[0] - overlap.credit)
    gain, loss = float((gained * weight).sum()), float((lost * weight).sum())
    of_b, of_a = float((weight * only_b).sum()), float((weight * only_a).sum())
    of_number = (of_b - of_a) / ((of_a + of_b) or 1.0) * (gain + loss)
    return of_number * answering > 0 and 2 * abs(of_number) >= abs(gain - loss) - 1e-9


def count_of(row: Result | None) -> int:
    """Return the count of a row; 0 without a row or value."""
    return 0 if row is None else round(row.value or 0)


def turned(row: Result, names: tuple[str, str]) -> Result:
    """Return a row with its solvers in the order of `names`; swapping a and b changes the sign of a difference."""
    if (row.a, row.b) == names:
        return row
    mirrored = {" a": " b", " b": " a"}
    quantity = row.quantity[:-2] + mirrored.get(row.quantity[-2:], row.quantity[-2:])
    quantity = " -> ".join(reversed(quantity.split(" -> ")))
    swapped = replace(row, a=row.b, b=row.a, quantity=quantity)
    if not row.quantity.startswith("difference"):
        return swapped
    value, low, high = (None if number is None else -number for number in (row.value, row.low, row.high))
    return replace(swapped, value=value, low=high, high=low)
