"""Our client for OpenAI-compatible servers, over a real socket: malformed replies, kept replies, sizes, keys."""

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import ModelSettings
from hybrid.errors import Outage, UsageError
from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, Message, SystemMessage, TokenUsage, ToolMessage, user_message
from hybrid.models import CallKey, ModelRefused, open_model
from hybrid.models.caller import Caller
from hybrid.models.chat_completions.client import ChatCompletionsClient
from hybrid.models.chat_completions.codec import PLACE, as_json, message, readable, request_body, wire_messages
from hybrid.models.chat_completions.wire import LARGEST_REPLY, proxy_for
from hybrid.models.failures import Backoff, UnreadableReplyError, read_failure
from hybrid.models.langchain.client import LangChainClient
from hybrid.repeats import seed_of_repetition
from hybrid.secrets import keep_secret
from hybrid.tool import Tool
from hybrid.types import ImageRef

CALL = CallKey("q", 1, 2, "sha", "controller")
QUICK = Backoff(base_s=0.01, cap_s=0.02)


def body(content: Any = "(A)", finish: Any = "stop", **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **more}
    return {"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": said}]}


def calling(*calls: Any) -> dict[str, Any]:
    return body(None, "tool_calls", tool_calls=list(calls))


def one_call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": arguments}, **more}


@dataclass
class Pages:
    """A `ReplyLog` in memory."""

    kept: dict[tuple[CallKey, str], bytes] = field(default_factory=dict)
    arrived: threading.Event = field(default_factory=threading.Event)
    threads: set[str] = field(default_factory=set)

    def said(self, call: CallKey, request_sha256: str) -> bytes | None:
        return self.kept.get((call, request_sha256))

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        self.kept[call, request_sha256] = reply
        self.threads.add(threading.current_thread().name)
        self.arrived.set()


def opened(store: ImageStore, name: str = "openai:m", **settings: Any) -> Caller[bytes]:
    chosen = ModelSettings(**settings)
    return Caller(ChatCompletionsClient(name, chosen, store), chosen, backoff=QUICK)


def chat(recorder: Any, store: ImageStore, **settings: Any) -> Caller[bytes]:
    return opened(store, **{"base_url": f"{recorder.url}/v1", **settings})


async def asked(model: Caller[bytes], text: str = "Which?", tools: Any = (), call: CallKey = CALL) -> AssistantMessage:
    try:
        return await model.chat([user_message([text])], tools, call)
    finally:
        await model.close()


def read(value: Any) -> AssistantMessage:
    return message(readable(json.dumps(value).encode()), CALL)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("(A)", "(A)"),
        (None, ""),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "(A)"}], "(A)"),
        (["(A)", 5, None, {"type": "text", "text": None}], "(A)"),
        ("half a \ud83d character", "half a \ufffd character"),
    ],
)
def test_content_in_every_form(content: Any, text: str) -> None:
    assert read(body(content)).text == text


@pytest.mark.parametrize(
    "arguments", ["[1, 2]", "5", '"crop"', "true", "{oops", "NaN", '{"x": NaN}', "[" * 50_000, 5, [1]]
)
def test_arguments_that_are_no_object_are_an_invalid_call(arguments: Any) -> None:
    reply = read(calling(one_call(arguments)))
    assert reply.calls == ()
    (bad,) = reply.invalid
    assert (bad.name, bad.id) == ("crop", "c1")
    assert bad.written == (arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert bad.error
    # Servers that read the arguments of earlier calls refuse a conversation in which they are no object.
    [sent] = wire_messages([reply], dict, "m")[0]["tool_calls"]
    assert json.loads(sent["function"]["arguments"]) == {"unreadable": bad.written}


@pytest.mark.parametrize(
    ("arguments", "args"),
    [('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1}), ("", {}), (None, {}), ("null", {}), ("  ", {})],
)
def test_arguments_that_can_be_read_are(arguments: Any, args: Any) -> None:
    assert read(calling(one_call(arguments))).calls[0].args == args


def test_calls_without_id_name_or_function_can_be_answered() -> None:
    reply = read(calling({"function": {"name": "crop", "arguments": "{}"}}, {"id": 5}, "nonsense"))
    assert [call.id for call in reply.calls] == ["c01002000"]
    assert [(call.id, call.name) for call in reply.invalid] == [
        ("c01002001", None),
        ("c01002002", None),
    ]
    assert read(calling(one_call("{}", function={"name": None}))).calls[0].name == ""


def test_usage_and_why_it_ended() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 3}}
    reply = read({**body("", "length"), "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 4}}})
    assert (reply.usage, reply.finish_reason) == (TokenUsage(5, 7, 3, 4), "length")
    odd = read({**body(), "usage": {"prompt_tokens": "5", "completion_tokens": -1, "prompt_tokens_details": 3}})
    assert odd.usage is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices": null}',
        b'{"choices": []}',
        b'{"choices": [5]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"content": ""}}]}',
        b'{"error": {"message": "overloaded"}, "choices": [{"message": {"content": "x"}}]}',
        b"[" * 100_000,
        json.dumps(body()).encode()[:-5],
    ],
)
def test_what_holds_no_message_is_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableReplyError):
        readable(data)


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


