"""The questions of a report: a line of the list for each, and a page with everything that became of it.

    book = QuestionBook("blink", solvers, pictures, sampled)
    book.rows                # the list, in the order of the data
    book.pages()             # one page at a time, read from disk when it is asked for

Scores are in memory; questions and attempts are read when their row or page is made, and forgotten: those of a question
once, as a row that was not asked for before its page is made with it. An attempt that cannot be read any more costs one
solver's conversation about one question, and the page says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from hybrid.benchmarks.base import Benchmark, show
from hybrid.errors import DataError
from hybrid.log.attempts import Recorded, tools_called
from hybrid.registry import load
from hybrid.report.payload import (
    AskEntry,
    Fact,
    PicturePayload,
    QuestionPage,
    QuestionRow,
    RowVerdict,
    SolverEntry,
    StepEntry,
)
from hybrid.report.pictures import Drawn, Pictures
from hybrid.scoring.groups import is_imported
from hybrid.scoring.score import Scored
from hybrid.types import LETTERS, Attempt, BrokenQuestion, Exchange, ImageRef, Prompt, Question, Score, Step

OPEN = "open"
"""The outcome of a question that a solver was not asked yet."""
TEXT_SHOWN = 200
"""Characters of a question that the list holds."""
ANSWER_SHOWN = 120
"""Characters of an answer that the list holds: a letter nearly always, else a plan or a path."""

AnyQuestion = Question | BrokenQuestion


class SolverColumn:
    """One solver with what is on disk of it."""

    def __init__(self, scored: Scored) -> None:
        self.scored = scored
        self.scores: Mapping[str, Score] = {score.id: score for score in scored.scores}
        self._imported = is_imported(scored)

    def verdict(self, identity: str, entry: SolverEntry | None = None) -> RowVerdict:
        """What the list shows of this solver and a question; `entry` is what its page shows, where it was made."""
        score = self.scores.get(identity)
        if score is None:
            return RowVerdict(None, self.missing(identity), "", ())
        correct = None if score.outcome.failed else score.correct
        answer = _cut(score.answer or "", ANSWER_SHOWN)
        tools = self._tools(identity) if entry is None else tools_of(entry)
        return RowVerdict(correct, score.outcome.value, answer, tools)

    def missing(self, identity: str) -> str:
        """The outcome of a question without a score: not asked yet, or none of this solver's."""
        return OPEN if identity in self.scored.questions else ""

    def entry(self, question: AnyQuestion, pictures: Pictures) -> SolverEntry:
        """What the page shows of this solver and a question."""
        name, identity = self.scored.solver, question.id
        score = self.scores.get(identity)
        if score is None:
            return SolverEntry(name, None, self.missing(identity), "", "", "", None, ())
        attempt, note = self._told(identity)
        why: list[str | None] = [self.scored.reasons.get(identity), attempt.error if attempt else None, note]
        if score.outcome.failed:
            why.append(None if self._recorded is None else self._recorded.unfinished.get(identity))
        return SolverEntry(
            solver=name,
            correct=None if score.outcome.failed else score.correct,
            outcome=score.outcome.value,
            answer=score.answer or "",
            rule="" if score.rule == "none" else score.rule,
            why="; ".join(dict.fromkeys(filter(None, why))),
            wall_s=None if attempt is None or self._imported else attempt.seconds,
            asks=() if attempt is None else tuple(_ask(each, question, pictures) for each in attempt.exchanges),
        )

    @cached_property
    def _recorded(self) -> Recorded | None:
        """What the run holds of this solver; None for predictions that were scored as they lie on disk."""
        return None if self.scored.folder is None else self.scored.folder.recorded(self.scored.recorded)

    @cached_property
    def _calls_tools(self) -> bool:
        return not self._imported and (self.scored.usage is None or self.scored.usage.tool_calls > 0)

    def _tools(self, identity: str) -> tuple[str, ...]:
        """The tools that were called, each once, in the order of their first call."""
        if self._recorded is None or not self._calls_tools or identity not in self._recorded.by_id:
            return ()
        try:
            return tools_called(self._recorded.line(identity))
        except ValueError:
            return ()

    def _told(self, identity: str) -> tuple[Attempt | None, str]:
        """The attempt at a question, or why it cannot be read."""
        if self._recorded is None:
            return None, ""
        try:
            attempt = self._recorded.by_id.get(identity)
        except DataError as error:
            return None, f"its answer cannot be read again: {error}"
        gone = attempt is None and not self.scores[identity].outcome.failed
        return attempt, "its answer is no longer on disk" if gone else ""


