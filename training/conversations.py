"""The conversations that the embedded model learns from: the real solvers answer generated questions.

A teacher that knows the right answer replaces the model, so system text, menu, calls, tool outputs, pictures and faults
are those of a real run. Conversations about one kind of question are then recombined: the question of one conversation
gets the tool output of another and the answer that this output supports. Numbers in the questions are changed, too.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from hybrid.benchmarks.base import Benchmark, Source
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ImagePart, Message, ToolMessage, UserMessage, parts_of
from hybrid.core.types import BrokenQuestion, Fault, Json, Outcome, Prompt, Question, Reply
from hybrid.models.base import CallKey
from hybrid.models.images import arrange
from hybrid.models.text_protocol import as_text
from hybrid.plugins.registry import load, load_solver
from hybrid.running.generated import generate
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.coordinates import frame_named
from hybrid.solving.session import AskSetup, Session
from hybrid.tool import Tool
from training.policy import FRACTION, TaughtAsk, call_for, read
from training.scenes import SCENES, look
from training.sight import View

# Largest number of variants (rotations, pictures of a pair) asked per row: more would be too similar.
QUESTIONS_OF_A_ROW: Final = 2
# Number of other tool outputs, for questions of the same kind, with which a question is combined.
RECOMBINED: Final = 4
# Share of the questions that are also asked with the message that the tool is not available.
ABSENT: Final = 0.25
# Share of the conversations with tools that are held in the text protocol.
AS_TEXT: Final = 0.2


@dataclass(frozen=True)
class Batch:
    """Generated rows of one task: `count` rows from a training seed, which give up to twice as many questions."""

    benchmark: str
    task: str
    count: int
    seed: int


@dataclass(frozen=True)
class Held:
    """A conversation: the question as the teacher sees it, its messages with the last reply, and the tools offered."""

    ask: TaughtAsk
    right: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]


class Teacher:
    """A `ChatModel` that knows the right answer: it calls the suitable tool, and answers from the tool output."""

    name = "teacher"
    provider = "teacher"

    def __init__(self) -> None:
        self.ask: TaughtAsk | None = None
        self.right = ""
        self.held: list[Held] = []

    def metadata(self) -> Mapping[str, Json]:
        """Return nothing, because the teacher's runs are not saved."""
        return {}

    def connection(self) -> Mapping[str, Json]:
        """Return nothing: there is no server."""
        return {}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """Return the call that the question needs while there is no tool output, then the answer."""
        assert self.ask is not None  # noqa: S101 - set before the solver is asked
        findings = [message for message in messages if isinstance(message, ToolMessage)]
        expected = call_for(self.ask) if tools and not findings else None
        if expected is not None:
            return AssistantMessage("", (expected,))
        answer = read(self.ask, findings[-1].text) if findings and not findings[-1].failed else None
        reply = AssistantMessage(answer or self.right)
        self.held.append(Held(self.ask, self.right, (*messages, reply), tuple(tools)))
        return reply

    async def close(self) -> None:
        """Do nothing: no resource is open."""


