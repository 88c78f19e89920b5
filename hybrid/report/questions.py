"""The questions of a report: a page for each, with the replies and steps of every solver.

    book = QuestionBook("blink", solvers, pictures, sampled)
    book.pages()             # one page at a time, read from disk on demand

Scores are in memory; question and attempt are read when their page is made, and then released. An attempt that can no
longer be read costs only one solver's conversation about one question, and the page says so.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import Benchmark, show
from hybrid.core.errors import DataError
from hybrid.core.machine_paths import hide_paths, hide_paths_in_step
from hybrid.core.types import COST_FIELDS, LETTERS, BrokenQuestion, Exchange, ImageRef, Prompt, Question
from hybrid.plugins.registry import load
from hybrid.report.columns import OPEN
from hybrid.report.looks import PlacesOfQuestion
from hybrid.report.payload import AskEntry, Fact, QuestionPage, SolverEntry, StepEntry
from hybrid.report.pictures import Drawn, Pictures
from hybrid.scoring.groups import is_imported, word
from hybrid.scoring.records import SolverRows
from hybrid.scoring.score import Scored

AnyQuestion = Question | BrokenQuestion
# The usage fields shown for each prompt.
OF_USAGE = ("model_calls", "tool_calls", "reused_calls", "input_tokens", "output_tokens", "cost_usd", "seconds")


def entry_of(
    rows: SolverRows, question: AnyQuestion, pictures: Pictures, places: PlacesOfQuestion | None = None
) -> SolverEntry:
    """Return a solver's steps to its answer, and add its regions to `places`; without an attempt, `asks` is empty."""
    scored, recorded, row = rows.scored, rows.recorded, rows.row(question.id)
    if row is None:
        # Either the question is open, or this solver does not have it.
        return SolverEntry(
            scored.solver,
            None,
            outcome=OPEN if question.id in scored.questions else "",
            answer="",
            rule="",
            why="",
            wall_s=None,
            asks=(),
        )
    attempt, note = None, ""
    try:
        attempt = row.attempt
    except DataError as error:
        note = f"its answer can no longer be read: {error}"
    failed = row.score().outcome.failed
    if attempt is None and not note and recorded is not None and not failed:
        note = "its answer is no longer on disk"
    reasons = [scored.reasons.get(question.id), attempt.error if attempt else None, note]
    if failed and recorded is not None:
        reasons.append(recorded.unfinished.get(question.id))
    rule = row.fact("rule")
    return SolverEntry(
        solver=scored.solver,
        correct=row.correct(scored.unanswered),
        outcome=row.fact("outcome"),
        answer=row.fact("answer") or "",
        rule="" if rule == "none" else rule,
        why=hide_paths("; ".join(dict.fromkeys(filter(None, reasons)))),
        wall_s=None if attempt is None or is_imported(scored) else row.fact("seconds"),
        asks=() if attempt is None else tuple(_ask(exchange, question, pictures) for exchange in attempt.exchanges),
        looked="" if attempt is None or places is None else places.looked(scored.solver, attempt),
    )


class QuestionBook:
    """The questions of some solvers of one benchmark, in the order of the data.

    Args:
        benchmark: its name.
        solvers: in the order of the overview.
        pictures: the images.
        sampled: ids of the questions on the error sheet.
        questions: the questions of a run without any answer, by id.
    """

    def __init__(
        self,
        benchmark: str,
        solvers: Sequence[Scored],
        pictures: Pictures,
        sampled: frozenset[str] = frozenset(),
        questions: Mapping[str, AnyQuestion] | None = None,
    ) -> None:
        self._benchmark: Benchmark = load("hybrid.benchmarks", benchmark).with_texts_read()
        self._pictures = pictures
        self._sampled = sampled
        self._again = commands_again(solvers)
        self._solvers = tuple(SolverRows(solver, steps=True) for solver in solvers)
        # The questions by id, with each folder included once.
        sources: dict[object, Mapping[str, AnyQuestion]] = {}
        for solver in solvers:
            sources.setdefault(
                id(solver.questions) if solver.folder is None else solver.folder.path.resolve(), solver.questions
            )
        self._sources: tuple[Mapping[str, AnyQuestion], ...] = (
            *sources.values(),
            *(() if questions is None else (questions,)),
        )
        self.ids = tuple(dict.fromkeys(identity for source in self._sources for identity in source))

    def pages(self) -> Iterator[QuestionPage]:
        """Yield a page for each question, in the order of the data."""
        for identity in self.ids:
            # Use the source that has most of the question: preferably one with images, else one with the text.
            question = max(
                (source[identity] for source in self._sources if identity in source),
                key=lambda question: (
                    isinstance(question, Question) and 1 + 2 * bool(question.images) + bool(question.text)
                ),
            )
            groups = tuple(Fact(name, value) for name, value in question.groups.items())
            places = PlacesOfQuestion(question) if isinstance(question, Question) else None
            entries = tuple(entry_of(rows, question, self._pictures, places) for rows in self._solvers)
            sampled = question.id in self._sampled
            if isinstance(question, BrokenQuestion):
                yield QuestionPage(
                    question.id,
                    question.task,
                    groups,
                    text="",
                    choices=(),
                    target="",
                    pictures=(),
                    solvers=entries,
                    error=hide_paths(question.error),
                    sampled=sampled,
                )
                continue
            command, place_note = self._again.get(question.id, ("", ""))
            yield QuestionPage(
                question.id,
                question.task,
                groups,
                text=question.text,
                choices=question.choices,
                target=target_in_words(self._benchmark, question),
                pictures=tuple(
                    self._pictures.of(ref, "image of the question", marks=places.marks(ref.image) if places else ())
                    for ref in show(question.images)
                ),
                solvers=entries,
                sampled=sampled,
                own_words=own_words(question.text, self._benchmark.texts),
                again=command,
                again_where=place_note,
                evidence=places.words if places else "",
            )


