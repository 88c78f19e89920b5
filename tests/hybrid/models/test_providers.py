import json
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import user_message
from hybrid.models import CallKey, open_model
from hybrid.models.caller import Caller
from hybrid.models.langchain.client import LangChainClient
from hybrid.models.options import connection, for_samples, options
from hybrid.models.providers import PROVIDERS
from tests.tables import cases

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")
URLS = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL", "OLLAMA_HOST")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, *URLS):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(*cases(__file__, "test_a_missing_key_is_named"))
def test_a_missing_key_is_named(name: str, variable: str, store: ImageStore) -> None:
    with pytest.raises(UsageError, match=f"{variable}.*--base-url"):
        open_model(name, ModelSettings(), store)


def test_a_local_server_needs_no_key(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    local = ModelSettings(base_url="http://user:secret@127.0.0.1:9/v1?token=secret")
    result = connection(PROVIDERS["openai"], local)
    assert result.key == "EMPTY"
    assert connection(PROVIDERS["ollama"], ModelSettings()).key is None
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = open_model("openai:m", local, store)
    assert model.connection()["base_url"] == "http://127.0.0.1:9/v1"
    assert "secret" not in json.dumps([model.metadata(), model.connection()])
    assert "secret" not in repr(connection(PROVIDERS["openai"], local))


@pytest.mark.parametrize("name", ["openai:m", "anthropic:m", "google_genai:m", "ollama:m"])
def test_how_a_server_is_reached_is_no_part_of_what_a_model_is(name: str, store: ImageStore) -> None:
    first = ModelSettings(base_url="http://127.0.0.1:1", timeout_s=3, retries=1)
    second = ModelSettings(base_url="http://127.0.0.1:2", timeout_s=9, retries=7)
    model, other = open_model(name, first, store), open_model(name, second, store)
    assert model.metadata() == other.metadata()
    assert model.connection() == {"base_url": "http://127.0.0.1:1", "timeout_s": 3, "retries": 1}
    assert other.connection() == {"base_url": "http://127.0.0.1:2", "timeout_s": 9, "retries": 7}


@pytest.mark.parametrize(*cases(__file__, "test_an_option_that_is_not_taken_is_refused"))
def test_an_option_that_is_not_taken_is_refused(provider: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        options(PROVIDERS[provider], "o1", ModelSettings(**settings))


@pytest.mark.parametrize("name", ["openai:m", "anthropic:m", "google_genai:m"])
async def test_an_unknown_model_arg_is_refused_before_anything_is_sent(
    name: str, recorder: Any, store: ImageStore
) -> None:
    settings = ModelSettings(base_url=recorder.url, extra={"colour": 1}, retries=0)
    chat = Caller(LangChainClient(name, settings, store), settings)
    try:
        with pytest.raises(UsageError, match="--model-arg colour"):
            await chat.chat([user_message(["q"])], (), CallKey("q"))
    finally:
        await chat.close()
    assert recorder.requests == []


@pytest.mark.parametrize(*cases(__file__, "test_samples_are_drawn_at_temperature_one_where_a_model_takes_it"))
def test_samples_are_drawn_at_temperature_one_where_a_model_takes_it(
    name: str, user_temperature: float | None, temperature: float | None, seed: int | None
) -> None:
    settings = ModelSettings(seed=7, temperature=0.0 if user_temperature is None else user_temperature)
    result = for_samples(settings, name, temperature_told=user_temperature is not None)
    assert (result.temperature, result.seed) == (temperature, seed)
