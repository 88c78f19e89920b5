"""Cache markers as they are sent: with them, providers read the shared part of several requests only once."""

from collections.abc import Callable
from typing import Any

import pytest

from hybrid.config import ModelSettings, Price, parse_model_args, parse_price
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    user_message,
)
from hybrid.core.types import ImageRef, Usage
from hybrid.models import CallKey, open_model
from hybrid.models.prompt_cache import LANES, lane
from hybrid.solving.budgets import cost_usd
from hybrid.tool import Tool
from tests.tables import stored

OPENAI = stored(__file__, "OPENAI")


RESPONSE = stored(__file__, "RESPONSE")


@pytest.fixture
def turns(image: Callable[..., ImageRef]) -> list[list[Message]]:
    """Return the conversations of two turns of one question and of the first turn of another."""
    opening: list[Message] = [SystemMessage("Be brief."), user_message(["Which?", image("img:1", 1)])]
    call = ToolCall("c1", "crop", {"image": "img:1"})
    second = [*opening, AssistantMessage("", (call,)), ToolMessage("c1", "crop", ("found",))]
    other: list[Message] = [SystemMessage("Be brief."), user_message(["How many?", image("img:1", 2)])]
    return [opening, second, other]


async def sent(
    name: str, turns: list[list[Message]], tools: tuple[Tool, ...], recorder: Any, store: ImageStore, **options: Any
) -> list[dict[str, Any]]:
    """Send the conversations as the calls of one question; return the bodies of the requests."""
    count = len(recorder.requests)
    model = open_model(name, ModelSettings(**options), store)
    try:
        for number, messages in enumerate(turns):
            await model.chat(messages, tools, CallKey("q", 0, number))
    finally:
        await model.close()
    return [body for _, body in recorder.requests[count:]]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_the_official_service_is_told_which_requests_belong_together(
    api: str,
    turns: list[list[Message]],
    recorder: Any,
    store: ImageStore,
    crop_tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests of one question to OpenAI have the same cache key. They go through a proxy, which records them."""
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", recorder.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    recorder.says(OPENAI if api == "chat" else RESPONSE)
    options: dict[str, Any] = {"base_url": "http://api.openai.com/v1", "extra": {"api": api}}
    bodies = await sent("openai:m", turns[:2], (crop_tool,), recorder, store, **options)
    keys = {body["prompt_cache_key"] for body in bodies}
    assert keys == {lane(None, CallKey("q"))}
    switched = await sent("openai:m", turns[:1], (crop_tool,), recorder, store, **options, prompt_cache=False)
    assert "prompt_cache_key" not in switched[0]


def test_the_calls_of_an_ask_share_a_lane_and_a_run_has_few() -> None:
    assert lane(None, CallKey("q7", 0, 0)) == lane("https://api.openai.com/v1", CallKey("q7", 0, 3))
    assert lane("http://localhost:8000/v1", CallKey("q7")) is None
    assert 1 < len({lane(None, CallKey(f"q{number}")) for number in range(1000)}) <= LANES


def test_the_switch_is_a_fact_where_there_is_one(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "nothing")
    server = {"base_url": "http://127.0.0.1:9"}
    off = parse_model_args(["prompt_cache=off"])
    assert (off.prompt_cache, parse_model_args([]).prompt_cache) == (False, True)
    for name in ("openai:m", "anthropic:c"):
        facts = [open_model(name, ModelSettings(**server, prompt_cache=on), store).metadata() for on in (True, False)]
        assert [fact["prompt_cache"] for fact in facts] == [True, False]
    for name in ("google_genai:g", "ollama:o"):
        assert "prompt_cache" not in open_model(name, ModelSettings(**server), store).metadata()
        with pytest.raises(UsageError, match="prompt_cache=off"):
            open_model(name, ModelSettings(**server, prompt_cache=False), store)
    with pytest.raises(UsageError, match="prompt_cache=maybe: 'maybe' is not one of 'on', 'off'"):
        parse_model_args(["prompt_cache=maybe"])


def test_cached_tokens_have_a_price_of_their_own() -> None:
    usage = TokenUsage(1_000_000, 0, 0, 400_000)
    assert cost_usd(usage, parse_price("2/10")) == pytest.approx(2.0)
    assert parse_price("2/10/0.5") == Price(2, 10, 0.5)
    assert cost_usd(usage, Price(2, 10, 0.5)) == pytest.approx(1.2 + 0.2)
    assert (Usage(cached_tokens=3) + Usage(cached_tokens=4)).cached_tokens == 7
    with pytest.raises(ValueError, match="CACHED"):
        parse_price("2/10/x")
