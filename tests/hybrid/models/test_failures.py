"""Retries, outages, refusals and misconfiguration, with a real server, the same for every provider."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage
from hybrid.core.images import ImageStore
from hybrid.core.messages import user_message
from hybrid.core.secrets import keep_secret
from hybrid.models import CallKey, ModelRefused
from hybrid.models.caller import Caller
from hybrid.models.chat_completions import stream
from hybrid.models.chat_completions.client import ChatCompletionsClient
from hybrid.models.chat_completions.stream import MAX_REPLY_BYTES
from hybrid.models.circuit import Circuit, CircuitLimits
from hybrid.models.failures import Backoff, Failure, StatusError, read_failure, redirected, summary
from hybrid.models.langchain.client import LangChainClient
from hybrid.models.ollama.client import OllamaClient
from tests.tables import cases, stored

GOOD: dict[str, Any] = stored(__file__, "GOOD")


class SleepClock:
    """Records sleeps without sleeping, so that pauses of the machine do not count."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)
        await asyncio.sleep(0)


QUICK = Backoff(base_s=0.01, cap_s=0.05)
ALL = pytest.mark.parametrize("name", GOOD)


def model(name: str, recorder: Any, store: ImageStore, **settings: Any) -> Caller[Any]:
    url = f"{recorder.url}/v1" if name.startswith("openai") else recorder.url
    model_settings = ModelSettings(**{"base_url": url, "timeout_s": 120.0, **settings})
    clock = SleepClock()
    circuit = Circuit(name, CircuitLimits(pause_s=0.01, cap_s=0.02, away_s=0.05), clock, clock.sleep)
    clients: dict[str, Any] = {"openai": ChatCompletionsClient, "ollama": OllamaClient}
    client = clients.get(name.partition(":")[0], LangChainClient)
    return Caller(client(name, model_settings, store), model_settings, circuit, QUICK)


async def ask(chat: Caller[Any]) -> Any:
    try:
        return await chat.chat([user_message(["Which?"])], (), CallKey("q"))
    finally:
        await chat.close()


@ALL
@pytest.mark.parametrize(
    ("body", "status"), [({"error": {"message": "busy"}}, 500), (b"<html>", 500), (b"{oops", 200), ({}, 200), ([], 200)]
)
async def test_what_does_not_pass_is_an_outage(
    name: str, body: Any, status: int, recorder: Any, answer: Any, store: ImageStore
) -> None:
    recorder.says(answer(body, status))
    with pytest.raises(Outage, match="no reply after 2 attempts"):
        await ask(model(name, recorder, store, retries=1))
    assert len(recorder.requests) == 2


@ALL
@pytest.mark.parametrize("packing", ["identity", "gzip", "gzip, gzip", "br"])
async def test_a_reply_is_read_as_far_as_one_may_be(
    name: str, packing: str, recorder: Any, answer: Any, store: ImageStore
) -> None:
    """Every compression of a reply is unpacked only up to the limit, even a nested one: 8 MiB of blanks are a few bytes
    of gzip."""
    numbers: list[int] = []
    body = json.dumps(GOOD[name]).encode() + b" " * MAX_REPLY_BYTES
    for _ in range(packing.count("gzip")):
        body = gzip.compress(body)
    recorder.says(answer(body, headers={} if packing == "identity" else {"content-encoding": packing}))
    with pytest.MonkeyPatch.context() as patch:
        add = stream.IN_FLIGHT.add
        patch.setattr(stream.IN_FLIGHT, "add", lambda count: numbers.append(count) or add(count))
        with pytest.raises(Outage, match="no reply after 1"):
            await ask(model(name, recorder, store, retries=0))
    assert sum(numbers) == 0
    if packing in ("identity", "gzip"):
        # Pieces of the reply were kept only until they exceeded the limit.
        assert MAX_REPLY_BYTES < sum(count for count in numbers if count > 0) < MAX_REPLY_BYTES + 2**20


@ALL
async def test_a_packed_reply_is_read(name: str, recorder: Any, answer: Any, store: ImageStore) -> None:
    recorder.says(answer(gzip.compress(json.dumps(GOOD[name]).encode()), headers={"content-encoding": "gzip"}))
    assert (await ask(model(name, recorder, store))).text == "(A)"


def test_a_redirection_to_what_is_no_address_is_told_as_any_other() -> None:
    assert "redirects to an invalid address" in summary(redirected(302, "http://127.0.0.1/v1", "http://[x"))


