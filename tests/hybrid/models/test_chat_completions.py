"""The client for OpenAI-compatible servers, over a real socket: malformed replies, cached replies, sizes, keys."""

import asyncio
import json
import threading
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ToolMessage, user_message
from hybrid.core.secrets import keep_secret
from hybrid.models import CallKey, ModelRefused, open_model
from hybrid.models.caller import Caller
from hybrid.models.chat_completions.client import ChatCompletionsClient
from hybrid.models.chat_completions.codec import message, readable, wire_messages
from hybrid.models.chat_completions.stream import MAX_REPLY_BYTES
from hybrid.models.chat_completions.wire import proxy_for
from hybrid.models.failures import Backoff, UnreadableReplyError, read_failure
from hybrid.models.langchain.client import LangChainClient
from tests.hybrid.models.reply_log import Pages
from tests.tables import cases

CALL = CallKey("q", 1, 2, "sha", "controller")
QUICK = Backoff(base_s=0.01, cap_s=0.02)


def body(content: Any = "(A)", finish: Any = "stop", **more: Any) -> dict[str, Any]:
    messages = {"role": "assistant", "content": content, **more}
    return {"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": messages}]}


def calling(*calls: Any) -> dict[str, Any]:
    return body(None, "tool_calls", tool_calls=list(calls))


def one_call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": arguments}, **more}


def opened(store: ImageStore, name: str = "openai:m", **settings: Any) -> Caller[bytes]:
    model_settings = ModelSettings(**settings)
    return Caller(ChatCompletionsClient(name, model_settings, store), model_settings, backoff=QUICK)


def chat(recorder: Any, store: ImageStore, **settings: Any) -> Caller[bytes]:
    return opened(store, **{"base_url": f"{recorder.url}/v1", **settings})


async def ask_model(
    model: Caller[bytes], text: str = "Which?", tools: Any = (), call: CallKey = CALL
) -> AssistantMessage:
    try:
        return await model.chat([user_message([text])], tools, call)
    finally:
        await model.close()


def read(value: Any) -> AssistantMessage:
    return message(readable(json.dumps(value).encode()), CALL)


@pytest.mark.parametrize(*cases(__file__, "test_calls_in_other_interfaces_forms_are_calls", list))
def test_calls_in_other_interfaces_forms_are_calls(body: Any) -> None:
    reply = read(body)
    assert ([(call.name, call.args) for call in reply.calls], reply.invalid) == ([("crop", {"a": 1})], ())
    assert wire_messages([reply], dict, "m")[0]["tool_calls"][0]["function"]["name"] == "crop"


@pytest.mark.parametrize("data", [*(text for (text,) in cases(__file__, "UNREADABLE")[1]), "[" * 100_000])
def test_what_holds_no_message_is_unreadable(data: str) -> None:
    with pytest.raises(UnreadableReplyError):
        readable(data.encode())


def test_one_broken_character_is_no_reason_to_ask_again() -> None:
    data = json.dumps(body("caf_ (A)")).encode().replace(b"_", b"\xe9")
    assert message(readable(data), CALL).text == "caf\ufffd (A)"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_whatever_is_readable_becomes_a_message_that_can_be_sent_again(content: Any, calls: Any, usage: Any) -> None:
    data = json.dumps({**body(content, tool_calls=calls), "usage": usage}).encode()
    try:
        choice = readable(data)
    except UnreadableReplyError:
        return
    reply = message(choice, CALL)
    assert json.dumps(asdict(reply)).encode()


async def test_a_reply_above_the_limit_is_unreadable(recorder: Any, store: ImageStore) -> None:
    recorder.says(body("x" * MAX_REPLY_BYTES))
    with pytest.raises(Outage, match=r"no reply after 1 attempts.*more than 8,388,608 bytes"):
        await ask_model(chat(recorder, store, retries=0))


@pytest.mark.parametrize("changed", ["call", "text", "options", "log"])
async def test_another_request_is_asked(changed: str, recorder: Any, store: ImageStore) -> None:
    recorder.says(body())
    log = Pages()
    first = chat(recorder, store)
    first.listen(log)
    await ask_model(first)
    if changed == "log":
        log.update(dict.fromkeys(log, b"damaged"))
    other = chat(recorder, store, max_tokens=5 if changed == "options" else None)
    other.listen(log)
    call = CallKey("q", 1, 2, "sha", "mllm") if changed == "call" else CALL
    await ask_model(other, "What?" if changed == "text" else "Which?", call=call)
    assert len(recorder.requests) == 2


