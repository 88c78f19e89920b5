"""hybrid's own connections for LangChain's clients: they follow no redirection and can be closed.

arguments = httpx_arguments(base_url)    # close arguments["transport"] afterwards
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.models.batching.ticket import exchanged
from hybrid.models.chat_completions.stream import ReplyBytes
from hybrid.models.chat_completions.wire import proxy_for
from hybrid.models.failures import StatusError, UnreadableReplyError, redirected
from hybrid.models.langchain.messages import coerce_arguments

if TYPE_CHECKING:
    import httpx

ONLY_STREAMS = 400
# zlib's `wbits` for each content encoding; None means plain bytes. With `MAX_WBITS | 32`, zlib recognises gzip and zlib
# data by their headers.
UNPACKED_BY: Mapping[str, int | None] = {
    "identity": None,
    **dict.fromkeys(("gzip", "x-gzip", "deflate"), zlib.MAX_WBITS | 32),
}
PIECE_BYTES = 64 * 2**10
GOOGLE = "https://generativelanguage.googleapis.com"


async def _refuse_unread(response: httpx.Response) -> None:
    """Limit the unpacked body to `MAX_REPLY_BYTES`. A response hook, which httpx calls before it reads or redirects.

    Raises:
        StatusError: a redirection, or a streamed reply.
        UnreadableReplyError: a reply compressed in an unrequested way.
    """
    if response.has_redirect_location:
        raise redirected(response.status_code, str(response.url), response.headers.get("location"))
    if response.is_success and "text/event-stream" in response.headers.get("content-type", ""):
        raise StatusError(ONLY_STREAMS, "the server only streams")
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    if encoding not in UNPACKED_BY:
        raise UnreadableReplyError(f"the reply is compressed as {encoding[:40]!r}, which was not requested")
    response.stream = _bounded(response.stream, encoding, _package_of(response))


async def _ask_for_gzip(request: httpx.Request) -> None:
    """Request no compression except gzip, which this module unpacks. A request hook, called before sending."""
    request.headers["accept-encoding"] = "gzip"


def _bounded(stream: Any, encoding: str, package: Any) -> Any:
    """Wrap a stream of `package` so that it yields unpacked bytes, up to the limit of a reply.

    Reading the stream raises `UnreadableReplyError` beyond the limit, or for bytes that are not in this encoding.
    """

    class BoundedStream(package.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            body, unpack = ReplyBytes(), Unpacker(UNPACKED_BY[encoding])
            try:
                async for chunk in stream:
                    for piece in unpack(chunk):
                        body.hold(len(piece))
                        yield piece
            except zlib.error as error:
                raise UnreadableReplyError(f"the reply is not compressed as {encoding}: {error}") from error
            finally:
                body.release()

        async def aclose(self) -> None:
            """Close the connection's stream."""
            await stream.aclose()

    return BoundedStream()


class Unpacker:
    """Unpacks chunks into pieces of at most `PIECE_BYTES`, because a kilobyte may contain a megabyte."""

    def __init__(self, window_bits: int | None) -> None:
        self._stream = None if window_bits is None else zlib.decompressobj(window_bits)

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the pieces of the next chunk. Raises `zlib.error`."""
        if self._stream is None:
            yield chunk
            return
        while chunk and not self._stream.eof:
            yield self._stream.decompress(chunk, PIECE_BYTES)
            chunk = self._stream.unconsumed_tail


# Hooks for httpx clients. Without them, some providers' clients follow redirections and read replies of any length.
HOOKS: Mapping[str, Any] = {"request": [_ask_for_gzip], "response": [_refuse_unread]}

# The option of a provider's client (without `pool_option`) that accepts the arguments of an httpx client.
OWN_POOL: Mapping[str, str] = {"google_genai": "client_args"}


def _in_batch(request: Any) -> Any:
    """Return a batch's response to a request, in the request's package; None if it must be sent directly.

    Raises `PendingInBatch` if the request waits in a batch from now on.
    """
    if (exchange := exchanged(request.content)) is None:
        return None
    headers = {"content-type": "application/json"}
    return _package_of(request).Response(exchange[0], headers=headers, content=exchange[1], request=request)


def _package_of(value: object) -> Any:
    """Return the package that defines the class of a request or response; it need not be `httpx`."""
    return sys.modules[type(value).__module__.partition(".")[0]]


def httpx_arguments(base_url: str | None) -> dict[str, Any]:
    """Return the arguments of `OWN_POOL`, with a `transport` that must be closed."""
    import httpx

    class Transport(httpx.AsyncHTTPTransport):
        """A transport that Google's package also passes to its synchronous client, which calls `close`."""

        def close(self) -> None:
            """Do nothing: no synchronous connection was opened."""

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            """Send a request, unless a batch has its reply. Raises what httpx raises."""
            await request.aread()
            return _in_batch(request) or await super().handle_async_request(request)

    # Without an httpx transport, Google's client uses aiohttp and does not await the bodies of its error replies.
    return {"transport": Transport(proxy=proxy_for(base_url or GOOGLE)), "event_hooks": HOOKS}


def anthropic_pool(client: Any, timeout_s: float) -> Any:
    """Make a pool that replaces the built-in pool of anthropic's client, which accepts none at construction."""
    import anthropic

    class Pool(anthropic.DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            """Send a request, unless a batch has its reply. Raises what httpx raises."""
            return _in_batch(request) or await super().send(request, **options)

    pool = Pool(timeout=timeout_s, proxy=client.anthropic_proxy, event_hooks=HOOKS)
    inner = client._async_client  # noqa: SLF001 - it has no public attribute
    client._async_client = inner.with_options(http_client=pool)  # noqa: SLF001
    return pool


def openai_pool(timeout_s: float) -> Any:
    """Make the connections of an `openai` client, with replies that LangChain can represent (`coerce_arguments`)."""
    import openai

    # openai chooses the package of the client's requests and responses.
    class Pool(openai.DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            """Send a request, unless a batch has its reply. Raises what httpx raises."""
            response = _in_batch(request) or await super().send(request, **options)
            if response.is_stream_consumed and (content := coerce_arguments(response.content)) is not response.content:
                headers = {"content-type": response.headers.get("content-type", "application/json")}
                return type(response)(response.status_code, headers=headers, content=content, request=request)
            return response

    return Pool(timeout=timeout_s, event_hooks=HOOKS)
