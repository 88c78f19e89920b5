"""What a span tells: names and attributes by the semantic conventions for generative AI of OpenTelemetry.

    teller = SpanTeller(tools=frozenset({"depth"}), text=False)
    teller.begun(ToolCallBegun("depth", ("img:1",), {}))   # SpanStart("execute_tool depth", ...)

The conventions (https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai: client inference, tool
execution, agent spans; status: development) have the names `gen_ai.*` and `error.type`; what they have no name for is
`hybrid.*`. Of images there are only number, size and the first digits of their hash. Texts are told if the user wants
it, without secrets and without anything that may be an image written as text. Targets do not come here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid.errors import ToolError
from hybrid.messages import AssistantMessage, ImagePart, Message, Part, ToolMessage, images_of, parts_of, whole_text
from hybrid.models.providers import IN_PROCESS
from hybrid.secrets import redact
from hybrid.tracing import (
    AskBegun,
    Begun,
    Ended,
    ModelCallBegun,
    ModelReplied,
    QuestionBegun,
    RequestFailed,
    RunBegun,
    ToolAnswered,
    ToolCallBegun,
)
from hybrid.types import Attempt, Fault, ImageRef, Json, Outcome, Prompt, Reply
from hybrid.weights import names_directory

Value = str | bool | int | float | Sequence[str] | Sequence[int]
Attributes = Mapping[str, Value]

PROVIDERS: Mapping[str, str] = {"google_genai": "gcp.gemini"}
"""Providers by their names in the conventions, where these are others than ours."""
FROM_FOLDERS = frozenset({"hf", "replay"})
"""Providers whose models may be named by a folder: where it lies is told to nobody."""
DIGITS = 12
"""Of the hash of an image."""
UNKNOWN_TOOL = "unknown"
"""A tool that there is none of: its name is something that a model has said."""
ANSWERED = frozenset({Outcome.ANSWERED, Outcome.ABSTAINED, Outcome.UNPARSED})
"""Outcomes that are no error."""
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_DATA_URL = re.compile(r"data:[^,\s]{0,200},[^\s\"'()<>]*(?:\s+[A-Za-z0-9+/_-]{40,}+={0,2})*", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{192,}+={0,2}|(?:[A-Za-z0-9+/_-]{48,}+={0,2}+\s*+){2,}")
"""More than any word, in one line or in several: an image as text."""


@dataclass(frozen=True)
class SpanStart:
    """How a span begins; one of a `client` is a call of another program."""

    name: str
    attributes: Attributes
    client: bool = False


@dataclass(frozen=True)
class SpanEnd:
    """What is added at its end, and the kind of error that ended it."""

    attributes: Attributes = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class SpanTeller:
    """Decides what is told."""

    tools: frozenset[str]
    """The names of all tools: any other name is the invention of a model."""
    text: bool = False
    """Whether texts are told."""

    def begun(self, begun: Begun) -> SpanStart:
        """The name of a span and what is known at its beginning."""
        match begun:
            case RunBegun():
                return _run(begun)
            case QuestionBegun():
                told = {"hybrid.solver": begun.solver, "hybrid.question.id": begun.id, "hybrid.task": begun.task}
                return SpanStart(f"question {begun.solver}", _clean(told))
            case AskBegun():
                return self._ask(begun)
            case ModelCallBegun():
                return self._model_call(begun)
            case ToolCallBegun():
                return self._tool_call(begun)

    def ended(self, ended: Ended) -> SpanEnd:
        """What is told of an end."""
        match ended:
            case Attempt():
                return _outcome(ended.exchanges[-1].reply.outcome) if ended.exchanges else SpanEnd()
            case Reply():
                end = _outcome(ended.outcome)
                said = self._texts("gen_ai.output.messages", lambda: [_spoken("assistant", [_text(ended.text)])])
                return SpanEnd({**end.attributes, **said}, end.error)
            case ModelReplied():
                return self._replied(ended)
            case ToolAnswered():
                return self._found(ended)
            case Fault():
                return SpanEnd(error=ended.value)

    def _ask(self, begun: AskBegun) -> SpanStart:
        prompt = begun.prompt
        told: dict[str, Value] = {"hybrid.solver": begun.solver, "hybrid.ask": begun.number}
        told["hybrid.prompt.kind"] = prompt.kind.value
        told |= _images(prompt.images)
        told |= self._texts("gen_ai.input.messages", lambda: [_spoken("user", _of_prompt(prompt))])
        if not begun.by_model:
            return SpanStart(f"ask {begun.solver}", _clean(told))
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": begun.solver}
        return SpanStart(f"invoke_agent {begun.solver}", _clean({**agent, **told}))

    def _model_call(self, begun: ModelCallBegun) -> SpanStart:
        model = _model(begun.model, begun.provider)
        told: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS.get(begun.provider, begun.provider),
            "gen_ai.request.model": model,
        }
        told |= _images(images_of(begun.messages))
        told |= self._texts("gen_ai.input.messages", lambda: [_of_message(message) for message in begun.messages])
        return SpanStart(f"chat {model}", _clean(told), client=begun.provider not in IN_PROCESS)

    def _tool_call(self, begun: ToolCallBegun) -> SpanStart:
        name = begun.name if begun.name in self.tools else UNKNOWN_TOOL
        told: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        told |= self._texts("gen_ai.tool.call.arguments", lambda: {"images": list(begun.images), **begun.args})
        return SpanStart(f"execute_tool {name}", _clean(told))

    def _replied(self, ended: ModelReplied) -> SpanEnd:
        message, used = ended.message, ended.used
        told: dict[str, Value] = {}
        if message.usage is not None:
            told["gen_ai.usage.input_tokens"] = used.input_tokens
            told["gen_ai.usage.output_tokens"] = used.output_tokens
            told["gen_ai.usage.reasoning.output_tokens"] = used.reasoning_tokens
            if message.usage.cached_tokens is not None:
                told["gen_ai.usage.cache_read.input_tokens"] = used.cached_tokens
        if used.cost_usd is not None:
            told["hybrid.cost_usd"] = used.cost_usd
        if message.finish_reason is not None:
            # A word of the provider's, and nothing longer.
            reason = message.finish_reason if _WORD.fullmatch(message.finish_reason) else "other"
            told["gen_ai.response.finish_reasons"] = [reason]
        if message.attempts is not None:
            told["hybrid.requests"] = message.attempts
        told["hybrid.refused"] = message.refusal is not None
        told["hybrid.tool_calls"] = len(message.calls) + len(message.invalid)
        told |= self._texts("gen_ai.output.messages", lambda: [_of_message(message)])
        return SpanEnd(_clean(told))

    def _found(self, ended: ToolAnswered) -> SpanEnd:
        found = ended.finding
        told: dict[str, Value] = {
            "hybrid.tool.backend": found.backend,
            "hybrid.tool.version": found.version,
            "hybrid.tool.cached": ended.cached,
            "hybrid.tool.pictures": len(found.images),
        }
        told |= _images(ended.images)
        told |= self._texts("gen_ai.tool.call.result", lambda: found.text)
        return SpanEnd(_clean(told))

    def _texts(self, key: str, said: Any) -> dict[str, Value]:
        """One attribute with texts in it, as JSON; nothing where they are left out, and then they are not made."""
        if not self.text:
            return {}
        return {key: json.dumps(without_images(said()), ensure_ascii=False, default=str)}


def event_of(event: RequestFailed) -> Attributes:
    """What is told of something that happened inside a span; the text of the error is not."""
    told: dict[str, Value] = {"hybrid.request": event.number, "error.type": event.failure}
    if event.status is not None:
        told["http.response.status_code"] = event.status
    return told


def error_of(error: BaseException) -> str:
    """The kind of an error, without its words: those may hold what was asked or answered."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, ToolError):
        return error.fault.value
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__


