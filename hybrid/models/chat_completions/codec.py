"""The JSON of OpenAI's chat completions: requests from messages, messages from replies.

    body = b"".join(request_body(name, options, wire_messages(arranged, image, name), tools, images))
    whole = readable(data)                # raises `UnreadableReplyError` where there is no message in it
    reply = message(whole, call)          # whatever is readable becomes a message

A reply that is malformed but can be read is used: tool arguments that are no JSON object are `invalid_tool_calls`,
which a controller answers like any other wrong call.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from hybrid.messages import (
    MAX_DEPTH,
    AssistantMessage,
    InvalidCall,
    Message,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
    whole_value,
)
from hybrid.models.base import CallKey
from hybrid.models.chat_completions.terms import OLDER, PLAIN, THOUGHTS, Terms
from hybrid.models.failures import UnreadableReplyError, error_in_reply, summary
from hybrid.models.literals import read_object
from hybrid.models.replies import refusal_of
from hybrid.types import ImageRef, Json

# From the image in a message to the part of a request that holds its bytes.
ImageBlock = Callable[[ImageRef], dict[str, Any]]

_NOT_SENT = frozenset({"use_responses_api", "extra_body", "default_query"})
# Stands for the base64 of an image while a request is written, so that JSON need not look for escapes in there. It is
# random, so that no text holds it.
PLACE = f"<{secrets.token_hex(16)}>"
_REASONING_MODEL = re.compile(r"o\d")
_READ = frozenset({"role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call", "parsed"})
_READ_OF_CALLS = frozenset({"id", "type", "index", "function"})
# Fields of a reply that do not go back as they came: we write them, or they are a server's word to its client.
_READ_OF_FUNCTIONS = frozenset({"name", "arguments", "parsed_arguments"})
_IN_A_THOUGHT = ("text", "thinking", "reasoning", "summary", "content")


def request_body(
    model: str,
    options: Mapping[str, Json],
    messages: Sequence[dict[str, Any]],
    tools: bytes = b"",
    images: Sequence[bytes] = (),
    cache_key: str | None = None,
    terms: Terms = PLAIN,
) -> list[bytes]:
    """A request as it is sent, in pieces: JSON, an image, JSON, ..., JSON. Equal requests are equal bytes.

    Args:
        model: its name.
        options: those of a run; `extra_body` of them has the last word.
        messages: in the API's form, with `PLACE` where the base64 of an image goes.
        tools: the schemas of those that are offered, as JSON; empty for none.
        images: the base64 of each, in order.
        cache_key: the result of `prompt_cache.lane`.
        terms: how its server is asked.
    """
    renamed = {OLDER: terms.max_tokens}
    body: dict[str, Any] = {"model": model, "stream": terms.stream, "messages": list(messages)}
    body |= {renamed.get(name, name): value for name, value in options.items() if name not in _NOT_SENT}
    body |= {} if cache_key is None else {"prompt_cache_key": cache_key}
    body |= {"stream_options": {"include_usage": True}} if terms.stream else {}
    if terms.without:
        body = _without(body, terms.without)
        body["messages"] = said = list[dict[str, Any]]()
        for turn in messages:
            # Only replies, and the calls in them, hold fields of a server's own.
            calls = [_without(call, terms.without) for call in turn.get("tool_calls", ())]
            less = _without(turn, terms.without) | ({"tool_calls": calls} if calls else {})
            said.append(less if turn["role"] == "assistant" else turn)
    extra = options.get("extra_body")
    if isinstance(extra, dict) and extra:
        text = as_json(body | ({"tools": json.loads(tools)} if tools else {}) | extra)
    else:
        text = as_json(body)
        text = b"".join((text[:-1], b',"tools":', tools, b"}")) if tools else text
    around = text.split(PLACE.encode())
    # Without places, messages of the user's own have taken the place of these.
    places = images if len(around) > 1 else ()
    pieces = [around[0]]
    for one, after in zip(places, around[1:], strict=True):
        pieces += [one, after]
    return pieces


def _without(said: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in names}


def fields_beside(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """The fields of replies in a request, and of their calls, that are the server's own."""
    said = [one for one in messages if one.get("role") == "assistant"]
    calls = [call for one in said for call in one.get("tool_calls", ())]
    return {name for one in said for name in one.keys() - _READ} | {
        name for one in calls for name in one.keys() - _READ_OF_CALLS
    }


def as_json(value: Any) -> bytes:
    """JSON without spaces. Half a character, which no server can read, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def wire_messages(messages: Sequence[Message], image: ImageBlock, model: str) -> list[dict[str, Any]]:
    """Arranged messages (`hybrid.models.images.arrange`) in the API's form."""
    return [_wire_message(message, image, model) for message in messages]


