"""The end of a reply, determined from its provider's finish or stop reasons by the table in `finish_reasons.toml`.

reason, end = read_end("chat_completions", choice.get("finish_reason"), choice.get("native_finish_reason"))
reply = mark_end(AssistantMessage("(A)", finish_reason=reason, end=end))    # raises `BrokenOffError`
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from hybrid.core.messages import MAX_NAME, AssistantMessage, End, UnreadableCall
from hybrid.models.failures import UnreadableReplyError

Wire = Literal["chat_completions", "responses", "anthropic", "gemini", "ollama"]

TABLE: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("finish_reasons.toml").read_text("utf-8")
)
# If a reply has several reasons, the most specific one is the cause: a gateway may report `error` next to its
# provider's `MALFORMED_FUNCTION_CALL`.
SPECIFIC_FIRST: Final = (
    End.REFUSED,
    End.FILTERED,
    End.MALFORMED_CALL,
    End.CONTEXT_FULL,
    End.CUT,
    End.BROKEN_OFF,
    End.UNFINISHED,
    End.TOOL_CALLS,
    End.ENDED,
    End.UNKNOWN,
)
_PREFIX: Final = re.compile(r"^(?:finish|stop|block|blocked)reason[._]?(?=.)")
_SEPARATORS: Final = re.compile(r"[\s_-]+")
# `content_filter`, `CONTENT_FILTER`, `content-filter` and `contentFilter` count as the same word.
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    wire: {_SEPARATORS.sub("", reason): kind for reason, kind in table.items()} for wire, table in TABLE.items()
}
# Reason for a choice without any message.
NO_MESSAGE: Final = "no message"


class BrokenOffError(UnreadableReplyError):
    """The server ended a reply before the model did; the reply is requested again, as after any failed request."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the server broke the reply off (finish reason {reason!r})")
        self.reason = reason


def read_end(wire: Wire, *reasons: Any) -> tuple[str | None, End]:
    """Return the most specific of a reply's reasons in the provider's own words, and its meaning.

    Args:
        wire: API of the reply; its words are looked up first.
        reasons: texts, objects with the text under `type` or `reason` (SGLang), or None.
    """
    typed_reasons = [(text, _kind(wire, text)) for reason in reasons if reason is not None and (text := _text(reason))]
    if len(typed_reasons) == 1:
        return typed_reasons[0]
    return min(typed_reasons, key=lambda pair: SPECIFIC_FIRST.index(pair[1]), default=(None, End.ENDED))


def _text(reason: Any) -> str:
    if type(reason) is str:
        return reason.strip()[:MAX_NAME]
    if isinstance(reason, dict):
        reason = reason.get("type") or reason.get("reason")
    reason = getattr(reason, "value", reason)
    return str(reason).strip()[:MAX_NAME] if isinstance(reason, str | int) and not isinstance(reason, bool) else ""


@cache
def _kind(wire: Wire, reason: str) -> End:
    """Return the kind of a reason; `End.UNKNOWN` if no table contains it or any part of it."""
    tables = (_WORDS[wire], *(table for name, table in _WORDS.items() if name != wire))
    # Google's endpoint for OpenAI's API joins two words: `content_filter: PROHIBITED_CONTENT`.
    for text in (reason, *re.split(r"[:,;|]", reason)):
        word = _PREFIX.sub("", _SEPARATORS.sub("", text.lower()))
        kind = next((table[word] for table in tables if word in table), None)
        if kind is not None:
            return End(kind)
    return End.UNKNOWN


def mark_end(reply: AssistantMessage) -> AssistantMessage:
    """Return the reply with the changes that its `end` requires; the same object if it ended normally.

    A withheld reply gets a `refusal`, and a malformed call becomes an unreadable one, which is reported to the model.

    Raises:
        BrokenOffError: the server failed in the middle of the reply.
    """
    end = reply.end
    if end is End.BROKEN_OFF:
        raise BrokenOffError(reply.finish_reason or "")
    if end is End.MALFORMED_CALL:
        return malformed(reply, reply.text)
    if end in (End.FILTERED, End.REFUSED):
        return replace(reply, refusal=reply.refusal or reply.finish_reason or end.value)
    return replace(reply, end=End.REFUSED) if reply.refusal is not None else reply


def malformed(reply: AssistantMessage, call_text: str) -> AssistantMessage:
    """Return the reply with a call that its server could not read; `call_text` is the part that is shown."""
    call_text = call_text or reply.finish_reason or End.MALFORMED_CALL.value
    error = "the server could not read the call as the model wrote it"
    # The call is in the text too, because servers reject a conversation with an empty message.
    text = reply.text if call_text in reply.text else f"{reply.text}\n{call_text}".strip()
    return replace(reply, text=text, end=End.MALFORMED_CALL, unreadable=UnreadableCall("unknown", call_text, error))
