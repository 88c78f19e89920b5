"""The rows of the result table that conclusions use, and the format of their numbers in a sentence.

pair = ConclusionRows(compare(solvers)).pair(alone, hybrid)
pair.state, pair.right, pair.fields()       # "more", (21, 48), {"size": "+54 points", "interval": ...}
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Metric
from hybrid.display.terminal import clipped, how_many
from hybrid.scoring.attempt_facts import asks_of
from hybrid.scoring.compare import Comparison, SolverPair
from hybrid.scoring.conclusion_cases import Case, case
from hybrid.scoring.groups import ComparisonGroup, own_command
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, UNTESTED, Result, contrasted
from hybrid.scoring.score import Scored, answered
from hybrid.scoring.sections import results
from hybrid.scoring.sections.answered import ANSWERING, BETTER, BOTH, RIGHT_A, SILENT, SPOKEN
from hybrid.scoring.tally import OTHER

# The sections that a conclusion reads; those that `conclusion_review.py` reads come last.
REVIEW = ("headroom", "equivalence", "used", "selection", "called", "places", "pooled", "price")
SECTIONS = ("metrics", "differences", "helped", "gain", "effects", "outcomes", "answered", *REVIEW)
NAME_WIDTH = 30
NAMED = 3  # Maximum number of solvers or tasks named in a list
COUNTS: Mapping[UnansweredRule, str] = {"guess": "as a guess", "wrong": "as wrong"}
# What questions that cannot be right or wrong (scanpaths) count by the rule `wrong`.
SUBSTITUTE = "as the benchmark's substitute"

# The result of a paired difference, or why it has none. It is also the second part of a case's id.
State = Literal["more", "less", "open", "few", "silent", "failed", "waiting", "units", "apart", "absent"]
# The state of a pair that was not tested, by the reason.
WHY_NOT: Mapping[str, State] = {"failed": "failed", "waiting": "waiting", "unanswered": "silent", "units": "units"}


# The claim about a tested pair: its state, or why the full difference supports no claim.
Claim = Literal["rule", "uneven", "answering", "others", "split"] | State

# The condition of each claim (`HeadlinePair.claim`, `HeadlinePair.state`) in words, as the site prints it.
CONDITIONS: Mapping[Claim, str] = {
    "more": "interval above 0",
    "less": "interval below 0",
    "open": "interval contains or touches 0",
    "rule": "by the other rule for unanswered questions, the sign or the verdict differs",
    "uneven": (
        "a mean over tasks; over all questions the sign differs, only there the interval excludes 0, or the interval "
        "contains 0 and not the mean over tasks"
    ),
    "answering": (
        "interval excludes 0; so does that of the part from answering, but neither that of the questions that both "
        "answered nor that of their part of the whole: one of them answered more"
    ),
    "others": "as `answering`, but less than half of the part from answering exists because one of them answered more",
    "split": (
        "not confirmed by questions that both answered: there are none, they were not tested, or they show another "
        "verdict or, by their weights, another sign"
    ),
    "few": "no interval: questions of one picture, or too few questions",
    "silent": "at least one of the two answers nothing",
    "failed": "more than 1 % of the questions failed",
    "waiting": "a mean over tasks, or nothing in common, and questions are open",
    "units": "the metric counts other units for each",
    "apart": "the pair shares no question, or --pairs or --baseline leaves it out",
}

# By claim, the reason why the full difference of a pair counts as neither gain nor loss.
NO_CLAIM: Mapping[str, str] = {
    "rule": "depending on how unanswered questions count",
    "uneven": "with another result over all questions than over tasks",
    "answering": "from answering more or fewer questions",
    "others": "from questions that one of them left unanswered",
    "split": "not confirmed by questions that both answered",
}
UNCLAIMED = "no claim for"  # Before the names of pairs whose claim is one of `NO_CLAIM`
# What the rule for unanswered questions decides about a difference: the beginning of a sentence.
BY_RULE: Mapping[str, Case] = {
    "direction": case(
        "gain.rule.direction",
        "part of `rule`: significant by both rules, with opposite signs",
        "Which of the two is better depends on",
    ),
    "both": case(
        "gain.rule.both",
        "part of `rule`: significant by one rule only, and the signs are opposite",
        "The sign and the significance of this difference depend on",
    ),
    "verdict": case(
        "gain.rule.verdict",
        "part of `rule`: significant by one rule only",
        "Whether this difference is significant depends on",
    ),
    "sign": case(
        "gain.rule.sign",
        "part of `rule`: significant by neither rule, and the signs are opposite",
        "This difference is not significant, and its sign depends on",
    ),
}


@dataclass(frozen=True)
class AnswerSplit:
    """A difference b minus a in two parts: from better answers, and from answering at all.

    `both` is the difference on the questions that both solvers answered (None if it has no value there). `better` is
    the part of the whole difference that comes from these questions. Each question is weighted by the share of pairs of
    repetitions in which both solvers answered it, and in a mean over tasks also by the size of its whole task.
    `answering` is the rest, and `unanswered` counts the questions that a and b left unanswered (mean over repetitions).
    `more_answered` says whether at least half of the rest exists because one solver answered more questions
    (`_is_of_more_answers`). Otherwise the rest is mainly due to how well each solver did on the questions that only it
    answered. If only some repetitions answered a question, the others count as unanswered; `mixed_repetitions` says
    whether there is such a question, and `both_in_every` whether `both` leaves it out (`Overlap.with_answers`).
    `some_both` says whether both answered some questions, although perhaps no whole group of questions that the metric
    counts. `questions` is the number of single questions that both answered; a metric of groups counts fewer units.
    """

    answering: Result
    better: Result
    both: Result | None
    unanswered: tuple[float, float]
    more_answered: bool = True
    mixed_repetitions: bool = False
    both_in_every: bool = False
    some_both: bool = False
    questions: int | None = None

    def matters(self, state: State) -> bool:
        """Return whether the parts lead to another conclusion than the full difference, which has this `state`.

        True if the part from answering is significant, or if the questions that both answered show another result.
        """
        of_both = None if self.both is None else shown(self.both)
        return shown(self.answering) in ("more", "less") or of_both != state or self.has_two_signs

    @property
    def has_two_signs(self) -> bool:
        """Return whether `both` and `better` have opposite signs and at least one of the two is significant.

        They weigh the same questions differently, so neither supports a claim.
        """
        if self.both is None or _sign(self.both) * _sign(self.better) >= 0:
            return False
        return self.both.excludes_zero or self.better.excludes_zero


@dataclass(frozen=True)
class HeadlinePair:
    """The difference b minus a of two solvers by the headline metric, as in the result table.

    `rows` has the difference, if there is one, and `metrics` has each solver's metric over the questions that both
    have. Of `n` questions, `right` counts the right answers of a and b, and `none` their unreadable answers; `right` is
    None if the metric is not such a count (a mean over tasks of several sizes, credit for no answer, repetitions).
    `silent` has the full names of those of the two that answered none of the questions.
    """

    a: Scored
    b: Scored
    rows: tuple[Result, ...] = ()
    values: tuple[float | None, float | None] = (None, None)
    right: tuple[int, int] | None = None
    none: tuple[int, int] = (0, 0)
    silent: tuple[str, ...] = ()
    n: int = 0
    # Number of questions that at least one solver failed, in the overlap that is used to decide whether to test.
    failed: int = 0
    asked: int = 0
    metrics: tuple[Metric, Metric] | None = None
    # Numbers of questions that a and b got right, whether or not the metric counts them.
    count: tuple[int, int] = (0, 0)
    split: AnswerSplit | None = None
    # The difference by the other rule for unanswered questions, if its sign or its state differs.
    other_rule: Result | None = None
    # For a mean over tasks: the difference over all questions, if it leads to another conclusion (`is_uneven`).
    over_all: Result | None = None
    # Whether --pairs and --baseline, if given, name this pair.
    is_chosen: bool = True

    @property
    def claim(self) -> Claim:
        """The claimed state, or the reason why none is claimed.

        Reasons are the rule for unanswered questions, the weights of tasks, and which solver answered a question at
        all.
        """
        if self.state not in ("more", "less", "open"):
            return self.state
        if self.other_rule is not None:
            return "rule"
        if self.over_all is not None:
            return "uneven"
        if self.split is None:
            return self.state
        of_both = None if self.split.both is None else shown(self.split.both)
        if self.split.has_two_signs:
            return "split"
        if of_both == self.state:
            # The two results agree, so the part from answering only adds to the difference, reduces it, or is 0.
            return self.state
        # If better answers are significant too, by themselves or as a part of the whole, answering is not the only
        # reason.
        both_parts = self.split.better.excludes_zero or of_both in ("more", "less")
        if both_parts or self.state == "open" or self.state != shown(self.split.answering):
            return "split"
        return "answering" if self.split.more_answered else "others"

    @property
    def state(self) -> State:
        """The result of the paired difference, or why it has none."""
        if not self.rows:
            # The two solvers share no question, or --pairs or --baseline leaves them out.
            return "waiting" if not self.metrics and (self.a.open or self.b.open) else "apart"
        for key, state in WHY_NOT.items():
            if UNTESTED[key] in self.rows[0].note:
                return state
        return shown(self.rows[0])

    def fields(self) -> dict[str, object]:
        """Return the values that fill in the sentence about a tested difference."""
        row = self.rows[0] if self.rows else None
        names = [clipped(name, NAME_WIDTH) for name in self.silent]
        fields: dict[str, object] = {
            "n": self.asked if self.state == "failed" else self.n,
            "failed": self.failed,
            "hybrid": short_name(self.b),
            "other": short_name(self.a),
            "silent": f"{_and(names)} answer{'s' * (len(names) == 1)} nothing",
            "left": self.a.open + self.b.open,
            "apart": "they share no question" if self.is_chosen else "--pairs or --baseline leaves them out",
            "few": why_no_interval(self.metrics),
        }
        if self.state == "waiting":
            fields["command"] = own_command([solver for solver in (self.a, self.b) if solver.open])
        if row is None:
            return fields
        fields |= {"metric": row.metric, "size": "", "interval": "", "open": ""}
        if row.low is not None:
            ends = ends_of(row)
            fields |= {"size": signed(row), "interval": f"{CI} {ends}"}
            fields["open"] = f"no significant difference ({CI} {ends}{unit_of(row)})"
            fields["whole"] = f"{signed(row)} ({CI} {ends})" if self.state in ("more", "less") else fields["open"]
        return fields | {"split": self._split_words(), **self._over_all_words(), **self._rule_words()}

    def _split_words(self) -> str:
        """Return the parts of the difference as text, if they lead to another conclusion than the full difference."""
        split = self.split
        if split is None or self.state not in ("more", "less", "open") or not split.matters(self.state):
            return ""
        if split.both is None:
            what = f"whole group of questions that {split.answering.metric} counts" if split.some_both else "question"
            words = f"no {what} was answered by both"
            words += f"; better answers contribute {_difference(split.better)}" if split.better.excludes_zero else ""
        else:
            without = ""
            if split.mixed_repetitions:
                without = " at least once, without their unanswered repetitions,"
                without = " in every repetition" if split.both_in_every else without
            covered = count_units(split.both.n or 0, split.questions)
            words = f"on the {covered} that both answered{without} {_difference(split.both)}"
            part = f"{_difference(split.better)} of the whole"
            if _sign(split.both) * _sign(split.better) < 0:
                words += f", but {part}, {self._explain_two_signs()}"
            elif split.better.excludes_zero or signed(split.better) != signed(split.both):
                words += f", which makes {part}"
        of_a, of_b = map(mean_count, split.unanswered)
        unanswered = f"{short_name(self.a)} leaves {of_a} unanswered, {short_name(self.b)} {of_b}"
        unanswered += " (mean over repetitions)" if split.mixed_repetitions else ""
        size = _difference(split.answering)
        if split.more_answered:
            return f"; {words}; answering at all contributes {size}, as {unanswered}"
        rest = f"the questions{' or repetitions' if split.mixed_repetitions else ''} that only one answered"
        return f"; {words}; {rest} contribute {size}; {unanswered}"

    def _explain_two_signs(self) -> str:
        """Return why the difference on questions that both answered and its part of the whole have opposite signs."""
        mixed = self.split is not None and self.split.mixed_repetitions
        several = self.metrics is not None and _number_of_tasks(self.metrics[0]) > 1
        weights = [*(["repetitions"] if mixed else []), *(["tasks"] if several else [])]
        if weights:
            return f"as {' and '.join(weights)} weigh differently"
        # A metric of single questions has equal signs, so this one counts groups of questions.
        return "which includes groups of questions that were answered in part"

    def _over_all_words(self) -> dict[str, object]:
        row = self.over_all
        if row is None:
            return {"over_all": "", "right_a": "", "right_b": ""}
        return {"over_all": _difference(row), "right_a": self.count[0], "right_b": self.count[1]}

    def _rule_words(self) -> dict[str, object]:
        row = self.other_rule
        if row is None:
            return {"depends": "", "by_rule": ""}
        this_rule = f"{_difference(self.rows[0])} if they count {COUNTS[self.b.unanswered]}"
        by_rule = f"{this_rule}, {_difference(row)} if {COUNTS[OTHER[self.b.unanswered]]}"
        return {"depends": BY_RULE[rule_decides(self, row)].fill(), "by_rule": by_rule}

    def without_claim(self, name: str) -> str:
        """Return a name with the difference and the reason to claim none; the claim is one of `NO_CLAIM`."""
        row, reason = self.rows[0], NO_CLAIM[self.claim]
        if self.other_rule is not None:
            counted = COUNTS[OTHER[self.b.unanswered]]
            reason += f": {signed(self.other_rule)}, {ends_of(self.other_rule)} if they count {counted}"
        elif self.over_all is not None:
            reason += f": {signed(self.over_all)}, {ends_of(self.over_all)} over all questions"
        return f"{name} ({signed(row)}, {ends_of(row)}, {reason})"


CI = "95% CI"


def cases_of_claims(sentence: str, words: Mapping[Claim, str]) -> Mapping[Claim, Case]:
    """Declare the claims that a sentence can make about its pair of solvers, each with its wording."""
    return {claim: case(f"{sentence}.{claim}", CONDITIONS[claim], text) for claim, text in words.items()}


def _difference(row: Result) -> str:
    """Return a difference with its interval: `+14 points (95% CI 3 to 25)`."""
    if UNTESTED["failed"] in row.note:
        return f"{signed(row)} (not tested: of these and the failed ones, more than 1 % failed)"
    if row.low is None:
        return f"{signed(row)} (no interval)"
    return f"{signed(row)} ({CI} {ends_of(row)})"


def shown(row: Result) -> State:
    """Return what the interval shows about a difference."""
    if row.low is None or row.high is None:
        return "few"
    return "more" if row.low > 0 else "less" if row.high < 0 else "open"


def measure(metrics: Sequence[Metric]) -> str:
    """Return a metric in words; a mean over tasks or other parts says so: `accuracy (mean of 3 tasks)`."""
    metric = metrics[0]
    if metric.combine != "mean_of_ratios":
        return metric.name
    name, tasks = metric.name.removesuffix("_macro"), _number_of_tasks(metric)
    # ActiView's average is over ways of asking, not over tasks.
    parts = "tasks" if name != metric.name else "parts"
    return f"{name} (mean of {tasks} {parts})" if tasks > 1 else name


def _number_of_tasks(metric: Metric) -> int:
    """Return the number of tasks that a metric averages over; 1 if the metric is not a mean over tasks."""
    is_mean = metric.combine == "mean_of_ratios"
    return len({cell.stratum for cell in metric.cells if cell.denominator > 0}) if is_mean else 1


def _and(names: Sequence[str]) -> str:
    """Return up to three names as `a`, `a and b`, or `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def short_name(scored: Scored) -> str:
    """Return the solver's name within `NAME_WIDTH` columns."""
    return clipped(scored.solver, NAME_WIDTH)


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return the first items as a list, and the number of the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return between.join(names[:NAMED]) + more


def number(value: float, unit: str) -> str:
    """Format a share in whole points (decimals only if it would read as 0), any other number with three digits."""
    if unit != FRACTION:
        return f"{value:.3g}"
    # Drop the error of floats and round halves away from 0, so that equal differences print alike with either sign.
    points = round(100 * value, 9)
    if abs(points) >= 0.5 or points == 0:
        return f"{math.copysign(math.floor(abs(points) + 0.5), points):z.0f}"
    return f"{points:.1g}"


def mean_count(count: float, whole: float = math.inf) -> str:
    """Return a mean over counts with one decimal, or with more if it would otherwise read as 0 or as the `whole`."""
    if count in (0, whole):
        return f"{count:.0f}"
    decimals = next((places for places in range(1, 9) if 0 < round(count, places) < whole), 9)
    return f"{count:.{decimals}f}".rstrip("0").rstrip(".")


def format_value(value: float | None) -> str:
    """Return a metric's value with three decimals, or `no value` for None."""
    return "no value" if value is None else f"{value:.3f}"


def are_counts(values: Sequence[float | None], right: Sequence[int], n: int) -> bool:
    """Return whether each value of a metric equals the number of right answers divided by the number of questions."""
    return all(value is not None and abs(value * n - k) < 1e-6 for value, k in zip(values, right, strict=True))


def count_units(units: int, questions: int | None) -> str:
    """Return the number of units that a value of a metric covers: questions, or groups of several questions."""
    return how_many(units) if questions in (None, units) else f"{how_many(units, 'group')} of questions"


def unit_of(row: Result) -> str:
    """Return the unit that follows a row's number: ` points` for a share, otherwise nothing."""
    return " points" if row.unit == FRACTION else ""


def size_of(row: Result) -> str:
    """Return the size of a difference without its sign, which the words state: `14 points`."""
    return f"{number(abs(row.value or 0.0), row.unit)}{unit_of(row)}"


def signed(row: Result) -> str:
    """Return a difference with its sign: `-14 points`."""
    return f"{'-' if (row.value or 0.0) < 0 else '+'}{size_of(row)}"


def ends_of(row: Result, *, cost: bool = False) -> str:
    """Return the interval with signs; `cost` negates the interval of a loss, for words that state a loss."""
    low, high = row.low or 0.0, row.high or 0.0
    if cost:
        low, high = -high, -low
    plus = "+" if low < 0 < high else ""
    return f"{number(low, row.unit)} to {plus}{number(high, row.unit)}"


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

    def of(self, section: str) -> tuple[Result, ...]:
        """Return the rows of one section; empty if it could not be computed."""
        return self._by_section.get(section, ())

    def between(self, section: str, names: tuple[str, str]) -> list[Result]:
        """Return the rows of a pair in a section, with the two solvers in the order of `names`."""
        return [turned(row, names) for row in self.of(section) if {row.a, row.b} == set(names)]

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
        """Return whether a task's difference does not depend on unanswered questions.

        The state of the difference must be the same on the questions that both answered, and on all questions by either
        rule.
        """
        part = self.found.overlap(a, b).groups(self.found.options.by)[row.group]
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


def why_no_interval(metrics: Sequence[Metric] | None) -> str:
    """Say why a metric with a value has no interval: all questions share one picture, or they are too few."""
    cells = metrics[0].cells if metrics else ()
    one_picture = len(cells) > 1 and len({cell.cluster for cell in cells}) == 1
    return "one picture: no interval" if one_picture else "too few questions to show a difference"


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


def hangs_on_rule(pair: HeadlinePair, other: Result) -> bool:
    """Return whether `other`, the pair's difference by the other rule, has another sign or state than the pair."""
    return shown(other) != pair.state or has_other_sign(pair, other)


def rule_decides(pair: HeadlinePair, other: Result) -> str:
    """Return which key of `BY_RULE` describes a pair whose difference by the other rule has another sign or state."""
    is_significant = [state in ("more", "less") for state in (pair.state, shown(other))]
    if all(is_significant):
        return "direction"
    if not any(is_significant):
        return "sign"
    return "both" if has_other_sign(pair, other) else "verdict"


def has_other_sign(pair: HeadlinePair, other: Result) -> bool:
    """Return whether `other` and the difference of the pair have opposite signs; 0 has no sign."""
    return _sign(other) * _sign(pair.rows[0]) < 0


def is_uneven(pair: HeadlinePair, over_all: Result) -> bool:
    """Return whether the difference over all questions has another sign than the pair's, or leads to another verdict.

    If all tasks have the same size, both differences are equal, and only their intervals differ. A mean over tasks that
    is significant by itself may rest on a few questions of a small task. The verdict then differs only if the interval
    over all questions excludes this mean; if it contains both 0 and the mean, only the power is lower.
    """
    value, low, high = (number or 0.0 for number in (pair.rows[0].value, over_all.low, over_all.high))
    differs = abs((over_all.value or 0.0) - value) > 1e-9
    alone = pair.state == "open" and shown(over_all) in ("more", "less")
    of_few = pair.state in ("more", "less") and shown(over_all) == "open" and not low <= value <= high
    return has_other_sign(pair, over_all) or of_few or (differs and alone)


def _sign(row: Result) -> int:
    value = row.value or 0.0
    return 0 if abs(value) < 1e-9 else 1 if value > 0 else -1


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
