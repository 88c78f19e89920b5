"""Assembles a streamed reply (server-sent events) into the body of an unstreamed one.

reply = Assembly()
reply.feed(chunk)         # bytes as they arrive, split anywhere; until `reply.ended`
body = reply.body()       # the JSON of one chat completion, which is read and saved like any other
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from hybrid.core.messages import MAX_CHARACTERS, MAX_DEPTH
from hybrid.models.failures import UnreadableReplyError, error_in_reply, reported_error
from hybrid.models.usage import merged

# Largest size of a reply in bytes, unpacked, streamed or not; a larger one is rejected as unreadable.
MAX_REPLY_BYTES = 8 * 2**20
# Total bytes of all replies in transit in this process; beyond it, a reply counts as unreadable.
MAX_IN_FLIGHT_BYTES = 32 * MAX_REPLY_BYTES
# Largest size of a stream on the wire in bytes. It exceeds `MAX_REPLY_BYTES`, because an event wraps a few letters in
# hundreds of bytes; only the text is kept.
MAX_STREAM_BYTES = 16 * MAX_REPLY_BYTES
MAX_COUNTS_BYTES = 2**16  # Largest size of a reply's token counts, which are merged at each event.
VALUE_BYTES = 8  # Size that is counted for any value other than text.
MAX_TRIED = 2_000  # Number of pieces of a call's arguments after which they are no longer tested for being complete.
_LINE_ENDS = re.compile(rb"\r\n|\n|\r(?!\Z)")
_BOM = b"\xef\xbb\xbf"
_BEGINS = re.compile(rb"(?:%b)?\s*(?:data:|event:|id:|retry:|:)" % _BOM)
# Fields whose pieces are concatenated even if two pieces are equal; in other fields, a repeated text is a duplicate.
_GROWS = frozenset({"content", "reasoning_content", "reasoning", "thinking", "refusal", "text", "summary", "arguments"})
_GROW_PARTS = _GROWS | {"signature"}
_KEEP_ALIVE = frozenset({b"ping", b"heartbeat", b"keepalive", b"keep-alive"})  # Events without content.
_OF_ONE_PART = ("type", "index", "id")
# Finish reason of a stream that ended without one; no table contains it, so it is listed as unknown.
NO_REASON = "none given"
FILTERS = "content_filter_results"  # Azure's field of a choice that names the filter which stopped the reply.
NATIVE = "native_finish_reason"  # OpenRouter's field of a choice: the finish reason of the provider behind the gateway.
# Fields of a choice, besides OpenAI's `finish_reason`, that state why the reply ended.
OTHER_REASONS = frozenset({NATIVE, "stop_reason", "meta_info", FILTERS})
# Fields in which a provider (Gemini, Azure) states why it blocked a prompt.
FEEDBACK = frozenset({"prompt_feedback", "promptFeedback", "prompt_filter_results"})


def is_stream(head: bytes) -> bool:
    """Return whether a body with this beginning is an event stream, whatever its declared type."""
    return _BEGINS.match(head) is not None


def native_reason(choice: Mapping[str, Any]) -> Any:
    """Return the finish reason of the provider behind a gateway, or None; LiteLLM nests it one level deeper.

    LiteLLM's own finish reason is `stop` for every reason that OpenAI does not have, `error` and `abort` among them.
    """
    fields = choice.get("provider_specific_fields")
    return choice.get(NATIVE) or (fields.get(NATIVE) if isinstance(fields, dict) else None)


class _Pieces(list[str]):
    """A growing text, joined at the end because repeated concatenation would copy it each time."""


class _InFlight:
    """Counts the bytes of all replies in transit; thread-safe, because replies are read in several threads."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> int:
        """Add bytes, or release them if negative; return the new total."""
        with self._lock:
            self.bytes += count
            return self.bytes


IN_FLIGHT = _InFlight()


