"""Secrets by value: what must never be written or shown, wherever it comes from.

    keep_secret(os.environ["OPENAI_API_KEY"])
    redact("401: wrong key sk-proj-abcdef")    # "401: wrong key [redacted]"

Whoever reads a secret registers it; whoever writes a file or shows a text passes it through `redact`.
"""

from __future__ import annotations

SHORTEST = 6
"""Characters of the shortest secret that is looked for: a shorter one would be found in ordinary words."""
REDACTED = "[redacted]"

_SECRETS: set[str] = set()


def keep_secret(*values: str | None) -> None:
    """Never write these values from now on. None and values below `SHORTEST` characters are passed over."""
    _SECRETS.update(value for value in values if value and len(value) >= SHORTEST)


def redact(text: str) -> str:
    """The text with every secret replaced, the longest first."""
    for secret in sorted(_SECRETS, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def redact_bytes(data: bytes) -> bytes:
    """The same of UTF-8 text."""
    for secret in sorted(_SECRETS, key=len, reverse=True):
        data = data.replace(secret.encode(), REDACTED.encode())
    return data
