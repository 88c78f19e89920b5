"""The questions of a report: a page for each, with what every solver said and did.

    book = QuestionBook("blink", solvers, pictures, sampled)
    book.pages()             # one page at a time, read from disk when it is asked for

Scores are in memory; question and attempt are read when their page is made, and forgotten. An attempt that cannot be
read any more costs one solver's conversation about one question, and the page says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from hybrid.benchmarks.base import Benchmark, show
from hybrid.errors import DataError
from hybrid.log.attempts import Recorded
from hybrid.registry import load
from hybrid.report.columns import OPEN
from hybrid.report.payload import (
    AskEntry,
    Fact,
    PicturePayload,
    QuestionPage,
    SolverEntry,
    StepEntry,
)
from hybrid.report.pictures import Drawn, Pictures
from hybrid.scoring.groups import is_imported
from hybrid.scoring.score import Scored
from hybrid.types import LETTERS, Attempt, BrokenQuestion, Exchange, ImageRef, Prompt, Question, Score, Step

AnyQuestion = Question | BrokenQuestion


class SolverReader:
    """Reads the answers of one solver."""

    def __init__(self, scored: Scored) -> None:
        self.scored = scored
        self.scores: Mapping[str, Score] = {score.id: score for score in scored.scores}
        self._imported = is_imported(scored)

    def missing(self, identity: str) -> str:
        """The outcome of a question without a score: `open`, or empty where this solver has no such question."""
        return OPEN if identity in self.scored.questions else ""

    def entry(self, question: AnyQuestion, pictures: Pictures) -> SolverEntry:
        """The solver's way to its answer; without asks where it has none."""
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
        """The solver's attempts in its run; None for predictions that were scored as they lie on disk."""
        return None if self.scored.folder is None else self.scored.folder.recorded(self.scored.recorded)

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
        asked: the questions of a run without any answer, by id.
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
        self._readers = tuple(SolverReader(one) for one in solvers)
        self._sources = _sources(solvers, asked)
        self.ids = tuple(dict.fromkeys(identity for source in self._sources for identity in source))

    def pages(self) -> Iterator[QuestionPage]:
        """A page for each question, in the order of the data."""
        return (self._page(self._question(identity)) for identity in self.ids)

    def _page(self, question: AnyQuestion) -> QuestionPage:
        groups = tuple(Fact(name, value) for name, value in question.groups.items())
        entries = tuple(reader.entry(question, self._pictures) for reader in self._readers)
        sampled = question.id in self._sampled
        if isinstance(question, BrokenQuestion):
            return QuestionPage(question.id, question.task, groups, "", (), "", (), entries, question.error, sampled)
        return QuestionPage(
            id=question.id,
            task=question.task,
            groups=groups,
            text=question.text,
            choices=question.choices,
            target=target_in_words(self._benchmark, question),
            pictures=tuple(self._pictures.of(ref, "image of the question") for ref in show(question.images)),
            solvers=entries,
            sampled=sampled,
        )

    def _question(self, identity: str) -> AnyQuestion:
        """The question from the source that knows most of it: with images, else with a text."""
        known = [source[identity] for source in self._sources if identity in source]
        return known[0] if len(known) == 1 else max(known, key=_completeness)


def _completeness(question: AnyQuestion) -> tuple[bool, bool, bool]:
    if isinstance(question, BrokenQuestion):
        return False, False, False
    return True, bool(question.images), bool(question.text)


def _sources(
    solvers: Sequence[Scored], asked: Mapping[str, AnyQuestion] | None
) -> tuple[Mapping[str, AnyQuestion], ...]:
    """The questions by id, those of one folder once."""
    found: dict[object, Mapping[str, AnyQuestion]] = {}
    for one in solvers:
        found.setdefault(id(one.questions) if one.folder is None else one.folder.path.resolve(), one.questions)
    return (*found.values(), *(() if asked is None else (asked,)))


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