class ReplyBytes:
    """Memory that one reply occupies while it arrives: `hold` adds to it, and `release` frees all of it in the end."""

    def __init__(self) -> None:
        self._held = self._received = 0

    def hold(self, count: int) -> None:
        """Add bytes. Raises `UnreadableReplyError` beyond the limit of one reply, or of all replies together."""
        self._held += count
        total = IN_FLIGHT.add(count)
        if self._held > MAX_REPLY_BYTES:
            raise UnreadableReplyError(f"the reply has more than {MAX_REPLY_BYTES:,} bytes")
        if total > MAX_IN_FLIGHT_BYTES:
            raise UnreadableReplyError(f"all replies in transit together have more than {MAX_IN_FLIGHT_BYTES:,} bytes")

    def resize(self, count: int) -> None:
        """Hold exactly this number of bytes. Raises as `hold`."""
        self.hold(count - self._held)

    def receive(self, count: int) -> None:
        """Count bytes of a stream on the wire. Raises `UnreadableReplyError` for more than `MAX_STREAM_BYTES`."""
        self._received += count
        if self._received > MAX_STREAM_BYTES:
            raise UnreadableReplyError(f"the stream has more than {MAX_STREAM_BYTES:,} bytes")

    def replace(self, fields: dict[str, Any], changes: Mapping[str, Any]) -> None:
        """Put `changes` in `fields`, and hold the difference in size. Raises as `hold`."""
        for name, value in changes.items():
            old_size = size_of(fields[name]) + len(name) if name in fields else 0
            self.hold(size_of(value) + len(name) - old_size)
            fields[name] = value

    def release(self) -> None:
        """Free the memory of a reply that was read or given up."""
        IN_FLIGHT.add(-self._held)
        self._held = 0

    # Release the memory of a reply that was never closed.
    __del__ = release


class StreamedReply(Protocol):
    """A reply that is assembled from pieces."""

    content_type: ClassVar[str]  # Content type that a server declares for such a stream.
    ended: bool  # Whether the server has ended the stream.

    @staticmethod
    def begins(head: bytes) -> bool:
        """Return whether a body with this beginning is such a stream, whatever its declared type."""

    def feed(self, chunk: bytes) -> None:
        """Process the next bytes."""

    def body(self) -> bytes:
        """Return the assembled reply, once its last byte was fed. Raises if the stream was incomplete."""

    def close(self) -> None:
        """Free the memory of a reply that was read or given up."""


