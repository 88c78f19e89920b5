"""What every provider's reply ends as: whether it was refused, and our own metadata on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

_REFUSALS = frozenset(
    {"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY"}
)


def refused(reply: AIMessage) -> bool:
    """Whether the model, or the filter of its provider, has refused to answer."""
    told = reply.response_metadata
    reasons = {str(told.get(key)) for key in ("finish_reason", "stop_reason")}
    blocked = bool((told.get("prompt_feedback") or {}).get("block_reason"))
    return bool(told.get("refusal") or reply.additional_kwargs.get("refusal") or blocked or reasons & _REFUSALS)


def finished(reply: AIMessage, extra: Mapping[str, Any]) -> AIMessage:
    """The reply with `refusal` and more in its metadata; a refusal that came with an empty text becomes the text."""
    told = {**reply.response_metadata, **extra, "refusal": refused(reply)}
    update: dict[str, Any] = {"response_metadata": told}
    refusal = reply.additional_kwargs.get("refusal")
    if isinstance(refusal, str) and not reply.content:
        update["content"] = refusal
    return reply.model_copy(update=update)