class QuestionBook:
    """The questions of some solvers of one benchmark, in the order of the data.

    Args:
        benchmark: its name.
        solvers: in the order of the overview.
        pictures: where images lie.
        sampled: ids of the questions on the error sheet.
        asked: the questions of a run that nobody has answered yet, by id.
    """

    def __init__(
        self,
        benchmark: str,
        solvers: Sequence[Scored],
        pictures: Pictures,
        sampled: frozenset[str] = frozenset(),
        asked: Mapping[str, AnyQuestion] | None = None,
    ) -> None:
        self._benchmark: Benchmark = load("hybrid.benchmarks", benchmark)
        self._pictures = pictures
        self._sampled = sampled
        self._witnesses = tuple(SolverColumn(one) for one in solvers)
        self._sources = _sources(solvers, asked)
        self.ids = tuple(dict.fromkeys(identity for source in self._sources for identity in source))
        self.rows: Sequence[QuestionRow] = _Rows(self.ids, self._row)
        """The list, in the order of the data."""
        self._made: dict[str, QuestionRow] = {}

    def pages(self) -> Iterator[QuestionPage]:
        """A page for each question, in the order of the list."""
        for identity in self.ids:
            question = self._question(identity)
            page = self._page(question)
            if identity not in self._made:
                self._made[identity] = self._row_of(question, page.solvers)
            yield page

    def _row(self, identity: str) -> QuestionRow:
        if identity not in self._made:
            self._made[identity] = self._row_of(self._question(identity), (None,) * len(self._witnesses))
        return self._made[identity]

    def _row_of(self, question: AnyQuestion, entries: Sequence[SolverEntry | None]) -> QuestionRow:
        identity, text = question.id, question.text if isinstance(question, Question) else question.error
        verdicts = tuple(
            answer_confidence.verdict(identity, entry)
            for answer_confidence, entry in zip(self._witnesses, entries, strict=True)
        )
        return QuestionRow(identity, question.task, _cut(text, TEXT_SHOWN), verdicts, identity in self._sampled)

    def _page(self, question: AnyQuestion) -> QuestionPage:
        groups = tuple(Fact(name, value) for name, value in question.groups.items())
        entries = tuple(answer_confidence.entry(question, self._pictures) for answer_confidence in self._witnesses)
        if isinstance(question, BrokenQuestion):
            return QuestionPage(question.id, question.task, groups, "", (), "", (), entries, question.error)
        return QuestionPage(
            id=question.id,
            task=question.task,
            groups=groups,
            text=question.text,
            choices=question.choices,
            target=target_in_words(self._benchmark, question),
            pictures=tuple(self._pictures.of(ref, "image of the question") for ref in show(question.images)),
            solvers=entries,
        )

    def _question(self, identity: str) -> AnyQuestion:
        """The question as the source tells it that knows most: with images, else with a text."""
        found = [source[identity] for source in self._sources if identity in source]
        return found[0] if len(found) == 1 else max(found, key=_told_of)


def _told_of(question: AnyQuestion) -> tuple[bool, bool, bool]:
    if isinstance(question, BrokenQuestion):
        return False, False, False
    return True, bool(question.images), bool(question.text)


def _sources(
    solvers: Sequence[Scored], asked: Mapping[str, AnyQuestion] | None
) -> tuple[Mapping[str, AnyQuestion], ...]:
    """The questions, those of one folder once."""
    found: dict[object, Mapping[str, AnyQuestion]] = {}
    for one in solvers:
        found.setdefault(id(one.questions) if one.folder is None else one.folder.path.resolve(), one.questions)
    return (*found.values(), *(() if asked is None else (asked,)))


