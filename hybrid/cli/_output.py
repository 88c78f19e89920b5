"""What the program writes: results on stdout, failures on stderr, and both streams and log records redacted.

`main` installs the redaction before anything is written.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from hybrid.core.secrets import redact
from hybrid.display.notes import remember_warning
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from hybrid.scoring.reports import ScoreReport


FAILED_SHOWN = 20
# The output formats for a terminal.
PAINTED: Final = ("text", "narrow")
# Matches the words for generated questions in the head of an output; the head may be wrapped at any blank.
_IN_HEAD: Final = re.compile(r"(?<=\|)(\s+(?:and\s+)?)(generated\s+questions)(?=\s+\|)")


def paint_head(text: str, form: str) -> str:
    """Colour the words for generated questions in every head of an output, in the formats for a terminal."""
    return _IN_HEAD.sub(lambda match: match[1] + _paint(match[2]), text) if form in PAINTED else text


def _paint(words: str) -> str:
    return click.style(words, fg="yellow", bold=True)


def show_scores(report: ScoreReport, tables: Shape, *, as_json: bool) -> None:
    """Print scores as tables or as JSON."""
    if as_json:
        click.echo(json.dumps(report.as_json()))
    elif report.solvers:
        form = TEXT[tables]
        click.echo(paint_head(report.render(form), form))


def print_failures(lines: Sequence[str]) -> None:
    """Print the first failures on stderr, without secrets, and the number of further failures."""
    for line in lines[:FAILED_SHOWN]:
        click.echo(f"failed: {redact(line)}", err=True)
    if len(lines) > FAILED_SHOWN:
        click.echo(f"failed: and {len(lines) - FAILED_SHOWN} more", err=True)


def redact_logs() -> None:
    """Redact every log record of this process from now on, with its traceback. Only programs may call this."""
    make = logging.getLogRecordFactory()
    if getattr(make, "redacts", False):
        return

    def redacted(*args: Any, **options: Any) -> logging.LogRecord:
        record = make(*args, **options)
        record.msg, record.args = redact(record.getMessage()), ()
        if record.levelno >= logging.WARNING:
            remember_warning(record.msg)
        if record.exc_info and record.exc_info[0] is not None:
            # A formatter uses this text if it is set, instead of formatting the traceback itself.
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return record

    redacted.redacts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(redacted)


# Control characters in JSON notation: raw control characters in text from a file or a model could move the cursor.
_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}
# Cursor movements between several progress bars, which are written separately.
_UP = re.compile(r"\n*(\x1b\[A)*")
# Errors after which a stream accepts nothing more: its reader or terminal is closed, or the disk of its file is full.
LOST = frozenset({errno.EPIPE, errno.EIO, errno.ENOSPC, errno.EDQUOT})
# Exit code of a program whose reader is closed, as shells report for SIGPIPE.
CLOSED = 128 + 13


class RedactedStream:
    """A text stream that shows no secret and no control character; for sys.stdout and sys.stderr of a program.

    A character missing in the stream's encoding is escaped. If the reader is closed, a stream of results ends the
    program with `CLOSED`; if the disk of its file is full, it raises `OSError`. A stream that is not `needed`
    (progress) becomes silent in both cases.
    """

    def __init__(self, stream: TextIO, *, needed: bool) -> None:
        self._stream = stream
        self._needed = needed
        self.encoding = stream.encoding
        self.errors = stream.errors

    def write(self, text: str) -> int:
        """Write the redacted text. Return the number of given characters."""
        # Click tests a stream by writing an empty text, and would misinterpret the error of a full disk.
        if text == "":
            return 0
        output = text if _UP.fullmatch(text) else redact(text).translate(_CONTROLS)
        encoding = self.encoding or "utf-8"
        with self._has_reader():
            self._stream.write(output.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream itself."""
        with self._has_reader():
            self._stream.flush()

    @contextmanager
    def _has_reader(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in LOST:
                raise
            # Otherwise the rest of the buffer would be written again at exit and fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if self._needed and isinstance(error, BrokenPipeError):
                raise SystemExit(CLOSED) from None
            if self._needed:
                raise OSError(error.errno, error.strerror, "stdout") from None

    def isatty(self) -> bool:
        """Return whether the underlying stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the underlying stream; data written to it is not redacted."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True
