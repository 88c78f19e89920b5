"""The program's log records and streams without secrets: `main` puts them in place before anything is written."""

from __future__ import annotations

import errno
import logging
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from hybrid.core.secrets import redact
from hybrid.display.notes import remember_warning


def redact_logs() -> None:
    """From now on every log record of this process is redacted when it is made, its traceback too. For programs."""
    make = logging.getLogRecordFactory()
    if getattr(make, "redacts", False):
        return

    def redacted(*args: Any, **options: Any) -> logging.LogRecord:
        record = make(*args, **options)
        record.msg, record.args = redact(record.getMessage()), ()
        if record.levelno >= logging.WARNING:
            remember_warning(record.msg)
        if record.exc_info and record.exc_info[0] is not None:
            # A formatter takes this text and makes none of its own.
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return record

    redacted.redacts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(redacted)


# Control characters as JSON writes them: raw, they let what a file or a model says move the cursor.
_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}
# How several progress bars take turns; they write it by itself.
_UP = re.compile(r"\n*(\x1b\[A)*")
# Errors after which a stream takes nothing more: its reader has gone, or the disk of its file is full.
LOST = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT})
# Exit code of a program whose reader has gone, as shells give it for SIGPIPE.
CLOSED = 128 + 13


class RedactedStream:
    """A text stream that shows no secret and no control character; for sys.stdout and sys.stderr of a program.

    A character that the stream's encoding lacks is written as its escape. Once its reader has gone, a stream of
    results ends the program with `CLOSED`, and where the disk of its file is full it raises `OSError`; one that is not
    `needed` (progress) falls silent in both cases.
    """

    def __init__(self, stream: TextIO, *, needed: bool) -> None:
        self._stream = stream
        self._needed = needed
        self.encoding = stream.encoding
        self.errors = stream.errors

    def write(self, text: str) -> int:
        """Write the text without what must not be shown. Returns how many characters were given."""
        # Click tries a stream with an empty text, and would take the error of a full disk for its answer.
        if text == "":
            return 0
        output = text if _UP.fullmatch(text) else redact(text).translate(_CONTROLS)
        encoding = self.encoding or "utf-8"
        with self._read_by_somebody():
            self._stream.write(output.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream itself."""
        with self._read_by_somebody():
            self._stream.flush()

    @contextmanager
    def _read_by_somebody(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in LOST:
                raise
            # What is still in the buffer would be tried, and complained of, once more at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if self._needed and isinstance(error, BrokenPipeError):
                raise SystemExit(CLOSED) from None
            if self._needed:
                raise OSError(error.errno, error.strerror, "stdout") from None

    def isatty(self) -> bool:
        """Whether the stream itself is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """That of the stream itself; what is written there is not redacted."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """True."""
        return True
