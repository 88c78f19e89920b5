"""Converts messages to LangChain's classes and back.

    request, sent = to_langchain(arranged, images.encoded, detail)
    reply = from_langchain(await client.ainvoke(request))

A reply stores LangChain's full form in `native`, so that data which a provider requires back (signed thoughts, ids of
items) is sent again unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from hybrid.core.messages import (
    MAX_NAME,
    AssistantMessage,
    End,
    ImagePart,
    InvalidCall,
    Message,
    Part,
    SentImage,
    SystemMessage,
    ToolCall,
    UserMessage,
)
from hybrid.core.types import StoredImage
from hybrid.models.chat_completions.codec import as_written, thoughts_in
from hybrid.models.chat_completions.stream import NO_REASON
from hybrid.models.images import image_block
from hybrid.models.literals import TWICE, read_object
from hybrid.models.replies import Wire, malformed, mark_end, read_end
from hybrid.models.usage import read_usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

# Maps a stored image to the image that is sent and its bytes in base64.
Encode = Callable[[StoredImage], tuple[StoredImage, bytes]]

# The only key in the arguments of a call that LangChain could not represent; its value is `[text, error]`.
UNREAD = "(arguments that are not a JSON object)"
# Repairs made to arguments before LangChain read them, by the id of the call.
REPAIRS: ContextVar[dict[str, tuple[str, ...]]] = ContextVar("repairs of the reply that is being read")

# Names under which providers report a finish reason.
_REASONS = ("finish_reason", "stop_reason", "done_reason", "status", "native_finish_reason")
# For LangChain's name of a provider, the wire format whose finish reasons are looked up first.
_WIRES: dict[str, Wire] = {"anthropic": "anthropic", "google_genai": "gemini", "ollama": "ollama"}


def to_langchain(
    messages: Sequence[Message], encode: Encode, detail: str | None = None, *, as_urls: bool = False
) -> tuple[list[BaseMessage], tuple[SentImage, ...]]:
    """Convert arranged messages (`hybrid.models.images.arrange`), and return them with the images in order.

    With `as_urls` or `detail`, an image is a part in OpenAI's form. Raises the errors of `encode`.
    """
    from langchain_core.messages import HumanMessage
    from langchain_core.messages import SystemMessage as System
    from langchain_core.messages import ToolMessage as Result

    sent: list[SentImage] = []

    def block(part: Part) -> str | dict[Any, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        image, data = encode(part.ref.image)
        text = data.decode("ascii")
        sent.append(SentImage(part.ref.name, part.ref.image, image))
        if detail is None and not as_urls:
            return {"type": "image", "base64": text, "mime_type": image.media_type}
        return image_block(image.media_type, text, detail)

    out: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, UserMessage):
            out.append(HumanMessage([block(part) for part in message.parts]))
        elif isinstance(message, SystemMessage):
            out.append(System(message.text))
        elif isinstance(message, AssistantMessage):
            out.append(_to_ai_message(message))
        else:
            status: Any = "error" if message.failed else "success"
            has_image = any(isinstance(part, ImagePart) for part in message.parts)
            content: Any = [block(part) for part in message.parts] if has_image else message.text
            out.append(Result(content, tool_call_id=message.call, name=message.name, status=status))
    return out, tuple(sent)


def _to_ai_message(message: AssistantMessage) -> AIMessage:
    """Rebuild a reply as its provider's client made it, with the text and the calls that hybrid read in it."""
    from langchain_core.messages import AIMessage

    calls: list[Any] = [
        {"name": call.name, "args": dict(call.args), "id": call.id, "type": "tool_call"} for call in message.calls
    ]
    invalid: list[Any] = [
        {"name": call.name, "args": call.written, "id": call.id, "error": call.error, "type": "invalid_tool_call"}
        for call in message.invalid
    ]
    # Some clients (ChatNVIDIA) read calls only here; without this, they would send a result without its call.
    extra = {"tool_calls": [_in_openai_form(call) for call in message.calls]} if message.calls else {}
    if message.native is None:
        return AIMessage(message.text, tool_calls=calls, invalid_tool_calls=invalid, additional_kwargs=extra)
    native = AIMessage.model_validate(message.native)
    changed = {
        "content": native.content if _text(native) == message.text else message.text,
        "tool_calls": calls,
        "invalid_tool_calls": invalid,
        "additional_kwargs": {**native.additional_kwargs, **extra},
    }
    return native.model_copy(update=changed)


def _in_openai_form(call: ToolCall) -> dict[str, Any]:
    """Return a call in the form of OpenAI's chat completions."""
    function = {"name": call.name, "arguments": as_written(dict(call.args))}
    return {"id": call.id, "type": "function", "function": function}


def from_langchain(reply: AIMessage, *, streamed: bool = False) -> AssistantMessage:
    """Convert a client's reply; if the text is empty, the text of a refusal takes its place.

    If a `streamed` reply did not end properly, its last call is invalid, because LangChain may have completed the call.

    Raises:
        BrokenOffError: the server broke the reply off.
    """
    metadata = reply.response_metadata
    words = _refusal(reply)
    reason, end = _read_end(metadata)
    read, invalid = _calls(reply, may_be_cut=streamed and _may_be_cut(metadata, end))
    is_empty = not (reply.content or reply.tool_calls or reply.invalid_tool_calls)
    # OpenAI's usage object, if LangChain keeps it, has more information than LangChain's own.
    usage = read_usage("chat_completions", metadata.get("token_usage"), is_empty=is_empty)
    usage = usage or read_usage("langchain", reply.usage_metadata, is_empty=is_empty)
    model = metadata.get("model_name") or metadata.get("model")
    message = AssistantMessage(
        _text(reply) or words or "",
        read,
        invalid,
        usage,
        reason,
        words,
        reasoning=thoughts_in({**reply.additional_kwargs, "content": reply.content}),
        native=reply.model_dump(exclude={"usage_metadata"}),
        end=end,
        model=model[:MAX_NAME] if isinstance(model, str) and model else None,
    )
    finish_message = metadata.get("finish_message")
    if end is End.MALFORMED_CALL and isinstance(finish_message, str):
        return malformed(message, finish_message)
    return mark_end(message)


