"""The JSON of Ollama's `/api/chat`: requests from messages, messages from replies.

body = b"".join(request_body(name, options, wire_messages(arranged, image), tools, images, stream=False))
reply = message(readable(data), call, num_ctx)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    Part,
    SystemMessage,
    TokenUsage,
    ToolMessage,
    UserMessage,
)
from hybrid.core.types import Json
from hybrid.models.base import CallKey
from hybrid.models.chat_completions.codec import PLACE, as_json, calls_of, parse_json
from hybrid.models.failures import StatusError, UnreadableReplyError
from hybrid.models.ollama.stream import LineAssembly
from hybrid.models.replies import mark_end, read_end
from hybrid.models.usage import read_usage

# Options of a run that are sent under `options`; other options are fields of the request itself.
# Sources: `Options` and `Runner` in api/types.go, and docs/modelfile.mdx.
MODEL_OPTIONS: Final = frozenset(
    {
        *("num_ctx", "num_predict", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "numa"),
        *("seed", "temperature", "top_k", "top_p", "min_p", "typical_p", "tfs_z", "stop", "draft_num_predict"),
        *("repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty", "penalize_newline"),
        *("mirostat", "mirostat_tau", "mirostat_eta", "low_vram"),
    }
)
REQUEST_FIELDS: Final = frozenset({"think", "format", "keep_alive", "truncate", "shift", "logprobs", "top_logprobs"})
CONTEXT_FULL: Final = "model_context_window_exceeded"  # Finish reason of a reply that filled the context.
MALFORMED: Final = "malformed_call"  # Field that hybrid adds to the body for a call that Ollama could not parse.
SERVER_ERROR: Final = 500

# Ollama inserts a picture at such a marker in the prompt, so a text must not contain one.
_MARKER = re.compile(r"\[img(?=-\d+\]|\])")
_READ = frozenset({"role", "content", "tool_calls", "images", MALFORMED})


def request_body(
    model: str,
    options: Mapping[str, Json],
    messages: Sequence[Mapping[str, Any]],
    tools: bytes = b"",
    images: Sequence[bytes] = (),
    *,
    stream: bool = False,
) -> list[bytes]:
    """Return a request in pieces: JSON, an image, JSON, ..., JSON. Equal requests give equal bytes.

    Args:
        model: name of the model.
        options: options of the run, for the model and the request together.
        messages: result of `wire_messages`.
        tools: schemas of the offered tools as JSON; empty for none.
        images: base64 of each image, in order.
        stream: whether the reply is streamed.
    """
    body: dict[str, Any] = {"model": model, "stream": stream, "messages": list(messages)}
    body["options"] = {name: value for name, value in options.items() if name in MODEL_OPTIONS}
    body |= {name: value for name, value in options.items() if name not in MODEL_OPTIONS}
    text = as_json(body)
    text = b"".join((text[:-1], b',"tools":', tools, b"}")) if tools else text
    pieces: list[bytes] = []
    around = text.split(PLACE.encode())
    for image, prefix in zip(images, around, strict=False):
        pieces += [prefix, image]
    return [*pieces, around[-1]]


def wire_messages(messages: Sequence[Message], *, joined: bool = False) -> list[dict[str, Any]]:
    """Convert arranged messages (`hybrid.models.images.arrange`) to Ollama's form, with `PLACE` for each image.

    A message of Ollama has its pictures separate from its text, and their position in the prompt depends on the model:
    before the text, after it, or at a marker. So no user message has both text and pictures: a turn becomes as many
    user messages as are needed to keep texts and pictures in order. Ollama does the same with the parts of its
    OpenAI-compatible interface. With `joined` a turn stays one message, for chat templates that require alternating
    turns.
    """
    wire: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, UserMessage):
            wire += [_with_images("user", message.parts)] if joined else _user_messages(message.parts)
        elif isinstance(message, SystemMessage):
            wire.append({"role": "system", "content": message.text})
        elif isinstance(message, ToolMessage):
            wire.append(_tool_message(message))
        else:
            wire.append(_assistant_message(message))
    return wire


def _user_messages(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    for is_text, run in groupby(parts, lambda part: isinstance(part, str)):
        run_parts = list(run)
        if is_text:
            yield {"role": "user", "content": _text(run_parts)}
        else:
            yield {"role": "user", "content": "", "images": [PLACE] * len(run_parts)}


def _with_images(role: str, parts: Sequence[Part]) -> dict[str, Any]:
    """Build one message with text and pictures; for most models, Ollama inserts each picture at its marker."""
    count = sum(isinstance(part, ImagePart) for part in parts)
    content = "\n".join(_unmarked(part) if isinstance(part, str) else "[img]" for part in parts)
    return {"role": role, "content": content, **({"images": [PLACE] * count} if count else {})}


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(_unmarked(part) for part in parts if isinstance(part, str))


def _unmarked(text: str) -> str:
    return _MARKER.sub("[ img", text)


def _tool_message(message: ToolMessage) -> dict[str, Any]:
    wire = _with_images("tool", message.parts)
    return {**wire, "tool_name": message.name or "unknown", "tool_call_id": message.call}


def _assistant_message(message: AssistantMessage) -> dict[str, Any]:
    entries = [(call.id, call.name, dict(call.args)) for call in message.calls]
    entries += [(call.id, call.name or "unknown", {"unreadable": call.written}) for call in message.invalid]
    calls = [
        {"id": identity, "function": {"index": place, "name": name, "arguments": args}}
        for place, (identity, name, args) in enumerate(entries)
    ]
    native = message.native if isinstance(message.native, Mapping) else {}
    wire = {"role": "assistant", "content": _unmarked(message.text), **native}
    return {**wire, "tool_calls": calls} if calls else wire


def readable(data: bytes) -> dict[str, Any]:
    """Parse the body of a complete reply.

    Raises:
        UnreadableReplyError: no JSON, no message, or a reply that broke off.
        StatusError: an error.
    """
    if data.count(b"\n{"):
        # The reply was streamed although no stream was requested.
        lines = LineAssembly()
        lines.feed(data)
        data = lines.body()
    body = parse_json(data)
    if not isinstance(body, dict):
        raise UnreadableReplyError(f"the reply is not a JSON object: {_start(data)}")
    if error := body.get("error"):
        # In a stream the status 200 was sent before the error.
        status = body.get("status") or (error.get("code") if isinstance(error, Mapping) else None)
        raise StatusError(status if isinstance(status, int) and status >= 400 else SERVER_ERROR, {"error": error})
    message = body.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
        raise UnreadableReplyError(f"the reply contains no message with text content: {_start(data)}")
    if not body.get("done"):
        raise UnreadableReplyError("the reply broke off before it was complete")
    if not (message.get("content") or message.get("tool_calls") or body.get("done_reason")):
        raise UnreadableReplyError("the reply contains neither content nor a finish reason")
    if body.get("done_reason") in ("load", "unload"):
        raise UnreadableReplyError(f"the server returned no reply, only the status {body['done_reason']}")
    return body


def _start(data: bytes) -> str:
    return " ".join(data[:200].decode("utf-8", "replace").split())


def message(body: Mapping[str, Any], call: CallKey, num_ctx: int) -> AssistantMessage:
    """Build the message of a `readable` reply; a call without an id gets a generated id.

    `num_ctx` is the length of the context in tokens: a reply that was cut because the context is full ends
    with `CONTEXT_FULL`.
    """
    fields = body["message"]
    calls, invalid = calls_of(fields.get("tool_calls"), call)
    broken = fields.get(MALFORMED)
    if isinstance(broken, dict):
        invalid.append(
            InvalidCall(f"c{call.ask % 100:02}{call.call % 1000:03}000", None, broken["raw"], broken["error"])
        )
    native = {name: value for name, value in fields.items() if name not in _READ and value}
    thinking, model = fields.get("thinking"), body.get("model")
    usage = read_usage("ollama", body)
    reason, end = read_end("ollama", _finish_reason(body, usage, num_ctx))
    reply = AssistantMessage(
        fields.get("content") or "",
        tuple(calls),
        tuple(invalid),
        usage,
        reason,
        end=end,
        model=model if isinstance(model, str) else None,
        reasoning=thinking if isinstance(thinking, str) else "",
        native=native or None,
    )
    # The call that Ollama could not parse is already among the invalid ones, with the server's message.
    return reply if broken else mark_end(reply)


def prompt_tokens(body: Mapping[str, Any]) -> int | None:
    """Return the number of tokens of the prompt, or None if they were not counted."""
    return _count(body, "prompt_eval_count")


def _count(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    # Go omits a zero, so an explicit zero means that nothing was counted.
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _finish_reason(body: Mapping[str, Any], usage: TokenUsage | None, num_ctx: int) -> str | None:
    reason = body.get("done_reason")
    if not isinstance(reason, str):
        return None
    # Subtract one token, because some versions of Ollama keep the last position free.
    is_full = usage is not None and usage.input_tokens + usage.output_tokens >= num_ctx - 1
    return CONTEXT_FULL if reason == "length" and is_full else reason


def malformed_body(error: str) -> bytes:
    """Build the body of a reply whose call Ollama could not parse, from its error message, which quotes the reply."""
    raw = re.search(r"raw='(.*)', err=", error, re.DOTALL)
    reply = {"role": "assistant", "content": "", MALFORMED: {"raw": raw[1] if raw else "", "error": error}}
    return json.dumps({"message": reply, "done": True, "done_reason": MALFORMED}).encode("ascii")
