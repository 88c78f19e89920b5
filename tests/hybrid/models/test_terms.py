"""Limits and requirements of servers (unsupported options, streaming only, thoughts sent back), with the real
client."""

import asyncio
import json
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, Message, ToolMessage, readable, user_message
from hybrid.models import CallKey, ModelRefused
from hybrid.models.caller import Caller
from hybrid.models.chat_completions.client import ChatCompletionsClient
from hybrid.models.failures import Backoff
from hybrid.tool import Tool
from tests.hybrid.models.reply_log import Pages
from tests.hybrid.models.test_streams import DONE, STOP, USAGE, piece, stream
from tests.servers import JsonHandler, LocalServer, listening
from tests.tables import cases

PIECES = {"content-type": "text/event-stream; charset=utf-8"}

REPLY = {
    "choices": [{"message": {"role": "assistant", "content": "(A)"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 7},
}
IN_PIECES = stream(piece(content="(A"), piece(content=")"), STOP, {"choices": [], "usage": USAGE}, DONE)


def opened(url: str, store: ImageStore, **settings: Any) -> Caller[Any]:
    model_settings = ModelSettings(base_url=f"{url}/v1", **{"max_tokens": 9, "seed": 3, "retries": 0, **settings})
    client = ChatCompletionsClient("openai:m", model_settings, store)
    return Caller(client, model_settings, backoff=Backoff(base_s=0.01, cap_s=0.02))


async def ask(model: Caller[Any], *messages: Message, tools: tuple[Tool, ...] = (), call: int = 0) -> AssistantMessage:
    return await model.chat(messages or [user_message(["Which?"])], tools, CallKey("q", 0, call))


def error_body(text: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": text, "type": "invalid_request_error", **more}}


NEWER = "max_completion_tokens"
UNKNOWN = {name: tuple(rest) for name, *rest in cases(__file__, "UNKNOWN", list)[1]}


@pytest.mark.parametrize("server", UNKNOWN)
async def test_an_option_that_a_server_does_not_know_is_named_otherwise_or_left_out_once(
    server: str, recorder: Any, answer: Any, store: ImageStore, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal, status, names = UNKNOWN[server]
    recorder.says(answer(refusal, status), REPLY)
    model = opened(recorder.url, store)
    assert [(await ask(model, call=number)).text for number in range(2)] == ["(A)", "(A)"]
    first, second, third = (request for _, request in recorder.requests)
    for name in names.split():
        assert name in first
        assert name not in second
        assert (NEWER not in names) or second["max_tokens"] == 9
    assert first.keys() - second.keys() == {*names.split()}
    assert third == second
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == len(names.split())
    assert all("from now on requests " in note for note in notes)
    assert len(model.connection()["terms"]) == len(notes)  # type: ignore[arg-type]
    await model.close()


CHANGES_WHAT_IS_MEASURED = {name: tuple(rest) for name, *rest in cases(__file__, "CHANGES_WHAT_IS_MEASURED")[1]}


@pytest.mark.parametrize("server", CHANGES_WHAT_IS_MEASURED)
async def test_what_would_change_the_measurement_is_refused_with_what_allows_it(
    server: str, recorder: Any, answer: Any, store: ImageStore
) -> None:
    refusal, settings, words = CHANGES_WHAT_IS_MEASURED[server]
    recorder.says(answer(refusal, 400))
    model = opened(recorder.url, store, **settings)
    with pytest.raises(ModelRefused, match=words):
        await ask(model)
    assert len(recorder.requests) == 1
    await model.close()


async def test_sixty_four_in_flight_learn_it_together(store: ImageStore, capsys: pytest.CaptureFixture[str]) -> None:
    results: list[bool] = []

    class Strict(JsonHandler):
        def posted(self, body: bytes) -> None:
            # Other threads of the server append as well.
            seeded = b'"seed"' in body
            results.append(seeded)
            values = error_body("Unrecognized request argument supplied: seed"), 400
            self.answer(*(values if seeded else (REPLY, 200)))

    with listening(LocalServer(Strict)) as server:
        model = opened(server.url, store)
        replies = await asyncio.gather(*(ask(model, call=number) for number in range(64)))
        await model.close()
    assert {reply.text for reply in replies} == {"(A)"}
    assert {reply.attempts for reply in replies} == {1}
    assert results.count(False) == 64
    assert results.count(True) <= 64
    assert capsys.readouterr().err.count("from now on") == 1


@pytest.mark.parametrize("text", [*(text for (text,) in cases(__file__, "ONLY_STREAMS")[1]), ""])
async def test_a_server_that_streams_is_asked_so_from_then_on(
    text: str, recorder: Any, answer: Any, store: ImageStore, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = answer(IN_PIECES, 200, PIECES)
    recorder.says(*([answer(error_body(text), 400)] if text else []), pieces)
    model = opened(recorder.url, store)
    replies = [await ask(model, call=number) for number in range(3)]
    assert {(reply.text, reply.usage.output_tokens if reply.usage else None) for reply in replies} == {("(A)", 7)}
    streams = [request["stream"] for _, request in recorder.requests]
    assert streams == [False, True, True, *([True] if text else [])]
    assert recorder.requests[1][1]["stream_options"] == {"include_usage": True}
    assert capsys.readouterr().err.count("as streams") == 1
    await model.close()


async def test_a_fault_in_the_middle_is_asked_again_and_the_reply_is_kept(
    recorder: Any, answer: Any, store: ImageStore
) -> None:
    cut = IN_PIECES[:60]
    error = stream(piece(content="(A"), {"error": {"message": "overloaded", "code": 503}})
    recorder.says(*(answer(body, 200, PIECES) for body in (cut, error, IN_PIECES)))
    model = opened(recorder.url, store, stream="on", retries=3)
    pages = Pages()
    model.listen(pages)
    reply = await ask(model)
    assert (reply.text, reply.attempts) == ("(A)", 3)
    # The kept reply also answers the same request if it is not streamed.
    second = opened(recorder.url, store)
    second.listen(pages)
    assert (await ask(second)).attempts == 0
    assert len(recorder.requests) == 3
    await model.close()
    await second.close()


def thinking(**message: Any) -> dict[str, Any]:
    function = {"name": "crop", "arguments": '{"box": [0, 0, 5, 5]}'}
    call = {"id": "c1", "type": "function", "function": function, "extra_content": {"google": {"thought": "s"}}}
    messages = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call],
        "refusal": None,
        "annotations": [],
        **message,
    }
    return {"choices": [{"message": messages, "finish_reason": "tool_calls"}]}


async def test_a_field_of_its_own_that_a_server_does_not_take_back_is_left_out(
    recorder: Any, answer: Any, store: ImageStore, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = error_body("messages.1.assistant.tool_calls.0.rank: Extra inputs are not permitted")
    reply = thinking(mood="calm")
    reply["choices"][0]["message"]["tool_calls"][0]["rank"] = 1
    recorder.says(reply, answer({"error": {**refusal["error"], "code": 400}}), REPLY)
    model = opened(recorder.url, store)
    first = await ask(model)
    output = await ask(model, user_message(["Which?"]), first, ToolMessage("c1", "crop", ("done",)), call=1)
    assert output.text == "(A)"
    sent = recorder.requests[-1][1]["messages"][1]
    assert (sent["mood"], sent["tool_calls"][0].keys()) == ("calm", {"id", "type", "function", "extra_content"})
    assert "requests omit rank, a field that the server itself had sent" in capsys.readouterr().err
    await model.close()


async def test_what_no_request_can_hold_does_not_go_back(recorder: Any, store: ImageStore) -> None:
    deep = json.loads("[" * 900 + "]" * 900)
    recorder.says(thinking(odd=float("nan"), deep=deep, content=[{"type": "thinking", "thinking": deep}], sound=1))
    model = opened(recorder.url, store)
    reply = readable(await ask(model))
    assert reply.native is not None
    await ask(model, user_message(["Which?"]), reply, ToolMessage("c1", "crop", ("done",)), call=1)
    sent = recorder.requests[-1][1]["messages"][1]
    assert sent.keys() == {"role", "content", "tool_calls", "sound"}
    assert sent["content"] is None
    await model.close()


async def test_a_server_that_wants_dropped_thoughts_or_takes_none_back_is_told_of_by_option(
    recorder: Any, answer: Any, store: ImageStore
) -> None:
    wants = error_body("The `reasoning_content` in the thinking mode must be passed back to the API.")
    takes_none = error_body("'messages.1' : property 'reasoning_content' is unsupported")
    for thoughts, refusal, words in (
        ("drop", wants, "--reasoning drop leaves out"),
        ("keep", takes_none, "--reasoning drop sends"),
    ):
        recorder.says(thinking(reasoning_content="I look"), answer(refusal, 400))
        model = opened(recorder.url, store, thoughts=thoughts)
        reply = await ask(model)
        with pytest.raises(ModelRefused, match=words):
            await ask(model, user_message(["Which?"]), reply, ToolMessage("c1", "crop", ("done",)), call=1)
        await model.close()