def _calls(reply: AIMessage, *, may_be_cut: bool) -> tuple[tuple[ToolCall, ...], tuple[InvalidCall, ...]]:
    """Return the calls of a reply, and those with arguments that cannot be read or may be incomplete."""
    unread = [call for call in reply.tool_calls if UNREAD in call["args"]]
    repaired: list[ToolCall] = []
    invalid = [InvalidCall(call["id"] or "", call["name"], *map(str, call["args"][UNREAD])) for call in unread]
    # Calls with arguments that LangChain could not read.
    for call in reply.invalid_tool_calls:
        identity, name, arguments = call.get("id") or "", call.get("name"), call.get("args") or ""
        args, error, kinds = read_object(arguments)
        if args is None or not kinds or not name:
            invalid.append(InvalidCall(identity, name, arguments, call.get("error") or error))
        else:
            repaired.append(ToolCall(identity, name, args, repairs=kinds))
    repairs = REPAIRS.get({})
    read = [
        ToolCall(
            tool_call["id"] or "", tool_call["name"], tool_call["args"], repairs=repairs.get(tool_call["id"] or "", ())
        )
        for tool_call in reply.tool_calls
        if tool_call not in unread
    ]
    if may_be_cut and read:
        # Do this even if another call is unreadable: LangChain does not keep the order of the calls, so the unreadable
        # call may be an earlier one.
        last = read.pop()
        invalid.append(InvalidCall(last.id, last.name, as_written(last.args), "the reply ended within the call"))
    return (*read, *repaired), tuple(invalid)


def _may_be_cut(metadata: Mapping[str, Any], end: End) -> bool:
    """Return whether a streamed reply may have broken off; OpenAI reports a finish reason in every complete reply."""
    is_open = metadata.get("model_provider") == "openai" and not any(map(metadata.get, _REASONS))
    return is_open or end in (End.CUT, End.CONTEXT_FULL, End.FILTERED, End.UNFINISHED)


def _read_end(metadata: Mapping[str, Any]) -> tuple[str | None, End]:
    """Return the finish reason of a reply from the fields in which LangChain's clients store it."""
    feedback, details = metadata.get("prompt_feedback") or {}, metadata.get("incomplete_details") or {}
    wire: Wire = "responses" if metadata.get("object") == "response" else "chat_completions"
    wire = _WIRES.get(str(metadata.get("model_provider")), wire)
    reason, end = read_end(wire, *map(metadata.get, _REASONS), details.get("reason"))
    if reason is None and wire == "anthropic" and "stop_reason" in metadata:
        # Anthropic reports a reason in every complete reply: without it, the reply may be incomplete.
        reason, end = NO_REASON, End.UNKNOWN
    blocked = feedback.get("block_reason")
    blocked = str(getattr(blocked, "value", blocked) or "")
    if not blocked or blocked.endswith("UNSPECIFIED"):
        return reason, end
    return blocked, End.FILTERED


def _refusal(reply: AIMessage) -> str | None:
    """Return the text of a refusal by an OpenAI model, from its own field or from a part of the content."""
    parts = reply.content if isinstance(reply.content, list) else []
    refusals = [part.get("refusal") for part in parts if isinstance(part, dict) and part.get("type") == "refusal"]
    words = (reply.additional_kwargs.get("refusal"), *refusals)
    return next((text for text in words if isinstance(text, str) and text), None)


def _text(message: BaseMessage) -> str:
    """Return the text of a message, whatever form its content has."""
    if isinstance(message.content, str):
        return message.content
    parts = (part if isinstance(part, dict) else {"type": "text", "text": part} for part in message.content)
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def coerce_arguments(reply: bytes) -> bytes:
    """Convert the arguments of every tool call in a reply of OpenAI's chat or responses API into an object.

    LangChain would reject the full reply if the arguments of a call were any other JSON value, such as `[1, 2]`. Such a
    value is put under `UNREAD`, where `from_langchain` finds it. Any other body is returned unchanged.
    """
    other = False
    try:
        body = json.loads(reply)
        for identity, raw_call in _find_raw_calls(body):
            args, error, repairs = read_object(raw_call.get("arguments"))
            if args is None or TWICE in repairs:
                unread = {UNREAD: [as_written(raw_call["arguments"]), error]}
                raw_call["arguments"] = json.dumps(unread if args is None else args)
                REPAIRS.get({})[identity or ""] = repairs
                other = True
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        return reply
    return json.dumps(body).encode() if other else reply


def _find_raw_calls(body: Any) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Yield the objects of a reply that contain the arguments of a call, each with its id."""
    choices, output = (body.get(key) if isinstance(body, dict) else None for key in ("choices", "output"))
    for choice in choices or ():
        calls = choice["message"].get("tool_calls") or ()
        yield from ((call.get("id"), call["function"]) for call in calls if call.get("function"))
    for item in output or ():
        if item.get("type") == "function_call":
            yield item.get("call_id"), item
