"""How a reply ended with each API: answered, cut, withheld by its provider, or broken off and requested again."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from hybrid.config import Limits, ModelSettings, RunLimits
from hybrid.core.errors import HybridError, Outage
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, End, user_message
from hybrid.models import CallKey, ModelRefused
from hybrid.models.base import PicturesRefused, is_same_model, other_models
from hybrid.models.caller import Caller, _Tries
from hybrid.models.chat_completions.client import ChatCompletionsClient
from hybrid.models.chat_completions.codec import message, readable
from hybrid.models.chat_completions.stream import Assembly
from hybrid.models.circuit import Circuit, CircuitLimits
from hybrid.models.failures import (
    Backoff,
    StatusError,
    UnreadableReplyError,
    error_in_reply,
    is_wordless_500,
    read_failure,
)
from hybrid.models.images import UNCONFIRMED
from hybrid.models.langchain.client import LangChainClient
from hybrid.models.replies import TABLE, read_end
from hybrid.solving.budgets import RunMeter
from hybrid.tool import Tool
from tests.tables import cases

QUICK = Backoff(base_s=0.01, cap_s=0.02, longest_s=0.02)


def model(name: str, recorder: Any, store: ImageStore, **settings: Any) -> Caller[Any]:
    url = f"{recorder.url}/v1" if name.startswith("openai") else recorder.url
    model_settings = ModelSettings(**{"base_url": url, "timeout_s": 10.0, "retries": 1, **settings})
    current = name.startswith("openai") and "api" not in model_settings.extra
    client: Any = ChatCompletionsClient if current else LangChainClient
    circuit = Circuit(name, CircuitLimits(pause_s=0.01, cap_s=0.02, away_s=0.05))
    return Caller(client(name, model_settings, store), model_settings, circuit, QUICK)


async def ask(chat: Caller[Any]) -> AssistantMessage:
    try:
        return await chat.chat([user_message(["Which?"])], (), CallKey("q"))
    finally:
        await chat.close()


def anthropic(reason: str) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1}
    about = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-x"}
    return {**about, "content": [{"type": "text", "text": "(A)"}], "stop_reason": reason, "usage": usage}


def gemini(reason: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": "(A)"}]}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "totalTokenCount": 17}
    candidate = {"content": content, "finishReason": reason, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x"}


def responses(reason: str) -> dict[str, Any]:
    status = reason if reason in TABLE["responses"] and "_" not in reason else "incomplete"
    details = None if status == reason else {"reason": reason}
    part = {"type": "output_text", "text": "(A)", "annotations": []}
    output = [{"type": "message", "id": "o1", "role": "assistant", "status": status, "content": [part]}]
    usage = {"input_tokens": 10, "output_tokens": 7, "total_tokens": 17}
    usage |= {"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 5}}
    about = {"id": "r1", "object": "response", "created_at": 1, "model": "gpt-x", "error": None}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
    return {**about, **more, "status": status, "incomplete_details": details, "output": output}


def completion(reason: Any, **choice: Any) -> dict[str, Any]:
    messages = {"role": "assistant", "content": "(A)"}
    usage = {"prompt_tokens": 10, "completion_tokens": 7}
    return {"model": "k", "choices": [{"message": messages, "finish_reason": reason, **choice}], "usage": usage}


WIRES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "chat_completions": ("openai:m", completion, {}),
    "responses": ("openai:m", responses, {"extra": {"api": "responses"}}),
    "anthropic": ("anthropic:m", anthropic, {}),
    "gemini": ("google_genai:m", gemini, {}),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "a-key-of-tests-0123456789")


@pytest.mark.parametrize(*cases(__file__, "ends of replies", end=End))
async def test_a_reply_is_what_its_wire_says(
    wire: str, reason: str, end: End, recorder: Any, store: ImageStore
) -> None:
    name, body, settings = WIRES[wire]
    recorder.says(body(reason))
    if end is End.BROKEN_OFF:
        with pytest.raises(Outage, match=f"broke the reply off .finish reason '{reason}'"):
            await ask(model(name, recorder, store, **settings))
        assert len(recorder.requests) == 2
        return
    reply = await ask(model(name, recorder, store, **settings))
    assert reply.end is end
    # A reply is requested once, however it ended.
    assert len(recorder.requests) == 1
    assert (reply.refusal is not None) is (end in (End.FILTERED, End.REFUSED))
    assert reply.is_withheld is (end in (End.FILTERED, End.REFUSED, End.UNFINISHED))
    assert reply.is_cut is (end in (End.CUT, End.CONTEXT_FULL))
    assert (reply.unreadable is not None) is (end is End.MALFORMED_CALL)
    assert reply.model
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 2 if wire == "anthropic" else 7)


def litellm(native: str | None) -> dict[str, Any]:
    """A choice of LiteLLM, which replaces a finish reason that OpenAI does not have by `stop`."""
    return {"finish_reason": "stop", "provider_specific_fields": {"native_finish_reason": native}}


async def test_a_reply_that_was_broken_off_behind_litellm_is_asked_for_again(recorder: Any, store: ImageStore) -> None:
    broken = completion("stop")
    broken["choices"][0] |= litellm("abort")
    recorder.says(broken, completion("stop"))
    reply = await ask(model("openai:m", recorder, store))
    assert (reply.attempts, reply.broken_off) == (2, ("abort",))


async def test_a_reply_that_was_broken_off_is_asked_for_again_and_noted(recorder: Any, store: ImageStore) -> None:
    recorder.says(completion("abort"), completion("stop"))
    reply = await ask(model("openai:m", recorder, store))
    assert (reply.text, reply.end, reply.attempts, reply.broken_off) == ("(A)", End.ENDED, 2, ("abort",))


@pytest.mark.parametrize(*cases(__file__, "reasons"))
def test_reasons_are_read_in_any_spelling_and_the_most_specific_counts(reasons: Any, reason: Any, end: str) -> None:
    assert read_end("chat_completions", *reasons) == (reason, End(end))


def test_every_reason_of_the_table_has_a_kind_and_is_written_as_it_is_looked_up() -> None:
    for table in TABLE.values():
        for reason, kind in table.items():
            assert End(kind) is not End.UNKNOWN
            assert read_end("chat_completions", reason.upper())[1] is not End.UNKNOWN


@pytest.mark.parametrize(*cases(__file__, "withheld"))
def test_what_stands_in_the_place_of_a_message_is_the_reason(body: dict[str, Any], reason: str) -> None:
    reply = message(readable(json.dumps(body).encode()), CallKey("q"))
    assert (reply.text, reply.end, reply.finish_reason) == ("", End.FILTERED, reason)


def test_a_date_to_wait_for_is_read_from_the_header() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    seconds = read_failure(StatusError(429, "busy", later)).retry_after_s
    assert seconds is not None
    assert 0 < seconds <= 40
    assert read_failure(StatusError(429, "busy", "Wed, 21 Oct 2015 07:28:00 GMT")).retry_after_s == 0
    assert read_failure(StatusError(429, "busy", "soon")).retry_after_s is None


@pytest.mark.parametrize(
    ("choice", "mapping", "end"),
    [
        ({"finish_reason": "", "stop_reason": "max_tokens"}, {}, End.CUT),
        ({"finish_reason": "stop"}, {"stop_reason": "refusal"}, End.REFUSED),
        ({"finish_reason": "stop", "meta_info": {"finish_reason": {"type": "length"}}}, {}, End.CUT),
        (litellm("MALFORMED_FUNCTION_CALL"), {}, End.MALFORMED_CALL),
        (litellm("max_tokens"), {}, End.CUT),
        (litellm(None), {}, End.ENDED),
        # vLLM reports the stop text or token in `stop_reason`.
        ({"finish_reason": "stop", "stop_reason": "error"}, {}, End.ENDED),
        ({"finish_reason": "stop", "stop_reason": 151643}, {}, End.ENDED),
        ({"finish_reason": "stop", "stop_reason": ["x"]}, {}, End.ENDED),
    ],
)
def test_reasons_in_other_fields_of_a_reply_count(choice: dict[str, Any], mapping: dict[str, Any], end: End) -> None:
    payload = {"choices": [{"message": {"content": "(A)"}, **choice}], **mapping}
    assert message(readable(json.dumps(payload).encode()), CallKey("q")).end is end
    events = [{"choices": [{"index": 0, "delta": {"content": "(A)"}, **choice}]}, "[DONE]"]
    streamed = Assembly()
    for event in events:
        streamed.feed(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
    if not mapping:
        assert message(readable(streamed.body()), CallKey("q")).end is end


def test_content_that_is_one_part_is_read() -> None:
    payload = {"choices": [{"message": {"content": {"type": "text", "text": "(A)"}}, "finish_reason": "stop"}]}
    assert message(readable(json.dumps(payload).encode()), CallKey("q")).text == "(A)"


@pytest.mark.parametrize("body", [{"choices": [{}]}, {"choices": []}, {"choices": "no"}, {}])
def test_a_reply_without_a_message_and_a_word_is_none(body: Any) -> None:
    with pytest.raises(UnreadableReplyError, match="contains no message"):
        readable(json.dumps(body).encode())


async def test_gemini_blocks_a_prompt_without_a_candidate(recorder: Any, store: ImageStore) -> None:
    recorder.says({"promptFeedback": {"blockReason": "BLOCKLIST"}, "usageMetadata": {"promptTokenCount": 9}})
    reply = await ask(model("google_genai:m", recorder, store))
    assert (reply.end, reply.finish_reason, len(recorder.requests)) == (End.FILTERED, "BLOCKLIST", 1)


async def test_a_reply_of_anthropic_without_a_stop_reason_is_listed_as_unknown(
    recorder: Any, store: ImageStore
) -> None:
    recorder.says({**anthropic("end_turn"), "stop_reason": None})
    reply = await ask(model("anthropic:m", recorder, store))
    assert (reply.end, reply.finish_reason, reply.text) == (End.UNKNOWN, "none given", "(A)")


def failed_response(code: str) -> dict[str, Any]:
    error = {"code": code, "message": "This request cannot be served."}
    return {**responses("failed"), "status": "failed", "error": error, "output": []}


@pytest.mark.parametrize("code", ["image_content_policy_violation", "bio_policy"])
async def test_an_error_inside_a_failed_response_is_a_refusal_by_its_code(
    code: str, recorder: Any, store: ImageStore
) -> None:
    recorder.says(failed_response(code))
    reply = await ask(model("openai:m", recorder, store, extra={"api": "responses"}))
    assert (reply.end, len(recorder.requests)) == (End.FILTERED, 1)


async def test_an_empty_account_inside_a_failed_response_ends_the_run(recorder: Any, store: ImageStore) -> None:
    recorder.says(failed_response("insufficient_quota"))
    with pytest.raises(ModelRefused, match="out of credit or quota"):
        await ask(model("openai:m", recorder, store, extra={"api": "responses"}))
    assert len(recorder.requests) == 1


def failure(status: int, body: Any) -> Exception:
    return StatusError(status, body) if status != 200 else error_in_reply(body)


@pytest.mark.parametrize(*cases(__file__, "failures"))
def test_a_failure_is_what_the_server_means_by_it(kind: str, status: int, body: Any) -> None:
    assert read_failure(failure(status, body)).kind.value == kind


@pytest.mark.parametrize(*cases(__file__, "retry after"))
def test_the_time_that_a_body_names_is_waited_for(body: Any, seconds: float | None) -> None:
    assert read_failure(StatusError(429, body)).retry_after_s == seconds


@pytest.mark.parametrize(
    ("status", "body"),
    [(429, {"error": {"code": "1113", "message": "x"}}), (200, {"base_resp": {"status_code": 1008}, "choices": None})],
)
async def test_an_empty_account_ends_the_run_at_once_even_after_a_success(
    status: int, body: Any, recorder: Any, answer: Any, store: ImageStore
) -> None:
    recorder.says(completion("stop"), answer(body, status))
    chat = model("openai:m", recorder, store)
    await chat.chat([user_message(["Which?"])], (), CallKey("q"))
    with pytest.raises(ModelRefused, match="out of credit or quota"):
        await ask(chat)
    assert len(recorder.requests) == 2


async def test_a_call_that_its_server_cannot_read_is_a_fault_of_the_model(
    recorder: Any, answer: Any, store: ImageStore
) -> None:
    recorder.says(answer({"error": {"code": 500, "message": "Failed to parse input at pos 12: <tool_call>"}}, 500))
    reply = await ask(model("openai:m", recorder, store))
    assert reply.unreadable is not None
    assert "Failed to parse input at pos 12" in reply.unreadable.written
    assert (reply.end, len(recorder.requests)) == (End.MALFORMED_CALL, 1)


WORDLESS = b"Internal Server Error"


async def call_crop(chat: Caller[Any], crop_tool: Tool, question: str = "q", *more: Any) -> AssistantMessage:
    return await chat.chat([user_message(["Which?", *more])], (crop_tool,), CallKey(question))


def tools_sent(recorder: Any) -> list[bool]:
    """Return for each request whether it offered tools."""
    return ["tools" in body for _, body in recorder.requests]


@pytest.mark.parametrize(*cases(__file__, "wordless"))
def test_a_500_is_without_a_reason_if_it_only_repeats_its_status(body: Any, expected: bool) -> None:
    error = StatusError(500, body)
    assert is_wordless_500(read_failure(error), error) is expected
    other = StatusError(503, body)
    assert not is_wordless_500(read_failure(other), other)


@pytest.mark.parametrize("body", [WORDLESS, {"error": {"message": "Internal Server Error", "code": 500}}, b""])
async def test_a_server_that_answers_without_tools_alone_has_failed_at_a_call_of_its_model(
    body: Any, recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = model("openai:m", recorder, store, retries=3)
    recorder.says(answer(body, 500), answer(body, 500), completion("stop"))
    reply = await call_crop(chat, crop_tool)
    assert tools_sent(recorder) == [True, True, False]
    assert (reply.end, reply.attempts, reply.text) == (
        End.MALFORMED_CALL,
        3,
        reply.unreadable and reply.unreadable.written,
    )
    assert "without tools the server answers" in reply.text
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.model) == (10, "k")
    recorder.says(answer(body, 500), answer(body, 500), completion("stop"))
    await call_crop(chat, crop_tool, "r")
    # The remedy is printed once.
    (note,) = [line for line in capsys.readouterr().err.splitlines() if "--tool-calling text" in line]
    assert note.startswith("note: openai:m: its server answers 500 without a reason")
    await chat.close()


@pytest.mark.parametrize(("retries", "tool_counts"), [(0, [1, 0]), (1, [1, 1, 0]), (3, [1, 1, 0, 1, 1])])
async def test_a_server_that_fails_without_tools_too_is_an_outage_after_one_more_request(
    retries: int, tool_counts: list[int], recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    recorder.says(answer(WORDLESS, 500))
    chat = model("openai:m", recorder, store, retries=retries)
    with pytest.raises(Outage, match="--tool-calling text") as outage:
        await call_crop(chat, crop_tool)
    assert f"no reply after {len(tool_counts)} attempts" in str(outage.value)
    assert tools_sent(recorder) == list(map(bool, tool_counts))
    await chat.close()


@pytest.mark.parametrize(
    ("second", "has_tools"), [(WORDLESS, False), ({"error": {"message": "the disk is slow"}}, True)]
)
async def test_a_failure_with_a_reason_or_without_tools_is_asked_again_as_it_was(
    second: Any, has_tools: bool, recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    recorder.says(answer(WORDLESS, 500), answer(second, 500))
    chat = model("openai:m", recorder, store, retries=2)
    with pytest.raises(Outage) as outage:
        await chat.chat([user_message(["Which?"])], (crop_tool,) if has_tools else (), CallKey("q"))
    assert tools_sent(recorder) == [has_tools] * 3
    assert "--tool-calling text" not in str(outage.value)
    await chat.close()


async def test_a_retry_that_is_answered_is_the_reply(
    recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    recorder.says(answer(WORDLESS, 500), completion("stop"))
    chat = model("openai:m", recorder, store, retries=2)
    reply = await call_crop(chat, crop_tool)
    assert (reply.text, reply.attempts) == ("(A)", 2)
    await chat.close()


@pytest.mark.parametrize(
    "refusal", [(400, "no"), (401, "invalid_api_key"), (200, {"error": "x"}), (400, "content policy"), (503, "busy")]
)
async def test_a_refusal_of_the_request_without_tools_changes_nothing(
    refusal: tuple[int, Any], recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    status, body = refusal
    wordless = answer(WORDLESS, 500)
    recorder.says(wordless, wordless, answer(body, status), completion("stop"))
    chat = model("openai:m", recorder, store, retries=2)
    reply = await call_crop(chat, crop_tool)
    assert (reply.text, reply.attempts, tools_sent(recorder)) == ("(A)", 4, [True, True, False, True])
    await chat.close()


async def test_questions_whose_calls_all_fail_do_not_make_a_well_server_one_that_is_down(
    recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    """If many calls fail but requests without tools are answered, the server does not count as down. More questions
    fail at once here than would open the circuit."""
    chat = model("openai:m", recorder, store, retries=1)
    handler = recorder.server.RequestHandlerClass

    def posted(self: Any, body: bytes) -> None:
        request = json.loads(body)
        recorder.requests.append((self.path, request))
        self.answer(WORDLESS if "tools" in request else completion("stop"), 500 if "tools" in request else 200, {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handler, "posted", posted)
        replies = await asyncio.gather(*(call_crop(chat, crop_tool, f"q{number}") for number in range(24)))
    assert {reply.end for reply in replies} == {End.MALFORMED_CALL}
    assert sum(reply.attempts or 0 for reply in replies) == len(recorder.requests)
    # Each question takes at most two requests with tools and one without, plus probes that found the server available
    # again.
    assert tools_sent(recorder).count(False) == 24
    await chat.close()


@pytest.mark.parametrize(
    ("failures", "is_last", "expected"), [(1, False, False), (1, True, True), (2, False, True), (0, True, False)]
)
def test_one_failure_of_a_server_that_came_back_is_no_malformed_call(
    failures: int, is_last: bool, expected: bool
) -> None:
    """A request without tools may succeed because the server is back. Then one failure before it is not a malformed
    call, and the request with tools is sent again."""
    tries = _Tries[Any](Any, None, frozenset(), wordless=failures, last=is_last, plain_reply=AssistantMessage("(A)"))
    assert tries.is_malformed_call() is expected


async def test_a_dead_server_is_sent_at_most_one_request_more_for_each_question(
    recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    recorder.says(answer(WORDLESS, 500))
    chat = model("openai:m", recorder, store, retries=1)
    calls = (call_crop(chat, crop_tool, f"q{number}") for number in range(24))
    replies = await asyncio.gather(*calls, return_exceptions=True)
    assert {isinstance(reply, HybridError) for reply in replies} == {True}
    assert tools_sent(recorder).count(False) <= 24
    await chat.close()


@pytest.mark.parametrize(("without_tools", "blames_picture"), [(200, False), (500, True)])
async def test_a_new_picture_is_not_blamed_for_a_call_that_the_server_cannot_parse(
    without_tools: int,
    blames_picture: bool,
    recorder: Any,
    answer: Any,
    store: ImageStore,
    crop_tool: Tool,
    image: Any,
) -> None:
    wordless = answer(WORDLESS, 500)
    recorder.says(wordless, wordless, completion("stop") if without_tools == 200 else wordless)
    chat = model("openai:m", recorder, store, retries=3)
    token = UNCONFIRMED.set(frozenset({"img:1.1"}))
    try:
        if blames_picture:
            with pytest.raises(PicturesRefused):
                await call_crop(chat, crop_tool, "q", image("img:1.1"))
        else:
            reply = await call_crop(chat, crop_tool, "q", image("img:1.1"))
            assert reply.end is End.MALFORMED_CALL
    finally:
        UNCONFIRMED.reset(token)
    assert tools_sent(recorder) == [True, True, False]
    await chat.close()


async def test_a_call_that_its_server_refuses_by_name_is_not_blamed_on_a_new_picture(
    recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool, image: Any
) -> None:
    body = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}
    recorder.says(answer(body, 400))
    chat = model("openai:m", recorder, store)
    token = UNCONFIRMED.set(frozenset({"img:1.1"}))
    try:
        reply = await call_crop(chat, crop_tool, "q", image("img:1.1"))
    finally:
        UNCONFIRMED.reset(token)
    assert (reply.end, len(recorder.requests)) == (End.MALFORMED_CALL, 1)
    await chat.close()


async def test_a_reply_without_tools_that_was_kept_is_not_asked_for_again(
    recorder: Any, answer: Any, store: ImageStore, crop_tool: Tool
) -> None:
    stored: dict[tuple[CallKey, str], bytes] = {}

    class Log:
        def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
            return stored.get((call, request_sha256))

        def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
            stored[call, request_sha256] = reply

    for requests in (3, 5):
        recorder.says(answer(WORDLESS, 500), answer(WORDLESS, 500), completion("stop"))
        chat = model("openai:m", recorder, store)
        chat.listen(Log())
        reply = await call_crop(chat, crop_tool)
        assert (reply.end, len(recorder.requests)) == (End.MALFORMED_CALL, requests)
        await chat.close()


async def test_a_server_that_is_waited_for_longer_than_a_minute_is_told_of_once(
    recorder: Any, answer: Any, store: ImageStore, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    settings = ModelSettings(base_url=f"{recorder.url}/v1", retries=5)
    limits = CircuitLimits(failures=100)
    circuit = Circuit("openai:m", limits, lambda: sum(slept), sleep)
    client = ChatCompletionsClient("openai:m", settings, store)
    chat = Caller(client, settings, circuit, Backoff(base_s=20.0), sleep)
    recorder.says(answer({"error": {"message": "the disk is slow"}}, 500))
    with pytest.raises(Outage):
        await ask(chat)
    assert sum(slept) > 60
    (line,) = [item for item in capsys.readouterr().err.splitlines() if "next try" in item]
    assert line.startswith("note: openai:m has not replied for")
    assert "the disk is slow" in line
    # The limit here is six tries, not a time.
    assert "for up to" not in line


async def test_a_server_that_is_busy_for_longer_than_a_minute_is_told_of_once(
    recorder: Any, answer: Any, store: ImageStore, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    settings = ModelSettings(base_url=f"{recorder.url}/v1", retries=1)
    circuit = Circuit("openai:m", None, lambda: sum(slept), sleep)
    chat = Caller(ChatCompletionsClient("openai:m", settings, store), settings, circuit, None, sleep)
    recorder.says(answer({"error": {"message": "slow down"}}, 429))
    with pytest.raises(Outage):
        await ask(chat)
    assert sum(slept) > 60
    (line,) = [item for item in capsys.readouterr().err.splitlines() if "next try in" in item]
    assert line.startswith("note: openai:m has not replied for")
    assert line.endswith("for up to 600 s")
    assert "slow down" in line


@pytest.mark.parametrize(
    ("run", "question", "option"),
    [
        (RunLimits(cost_usd=1.0), Limits(), "--run-max-cost 1"),
        (RunLimits(tokens=5), Limits(), "--run-max-tokens 5"),
        (RunLimits(), Limits(tokens=7), "--max-total-tokens 7"),
        (RunLimits(), Limits(cost_usd=0.5), "--max-cost 0.5"),
    ],
)
def test_a_budget_of_tokens_that_are_not_told_is_refused(run: RunLimits, question: Limits, option: str) -> None:
    with pytest.raises(ModelRefused, match=f"without token counts, so {option} cannot be enforced"):
        RunMeter(run).refuse_uncounted("openai:m", question)
    RunMeter(RunLimits(model_calls=5)).refuse_uncounted("openai:m", Limits())


@pytest.mark.parametrize(*cases(__file__, "models"))
def test_a_date_and_an_alias_make_no_other_model(requested_name: str, reported_name: str, same: bool) -> None:
    assert is_same_model(requested_name, reported_name) is same


def test_other_models_are_those_that_were_not_asked_for() -> None:
    counts = {"gpt-4o-2024-08-06": 3, "gpt-4o-mini": 2}
    assert other_models("openai:gpt-4o", counts) == {"gpt-4o-mini": 2}
    # The user chooses the name of an Azure deployment.
    assert other_models("azure_openai:mine", counts) == {}
