"""Runs with a scripted model through the real `Caller`: their conversations, as they were sent.

`write(folder, "native")` asks six generated questions. The scripted replies are in `SAID`; the MLLM alone is
wrong about the first and right about the others.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hybrid.config import Limits, ModelSettings, RunConfig, ServiceOptions
from hybrid.core.images import ImageStore, home
from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    SentImage,
    ToolCall,
    ToolMessage,
    parts_of,
)
from hybrid.core.types import Json
from hybrid.models.base import CallKey
from hybrid.models.caller import Caller, ChatRequest, Keep
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.models.toolspec import IMAGE, IMAGES
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run
from hybrid.tool import Tool
from tests.tables import stored

TURNS = 4


@dataclass(frozen=True)
class Said:
    """One scripted reply: its text and its tool calls."""

    words: str = ""
    calls: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    # Arguments of a call that are not JSON.
    broken: str = ""


SAID: Mapping[str, tuple[Said, ...]] = {
    name: tuple(Said(words, tuple((tool, args) for tool, args in calls), broken) for words, calls, broken in current)
    for name, current in stored(__file__, "SAID").items()
}
BROKEN = "generated_val_Relative_Depth_3"


# Thinking that the server returns separately with each reply.
THOUGHT = "A closer look is needed."


@dataclass
class ScriptClient:
    """A `ChatClient` that takes its replies from `SAID` and records every request."""

    right: Mapping[str, str]
    rules: ImageRules = field(default_factory=ImageRules)
    as_text: bool = False
    name: str = "script:model"
    # By solver and question, the messages of each request.
    requests: dict[tuple[str, str], list[tuple[Message, ...]]] = field(default_factory=dict)

    @property
    def images(self) -> ImageEncoder:
        return ImageEncoder(ImageStore(home() / "images"), self.rules)

    def metadata(self) -> Mapping[str, Json]:
        return {"model": self.name, "max_pixels": self.rules.max_pixels, "keep_images": ModelSettings().keep_images}

    def connection(self) -> Mapping[str, Json]:
        return {}

    def request(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> ChatRequest[Any]:
        refs = [part.ref for message in messages for part in parts_of(message) if isinstance(part, ImagePart)]
        sent = tuple(SentImage(ref.name, ref.image, self.images.encoded(ref.image)[0]) for ref in refs)
        return ChatRequest(call, tuple(messages), hashlib.sha256(repr(messages).encode()).hexdigest(), sent)

    async def send(self, request: ChatRequest[Any], keep: Keep) -> AssistantMessage:
        key = request.call
        question = self.requests.setdefault((key.solver, key.question), [])
        question.append(request.body)
        if key.question not in self.right:
            return AssistantMessage("A picture of something.")  # a caption
        answer = self.right[key.question]
        other = "(B)" if "A" in answer else "(A)"
        if key.solver != "controller":
            return AssistantMessage(f"Answer: {other if key.question == 'generated_val_Jigsaw_1' else answer}")
        text = SAID[key.question.partition("#")[0]][len(question) - 1]
        words = text.words.format(right=f"Answer: {answer}", wrong=f"Answer: {other}")
        return self._as_text(words, text) if self.as_text else self._native(words, text, key)

    def _native(self, words: str, message: Said, key: CallKey) -> AssistantMessage:
        calls = tuple(
            ToolCall(f"id-{key.call}-{place}", name, args) for place, (name, args) in enumerate(message.calls)
        )
        broken = (InvalidCall("id-b", "crop", message.broken, "Expecting value"),) if message.broken else ()
        return AssistantMessage(words, calls, broken, reasoning=THOUGHT)

    def _as_text(self, words: str, message: Said) -> AssistantMessage:
        blocks = [words] if words.strip() else []
        for name, args in message.calls:
            images = args.get(IMAGES, args.get(IMAGE))
            by_arg = {key: value for key, value in args.items() if key not in (IMAGE, IMAGES)}
            value = {"tool": name, "images": [images] if isinstance(images, str) else images, "args": by_arg}
            blocks.append(f"```json\n{json.dumps(value)}\n```")
        if message.broken:
            blocks.append(f'```json\n{{"tool": {message.broken}\n```')
        return AssistantMessage("\n".join(blocks))

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        raise AssertionError("nothing was kept")

    async def close(self) -> None:
        """Do nothing, because no resource is open."""


@dataclass(frozen=True)
class ScriptedRun:
    """A finished run, and the client that recorded its requests."""

    path: Path
    client: ScriptClient
    plan: ResolvedRun

    def sent(self, question: str) -> tuple[Message, ...]:
        """Return the messages of the controller's last request about a question."""
        return self.client.requests["controller", question][-1]


