"""The answers of solvers to a question, with every step: as text, as a page, in a notebook and as JSON.

    answers = answers_of(RunFolder.existing(path))
    print(answers)                   # the steps of each solver
    answers[0].answer, answers[0].usage.cost_usd

A notebook shows an `Answers` as the page of `hybrid ask --open`. All texts are escaped, because they may contain
anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from hybrid.answers import parse
from hybrid.answers.comparing import as_json
from hybrid.core.images import ImageStore, home
from hybrid.core.secrets import redact
from hybrid.core.types import Attempt, BrokenQuestion, ImageRef, Json, Outcome, Question, Step, Usage
from hybrid.display.html import TEXT_STYLE, escaped, paragraph, stored_picture
from hybrid.display.terminal import how_many, one_line
from hybrid.log.folder import RunFolder

# The page runs no script and loads nothing; its pictures and its style are embedded in it.
PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title></head>
<body style="font-family: system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em">
{body}
</body></html>
"""


@dataclass(frozen=True, repr=False)
class Answer:
    """One solver's answer to one question, with the steps to it."""

    solver: str
    question: Question
    # None if the question was not finished; `error` says why.
    attempt: Attempt | None
    error: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The model calls, tool calls and rules, in order."""
        exchanges = () if self.attempt is None else self.attempt.exchanges
        return tuple(step for exchange in exchanges for step in exchange.reply.steps)

    @property
    def usage(self) -> Usage:
        """The total usage of the question."""
        exchanges = () if self.attempt is None else self.attempt.exchanges
        return sum((item.reply.usage for item in exchanges), Usage())

    @property
    def text(self) -> str:
        """The last reply; empty if there is none."""
        return "" if self.attempt is None else self.attempt.exchanges[-1].reply.text

    @property
    def outcome(self) -> Outcome:
        """How the question ended; a reply from which no answer can be read is `unparsed`."""
        if self.attempt is None:
            return Outcome.OUTAGE
        outcome = self.attempt.exchanges[-1].reply.outcome
        return Outcome.UNPARSED if outcome is Outcome.ANSWERED and self.answer is None else outcome

    @property
    def answer(self) -> Json:
        """The answer that the parser reads in the reply; None if it cannot read one."""
        return as_json(cast(Any, parse(self.text, self.question.kind, self.question.choices).value))

    def as_json(self) -> dict[str, Json]:
        """Return the answer with its steps; pictures by name, size and sha256."""
        return {
            "solver": self.solver,
            "answer": self.answer,
            "text": self.text,
            "outcome": self.outcome.value,
            "error": self.error or None,
            "usage": asdict(self.usage),
            "steps": [_step_json(step) for step in self.steps],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        """Yield the lines for a terminal; control characters are replaced."""
        yield f"{self.solver}:"
        for number, step in enumerate(self.steps, 1):
            yield f"  {number}. {_heading(step)}"
            for line in [*_calls(step), *redact(step.text).splitlines()]:
                yield f"     {one_line(line)}"
            for ref in step.images:
                yield f"     {_picture_line(ref)}"
        yield f"  {_answer_line(self)}"
        yield f"  {describe_usage(self.usage)}"

    def _repr_html_(self) -> str:
        parts = [f"<h3>{escaped(self.solver)}</h3><ol>"]
        for step in self.steps:
            lines = [text for text in (*_calls(step), step.text) if text]
            texts = "".join(map(paragraph, lines))
            pictures = "".join(stored_picture(ref.image, ref.name) for ref in step.images)
            parts.append(f"<li><b>{escaped(_heading(step))}</b>{texts}{pictures}</li>")
        parts.append(f"</ol><p><b>{escaped(_answer_line(self))}</b></p><p>{escaped(describe_usage(self.usage))}</p>")
        return "".join(parts)


@dataclass(frozen=True, repr=False)
class Answers(Sequence[Answer]):
    """The answers of all solvers to the questions of a run."""

    path: Path
    answers: tuple[Answer, ...]

    def __getitem__(self, place: Any) -> Any:
        return self.answers[place]

    def __len__(self) -> int:
        return len(self.answers)

    def as_json(self) -> dict[str, Json]:
        """Return the run's folder and the answers by question."""
        questions: list[Json] = []
        for answers in self._by_question():
            question = answers[0].question
            images: list[Json] = [{**asdict(image), "path": str(_path_of(image.sha256))} for image in question.images]
            facts: dict[str, Json] = {"id": question.id, "question": question.text, "images": images}
            questions.append({**facts, "answers": [answer.as_json() for answer in answers]})
        return {"run": str(self.path), "questions": questions}

    def __str__(self) -> str:
        lines: list[str] = []
        for answers in self._by_question():
            question = answers[0].question
            lines += [*map(one_line, question.text.splitlines()), *_question_pictures(question), ""]
            lines += [line for answer in answers for line in (*str(answer).splitlines(), "")]
        return "\n".join([*lines, f"run folder {self.path}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = []
        for answers in self._by_question():
            question = answers[0].question
            parts.append(f'<h2 style="{TEXT_STYLE}">{escaped(question.text)}</h2>')
            refs = [ImageRef(f"img:{place}", image) for place, image in enumerate(question.images, 1)]
            parts += [stored_picture(ref.image, ref.name) for ref in refs]
            parts += [answer._repr_html_() for answer in answers]
        return "".join(parts)

    def as_page(self) -> str:
        """Return a page for a browser."""
        title = escaped(one_line(self.answers[0].question.text)) if self.answers else "no answer"
        return PAGE.format(title=title, body=self._repr_html_())

    def _by_question(self) -> list[list[Answer]]:
        groups: dict[str, list[Answer]] = {}
        for answer in self.answers:
            groups.setdefault(answer.question.id, []).append(answer)
        return [*groups.values()]


def answers_of(folder: RunFolder, only: Sequence[str] = ()) -> Answers:
    """Return the answers of a run to all its questions, or to those with the ids in `only`.

    Raises `DataError` for a damaged run.
    """
    recorded = {solver: folder.recorded(solver) for solver in folder.solvers()}
    answers = []
    for question in folder.questions().by_id.values():
        if isinstance(question, BrokenQuestion) or (only and question.id not in only):
            continue
        for solver, attempts in recorded.items():
            reason = attempts.unfinished.get(question.id, "").strip().rpartition("\n")[2]
            answers.append(Answer(solver, question, attempts.by_id.get(question.id), reason))
    return Answers(folder.path, tuple(answers))


def describe_usage(usage: Usage) -> str:
    """Format calls, tokens, cost and time; an unknown cost is left out."""
    parts = [how_many(usage.model_calls, "model call"), how_many(usage.tool_calls, "tool call")]
    if usage.model_calls:
        parts.append(f"{usage.input_tokens:,} tokens in and {usage.output_tokens:,} out")
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    if usage.tool_faults:
        parts.append(how_many(usage.tool_faults, "failed tool call"))
    return ", ".join([*parts, f"{usage.seconds:.1f} s"])


def _answer_line(answer: Answer) -> str:
    if answer.attempt is None:
        return f"not answered: {redact(one_line(answer.error)) or 'the question was not finished'}"
    if answer.outcome is not Outcome.ANSWERED:
        return f"no answer ({answer.outcome.value})"
    value = answer.answer
    return f"answer: {redact(one_line(value if isinstance(value, str) else json.dumps(value)))}"


def _heading(step: Step) -> str:
    """Describe what a step did: `model gpt-4o (0.8 s)`, `tool crop on img:1 (0.0 s), classical backend`."""
    images = step.data.get("images")
    on_images = f" on {', '.join(map(str, images))}" if step.kind == "tool" and isinstance(images, list | tuple) else ""
    backend = step.data.get("backend")
    more = [f"{backend} backend"] if isinstance(backend, str) else []
    more += [f"failed: {step.fault.value}"] if step.fault is not None else []
    time = "" if step.kind == "rule" else f" ({step.seconds:.1f} s)"
    return one_line(", ".join([f"{step.kind} {step.name}{on_images}{time}", *more]))


def _calls(step: Step) -> list[str]:
    """Return the calls of a model, or the arguments of a tool call."""
    if step.kind == "tool":
        args = step.data.get("args")
        return [f"arguments {json.dumps(args, ensure_ascii=False)}"] if args else []
    calls = step.data.get("tool_calls")
    if not isinstance(calls, list | tuple):
        return []
    return [
        f"calls {call.get('tool')} {json.dumps(call.get('args'), ensure_ascii=False)}"
        for call in calls
        if isinstance(call, Mapping)
    ]


def _step_json(step: Step) -> dict[str, Json]:
    images: list[Json] = [
        {"name": ref.name, **asdict(ref.image), "path": str(_path_of(ref.image.sha256))} for ref in step.images
    ]
    fault = None if step.fault is None else step.fault.value
    facts: dict[str, Json] = {
        "kind": step.kind,
        "name": step.name,
        "text": step.text,
        "seconds": step.seconds,
        "fault": fault,
    }
    return {**facts, "data": step.data, "images": images}


def _path_of(sha256: str) -> Path:
    return ImageStore(home() / "images").path(sha256)


def _question_pictures(question: Question) -> list[str]:
    return [_picture_line(ImageRef(f"img:{place}", image)) for place, image in enumerate(question.images, 1)]


def _picture_line(ref: ImageRef) -> str:
    return f"{one_line(ref.name)}: {ref.image.width} x {ref.image.height} px, {_path_of(ref.image.sha256)}"
