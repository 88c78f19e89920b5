"""The JSON of OpenAI's chat completions: requests from messages, messages from replies.

    body = b"".join(request_body(name, options, wire_messages(arranged, image, name), tools, images))
    body = readable(data)                 # raises `UnreadableReplyError` if it contains no message
    reply = message(body, call)           # the readable part becomes a message

A malformed but readable reply is used: tool arguments that are not a JSON object become invalid calls, which a
controller answers like any other wrong call.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hybrid.core.messages import (
    MAX_DEPTH,
    MAX_NAME,
    AssistantMessage,
    End,
    ImagePart,
    InvalidCall,
    Message,
    Part,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
    replace_surrogates_in,
)
from hybrid.core.types import ImageRef, Json
from hybrid.models.base import CallKey
from hybrid.models.chat_completions.stream import FEEDBACK, FILTERS, native_reason
from hybrid.models.chat_completions.terms import BRIDGE, OLDER, PLAIN, THOUGHTS, ApiVariant
from hybrid.models.failures import UnreadableReplyError, error_in_reply, reported_error, summary
from hybrid.models.literals import read_object
from hybrid.models.replies import NO_MESSAGE, TABLE, mark_end, read_end
from hybrid.models.usage import read_usage

# Maps an image in a message to the part of a request that contains its bytes.
ImageBlock = Callable[[ImageRef], dict[str, Any]]

_NOT_SENT = frozenset({"use_responses_api", "extra_body", "default_query"})
# Placeholder for the base64 of an image while a request is written, so that the JSON encoder need not search the base64
# for characters to escape. It is random, so that no text contains it.
PLACE = f"<{secrets.token_hex(16)}>"
_REASONING_MODEL = re.compile(r"o\d")
_READ = frozenset({"role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call", "parsed"})
_READ_OF_CALLS = frozenset({"id", "type", "index", "function"})
# The fields in this set, in `_READ` and in `_READ_OF_CALLS` are not sent back unchanged: they are rewritten, or only
# inform the client.
_READ_OF_FUNCTIONS = frozenset({"name", "arguments", "parsed_arguments"})
# Keys of token counts, and keys of the objects next to the choices that may contain them (Groq, Cohere and gateways).
_USAGE = ("usage", "usageMetadata", "usage_metadata")
_AROUND_USAGE = ("x_groq", "meta", "metadata")
_IN_A_THOUGHT = ("text", "thinking", "reasoning", "summary", "content")


def request_body(
    model: str,
    options: Mapping[str, Json],
    messages: Sequence[dict[str, Any]],
    tools: bytes = b"",
    images: Sequence[bytes] = (),
    cache_key: str | None = None,
    terms: ApiVariant = PLAIN,
) -> list[bytes]:
    """Return a request in pieces: JSON, an image, JSON, ..., JSON. Equal requests give equal bytes.

    Args:
        model: name of the model.
        options: options of the run; keys of `extra_body` take precedence.
        messages: in the API's form, with `PLACE` for the base64 of each image.
        tools: schemas of the offered tools as JSON; empty for none.
        images: base64 of each image, in order.
        cache_key: result of `prompt_cache.lane`.
        terms: the server's API variant.
    """
    renamed = {OLDER: terms.max_tokens}
    body: dict[str, Any] = {"model": model, "stream": terms.stream, "messages": list(messages)}
    body |= {renamed.get(name, name): value for name, value in options.items() if name not in _NOT_SENT}
    body |= {} if cache_key is None else {"prompt_cache_key": cache_key}
    body |= {"stream_options": {"include_usage": True}} if terms.stream else {}
    if terms.without:
        body = _drop_fields(body, terms.without)
        body["messages"] = turns = list[dict[str, Any]]()
        for turn in messages:
            # Only replies, and their calls, contain server-specific fields.
            calls = [_drop_fields(call, terms.without) for call in turn.get("tool_calls", ())]
            less = _drop_fields(turn, terms.without) | ({"tool_calls": calls} if calls else {})
            turns.append(less if turn["role"] == "assistant" else turn)
    body["messages"] = _insert_replies(body["messages"]) if terms.bridges else body["messages"]
    if terms.declares_tools and not tools and (declared := _called_tools(messages)):
        tools = as_json(declared)
        body["tool_choice"] = "none"
    extra = options.get("extra_body")
    if isinstance(extra, dict) and extra:
        text = as_json(body | ({"tools": json.loads(tools)} if tools else {}) | extra)
    else:
        text = as_json(body)
        text = b"".join((text[:-1], b',"tools":', tools, b"}")) if tools else text
    around = text.split(PLACE.encode())
    # If `extra_body` contains messages, they have replaced those with the placeholders, so no image is sent.
    places = images if len(around) > 1 else ()
    pieces = [around[0]]
    for image, after in zip(places, around[1:], strict=True):
        pieces += [image, after]
    return pieces


def _insert_replies(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Insert a reply wherever a user message directly follows a tool message."""
    out: list[dict[str, Any]] = []
    for message in messages:
        if out and message["role"] == "user" and out[-1]["role"] == "tool":
            out.append({"content": BRIDGE, "role": "assistant"})
        out.append(message)
    return out