class Assembly:
    """Assembles one reply. The methods raise `UnreadableReplyError`, or `StatusError` for an error with a status."""

    content_type: ClassVar[str] = "text/event-stream"

    @staticmethod
    def begins(head: bytes) -> bool:
        """Return whether a body with this beginning is an event stream."""
        return is_stream(head)

    def __init__(self) -> None:
        self.ended = False  # Whether the server has ended the stream.
        self._bytes = ReplyBytes()
        self._buffer = ReplyBytes()  # Bytes of the current line and piece, which are not read yet.
        self._line = bytearray()
        self._data: list[bytes] = []
        self._pending = 0  # Bytes of the current piece.
        self._event = b""
        self._about: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._reason: str | None = None
        # Fields of the choice that state why the reply ended, besides OpenAI's (see `OTHER_REASONS`).
        self._other_reasons: dict[str, Any] = {}

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        self._line += chunk
        self._bytes.receive(len(chunk))
        if len(self._line) > MAX_REPLY_BYTES + len(chunk):
            raise UnreadableReplyError(f"a line of the stream has more than {MAX_REPLY_BYTES:,} bytes")
        if b"\n" in chunk or b"\r" in self._line[-len(chunk) - 1 :]:
            *lines, rest = _LINE_ENDS.split(bytes(self._line))
            self._line = bytearray(rest)
            for line in lines:
                self._read_line(line)
        self._buffer.resize(len(self._line) + self._pending)

    def body(self) -> bytes:
        """Return the assembled reply, once its last byte was fed. Raises if the stream was incomplete."""
        for line in (bytes(self._line).rstrip(b"\r"), b""):
            self._read_line(line)
        if not (self.ended or self._reason):
            raise UnreadableReplyError("the stream broke off before the reply was complete")
        try:
            message = {"role": "assistant", "content": None, **_join_texts(self._message)}
            # A stream without a finish reason may be incomplete: a gateway still ends the stream if its server fails.
            reason = self._reason or (NO_REASON if message["content"] and not message.get("tool_calls") else None)
            choice = {"index": 0, "message": message, "finish_reason": reason}
            choice |= self._other_reasons
            # Write ASCII, because pieces may contain lone surrogates, which form pairs again when this is parsed.
            return json.dumps({"object": "chat.completion", **self._about, "choices": [choice]}).encode("ascii")
        except RecursionError:
            raise UnreadableReplyError("a piece of the stream is nested too deep") from None

    def close(self) -> None:
        """Free the memory of a reply that was read or given up."""
        self._bytes.release()
        self._buffer.release()

    def _read_line(self, line: bytes) -> None:
        line = line.removeprefix(_BOM)
        name, _, value = (b"data", b"", line) if line.startswith(b"{") else line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            self._read_event()
        elif name == b"data":
            # Some servers omit the empty line between events.
            if len(self._data) == 1 and (self._data[0] == b"[DONE]" or _parse(self._data[0]) is not None):
                self._read_event()
            self._data.append(value)
            self._pending += len(value)
            if self._pending > MAX_REPLY_BYTES:
                raise UnreadableReplyError(f"a piece of the stream has more than {MAX_REPLY_BYTES:,} bytes")
        elif name == b"event":
            self._event = value
        elif name == b"error":
            self._data.append(b'{"error":%b}' % value)

    def _read_event(self) -> None:
        data, event = b"\n".join(self._data).strip(), self._event
        self._data, self._event, self._pending = [], b"", 0
        if data == b"[DONE]":
            self.ended = True
        # Some gateways send their keep-alive comments as data.
        if not data or data.startswith(b":") or self.ended or event in _KEEP_ALIVE:
            return
        piece = _parse(data)
        if not isinstance(piece, dict):
            excerpt = data[:200].decode("utf-8", "replace")
            raise UnreadableReplyError(f"a piece of the stream is not a JSON object: {excerpt}")
        if error := reported_error(piece) or (piece if event == b"error" else None):
            raise error_in_reply(error)
        self._add(piece)

    def _add(self, piece: Mapping[str, Any]) -> None:
        fields = {name: piece[name] for name in ("id", "model") if isinstance(piece.get(name), str)}
        fields |= {name: piece[name] for name in FEEDBACK & piece.keys() if piece[name]}
        self._bytes.replace(self._about, fields)
        self._count(piece)
        self._count(piece.get("x_groq"))
        choices = piece.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or choice.get("index") not in (None, 0):
                continue
            self._count(choice)
            if choice.get("error"):
                raise error_in_reply(choice["error"])
            delta = choice.get("delta")
            if not delta and isinstance(delta := choice.get("message"), dict):
                # Some servers send the full message so far, at the end or with every piece.
                self._message = {}
            if isinstance(delta, dict):
                self._bytes.hold(size_of(delta))
                for name, value in delta.items():
                    if name == "tool_calls":
                        _add_calls(self._message.setdefault(name, []), value)
                    elif name != "role":
                        _grow(self._message, name, value)
            self._reason = _reason(choice.get("finish_reason")) or self._reason
            reasons = {name: choice[name] for name in OTHER_REASONS & choice.keys() if choice[name]}
            if native := native_reason(choice):
                reasons[NATIVE] = native
            self._bytes.replace(self._other_reasons, reasons)

    def _count(self, container: Any) -> None:
        """Store token counts, which arrive in a choice, beside a choice or in a separate piece."""
        for name in ("usage", "usageMetadata", "timings"):
            if isinstance(container, dict) and isinstance(counts := container.get(name), dict):
                counts = merged(self._about.get(name, {}), counts)
                if size_of(counts) > MAX_COUNTS_BYTES:
                    raise UnreadableReplyError(f"{name} of the stream has more than {MAX_COUNTS_BYTES:,} bytes")
                self._bytes.replace(self._about, {name: counts})


def _reason(value: Any) -> str | None:
    """Return a finish reason as text, or None; SGLang's is an object with a `type`."""
    value = value.get("type") if isinstance(value, dict) else value
    return value if isinstance(value, str) and value not in ("", "null") else None


