"""Which words of a provider about the end of a reply mean that it was refused."""

from __future__ import annotations

_REFUSALS = frozenset(
    {"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY"}
)


def refusal_of(*reasons: str | None) -> str | None:
    """The first of the reasons why a reply ended that means a refusal by the model or a filter, or None."""
    return next((reason for reason in reasons if reason in _REFUSALS), None)
