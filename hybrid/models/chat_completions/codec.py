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
from types import MappingProxyType
from typing import Any

from hybrid.messages import (
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
    whole_value,
)
from hybrid.models.base import CallKey
from hybrid.models.chat_completions.stream import FEEDBACK
from hybrid.models.chat_completions.terms import BRIDGE, OLDER, PLAIN, THOUGHTS, Terms
from hybrid.models.failures import UnreadableReplyError, error_in_reply, reported_error, summary
from hybrid.models.literals import read_object
from hybrid.models.replies import NO_MESSAGE, TABLE, mark_end, read_end
from hybrid.models.usage import read_usage
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
# Where servers put the counts of tokens, and in which objects beside the choices (Groq, Cohere and gateways).
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
    body["messages"] = _bridged(body["messages"]) if terms.bridges else body["messages"]
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
    # Without places, messages of the user's own have taken the place of these.
    places = images if len(around) > 1 else ()
    pieces = [around[0]]
    for one, after in zip(places, around[1:], strict=True):
        pieces += [one, after]
    return pieces


def _bridged(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with a reply wherever one of the user comes right behind one of a tool."""
    out: list[dict[str, Any]] = []
    for message in messages:
        if out and message["role"] == "user" and out[-1]["role"] == "tool":
            out.append({"content": BRIDGE, "role": "assistant"})
        out.append(message)
    return out


def _called_tools(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A declaration of each tool that a conversation has called, for servers that want one; it may not be called."""
    names = dict.fromkeys(call["function"]["name"] for one in messages for call in one.get("tool_calls", ()))
    nothing: dict[str, Any] = {"description": "Withdrawn.", "parameters": {"type": "object", "properties": {}}}
    return [{"type": "function", "function": {"name": name, **nothing}} for name in names]


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
        return {"content": _content_parts(message.parts, image), "role": "user"}
    if isinstance(message, ToolMessage):
        # Plain text where it can be: many servers take nothing else from a tool.
        has_image = any(isinstance(part, ImagePart) for part in message.parts)
        content = _content_parts(message.parts, image) if has_image else message.text
        return {"content": content, "role": "tool", "tool_call_id": message.call}
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


def _content_parts(parts: Sequence[Part], image: ImageBlock) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} if isinstance(part, str) else image(part.ref) for part in parts]


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
    whole = parse_json(data)
    if not isinstance(whole, dict):
        raise UnreadableReplyError(f"the reply is no JSON object: {_start(data)}")
    if error := reported_error(whole):
        raise error_in_reply(error)
    first = _choice(whole)
    if first is None:
        raise UnreadableReplyError(f"the reply holds no message: {_start(data)}")
    if first.get("error"):
        raise error_in_reply(first["error"])
    message = first["message"]
    content, reason = message.get("content"), first.get("finish_reason")
    if isinstance(content, dict):
        # One part, without the list around it.
        content = message["content"] = [content]
    if not isinstance(content, str | list | None):
        raise UnreadableReplyError(f"the content of the reply is no text: {_start(data)}")
    if not (content or reason or _said_calls(message) or _refusal(message)):
        raise UnreadableReplyError("the reply holds neither content nor a reason why it ended")
    return whole


def _choice(whole: dict[str, Any]) -> dict[str, Any] | None:
    """The first choice, with a message; None if there is none.

    A provider that refuses may leave the message out, or every choice: what it says instead becomes the reason.
    """
    choices = whole.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    said = first.get("message") if isinstance(first, dict) else None
    if isinstance(first, dict) and isinstance(said, dict) and not FEEDBACK & whole.keys():
        return first
    feedback = _feedback(whole)
    if isinstance(first, dict) and isinstance(said, dict):
        is_empty = not (said.get("content") or _said_calls(said) or said.get("refusal"))
        return _with_reason(whole, first, feedback) if feedback and is_empty else first
    if isinstance(first, dict) and said is None and not (first.get("text") or first.get("delta")):
        reason, end = read_end("chat_completions", feedback or None, *_reasons(first))
        if reason is None and not first.get("error"):
            return None
        simple = end in (End.ENDED, End.TOOL_CALLS, End.UNKNOWN)
        return _with_reason(whole, first, f"content_filter: {NO_MESSAGE}, {reason}" if simple else reason)
    return _with_reason(whole, {}, feedback) if first is None and feedback else None


