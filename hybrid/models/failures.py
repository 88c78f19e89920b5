"""The meaning of a failed request: try again, wrong key, impossible configuration, refusal by a content filter.

    failed = read_failure(error)      # once for each exception; nothing else looks into it
    failed.kind, failed.retry_after_s

The providers' clients raise exception types of their own. What these have in common (an HTTP status, a JSON body, the
names of connection errors) is read here without importing any of them.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from hybrid.core.secrets import redact
from hybrid.models.base import CallKey


class Failure(Enum):
    """The kinds of failure, by what can be done about them."""

    RETRY = "retry"  # Time-outs, connection errors, 408, 409, 425, 429, 5xx and replies that cannot be read.
    KEY = "key"  # 401, a wrong key: affects every question until the account changes.
    ACCOUNT = "account"  # No credit or quota is left, whatever the status: no call of any question can succeed.
    CALL = "call"  # The server cannot read the call that its model wrote: the model's fault, so it is not retried.
    CONFIGURATION = "configuration"  # The model does not exist, or does not accept an option.
    ADDRESS = "address"  # A server answers, but it has no model at this path.
    # The server redirects. No redirection is followed: question and images would go to the new address, and its reply
    # would count.
    REDIRECT = "redirect"
    IMAGES = "images"  # The model does not accept images.
    TOOLS = "tools"  # The model, or the server with its start options, does not accept tools.
    POLICY = "policy"  # The provider's content filter: the model's answer is a refusal.
    # Any other 4xx: the server does not accept this request (too long, too large, not allowed) but may accept others.
    REQUEST = "request"
    BUG = "bug"  # Anything else: not about the provider.


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """One request that got no reply."""

    kind: Failure
    text: str  # One line: the type of the exception, its message and the body of the response; secrets redacted.
    status: int | None = None  # HTTP status, if the server answered.
    retry_after_s: float | None = None  # Seconds that the server asks clients to wait.
    reached: bool = True  # False if no connection was made; then the question cannot be the reason.
    # Whether the response is an HTML page without an error status: this may not be the address of a model.
    is_page: bool = False


class StatusError(Exception):
    """A server answered with an HTTP status of 300 or above; `body` is JSON if it can be parsed, else text."""

    def __init__(self, status_code: int, body: Any, retry_after: str | None = None) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code
        self.body = body
        self.headers: Mapping[str, str] = {} if retry_after is None else {"retry-after": retry_after}


def redirected(status_code: int, url: str, location: str | None) -> StatusError:
    """Return the error for a redirection from an address; it names the new address without user and query."""
    try:
        to = urlsplit(urljoin(url, location or ""))
        address = urlunsplit((to.scheme, to.netloc.rpartition("@")[2], to.path, "", ""))
    except ValueError:
        address = "an invalid address"
    return StatusError(status_code, f"the server redirects to {address}, which was not followed")


class UnreadableReplyError(ValueError):
    """The server answered 200 with a body that is not a reply; `error` is the error that the body reports, if any."""

    def __init__(self, text: str, error: Any = None) -> None:
        super().__init__(text)
        self.error = error


ERROR_IN_REPLY: Final = "the reply is an error"


def error_in_reply(error: Any) -> Exception:
    """Return the exception for an error in a 200 response or a stream: `StatusError` if the error names a status."""
    names = ("code", "status", "status_code", "http_code")
    codes = [str(error.get(name)) for name in names] if isinstance(error, Mapping) else []
    status = next((code for code in codes if re.fullmatch("[45][0-9]{2}", code)), None)
    if status is not None:
        return StatusError(int(status), {"error": error})
    return UnreadableReplyError(f"{ERROR_IN_REPLY}: {json.dumps(error, ensure_ascii=False)[:500]}", error)


def reported_error(body: Mapping[str, Any]) -> Any:
    """Return the error that a body or a piece of a stream reports instead of a reply; None if it reports none."""
    if error := body.get("error"):
        return error
    if body.get("choices") and "base_resp" not in body:
        # Return at once in the usual case, to save time.
        return None
    base = body.get("base_resp")
    if isinstance(base, dict) and base.get("status_code") not in (None, 0, "0"):
        return {"code": f"base_resp {base['status_code']}", "message": base.get("status_msg")}
    if isinstance(errors := body.get("errors"), list) and errors and not body.get("choices"):
        return errors[0]
    words = next((body[name] for name in ("message", "msg", "detail") if isinstance(body.get(name), str)), None)
    # Gateways and DashScope put the code and the message of an error into the body itself, without an `error` object.
    if words and not body.get("choices") and (body.get("code") or "success" in body or body.get("type") == "error"):
        return {"code": body.get("code"), "message": words}
    return None


TABLES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# Advice on rejections that affect every question.
CHECK = {Failure(kind): advice for kind, advice in TABLES["check"].items()}
_PAGE = re.compile(r"<(?:!doctype html|html)\b", re.IGNORECASE)
MAX_LENGTH = 20_000  # Number of characters of an error that are read: a server may answer with megabytes.


def read_failure(error: BaseException) -> FailedRequest:
    """Return everything that retries and the circuit breaker need to know about an exception of a provider's client."""
    chain = tuple(_chain(error))
    numbers = (getattr(link, name, None) for link in chain for name in ("status_code", "code"))
    integers = (number for number in numbers if isinstance(number, int) and not isinstance(number, bool))
    status = next((code for code in integers if 100 <= code <= 599), None)
    text = summary(error, 2000)
    return FailedRequest(
        _kind(error, chain, status, text),
        # Long enough for the remedy that many servers name at the end of a message.
        summary(error, 600),
        status,
        _retry_after_s(chain, text),
        reached=not any(kind.__name__ in TABLES["not_reached"] for link in chain for kind in type(link).__mro__),
        is_page=(status or 0) < 400 and _PAGE.search(text) is not None,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes."""
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


# A waiting time in seconds, or in hours, minutes and seconds, as servers or Google's `RetryInfo` write it.
_RETRY_IN: Final = re.compile(
    r"(?:(?:retry|try|wait)\w*(?: \w+){0,3}? (?:in|after|for)|(?:reset\w*|allowed|available(?: again)?) (?:in|after)"
    r"|wait\w* (?=\d+(?:\.\d+)? ?(?:s|m|h))|(?:请|請)?(?:在|等待) ?(?=\d+(?:\.\d+)? ?秒)"
    r"|(?:retry|reset)[_-]?(?:delay|after|in)(?:_?(?P<in_ms>ms|milli\w*)|\w{0,12}?)\W{1,6}?)"
    r"\W{0,4}(?:about )?(?:(?P<h>\d{1,4})\s?h(?:ours?|rs?)?[ ,]*)?(?:(?P<m>\d{1,5})\s?m(?:in\w*)?[ ,]*(?!s))?"
    r"(?:(?P<s>\d{1,7}(?:\.\d+)?)\s?(?P<ms>ms|milli\w*)?)?",
    re.IGNORECASE,
)


def _retry_after_s(chain: Sequence[BaseException], text: str) -> float | None:
    """Return the seconds that the server asks clients to wait, from its headers or its message."""
    for link in chain:
        headers = getattr(getattr(link, "response", link), "headers", None)
        for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
            value = headers.get(name) if isinstance(headers, Mapping) else None
            if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]+)?", value.strip()):
                return float(value) * unit
            if isinstance(value, str) and (seconds := _seconds_until(value)) is not None:
                return seconds
    for match in _RETRY_IN.finditer(text):
        if match["h"] or match["m"] or match["s"]:
            seconds = float(match["s"] or 0) * (1e-3 if match["ms"] or match["in_ms"] else 1.0)
            return int(match["h"] or 0) * 3600 + int(match["m"] or 0) * 60 + seconds
    return None


def _seconds_until(date: str) -> float | None:
    """Return the seconds from now to an HTTP date, at least 0; None if the text is not an HTTP date."""
    try:
        return max(0.0, (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        # TypeError: a date without a time zone.
        return None


def _codes(chain: Sequence[BaseException]) -> set[str]:
    """Return the provider's own error codes (`insufficient_quota`, `1301`), from every place where a body has them."""
    codes: set[str] = set()
    for link in chain:
        body = getattr(link, "body", None) or getattr(link, "error", None)
        parts: list[Any] = [getattr(link, "code", None)]
        inner = body
        for name in (None, "error", "innererror", "inner_error"):
            inner = inner.get(name, inner) if isinstance(inner, Mapping) and name else inner
            parts += [inner.get(key) for key in ("code", "type", "status")] if isinstance(inner, Mapping) else []
        codes |= {str(part).lower() for part in parts if isinstance(part, str | int) and not isinstance(part, bool)}
    return codes


def _kind(error: BaseException, chain: Sequence[BaseException], status: int | None, text: str) -> Failure:
    codes = _codes(chain)
    for rule in TABLES["rule"]:
        if re.fullmatch(rule.get("status", ".*"), str(status or "")) and (
            not codes.isdisjoint(map(str.lower, rule.get("codes", ())))
            or ("words" in rule and re.search(rule["words"], text, re.IGNORECASE))
            or not rule.keys() & {"codes", "words"}
        ):
            return Failure(rule["kind"])
    if "unexpected keyword argument" in str(error)[:MAX_LENGTH]:
        return Failure.CONFIGURATION
    # If a reply with status 200 is JSON of an unexpected shape, a client raises one of these errors.
    unreadable = isinstance(error, ValueError | TypeError | KeyError | IndexError | AttributeError)
    is_connection_error = any(isinstance(link, TimeoutError | ConnectionError) for link in chain)
    is_listed_error = any(kind.__name__ in TABLES["connection_errors"] for link in chain for kind in type(link).__mro__)
    return Failure.RETRY if unreadable or is_connection_error or is_listed_error else Failure.BUG


def summary(error: BaseException, limit: int = 300) -> str:
    """Describe an exception in one line: its type, its message and, if the message lacks it, the response's body.

    Secrets are redacted before the text is cut to `limit` characters, so that no part of a secret is left.
    """
    # Errors in a server's own form are not in the exception's message, but in the body.
    detail = next((body for link in _chain(error) if (body := getattr(link, "body", None))), "")
    detail = detail if isinstance(detail, str) else json.dumps(detail, default=str, ensure_ascii=False)
    text, body = (" ".join(part[:MAX_LENGTH].split()) for part in (str(error), detail))
    if body and body not in text:
        text = f"{text} {body}".strip()
    text = redact(text)[:limit]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# Kinds of failure that are unrelated to a picture, whatever their status.
NOT_ABOUT_PICTURES: Final = frozenset(
    {Failure.KEY, Failure.ACCOUNT, Failure.POLICY, Failure.CALL, Failure.TOOLS, Failure.BUG}
)
# Statuses by which servers refuse the content of a request, whatever words they use.
ABOUT_THE_REQUEST: Final = frozenset({400, 413, 415, 422})
_PICTURE: Final = re.compile(TABLES["picture"], re.IGNORECASE)


def blames_picture(failed: FailedRequest, error: BaseException) -> bool | None:
    """Return True if a new picture caused the failure, None if no picture did, False if a picture may have caused it.

    `transformers serve` and others answer 500 to a picture that their processor does not accept, often without a
    message.
    """
    if failed.kind in NOT_ABOUT_PICTURES:
        return None
    if failed.kind is Failure.IMAGES or failed.status in ABOUT_THE_REQUEST:
        return True
    # An error inside a reply with status 200, or in the middle of a stream; a proxy's page does not count.
    in_reply = isinstance(error, UnreadableReplyError) and ERROR_IN_REPLY in str(error)
    answered = in_reply or failed.status == 500
    if failed.kind is not Failure.RETRY or not answered:
        return None
    if _PICTURE.search(failed.text):
        return True
    return False if failed.status == 500 else None


_NO_REASON: Final = re.compile(rf"{TABLES['no_reason']} | <[^<>]*>", re.IGNORECASE | re.VERBOSE)
MAX_WITHOUT_REASON: Final = 2_000  # Texts with more characters than this are assumed to contain a reason.


def is_wordless_500(failed: FailedRequest, error: BaseException) -> bool:
    """Return whether the server sent a 500 without a reason, as `transformers serve` does for a malformed call."""
    if failed.status != 500:
        return False
    body = next((body for link in _chain(error) if (body := getattr(link, "body", None)) is not None), "")
    return not any(_gives_reason(text) for text in _reasons(body))


def _gives_reason(text: str) -> bool:
    return len(text) > MAX_WITHOUT_REASON or re.search(r"[^\W\d_]", _NO_REASON.sub(" ", text)) is not None


def _reasons(body: Any) -> Iterator[str]:
    """Yield the texts in an error's body that may give a reason; fields for types, positions and times are left out."""
    values = [body]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            values += (part for name, part in value.items() if str(name).lower() not in TABLES["no_reason_fields"])
        elif isinstance(value, list | tuple):
            values += value


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between tries: `base_s`, doubled after each try, times a jitter of 0.5 to 1.5, but at most `cap_s`.

    A longer `Retry-After` is obeyed up to `longest_s`. The jitter is seeded by the call, so the pauses of a run are
    reproducible.
    """

    base_s: float = 0.5
    cap_s: float = 60.0
    longest_s: float = 60.0

    def seconds(self, call: CallKey, attempt: int, retry_after_s: float | None) -> float:
        """Return the pause after failed try number `attempt` (from 0)."""
        jitter = 0.5 + random.Random(f"{call.question}/{call.ask}/{call.call}/{attempt}").random()
        pause: float = min(self.cap_s, self.base_s * 2.0**attempt * jitter)
        return max(pause, min(retry_after_s or 0.0, self.longest_s))
