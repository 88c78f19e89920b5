"""Bounds the messages of MCP servers over HTTP, with event hooks for an httpx client.

httpx.AsyncClient(event_hooks=HOOKS)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import httpx

# Largest size in bytes of one message, over HTTP and stdio; eight images of one megapixel fit.
MAX_MESSAGE_BYTES: Final = 16 * 2**20
# An empty line ends an event; a line ends with LF, CRLF or CR (WHATWG, server-sent events).
EVENT_ENDS: Final = (b"\n\n", b"\n\r\n", b"\r\r")


class MessageTooLargeError(httpx.HTTPError):
    """A server sent a message of more than `MAX_MESSAGE_BYTES`."""


class BoundedBody(httpx.AsyncByteStream):
    """The body of a response. Reading it raises `MessageTooLargeError` beyond the limit of a message.

    A stream of events may go on for as long as the connection, so only its current event counts.
    """

    def __init__(self, stream: Any, *, has_events: bool) -> None:
        self._stream, self._has_events = stream, has_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the chunks."""
        length, tail = 0, b""
        async for chunk in self._stream:
            length += len(chunk)
            if self._has_events:
                # The last bytes of earlier chunks are searched too: the end of an event may be split between chunks.
                searched = tail + chunk
                ends = [searched.rfind(mark) + len(mark) for mark in EVENT_ENDS if mark in searched]
                if ends:
                    length = len(searched) - max(ends)
                tail = searched[-3:]
            if length > MAX_MESSAGE_BYTES:
                raise MessageTooLargeError(f"a message of more than {MAX_MESSAGE_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        """Close the connection's stream."""
        await self._stream.aclose()


async def _ask_unpacked(request: httpx.Request) -> None:
    """Ask the server not to compress: a kilobyte may unpack to a megabyte."""
    request.headers["accept-encoding"] = "identity"


async def _bound(response: httpx.Response) -> None:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise MessageTooLargeError(f"the response is compressed as {encoding[:40]!r}, which was not requested")
    has_events = "text/event-stream" in response.headers.get("content-type", "").lower()
    response.stream = BoundedBody(response.stream, has_events=has_events)


HOOKS: Final[Mapping[str, list[Callable[..., Any]]]] = {"request": [_ask_unpacked], "response": [_bound]}
