"""Conversations with Ollama, against a local server that behaves as documented. Ollama itself does not run here."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    user_message,
)
from hybrid.core.types import ImageRef
from hybrid.models import CallKey, ModelRefused, open_model, remembering
from hybrid.models.chat_completions import stream
from hybrid.models.failures import StatusError
from hybrid.models.ollama.client import NUM_CTX, server_url
from hybrid.models.ollama.codec import CONTEXT_FULL, readable
from hybrid.tool import Tool
from tests.hybrid.models.reply_log import Pages

Images = Callable[..., ImageRef]
CALL = {"function": {"index": 0, "name": "crop", "arguments": {"image": "img:1", "box": [0, 0, 1, 1]}}}


def reply(text: str = "Answer: (A)", **changed: Any) -> dict[str, Any]:
    messages = {"role": "assistant", "content": text, **changed.pop("message", {})}
    payload = {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": messages,
        "done": True,
        "done_reason": "stop",
    }
    return {**payload, "prompt_eval_count": 100, "eval_count": 7, **changed}


def lines(*pieces: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(piece).encode() + b"\n" for piece in pieces)


async def ask(
    recorder: Any, store: ImageStore, messages: list[Message] | None = None, tools: tuple[Tool, ...] = (), **more: Any
) -> AssistantMessage:
    settings = ModelSettings(**{"base_url": recorder.url, "retries": 0, **more})
    model = open_model("ollama:qwen3-vl:8b", settings, store)
    try:
        return await model.chat(messages or [user_message(["Which?"])], tools, CallKey("q"))
    finally:
        await model.close()


def in_order(body: dict[str, Any]) -> list[str]:
    """Return the texts and pictures of a request in a model's order, whether its template puts text or pictures
    first."""
    names: list[str] = []
    for message in body["messages"]:
        assert not (message["content"] and message.get("images")), "a template could take them in either order"
        names += [line for line in message["content"].split("\n") if line]
        names += ["picture"] * len(message.get("images", ()))
    return names


async def test_the_context_is_declared_and_nothing_may_be_cut(recorder: Any, store: ImageStore) -> None:
    recorder.says(reply())
    await ask(recorder, store)
    body = recorder.requests[0][1]
    assert (body["options"]["num_ctx"], body["truncate"], body["shift"], body["stream"]) == (
        NUM_CTX,
        False,
        False,
        False,
    )
    extra = {"num_ctx": 8192, "top_p": 0.5, "keep_alive": "30m", "format": {"type": "object"}, "think": True}
    await ask(recorder, store, extra=extra, temperature=0.3, seed=5, max_tokens=40)
    body = recorder.requests[1][1]
    assert body["options"] == {"num_ctx": 8192, "top_p": 0.5, "temperature": 0.3, "seed": 5, "num_predict": 40}
    assert {name: body[name] for name in ("keep_alive", "format", "think")} == {
        name: extra[name] for name in ("keep_alive", "format", "think")
    }
    assert "authorization" not in recorder.headers[1]


@pytest.mark.parametrize(("effort", "think"), [("none", False), ("low", "low"), ("max", "max")])
async def test_an_effort_is_a_level_of_thinking(effort: str, think: Any, recorder: Any, store: ImageStore) -> None:
    recorder.says(reply())
    await ask(recorder, store, reasoning_effort=effort)
    assert recorder.requests[0][1]["think"] == think


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"colour": 1}, "--model-arg colour: ollama has no such option"),
        ({"num_ctx": "long"}, "--model-arg num_ctx=long: write a number"),
        ({"num_ctx": 0}, "num_ctx=0"),
        ({"num_ctx": True}, "num_ctx=True"),
        ({"api": "chat"}, "ollama has only one API"),
    ],
)
def test_an_option_that_ollama_does_not_have_is_refused(extra: dict[str, Any], message: str, store: ImageStore) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        open_model("ollama:m", ModelSettings(extra=extra), store)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (None, "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - it is replaced
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":99", "http://127.0.0.1:99"),
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:99", "http://gpu-box:99"),
        ("::1", "http://[::1]:11434"),
        ("http://gpu-box", "http://gpu-box"),
        ("https://gpu-box/x/", "https://gpu-box/x"),
        ("ollama.com", "https://ollama.com"),
    ],
)
def test_an_address_is_read_as_ollama_reads_it(text: str | None, address: str) -> None:
    assert server_url(text) == address


@pytest.mark.parametrize("text", ["ftp://gpu-box", "http://gpu-box:x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        server_url(text)


@pytest.mark.parametrize("path", ["", "/v1", "/api", "/api/chat", "/v1/chat/completions"])
async def test_the_address_comes_from_the_environment(
    path: str, recorder: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", recorder.url.removeprefix("http://") + path)
    monkeypatch.setenv("OLLAMA_API_KEY", "a-key-of-the-cloud-1")
    recorder.says(reply())
    await ask(recorder, store, base_url=None)
    assert recorder.requests[0][0] == "/api/chat"
    assert recorder.headers[0]["authorization"] == "Bearer a-key-of-the-cloud-1"


async def test_pictures_stay_behind_their_labels(recorder: Any, store: ImageStore, image: Images) -> None:
    recorder.says(reply())
    messages: list[Message] = [
        SystemMessage("Look."),
        user_message(["Which one?", image("img:1", 1), image("img:2", 2), "Say A or B."]),
        AssistantMessage("", (ToolCall("c1", "crop", {}), ToolCall("c2", "crop", {}))),
        ToolMessage("c1", "crop", ("first", ImagePart(image("img:1.1", 3)))),
        ToolMessage("c2", "crop", ("second", ImagePart(image("img:2.1", 4)))),
    ]
    sent = await ask(recorder, store, messages)
    body = recorder.requests[0][1]
    assert [text for text in in_order(body) if text == "picture" or re.match(r"img:[\d.]+:$", text)] == [
        *("img:1:", "picture", "img:2:", "picture"),
        *("img:1.1:", "picture", "img:2.1:", "picture"),
    ]
    assert in_order(body)[-1] == "picture"
    assert [item.name for item in sent.images_sent or ()] == ["img:1", "img:2", "img:1.1", "img:2.1"]
    pictures = [data for message in body["messages"] for data in message.get("images", ())]
    assert len(set(pictures)) == 4


async def test_pictures_without_labels_go_out_in_order(recorder: Any, store: ImageStore, image: Images) -> None:
    recorder.says(reply())
    parts = ("Compare.", ImagePart(image("img:1", 1), labelled=False), ImagePart(image("img:2", 2), labelled=False))
    await ask(recorder, store, [UserMessage(parts)])
    assert in_order(recorder.requests[0][1]) == ["Compare.", "picture", "picture"]


async def test_a_text_cannot_stand_for_a_picture(recorder: Any, store: ImageStore, image: Images) -> None:
    recorder.says(reply())
    result = ToolMessage("c1", "ocr", ("it reads [img-0] and [img]",))
    call = AssistantMessage("", (ToolCall("c1", "ocr", {}),))
    await ask(recorder, store, [user_message(["See [img-0].", image("img:1", 1)]), call, result])
    texts = " ".join(message["content"] for message in recorder.requests[0][1]["messages"])
    assert re.search(r"\[img(-\d+)?\]", texts) is None
    assert "[ img-0]" in texts


async def test_a_template_that_wants_turns_to_alternate_gets_them(
    recorder: Any, answer: Any, store: ImageStore, image: Images, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"error": "llama-server template error: Conversation roles must alternate user/assistant/user/..."}
    recorder.says(answer(refusal, 500), reply(), reply())
    settings = ModelSettings(base_url=recorder.url)
    model = open_model("ollama:m", settings, store)
    try:
        for number in range(2):
            await model.chat([user_message(["Which?", image("img:1", 1)])], (), CallKey(f"q{number}"))
        assert model.connection()["terms"] == ["the messages of a user turn are joined"]
    finally:
        await model.close()
    assert [len(body["messages"]) for _, body in recorder.requests] == [2, 1, 1]
    (joined,) = recorder.requests[1][1]["messages"]
    assert (joined["content"], len(joined["images"])) == ("Which?\nimg:1:\n[img]", 1)
    assert "accepts one message per turn" in capsys.readouterr().err


async def test_thinking_goes_back_with_the_conversation(recorder: Any, store: ImageStore, crop_tool: Tool) -> None:
    first = reply("", message={"thinking": "Closer.", "tool_calls": [{**CALL, "id": "call_7"}]})
    log = Pages()
    bodies: list[dict[str, Any]] = []
    recorder.says(first, reply(message={"thinking": "It is A."}))
    for _ in range(2):
        # In the second run both replies come from the log.
        model = remembering(open_model("ollama:m", ModelSettings(base_url=recorder.url), store), log)
        try:
            messages: list[Message] = [user_message(["Which?"])]
            text = await model.chat(messages, (crop_tool,), CallKey("q"))
            assert (text.reasoning, text.calls[0].id) == ("Closer.", "call_7")
            messages += [text, ToolMessage("call_7", "crop", ("found",))]
            assert (await model.chat(messages, (crop_tool,), CallKey("q", 0, 1))).reasoning == "It is A."
        finally:
            await model.close()
        bodies.append(recorder.requests[-1][1])
    assert len(recorder.requests) == 2
    _, said_back, result = bodies[0]["messages"]
    assert said_back == {
        "role": "assistant",
        "content": "",
        "thinking": "Closer.",
        "tool_calls": [{"id": "call_7", "function": CALL["function"]}],
    }
    assert result == {"role": "tool", "content": "found", "tool_name": "crop", "tool_call_id": "call_7"}


async def test_thinking_that_is_dropped_or_another_models_stays_here(recorder: Any, store: ImageStore) -> None:
    recorder.says(reply())
    message = AssistantMessage("A", reasoning="Hm.", native={"thinking": "Hm."}, said_by="ollama:qwen3-vl:8b")
    other = AssistantMessage("B", native={"message": {"x": 1}, "content": [], "calls": []}, said_by="openai:m")
    await ask(recorder, store, [user_message(["?"]), message, other, user_message(["!"])])
    await ask(recorder, store, [user_message(["?"]), message, user_message(["!"])], thoughts="drop")
    selected, dropped = (body["messages"] for _, body in recorder.requests)
    assert selected[1] == {"role": "assistant", "content": "A", "thinking": "Hm."}
    assert selected[2] == {"role": "assistant", "content": "B"}
    assert dropped[1] == {"role": "assistant", "content": "A"}


async def test_parallel_calls_are_told_apart(recorder: Any, store: ImageStore, crop_tool: Tool) -> None:
    same = {"function": {"name": "crop", "arguments": {"image": "img:1"}}}
    recorder.says(reply("", message={"tool_calls": [same, same, {"function": {"name": "crop", "arguments": "[1]"}}]}))
    output = await ask(recorder, store, tools=(crop_tool,))
    assert [call.args for call in output.calls] == [{"image": "img:1"}] * 2
    assert len({*(call.id for call in output.calls), *(call.id for call in output.invalid)}) == 3
    results: list[Message] = [ToolMessage(call.id, "crop", (f"r{place}",)) for place, call in enumerate(output.calls)]
    results.append(ToolMessage(output.invalid[0].id, "crop", ("no object",), failed=True))
    recorder.says(reply())
    await ask(recorder, store, [user_message(["?"]), output, *results], (crop_tool,))
    back = recorder.requests[-1][1]["messages"]
    assert [call["function"]["index"] for call in back[1]["tool_calls"]] == [0, 1, 2]
    assert back[1]["tool_calls"][2]["function"]["arguments"] == {"unreadable": "[1]"}
    assert [message["tool_call_id"] for message in back[2:]] == [call["id"] for call in back[1]["tool_calls"]]


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, (100, 7)),
        ({"prompt_eval_count": None}, None),
        ({"eval_count": None}, None),
        ({"prompt_eval_count": 0}, None),
        ({"prompt_eval_count": -1}, None),
        ({"eval_count": True}, None),
        # A gateway may write a count as a string (`hybrid/models/usage.py`).
        ({"eval_count": "7"}, (100, 7)),
        ({"eval_count": "seven"}, None),
    ],
)
async def test_what_was_not_counted_is_unknown(
    counts: dict[str, Any], usage: tuple[int, int] | None, recorder: Any, store: ImageStore
) -> None:
    by_value = {name: value for name, value in reply(**counts).items() if value is not None}
    recorder.says(by_value)
    text = (await ask(recorder, store)).usage
    assert (None if text is None else (text.input_tokens, text.output_tokens)) == usage


@pytest.mark.parametrize(
    ("reason", "read", "count", "finish"),
    [("length", 100, 7, "length"), ("length", 3900, 196, CONTEXT_FULL), ("stop", 3900, 196, "stop")],
)
async def test_a_reply_that_filled_the_context_says_so(
    reason: str, read: int, count: int, finish: str, recorder: Any, store: ImageStore
) -> None:
    recorder.says(reply(done_reason=reason, prompt_eval_count=read, eval_count=count))
    assert (await ask(recorder, store, extra={"num_ctx": 4096})).finish_reason == finish


@pytest.mark.parametrize("body", [reply(prompt_eval_count=4096), reply(prompt_eval_count=5000, done_reason="length")])
async def test_a_reply_to_a_prompt_that_was_cut_is_no_answer(body: Any, recorder: Any, store: ImageStore) -> None:
    recorder.says(body)
    log = Pages()
    settings = ModelSettings(base_url=recorder.url, extra={"num_ctx": 4096})
    model = remembering(open_model("ollama:m", settings, store), log)
    try:
        for _ in range(2):
            with pytest.raises(Outage, match=r"prompt was cut.*num_ctx=4096.*--model-arg num_ctx=8192"):
                await model.chat([user_message(["?"])], (), CallKey("q"))
    finally:
        await model.close()
    assert len(recorder.requests) == 2, "asked once each time, and not kept"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "the prompt is longer than the context length currently available to the model; shorten the prompt"),
        (400, "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        (500, "the input length exceeds the context length"),
        (500, "input length (9000 tokens) exceeds the model's maximum context length (4096 tokens)"),
    ],
)
async def test_a_prompt_that_is_too_long_is_asked_once_with_the_remedy(
    status: int, error: str, recorder: Any, answer: Any, store: ImageStore
) -> None:
    recorder.says(answer({"error": error}, status))
    with pytest.raises(Outage, match="--model-arg num_ctx=65536"):
        await ask(recorder, store, retries=3)
    assert len(recorder.requests) == 1


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (404, "model 'qwen3-vl:8b' not found", "ollama pull qwen3-vl:8b"),
        (404, 'model "qwen3-vl:8b" not found, try pulling it first', "ollama pull qwen3-vl:8b"),
        (400, '"qwen3-vl:8b" does not support thinking', "omit --reasoning-effort"),
        (400, "registry.ollama.ai/library/qwen3-vl:8b does not support tools", "--tool-calling text"),
        (500, "model requires more system memory (9.1 GiB) than is available (4.2 GiB)", "num_ctx=16384"),
        (401, "unauthorized", "rejected by the provider"),
        (400, '"qwen3-vl:8b" does not support images', "--images none"),
    ],
)
async def test_an_error_names_what_can_be_done(
    status: int, error: str, message: str, recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    recorder.says(answer({"error": error}, status))
    with pytest.raises(ModelRefused, match=re.escape(message)):
        await ask(recorder, store, tools=(crop_tool,), reasoning_effort="high")
    assert len(recorder.requests) == 1


@pytest.mark.parametrize(
    ("mapping", "error", "status"),
    [({"status": 503}, "busy", 503), ({}, {"message": "rate", "code": 429}, 429), ({}, "unexpected EOF", 500)],
)
def test_an_error_in_a_reply_has_the_status_that_it_names(mapping: dict[str, Any], error: Any, status: int) -> None:
    with pytest.raises(StatusError) as failed:
        readable(json.dumps({"error": error, **mapping}).encode())
    assert failed.value.status_code == status


async def test_a_model_of_the_cloud_wants_to_be_signed_in(recorder: Any, answer: Any, store: ImageStore) -> None:
    recorder.says(answer({"error": "unauthorized", "signin_url": "https://ollama.com/connect?name=x"}, 401))
    with pytest.raises(ModelRefused, match="ollama signin"):
        await ask(recorder, store)


BROKEN = "error parsing tool call: raw='{\"box\": [1, 2}]', err=invalid character '}' after array element"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("error", [BROKEN, "XML syntax error on line 3: unexpected EOF"])
async def test_a_call_that_ollama_could_not_parse_is_the_models_fault_and_asked_once(
    error: str, *, streamed: bool, recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    head = {"message": {"role": "assistant", "content": "", "thinking": "Hm."}, "done": False}
    body = answer(lines(head, {"error": error}), headers={"content-type": "application/x-ndjson"})
    recorder.says(body if streamed else answer({"error": error}, 500))
    output = await ask(recorder, store, tools=(crop_tool,), retries=3, stream="on" if streamed else "off")
    (invalid,) = output.invalid
    assert isinstance(invalid, InvalidCall)
    assert (invalid.error, invalid.written) == (error, '{"box": [1, 2}]' if error is BROKEN else "")
    assert (len(recorder.requests), output.calls, output.usage) == (1, (), None)


async def test_any_other_500_is_asked_again(recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool) -> None:
    recorder.says(answer({"error": "model runner has unexpectedly stopped"}, 500), reply())
    assert (await ask(recorder, store, tools=(crop_tool,), retries=1)).attempts == 2
    assert len(recorder.requests) == 2


@pytest.mark.parametrize("label", ["application/x-ndjson", "application/json"])
async def test_a_streamed_reply_is_the_same_as_a_whole_one(
    label: str, recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    rows: list[dict[str, Any]] = [{"thinking": word} for word in ("Lo", "ok.")]
    rows += [{"content": word} for word in ("Clo", "ser ", "\u00e9.")] + [{"tool_calls": [CALL]}] * 2
    pieces = [{"message": {"role": "assistant", "content": "", **part}, "done": False} for part in rows]
    pieces.append(reply(""))
    full = reply("Closer \u00e9.", message={"thinking": "Look.", "tool_calls": [CALL, CALL]})
    recorder.says(answer(lines(*pieces), headers={"content-type": label}), full)
    output = await ask(recorder, store, tools=(crop_tool,), stream="on")
    other = await ask(recorder, store, tools=(crop_tool,))
    assert output == other
    assert [body["stream"] for _, body in recorder.requests] == [True, False]


@pytest.mark.parametrize(
    "body",
    [
        lines({"message": {"content": "Answer: (A)"}, "done": False}),
        lines({"message": {"content": "A"}, "done": False}, {"error": "an error was encountered"}),
        lines({"message": {"content": "A"}, "done": False}) + b'{"mess',
        lines({"message": {"content": "A"}, "done": False}) + b"[1]\n",
        json.dumps(
            {"model": "m", "done": True, "done_reason": "load", "message": {"role": "assistant", "content": ""}}
        ).encode(),
        json.dumps({"model": "m", "message": {"role": "assistant", "content": "half"}, "done": False}).encode(),
        b"[]",
        b"{}",
        b'{"message": "text", "done": true}',
        b'{"message": {"content": 5}, "done": true}',
    ],
)
async def test_a_reply_that_broke_off_is_no_answer(body: bytes, recorder: Any, answer: Any, store: ImageStore) -> None:
    recorder.says(answer(body, headers={"content-type": "application/x-ndjson"}))
    with pytest.raises(Outage, match="no reply after 2 attempts"):
        await ask(recorder, store, stream="on", retries=1)
    assert len(recorder.requests) == 2


@pytest.mark.parametrize(
    "pieces",
    [
        [{"message": {"role": "assistant", "content": "x" * 100}, "done": False}] * 30,
        [{f"field {place}": "x" * 100} for place in range(30)],
    ],
)
async def test_a_streamed_reply_has_the_limit_of_a_whole_one(
    pieces: list[Any], recorder: Any, answer: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MAX_REPLY_BYTES", 2_000)
    # A reply that an earlier test interrupted may use memory until it is garbage-collected.
    bytes_in_flight = stream.IN_FLIGHT.bytes
    recorder.says(answer(lines(*pieces, reply()), headers={"content-type": "application/x-ndjson"}))
    with pytest.raises(Outage, match="more than 2,000 bytes"):
        await ask(recorder, store, stream="on")
    assert stream.IN_FLIGHT.bytes == bytes_in_flight


async def test_a_picture_in_a_tool_message_stands_at_its_place(store: ImageStore, image: Images) -> None:
    from hybrid.models.ollama.codec import wire_messages

    result = ToolMessage("c", "crop", ("found", "img:1.1:", ImagePart(image("img:1.1", 1)), "look"))
    (wire,) = wire_messages([result])
    assert (wire["content"], len(wire["images"])) == ("found\nimg:1.1:\n[img]\nlook", 1)


async def test_repetitions_have_seeds_of_their_own_and_equal_requests_one_hash(
    recorder: Any, store: ImageStore, image: Images
) -> None:
    recorder.says(reply())
    for streaming in ("on", "off"):
        model = open_model("ollama:m", ModelSettings(base_url=recorder.url, seed=3, stream=streaming), store)
        try:
            client: Any = model.client  # type: ignore[attr-defined]
            values = [
                client.request([user_message(["?", image("img:1", seed)])], (), CallKey("q")) for seed in (1, 1, 2)
            ]
        finally:
            await model.close()
        assert values[0].sha256 == values[1].sha256 != values[2].sha256
    await ask(recorder, store, seed=3)
    model = open_model("ollama:m", ModelSettings(base_url=recorder.url, seed=3), store)
    await model.chat([user_message(["?"])], (), CallKey("q", solver="mllm#2"))
    await model.close()
    seeds = [body["options"]["seed"] for _, body in recorder.requests]
    assert seeds[0] == 3
