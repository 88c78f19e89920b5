import base64
import json
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.core.secrets import redact
from hybrid.models import open_model
from hybrid.models.credentials import keep_credentials, names_a_secret, redacted
from tests.tables import cases

SEGMENT = "tok4path9ABCDEFGHIJKLMNOP"


def test_every_place_of_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "env-token-value")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxyuser:proxy%40pass@proxy.example:3128")
    monkeypatch.setenv("all_proxy", "proxyuser:other-pass@proxy.example")
    settings = ModelSettings(
        extra={
            "extra_body": {"deep": [{"api_key": "body-key-value"}], "callback": "https://u:url-password@x.example"},
            "default_query": {"code": "plain1", "subscription-key": "query-key-value"},
            "default_headers": {"Authorization": "Bearer header-token-value"},
            "openai_proxy": "http://me:typed-proxy-pass@proxy.example",
        }
    )
    keep_credentials(
        settings, f"https://me:base-password@host.example/{SEGMENT}/v1?sig=query-value&x=%20encoded", "main-key"
    )
    for secret in (
        *("env-token-value", "proxy%40pass", "proxy@pass", "other-pass", "body-key-value", "url-password"),
        *("query-key-value", "header-token-value", "typed-proxy-pass", "base-password", SEGMENT, "query-value"),
        *("%20encoded", "main-key", base64.b64encode(b"me:base-password").decode()),
    ):
        assert redact(f"before {secret} after") == "before [redacted] after", secret
    for word in ("proxy.example", "host.example", "plain1"):
        assert redact(word) == word


@pytest.mark.parametrize(*cases(__file__, "test_names_that_say_so"))
def test_names_that_say_so(name: str, secret: bool) -> None:
    assert names_a_secret(name) is secret


def test_a_word_that_manuals_tell_to_type_as_a_key_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    keep_credentials(ModelSettings(), "http://127.0.0.1:11434/v1", "ollama")
    assert redact("ollama:qwen") == "ollama:qwen"


def test_redaction_reaches_names_and_depths() -> None:
    keep_credentials(ModelSettings(), None, "deep-secret-value")
    value: Any = {"deep-secret-value": [{"a": ("x deep-secret-value", 5, None, True)}]}
    assert redacted(value) == {"[redacted]": [{"a": ["x [redacted]", 5, None, True]}]}


@pytest.mark.parametrize("name", ["openai:m", "anthropic:m", "google_genai:m", "ollama:m"])
def test_a_token_in_the_path_is_not_shown(name: str, store: ImageStore) -> None:
    settings = ModelSettings(base_url=f"http://me:base-password@127.0.0.1:9/{SEGMENT}/v1?key=query-value")
    model = open_model(name, settings, store)
    text = json.dumps([model.metadata(), model.connection()])
    assert model.connection()["base_url"] == "http://127.0.0.1:9/[redacted]/v1"
    assert not any(secret in text for secret in (SEGMENT, "base-password", "query-value"))
