"""Assembles a reply streamed as lines of JSON into the body of an unstreamed one.

reply = LineAssembly()
reply.feed(chunk)         # bytes as they arrive, split anywhere; until `reply.ended`
body = reply.body()
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from hybrid.models.chat_completions.stream import MAX_REPLY_BYTES, ReplyBytes
from hybrid.models.failures import UnreadableReplyError


class LineAssembly:
    """Assembles one reply of Ollama. The methods raise `UnreadableReplyError`."""

    content_type: ClassVar[str] = "application/x-ndjson"

    def __init__(self) -> None:
        self.ended = False  # Whether the server has ended the stream.
        self._held = ReplyBytes()
        self._buffer = ReplyBytes()  # Bytes of the current line.
        self._line = bytearray()
        self._about: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[Any] = []

    @staticmethod
    def begins(head: bytes) -> bool:
        """Return False: the beginning of a body does not show whether it is streamed."""
        return False

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        self._held.receive(len(chunk))
        self._line += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(self._line).split(b"\n")
            self._line = bytearray(rest)
            for line in lines:
                self._read_line(line)
        if len(self._line) > MAX_REPLY_BYTES:
            raise UnreadableReplyError(f"a line of the reply has more than {MAX_REPLY_BYTES:,} bytes")
        self._buffer.resize(len(self._line))

    def body(self) -> bytes:
        """Return the assembled reply, once its last byte was fed. Raises if the stream was incomplete."""
        self._read_line(bytes(self._line))
        if "error" not in self._about and not self.ended:
            raise UnreadableReplyError("the stream broke off before the reply was complete")
        fields = {name: "".join(pieces) for name, pieces in self._texts.items()}
        message = {"role": "assistant", "content": "", **fields, **({"tool_calls": self._calls} if self._calls else {})}
        # Write ASCII, because pieces may contain lone surrogates, which form pairs again when this is parsed.
        return json.dumps({**self._about, "message": message}).encode("ascii")

    def close(self) -> None:
        """Free the memory of a reply that was read or given up."""
        self._held.release()
        self._buffer.release()

    def _read_line(self, line: bytes) -> None:
        if self.ended or not line.strip():
            return
        try:
            piece = json.loads(line)
        except (ValueError, RecursionError):
            piece = None
        if not isinstance(piece, dict):
            excerpt = line[:200].decode("utf-8", "replace")
            raise UnreadableReplyError(f"a line of the stream is not a JSON object: {excerpt}")
        delta = piece.pop("message", None)
        self._held.replace(self._about, piece)
        self.ended = bool(piece.get("done")) or "error" in piece
        if isinstance(delta, dict):
            self._add(delta)

    def _add(self, delta: Mapping[str, Any]) -> None:
        for name, value in delta.items():
            if name == "tool_calls" and isinstance(value, list):
                self._calls += value
                self._held.hold(len(json.dumps(value)))
            elif name != "role" and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
                self._held.hold(len(value))
