"""HTTP for chat completions: a pool of connections in a thread with its own event loop.

    reply = await wire.post(body, read)      # from any event loop; `read` runs in the thread of the connections
    await wire.close()

A reply is read and saved in that thread as soon as it is complete, however busy the waiting loop is: killing the
process a moment later does not lose it.
"""

from __future__ import annotations

import asyncio
import io
import ipaddress
import json
import os
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from hybrid.core.errors import UsageError
from hybrid.core.messages import AssistantMessage
from hybrid.models.batching.ticket import exchanged
from hybrid.models.chat_completions.stream import Assembly, ReplyBytes, StreamedReply
from hybrid.models.failures import StatusError, UnreadableReplyError, redirected

if TYPE_CHECKING:
    import aiohttp

MAX_ERROR = 64 * 2**10  # Maximum bytes that are read of an error response.
# Seconds for which an idle connection is kept: many servers close idle connections after 5 seconds, and no request may
# be sent at that moment.
IDLE_S = 4.0
# A stream may take `STREAM_TIMES` as long as the timeout in total, if no gap exceeds the timeout.
STREAM_TIMES = 10
# Seconds to wait for the end of a stream after its reply is complete, so that the connection can be reused.
LAST_S = 1.0
LARGE_BODY = 2**20  # Size in bytes from which aiohttp expects a body in pieces.

# Seconds until a busy thread yields the interpreter, for the whole process. The thread of the connections needs the
# interpreter several times per reply; with Python's default of 5 ms it falls behind a busy loop. In runs that were
# killed with 64 calls in flight, some 40 replies were unread with the default, and 0 to 9 with this value
# (`bench/kills.py`), at equal processor time.
SWITCH_S = 0.0001

# Reads the body of a reply. Called in the thread of the connections; raises `UnreadableReplyError`.
Read = Callable[[bytes], AssistantMessage]


