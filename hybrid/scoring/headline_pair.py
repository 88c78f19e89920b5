"""The difference of two solvers by the headline metric, what may be claimed about it, and its words.

pair = ConclusionRows(compare(solvers)).pair(alone, hybrid)
pair.state, pair.right, pair.fields()       # "more", (21, 48), {"size": "+54 points", "interval": ...}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hybrid.core.types import Metric
from hybrid.display.terminal import clipped
from hybrid.scoring.conclusion_cases import Case, case
from hybrid.scoring.conclusion_words import (
    CI,
    COUNTS,
    NAME_WIDTH,
    count_units,
    ends_of,
    mean_count,
    number_of_tasks,
    short_name,
    signed,
    unit_of,
)
from hybrid.scoring.groups import own_command
from hybrid.scoring.result import UNTESTED, Result
from hybrid.scoring.score import Scored
from hybrid.scoring.tally import OTHER

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
            words += f"; better answers contribute {difference_of(split.better)}" if split.better.excludes_zero else ""
        else:
            without = ""
            if split.mixed_repetitions:
                without = " at least once, without their unanswered repetitions,"
                without = " in every repetition" if split.both_in_every else without
            covered = count_units(split.both.n or 0, split.questions)
            words = f"on the {covered} that both answered{without} {difference_of(split.both)}"
            part = f"{difference_of(split.better)} of the whole"
            if _sign(split.both) * _sign(split.better) < 0:
                words += f", but {part}, {self._explain_two_signs()}"
            elif split.better.excludes_zero or signed(split.better) != signed(split.both):
                words += f", which makes {part}"
        of_a, of_b = map(mean_count, split.unanswered)
        unanswered = f"{short_name(self.a)} leaves {of_a} unanswered, {short_name(self.b)} {of_b}"
        unanswered += " (mean over repetitions)" if split.mixed_repetitions else ""
        size = difference_of(split.answering)
        if split.more_answered:
            return f"; {words}; answering at all contributes {size}, as {unanswered}"
        rest = f"the questions{' or repetitions' if split.mixed_repetitions else ''} that only one answered"
        return f"; {words}; {rest} contribute {size}; {unanswered}"

    def _explain_two_signs(self) -> str:
        """Return why the difference on questions that both answered and its part of the whole have opposite signs."""
        mixed = self.split is not None and self.split.mixed_repetitions
        several = self.metrics is not None and number_of_tasks(self.metrics[0]) > 1
        weights = [*(["repetitions"] if mixed else []), *(["tasks"] if several else [])]
        if weights:
            return f"as {' and '.join(weights)} weigh differently"
        # A metric of single questions has equal signs, so this one counts groups of questions.
        return "which includes groups of questions that were answered in part"

    def _over_all_words(self) -> dict[str, object]:
        row = self.over_all
        if row is None:
            return {"over_all": "", "right_a": "", "right_b": ""}
        return {"over_all": difference_of(row), "right_a": self.count[0], "right_b": self.count[1]}

    def _rule_words(self) -> dict[str, object]:
        row = self.other_rule
        if row is None:
            return {"depends": "", "by_rule": ""}
        this_rule = f"{difference_of(self.rows[0])} if they count {COUNTS[self.b.unanswered]}"
        by_rule = f"{this_rule}, {difference_of(row)} if {COUNTS[OTHER[self.b.unanswered]]}"
        return {"depends": BY_RULE[rule_decides(self, row)].fill(), "by_rule": by_rule}

    @property
    def why_no_claim(self) -> str:
        """Why neither gain nor loss is claimed, with the numbers of the other rule or weights; empty if it is."""
        reason = NO_CLAIM.get(self.claim, "")
        if reason and self.other_rule is not None and self.other_rule.low is not None:
            counted = COUNTS[OTHER[self.b.unanswered]]
            reason += f": {signed(self.other_rule)}, {ends_of(self.other_rule)} if they count {counted}"
        elif reason and self.other_rule is None and self.over_all is not None:
            reason += f": {signed(self.over_all)}, {ends_of(self.over_all)} over all questions"
        return reason

    def without_claim(self, name: str) -> str:
        """Return a name with the difference and the reason to claim none; the claim is one of `NO_CLAIM`."""
        return f"{name} ({signed(self.rows[0])}, {ends_of(self.rows[0])}, {self.why_no_claim})"


def cases_of_claims(sentence: str, words: Mapping[Claim, str]) -> Mapping[Claim, Case]:
    """Declare the claims that a sentence can make about its pair of solvers, each with its wording."""
    return {claim: case(f"{sentence}.{claim}", CONDITIONS[claim], text) for claim, text in words.items()}


def difference_of(row: Result) -> str:
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


def _and(names: Sequence[str]) -> str:
    """Return up to three names as `a`, `a and b`, or `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def why_no_interval(metrics: Sequence[Metric] | None) -> str:
    """Say why a metric with a value has no interval: all questions share one picture, or they are too few."""
    cells = metrics[0].cells if metrics else ()
    one_picture = len(cells) > 1 and len({cell.cluster for cell in cells}) == 1
    return "one picture: no interval" if one_picture else "too few questions to show a difference"


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


def with_claim(row: Result, pair: HeadlinePair) -> Result:
    """Return the row of a tested difference with the reason why it counts as neither gain nor loss, if there is one."""
    return row if row.low is None else replace(row, no_claim=NO_CLAIM.get(pair.claim, ""))
