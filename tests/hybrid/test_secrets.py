"""Secrets by value: found in every form that they are written in, and taken from the environment by themselves.

What a whole run leaves behind is searched in `tests/security/test_secrets.py`.
"""

import base64
import html
import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.secrets import REDACTED, RedactedStream, keep_secret, redact, redact_bytes, redact_logs, secrets_of

ODD = 'p@ss "w\u00f6rd"/\\&<1>+='
keep_secret("sk-proj-0123456789abcdef", ODD, None, "", "short", "a-longer-one", "a-longer-one-and-its-end")


@pytest.mark.parametrize("secret", ["sk-proj-0123456789abcdef", ODD])
@pytest.mark.parametrize(
    "form",
    [
        str,
        json.dumps,
        lambda text: json.dumps(text, ensure_ascii=False),
        lambda text: json.dumps(json.dumps({"error": text})),
        repr,
        quote,
        quote_plus,
        lambda text: quote(text, safe=""),
        lambda text: quote(text, safe="").replace("%2F", "%2f").replace("%22", "%22").lower(),
        html.escape,
        lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
        lambda text: base64.b64encode(f"me:{text}".encode()).decode(),
        lambda text: base64.b64encode(f"a:{text}:b".encode()).decode(),
        lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    ],
)
def test_a_secret_is_found_in_every_form(secret: str, form: Callable[[str], str]) -> None:
    written = f"before {form(secret)} after"
    shown = redact(written)
    assert REDACTED in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert redact_bytes(written.encode()) == shown.encode()
    left = shown.replace(REDACTED, "")
    assert not [part for part in (secret[4:12], secret[-8:]) if part in left]


@given(st.text(min_size=7, max_size=40), st.binary(max_size=20), st.binary(max_size=20))
def test_base64_of_anything_around_a_secret_does_not_hold_it(secret: str, before: bytes, after: bytes) -> None:
    try:
        secret.encode()
    except UnicodeEncodeError:
        return
    keep_secret(secret)
    shown = redact(base64.b64encode(before + secret.encode() + after).decode())
    assert REDACTED in shown


def test_what_is_no_secret_stays() -> None:
    for text in ("", "short", "an answer: (A)", "sk-proj", "true"):
        assert redact(text) == text
        assert redact_bytes(text.encode()) == text.encode()


def test_a_longer_secret_is_not_left_half() -> None:
    assert redact("a-longer-one-and-its-end a-longer-one") == f"{REDACTED} {REDACTED}"


ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-abcdef123",
    "my_Secret": "hunter22",
    "HF_TOKEN": "hf_AbCdEfGhIj",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENG",
    "PASSPHRASE": "correct-horse",
    "DB_PASSWORD": "abcdefghijklmnop",
    "HTTPS_PROXY": "http://me:pr0xy%40pass@proxy:3128",
    "DATABASE_URL": "postgres://u:dbpass99@host/db",
}
NOT_SECRET = {
    "SHORT_KEY": "abc1234",
    "SSH_KEY": "/srv/keys/id_ed25519",
    "KEY_FILE": "~/key-file-1",
    "OTHER_KEY_FILE": "./keys/first-1",
    "WINDOWS_KEY": "C:\\keys\\first-1",
    "USE_TOKEN": "true",
    "MAX_TOKENS": "1000000000",
    "TOKEN_BUDGET": "10000.5000",
    "TOKENIZERS_PARALLELISM": "disabled-4",
    "XKB_KEYBOARD": "pc105-layout",
    "SOME_TOKEN": "elephant",
    "KEY_HELP": "press any key 2 go",
    "HOME": "/srv/me-and-you-1",
    "URL": "http://me@host:8000/path",
    "PATH": "/usr/bin:/bin",
}


def test_the_environment_says_what_is_secret() -> None:
    assert secrets_of({**ENVIRONMENT, **NOT_SECRET}) == {
        "sk-abcdef123",
        "hunter22",
        "hf_AbCdEfGhIj",
        "wJalrXUtnFEMIK7MDENG",
        "correct-horse",
        "abcdefghijklmnop",
        "pr0xy%40pass",
        "pr0xy@pass",
        "dbpass99",
    }


def test_variables_that_nobody_reads_are_covered_without_a_word() -> None:
    code = "from hybrid.secrets import redact; print(redact('it is zq81-unused-7 here'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"UNUSED_TOKEN": "zq81-unused-7"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"it is {REDACTED} here\n"


def test_logs_hold_no_secret_in_message_arguments_and_traceback() -> None:
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
    told = stream.getvalue()
    assert told.startswith(f"key {REDACTED} of 3\nper cent: 100 %\nit failed\nTraceback")
    assert told.endswith(f"ValueError: invalid literal for int() with base 10: '{REDACTED}'\n")
    assert "sk-proj" not in told


class Reader(io.StringIO):
    """A terminal of an encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def test_a_stream_shows_no_secret_and_no_control_character() -> None:
    inner = Reader("ascii")
    stream = RedactedStream(inner, needed=True)
    print("sk-proj-0123456789abcdef \x1b]0;title\x07 \x9b2J \x7f \u00e9 \ud800\tend\r", file=stream)
    stream.write("\n\x1b[A\x1b[A")
    assert inner.getvalue() == (
        f"{REDACTED} \\u001b]0;title\\u0007 \\u009b2J \\u007f \\xe9 \\ud800\tend\r\n\n\x1b[A\x1b[A"
    )
