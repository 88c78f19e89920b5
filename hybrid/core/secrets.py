"""Redacts secrets by value, wherever they appear in output.

    keep_secret(os.environ["OPENAI_API_KEY"])
    redact("401: wrong key sk-proj-abcdef")    # "401: wrong key [redacted]"

Code that reads a secret registers it; code that writes a file or shows a text passes it through `redact`, before
truncating it, because half a key would not be found. Environment variables with secret-sounding names are registered on
first use. A secret is searched for verbatim and in its JSON and URL encodings.
"""

from __future__ import annotations

import json
import os
import re
import threading
from functools import cache
from urllib.parse import quote, quote_plus

# Length of the shortest secret that is redacted: shorter ones occur in ordinary words.
MIN_LENGTH = 6
REDACTED = "[redacted]"

# Names of environment variables with secret values.
NAMES = re.compile(r"KEY(?!BOARD|MAP|RING)|TOKEN(?!IZER)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
# Values that look like secrets: not a path, a number or a plain word, which would be redacted everywhere.
LIKE_ONE = re.compile(r"(?![~./0-9]+)(?=\S*\d)\S{8,}|[^\s/]{16,}")

_lock = threading.Lock()
# All encodings of all secrets, as text and in UTF-8, longest first.
_forms: tuple[tuple[str, bytes], ...] = ()


def keep_secret(*values: str | None) -> None:
    """Redact these values from now on. None and values below `MIN_LENGTH` characters are ignored."""
    forms: set[str] = set()
    for value in values:
        if not value or len(value) < MIN_LENGTH:
            continue
        clean = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        forms |= {value, quote(clean), quote_plus(clean), quote(clean, safe="")}
        # Encode twice, for an error's JSON body within a JSON log line.
        for inner in (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)):
            forms |= {inner, json.dumps(inner)[1:-1]}
    with _lock:
        global _forms  # noqa: PLW0603 - secrets are global to the process
        longest_first = sorted(forms | {text for text, _ in _forms}, key=lambda text: (-len(text), text))
        _forms = tuple((text, text.encode("utf-8", "surrogatepass")) for text in longest_first)


def redact(text: str) -> str:
    """Replace all secrets in a text, longest first."""
    _environment()
    for secret, _ in _forms:
        text = text.replace(secret, REDACTED)
    return text


def redact_bytes(data: bytes) -> bytes:
    """Replace all secrets in UTF-8 text, longest first."""
    _environment()
    for _, secret in _forms:
        data = data.replace(secret, REDACTED.encode())
    return data


@cache
def _environment() -> None:
    keep_secret(*(value for name, value in os.environ.items() if NAMES.search(name) and LIKE_ONE.fullmatch(value)))