def _called_tools(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Declare each tool that a conversation called, for servers that require it; no tool may be called again."""
    names = dict.fromkeys(call["function"]["name"] for message in messages for call in message.get("tool_calls", ()))
    nothing: dict[str, Any] = {"description": "Withdrawn.", "parameters": {"type": "object", "properties": {}}}
    return [{"type": "function", "function": {"name": name, **nothing}} for name in names]


def _drop_fields(fields: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def server_specific_fields(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the server-specific fields of the replies in a request, and of their calls."""
    replies = [message for message in messages if message.get("role") == "assistant"]
    calls = [call for reply in replies for call in reply.get("tool_calls", ())]
    return {name for reply in replies for name in reply.keys() - _READ} | {
        name for call in calls for name in call.keys() - _READ_OF_CALLS
    }


def as_json(value: Any) -> bytes:
    """Encode as JSON without spaces. A lone surrogate, which no server can read, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def wire_messages(messages: Sequence[Message], image: ImageBlock, model: str) -> list[dict[str, Any]]:
    """Convert arranged messages (`hybrid.models.images.arrange`) to the API's form."""
    return [_wire_message(message, image, model) for message in messages]


def _wire_message(message: Message, image: ImageBlock, model: str) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"content": _content_parts(message.parts, image), "role": "user"}
    if isinstance(message, ToolMessage):
        # Send plain text if possible: many servers accept nothing else from a tool.
        has_image = any(isinstance(part, ImagePart) for part in message.parts)
        content = _content_parts(message.parts, image) if has_image else message.text
        return {"content": content, "role": "tool", "tool_call_id": message.call}
    if isinstance(message, SystemMessage):
        return {"content": message.text, "role": "developer" if _REASONING_MODEL.match(model) else "system"}
    entries = [(call.id, call.name, call.args) for call in message.calls]
    # llama.cpp answers 500 to every conversation with arguments that are not JSON, and chat templates require an
    # object.
    entries += [(call.id, call.name or "unknown", {"unreadable": call.written}) for call in message.invalid]
    calls = [
        {
            "type": "function",
            "id": identity,
            "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=False)},
        }
        for identity, name, args in entries
    ]
    wire: dict[str, Any] = {"content": message.text, "role": "assistant"}
    wire = {**wire, "content": message.text or None, "tool_calls": calls} if calls else wire
    return wire if message.native is None else _as_it_came(wire, message.native)


def _content_parts(parts: Sequence[Part], image: ImageBlock) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} if isinstance(part, str) else image(part.ref) for part in parts]


def _as_it_came(wire: dict[str, Any], native: Any) -> dict[str, Any]:
    """Rebuild a reply of the model with the server-specific fields in `native`; text and calls come from `wire`."""
    reply = {**wire, **native["message"]}
    if parts := native["content"]:
        text = wire["content"] or ""
        others = [part for part in parts if not _is_text(part)]
        text_parts = [{"type": "text", "text": text}] if text else []
        reply["content"] = parts if _text(parts) == text else [*others, *text_parts]
    native_calls = list(native["calls"])
    for call in wire.get("tool_calls", ()):
        if (its := next((candidate for candidate in native_calls if candidate["id"] == call["id"]), None)) is not None:
            native_calls.remove(its)
            call.update({**its["call"], "function": {**call["function"], **its["function"]}})
    return reply


