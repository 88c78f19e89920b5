"""Streamed replies are assembled to complete ones, however the server formats and splits them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.messages import AssistantMessage
from hybrid.models import CallKey
from hybrid.models.chat_completions import stream as streams
from hybrid.models.chat_completions.codec import message, readable
from hybrid.models.chat_completions.stream import MAX_REPLY_BYTES, Assembly
from hybrid.models.failures import StatusError, UnreadableReplyError
from tests.steps import assert_grows_linearly
from tests.tables import cases

CALL = CallKey("q", 1, 2, "sha", "controller")
DONE = "[DONE]"


def piece(reason: str | None = None, /, **delta: Any) -> dict[str, Any]:
    return {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def calls(*pieces: Any) -> dict[str, Any]:
    return piece(tool_calls=list(pieces))


def part(index: int | None, identity: str | None = None, /, **function: Any) -> dict[str, Any]:
    payload = {"index": index, "id": identity, "type": "function" if identity else None}
    return {name: value for name, value in payload.items() if value is not None} | {"function": function}


def stream(*events: Any, end: str = "\n\n", prefix: str = "data: ") -> bytes:
    return "".join(
        f"{prefix}{event if isinstance(event, str) else json.dumps(event)}{end}" for event in events
    ).encode()


def assembled(data: bytes, size: int = 10**9) -> AssistantMessage:
    assembly = Assembly()
    for start in range(0, len(data), size):
        assembly.feed(data[start : start + size])
    return replace(message(readable(assembly.body()), CALL), model=None)


def read_completion(reason: str | None, usage: Any = None, /, **text: Any) -> AssistantMessage:
    choice = {"message": {"role": "assistant", "content": None, **text}, "finish_reason": reason}
    return message(readable(json.dumps({"choices": [choice], "usage": usage}).encode()), CALL)


def call(identity: str, arguments: Any, name: str = "crop", **more: Any) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


STOP, CALLS = piece("stop"), piece("tool_calls")
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 3}}

PUT_TOGETHER = {
    case: (
        row["events"],
        read_completion(row["reply"]["finish_reason"], row["reply"]["usage"], **row["reply"]["message"]),
    )
    for case, row in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")).items()
}


@pytest.mark.parametrize("case", PUT_TOGETHER)
def test_pieces_make_the_reply_that_would_have_come_whole(case: str) -> None:
    events, expected = PUT_TOGETHER[case]
    assert assembled(stream(*events)) == expected
    assert assembled(stream(*events).replace("é".encode(), b"\xc3\xa9"), 1) == expected


WRITTEN = {
    "no blank behind the colon": stream(*PUT_TOGETHER["text"][0], prefix="data:"),
    "a mark of the byte order": b"\xef\xbb\xbf" + stream(*PUT_TOGETHER["text"][0]),
    "carriage returns": stream(*PUT_TOGETHER["text"][0], end="\r\n\r\n"),
    "nothing but carriage returns": stream(*PUT_TOGETHER["text"][0], end="\r\r"),
    "no empty lines": stream(*PUT_TOGETHER["text"][0], end="\n"),
    "no last line end": stream(*PUT_TOGETHER["text"][0]).rstrip(),
    "comments and names": b": ping\n\n"
    + stream(*PUT_TOGETHER["text"][0], prefix=": ping\nid: 7\nevent: message\ndata: "),
    "pings": stream(*PUT_TOGETHER["text"][0], prefix="event: ping\ndata: still there\n\ndata: "),
    "lines in an object": b"".join(
        f"data: {json.dumps(item, indent=1)}\n\n".replace("\n ", "\ndata:  ").replace("\n}", "\ndata: }").encode()
        for item in PUT_TOGETHER["text"][0]
        if item != DONE
    ),
}


@pytest.mark.parametrize("case", WRITTEN)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10**9])
def test_events_are_read_however_they_are_written_and_cut(case: str, size: int) -> None:
    assert assembled(WRITTEN[case], size) == PUT_TOGETHER["text"][1]


DEEP = json.loads('{"a":' * 60 + "1" + "}" * 60)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        *cases(__file__, "faults")[1],
        (stream(piece(content="A"), "[" * 50_000, STOP).decode(), "UnreadableReplyError", "not a JSON object"),
        (
            stream(piece(deep=json.loads('{"a":' * 60 + "1" + "}" * 60)), STOP).decode(),
            "UnreadableReplyError",
            "too deep",
        ),
    ],
)
def test_a_fault_in_a_stream_is_no_reply(data: str, error: str, text: str) -> None:
    for size in (5, 10**9):
        with pytest.raises((UnreadableReplyError, StatusError)) as raised:
            assembled(data.encode(), size)
        assert type(raised.value).__name__ == error
        assert re.search(text, f"{raised.value} {getattr(raised.value, 'body', '')}")


@pytest.mark.system
def test_a_hostile_stream_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_STREAM_BYTES", 4 * MAX_REPLY_BYTES)
    with pytest.raises(UnreadableReplyError, match="bytes"):
        assembled(b"data: " + b"x" * (2 * MAX_REPLY_BYTES), 2**16)
    with pytest.raises(UnreadableReplyError, match="bytes"):
        assembled((b": ping" * 100_000 + b"\n") * (4 * MAX_REPLY_BYTES // 600_000 + 1), 2**20)
    by_label = calls(part(0, name="crop", arguments="{}, "))
    assert assembled(stream(*[by_label] * 3_000, CALLS)).invalid
    assert assembled(stream(*[piece(reasoning_content="think ")] * 20_000, STOP)).reasoning == "think " * 20_000
    event = {"call": stream(by_label).decode(), "thought": stream(piece(reasoning_content="think ")).decode()}
    for text in event.values():
        assert_grows_linearly(
            lambda body: assembled(body.encode() + stream(CALLS)),
            lambda size, text=text: text * (size // len(text)),  # type: ignore[misc]
            1_000_000,
        )


@pytest.mark.parametrize(
    "event",
    [
        {"prompt_feedback": {"text": "x" * 900}},
        {"choices": [{"index": 0, "delta": {}, "native_finish_reason": "x" * 900}]},
    ],
)
def test_fields_beside_the_text_count_and_what_replaces_them_does_not(
    event: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_REPLY_BYTES", 1_500)
    end = {"choices": [{"index": 0, "delta": {"content": "A"}, "finish_reason": "stop"}]}
    assert assembled(stream(*[event] * 9, end, DONE))
    with pytest.raises(UnreadableReplyError, match="the reply has more than 1,500 bytes"):
        assembled(stream(event, piece(content="y" * 700), end, DONE))


def test_token_counts_cannot_grow_without_end() -> None:
    events = [{"usage": {f"{place}-{'x' * 1_000}": "y" * 1_000}} for place in range(100)]
    with pytest.raises(UnreadableReplyError, match="usage of the stream has more than 65,536 bytes"):
        assembled(stream(*events, piece("stop", content="A"), DONE))


def test_lines_that_have_not_ended_count_among_all_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    # Replies of other tests may still be in memory.
    monkeypatch.setattr(streams, "MAX_IN_FLIGHT_BYTES", streams.IN_FLIGHT.bytes + 2_500)
    replies = [Assembly() for _ in range(3)]
    replies[0].feed(b"data: " + b"x" * 1_000)
    replies[1].feed(b"data: " + b"x" * 1_000 + b"\n")
    with pytest.raises(UnreadableReplyError, match="in transit together have more than"):
        replies[2].feed(b"data: " + b"x" * 1_000)
    for reply in replies:
        reply.close()
    Assembly().feed(b"data: " + b"x" * 1_000)
