"""The conclusion of a comparison: at most ten sentences with numbers and intervals, read from the result table.

    for sentence in conclusion(compare(solvers)):
        sentence.id, sentence.text          # "gain.more", "Accuracy is 0.960 with tools (controller), 0.420 alone ..."

In order, it compares a hybrid solver with its model alone and with the specialists alone; splits the difference into
the effect of offering tools and the effect of tool output; states the effect of the tools' form, if a study has the
form of the model's training; answers a reviewer's next questions (`conclusion_review.py`); and names worse tasks and
the limits of the claim. Each case, with its condition and words, is beside the code that chooses it. Every test is one
that `hybrid compare` prints.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hybrid.core.types import Metric
from hybrid.display.terminal import clipped, how_many
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_cases import DECLARED, Case, case
from hybrid.scoring.conclusion_limits import limits_of
from hybrid.scoring.conclusion_review import pooled_sentences, review_sentences
from hybrid.scoring.conclusion_rows import (
    CI,
    COUNTS,
    NAME_WIDTH,
    NO_CLAIM,
    Claim,
    ConclusionRows,
    HeadlinePair,
    cases_of_claims,
    count_of,
    ends_of,
    listed,
    measure,
    short_name,
    shown,
    signed,
    size_of,
    turned,
    why_no_interval,
)
from hybrid.scoring.groups import (
    AGAIN,
    ALONE,
    SPECIALIST,
    ComparisonGroup,
    alone_not_begun,
    asked_in,
    command_for_unchosen,
    offers_tools,
    own_command,
    word,
)
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.gain import CONTENT, GAIN, PRESENCE, none_said, said_of, unclear_parts
from hybrid.scoring.sections.metrics import of_contestants
from hybrid.scoring.tally import OTHER

NO_DIFFERENCE = "no significant difference for"
UNCLAIMED = "no claim for"
SELDOM = 0.2  # Below this share of questions with a call, the first sentence states their number


@dataclass(frozen=True)
class Sentence:
    """One sentence of a conclusion, and the id of its case."""

    id: str
    text: str
    command: str = ""  # The command that the text ends with


def conclusion(comparison: Comparison, *, limits: bool = True) -> tuple[Sentence, ...]:
    """Return at most ten sentences, and at least one if there is a solver.

    Without `limits` the last sentence is omitted; its simulation of power can take seconds.
    """
    return tuple(_Conclusion(ConclusionRows(comparison)).sentences(limits=limits))


# Names of the sentences and of their parts, in the order printed.
ORDER = (
    "nothing",
    "pooled",
    "gain",
    "called",
    "specialists",
    "content",
    "presence",
    "trained",
    "room",
    "equal",
    "used",
    "selection",
    "words",
    "calls",
    "places",
    "price",
    "tasks",
    "solvers",
    "ahead",
    "limits",
)


def cases() -> Mapping[str, Case]:
    """Return by id every sentence that a conclusion may contain, in the order printed."""
    ordered = sorted(DECLARED.values(), key=lambda declared: ORDER.index(declared.id.partition(".")[0]))
    return {declared.id: declared for declared in ordered}


def _said(chosen: Case, **fields: object) -> Sentence:
    command = str(fields.get("command", ""))
    return Sentence(chosen.id, chosen.fill(**fields), "" if command == AGAIN else command)


NOTHING_ANSWERED = case(
    "nothing.answered", "every question of every solver failed", "No question was answered: nothing is concluded."
)

GAIN_CASES = cases_of_claims(
    "gain",
    {
        "more": "{answers}: {size} ({interval}){counts}{split}{called}.",
        "less": "{answers}: {size} ({interval}){counts}{split}{called}.",
        "open": "{answers}: {open}{counts}{split}{called}.",
        "rule": "{answers}. {depends} how unanswered questions count: {by_rule}{counts}{split}{called}.",
        "uneven": (
            "{answers}: {whole} as a mean over tasks, but {over_all} over all {n} questions, {right_b} instead of "
            "{right_a} right{split}{called}."
        ),
        "answering": (
            "{answers}: {whole}{counts}. Only the part that comes from answering at all is significant{split}{called}."
        ),
        "others": (
            "{answers}: {whole}{counts}. Only the part that comes from questions that one of them left unanswered is "
            "significant{split}{called}."
        ),
        "split": "{answers}: {whole}{counts}{split}{called}.",
        "few": "{answers}: {few}{called}.",
        "silent": "{answers}: nothing to compare, as {silent} answers nothing{called}.",
        "failed": (
            "Whether tools bring a gain is not tested: {failed} of {n} questions failed, more than 1 % "
            "(to conclude anyway: --allow-failed){called}."
        ),
        "waiting": "The effect of tools is not known yet, because {left} questions are not finished: {command}",
        "units": "{answers}: not tested, as {metric} does not count the same units for both{called}.",
        "apart": "{hybrid} and {other} are not compared: they share no question, or --pairs leaves them out{called}.",
    },
)
NO_ALONE = case(
    "gain.absent",
    "the model alone was not asked",
    "The effect of tools is not known, because the model alone was not asked: add --solver mllm to the run{called}.",
)
ALONE_NOT_CHOSEN = case(
    "gain.not_chosen",
    "the run has answers of the model alone, which is not compared",
    "The effect of tools is not known here, because the model alone is not compared{called}: {command}",
)
ALONE_NOT_BEGUN = case(
    "gain.not_begun",
    "the run stopped before the model alone was asked",
    "The effect of tools is not known yet, because the run stopped before it asked {alone}{called}: {command}",
)
SELDOM_CALLED = case(
    "called.few",
    "part of the sentences above: a tool was called on less than 20 % of the questions",
    "{name} called a tool on {count} of {n} questions",
)
SPECIALISTS_CASES = cases_of_claims(
    "specialists",
    {
        "more": "{answers}: {whom} {size} ({interval}){split}{rest}.",
        "less": "{answers}: {whom} {size} ({interval}){split}{rest}.",
        "open": "{answers}: {open}{split}{rest}.",
        "rule": "{answers}. {depends} how unanswered questions count: {by_rule}{split}{rest}.",
        "uneven": (
            "{answers}: {lead}{whole} as a mean over tasks, but {over_all} over all {n} questions, {right_b} instead "
            "of {right_a} right{split}{rest}."
        ),
        "answering": (
            "{answers}: {lead}{whole}. Only the part that comes from answering at all is significant{split}{rest}."
        ),
        "others": (
            "{answers}: {lead}{whole}. Only the part that comes from questions that one of them left unanswered is "
            "significant{split}{rest}."
        ),
        "split": "{answers}: {lead}{whole}{split}{rest}.",
        "few": "{answers}: {few}{rest}.",
        "silent": "The specialists alone answer none of these questions.",
        "failed": (
            "The specialists alone are not compared: {failed} of {n} questions failed, more than 1 % (to conclude "
            "anyway: --allow-failed)."
        ),
        "waiting": "The specialists alone are not compared: questions are not finished yet.",
        "units": "{answers}: not tested, as {metric} does not count the same units for both.",
        "apart": "{hybrid} and {other} are not compared: they share no question, or --pairs leaves them out.",
    },
)
NO_SPECIALISTS = case("specialists.absent", "they were not asked", "The specialists alone were not asked.")
SPECIALISTS_NOT_CHOSEN = case(
    "specialists.not_chosen",
    "the run has answers of the specialists, which are not compared",
    "The specialists alone are not compared here: {command}",
)
# For the other claims, `said_of` builds the sentence from its parts.
CONTENT_CASES = cases_of_claims(
    "content",
    {
        "few": "With blank tools: {few}.",
        "silent": "With blank tools there is nothing to compare, as {silent} answers nothing.",
        "failed": (
            "The effect of tool output is not tested: {failed} of {n} questions failed, more than 1 % "
            "(to conclude anyway: --allow-failed)."
        ),
        "waiting": "The effect of tool output is not known yet: questions are not finished.",
        "units": "The effect of tool output is not tested: {metric} does not count the same units for both.",
        "apart": "{hybrid} and {other} are not compared: they share no question.",
    },
)
NO_BLANK = case(
    "content.absent",
    "no blank control",
    "Whether a difference comes from tool output is open, as no run with blank tools is compared here: {command}",
)
TRAINED: Mapping[str, Case] = {
    "more": case(
        "trained.more",
        "shown after adjustment (Holm), above 0",
        "In the form in which it was trained ({style}) the model does better with the same tools: {size} ({ends}).",
    ),
    "less": case(
        "trained.less",
        "shown after adjustment (Holm), below 0",
        "In the form in which it was trained ({style}) the model does worse with the same tools: {size} ({ends}).",
    ),
    "open": case(
        "trained.open",
        "not shown",
        "The form of the tools in its training ({style}) makes no significant difference ({size}, {ends}).",
    ),
    "untested": case(
        "trained.untested",
        "no interval",
        "The effect of the form of the tools in its training ({style}) is not tested.",
    ),
}
TASKS_SHOWN = case("tasks.shown", "of a task a difference holds", "After adjustment (Holm) over {tasks} {by}: {parts}.")
TASKS_NONE = case("tasks.none", "of none", "{rest}.")
TASKS_UNTESTED = case("tasks.untested", "part of the two above: tasks without an interval", "not tested: {tasks}")
TASKS_REST = case(
    "tasks.rest",
    "part of the two above: no loss holds",
    "no {other}single {one} is shown to be worse ({sizes} questions each{largest})",
)

# Several solvers with tools, or several models.
SEVERAL_GAINS = case(
    "gain.several",
    "several solvers with tools, or several models",
    "Next to its model alone, over {n} questions and adjusted (Holm) for {tests}: {parts}{called}.",
)
SEVERAL_UNTESTED = case(
    "gain.several_untested",
    "several solvers with tools, none of which can be tested next to its model alone",
    "Next to its model alone, over {n} questions: {parts}{called}.",
)
SEVERAL_SPECIALISTS = case(
    "specialists.several",
    "several solvers with tools, or several models",
    "Next to the specialists alone, on the questions that they answer: {parts}.",
)
SEVERAL_CONTENTS = case(
    "content.several", "several solvers with tools, or several models", "With tools next to blank tools: {parts}."
)
SEVERAL_TASKS = case(
    "tasks.several",
    "several solvers with tools, or several models",
    "{by} worse than alone after adjustment (Holm): {parts}.",
)

# No solver with tools.
ONE_SOLVER = case(
    "solvers.one", "one solver, no model with tools", "{where}{best} has {metric} {value}{again} over {n} ({interval})."
)
BEST = case(
    "solvers.best",
    "several solvers, no model with tools",
    "Of {count} solvers, none of them a model with tools, {best} has the highest {metric}, {value}{again} over {n} "
    "({interval}){ranking}.",
)
TIES = case(
    "solvers.ties",
    "several share the highest value",
    "Of {count} solvers, none of them a model with tools, {best} share the highest {metric}, {value}{again} over {n} "
    "({interval}){ranking}.",
)
WAITING = case(
    "solvers.waiting",
    "a mean over tasks, or nothing in common, and questions are open",
    "The scores are not known yet, because {left} questions are not finished: {command}",
)
SILENT = case("solvers.silent", "none has a readable answer", "No solver gives a readable answer.")
NO_INTERVAL = case(
    "solvers.no_interval",
    "none has an interval: questions of one picture, or too few questions",
    "{metric}: {values}; {why}.",
)
AHEAD: Mapping[str, Case] = {
    "some": case(
        "ahead.some", "it is ahead of some after adjustment", "It is ahead of {parts}, adjusted (Holm) for {tests}."
    ),
    "depends": case(
        "ahead.depends",
        "of none, and some differences support no claim",
        "Adjusted (Holm) for {tests}, it is shown to be ahead of none of the others; {parts}.",
    ),
    "none": case("ahead.none", "of none", "Adjusted (Holm) for {tests}, no difference to the others is significant."),
    "untested": case("ahead.untested", "no pair of it was tested", "It is compared with none of the others: {why}."),
}


def _explain_missing_alone(hybrids: Sequence[Scored], calls_note: str, compared: Sequence[Scored]) -> Sentence:
    """Say why there are no answers of the model alone: not compared, not requested, or the run stopped before."""
    if command := command_for_unchosen(hybrids, ALONE, compared):
        return _said(ALONE_NOT_CHOSEN, called=calls_note, command=command)
    pending = [solver for solver in hybrids if alone_not_begun(solver)]
    if not pending:
        return _said(NO_ALONE, called=calls_note)
    return _said(ALONE_NOT_BEGUN, alone=ALONE, called=calls_note, command=own_command(pending))


def _explain_missing_specialists(hybrids: Sequence[Scored], compared: Sequence[Scored]) -> Sentence:
    """Say that the specialists were not asked, or that their answers are in a run and not compared."""
    command = command_for_unchosen(hybrids, SPECIALIST, compared)
    return _said(SPECIALISTS_NOT_CHOSEN, command=command) if command else _said(NO_SPECIALISTS)


class _Conclusion:
    """The sentences about one comparison."""

    def __init__(self, rows: ConclusionRows) -> None:
        self._rows, self._found, self._groups = rows, rows.found, rows.found.groups

    def sentences(self, *, limits: bool) -> Iterator[Sentence]:
        """Yield the sentences in the order printed."""
        if not self._found.solvers:
            return
        if all(score.outcome.failed for solver in self._found.solvers for score in solver.scores):
            yield _said(NOTHING_ANSWERED)
            return
        if not self._groups:
            yield from self._without_tools()
        elif len(self._groups) == 1:
            yield from self._of_one(self._groups[0])
        else:
            yield from self._of_several()
        parts = "; ".join(limits_of(self._rows, self._groups)) if limits else ""
        if parts:
            yield Sentence("limits", f"Limits: {parts}.")

    # One solver with tools.

    def _of_one(self, group: ComparisonGroup) -> Iterator[Sentence]:
        gain = None if group.alone is None else self._rows.pair(group.alone, group.hybrid)
        calls_note, name = self._called((group.hybrid,)), ""
        if gain is None:
            yield _explain_missing_alone((group.hybrid,), calls_note, self._found.solvers)
        else:
            name = measure(gain.metrics) if gain.metrics else "the metric"
            with_tools, alone = (f"({short_name(solver)}{self._again(solver)})" for solver in (gain.b, gain.a))
            hybrid_words = f"{_value(gain.values[1])} {'with tools' if offers_tools(gain.b) else 'joined'} {with_tools}"
            answers = f"{name[0].upper()}{name[1:]} is {hybrid_words}, {_value(gain.values[0])} alone {alone}"
            right = gain.right
            counts = "" if right is None else f"; {right[1]} and {right[0]} of {gain.n:,} right"
            yield _of_pair(GAIN_CASES, gain, answers, counts=counts, called=calls_note)
        if group.specialist is None:
            yield _explain_missing_specialists((group.hybrid,), self._found.solvers)
        else:
            yield self._next_to_specialists(group.specialist, group.hybrid, name)
        if group.blank is None:
            yield _said(NO_BLANK, command=_command(group))
        else:
            yield self._parts(group, group.blank)
        yield from self._as_trained(group)
        yield from (Sentence(*sentence) for sentence in review_sentences(self._rows, group))
        yield from self._tasks(group)

    def _again(self, solver: Scored) -> str:
        """Return the number of repetitions whose mean a solver's values are; empty for one that was asked once."""
        count = len(self._found.repetitions(solver))
        return f", mean of {count} repetitions" if count > 1 else ""

    def _next_to_specialists(self, specialist: Scored, hybrid: Scored, named: str) -> Sentence:
        """Return the sentence on the questions that specialists answer; a lead over them counts only there.

        `named` is the metric that the previous sentence names, so this one does not repeat it.
        """
        pair, silent = self._rows.where_answered(specialist, hybrid)
        # Use the solver's name, unless its model is known to be offered tools.
        whom = "with tools" if offers_tools(hybrid) else short_name(hybrid)
        metric = measure(pair.metrics) if pair.metrics else ""
        if pair.right is None:
            verb, unit = "score" if metric == named else f"have {metric}", ""
            own, other = map(_value, pair.values)
        else:
            verb, unit = "get", " right"
            own, other = map(str, pair.right)
        of_all = f" of {pair.n}" if unit else ""
        answers, rest = f"The specialists alone {verb} {own}{of_all}{unit}", ""
        if silent:
            row = silent["right b" if unit else "value b"]
            compared = f"both {verb} {own}{unit}" if own == other else f"they {verb} {own}{unit}, {whom} {other}"
            answers = f"The specialists alone answer {pair.n} of {how_many(pair.n + (row.n or 0))}; there {compared}"
            rest = f". The other {row.n}: {whom} {f'{count_of(row)} right' if unit else _value(row.value)}"
        elif pair.state == "open" or pair.claim == "rule":
            # The other cases name the hybrid solver next to the size of its lead.
            answers += f", {whom} {other}"
        lead = "" if pair.state == "open" else f"{whom} "
        return _of_pair(SPECIALISTS_CASES, pair, answers, whom=whom, lead=lead, rest=rest)

    def _called(self, solvers: Sequence[Scored]) -> str:
        """Return the number of questions with a tool call, for each solver that seldom called one."""
        parts = []
        for solver in solvers:
            count, n = self._rows.called(solver)
            if count < SELDOM * n:
                parts.append(f"; {SELDOM_CALLED.fill(name=short_name(solver), count=count, n=n)}")
        return "".join(parts)

    def _parts(self, group: ComparisonGroup, blank: Scored) -> Sentence:
        """Return the sentence on the parts of a difference: the effects of offering tools and of tool output."""
        pair = self._rows.part(group, blank, group.hybrid, CONTENT)
        if pair.state not in ("more", "less", "open"):
            return _of_pair(CONTENT_CASES, pair)
        none, unclear = none_said(self._found, group), unclear_parts(self._rows, group)
        if group.alone is None:
            return Sentence(*said_of(*pair.rows, none=none, unclear=unclear))
        gain, presence = (
            self._rows.part(group, group.alone, other, name)
            for other, name in ((group.hybrid, GAIN), (blank, PRESENCE))
        )
        case, words = said_of(*pair.rows, *gain.rows, *presence.rows, none=none, unclear=unclear)
        # Blank tools may leave more or fewer questions unanswered than real ones.
        return Sentence(case, f"{words.removesuffix('.')}{pair.fields()['split']}.")

    def _as_trained(self, group: ComparisonGroup) -> Iterator[Sentence]:
        """Yield the gain or loss from the form of the tools in which the model was trained."""
        trained = group.as_trained
        if trained is None:
            return
        names, style = (group.hybrid.solver, trained.solver), asked_in(trained)[0]
        rows = (row for row in self._rows.of("effects") if (row.a, row.b) == names and not row.group)
        row = next((row for row in rows if row.low is not None), None)
        if row is None:
            yield _said(TRAINED["untested"], style=style)
            return
        state = shown(row) if row.holds else "open"
        size = signed(row) if state == "open" else size_of(row)
        yield _said(TRAINED[state], style=style, size=size, ends=f"{CI} {ends_of(row, cost=state == 'less')}")

    def _tasks(self, group: ComparisonGroup) -> Iterator[Sentence]:
        tested = [] if group.alone is None else self._rows.tasks(group.alone, group.hybrid)
        if len(tested) < 2:
            return
        assert group.alone is not None  # noqa: S101 - without it nothing is tested
        significant = [row for row in tested if row.holds]
        untested = self._untested_tasks(group.alone, group.hybrid)
        answers = [row for row in significant if self._rows.is_of_answers(group.alone, group.hybrid, row)]
        by_direction = {"worse": _held_of(answers, -1), "better": _held_of(answers, 1)}
        total = self._rows.pair(group.alone, group.hybrid).n
        shares = {"worse": total, "better": None}
        parts = [
            f"{word} on {listed([_named(row, shares[word]) for row in rows])}"
            for word, rows in by_direction.items()
            if rows
        ]
        others = [row for row in significant if row not in answers]
        if others:
            names = [_named(row, total) for row in others]
            parts.append(f"different, but only with unanswered questions counted, on {listed(names)}")
        # A loss from answering fewer questions is named above, so it cannot also be the largest insignificant loss.
        others_left = [row for row in tested if row not in others]
        rest = self._rest_of_tasks(others_left, total, named=bool(untested or others)) if others_left else ""
        if untested:
            rest = "; ".join(filter(None, [TASKS_UNTESTED.fill(tasks=listed(untested)), rest]))
        if not parts:
            yield _said(TASKS_NONE, rest=rest[0].upper() + rest[1:])
        else:
            tail = [rest] if rest and (untested or not by_direction["worse"]) else []
            yield _said(TASKS_SHOWN, tasks=len(tested), by=self._by, parts="; ".join([*parts, *tail]))

    def _rest_of_tasks(self, rows: Sequence[Result], total: int, *, named: bool) -> str:
        """Say that no task (or no other, if some are `named`) is significantly worse, with the largest loss."""
        sizes, least = sorted({row.n or 0 for row in rows}), min(rows, key=lambda row: row.value or 0.0)
        return TASKS_REST.fill(
            one="task" if self._found.options.by is None else "group",
            other="other " if named else "",
            sizes=sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}",
            largest=f"; largest loss: {_named(least, total)}" if (least.value or 0.0) < 0 else "",
        )

    def _untested_tasks(self, alone: Scored, hybrid: Scored) -> list[str]:
        """Return the tasks whose difference has no interval, each with its difference and number of questions."""
        rows = self._rows.between("differences", (alone.solver, hybrid.solver))
        untested = [row for row in rows if row.group and row.quantity == "difference" and row.low is None]
        return [
            f"{clipped(row.group, NAME_WIDTH)} ({signed(row)}, {how_many(row.n or 0)})"
            for row in untested
            if row.value is not None
        ]

    @property
    def _by(self) -> str:
        by = self._found.options.by
        return "tasks" if by is None else f"groups of {clipped(by, NAME_WIDTH)}"

    # Several solvers with tools.

    def _of_several(self) -> Iterator[Sentence]:
        groups, rows = self._groups, self._rows
        yield from (Sentence(*sentence) for sentence in pooled_sentences(rows))
        gains = [rows.pair(group.alone, group.hybrid) for group in groups if group.alone is not None]
        calls_note = self._called([group.hybrid for group in groups])
        if gains:
            parts, count = _several(gains, ("a gain for", "a loss for"))
            sizes = sorted({pair.n for pair in gains})
            n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            chosen = SEVERAL_GAINS if count else SEVERAL_UNTESTED
            yield _said(chosen, n=n, tests=how_many(count, "test"), parts=parts, called=calls_note)
        else:
            yield _explain_missing_alone([group.hybrid for group in groups], calls_note, self._found.solvers)
        pairs = [
            rows.where_answered(group.specialist, group.hybrid)[0] for group in groups if group.specialist is not None
        ]
        if pairs:
            yield _said(SEVERAL_SPECIALISTS, parts=_several(pairs, ("a lead for", "a deficit for"))[0])
        else:
            yield _explain_missing_specialists([group.hybrid for group in groups], self._found.solvers)
        contents = [rows.part(group, group.blank, group.hybrid, CONTENT) for group in groups if group.blank is not None]
        if contents:
            yield _said(SEVERAL_CONTENTS, parts=_several(contents, ("a gain for", "a loss for"))[0])
        else:
            yield _said(NO_BLANK, command=_command(groups[0]))
        tested = [(pair, by_task) for pair in gains if (by_task := rows.tasks(pair.a, pair.b))]
        losses = [
            f"{short_name(pair.b)} {listed([_named(row, pair.n) for row in worse])}"
            for pair, by_task in tested
            if (worse := [row for row in _held_of(by_task, -1) if rows.is_of_answers(pair.a, pair.b, row)])
        ]
        if tested:
            yield _said(SEVERAL_TASKS, by=self._by.capitalize(), parts=listed(losses, "; ") if losses else "none")

    # No solver with tools.

    def _without_tools(self) -> Iterator[Sentence]:
        solvers = self._found.contestants
        rows = [row for row in of_contestants(self._found, self._rows.of("metrics")) if row.low is not None]
        if not rows:
            waiting = [solver for solver in solvers if solver.open]
            fields = {"metric": self._found.headline, "left": sum(solver.open for solver in waiting)}
            chosen = WAITING if waiting else SILENT
            values = (
                []
                if waiting
                else [solver for solver in solvers if not solver.answered_nothing and self._value_of(solver)]
            )
            if values:
                chosen = NO_INTERVAL
                fields["values"] = listed([f"{short_name(solver)} {self._value_of(solver)}" for solver in values])
                fields["why"] = why_no_interval(self._headline_of(values[0])).removesuffix(" to tell a difference")
            yield _said(chosen, **fields, command=own_command(waiting))
            return
        most = max(row.value or 0.0 for row in rows)
        best = [row for row in rows if (row.value or 0.0) > most - 1e-9]
        first = best[0]
        fields = {
            "best": listed([clipped(row.a, NAME_WIDTH) for row in best]),
            "again": first.note,
            "count": len(solvers),
            "metric": measure([metric for metric in self._found.named(first.a).metrics if metric.name == first.metric]),
            "value": f"{first.value:.3f}",
            "n": how_many(first.n or 0),
            "interval": f"{CI} {first.low:.3f} to {first.high:.3f}",
            "where": self._where_answered(first.a),
            "ranking": self._other_ranking(rows, {row.a for row in best}),
        }
        if len(solvers) == 1:
            yield _said(ONE_SOLVER, **fields)
            return
        yield _said(TIES if len(best) > 1 else BEST, **fields)
        yield from self._ahead(first.a)

    def _where_answered(self, name: str) -> str:
        """Return the value of a specialist on the questions that it answers; empty for other solvers."""
        rows = {row.quantity: row for row in self._rows.of("metrics") if row.a == name and not row.group}
        value, share = rows.get("value where answered"), rows.get("coverage")
        if value is None or share is None:
            return ""
        count = f"{round((share.value or 0.0) * (share.n or 0))} of {how_many(share.n or 0)}"
        return f"{clipped(name, NAME_WIDTH)} answers {count}, on these with {_value(value.value)}; over all, "

    def _other_ranking(self, rows: Sequence[Result], best: Collection[str]) -> str:
        """Name the best solvers by the other rule, or over all questions, if they differ from `best`.

        The other rule is the other way to count unanswered questions. A value over all questions can only differ if the
        metric is a mean over tasks.
        """
        rule = OTHER[self._found.rule]
        by_rule: dict[str, float | None] = {}
        over_all: dict[str, float | None] = {}
        for row in rows:
            overlap = self._found.overlap(self._found.named(row.a))
            metrics = overlap.headline(rule)
            by_rule[row.a] = metrics[0].value if metrics else None
            if self._headline_of(self._found.named(row.a))[0].combine == "mean_of_ratios":
                over_all[row.a] = overlap.accuracy(overlap.rule)[0].value
        words = {f"with unanswered questions counted {COUNTS[rule]}": by_rule, "over all questions": over_all}
        parts = [f"{when}, it would be {first}" for when, values in words.items() if (first := _first_of(values, best))]
        return "".join(f"; {part}" for part in parts)

    def _headline_of(self, solver: Scored) -> list[Metric]:
        return [metric for metric in solver.metrics if metric.name == self._found.headline]

    def _value_of(self, solver: Scored) -> str:
        """Return the solver's value of the headline metric and its number of questions; empty for no value."""
        values = [
            f"{metric.value:.3f} ({how_many(metric.n)})"
            for metric in self._headline_of(solver)
            if metric.value is not None
        ]
        return values[0] if values else ""

    def _ahead(self, best: str) -> Iterator[Sentence]:
        """Yield the solvers that the best one is ahead of, adjusted over every tested pair."""
        pairs = [self._rows.pair(self._found.named(pair.a), self._found.named(pair.b)) for pair in self._found.pairs]
        tested = [pair.rows[0] for pair in pairs if pair.rows and pair.rows[0].p_holm is not None]
        of_best = [
            turned(row, (row.b, row.a) if row.a == best else (row.a, row.b)) for row in tested if best in (row.a, row.b)
        ]
        if not of_best:
            notes = [row.note for pair in pairs for row in pair.rows if row.note and best in (row.a, row.b)]
            yield _said(
                AHEAD["untested"], why=next(iter(notes), "no pair of it was chosen, or they share too few questions")
            )
            return

        ahead, unclaimed = list[str](), list[str]()
        for row in sorted(of_best, key=lambda row: -(row.value or 0.0)):
            pair = self._rows.pair(self._found.named(row.a), self._found.named(best))
            name = clipped(row.a, NAME_WIDTH)
            if not (row.holds and (row.low or 0.0) > 0) and pair.claim not in NO_CLAIM:
                continue
            if pair.claim in NO_CLAIM:
                unclaimed.append(pair.without_claim(name))
            else:
                ahead.append(f"{name} by {size_of(row)} ({ends_of(row)}{pair.fields()['split']})")
        parts = listed(ahead) + (f"; {UNCLAIMED} its difference to {listed(unclaimed)}" if unclaimed else "")
        kind = "some" if ahead else "depends" if unclaimed else "none"
        yield _said(AHEAD[kind], tests=how_many(len(tested), "test"), parts=parts.removeprefix("; "))


