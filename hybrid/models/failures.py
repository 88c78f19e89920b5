"""What a failed request means: worth another try, a configuration that cannot work, a refusal, or a request refused.

The clients of the providers raise types of their own; what they share
(an HTTP status, a JSON body, the names of their connection errors) is read here without importing any of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from hybrid.models.base import CallKey


class Failure(Enum):
    """What to do about a failed request."""

    RETRY = "retry"
    """Time-outs, connection errors, 408, 409, 425, 429, 5xx and replies that cannot be read."""
    CONFIGURATION = "configuration"
    """401, 402, 403, 404, an exhausted quota, an option that the model does not take."""
    POLICY = "policy"
    """The provider's content filter: the model's answer is a refusal."""
    REQUEST = "request"
    """Any other 4xx: this request (too long, too large) is not taken; others may be."""
    BUG = "bug"
    """Anything else: not about the provider."""


_RETRY_STATUS = frozenset({408, 409, 425, 429})
_CONFIGURATION_STATUS = frozenset({401, 402, 403, 404})
# By name because importing four SDKs to ask `isinstance` would load three that the run does not use.
_CONNECTION_NAMES = frozenset(
    {"APIConnectionError", "TransportError", "APIResponseValidationError", "ClientConnectionError", "JSONDecodeError"}
)
_CONFIGURATION_CODES = frozenset(
    {
        "insufficient_quota",
        "invalid_api_key",
        "model_not_found",
        "unknown_parameter",
        "unsupported_parameter",
        "unsupported_value",
    }
)
# Ollama, Google and `transformers serve` say these with a 400 and no code.
_CONFIGURATION_WORDS = ("does not support tools", "API key not valid", "API_KEY_INVALID", "Server is pinned to")
_POLICY_CODES = frozenset(
    {"content_filter", "content_policy_violation", "invalid_prompt", "image_content_policy_violation"}
)
_POLICY_WORDS = (
    "content filtering policy",
    "content management policy",
    "content policy",
    "usage policy",
    "usage policies",
)


def _chain(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def status_of(error: BaseException) -> int | None:
    """The HTTP status behind an exception: the first `status_code` or `code` of its chain that is one."""
    for link in _chain(error):
        for name in ("status_code", "code"):
            value = getattr(link, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return value
    return None


def code_of(error: BaseException) -> str:
    """The provider's own word for the error (`insufficient_quota`), or an empty string."""
    for link in _chain(error):
        for value in (getattr(link, "code", None), _body_code(getattr(link, "body", None))):
            if isinstance(value, str):
                return value
    return ""


def _body_code(body: Any) -> Any:
    if not isinstance(body, Mapping):
        return None
    inner = body.get("error", body)
    return inner.get("code") if isinstance(inner, Mapping) else None


def classify(error: BaseException) -> Failure:
    """What an exception from a provider's client means."""
    status = status_of(error)
    code = code_of(error)
    said = summary(error, 2000)
    if code in _CONFIGURATION_CODES or any(words in said for words in _CONFIGURATION_WORDS):
        return Failure.CONFIGURATION
    if status is None:
        return _without_status(error)
    if status in _RETRY_STATUS or status >= 500:
        return Failure.RETRY
    if status in _CONFIGURATION_STATUS:
        return Failure.CONFIGURATION
    if status < 400:
        # The reply itself was accepted by the server, so what failed is reading it.
        return Failure.RETRY
    policy = code in _POLICY_CODES or any(words in said.lower() for words in _POLICY_WORDS)
    return Failure.POLICY if policy else Failure.REQUEST


def _without_status(error: BaseException) -> Failure:
    if "unexpected keyword argument" in str(error):
        return Failure.CONFIGURATION
    # A 200 whose JSON has another shape than the client expects ends in one of these, by where it looks first.
    unreadable = isinstance(error, ValueError | TypeError | KeyError | IndexError | AttributeError)
    return Failure.RETRY if unreadable or _is_connection(error) else Failure.BUG


def _is_connection(error: BaseException) -> bool:
    return any(
        isinstance(link, TimeoutError | ConnectionError)
        or any(base.__name__ in _CONNECTION_NAMES for base in type(link).__mro__)
        for link in _chain(error)
    )


def retry_after_s(error: BaseException) -> float | None:
    """Seconds that a `Retry-After` header asks for; None without one (dates are not read)."""
    for link in _chain(error):
        response = getattr(link, "response", None)
        headers = getattr(response, "headers", None)
        value = headers.get("retry-after") if isinstance(headers, Mapping) else None
        if isinstance(value, str) and value.strip().isdigit():
            return float(value)
    return None


def summary(error: BaseException, limit: int = 300) -> str:
    """One line about an exception: its type, its message and, where that says less, the body of the response."""
    text = " ".join(str(error).split())
    body = " ".join(_body_text(error).split())
    if body and body not in text:
        text = f"{text} {body}".strip()
    return f"{type(error).__name__}: {text[:limit]}" if text else type(error).__name__


def _body_text(error: BaseException) -> str:
    """The text of the HTTP response behind an exception, for servers whose errors have a form of their own."""
    for link in _chain(error):
        body = getattr(link, "body", None)
        if body:
            return body if isinstance(body, str) else json.dumps(body, default=str)
    return ""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between tries: `base_s` doubled each time up to `cap_s`, times 0.5 to 1.5, at least `Retry-After`.

    The jitter is seeded by the call, so that a run repeats its pauses; `Retry-After` counts up to `cap_s`.
    """

    base_s: float = 0.5
    cap_s: float = 60.0

    def seconds(self, call: CallKey, attempt: int, asked: float | None) -> float:
        """The pause after failed try number `attempt` (from 0)."""
        jitter = 0.5 + random.Random(f"{call.question}/{call.ask}/{call.call}/{attempt}").random()
        pause: float = min(self.cap_s, self.base_s * 2.0**attempt * jitter)
        return max(pause, min(asked or 0.0, self.cap_s))