@dataclass(frozen=True, slots=True)
class Address:
    """Destination of requests: `url` without user, separate `query`, `headers` (with the key) and the proxy to use."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: str | None = field(default=None, repr=False)


def is_loopback(url: str) -> bool:
    """Return whether the host of an address is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def refuse_socks(url: str) -> None:
    """Raise `UsageError` if an address needs a SOCKS proxy and the package for it is not installed."""
    proxy = proxy_for(url) or ""
    if proxy.startswith("socks") and find_spec("socksio") is None:
        candidates = (f"{urlsplit(url).scheme}_proxy", "all_proxy")
        variable = next(
            name for candidate in candidates for name in (candidate.upper(), candidate) if os.environ.get(name)
        )
        raise UsageError(
            f"{variable}={proxy.partition(':')[0]}://... is a SOCKS proxy, which needs a package: pip install socksio; "
            f"or unset {variable}, or name the host in NO_PROXY"
        )


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`), or None.

    Addresses on this machine never use one.
    """
    parts = urlsplit(url)
    if is_loopback(url):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


class HttpTransport:
    """One pool of connections to one address. The thread starts with the first request.

    `assembly` assembles streamed replies.
    """

    def __init__(self, address: Address, timeout_s: float, assembly: type[StreamedReply] = Assembly) -> None:
        self._assembly = assembly
        self._address = address
        self._timeout_s = timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._session: aiohttp.ClientSession | None = None
        self._lock = threading.Lock()
        self.streamed = False  # Whether a reply was streamed.

    async def post(self, body: bytes, read: Read, *, stream: bool = False) -> AssistantMessage:
        """Send a request and read its reply; the reply may be a stream whether or not the request asks for one.

        Raises:
            StatusError: the server answers with a status of 300 or above, or reports one within a stream; redirections
                are not followed.
            UnreadableReplyError: the response is not a reply, or has more than `MAX_REPLY_BYTES` bytes.
            TimeoutError: the reply was not complete after `timeout_s`. A requested stream may take `STREAM_TIMES` as
                long, if no gap exceeds `timeout_s`.
            aiohttp.ClientError: the connection failed.
        """
        if (exchange := exchanged(body)) is not None:
            if exchange[0] >= 300:
                raise StatusError(exchange[0], _read_as_json(exchange[1].decode("utf-8", "replace")))
            return read(exchange[1])
        # Cancelling the call cancels its request, and closing the connections cancels the call.
        sent = asyncio.run_coroutine_threadsafe(self._post(body, read, stream=stream), self._started())
        return await asyncio.wrap_future(sent)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))
                self._loop = asyncio.new_event_loop()
                # Use a daemon thread, because a process that exits without closing its model must not wait for a
                # server.
                self._thread = threading.Thread(target=self._loop.run_forever, name="model connections", daemon=True)
                self._thread.start()
            return self._loop

    async def _post(self, body: bytes, read: Read, *, stream: bool) -> AssistantMessage:
        """Send one request and read its reply; runs in the thread."""
        data: Any = body if len(body) < LARGE_BODY else io.BytesIO(body)
        at = self._address
        import aiohttp

        self._session = session = self._session or opened_session(at, self._timeout_s)
        options: dict[str, Any] = {"headers": at.headers, "params": at.query, "proxy": at.proxy}
        if stream:
            long = aiohttp.ClientTimeout(total=STREAM_TIMES * self._timeout_s, sock_read=self._timeout_s)
            options |= {"headers": {**at.headers, "Accept": "text/event-stream, application/json"}, "timeout": long}
        try:
            async with session.post(at.url, data=data, allow_redirects=False, **options) as response:
                if response.status >= 300:
                    raise await status_error(response)
                reply = await self._reply(response)
        except aiohttp.ClientProxyConnectionError as error:
            raise ConnectionRefusedError(f"the proxy in the environment variables does not answer: {error}") from error
        except aiohttp.ClientHttpProxyError as error:
            raise UnreadableReplyError(
                f"the proxy in the environment variables answers with status {error.status}"
            ) from None
        # aiohttp gives both errors a status of 400, which the server did not send.
        except (aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
            raise UnreadableReplyError(f"the reply is cut off or is not HTTP ({error})") from None
        return read(reply)

    async def _reply(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the body of a reply; a stream is assembled."""
        in_pieces = self._assembly.content_type in response.headers.get("content-type", "").lower()
        content = b"" if in_pieces else await whole_body(response)
        if not in_pieces and not self._assembly.begins(content[:100]):
            return content
        self.streamed = True
        reply = self._assembly()
        try:
            return await self._put_together(reply, content, response)
        finally:
            reply.close()

    async def _put_together(self, reply: StreamedReply, head: bytes, response: aiohttp.ClientResponse) -> bytes:
        import aiohttp

        reply.feed(head)
        # A connection that is lost after the end of the reply does no harm.
        with suppress(aiohttp.ClientPayloadError):
            async for chunk in response.content.iter_any():
                reply.feed(chunk)
                if reply.ended:
                    await _read_last(response)
                    break
        return reply.body()

    async def close(self) -> None:
        """Drop requests in flight, close the connections and end the thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._shut(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()

    async def _shut(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None
            # Transports are closed in the loop's next iteration.
            await asyncio.sleep(0)


def opened_session(address: Address, total_s: float | None, silence_s: float | None = None) -> aiohttp.ClientSession:
    """Open connections to an address, with limits for the total time of a request and for gaps, in seconds."""
    import aiohttp

    tls: ssl.SSLContext | bool = True
    if address.url.startswith("https:") or address.proxy:
        import httpx

        # Use the same certificates as the other clients: `SSL_CERT_FILE` or `SSL_CERT_DIR`, else those of certifi.
        tls = httpx.create_ssl_context()
    # No limit on connections, because the run limits the calls in flight.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S, ssl=tls)
    timeout = aiohttp.ClientTimeout(total=total_s, sock_read=silence_s)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())


async def whole_body(response: aiohttp.ClientResponse) -> bytes:
    """Return the unpacked body of a response. Raises `UnreadableReplyError` if it exceeds the limit of a reply."""
    data, reservation = bytearray(), ReplyBytes()
    try:
        async for chunk in response.content.iter_any():
            reservation.hold(len(chunk))
            data += chunk
    except UnreadableReplyError:
        response.close()
        raise
    finally:
        reservation.release()
    return bytes(data)


async def _start_of(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the first `most` bytes of a body."""
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > most:
            response.close()
            break
    return bytes(data[:most])


async def _read_last(response: aiohttp.ClientResponse) -> None:
    """Read what follows the end of a reply for at most `LAST_S`, so that the connection can be used again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_S):
            await response.content.readany()


async def status_error(response: aiohttp.ClientResponse) -> StatusError:
    """Build the error for a response with a status of 300 or above."""
    if response.status < 400:
        return redirected(response.status, str(response.url), response.headers.get("location"))
    text = (await _start_of(response, MAX_ERROR)).decode("utf-8", "replace")
    return StatusError(response.status, _read_as_json(text), response.headers.get("retry-after"))


def _read_as_json(text: str) -> Any:
    """Parse a text as JSON; return the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