def _wire_message(message: Message, image: ImageBlock, model: str) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        parts = [{"type": "text", "text": one} if isinstance(one, str) else image(one.ref) for one in message.parts]
        return {"content": parts, "role": "user"}
    if isinstance(message, ToolMessage):
        return {"content": message.text, "role": "tool", "tool_call_id": message.call}
    if isinstance(message, SystemMessage):
        return {"content": message.text, "role": "developer" if _REASONING_MODEL.match(model) else "system"}
    asked = [(call.id, call.name, call.args) for call in message.calls]
    # llama.cpp answers 500 to every conversation with arguments that are no JSON, and templates ask for an object.
    asked += [(call.id, call.name or "unknown", {"unreadable": call.written}) for call in message.invalid]
    calls = [
        {
            "type": "function",
            "id": identity,
            "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=False)},
        }
        for identity, name, args in asked
    ]
    wire: dict[str, Any] = {"content": message.text, "role": "assistant"}
    wire = {**wire, "content": message.text or None, "tool_calls": calls} if calls else wire
    return wire if message.native is None else _as_it_came(wire, message.native)


def _as_it_came(wire: dict[str, Any], native: Any) -> dict[str, Any]:
    """A reply with all that its server said in it beside the text and the calls, which are those of `wire`."""
    whole = {**wire, **native["message"]}
    if parts := native["content"]:
        text = wire["content"] or ""
        others = [part for part in parts if not _is_text(part)]
        ours = [{"type": "text", "text": text}] if text else []
        whole["content"] = parts if _text(parts) == text else [*others, *ours]
    beside = list(native["calls"])
    for call in wire.get("tool_calls", ()):
        if (its := next((one for one in beside if one["id"] == call["id"]), None)) is not None:
            beside.remove(its)
            call.update({**its["call"], "function": {**call["function"], **its["function"]}})
    return whole


def readable(data: bytes) -> dict[str, Any]:
    """The body of a reply, whose first choice holds a message.

    Raises:
        UnreadableReplyError: no JSON, an error instead of a reply, no message, or a message that holds nothing.
        StatusError: an error that names a status.
    """
    whole = _parsed(data)
    if not isinstance(whole, dict):
        raise UnreadableReplyError(f"the reply is no JSON object: {_start(data)}")
    if whole.get("error"):
        raise error_in_reply(whole["error"])
    choices = whole.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        raise UnreadableReplyError(f"the reply holds no message: {_start(data)}")
    content, reason = message.get("content"), first.get("finish_reason")
    if reason == "error":
        raise UnreadableReplyError(f"the reply ended in an error: {_start(data)}")
    if not isinstance(content, str | list | None):
        raise UnreadableReplyError(f"the content of the reply is no text: {_start(data)}")
    if not (content or reason or _said_calls(message) or message.get("refusal")):
        raise UnreadableReplyError("the reply holds neither content nor a reason why it ended")
    return whole


def _parsed(data: bytes) -> Any:
    try:
        try:
            value = json.loads(data)
        except UnicodeDecodeError:
            # One broken character is no reason to throw a paid reply away.
            value = json.loads(data.decode("utf-8", "replace"))
        # Escapes can write half a character, which no file can hold.
        return whole_value(value) if b"\\ud" in data or b"\\uD" in data else value
    except (ValueError, RecursionError) as error:
        raise UnreadableReplyError(f"the reply is no JSON ({summary(error, 100)}): {_start(data)}") from None


def _start(data: bytes) -> str:
    return " ".join(data[:200].decode("utf-8", "replace").split())


def message(whole: Mapping[str, Any], call: CallKey) -> AssistantMessage:
    """The message of a `readable` reply, with usage and why it ended; a call without an id gets one.

    The words of a refusal that came with an empty text are the text.
    """
    said, reason = whole["choices"][0]["message"], whole["choices"][0].get("finish_reason")
    reason = reason if isinstance(reason, str) else None
    calls, invalid = calls_of(_said_calls(said), call)
    text, refusal = _text(said.get("content")), said.get("refusal")
    refusal = refusal if isinstance(refusal, str) and refusal else None
    counts: Any = whole.get("usage")
    read, written = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
    usage = None
    if read is not None or written is not None:
        reasoning = _count(counts.get("completion_tokens_details"), "reasoning_tokens")
        cached = _count(counts.get("prompt_tokens_details"), "cached_tokens")
        usage = TokenUsage(read or 0, written or 0, reasoning or 0, cached)
    return AssistantMessage(
        text or refusal or "",
        tuple(calls),
        tuple(invalid),
        usage,
        reason,
        refusal or refusal_of(reason),
        reasoning=thoughts_in(said),
        native=_native(said, call),
    )


