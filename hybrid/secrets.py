"""Secrets by value: what must never be written or shown, wherever it comes from.

    keep_secret(os.environ["OPENAI_API_KEY"])
    redact("401: wrong key sk-proj-abcdef")    # "401: wrong key [redacted]"

Code that reads a secret registers it; code that writes a file or shows a text passes it through `redact`, before the
text is cut: half of a key is no longer found. Variables of the environment whose names say that they are secret are
registered at the first use. A secret is looked for as it is and as JSON and URLs write it.
"""

from __future__ import annotations

import json
import os
import re
import threading
from functools import cache
from urllib.parse import quote, quote_plus

# Characters of the shortest secret that is looked for: a shorter one would be found in ordinary words.
MIN_LENGTH = 6
REDACTED = "[redacted]"

# Names of environment variables that say that their value is secret.
NAMES = re.compile(r"KEY(?!BOARD|MAP|RING)|TOKEN(?!IZER)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
# A value of such a variable that is no path, number or plain word: these would be taken out of every text.
LIKE_ONE = re.compile(r"(?![~./0-9]+)(?=\S*\d)\S{8,}|[^\s/]{16,}")

_lock = threading.Lock()
# Every form of every secret, as text and in UTF-8, the longest first.
_forms: tuple[tuple[str, bytes], ...] = ()


def keep_secret(*values: str | None) -> None:
    """Never write these values from now on. None and values below `MIN_LENGTH` characters are passed over."""
    forms: set[str] = set()
    for value in values:
        if not value or len(value) < MIN_LENGTH:
            continue
        clean = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        forms |= {value, quote(clean), quote_plus(clean), quote(clean, safe="")}
        # JSON in JSON is an error's body in the line of a log.
        for inner in (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)):
            forms |= {inner, json.dumps(inner)[1:-1]}
    with _lock:
        global _forms  # noqa: PLW0603 - what must not be shown holds for the process, whatever read it
        longest_first = sorted(forms | {text for text, _ in _forms}, key=lambda text: (-len(text), text))
        _forms = tuple((text, text.encode("utf-8", "surrogatepass")) for text in longest_first)


def redact(text: str) -> str:
    """The text with every secret replaced, the longest first."""
    _environment()
    for secret, _ in _forms:
        text = text.replace(secret, REDACTED)
    return text


def redact_bytes(data: bytes) -> bytes:
    """UTF-8 text with every secret replaced, the longest first."""
    _environment()
    for _, secret in _forms:
        data = data.replace(secret, REDACTED.encode())
    return data


@cache
def _environment() -> None:
    keep_secret(*(value for name, value in os.environ.items() if NAMES.search(name) and LIKE_ONE.fullmatch(value)))
