"""Connections of LangChain's clients that are ours: they follow no redirection and can be closed.

arguments = httpx_arguments(base_url)    # arguments["transport"] is to be closed
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hybrid.models.batching.ticket import exchanged
from hybrid.models.chat_completions.wire import proxy_for
from hybrid.models.failures import StatusError, redirected
from hybrid.models.langchain.messages import coerce_arguments

if TYPE_CHECKING:
    import httpx

ONLY_STREAMS = 400
GOOGLE = "https://generativelanguage.googleapis.com"


async def _refuse_unread(response: httpx.Response) -> None:
    """Called by httpx before it reads or follows: raises `StatusError` for a redirection or a reply in pieces."""
    if response.has_redirect_location:
        raise redirected(response.status_code, str(response.url), response.headers.get("location"))
    if response.is_success and "text/event-stream" in response.headers.get("content-type", ""):
        raise StatusError(ONLY_STREAMS, "the server only streams")


# For clients of httpx, which follow redirections where a provider's package says so, and ask for whole replies.
HOOKS: Mapping[str, Any] = {"response": [_refuse_unread]}

# By provider without `pool_option`, the option of its client that takes the arguments of a client of httpx.
OWN_POOL: Mapping[str, str] = {"google_genai": "client_args"}


def _in_batch(request: Any) -> Any:
    """The response that a batch has to a request, of the package that the request is of; None where it is to be sent.

    Raises `PendingInBatch` where it waits in one from now on.
    """
    if (exchange := exchanged(request.content)) is None:
        return None
    package = sys.modules[type(request).__module__.partition(".")[0]]
    return package.Response(
        exchange[0], headers={"content-type": "application/json"}, content=exchange[1], request=request
    )


def httpx_arguments(base_url: str | None) -> dict[str, Any]:
    """The arguments of `OWN_POOL`, with a `transport` that is to be closed."""
    import httpx

    class Transport(httpx.AsyncHTTPTransport):
        """The package hands the same one to its client without async, which closes it in its own way."""

        def close(self) -> None:
            """Nothing was opened there."""

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            """Send a request, unless a batch has its reply. Raises as httpx."""
            await request.aread()
            return _in_batch(request) or await super().handle_async_request(request)

    # Only with a transport of httpx does Google's client not use aiohttp, whose error replies it does not await.
    return {"transport": Transport(proxy=proxy_for(base_url or GOOGLE)), "event_hooks": HOOKS}


def anthropic_pool(client: Any, timeout_s: float) -> Any:
    """A pool for anthropic's client, which takes none when it is made; it is put in place of the client's own."""
    import anthropic

    class Pool(anthropic.DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            """Send a request, unless a batch has its reply. Raises as httpx."""
            return _in_batch(request) or await super().send(request, **options)

    pool = Pool(timeout=timeout_s, proxy=client.anthropic_proxy, event_hooks=HOOKS)
    inner = client._async_client  # noqa: SLF001 - there is no other way to it
    client._async_client = inner.with_options(http_client=pool)  # noqa: SLF001
    return pool


def openai_pool(timeout_s: float) -> Any:
    """The connections of an `openai` client, with replies that LangChain can hold (`coerce_arguments`)."""
    import openai

    # Which package the client's own requests and responses are of is for openai to choose.
    class Pool(openai.DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            """Send a request, unless a batch has its reply. Raises as httpx."""
            response = _in_batch(request) or await super().send(request, **options)
            if response.is_stream_consumed and (content := coerce_arguments(response.content)) is not response.content:
                headers = {"content-type": response.headers.get("content-type", "application/json")}
                return type(response)(response.status_code, headers=headers, content=content, request=request)
            return response

    return Pool(timeout=timeout_s, event_hooks=HOOKS)