def hold(batch: Batch, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the conversations of a batch as lines for the file; images are in the store of `folder`."""
    benchmark: Benchmark = load("hybrid.benchmarks", batch.benchmark)
    store = ImageStore(folder / "images")
    data = generate(benchmark, folder / "data", (batch.task,), batch.count, batch.seed, "train")
    source = Source(data, store, benchmark.card.splits[0], (batch.task,), benchmark.card.resolve_settings({}))
    questions = [question for question in benchmark.questions(source) if not isinstance(question, BrokenQuestion)]
    service = CachedTools(store, FindingCache(None, store), ServiceOptions("classical", threads=1))
    rng = random.Random(f"{batch.benchmark}/{batch.task}/{batch.seed}")
    plain, helped, blanked = asyncio.run(_hold_all(benchmark, questions[: QUESTIONS_OF_A_ROW * batch.count], service))
    service.close()
    for stored in plain:
        yield line(batch, "plain", stored, text=False)
    for contained in (*helped, *blanked, *recombined([item for item in helped if has_tool_call(item)], rng)):
        yield line(batch, "tools", contained, text=rng.random() < AS_TEXT)


async def _hold_all(
    benchmark: Benchmark, questions: Sequence[Question], service: CachedTools
) -> tuple[list[Held], list[Held], list[Held]]:
    """Generate conversations without tools, with tools, and with blank tools."""
    tools_offered: tuple[Tool, ...] = tuple(load("tools", name) for name in benchmark.card.tools_offered)
    without, helped, blanked = Teacher(), Teacher(), Teacher()
    real, config = ToolCondition(service), RunConfig("", model="embedded")
    for question in questions:
        for name, teacher, control in (
            ("mllm", without, real),
            ("controller", helped, real),
            ("controller", blanked, ToolCondition(service, "blank")),
        ):
            resources = AskSetup(config, teacher, control, tools_offered, frame=frame_named(config.frame))
            session = Session(question, load_solver(name), resources)
            await benchmark.dialogue(question.without_target(), _taught(benchmark, question, session, teacher))
    return without.held, helped.held, [stored for stored in blanked.held if has_tool_call(stored)]


def _taught(
    benchmark: Benchmark, question: Question, session: Session, teacher: Teacher
) -> Callable[[Prompt], Awaitable[Reply]]:
    """Return the function that asks a prompt of one question, after giving the teacher the right answer."""

    async def ask(prompt: Prompt) -> Reply:
        right = benchmark.oracle_answer(question, prompt)
        if right is None:
            return Reply("", Outcome.ABSTAINED)
        teacher.ask = TaughtAsk(prompt.text, prompt.choices, tuple(ref.name for ref in prompt.images))
        teacher.right = right
        return await session.ask(prompt)

    return ask


def has_tool_call(stored: Held) -> bool:
    """Return whether the conversation calls a tool."""
    return any(isinstance(message, ToolMessage) for message in stored.messages)


def recombined(helds: Sequence[Held], rng: random.Random) -> Iterator[Held]:
    """Yield variants of each question with other numbers and the tool output of another question, some with a fault."""
    absent = f"{Fault.TOOL_ERROR.value}: {load_solver('controller').texts['not_available']}"
    for mine in helds:
        for _ in range(RECOMBINED):
            other = rng.choice(helds)
            yield from with_finding(renumbered(mine, rng), finding_of(other))
        if rng.random() < ABSENT:
            yield from with_finding(mine, replace(finding_of(mine), parts=(absent,), failed=True))


def finding_of(stored: Held) -> ToolMessage:
    """Return the tool output in a conversation."""
    return next(message for message in stored.messages if isinstance(message, ToolMessage))


def with_finding(stored: Held, finding: ToolMessage) -> Iterator[Held]:
    """Yield the conversation with another tool output and the answer that this output supports.

    If the tool failed, the answer is the right one.

    Yields nothing if the tool did not fail but its output supports no answer.
    """
    answer = None if finding.failed else read(stored.ask, finding.text)
    if answer is None and not finding.failed:
        return
    at = next(place for place, message in enumerate(stored.messages) if isinstance(message, ToolMessage))
    messages = (*stored.messages[:at], finding, AssistantMessage(answer or stored.right))
    yield replace(stored, messages=messages)


def renumbered(stored: Held, rng: random.Random) -> Held:
    """Return the conversation with other coordinates: numbers in the question and in the call change together."""
    if not re.search(FRACTION, stored.ask.text) or call_for(stored.ask) is None:
        return stored
    text = re.sub(FRACTION, lambda _: f"{rng.randint(4, 96) / 100:.2f}", stored.ask.text)
    ask = replace(stored.ask, text=text)
    call = call_for(ask)
    if call is None or call.name == "scanpath":
        return stored
    messages = tuple(
        UserMessage(tuple(text if part == stored.ask.text else part for part in message.parts))
        if isinstance(message, UserMessage)
        else message
        for message in stored.messages
    )
    at = next(place for place, message in enumerate(messages) if isinstance(message, AssistantMessage))
    return replace(stored, ask=ask, messages=(*messages[:at], AssistantMessage("", (call,)), *messages[at + 1 :]))


def line(batch: Batch, form: str, stored: Held, *, text: bool) -> dict[str, Any]:
    """Return a conversation for the file: turns as a chat template takes them, images by sha256, tools by name."""
    messages = as_text(stored.messages, stored.tools) if text and stored.tools else list(stored.messages)
    return {
        "benchmark": batch.benchmark,
        "task": batch.task,
        "form": "text" if text and stored.tools else form,
        "turns": turns(messages),
        "tools": [] if text else [tool.card.name for tool in stored.tools],
    }


def turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as `HuggingFaceChat` passes them to a chat template, with the sha256 in place of each image."""
    rows: list[dict[str, Any]] = []
    for message in arrange(messages, ModelSettings().keep_images):
        turn: dict[str, Any] = {"role": message.role, "content": message.text}
        parts = parts_of(message)
        if any(isinstance(part, ImagePart) for part in parts):
            turn["content"] = [
                {"type": "text", "text": part}
                if isinstance(part, str)
                else {"type": "image", "image": part.ref.image.sha256}
                for part in parts
            ]
        if isinstance(message, AssistantMessage) and message.calls:
            turn["tool_calls"] = [
                {"type": "function", "function": {"name": call.name, "arguments": dict(call.args)}}
                for call in message.calls
            ]
        rows.append(turn)
    return rows


def write(batches: Sequence[Batch], folder: Path, workers: int) -> None:
    """Generate all conversations, each batch in a separate file; an existing file is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(_write, batches, [folder] * len(batches)))


def _write(batch: Batch, folder: Path) -> None:
    path = folder / f"{batch.benchmark}-{batch.task}-{batch.seed}-{batch.count}.jsonl"
    if path.is_file():
        return
    built = (
        look(cast("View", batch.task), batch.count, batch.seed, folder)
        if batch.benchmark == SCENES
        else hold(batch, folder)
    )
    rows = "".join(f"{json.dumps(row)}\n" for row in built)
    path.with_suffix(".part").write_text(rows)
    path.with_suffix(".part").rename(path)
