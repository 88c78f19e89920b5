"""Secrets are found by their value: verbatim, and in the encodings of JSON and URLs.

`tests/security/test_secrets.py` searches all that a full run leaves behind.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from hybrid.core.secrets import REDACTED, keep_secret, redact, redact_bytes
from tests.tables import cases

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
        quote,
        quote_plus,
        lambda text: quote(text, safe=""),
    ],
)
def test_a_secret_is_found_in_every_form(secret: str, form: Callable[[str], str]) -> None:
    message = f"before {form(secret)} after"
    rendered = redact(message)
    assert REDACTED in rendered
    assert rendered.startswith("before ")
    assert rendered.endswith(" after")
    assert redact_bytes(message.encode()) == rendered.encode()
    variant = rendered.replace(REDACTED, "")
    assert not [part for part in (secret[4:12], secret[-8:]) if part in variant]


def test_what_is_no_secret_stays() -> None:
    for text in ("", "short", "an answer: (A)", "sk-proj", "true"):
        assert redact(text) == text
        assert redact_bytes(text.encode()) == text.encode()


def test_a_longer_secret_is_not_left_half() -> None:
    assert redact("a-longer-one-and-its-end a-longer-one") == f"{REDACTED} {REDACTED}"


@pytest.mark.system
@pytest.mark.parametrize(*cases(__file__, "test_the_environment_says_which_values_are_secret"))
def test_the_environment_says_which_values_are_secret(name: str, value: str, *, secret: bool) -> None:
    code = f"from hybrid.core.secrets import redact; print(redact('it is {value} here'))"
    result = subprocess.run([sys.executable, "-c", code], env={name: value}, capture_output=True, text=True, check=True)
    assert result.stdout == f"it is {REDACTED if secret else value} here\n"