def readable(data: bytes) -> dict[str, Any]:
    """Parse the body of a reply whose first choice contains a message.

    Raises:
        UnreadableReplyError: no JSON, an error instead of a reply, no message, or an empty message.
        StatusError: an error that names a status.
    """
    body = parse_json(data)
    if not isinstance(body, dict):
        raise UnreadableReplyError(f"the reply is not a JSON object: {_start(data)}")
    if error := reported_error(body):
        raise error_in_reply(error)
    first = _choice(body)
    if first is None:
        raise UnreadableReplyError(f"the reply contains no message: {_start(data)}")
    if first.get("error"):
        raise error_in_reply(first["error"])
    message = first["message"]
    content, reason = message.get("content"), first.get("finish_reason")
    if isinstance(content, dict):
        # The content is a single part, without a list around it.
        content = message["content"] = [content]
    if not isinstance(content, str | list | None):
        raise UnreadableReplyError(f"the content of the reply is not text: {_start(data)}")
    if not (content or reason or _raw_calls(message) or _refusal(message)):
        raise UnreadableReplyError("the reply contains neither content nor a finish reason")
    return body


def _choice(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first choice, which contains a message; None if there is no such choice.

    A provider that refuses may omit the message, or every choice; its feedback then becomes the finish reason.
    """
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if isinstance(first, dict) and isinstance(message, dict) and not (FEEDBACK & body.keys() or FILTERS in first):
        return first
    feedback = _feedback(body, first)
    if isinstance(first, dict) and isinstance(message, dict):
        is_empty = not (message.get("content") or _raw_calls(message) or message.get("refusal"))
        return _with_reason(body, first, feedback) if feedback and is_empty else first
    if isinstance(first, dict) and message is None and not (first.get("text") or first.get("delta")):
        reason, end = read_end("chat_completions", feedback or None, *_reasons(first))
        if reason is None and not first.get("error"):
            return None
        simple = end in (End.ENDED, End.TOOL_CALLS, End.UNKNOWN)
        return _with_reason(body, first, f"content_filter: {NO_MESSAGE}, {reason}" if simple else reason)
    return _with_reason(body, {}, feedback) if first is None and feedback else None


def _with_reason(body: dict[str, Any], choice: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    """Insert into the reply a first choice with an empty message and a reason in the provider's words."""
    message = {"role": "assistant", "content": None}
    first = {"message": message, **{key: value for key, value in choice.items() if value is not None}}
    first |= {"finish_reason": reason}
    body["choices"] = [first]
    return first


def _reasons(choice: Mapping[str, Any], body: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Any]:
    """Yield the finish reasons of a choice, from the fields of OpenAI, gateways, Anthropic and SGLang.

    `stop_reason` counts only with one of Anthropic's values: vLLM uses it for the text at which it stopped.
    """
    yield choice.get("finish_reason")
    yield native_reason(choice)
    for holder in (choice, body):
        if isinstance(reason := holder.get("stop_reason"), str) and reason in TABLE["anthropic"]:
            yield reason
    if isinstance(about := choice.get("meta_info"), dict):
        # SGLang's own field for its finish reason.
        yield about.get("finish_reason")


def _feedback(body: Mapping[str, Any], choice: Any) -> str:
    """Return a provider's feedback on a prompt or reply that it blocked (Gemini, Azure); empty if there is none."""
    for name in ("prompt_feedback", "promptFeedback"):
        feedback = body.get(name)
        reason = (feedback.get("blockReason") or feedback.get("block_reason")) if isinstance(feedback, dict) else None
        if isinstance(reason, str) and reason:
            return f"content_filter: {reason}"
    results = [body.get("prompt_filter_results"), choice.get(FILTERS) if isinstance(choice, dict) else None]
    filtered = re.search(r'"(\w+)":\{[^{}]*"filtered":true', as_json(results).decode()) if any(results) else None
    return f"content_filter: {filtered[1]}" if filtered else ""


def parse_json(data: bytes) -> Any:
    """Parse the JSON of a reply. Raises `UnreadableReplyError`."""
    try:
        try:
            value = json.loads(data)
        except UnicodeDecodeError:
            # A paid reply is not discarded because of one broken character.
            value = json.loads(data.decode("utf-8", "replace"))
        # Escapes can encode a lone surrogate, which cannot be written to a file.
        return replace_surrogates_in(value) if b"\\ud" in data or b"\\uD" in data else value
    except (ValueError, RecursionError) as error:
        raise UnreadableReplyError(f"the reply is not JSON ({summary(error, 100)}): {_start(data)}") from None


def _start(data: bytes) -> str:
    return " ".join(data[:200].decode("utf-8", "replace").split())


def message(body: Mapping[str, Any], call: CallKey) -> AssistantMessage:
    """Build the message of a `readable` reply, with usage and finish reason; a call without an id gets a generated id.

    If the text is empty, the text of a refusal takes its place.

    Raises:
        BrokenOffError: the server broke the reply off.
    """
    choice = body["choices"][0]
    reply = choice["message"]
    reason, end = read_end("chat_completions", *_reasons(choice, body))
    calls, invalid = calls_of(_raw_calls(reply), call)
    text, refusal = _text(reply.get("content")), _refusal(reply)
    usage = usage_of(body, is_empty=not (text or refusal or calls or invalid))
    model = body.get("model")
    message = AssistantMessage(
        text or refusal or "",
        tuple(calls),
        tuple(invalid),
        usage,
        reason,
        refusal,
        reasoning=thoughts_in(reply),
        native=_native_fields(reply, call),
        end=end,
        model=model[:MAX_NAME] if isinstance(model, str) and model else None,
    )
    return mark_end(message)


def _refusal(message: Mapping[str, Any]) -> str | None:
    """Return the text of a model's refusal, from its own field or from a part of the content."""
    refusal, content = message.get("refusal"), message.get("content")
    if isinstance(content, list) and not refusal:
        refusal = next((part.get("refusal") for part in content if _kind(part) == "refusal"), None)
    return refusal if isinstance(refusal, str) and refusal else None


def _is_text(part: Any) -> bool:
    """Return whether a part of a message belongs to its answer."""
    return isinstance(part, str) or (isinstance(part, dict) and "text" in part and not _is_thought(part))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (part.get("text") if isinstance(part, dict) else part for part in content or () if _is_text(part))
    return "\n".join(text for text in texts if isinstance(text, str))


def thoughts_in(message: Mapping[str, Any]) -> str:
    """Return the thoughts in a message as text, from the first known field that has any."""
    content = message.get("content")
    parts = [part for part in content if _is_thought(part)] if isinstance(content, list) else None
    values = (*map(message.get, THOUGHTS), parts)
    return next((words for value in values if value and (words := _words(value))), "")


def _is_thought(part: Any) -> bool:
    return "think" in _kind(part) or "reason" in _kind(part)


def _kind(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, dict) else ""


def _words(value: Any, depth: int = 4) -> str:
    """Return the text of a thought, which may be a text, a list of parts, or an object that contains the text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and depth:
        return next((words for name in _IN_A_THOUGHT if (words := _words(value.get(name), depth - 1))), "")
    parts = value if isinstance(value, list) and depth else ()
    return "\n".join(filter(None, (_words(part, depth - 1) for part in parts)))


def _native_fields(reply: Mapping[str, Any], call: CallKey) -> Json:
    """Return a message's fields, except its text and the names and arguments of its calls; None if there are none."""
    content = reply.get("content")
    message = _unread_fields(reply, _READ)
    parts = content if isinstance(content, list) and _can_be_written(content) else []
    parts = parts if any(isinstance(part, dict) and not _is_text(part) for part in parts) else []
    calls: list[Json] = []
    for identity, raw_call in _identify_calls(_raw_calls(reply), call):
        if isinstance(raw_call, dict) and isinstance(function := raw_call.get("function"), dict):
            its = {
                "call": _unread_fields(raw_call, _READ_OF_CALLS),
                "function": _unread_fields(function, _READ_OF_FUNCTIONS),
            }
            calls += [{"id": identity, **its}] if any(its.values()) else []
    return {"message": message, "content": parts, "calls": calls} if message or parts or calls else None


def _unread_fields(fields: Mapping[str, Any], read: frozenset[str]) -> dict[str, Json]:
    # Many servers send every field that they know, even if it has no value.
    non_empty = {
        name: value for name, value in fields.items() if name not in read and value is not None and value != []
    }
    return {name: value for name, value in non_empty.items() if _can_be_written(value)}


def _can_be_written(value: Any) -> bool:
    """Return whether a parsed JSON value can be sent as JSON: not nested too deeply, and without NaN."""
    open_values = [(value, 1)]
    while open_values:
        node, depth = open_values.pop()
        if depth > MAX_DEPTH or (isinstance(node, float) and not math.isfinite(node)):
            return False
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        open_values += [(item, depth + 1) for item in inner]
    return True


def _raw_calls(message: Mapping[str, Any]) -> Any:
    """Return a message's calls: its list of calls, OpenAI's older `function_call`, or Anthropic's content parts."""
    if calls := message.get("tool_calls"):
        return calls
    if isinstance(call := message.get("function_call"), dict):
        return [{"function": call}]
    content = message.get("content")
    return [part for part in content if _kind(part) == "tool_use"] if isinstance(content, list) else []


def _identify_calls(raw_calls: Any, call: CallKey) -> Iterator[tuple[str, Any]]:
    """Yield the raw calls of a message, each with its id, or with a generated one if it has none.

    A generated id has nine letters and digits, as Mistral's servers require.
    """
    seen: set[str] = set()
    for place, raw_call in enumerate(raw_calls if isinstance(raw_calls, list) else [raw_calls] if raw_calls else ()):
        identity = raw_call.get("id") if isinstance(raw_call, dict) else None
        if not isinstance(identity, str) or not identity or identity in seen:
            identity = f"c{call.ask % 100:02}{call.call % 1000:03}{place % 1000:03}"
        seen.add(identity)
        yield identity, raw_call


def calls_of(raw_calls: Any, call: CallKey) -> tuple[list[ToolCall], list[InvalidCall]]:
    """Parse the calls of a message in any server's form: valid ones, and those with unreadable arguments."""
    calls: list[ToolCall] = []
    invalid: list[InvalidCall] = []
    for identity, raw_call in _identify_calls(raw_calls, call):
        function = raw_call.get("function", raw_call) if isinstance(raw_call, dict) else None
        if not isinstance(function, dict) or (function is raw_call and "name" not in raw_call):
            invalid.append(InvalidCall(identity, None, as_written(raw_call), "no function is named"))
            continue
        name = function.get("name")
        arguments = next((function[key] for key in ("arguments", "args", "input") if key in function), None)
        name = name if isinstance(name, str) else ""
        args, error, repairs = read_object(arguments)
        if args is None:
            invalid.append(InvalidCall(identity, name, as_written(arguments), error))
        else:
            calls.append(ToolCall(identity, name, args, repairs=repairs))
    return calls, invalid


def as_written(arguments: Any) -> str:
    """Return the arguments of a call as text; some servers send a JSON value instead of text."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def usage_of(body: Mapping[str, Any], *, is_empty: bool) -> TokenUsage | None:
    """Return the first token counts found next to the choices, in a choice, or in its message."""
    for holder in _usage_holders(body):
        for name in _USAGE:
            if name in holder and (usage := read_usage("chat_completions", holder[name], is_empty=is_empty)):
                return usage
    return read_usage("llama_cpp", body.get("timings"), is_empty=is_empty)


def _usage_holders(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield body
    choices = [choice for choice in body["choices"] if isinstance(choice, dict)]
    yield from choices
    yield from (container for name in _AROUND_USAGE if isinstance(container := body.get(name), dict))
    yield from (message for choice in choices if isinstance(message := choice.get("message"), dict))
