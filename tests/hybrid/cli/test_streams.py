"""The program's logs and streams contain no secret and no control character."""

import io
import logging

from hybrid.cli._output import RedactedStream, redact_logs
from hybrid.core.secrets import REDACTED, keep_secret


def test_logs_hold_no_secret_in_message_arguments_and_traceback() -> None:
    keep_secret("sk-proj-0123456789abcdef")
    factory = logging.getLogRecordFactory()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    log = logging.getLogger("a.library.of.others")
    log.addHandler(handler)
    try:
        redact_logs()
        redact_logs()
        log.warning("key %s of %d", "sk-proj-0123456789abcdef", 3)
        log.warning("per cent: 100 %")
        try:
            int("sk-proj-0123456789abcdef")
        except ValueError:
            log.exception("it failed")
    finally:
        logging.setLogRecordFactory(factory)
        log.removeHandler(handler)
    text = stream.getvalue()
    assert text.startswith(f"key {REDACTED} of 3\nper cent: 100 %\nit failed\nTraceback")
    assert text.endswith(f"ValueError: invalid literal for int() with base 10: '{REDACTED}'\n")
    assert "sk-proj" not in text


class Reader(io.StringIO):
    """A terminal with a given encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def test_a_stream_shows_no_secret_and_no_control_character() -> None:
    keep_secret("sk-proj-0123456789abcdef")
    inner = Reader("ascii")
    stream = RedactedStream(inner, needed=True)
    print("sk-proj-0123456789abcdef \x1b]0;title\x07 \x9b2J \x7f \u00e9 \ud800\tend\r", file=stream)
    stream.write("\n\x1b[A\x1b[A")
    assert inner.getvalue() == (
        f"{REDACTED} \\u001b]0;title\\u0007 \\u009b2J \\u007f \\xe9 \\ud800\tend\r\n\n\x1b[A\x1b[A"
    )