def size_of(root: Any) -> int:
    """Return the number of characters that a piece adds to a reply, plus a constant per value."""
    size, values = 0, [root]
    while values:
        value = values.pop()
        size += len(value) if isinstance(value, str) else VALUE_BYTES
        values += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return size


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _grow(into: dict[str, Any], name: str, more: Any, depth: int = 0) -> None:
    """Add a piece to a field: texts and lists grow, objects grow field by field, anything else is replaced."""
    if depth > MAX_DEPTH:
        raise UnreadableReplyError("a piece of the stream is nested too deep")
    current = into.get(name)
    if more is None or (current and name in _OF_ONE_PART):
        return
    if isinstance(more, str) and more == current and name not in _GROWS:
        return
    if isinstance(current, str | _Pieces) and isinstance(more, str):
        into[name] = pieces = current if isinstance(current, _Pieces) else _Pieces([current])
        pieces.append(more)
    elif isinstance(more, list):
        text = "".join(current) if isinstance(current, _Pieces) else current
        into[name] = parts = text if isinstance(text, list) else [{"type": "text", "text": text}] if text else []
        for part in more:
            _add_part(parts, part, depth)
    elif isinstance(current, list) and isinstance(more, str):
        _add_part(current, {"type": "text", "text": more}, depth)
    elif isinstance(more, dict) and name != "arguments":
        into[name] = current if isinstance(current, dict) else {}
        for key, value in more.items():
            _grow(into[name], key, value, depth + 1)
    else:
        into[name] = more


def _add_part(parts: list[Any], more: Any, depth: int) -> None:
    """Add a piece to a list: it continues the last part or starts a new one."""
    if not isinstance(more, dict):
        parts.append(more)
        return
    last = parts[-1] if parts and isinstance(parts[-1], dict) else {}
    others = (name in more and last.get(name, more[name]) != more[name] for name in _OF_ONE_PART)
    # Encrypted and non-text parts arrive complete.
    if not last or "data" in last or not more.keys() & _GROW_PARTS or any(others):
        parts.append({})
    for name, value in more.items():
        _grow(parts[-1], name, value, depth + 1)


def _add_calls(calls: list[dict[str, Any]], fragments: Any) -> None:
    for more in fragments if isinstance(fragments, list) else [fragments]:
        if not isinstance(more, dict):
            continue
        function = more.get("function")
        function = function if isinstance(function, dict) else {}
        call = _call_of(calls, more, function)
        if call is None:
            calls.append(call := {"function": {}})
        # Some servers repeat a call at the end of the stream.
        is_repeat = more.get("id") and function.get("arguments") and _parse_arguments(call) == function["arguments"]
        for name, value in more.items():
            if name != "function" and value != "":
                _grow(call, name, value)
        for name, value in {} if is_repeat else function.items():
            _grow(call["function"], name, value)


def _call_of(
    calls: list[dict[str, Any]], more: Mapping[str, Any], function: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the call that a piece continues: by its index, else by its id, else the last call. None for a new call.

    Some servers give each of several complete calls the index 0; others send a new id with every piece of one call.
    """
    index, identity, begins = more.get("index"), more.get("id"), bool(function.get("name"))
    if isinstance(index, int):
        matches = [call for call in calls if call.get("index") == index]
    else:
        matches = [call for call in calls if call.get("id") == identity] if identity else calls
    if not matches and not begins and index is None:
        matches = calls
    call = matches[-1] if matches else None
    if call is None or not begins:
        return call
    if identity:
        return call if call.get("id") in (None, identity) else None
    goes_on = not function.get("arguments") and function["name"] == call["function"].get("name")
    return call if goes_on or _parse_arguments(call) is None else None


def _parse_arguments(call: Mapping[str, Any]) -> Any:
    """Return a call's arguments so far if they are an object; else None."""
    arguments = call["function"].get("arguments")
    if isinstance(arguments, _Pieces):
        # No tool accepts longer arguments, and testing them with every piece would be slow.
        arguments = "".join(arguments) if len(arguments) <= MAX_TRIED else ""
    if isinstance(arguments, str) and len(arguments) <= MAX_CHARACTERS:
        return arguments if isinstance(_parse(arguments.encode("utf-8", "replace")), dict) else None
    return arguments if isinstance(arguments, dict) else None


def _join_texts(value: Any) -> Any:
    """Join the growing texts in a value."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: _join_texts(item) for name, item in value.items()}
    return [_join_texts(item) for item in value] if isinstance(value, list) else value