def _with_reason(whole: dict[str, Any], choice: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    """The first choice with an empty message and a reason in the provider's words, put into the reply."""
    said = {"role": "assistant", "content": None}
    first = {"message": said, **{key: value for key, value in choice.items() if value is not None}}
    first |= {"finish_reason": reason}
    whole["choices"] = [first]
    return first


def _reasons(choice: Mapping[str, Any], whole: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Any]:
    """Why a choice ended: in OpenAI's word, in that of the provider behind a gateway, and in that of its server.

    `stop_reason` is Anthropic's; vLLM has the text at which it stopped there.
    """
    yield choice.get("finish_reason")
    yield choice.get("native_finish_reason")
    for holder in (choice, whole):
        if isinstance(reason := holder.get("stop_reason"), str) and reason in TABLE["anthropic"]:
            yield reason
    if isinstance(about := choice.get("meta_info"), dict):
        # SGLang
        yield about.get("finish_reason")


def _feedback(whole: Mapping[str, Any]) -> str:
    """What a provider says of a prompt that it blocked (Gemini, Azure); empty if it says nothing."""
    for name in ("prompt_feedback", "promptFeedback"):
        feedback = whole.get(name)
        reason = (feedback.get("blockReason") or feedback.get("block_reason")) if isinstance(feedback, dict) else None
        if isinstance(reason, str) and reason:
            return f"content_filter: {reason}"
    results = whole.get("prompt_filter_results")
    filtered = re.search(r'"(\w+)":\{[^{}]*"filtered":true', as_json(results).decode()) if results else None
    return f"content_filter: {filtered[1]}" if filtered else ""


def parse_json(data: bytes) -> Any:
    """The JSON of a reply. Raises `UnreadableReplyError`."""
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

    Raises:
        BrokenOffError: its server broke it off.
    """
    choice = whole["choices"][0]
    said = choice["message"]
    reason, end = read_end("chat_completions", *_reasons(choice, whole))
    calls, invalid = calls_of(_said_calls(said), call)
    text, refusal = _text(said.get("content")), _refusal(said)
    usage = usage_of(whole, is_empty=not (text or refusal or calls or invalid))
    model = whole.get("model")
    message = AssistantMessage(
        text or refusal or "",
        tuple(calls),
        tuple(invalid),
        usage,
        reason,
        refusal,
        reasoning=thoughts_in(said),
        native=_native(said, call),
        end=end,
        model=model[:MAX_NAME] if isinstance(model, str) and model else None,
    )
    return mark_end(message)


def _refusal(said: Mapping[str, Any]) -> str | None:
    """The words in which a model refuses, beside the content or as a part of it."""
    refusal, content = said.get("refusal"), said.get("content")
    if isinstance(content, list) and not refusal:
        refusal = next((part.get("refusal") for part in content if _kind(part) == "refusal"), None)
    return refusal if isinstance(refusal, str) and refusal else None


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
    values = (*map(said.get, THOUGHTS), parts)
    return next((words for value in values if value and (words := _words(value))), "")


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


def usage_of(whole: Mapping[str, Any], *, is_empty: bool) -> TokenUsage | None:
    """The counts of a reply, from the first place that has them: beside the choices, in one of them, in its message."""
    for holder in _usage_holders(whole):
        for name in _USAGE:
            if name in holder and (usage := read_usage("chat_completions", holder[name], is_empty=is_empty)):
                return usage
    return read_usage("llama_cpp", whole.get("timings"), is_empty=is_empty)


def _usage_holders(whole: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield whole
    choices = [choice for choice in whole["choices"] if isinstance(choice, dict)]
    yield from choices
    yield from (beside for name in _AROUND_USAGE if isinstance(beside := whole.get(name), dict))
    yield from (message for choice in choices if isinstance(message := choice.get("message"), dict))
