"""Secrets by value: what must never be written or shown, wherever it comes from.

    keep_secret(os.environ["OPENAI_API_KEY"])
    redact("401: wrong key sk-proj-abcdef")    # "401: wrong key [redacted]"

Whoever reads a secret registers it; whoever writes a file or shows a text passes it through `redact`, before the text
is cut: half of a key is no longer found. The environment is read by itself at the first use: the values of variables
whose names say that they are secret, used by us or not, and the passwords in addresses of proxies and databases. A
secret is looked for as it is and in the forms that JSON, URLs, HTML and HTTP's Basic login give it.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TextIO
from urllib.parse import quote, quote_plus, unquote

SHORTEST = 6
"""Characters of the shortest secret that is looked for: a shorter one would be found in ordinary words."""
REDACTED = "[redacted]"

NAMES = re.compile(r"KEY(?!BOARD|MAP|RING)|TOKEN(?!IZER)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
"""Names of environment variables that say that their value is secret."""
LEAST_OF_ENVIRONMENT = 8
LONG_WORD = 16
"""A value of letters alone counts from so many characters on: `TOKEN=elephant` would take a word out of every text."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://([^/?#@\s]*)@", re.IGNORECASE)
_PATH = re.compile(r"~|\.{0,2}/|[a-z]:\\", re.IGNORECASE)

_lock = threading.Lock()
_forms: tuple[tuple[str, bytes], ...] = ()
"""Every form of every secret, as text and in UTF-8, the longest first."""


def keep_secret(*values: str | None) -> None:
    """Never write these values from now on. None and values below `SHORTEST` characters are passed over."""
    found = {form for value in values if value for form in _written(value)}
    with _lock:
        global _forms  # noqa: PLW0603 - what must not be shown holds for the process, whoever learned of it
        known = found | {text for text, _ in _forms}
        longest_first = sorted(known, key=lambda text: (-len(text), text))
        _forms = tuple((text, text.encode("utf-8", "surrogatepass")) for text in longest_first)


def redact(text: str) -> str:
    """The text with every secret replaced, the longest first."""
    _environment()
    for secret, _ in _forms:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return text


def redact_bytes(data: bytes) -> bytes:
    """The same of UTF-8 text."""
    _environment()
    for _, secret in _forms:
        if secret in data:
            data = data.replace(secret, REDACTED.encode())
    return data


@contextmanager
def forgetting() -> Iterator[None]:
    """What is registered inside is forgotten afterwards; for programs that do several things one after the other."""
    global _forms  # noqa: PLW0603 - as above
    _environment()
    before = _forms
    try:
        yield
    finally:
        with _lock:
            _forms = before


def secrets_of(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of an environment that are secret, by the names of the variables and by the form of addresses.

    Numbers, paths, short words (`true`) and values below `LEAST_OF_ENVIRONMENT` characters are none.
    """
    named = {value for name, value in environment.items() if NAMES.search(name) and _is_like_one(value)}
    logins = {part for value in environment.values() for part in _passwords(value)}
    return frozenset(named | logins)


def _is_like_one(value: str) -> bool:
    if len(value) < LEAST_OF_ENVIRONMENT or _PATH.match(value) or any(map(str.isspace, value)):
        return False
    if value.replace(".", "").replace("-", "").isdigit():
        return False
    return len(value) >= LONG_WORD or not value.isalpha()


def _passwords(value: str) -> Iterator[str]:
    """The password in an address (`http://user:password@proxy`), as it is written and as it is meant."""
    for match in _ADDRESS.finditer(value):
        _, colon, password = match[1].partition(":")
        if colon and password:
            yield from {password, unquote(password)}


@cache
def _environment() -> None:
    keep_secret(*secrets_of(os.environ))


def _written(value: str) -> Iterator[str]:
    """The forms in which a value may stand in a text."""
    if len(value) < SHORTEST:
        return
    yield from _in_base64(value)
    plain = {value, value.strip()}
    plain |= {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    # JSON in JSON, as an error's body in the line of a log.
    plain |= {json.dumps(form)[1:-1] for form in tuple(plain)} | {repr(value)[1:-1], html.escape(value)}
    for quoted in (
        _quoted(value, quote),
        _quoted(value, quote_plus),
        _quoted(value, lambda text: quote(text, safe="")),
    ):
        plain |= {quoted, re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)}
    yield from (form for form in plain if len(form) >= SHORTEST)


def _quoted(value: str, how: Callable[[str], str]) -> str:
    return how(value.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))


def _in_base64(value: str) -> Iterator[str]:
    """What any base64 with the value in it holds, whatever stands before and after (`user:` in a Basic login).

    Three bytes make four characters, so that the value begins at one of three places in them; the characters that it
    shares with its neighbours are left out.
    """
    data = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            core = encode(bytes(before) + data).decode()[first:last]
            if len(core) >= SHORTEST + 2:
                yield core


def redact_logs() -> None:
    """From now on every log record of this process is redacted when it is made, its traceback too. For programs."""
    make = logging.getLogRecordFactory()
    if getattr(make, "redacts", False):
        return

    def redacted(*args: Any, **options: Any) -> logging.LogRecord:
        record = make(*args, **options)
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and record.exc_info[0] is not None:
            # A formatter takes this text and makes none of its own.
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return record

    redacted.redacts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(redacted)


_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}
"""Control characters as JSON writes them: raw, they let what a file or a model says move the cursor."""
_UP = re.compile(r"\n*(\x1b\[A)*")
"""How several progress bars take turns; they write it by itself."""
CLOSED = 128 + 13
"""Exit code of a program whose reader has gone, as shells give it for SIGPIPE."""


class RedactedStream:
    """A text stream that shows no secret and no control character; for sys.stdout and sys.stderr of a program.

    A character that the stream's encoding lacks is written as its escape. When nobody reads any more, a stream of
    results ends the program with `CLOSED`; one that is not `needed` (progress) falls silent.
    """

    def __init__(self, stream: TextIO, *, needed: bool) -> None:
        self._stream = stream
        self._needed = needed
        self.encoding = stream.encoding
        self.errors = stream.errors

    def write(self, text: str) -> int:
        """Write the text without what must not be shown. Returns how many characters were given."""
        shown = text if _UP.fullmatch(text) else redact(text).translate(_CONTROLS)
        encoding = self.encoding or "utf-8"
        with self._read_by_somebody():
            self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream itself."""
        with self._read_by_somebody():
            self._stream.flush()

    @contextmanager
    def _read_by_somebody(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # What is still in the buffer would be tried, and complained of, once more at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if self._needed:
                raise SystemExit(CLOSED) from None

    def isatty(self) -> bool:
        """Whether the stream itself is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """That of the stream itself; what is written there is not redacted."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """True."""
        return True