async def test_closing_drops_what_is_in_flight(recorder: Any, answer: Any, store: ImageStore) -> None:
    event = threading.Event()
    recorder.says(answer(body(), pause=event))
    model = chat(recorder, store)
    calls = [asyncio.create_task(model.chat([user_message([f"{n}"])], (), CALL)) for n in range(3)]
    while len(recorder.requests) < 3:
        await asyncio.sleep(0)
    await model.close()
    event.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(item) for item in results] == [asyncio.CancelledError] * 3
    assert len(recorder.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_a_key_that_the_server_echoes_is_not_told(
    status: int, recorder: Any, answer: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-echo-0123456789")
    recorder.says(answer({"error": {"message": f"bad: {'sk-echo-0123456789'}, Bearer sk-echo-0123456789"}}, status))
    with pytest.raises((Outage, ModelRefused)) as text:
        await ask_model(chat(recorder, store, retries=0))
    assert "sk-echo" not in str(text.value)
    assert "[redacted]" in str(text.value)
    assert recorder.headers[0]["authorization"] == "Bearer sk-echo-0123456789"


async def test_query_user_and_organization_reach_the_server(
    recorder: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    recorder.says(body())
    url = recorder.url.replace("http://", "http://me:p%40ss@") + "/v1/?deployment=x1"
    model = chat(recorder, store, base_url=url, extra={"default_query": {"v": 2, "on": True}})
    await ask_model(model)
    assert recorder.requests[0][0] == "/v1/chat/completions?deployment=x1&v=2&on=true"
    assert recorder.headers[0]["authorization"] == "Basic bWU6cEBzcw=="
    assert recorder.headers[0]["openai-organization"] == "org-1"


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ({}, ChatCompletionsClient),
        ({"top_p": 0.5, "extra_body": {"a": 1}, "default_query": {"v": "1"}}, ChatCompletionsClient),
        ({"api": "responses"}, LangChainClient),
        ({"logprobs": True}, LangChainClient),
        ({"default_query": {"a": [1]}}, LangChainClient),
    ],
)
def test_options_that_the_client_does_not_know_go_to_langchain(extra: Any, kind: type, store: ImageStore) -> None:
    model: Any = open_model("openai:m", ModelSettings(base_url="http://127.0.0.1:9", extra=extra), store)
    assert type(model.client) is kind


def test_proxies_come_from_the_environment(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert proxy_for("http://far.example/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "near.example")
    assert proxy_for("https://far.example/v1") == "http://proxy.example:3128"
    assert proxy_for("https://near.example:8000/v1") is None
    assert proxy_for("http://far.example/v1") is None
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example:1080")
    monkeypatch.setattr("hybrid.models.chat_completions.wire.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"^ALL_PROXY=socks5://... is a SOCKS proxy, .*: pip install socksio"):
        open_model("openai:m", ModelSettings(base_url="http://far.example/v1"), store)
    monkeypatch.setattr("hybrid.models.chat_completions.wire.find_spec", lambda name: object())
    model = open_model("openai:m", ModelSettings(base_url="http://far.example/v1"), store)
    assert isinstance(model, Caller)
    assert isinstance(model.client, LangChainClient)
    for host in ("127.0.0.1:8000", "localhost", "127.9.9.9", "[::1]:80", "api.localhost"):
        assert proxy_for(f"http://{host}/v1") is None
        assert proxy_for(f"https://{host}/v1") is None


async def test_a_proxy_that_does_not_answer_is_named(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    client = ChatCompletionsClient("openai:m", ModelSettings(base_url="http://far.example/v1"), store)
    request = client.request([user_message(["Which?"])], (), CALL)
    with pytest.raises(ConnectionRefusedError, match="the proxy in the environment variables does not answer") as error:
        await client.send(request, lambda _: None)
    assert not read_failure(error.value).reached
    await client.close()


def test_a_secret_in_the_options_is_not_among_the_facts(store: ImageStore) -> None:
    keep_secret("another-secret")
    extra: Any = {"extra_body": {"auth": {"api_key": "tok-in-the-body"}, "note": "another-secret"}}
    facts = open_model("openai:m", ModelSettings(base_url="http://127.0.0.1:9", extra=extra), store).metadata()
    assert "tok-in-the-body" not in json.dumps(facts)
    assert "another-secret" not in json.dumps(facts)


async def test_a_reply_that_is_cut_off_or_no_http_is_asked_for_again(store: ImageStore) -> None:
    data = json.dumps(body()).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: "
    full = head + b"%d\r\n\r\n" % len(data) + data
    answers = [full[:-20], b"no HTTP at all\r\n\r\n", full]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in text.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(size.partition(b":")[2]))
        writer.write(answers.pop(0))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = opened(store, base_url=url, retries=2)
        reply = await ask_model(model)
    assert (reply.text, reply.attempts, answers) == ("(A)", 3, [])


def responses_body(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return a call in the form of the responses API."""
    call = {
        "type": "function_call",
        "id": "fc1",
        "call_id": mapping["id"],
        "status": "completed",
        **mapping["function"],
    }
    payload = {"id": "r1", "object": "response", "created_at": 0, "model": "m", "status": "completed", "output": [call]}
    return {**payload, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


@pytest.mark.parametrize("arguments", ["[1, 2]", "5", '"crop"', "true", "{oops", "NaN"])
@pytest.mark.parametrize("extra", [{"logprobs": True}, {"api": "responses"}])
async def test_langchain_gives_the_same_invalid_call_as_this_client(
    recorder: Any, store: ImageStore, crop_tool: Any, extra: dict[str, Any], arguments: str
) -> None:
    calls = one_call(arguments)
    recorder.says(responses_body(calls) if "api" in extra else calling(calls))
    model = open_model("openai:m", ModelSettings(base_url=recorder.url, extra=extra, retries=3), store)
    assert isinstance(model, Caller)
    assert isinstance(model.client, LangChainClient)
    question = user_message(["q"])
    try:
        reply = await model.chat([question], [crop_tool], CallKey("q"))
        assert (reply.invalid, reply.calls) == (read(calling(calls)).invalid, ())
        assert len(recorder.requests) == 1
        tool_message = ToolMessage("c1", "crop", ("the arguments must be one valid JSON object",), failed=True)
        await model.chat([question, reply, tool_message], [crop_tool], CallKey("q"))
    finally:
        await model.close()
    assert "must be one valid JSON object" in json.dumps(recorder.requests[1][1])
    assert len(recorder.requests) == 2