def _of_pair(cases_by_claim: Mapping[Claim, Case], pair: HeadlinePair, answers: str = "", **fields: object) -> Sentence:
    return _said(cases_by_claim[pair.claim], answers=answers, **pair.fields(), **fields)


def _first_of(values: Mapping[str, float | None], best: Collection[str]) -> str:
    """Return the solvers with the highest value, and that value; empty if they are the same as `best`."""
    known = {name: value for name, value in values.items() if value is not None}
    most = max(known.values(), default=0.0)
    first = [name for name, value in known.items() if value > most - 1e-9]
    if not first or set(first) == set(best):
        return ""
    return f"{listed([clipped(name, NAME_WIDTH) for name in first])}, {most:.3f}"


def _value(value: float | None) -> str:
    return "no value" if value is None else f"{value:.3f}"


def _named(row: Result, total: int | None = None) -> str:
    """Return a task with its difference, and with its share of `total` questions if given."""
    share = "" if total is None else f"; {row.n} of {how_many(total)}"
    return f"{clipped(row.group, NAME_WIDTH)} ({signed(row)}, {ends_of(row)}{share})"


def _held_of(rows: Sequence[Result], sign: int) -> list[Result]:
    """Return the differences of this sign that hold after adjustment, the largest first."""
    significant = [row for row in rows if row.holds and sign * (row.value or 0.0) > 0]
    return sorted(significant, key=lambda row: -abs(row.value or 0.0))