class _Rows(Sequence[QuestionRow]):
    """The rows of some questions, each made when it is first asked for."""

    def __init__(self, ids: Sequence[str], row: Callable[[str], QuestionRow]) -> None:
        self._ids, self._row = ids, row

    @overload
    def __getitem__(self, place: int) -> QuestionRow: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[QuestionRow, ...]: ...
    def __getitem__(self, place: int | slice) -> QuestionRow | tuple[QuestionRow, ...]:
        if isinstance(place, slice):
            return tuple(map(self._row, self._ids[place]))
        return self._row(self._ids[place])

    def __len__(self) -> int:
        return len(self._ids)


def tools_of(entry: SolverEntry) -> tuple[str, ...]:
    """The tools that were called on the way to an answer, each once, in the order of their first call."""
    steps = (step for ask in entry.asks for step in ask.steps)
    return tuple(dict.fromkeys(step.name for step in steps if step.kind == "tool"))


def target_in_words(benchmark: Benchmark, question: Question) -> str:
    """The right answer as a person reads it: letter and text of the choice, a number, an order; empty where unknown."""
    if question.target is None:
        return ""
    prompt = Prompt((question.text,), question.kind, question.choices, question.given, question.route)
    try:
        said = benchmark.oracle_answer(question, prompt)
    except (DataError, LookupError, TypeError, ValueError):
        # Predictions hold as much of a question as their program kept.
        said = None
    answer = (str(question.target) if said is None else said).removeprefix("Answer: ")
    letter = re.fullmatch(r"\(?([A-Z])\)?", answer)
    if letter is None or (place := LETTERS.index(letter[1])) >= len(question.choices):
        return answer
    return f"({letter[1]}) {question.choices[place]}".rstrip()


def _cut(text: str, most: int) -> str:
    """The text on one line, at most so many characters long."""
    # A reply of a megabyte is not split into words for its first lines.
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _ask(exchange: Exchange, question: AnyQuestion, pictures: Pictures) -> AskEntry:
    reply, usage = exchange.reply, exchange.reply.usage
    shown = {
        ref.name: (ref.image.width, ref.image.height) for ref in (*exchange.prompt.images, *exchange.prompt.derived)
    }
    steps = []
    for step in reply.steps:
        steps.append(_step(step, shown, pictures))
        shown |= {ref.name: (ref.image.width, ref.image.height) for ref in step.images}
    return AskEntry(
        prompt=() if _is_plain(exchange.prompt, question) else _parts(exchange.prompt, pictures),
        steps=tuple(steps),
        reply=reply.text,
        outcome=reply.outcome.value,
        model_calls=usage.model_calls,
        tool_calls=usage.tool_calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        seconds=usage.seconds,
    )


def _parts(prompt: Prompt, pictures: Pictures) -> tuple[str | PicturePayload, ...]:
    return tuple(part if isinstance(part, str) else pictures.of(part, "shown in the prompt") for part in prompt.parts)


def _is_plain(prompt: Prompt, question: AnyQuestion) -> bool:
    """Whether a prompt is the question's text and images as the page shows them above."""
    if isinstance(question, BrokenQuestion):
        return False
    shown: tuple[Any, ...] = tuple(part.image if isinstance(part, ImageRef) else part for part in prompt.parts)
    text = (question.text,) if question.text else ()
    return shown in ((*text, *question.images), (*question.images, *text))


def _step(step: Step, sizes: Mapping[str, tuple[int, int]], pictures: Pictures) -> StepEntry:
    drawn = Drawn(step.name, sizes)
    return StepEntry(
        kind=step.kind,
        name=step.name,
        text=step.text,
        seconds=step.seconds,
        fault=None if step.fault is None else step.fault.value,
        data=step.data,
        pictures=tuple(pictures.of(ref, f"by {step.name}", drawn) for ref in step.images),
    )
