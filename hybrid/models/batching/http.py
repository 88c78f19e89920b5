"""HTTP of the batch APIs: JSON said and answered, files sent and fetched in pieces; none is ever whole in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hybrid.models.chat_completions.wire import Address, opened_session, status_error
from hybrid.models.failures import UnreadableReplyError

if TYPE_CHECKING:
    import aiohttp

MAX_LINE_LENGTH = 64 * 2**20  # Bytes of one result.


class Http:
    """Connections to one provider, used in one event loop. Paths are seen from the folder of the single form's.

    Raises:
        StatusError: a status of 300 or above; no redirection is followed.
        UnreadableReplyError: what came is no JSON, or points to another host.
        TimeoutError, aiohttp.ClientError: nothing came for `timeout_s`, or the connection failed.
    """

    def __init__(self, address: Address, timeout_s: float) -> None:
        self._address, self._timeout_s = address, timeout_s
        # .../v1/chat/completions, .../v1/messages and .../v1beta/models: all stand beside or below this.
        self._base = address.url.removesuffix("/chat/completions").removesuffix("/messages").removesuffix("/models")
        self._session: aiohttp.ClientSession | None = None

    async def say(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON that answers, None for nothing."""
        return (await self.exchange(method, path, body, headers))[0]

    async def exchange(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[Any, Mapping[str, str]]:
        """The JSON that answers, and the headers. `body` is an object of JSON, a form or an open file."""
        async with self._answer(method, path, body, headers or {}) as response:
            said = await response.read()
        try:
            return json.loads(said) if said.strip() else None, response.headers
        except ValueError:
            start = " ".join(said[:200].decode("utf-8", "replace").split())
            raise UnreadableReplyError(f"the answer is no JSON: {start}") from None

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a file, without their ends."""
        async with self._answer("GET", path, None, {"Accept": "*/*"}) as response:
            rest = b""
            async for piece in response.content.iter_any():
                *whole, rest = (rest + piece).split(b"\n")
                if len(rest) > MAX_LINE_LENGTH:
                    raise UnreadableReplyError(f"a result has more than {MAX_LINE_LENGTH:,} bytes")
                for line in whole:
                    yield line
            if rest.strip():
                yield rest

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        is_whole, at = "://" in path, self._address
        url = path if is_whole else f"{self._base}/{path}"
        if urlsplit(url).netloc != urlsplit(at.url).netloc:
            raise UnreadableReplyError(f"it points to {urlsplit(url).hostname}, another host, which is not asked")
        self._session = self._session or opened_session(at, None, self._timeout_s)
        given: dict[str, Any] = {"params": {} if is_whole else at.query, "proxy": at.proxy, "allow_redirects": False}
        given["headers"] = {name: value for name, value in {**at.headers, **headers}.items() if value}
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        async with self._session.request(method, url, data=data, **given) as response:
            if response.status >= 300:
                raise await status_error(response)
            yield response

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
