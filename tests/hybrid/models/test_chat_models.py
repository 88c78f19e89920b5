"""Providers without a row of their own, and models that Python code passes in; over a real server if one is needed."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

import hybrid
from hybrid.config import ModelSettings, Objects, RunConfig
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ToolCall, user_message
from hybrid.models import CallKey, ModelRefused, open_model
from hybrid.models.langchain.chat_models import chat_model_metadata, model_name
from hybrid.models.langchain.messages import to_langchain
from hybrid.running.resolve import prepare
from tests.tables import cases, stored

KEY = "a-key-that-nobody-may-read-0123"
GOOD: dict[str, Any] = stored(__file__, "GOOD")


@pytest.fixture
def azure(recorder: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server at the address that Azure's client reads from its environment."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", recorder.url)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-06-01")
    return recorder


@pytest.mark.system
async def test_its_pool_follows_no_redirection_and_retries_are_ours(
    azure: Any, other_recorder: Any, answer: Any, store: ImageStore
) -> None:
    other_recorder.says(GOOD)
    azure.says(answer(b"", 307, {"location": other_recorder.url}))
    model = open_model("azure_openai:m", ModelSettings(), store)
    with pytest.raises(ModelRefused, match="redirects to"):
        await model.chat([user_message(["Which?"])], (), CallKey("q"))
    await model.close()
    assert (len(azure.requests), other_recorder.requests) == (1, [])


@pytest.mark.parametrize(*cases(__file__, "test_what_is_missing_is_named"))
def test_what_is_missing_is_named(name: str, message: str, store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-06-01")
    with pytest.raises(UsageError, match=message):
        open_model(name, ModelSettings(), store)


def test_a_model_object_is_known_by_its_class_and_what_is_no_secret() -> None:
    from langchain_openai import ChatOpenAI

    client = ChatOpenAI(
        model="gpt-4o",
        api_key=KEY,
        temperature=0.3,
        base_url="http://user:password-of-mine@127.0.0.1:9/v1",
        default_headers={"x-who": "me"},
        model_kwargs={"told": {"api_key": "one-more-secret-0123", "purpose": "test"}},
    )
    assert model_name(client) == "langchain:gpt-4o"
    facts: Any = chat_model_metadata(client)
    assert facts["class"] == "langchain_openai.chat_models.base.ChatOpenAI"
    options = facts["options"]
    assert (options["model_name"], options["temperature"]) == ("gpt-4o", 0.3)
    assert options["model_kwargs"] == {"told": {"purpose": "test"}}
    text = json.dumps(facts)
    assert not [word for word in (KEY, "one-more-secret", "password-of-mine", "127.0.0.1", "x-who") if word in text]


@pytest.mark.system
def test_a_run_asks_the_object_itself(tmp_path: Path) -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    request: dict[str, Any] = {"data": "sample", "task": "Jigsaw", "limit": 2, "solvers": "mllm"}
    options = {**request, "model": FakeListChatModel(responses=["Answer: (A)"]), "out": tmp_path / "run"}
    report: Any = hybrid.run("blink", **options).as_json()
    assert report["solvers"]["mllm"]["outcomes"] == {"answered": 2}
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    model = manifest["identity"]["model"]
    assert model["model"] == "langchain:FakeListChatModel"
    assert model["class"].endswith(".FakeListChatModel")
    assert model["options"] == {"responses": ["Answer: (A)"]}
    with pytest.raises(UsageError, match="holds a run of another configuration"):
        hybrid.run("blink", **{**options, "model": FakeListChatModel(responses=["(B)"])})


def test_what_the_object_has_itself_is_refused(store: ImageStore) -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    client = FakeListChatModel(responses=["(A)"])
    with pytest.raises(UsageError, match="max_tokens=5: set it on the model object"):
        open_model("langchain:x", ModelSettings(max_tokens=5), store, client)
    with pytest.raises(UsageError, match="or pass a LangChain chat model"):
        hybrid.run("blink", model=3.5)
    with pytest.raises(UsageError, match="not on --engine ray"):
        prepare(RunConfig("blink", data="sample", model="langchain:x", objects=Objects(client), engine="ray"))


async def test_an_object_without_tools_says_what_to_do(store: ImageStore, crop_tool: Any) -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    model = open_model("langchain:x", ModelSettings(), store, FakeListChatModel(responses=["(A)"]))
    with pytest.raises(ModelRefused, match="--tool-calling text"):
        await model.chat([user_message(["Which?"])], (crop_tool,), CallKey("q"))


def refusal(answer: Any, words: str) -> Any:
    return answer({"error": {"message": words, "type": "invalid_request_error"}}, 400)


async def test_a_server_that_is_asked_through_langchain_is_asked_without_what_it_does_not_know(
    recorder: Any, answer: Any, store: ImageStore, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder.says(refusal(answer, "Unrecognized request argument supplied: seed"), GOOD)
    settings = ModelSettings(base_url=recorder.url, seed=3, extra={"n": 1}, retries=0)
    model = open_model("openai:m", settings, store)
    for number in range(2):
        assert (await model.chat([user_message(["Which?"])], (), CallKey("q", call=number))).text == "(A)"
    assert ["seed" in body for _, body in recorder.requests] == [True, False, False]
    assert "requests omit seed" in str(model.connection()["terms"])
    assert capsys.readouterr().err.count("from now on requests omit seed") == 1
    await model.close()


STREAMED = b'data: {"id":"1","choices":[]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(*cases(__file__, "test_what_langchain_cannot_change_in_how_it_asks_is_refused_in_words"))
async def test_what_langchain_cannot_change_in_how_it_asks_is_refused_in_words(
    words: str, settings: dict[str, Any], message: str, recorder: Any, answer: Any, store: ImageStore
) -> None:
    recorder.says(refusal(answer, words) if words else answer(STREAMED, 200, {"content-type": "text/event-stream"}))
    model = open_model("openai:m", ModelSettings(base_url=recorder.url, extra={"n": 1}, **settings), store)
    with pytest.raises(ModelRefused, match=message):
        await model.chat([user_message(["Which?"])], (), CallKey("q"))
    assert len(recorder.requests) == 1
    await model.close()


@pytest.mark.parametrize(*cases(__file__, "test_repairs_are_counted_as_those_of_our_own_client"))
async def test_repairs_are_counted_as_those_of_our_own_client(
    arguments: str, repairs: tuple[str, ...], recorder: Any, store: ImageStore, crop_tool: Any
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    recorder.says({**GOOD, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]})
    for extra in ({"n": 1}, {}):
        model = open_model("openai:m", ModelSettings(base_url=recorder.url, extra=extra), store)
        reply = await model.chat([user_message(["Which?"])], (crop_tool,), CallKey("q"))
        assert [(item.args, item.repairs) for item in reply.calls] == [({"zoom": 3}, repairs)]
        await model.close()


def cut_call(answer: Any, reason: str | None, *earlier: str) -> Any:
    """Return a stream that is cut within the number 34 in its last call; the `earlier` calls are complete."""
    functions = [{"name": "crop", "arguments": arguments} for arguments in (*earlier, '{"zoom": 3')]
    calls = [{"index": i, "id": f"c{i}", "type": "function", "function": part} for i, part in enumerate(functions)]
    deltas = [({"role": "assistant", "tool_calls": calls}, None), ({}, reason)]
    choices = [{"index": 0, "delta": delta, "finish_reason": end} for delta, end in deltas]
    chunks = [
        {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"} | {"choices": [choice]}
        for choice in choices
    ]
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return answer(events.encode(), 200, {"content-type": "text/event-stream"})


@pytest.mark.parametrize(
    ("reason", "is_valid"), [("length", False), ("content_filter", False), (None, False), ("tool_calls", True)]
)
async def test_the_last_call_of_a_stream_that_was_cut_is_invalid(
    reason: str | None, is_valid: bool, recorder: Any, answer: Any, store: ImageStore, crop_tool: Any
) -> None:
    from langchain_openai import ChatOpenAI

    recorder.says(cut_call(answer, reason))
    client = ChatOpenAI(model="m", base_url=recorder.url, api_key=KEY, streaming=True)
    model = open_model("langchain:m", ModelSettings(), store, client)
    reply = await model.chat([user_message(["Which?"])], (crop_tool,), CallKey("q"))
    await model.close()
    assert recorder.requests[0][1]["stream"] is True
    # LangChain completes the arguments of each cut call.
    assert [call.args for call in reply.calls] == ([{"zoom": 3}] if is_valid else [])
    assert [call.error for call in reply.invalid] == ([] if is_valid else ["the reply ended within the call"])


@pytest.mark.parametrize("earlier", ['{"zoom": }', "[1, 2]"])
async def test_the_last_call_of_a_cut_stream_is_invalid_after_an_unreadable_call(
    earlier: str, recorder: Any, answer: Any, store: ImageStore, crop_tool: Any
) -> None:
    from langchain_openai import ChatOpenAI

    recorder.says(cut_call(answer, "length", earlier))
    client = ChatOpenAI(model="m", base_url=recorder.url, api_key=KEY, streaming=True)
    model = open_model("langchain:m", ModelSettings(), store, client)
    reply = await model.chat([user_message(["Which?"])], (crop_tool,), CallKey("q"))
    await model.close()
    assert reply.calls == ()
    assert {call.id for call in reply.invalid} == {"c0", "c1"}


@pytest.mark.parametrize("is_object", [True, False])
async def test_watching_a_graph_does_not_change_how_a_model_is_asked(
    is_object: bool, recorder: Any, store: ImageStore
) -> None:
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, StateGraph

    recorder.says(GOOD)
    client = ChatOpenAI(model="m", base_url=recorder.url, api_key=KEY) if is_object else None
    settings = ModelSettings() if is_object else ModelSettings(base_url=recorder.url, extra={"n": 1})
    model = open_model("langchain:m" if is_object else "openai:m", settings, store, client)

    async def ask(_: dict[str, str]) -> dict[str, str]:
        reply = await model.chat([user_message(["Which?"])], (), CallKey("q"))
        return {"answer": reply.text}

    graph = StateGraph(dict)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    watched = [part async for part in graph.compile().astream({}, stream_mode="messages")]
    await model.close()
    assert [bool(request.get("stream")) for _, request in recorder.requests] == [False], watched


@pytest.mark.parametrize("native", [None, AIMessage("", id="r1").model_dump()])
def test_an_earlier_call_is_also_sent_where_chat_nvidia_reads_it(native: Any) -> None:
    call = ToolCall("c1", "depth", {"point": "A"})
    (message,), _ = to_langchain([AssistantMessage("", (call,), native=native)], _no_image)
    assert message.additional_kwargs["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "depth", "arguments": '{"point": "A"}'}}
    ]
    assert message.id == (native or {}).get("id")


def _no_image(_: Any) -> Any:
    raise AssertionError("no message has an image")