def without_images(value: Any) -> Any:
    """A JSON value whose texts hold no secret, no data URL and nothing that may be an image in base64."""
    if isinstance(value, str):
        shown = _DATA_URL.sub("[data URL]", redact(whole_text(value)))
        return _BASE64.sub(lambda found: f"[{len(found[0])} characters]", shown)
    if isinstance(value, Mapping):
        return {without_images(str(key)): without_images(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_images(inner) for inner in value]
    return value


def _clean(told: Mapping[str, Value]) -> Attributes:
    """Attributes that every exporter can write and that hold no secret."""
    return {key: redact(whole_text(value)) if isinstance(value, str) else value for key, value in told.items()}


def _run(begun: RunBegun) -> SpanStart:
    told: dict[str, Value] = {
        "hybrid.benchmark": begun.benchmark,
        "hybrid.split": begun.split,
        "hybrid.run": begun.folder,
        "hybrid.solvers": begun.solvers,
        "hybrid.tool_output": begun.tool_output,
        "hybrid.questions": begun.questions,
    }
    return SpanStart(f"run {begun.benchmark}", _clean(told))


def _outcome(outcome: Outcome) -> SpanEnd:
    return SpanEnd({"hybrid.outcome": outcome.value}, None if outcome in ANSWERED else outcome.value)


def _model(name: str, provider: str) -> str:
    """The name without its provider, and without where a folder lies."""
    rest = name.partition(":")[2] or name
    in_folder = provider in FROM_FOLDERS and names_directory(rest)
    return rest.rstrip("/").rpartition("/")[2] if in_folder else rest


def _images(images: Sequence[ImageRef]) -> dict[str, Value]:
    """How many, which by the first digits of their hashes, and their sizes in pixels, in order."""
    told: dict[str, Value] = {"hybrid.images.count": len(images)}
    if images:
        told["hybrid.images.sha256"] = [ref.image.sha256[:DIGITS] for ref in images]
        told["hybrid.images.width"] = [ref.image.width for ref in images]
        told["hybrid.images.height"] = [ref.image.height for ref in images]
    return told


def _spoken(role: str, parts: Iterable[Json]) -> dict[str, Json]:
    return {"role": role, "parts": list(parts)}


def _text(text: str) -> dict[str, Json]:
    return {"type": "text", "content": text}


def _image(ref: ImageRef) -> dict[str, Json]:
    size = {"width": ref.image.width, "height": ref.image.height}
    return {"type": "image", "name": ref.name, "sha256": ref.image.sha256[:DIGITS], **size}


def _part(part: Part) -> dict[str, Json]:
    return _image(part.ref) if isinstance(part, ImagePart) else _text(part)


def _of_prompt(prompt: Prompt) -> Iterable[Json]:
    return (_image(part) if isinstance(part, ImageRef) else _text(part) for part in prompt.parts)


def _of_message(message: Message) -> dict[str, Json]:
    """A message in the form of the conventions' schema, its images as parts without content."""
    if isinstance(message, ToolMessage):
        answer: dict[str, Json] = {"type": "tool_call_response", "id": message.call, "response": message.text}
        return _spoken("tool", [answer, *(_part(part) for part in message.parts if isinstance(part, ImagePart))])
    parts = [_part(part) for part in parts_of(message) if part]
    if isinstance(message, AssistantMessage):
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args} for call in message.calls
        ]
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.written}
            for call in message.invalid
        ]
    return _spoken(message.role, parts)