WHY_UNTESTED: Mapping[str, str] = {
    "failed": "more than 1 % of the questions failed",
    "waiting": "questions are not finished",
    "silent": "one of the two answers nothing",
    "units": "the metric does not count the same units for both",
    "apart": "no question in common",
}


def _several(pairs: Sequence[HeadlinePair], words: tuple[str, str]) -> tuple[str, int]:
    """Return the differences that hold after adjustment within their family, and the number of tests."""
    kinds: dict[str, list[str]] = {kind: [] for kind in (*words, NO_DIFFERENCE, UNCLAIMED, "not tested")}
    for pair in pairs:
        row = pair.rows[0] if pair.rows else None
        if row is None or row.p_holm is None or row.low is None:
            kinds["not tested"].append(f"{short_name(pair.b)} ({WHY_UNTESTED.get(pair.state, 'no interval')})")
        elif pair.claim in NO_CLAIM:
            kinds[UNCLAIMED].append(pair.without_claim(short_name(pair.b)))
        elif row.holds and row.excludes_zero:
            kinds[words[0] if row.low > 0 else words[1]].append(f"{short_name(pair.b)} ({signed(row)}, {ends_of(row)})")
        else:
            kinds[NO_DIFFERENCE].append(short_name(pair.b))
    parts = "; ".join(f"{kind} {listed(names)}" for kind, names in kinds.items() if names)
    return parts, sum(bool(pair.rows) and pair.rows[0].p is not None for pair in pairs)


def _command(group: ComparisonGroup) -> str:
    """Return the command that asks the same questions with blank tools."""
    run = group.hybrid.folder.path.as_posix() if group.hybrid.folder else "RUN"
    words = ("hybrid", "run", "--config", run, "--solver", word(group.hybrid), "--tool-output", "blank")
    return shlex.join((*words, "--out", f"{run}-blank"))