def test_a_reply_of_five_megabytes_is_quick() -> None:
    for value in (body("word " * 1_000_000), calling(one_call("[" + "1," * 2_400_000)), body("\ud83d " * 700_000)):
        data = json.dumps(value).encode()
        started = time.process_time()
        message(readable(data), CALL)
        assert time.process_time() - started < 1.5


async def test_a_reply_above_the_limit_is_unreadable(recorder: Any, store: ImageStore) -> None:
    recorder.says(body("x" * LARGEST_REPLY))
    with pytest.raises(Outage, match=r"no reply after 1 attempts.*more than 8,388,608 bytes"):
        await asked(chat(recorder, store, retries=0))


async def test_a_large_request_goes_out(recorder: Any, store: ImageStore) -> None:
    recorder.says(body())
    await asked(chat(recorder, store), "word " * 500_000)
    assert len(recorder.requests[0][1]["messages"][0]["content"][0]["text"]) == 2_500_000


async def test_a_kept_reply_is_not_asked_for_again(recorder: Any, store: ImageStore, crop_tool: Tool) -> None:
    recorder.says(calling(one_call("[1]"), one_call('{"images": ["img:1"]}')))
    log, replies = Pages(), []
    for _ in range(2):
        model = chat(recorder, store)
        model.listen(log)
        replies.append(await asked(model, tools=(crop_tool,)))
    first, again = replies
    assert len(recorder.requests) == 1
    assert (again.calls, again.invalid) == (first.calls, first.invalid)
    assert [reply.attempts for reply in replies] == [1, 0]
    (key,) = log.kept
    assert key[0] == CALL
    assert len(key[1]) == 64


@pytest.mark.parametrize("changed", ["call", "text", "options", "log"])
async def test_another_request_is_asked(changed: str, recorder: Any, store: ImageStore) -> None:
    recorder.says(body())
    log = Pages()
    first = chat(recorder, store)
    first.listen(log)
    await asked(first)
    if changed == "log":
        log.kept = dict.fromkeys(log.kept, b"damaged")
    other = chat(recorder, store, max_tokens=5 if changed == "options" else None)
    other.listen(log)
    call = CallKey("q", 1, 2, "sha", "mllm") if changed == "call" else CALL
    await asked(other, "What?" if changed == "text" else "Which?", call=call)
    assert len(recorder.requests) == 2


async def test_only_replies_that_can_be_read_are_kept(recorder: Any, answer: Any, store: ImageStore) -> None:
    recorder.says(answer({"error": "x"}, 500), answer(b"{oops"), answer({"error": "x"}), body())
    log = Pages()
    model = chat(recorder, store)
    model.listen(log)
    await asked(model)
    assert [json.loads(reply) for reply in log.kept.values()] == [body()]


async def test_a_reply_is_kept_while_the_loop_is_busy(recorder: Any, store: ImageStore) -> None:
    recorder.says(body())
    log = Pages()
    model = chat(recorder, store)
    model.listen(log)
    work = asyncio.create_task(asked(model))
    while not recorder.requests:
        await asyncio.sleep(0)
    # The loop stands still until the reply is kept: nothing but the other thread can do that.
    assert log.arrived.wait(10)
    assert log.threads == {"model connections"}
    assert (await work).text == "(A)"


async def test_a_disk_that_is_full_does_not_cost_the_reply(recorder: Any, store: ImageStore) -> None:
    class Full(Pages):
        def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
            raise OSError(28, "No space left on device")

    recorder.says(body())
    model = chat(recorder, store)
    model.listen(Full())
    assert (await asked(model)).text == "(A)"
    assert len(recorder.requests) == 1


async def test_a_call_that_is_cancelled_lets_go(recorder: Any, answer: Any, store: ImageStore) -> None:
    done = threading.Event()
    recorder.says(answer(body(), pause=done), body())
    model = chat(recorder, store)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await model.chat([user_message(["slow"])], (), CALL)
        done.set()
        assert (await model.chat([user_message(["next"])], (), CALL)).text == "(A)"
    finally:
        done.set()
        await model.close()