def write(
    folder: Path,
    calling: str = "native",
    solvers: tuple[str, ...] = ("controller", "mllm"),
    *,
    max_pixels: int | None = None,
    keep_images: int = 8,
    media_types: frozenset[str] = ImageRules().media_types,
    **changes: Any,
) -> ScriptedRun:
    """Write a run with the scripted replies to `folder / "run"`; `changes` are fields of its configuration."""
    settings = ModelSettings(
        base_url="http://127.0.0.1:9/v1",
        tool_calling=calling,  # type: ignore[arg-type]
        max_pixels=max_pixels,
        keep_images=keep_images,
    )
    config = RunConfig(
        "blink",
        solvers,
        model="openai:mock",
        model_settings=settings,
        data="sample",
        tasks=("Jigsaw", "Relative_Depth"),
        limit=6,
        tools=("depth", "jigsaw", "crop"),
        service=ServiceOptions("classical"),
        limits=Limits(turns=TURNS),
        concurrency=1,
        out=folder / "run",
    )
    plan = prepare(replace(config, **changes))
    right = {question.id: str(question.target) for question in plan.sound}
    client = ScriptClient(right, ImageRules(media_types, max_pixels), as_text=calling == "text")
    plan = replace(plan, resources=replace(plan.resources, model=Caller(client, settings)))
    assert asyncio.run(ask_run(plan, lambda *_: None)) == ()
    return ScriptedRun(folder / "run", client, plan)


def check_trl(row: Mapping[str, Any]) -> None:
    """Check a row against TRL's documented format (docs/source/dataset_formats.md, "Tool Calling") and its function
    `prepare_multimodal_messages`."""
    places = 0
    for message in row["messages"]:
        assert message["role"] in {"system", "user", "assistant", "tool"}
        assert message["content"]
        for part in message["content"]:
            assert part["type"] in {"text", "image"}
            assert ("text" in part) == (part["type"] == "text")
        images = sum(part["type"] == "image" for part in message["content"])
        assert not images or message["role"] == "user"
        places += images
        for call in message.get("tool_calls") or ():
            assert call["type"] == "function"
            assert isinstance(call["function"]["name"], str)
            assert isinstance(call["function"]["arguments"], dict)
    assert places == len(row["images"])
    for tool in row["tools"]:
        assert tool["type"] == "function"
        assert {"name", "description", "parameters"} == set(tool["function"])
    assert row["messages"][-1]["role"] == "assistant"


def sent(messages: Sequence[Message]) -> list[Any]:
    """Return each message as its role, parts and calls, and the position of the call that it answers.

    Images are given by their hash, calls by name and arguments.
    """
    results: list[Any] = []
    place: dict[str, int] = {}
    for message in messages:
        parts = [part if isinstance(part, str) else part.ref.image.sha256 for part in parts_of(message)]
        calls = message.calls if isinstance(message, AssistantMessage) else ()
        place |= {call.id: len(place) + number for number, call in enumerate(calls)}
        of = place[message.call] if isinstance(message, ToolMessage) else None
        results.append((message.role, [part for part in parts if part], [(c.name, dict(c.args)) for c in calls], of))
    return results


def row_as_sent(row: Mapping[str, Any], folder: Path) -> list[Any]:
    """Return an exported row in the form of `sent`; images are given by the hash of their files."""
    results: list[Any] = []
    place: dict[str, int] = {}
    images = iter(row["images"])
    for message in row["messages"]:
        parts = [
            part["text"] if part["type"] == "text" else hashlib.sha256((folder / next(images)).read_bytes()).hexdigest()
            for part in message["content"]
        ]
        calls = [call["function"] for call in message.get("tool_calls", ())]
        place |= {call["id"]: len(place) + number for number, call in enumerate(message.get("tool_calls", ()))}
        of = place[message["tool_call_id"]] if message["role"] == "tool" else None
        results.append(
            (message["role"], [part for part in parts if part], [(c["name"], c["arguments"]) for c in calls], of)
        )
    assert next(images, None) is None
    return results
