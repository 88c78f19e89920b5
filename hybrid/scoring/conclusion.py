"""The conclusion of a comparison: at most ten sentences with numbers and intervals, read from the result table.

    for sentence in conclusion(compare(solvers)):
        sentence.id, sentence.text          # "gain.more", "Accuracy is 0.960 with tools (controller), 0.420 alone ..."

In order, it compares a hybrid solver with its model alone and with the specialists alone; splits the difference into
the effect of offering tools and the effect of tool output; states the effect of offering tools in the form of the
model's training, if a study measured it; answers a reviewer's next questions (`conclusion_review.py`); and names worse
tasks and the limits of the claim. Each case, with its condition and words, is beside the code that chooses it. Every
test is one that `hybrid compare` prints.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from hybrid.display.terminal import how_many
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_cases import DECLARED, Case, Sentence, case, say
from hybrid.scoring.conclusion_limits import limits_of
from hybrid.scoring.conclusion_ranking import ranking_sentences
from hybrid.scoring.conclusion_review import pooled_sentences, review_sentences
from hybrid.scoring.conclusion_rows import ConclusionRows, count_of
from hybrid.scoring.conclusion_tasks import losses_sentence, task_sentence
from hybrid.scoring.conclusion_words import (
    CI,
    count_units,
    ends_of,
    format_value,
    listed,
    mean_count,
    measure,
    short_name,
    signed,
    size_of,
)
from hybrid.scoring.groups import (
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
from hybrid.scoring.headline_pair import NO_CLAIM, UNCLAIMED, Claim, HeadlinePair, cases_of_claims, shown
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.effects import TRAINED as AS_TRAINED
from hybrid.scoring.sections.gain import CONTENT, GAIN, PRESENCE, none_said, said_of, unclear_parts

GAIN_WORDS = ("a gain for", "a loss for")
NO_DIFFERENCE = "no significant difference for"
SPECIALISTS = "The specialists alone"
SELDOM = 0.2  # Below this share of questions with a call, the first sentence states their number


def conclusion(comparison: Comparison, *, limits: bool = True) -> tuple[Sentence, ...]:
    """Return one to ten sentences about the solvers of a comparison.

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
        "silent": "{answers}: nothing to compare, as {silent}{called}.",
        "failed": (
            "Whether tools bring a gain is not tested: {failed} of {n} questions failed, more than 1 % "
            "(to conclude anyway: --allow-failed){called}."
        ),
        "waiting": "The effect of tools is not known yet, because {left} questions are not finished: {command}",
        "units": "{answers}: not tested, as {metric} does not count the same units for both{called}.",
        "apart": "{hybrid} and {other} are not compared: {apart}{called}.",
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
    "The effect of tools is not known here, because this comparison leaves out the model alone{called}; to include it: "
    "{command}",
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
        "silent": "{who} answer none of these questions.",
        "failed": (
            "{who} are not compared{place}: {failed} of {n} questions failed, more than 1 % (to conclude anyway: "
            "--allow-failed)."
        ),
        "waiting": "{who} are not compared: questions are not finished yet.",
        "units": "{answers}: not tested, as {metric} does not count the same units for both.",
        "apart": "{hybrid} and {other} are not compared: {apart}.",
    },
)
NOTHING_NEXT_TO_SPECIALISTS = case(
    "specialists.alone",
    "they answer, and the solver with tools answers none of these questions",
    "{answers}: nothing to compare{there}, as {silent}{rest}.",
)
NO_SPECIALISTS = case("specialists.absent", "they were not asked", "The specialists alone were not asked.")
SPECIALISTS_NOT_CHOSEN = case(
    "specialists.not_chosen",
    "the run has answers of the specialists, which are not compared",
    "This comparison leaves out the specialists alone; to include them: {command}",
)
# These claims have fixed words; for all other claims, `said_of` builds the sentence from its parts.
CONTENT_CASES = cases_of_claims(
    "content",
    {
        "few": "With blank tools: {few}.",
        "silent": "With blank tools there is nothing to compare, as {silent}.",
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
    "unclaimed": case(
        "trained.unclaimed",
        "the difference supports no claim, for one of the reasons `rule`, `uneven`, `answering`, `others` and `split`",
        "No claim for the form of the tools in its training: {difference}.",
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

# Cases for several solvers with tools, or for several models.
SEVERAL_GAINS = case(
    "gain.several",
    "several solvers with tools, or several models",
    "Compared with its model alone, over {n} questions and adjusted (Holm) for {tests}: {parts}{called}.",
)
SEVERAL_UNTESTED = case(
    "gain.several_untested",
    "several solvers with tools, none of which can be tested against its model alone",
    "Compared with its model alone: {parts}{called}.",
)
SEVERAL_SPECIALISTS = case(
    "specialists.several",
    "several solvers with tools, or several models",
    "Compared with the specialists alone, on the questions that they answer: {parts}.",
)
SEVERAL_CONTENTS = case(
    "content.several",
    "several solvers with tools, or several models",
    "With tools, compared with blank tools: {parts}.",
)


def _explain_missing_alone(hybrids: Sequence[Scored], calls_note: str, compared: Sequence[Scored]) -> Sentence:
    """Say why the model alone has no answers: not compared, not requested, or the run stopped before asking it."""
    if command := command_for_unchosen(hybrids, ALONE, compared):
        return say(ALONE_NOT_CHOSEN, called=calls_note, command=command)
    pending = [solver for solver in hybrids if alone_not_begun(solver)]
    if not pending:
        return say(NO_ALONE, called=calls_note)
    return say(ALONE_NOT_BEGUN, alone=ALONE, called=calls_note, command=own_command(pending))


def _explain_missing_specialists(hybrids: Sequence[Scored], compared: Sequence[Scored]) -> Sentence:
    """Say that the specialists were not asked, or that their answers are in a run and not compared."""
    command = command_for_unchosen(hybrids, SPECIALIST, compared)
    return say(SPECIALISTS_NOT_CHOSEN, command=command) if command else say(NO_SPECIALISTS)


class _Conclusion:
    """The sentences about one comparison."""

    def __init__(self, rows: ConclusionRows) -> None:
        self._rows, self._found, self._groups = rows, rows.found, rows.found.groups

    def sentences(self, *, limits: bool) -> Iterator[Sentence]:
        """Yield the sentences in the order printed."""
        if all(score.outcome.failed for solver in self._found.solvers for score in solver.scores):
            yield say(NOTHING_ANSWERED)
            return
        if not self._groups:
            yield from ranking_sentences(self._rows)
        elif len(self._groups) == 1:
            yield from self._of_one(self._groups[0])
        else:
            yield from self._of_several()
        parts = "; ".join(limits_of(self._rows, self._groups)) if limits else ""
        if parts:
            yield Sentence("limits", f"Limits: {parts}.")

    # Sentences about one solver with tools.

    def _of_one(self, group: ComparisonGroup) -> Iterator[Sentence]:
        calls_note, name = self._called((group.hybrid,)), ""
        if group.alone is None:
            yield _explain_missing_alone((group.hybrid,), calls_note, self._found.solvers)
        else:
            gain = self._rows.pair(group.alone, group.hybrid)
            name = _measure(gain)
            yield self._next_to_alone(gain, name, calls_note)
        if group.specialist is None:
            yield _explain_missing_specialists((group.hybrid,), self._found.solvers)
        else:
            yield self._next_to_specialists(group.specialist, group.hybrid, name)
        if group.blank is None:
            yield say(NO_BLANK, command=_command(group))
        else:
            yield self._parts(group, group.blank)
        yield from self._as_trained(group)
        yield from (Sentence(*sentence) for sentence in review_sentences(self._rows, group))
        yield from task_sentence(self._rows, group)

    def _next_to_alone(self, gain: HeadlinePair, name: str, calls_note: str) -> Sentence:
        """Return the sentence on the difference from the model alone, by the metric of this `name`."""
        with_tools, alone = (f"({short_name(solver)}{self._again(solver)})" for solver in (gain.b, gain.a))
        how = "with tools" if offers_tools(gain.b) else "joined"
        values = f"{format_value(gain.values[1])} {how} {with_tools}, {format_value(gain.values[0])} alone {alone}"
        answers = f"{name[:1].upper()}{name[1:]} is {values}"
        right = gain.right
        counts = "" if right is None else f"; {right[1]} and {right[0]} of {gain.n:,} right"
        return _of_pair(GAIN_CASES, gain, answers, counts=counts, called=calls_note)

    def _again(self, solver: Scored) -> str:
        """Return the number of repetitions over which a solver's values are averaged; empty without repetitions."""
        count = len(self._found.finished_repetitions(solver))
        return f", mean of {count} repetitions" if count > 1 else ""

    def _next_to_specialists(self, specialist: Scored, hybrid: Scored, named: str) -> Sentence:
        """Return the sentence on the questions that specialists answer; a lead over them counts only on these.

        `named` is the metric that the previous sentence names, so this one does not repeat it.
        """
        pair, silent = self._rows.where_answered(specialist, hybrid)
        # Use the solver's name, unless its model is known to be offered tools.
        whom = "with tools" if offers_tools(hybrid) else short_name(hybrid)
        repeated, who = len(self._found.finished_repetitions(specialist)) > 1, self._name_specialists(specialist)
        coverage = "" if silent else self._coverage(specialist, hybrid)
        answers, rest = _specialists_words(pair, silent, whom, named, who=who, coverage=coverage, repeated=repeated)
        lead = "" if pair.state == "open" else f"{whom} "
        place, there = (" where they answer", " there") if silent else ("", "")
        if pair.state == "silent" and specialist.solver not in pair.silent:
            return say(NOTHING_NEXT_TO_SPECIALISTS, answers=answers, rest=rest, there=there, **pair.fields())
        return _of_pair(SPECIALISTS_CASES, pair, answers, who=who, whom=whom, lead=lead, rest=rest, place=place)

    def _name_specialists(self, specialist: Scored) -> str:
        """Return `The specialists alone`, with the solver's name if specialists of another run are compared too."""
        kind = (word(specialist), specialist.tool_output)
        same = [solver for solver in self._found.contestants if (word(solver), solver.tool_output) == kind]
        return f"{SPECIALISTS} ({short_name(specialist)})" if len(same) > 1 else SPECIALISTS

    def _coverage(self, specialist: Scored, hybrid: Scored) -> str:
        """Return how many questions specialists answer, a mean over repetitions; empty if they answer all or none."""
        overlap = self._found.overlap(specialist, hybrid)
        n, unanswered = int(overlap.counted.sum()), float(overlap.silent_share[0][overlap.counted].sum())
        if not 0 < unanswered < n:
            return ""
        count = len(self._found.finished_repetitions(specialist))
        again = f" (mean of {count} repetitions)" if count > 1 else ""
        return f"answer {mean_count(n - unanswered, n)} of {how_many(n)}{again}"

    def _called(self, solvers: Sequence[Scored]) -> str:
        """Return the number of questions with a tool call, for each solver that seldom called a tool."""
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
        rows = list(pair.rows)
        if group.alone is not None:
            for other, quantity in ((group.hybrid, GAIN), (blank, PRESENCE)):
                rows += self._rows.part(group, group.alone, other, quantity).rows
        none, unclear = none_said(self._found, group), unclear_parts(self._rows, group)
        case, words = said_of(*rows, none=none, unclear=unclear)
        # Blank tools may leave more or fewer questions unanswered than real tools, so append that part of the
        # difference.
        return Sentence(case, f"{words.removesuffix('.')}{pair.fields()['split']}.")

    def _as_trained(self, group: ComparisonGroup) -> Iterator[Sentence]:
        """Yield the gain or loss from offering tools in the format in which the model was trained."""
        trained = group.as_trained
        if trained is None:
            return
        about, style = (AS_TRAINED, group.hybrid.solver, trained.solver, ""), asked_in(trained)[0]
        rows = (row for row in self._rows.of("effects") if (row.quantity, row.a, row.b, row.group) == about)
        row = next(rows, None)
        if row is None or row.low is None:
            yield say(TRAINED["untested"], style=style)
            return
        pair = self._rows.tested_pair(group.hybrid, trained)
        if pair.claim in NO_CLAIM:
            yield say(TRAINED["unclaimed"], difference=pair.without_claim(style))
            return
        state = shown(row) if row.holds else "open"
        size = signed(row) if state == "open" else size_of(row)
        yield say(TRAINED[state], style=style, size=size, ends=f"{CI} {ends_of(row, cost=state == 'less')}")

    # Sentences about several solvers with tools.

    def _of_several(self) -> Iterator[Sentence]:
        groups, rows = self._groups, self._rows
        yield from (Sentence(*sentence) for sentence in pooled_sentences(rows))
        gains = [rows.pair(group.alone, group.hybrid) for group in groups if group.alone is not None]
        calls_note = self._called([group.hybrid for group in groups])
        if gains:
            yield _of_gains(gains, calls_note)
        else:
            yield _explain_missing_alone([group.hybrid for group in groups], calls_note, self._found.solvers)
        pairs = [
            rows.where_answered(group.specialist, group.hybrid)[0] for group in groups if group.specialist is not None
        ]
        if pairs:
            yield say(SEVERAL_SPECIALISTS, parts=_several(pairs, ("a lead for", "a deficit for"))[0])
        else:
            yield _explain_missing_specialists([group.hybrid for group in groups], self._found.solvers)
        contents = [rows.part(group, group.blank, group.hybrid, CONTENT) for group in groups if group.blank is not None]
        if contents:
            yield say(SEVERAL_CONTENTS, parts=_several(contents, GAIN_WORDS)[0])
        else:
            yield say(NO_BLANK, command=_command(groups[0]))
        yield from losses_sentence(rows, gains)


def _of_gains(gains: Sequence[HeadlinePair], calls_note: str) -> Sentence:
    """Return the sentence on the differences between several solvers and their models alone."""
    parts, count = _several(gains, GAIN_WORDS)
    sizes = sorted({pair.n for pair in gains if pair.n})
    n = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else "".join(map(str, sizes))
    chosen = SEVERAL_GAINS if count else SEVERAL_UNTESTED
    return say(chosen, n=n, tests=how_many(count, "test"), parts=parts, called=calls_note)


def _measure(pair: HeadlinePair) -> str:
    """Return the metric of a pair in words; empty if the two solvers have no metric in common."""
    return measure(pair.metrics) if pair.metrics else ""


def _specialists_words(
    pair: HeadlinePair,
    silent: Mapping[str, Result],
    whom: str,
    named: str,
    *,
    who: str = SPECIALISTS,
    coverage: str = "",
    repeated: bool = False,
) -> tuple[str, str]:
    """Describe the answers of the specialists `who` compared with `whom`, and those of `whom` where they are `silent`.

    `coverage` says how many questions the specialists answer if they answer some but are compared on all.
    If the specialists are `repeated`, `pair` covers the questions that at least one repetition answers, and includes
    the repetitions that leave these unanswered.
    """
    metric = _measure(pair)
    if pair.right is None:
        verb, unit = "score" if metric == named else f"have {metric}", ""
        own, other = map(format_value, pair.values)
    else:
        verb, unit = "get", " right"
        own, other = map(str, pair.right)
    if silent:
        row = silent["right b" if unit else "value b"]
        # A metric over units of several questions, such as pairs, has fewer units than questions.
        left = silent.get("right b", row).n or 0
        compared = f"both {verb} {own}{unit}" if own == other else f"they {verb} {own}{unit}, {whom} {other}"
        compared += "" if unit else _over_units(pair.rows[0].n or pair.n, pair.n)
        asked = f"{how_many(pair.n + left)}{' in at least one repetition' if repeated else ''}"
        mixed = repeated and pair.split is not None and pair.split.mixed_repetitions
        these = "these, unanswered repetitions included" if mixed else "these"
        answers = f"{who} answer {pair.n} of {asked}; on {these}, {compared}"
        rest = f"{count_of(row)} right" if unit else f"{format_value(row.value)}{_over_units(row.n or left, left)}"
        others = "question" if left == 1 else how_many(left)
        return answers, f". On the other {others}: {whom} {rest}"
    of_all = f" of {pair.n}" if unit else ""
    # In the other cases, the sentence names the hybrid solver together with the size of its lead.
    next_to = f", {whom} {other}" if pair.state == "open" or pair.claim == "rule" else ""
    opening = f"{who} {coverage}; over all, they" if coverage else who
    return f"{opening} {verb} {own}{of_all}{unit}{next_to}", ""


def _over_units(units: int, questions: int) -> str:
    """Return the number of units that a value covers; empty if each question is a unit."""
    return "" if units == questions else f" over {count_units(units, questions)}"


def _of_pair(cases_by_claim: Mapping[Claim, Case], pair: HeadlinePair, answers: str = "", **fields: object) -> Sentence:
    return say(cases_by_claim[pair.claim], answers=answers, **pair.fields(), **fields)


WHY_UNTESTED: Mapping[str, str] = {
    "failed": "more than 1 % of the questions failed",
    "waiting": "questions are not finished",
    "silent": "at least one of the two answers nothing",
    "units": "the metric does not count the same units for both",
    "apart": "no question in common",
}
NOT_CHOSEN = "--pairs or --baseline leaves the pair out"


def _several(pairs: Sequence[HeadlinePair], words: tuple[str, str]) -> tuple[str, int]:
    """Return the differences that hold after adjustment within their family, and the number of tests."""
    kinds: dict[str, list[str]] = {kind: [] for kind in (*words, NO_DIFFERENCE, UNCLAIMED, "not tested")}
    for pair in pairs:
        row = pair.rows[0] if pair.rows else None
        if row is None or row.low is None:
            why = WHY_UNTESTED.get(pair.state, "no interval")
            why = NOT_CHOSEN if pair.state == "apart" and not pair.is_chosen else why
            kinds["not tested"].append(f"{short_name(pair.b)} ({why})")
        elif pair.claim in NO_CLAIM:
            kinds[UNCLAIMED].append(pair.without_claim(short_name(pair.b)))
        elif row.holds and row.excludes_zero:
            kinds[words[0] if row.low > 0 else words[1]].append(f"{short_name(pair.b)} ({signed(row)}, {ends_of(row)})")
        else:
            kinds[NO_DIFFERENCE].append(short_name(pair.b))
    parts = "; ".join(f"{kind} {listed(names)}" for kind, names in kinds.items() if names)
    return parts, len(pairs) - len(kinds["not tested"])


def _command(group: ComparisonGroup) -> str:
    """Return the command that asks the same questions with blank tools."""
    run = group.hybrid.folder.path.as_posix() if group.hybrid.folder else "RUN"
    words = ("hybrid", "run", "--config", run, "--solver", word(group.hybrid), "--tool-output", "blank")
    return shlex.join((*words, "--out", f"{run}-blank"))