async def test_closing_drops_what_is_in_flight(recorder: Any, answer: Any, store: ImageStore) -> None:
    done = threading.Event()
    recorder.says(answer(body(), pause=done))
    model = chat(recorder, store)
    calls = [asyncio.create_task(model.chat([user_message([f"{n}"])], (), CALL)) for n in range(3)]
    while len(recorder.requests) < 3:
        await asyncio.sleep(0)
    await model.close()
    done.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in ended] == [asyncio.CancelledError] * 3
    assert len(recorder.requests) == 3


async def test_requests_of_several_loops_get_their_own_replies(recorder: Any, store: ImageStore) -> None:
    recorder.says(body())
    model = chat(recorder, store)

    async def ask() -> list[str]:
        asked = (model.chat([user_message([f"{n}"])], (), CALL) for n in range(20))
        return [reply.text for reply in await asyncio.gather(*asked)]

    here, there = await asyncio.gather(ask(), asyncio.to_thread(lambda: asyncio.run(ask())))
    await model.close()
    assert here == there == ["(A)"] * 20
    assert len(recorder.requests) == 40


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_a_key_that_the_server_echoes_is_not_told(
    status: int, recorder: Any, answer: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-echo-0123456789")
    recorder.says(answer({"error": {"message": f"bad: {'sk-echo-0123456789'}, Bearer sk-echo-0123456789"}}, status))
    with pytest.raises((Outage, ModelRefused)) as told:
        await asked(chat(recorder, store, retries=0))
    assert "sk-echo" not in str(told.value)
    assert "[redacted]" in str(told.value)
    assert recorder.headers[0]["authorization"] == "Bearer sk-echo-0123456789"


async def test_query_user_and_organization_reach_the_server(
    recorder: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    recorder.says(body())
    url = recorder.url.replace("http://", "http://me:p%40ss@") + "/v1/?deployment=x1"
    model = chat(recorder, store, base_url=url, extra={"default_query": {"v": 2, "on": True}})
    await asked(model)
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


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "all_proxy"])
async def test_this_machine_is_reached_without_a_proxy(
    recorder: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for proxy in ("http://127.0.0.1:9", "socks5://127.0.0.1:9"):
        monkeypatch.setenv(variable, proxy)
        recorder.says(body())
        assert (await asked(chat(recorder, store, retries=0))).text == "(A)"


async def test_a_proxy_that_does_not_answer_is_named(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    client = ChatCompletionsClient("openai:m", ModelSettings(base_url="http://far.example/v1"), store)
    request = client.request([user_message(["Which?"])], (), CALL)
    with pytest.raises(ConnectionRefusedError, match="the proxy that the environment names does not answer") as error:
        await client.send(request, lambda _: None)
    assert not read_failure(error.value).reached
    await client.close()


async def test_a_request_goes_through_the_proxy(
    recorder: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", recorder.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    recorder.says(body())
    await asked(chat(recorder, store, base_url="http://far.example/v1"))
    assert recorder.requests[0][0] == "http://far.example/v1/chat/completions"


def test_equal_requests_are_equal_bytes_and_half_characters_go_out_as_question_marks() -> None:
    options: dict[str, Any] = {"temperature": 0.0}
    first, second = (b"".join(request_body("m", options, [{"content": "a\ud83d\u00fc"}])) for _ in range(2))
    assert first == second
    assert hashlib.sha256(first).hexdigest() == hashlib.sha256(second).hexdigest()
    assert json.loads(first)["messages"] == [{"content": "a?\u00fc"}]


@pytest.mark.parametrize("extra", [{}, {"top_k": 5}, {"messages": [], "tools": []}])
def test_what_is_put_together_of_pieces_is_one_json(extra: dict[str, Any]) -> None:
    def messages(*images: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": [{"image_url": {"url": f"data:image/png;base64,{one}"}} for one in images]}]

    tools = [{"type": "function", "function": {"name": "crop", "description": "what Ärzte \u2028 say"}}]
    options: dict[str, Any] = {"temperature": 0.0, "max_tokens": 5, "extra_body": extra}
    pieces = request_body("m", options, messages(PLACE, PLACE), as_json(tools), (b"Zmlyc3Q=", b"c2Vjb25k"))
    whole = {"model": "m", "stream": False, "messages": messages("Zmlyc3Q=", "c2Vjb25k"), "temperature": 0.0}
    whole |= {"max_completion_tokens": 5, "tools": tools, **extra}
    assert b"".join(pieces) == json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    assert pieces[1::2] == ([] if "messages" in extra else [b"Zmlyc3Q=", b"c2Vjb25k"])


async def test_another_image_is_another_request(
    recorder: Any, store: ImageStore, image: Callable[..., ImageRef]
) -> None:
    recorder.says(body())
    log = Pages()
    for seed in (1, 2, 1):
        model = chat(recorder, store)
        model.listen(log)
        try:
            await model.chat([user_message(["Which?", image("img:1", seed)])], (), CALL)
        finally:
            await model.close()
    assert len(recorder.requests) == len({key[1] for key in log.kept}) == 2


async def test_every_repetition_is_sent_a_seed_of_its_own(recorder: Any, store: ImageStore) -> None:
    recorder.says(body())
    model = chat(recorder, store, seed=3)
    try:
        for solver in ("mllm", "mllm@2", "controller@2", "mllm@3"):
            await asked(model, call=CallKey("q", solver=solver))
    finally:
        await model.close()
    sent = [request["seed"] for _, request in recorder.requests]
    assert sent == [3, seed_of_repetition(3, 2), seed_of_repetition(3, 2), seed_of_repetition(3, 3)]
    assert len(set(sent)) == 3


async def test_a_system_message_and_parts_of_earlier_replies(recorder: Any, store: ImageStore) -> None:
    recorder.says(body())
    model = opened(store, "openai:o3-mini", base_url=f"{recorder.url}/v1")
    history: list[Message] = [
        SystemMessage("Be brief."),
        user_message(["Which?"]),
        AssistantMessage("(A)", native={"content": [{"type": "thinking", "thinking": "hm"}]}),
        user_message(["Sure?"]),
    ]
    try:
        await model.chat(history, (), CALL)
    finally:
        await model.close()
    sent = recorder.requests[0][1]["messages"]
    assert [one["role"] for one in sent] == ["developer", "user", "assistant", "user"]
    assert sent[2] == {"role": "assistant", "content": "(A)"}


async def test_an_image_is_encoded_once(recorder: Any, store: ImageStore, image: Callable[..., ImageRef]) -> None:
    recorder.says(body())
    ref = image("img:1", 1)
    model = chat(recorder, store)
    try:
        for _ in range(2):
            await model.chat([user_message(["Which?", ref])], (), CALL)
            # What is in memory is not read again.
            store.path(ref.image.sha256).unlink(missing_ok=True)
    finally:
        await model.close()
    assert recorder.requests[0] == recorder.requests[1]


def test_a_secret_in_the_options_is_not_among_the_facts(store: ImageStore) -> None:
    keep_secret("another-secret")
    extra: Any = {"extra_body": {"auth": {"api_key": "tok-in-the-body"}, "note": "another-secret"}}
    facts = open_model("openai:m", ModelSettings(base_url="http://127.0.0.1:9", extra=extra), store).metadata()
    assert "tok-in-the-body" not in json.dumps(facts)
    assert "another-secret" not in json.dumps(facts)


async def test_a_reply_that_is_cut_off_or_no_http_is_asked_for_again(store: ImageStore) -> None:
    said = json.dumps(body()).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: "
    whole = head + b"%d\r\n\r\n" % len(said) + said
    answers = [whole[:-20], b"no HTTP at all\r\n\r\n", whole]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in told.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(size.partition(b":")[2]))
        writer.write(answers.pop(0))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = opened(store, base_url=url, retries=2)
        reply = await asked(model)
    assert (reply.text, reply.attempts, answers) == ("(A)", 3, [])


def responses_body(called: dict[str, Any]) -> dict[str, Any]:
    """A call in the form of the responses API."""
    call = {"type": "function_call", "id": "fc1", "call_id": called["id"], "status": "completed", **called["function"]}
    whole = {"id": "r1", "object": "response", "created_at": 0, "model": "m", "status": "completed", "output": [call]}
    return {**whole, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


@pytest.mark.parametrize("arguments", ["[1, 2]", "5", '"crop"', "true", "{oops", "NaN"])
@pytest.mark.parametrize("extra", [{"logprobs": True}, {"api": "responses"}])
async def test_langchain_gives_the_same_invalid_call_as_this_client(
    recorder: Any, store: ImageStore, crop_tool: Any, extra: dict[str, Any], arguments: str
) -> None:
    called = one_call(arguments)
    recorder.says(responses_body(called) if "api" in extra else calling(called))
    model = open_model("openai:m", ModelSettings(base_url=recorder.url, extra=extra, retries=3), store)
    assert isinstance(model, Caller)
    assert isinstance(model.client, LangChainClient)
    question = user_message(["q"])
    try:
        reply = await model.chat([question], [crop_tool], CallKey("q"))
        assert (reply.invalid, reply.calls) == (read(calling(called)).invalid, ())
        assert len(recorder.requests) == 1
        told = ToolMessage("c1", "crop", ("the arguments must be one valid JSON object",), failed=True)
        await model.chat([question, reply, told], [crop_tool], CallKey("q"))
    finally:
        await model.close()
    assert "must be one valid JSON object" in json.dumps(recorder.requests[1][1])
    assert len(recorder.requests) == 2