def own_words(text: str, texts: Mapping[str, str]) -> str:
    """Return a question without a leading text of its benchmark; unchanged if nothing else is left."""
    openings = (opening for value in texts.values() if (opening := value.strip()) and text.startswith(opening))
    return text.removeprefix(max(openings, key=len, default="")).strip() or text


def commands_again(solvers: Sequence[Scored]) -> dict[str, tuple[str, str]]:
    """Return by id the command that asks a question again with the first solver that has it, and where to run it.

    The second part is empty if the command runs in the working directory. Otherwise the run is outside the working
    directory, and the command must run in the folder that contains the run.
    """
    commands: dict[str, tuple[str, str]] = {}
    for solver in solvers:
        if solver.folder is None or is_imported(solver):
            continue
        # A page may leave the machine, so it names no folder outside the working directory except the run's own.
        path, working = Path(os.path.normpath(solver.folder.path.absolute())), Path.cwd()
        outside = working not in path.parents
        run = path.name if outside else path.relative_to(working).as_posix()
        place_note = f"in the folder that holds {run}" if outside else ""
        data = Path(solver.folder.manifest.get("options", {}).get("data", ""))
        if outside and not data.is_absolute() and data.exists() and data != Path():
            # The data folder was named relative to the working directory and cannot be found from the run's folder.
            place_note += f"; add --data DIR for the folder {data.name}"
        # Only the id differs from question to question; quoting all words would take ten times as long.
        start = shlex.join(("hybrid", "run", "--config", run, "--solver", word(solver), "--only"))
        end = shlex.join(("--out", f"{run}-again", "--debug"))
        for score in solver.scores:
            if score.id not in commands:
                commands[score.id] = (f"{start} {shlex.quote(score.id)} {end}", place_note)
    return commands


def target_in_words(benchmark: Benchmark, question: Question) -> str:
    """Return the right answer for a person: letter and text of the choice, a number, an order; empty if unknown."""
    if question.target is None:
        return ""
    prompt = Prompt((question.text,), question.kind, question.choices, question.given, question.route)
    try:
        oracle = benchmark.oracle_answer(question, prompt)
    except (DataError, LookupError, TypeError, ValueError):
        # Predictions only contain the parts of a question that their program saved.
        oracle = None
    answer = (str(question.target) if oracle is None else oracle).removeprefix("Answer: ")
    letter = re.fullmatch(r"\(?([A-Z])\)?", answer)
    if letter is None or (place := LETTERS.index(letter[1])) >= len(question.choices):
        return answer
    return f"({letter[1]}) {question.choices[place]}".rstrip()


def _ask(exchange: Exchange, question: AnyQuestion, pictures: Pictures) -> AskEntry:
    ask_prompt, reply = exchange.prompt, exchange.reply
    sizes = {ref.name: (ref.image.width, ref.image.height) for ref in (*ask_prompt.images, *ask_prompt.derived)}
    steps = []
    for step in map(hide_paths_in_step, reply.steps):
        drawing = Drawn(step.name, dict(sizes))
        fault = None if step.fault is None else step.fault.value
        images = tuple(pictures.of(ref, f"by {step.name}", drawing) for ref in step.images)
        steps.append(
            StepEntry(
                step.kind, step.name, text=step.text, seconds=step.seconds, fault=fault, data=step.data, pictures=images
            )
        )
        sizes |= {ref.name: (ref.image.width, ref.image.height) for ref in step.images}
    usage: dict[str, Any] = {name: getattr(reply.usage, name) for name in OF_USAGE}
    if not reply.usage.is_complete:
        usage |= {name: None for name in OF_USAGE if name in COST_FIELDS}
    prompt = ask_prompt.parts
    if not isinstance(question, BrokenQuestion):
        parts: tuple[Any, ...] = tuple(part.image if isinstance(part, ImageRef) else part for part in prompt)
        text = (question.text,) if question.text else ()
        # The page already shows the question's text and images above.
        if parts in ((*text, *question.images), (*question.images, *text)):
            prompt = ()
    return AskEntry(
        prompt=tuple(part if isinstance(part, str) else pictures.of(part, "shown in the prompt") for part in prompt),
        steps=tuple(steps),
        reply=reply.text,
        outcome=reply.outcome.value,
        **usage,
    )