def _is_text(part: Any) -> bool:
    """Whether a part of a message is a piece of its answer."""
    return isinstance(part, str) or (isinstance(part, dict) and "text" in part and not _is_thought(part))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (part.get("text") if isinstance(part, dict) else part for part in content or () if _is_text(part))
    return "\n".join(text for text in texts if isinstance(text, str))


def thoughts_in(said: Mapping[str, Any]) -> str:
    """The thoughts in a message, in words, under the first of the names that holds some."""
    content = said.get("content")
    parts = [part for part in content if _is_thought(part)] if isinstance(content, list) else None
    return next((words for value in (*map(said.get, THOUGHTS), parts) if (words := _words(value))), "")


def _is_thought(part: Any) -> bool:
    return "think" in _kind(part) or "reason" in _kind(part)


def _kind(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, dict) else ""


def _words(value: Any, depth: int = 4) -> str:
    """The text in a thought, whatever its form: text, parts, or objects that hold one of these."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and depth:
        return next((words for name in _IN_A_THOUGHT if (words := _words(value.get(name), depth - 1))), "")
    parts = value if isinstance(value, list) and depth else ()
    return "\n".join(filter(None, (_words(one, depth - 1) for one in parts)))


def _native(said: Mapping[str, Any], call: CallKey) -> Json:
    """What a message says beside its text and the names and arguments of its calls; None where that is nothing."""
    content = said.get("content")
    message = _beside(said, _READ)
    parts = content if isinstance(content, list) and _can_be_written(content) else []
    parts = parts if any(isinstance(part, dict) and not _is_text(part) for part in parts) else []
    calls: list[Json] = []
    for identity, one in _identified(_said_calls(said), call):
        if isinstance(one, dict) and isinstance(function := one.get("function"), dict):
            its = {"call": _beside(one, _READ_OF_CALLS), "function": _beside(function, _READ_OF_FUNCTIONS)}
            calls += [{"id": identity, **its}] if any(its.values()) else []
    return {"message": message, "content": parts, "calls": calls} if message or parts or calls else None


def _beside(said: Mapping[str, Any], read: frozenset[str]) -> dict[str, Json]:
    # Many servers name every field that they know, with nothing in it.
    held = {name: value for name, value in said.items() if name not in read and value is not None and value != []}
    return {name: value for name, value in held.items() if _can_be_written(value)}


def _can_be_written(value: Any) -> bool:
    """Whether a value that was read from JSON can be sent as JSON: it is not nested too deep, and knows no NaN."""
    open_values = [(value, 1)]
    while open_values:
        one, depth = open_values.pop()
        if depth > MAX_DEPTH or (isinstance(one, float) and not math.isfinite(one)):
            return False
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        open_values += [(item, depth + 1) for item in inner]
    return True


def _said_calls(said: Mapping[str, Any]) -> Any:
    """The calls of a message; OpenAI's first interface has one, and Anthropic's are parts of the content."""
    if calls := said.get("tool_calls"):
        return calls
    if isinstance(call := said.get("function_call"), dict):
        return [{"function": call}]
    content = said.get("content")
    return [part for part in content if _kind(part) == "tool_use"] if isinstance(content, list) else []


def _identified(said: Any, call: CallKey) -> Iterator[tuple[str, Any]]:
    """The calls of a message as they are written, each with its id, or with one of ours where it has none of its own.

    Ours is of nine letters and digits, as the servers of Mistral want it.
    """
    seen: set[str] = set()
    for place, one in enumerate(said if isinstance(said, list) else [said] if said else ()):
        identity = one.get("id") if isinstance(one, dict) else None
        if not isinstance(identity, str) or not identity or identity in seen:
            identity = f"c{call.ask % 100:02}{call.call % 1000:03}{place % 1000:03}"
        seen.add(identity)
        yield identity, one


def calls_of(said: Any, call: CallKey) -> tuple[list[ToolCall], list[InvalidCall]]:
    """Calls of a message in any form of servers': those that can be made, and those whose arguments cannot be read."""
    calls: list[ToolCall] = []
    invalid: list[InvalidCall] = []
    for identity, one in _identified(said, call):
        function = one.get("function", one) if isinstance(one, dict) else None
        if not isinstance(function, dict) or (function is one and "name" not in one):
            invalid.append(InvalidCall(identity, None, as_written(one), "no function is named"))
            continue
        name = function.get("name")
        written = next((function[key] for key in ("arguments", "args", "input") if key in function), None)
        name = name if isinstance(name, str) else ""
        args, error, repairs = read_object(written)
        if args is None:
            invalid.append(InvalidCall(identity, name, as_written(written), error))
        else:
            calls.append(ToolCall(identity, name, args, repairs=repairs))
    return calls, invalid


def as_written(arguments: Any) -> str:
    """Arguments as text; a server may give the value itself."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _count(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
