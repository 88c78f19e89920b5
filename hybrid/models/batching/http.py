"""HTTP of the batch APIs: JSON requests, and files that are sent and fetched in pieces, so never fully in memory."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hybrid.models.chat_completions.stream import MAX_REPLY_BYTES, MAX_STREAM_BYTES, ReplyBytes
from hybrid.models.chat_completions.wire import Address, opened_session, status_error, whole_body
from hybrid.models.failures import UnreadableReplyError

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)


class Http:
    """Connections to one provider, used in one event loop. Paths are relative to its address without the endpoint.

    Raises:
        StatusError: a status of 300 or above; redirections are not followed.
        UnreadableReplyError: the response is not JSON, is larger than `MAX_REPLY_BYTES` unpacked, or redirects to
            another host, or to the same host without TLS.
        TimeoutError, aiohttp.ClientError: no data for `timeout_s`, or the connection failed.
    """

    def __init__(self, address: Address, timeout_s: float) -> None:
        self._address, self._timeout_s = address, timeout_s
        # Remove the endpoint of single requests from addresses such as .../v1/chat/completions, .../v1/messages and
        # .../v1beta/models: the paths of the batch APIs are relative to what remains.
        self._base = address.url.removesuffix("/chat/completions").removesuffix("/messages").removesuffix("/models")
        self._session: aiohttp.ClientSession | None = None

    async def say(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """Return the JSON of the response, None if it is empty."""
        return (await self.exchange(method, path, body, headers))[0]

    async def exchange(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[Any, Mapping[str, str]]:
        """Return the JSON of the response, and its headers. `body` is a JSON object, a form or an open file."""
        async with self._answer(method, path, body, headers or {}) as response:
            content = await whole_body(response)
        try:
            return json.loads(content) if content.strip() else None, response.headers
        except ValueError:
            start = " ".join(content[:200].decode("utf-8", "replace").split())
            raise UnreadableReplyError(f"the response is not JSON: {start}") from None

    async def lines(self, path: str, most: int) -> AsyncIterator[bytes]:
        """Yield the first `most` lines of a file, without line ends; skip lines of more than `MAX_REPLY_BYTES`.

        Reading stops at a line of more than `MAX_STREAM_BYTES`, which may have no end.
        """
        line, count = _Line(), 0
        try:
            async with self._answer("GET", path, None, {"Accept": "*/*"}) as response:
                async for piece in _pieces(response):
                    line.add(piece)
                    if line.size > MAX_STREAM_BYTES or count >= most:
                        log.warning("%s: the rest is left out after %d lines", path, count)
                        response.close()
                        return
                    if piece.endswith(b"\n"):
                        if line.is_too_long:
                            log.warning("%s: a line of more than %d bytes is left out", path, MAX_REPLY_BYTES)
                        if text := line.take():
                            yield text
                        count += 1
                if text := line.take():
                    yield text
        finally:
            line.bytes.release()

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        is_whole, at = "://" in path, self._address
        url = path if is_whole else f"{self._base}/{path}"
        target, server = urlsplit(url), urlsplit(at.url)
        if target.netloc != server.netloc:
            raise UnreadableReplyError(f"it points to another host, {target.hostname}, which is not contacted")
        if target.scheme not in (server.scheme, "https"):
            raise UnreadableReplyError(f"it points from {server.scheme} to {target.scheme}, which is not used")
        self._session = self._session or opened_session(at, None, self._timeout_s)
        options: dict[str, Any] = {"params": {} if is_whole else at.query, "proxy": at.proxy, "allow_redirects": False}
        options["headers"] = {name: value for name, value in {**at.headers, **headers}.items() if value}
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        async with self._session.request(method, url, data=data, **options) as response:
            if response.status >= 300:
                raise await status_error(response)
            yield response

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class _Line:
    """A line of a file while it arrives."""

    def __init__(self) -> None:
        self.bytes = ReplyBytes()
        self.size = 0
        self._data = bytearray()

    @property
    def is_too_long(self) -> bool:
        """Whether the line is longer than `MAX_REPLY_BYTES`; its bytes are then not kept."""
        return self.size > MAX_REPLY_BYTES

    def add(self, piece: bytes) -> None:
        """Add a piece. Raises `UnreadableReplyError` if the replies in transit are together too large."""
        self.size += len(piece)
        if not self.is_too_long:
            self.bytes.hold(len(piece))
            self._data += piece

    def take(self) -> bytes:
        """Return the line without its end, empty if it was too long, and start the next one."""
        data = b"" if self.is_too_long else bytes(self._data).strip(b"\r\n")
        self.bytes.release()
        self._data, self.size = bytearray(), 0
        return data if data.strip() else b""


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body in pieces that never span a line end."""
    async for chunk in response.content.iter_any():
        for piece in chunk.splitlines(keepends=True):
            yield piece