@ALL
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirection_is_followed(
    name: str, status: int, recorder: Any, other_recorder: Any, answer: Any, store: ImageStore
) -> None:
    text = f"{other_recorder.url}/v1/there"
    recorder.says(answer(b"", status, {"location": f"{text}?state=of-the-login"}))
    other_recorder.says(GOOD[name])
    with pytest.raises(ModelRefused, match=f"redirects to {text}, which was not followed") as refused:
        await ask(model(name, recorder, store))
    assert other_recorder.requests == []
    assert len(recorder.requests) == 1
    assert "redirections are not followed: give the final address" in str(refused.value)
    assert "of-the-login" not in str(refused.value)


@ALL
async def test_a_wrong_key_is_refused_at_once(name: str, recorder: Any, answer: Any, store: ImageStore) -> None:
    recorder.says(answer({"error": {"message": "no such thing"}}, 401))
    with pytest.raises(ModelRefused, match=f"--model {name}"):
        await ask(model(name, recorder, store))
    assert len(recorder.requests) == 1


@ALL
@pytest.mark.parametrize("status", [403, 404, 413])
async def test_what_one_question_is_forbidden_costs_it_alone(
    name: str, status: int, recorder: Any, answer: Any, store: ImageStore
) -> None:
    recorder.says(answer({"error": {"message": "no such thing"}}, status))
    with pytest.raises(Outage, match=r"does not accept this request.*no such thing"):
        await ask(model(name, recorder, store))
    assert len(recorder.requests) == 1


@pytest.mark.parametrize(*cases(__file__, "test_words_that_say_more_than_a_400"))
async def test_words_that_say_more_than_a_400(
    name: str, body: Any, recorder: Any, answer: Any, store: ImageStore
) -> None:
    recorder.says(answer(body, 400))
    with pytest.raises(ModelRefused, match=r"tools|key|pinned"):
        await ask(model(name, recorder, store))
    assert len(recorder.requests) == 1


async def test_a_content_filter_is_a_refusal(recorder: Any, answer: Any, store: ImageStore) -> None:
    recorder.says(answer({"error": {"message": "flagged", "code": "content_policy_violation"}}, 400))
    reply = await ask(model("openai:m", recorder, store))
    assert reply.text == ""
    assert "flagged" in reply.refusal


@ALL
async def test_a_server_that_is_not_there_is_an_outage(name: str, store: ImageStore) -> None:
    class Nowhere:
        url = "http://127.0.0.1:9"

    with pytest.raises(Outage, match=r"no reply (after 1 attempts|for 0 s)"):
        await ask(model(name, Nowhere(), store, retries=0))


@given(st.text(max_size=20), st.integers(0, 12), st.floats(0, 1e6) | st.none())
def test_pauses_are_repeatable_bounded_and_as_long_as_asked(
    question: str, attempt: int, retry_after_s: float | None
) -> None:
    backoff = Backoff(base_s=0.5, cap_s=60)
    pause = backoff.seconds(CallKey(question), attempt, retry_after_s)
    assert pause == backoff.seconds(CallKey(question), attempt, retry_after_s)
    assert min(60.0, 0.25 * 2**attempt) <= pause <= 60.0
    assert pause >= min(retry_after_s or 0.0, 60.0)


def test_what_is_not_about_the_provider_is_not_retried() -> None:
    assert read_failure(AssertionError("ours")).kind is Failure.BUG
    assert read_failure(RuntimeError("ours")).kind is Failure.BUG
    assert read_failure(TypeError("f() got an unexpected keyword argument 'seed'")).kind is Failure.CONFIGURATION
    assert summary(RuntimeError("a\n b")) == "RuntimeError: a b"
    assert summary(RuntimeError()) == "RuntimeError"


@given(st.integers(400, 599))
def test_every_status_means_something(status: int) -> None:
    class Refused(Exception):
        status_code = status

    failure = read_failure(Refused("no")).kind
    assert (failure is Failure.RETRY) == (status >= 500 or status in {408, 409, 423, 424, 425, 429, 498, 499})
    assert (failure is Failure.KEY) == (status == 401)
    assert (failure is Failure.ACCOUNT) == (status == 402)
    assert (failure is Failure.POLICY) == (status == 451)
    others = {401, 402, 408, 409, 423, 424, 425, 429, 451, 498, 499}
    assert (failure is Failure.REQUEST) == (400 <= status < 500 and status not in others)


def test_the_summary_of_a_huge_error_is_linear_and_cut_after_redaction() -> None:
    keep_secret("sk-cut-in-the-middle-0123456789")
    text = summary(StatusError(500, "x" * 280 + " sk-cut-in-the-middle-0123456789 " + "y " * 10_000_000))
    assert len(text) < 350
    assert "sk-cut" not in text
    assert "[reda" in text
