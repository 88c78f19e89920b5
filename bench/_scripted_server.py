"""A small server that behaves as described by a row of bench/conformity.toml, whose header explains the keys.

for behaviour in behaviours():
    with serving(behaviour) as url:
        ...                              # POST {url}/chat/completions, or as the API of the row has it
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from bench._batch_server import reply_of
from bench._chat_server import CALL_PROBE_TEXT, Answer, framed, on_thread
from hybrid.running.probes import ORDER_NUMBERS, ORDER_TEXT, PROBE_NUMBER, PROBE_TEXT

DATA: Final = Path(__file__).with_name("conformity.toml")
ARGUMENTS: Final = '{"images": ["img:1"], "box": {"x0": 10, "y0": 10, "x1": 90, "y1": 80}}'
Wanted = Literal["call", "repaired", "fault", "nothing", "facts"]
Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Scripted:
    """One reply."""

    text: str | None = None
    calls: Sequence[Mapping[str, Any]] = ()
    message: Mapping[str, Any] = field(default_factory=dict)
    finish: str | None = None
    body: str | None = None
    deltas: Sequence[str] = ()
    preamble: str = ""
    end: str = "data: [DONE]"
    status: int = 200
    error: str | None = None
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=lambda: {"prompt_tokens": 90, "completion_tokens": 9})
    without_usage: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)

    def full_message(self) -> dict[str, Any]:
        """Return the message, with calls in OpenAI's form."""
        calls = []
        for call in self.calls:
            function = {"name": call.get("name", "crop"), "arguments": call.get("arguments", ARGUMENTS)}
            calls.append(
                {"id": call.get("id", "call_1"), "type": "function", "function": function} | call.get("more", {})
            )
        return {"role": "assistant", "content": self.text, **({"tool_calls": calls} if calls else {}), **self.message}

    def finish_reason(self) -> str:
        """Return why the reply ended."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def json_body(self) -> str:
        """Return the body of a reply that is not streamed."""
        if self.error is not None:
            return json.dumps({"error": {"message": self.error, "type": "error", "param": None, "code": None}})
        choice = {"index": 0, "message": self.full_message(), "finish_reason": self.finish_reason(), **self.choice}
        return self.body or json.dumps(
            {"choices": [choice], "usage": None if self.without_usage else self.usage, **self.about}
        )

    def event_stream(self) -> str:
        """Return the events of a streamed reply."""
        text = self.full_message()
        for place, call in enumerate(text.get("tool_calls", ())):
            call["index"] = place
        deltas = [json.loads(delta) for delta in self.deltas] or [text]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        if self.finish or not self.deltas:
            choices.append({"index": 0, "delta": {}, "finish_reason": self.finish_reason()})
        events = (json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [choice]}) for choice in choices)
        return (
            self.preamble + "".join(f"data: {event}\n\n" for event in events) + (f"{self.end}\n\n" if self.end else "")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The behaviour of one server."""

    name: str
    reference: str
    wants: Wanted
    reply: Scripted
    first: Scripted | None = None
    without_tools: Scripted | None = None
    calls_made: int = 1
    needs: str = ""
    checks: Sequence[str] = ()
    refusal: str = "the request is not taken"
    status_of_refusal: int = 400
    rejects: Sequence[str] = ()
    rejection: str = ""
    stream: str = ""
    unstreamed: str = ""
    cut: int = 1 << 20
    options: Mapping[str, Any] = field(default_factory=dict)
    tool: str = "crop"
    task: str = "Jigsaw"
    expect: Mapping[str, Any] = field(default_factory=dict)
    absent: Sequence[str] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    probes: bool = True
    wire: str = "openai"


def behaviours(path: Path = DATA) -> tuple[Behaviour, ...]:
    """Return the rows of a data file. Raises `TypeError` for an unknown key."""
    results = []
    for row in map(_filled, tomllib.loads(path.read_text())["server"]):
        reply = {key: row.pop(key) for key in Scripted.__dataclass_fields__ if key in row}
        others: dict[str, Any] = {name: Scripted(**row.pop(name)) for name in ("first", "without_tools") if name in row}
        results.append(Behaviour(reply=Scripted(**reply), **others, **row))
    return tuple(results)


def _filled(value: Any) -> Any:
    """Return the value with the valid arguments inserted at their placeholders."""
    if isinstance(value, str):
        return value.replace("@ARGS@", ARGUMENTS)
    if isinstance(value, dict):
        return {key: _filled(part) for key, part in value.items()}
    return [_filled(part) for part in value] if isinstance(value, list) else value


def _calls(messages: Messages) -> list[Mapping[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def _arguments_are_json(messages: Messages) -> bool:
    try:
        return all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in _calls(messages))
    except ValueError:
        return False


CHECKS: Final[Mapping[str, Callable[[Messages], bool]]] = {
    "ids": lambda messages: len({call["id"] for call in _calls(messages)} - {"", None}) == len(_calls(messages)),
    "short ids": lambda messages: all(re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]) for call in _calls(messages)),
    "arguments are JSON": _arguments_are_json,
    "no empty text": lambda messages: not any(message.get("content") == "" for message in messages),
    "no thoughts": lambda messages: not any("reasoning_content" in message for message in messages),
    "a reply before the user": lambda messages: (
        not any((first["role"], second["role"]) == ("tool", "user") for first, second in pairwise(messages))
    ),
    "tools speak text": lambda messages: all(
        isinstance(item["content"], str) for item in messages if item["role"] == "tool"
    ),
}


# Answers to the initial checks of a run, from a model that sees its images.
PROBE_ANSWERS: Final = {PROBE_TEXT.encode(): PROBE_NUMBER, ORDER_TEXT.encode(): " ".join(ORDER_NUMBERS)}


# A model turn in a request of any API except chat completions.
_MODEL_TURN: Final = re.compile(rb'"(?:role": ?"(?:assistant|model)|type": ?"function_call)"')


@contextmanager
def serving(behaviour: Behaviour, asked_before: list[bytes] | None = None) -> Iterator[str]:
    """Yield the value for `--base-url` while a server behaves this way; requests about the question are recorded."""
    requests = [] if asked_before is None else asked_before
    is_openai = behaviour.wire == "openai"
    answer = _chat_completions(behaviour, requests) if is_openai else _other_wire(behaviour, requests)
    with on_thread(answer) as url:
        yield f"{url}/v1" if behaviour.wire in ("openai", "responses") else url


def _other_wire(behaviour: Behaviour, requests: list[bytes]) -> Answer:
    """Answer an API other than chat completions, without streaming."""
    wire, firsts = behaviour.wire, [behaviour.first] if behaviour.first else []

    def scripted(reply: Scripted) -> bytes:
        call = reply.calls[0] if reply.calls else {}
        name = str(call.get("name", "crop")) if reply.calls else ""
        body = reply_of(wire, reply.text or "", name, json.loads(call.get("arguments", ARGUMENTS)))
        for candidate in body.get("candidates", ()):
            candidate.update(reply.choice)
        data = (reply.body or json.dumps({**body, **reply.about})).encode()
        phrase = HTTPStatus(reply.status).phrase if reply.status in set(HTTPStatus) else "Capacity"
        return framed(data, f"{reply.status} {phrase}", reply.headers)

    def answer(_: bytes, body: bytes) -> bytes:
        probed = next((text for probe, text in PROBE_ANSWERS.items() if probe in body), None)
        call_probe = CALL_PROBE_TEXT.search(body)
        if not behaviour.probes and (call_probe or probed):
            return scripted(behaviour.reply)
        if probed is not None:
            return scripted(Scripted(text=probed))
        if call_probe:
            return scripted(Scripted(calls=[{"name": call_probe[1].decode(), "arguments": '{"images": ["img:1"]}'}]))
        requests.append(body)
        if _MODEL_TURN.search(body):
            return scripted(Scripted(text="Answer: (A)"))
        return scripted(firsts.pop() if firsts else behaviour.reply)

    return answer


def _chat_completions(behaviour: Behaviour, requests: list[bytes]) -> Answer:
    """Answer chat completions, streamed if the request or the behaviour asks for it."""
    firsts = [behaviour.first] if behaviour.first else []

    def reply(body: bytes) -> tuple[Scripted, bool]:
        """Return the reply to a request, and whether it is streamed."""
        record = json.loads(body)
        call_probe = CALL_PROBE_TEXT.search(body)
        probe_answer = next((text for probe, text in PROBE_ANSWERS.items() if probe in body), None)
        if behaviour.expect and not behaviour.probes and (call_probe or PROBE_TEXT.encode() in body):
            return behaviour.reply, False
        # The probe for tool images also contains the request for a call, in its first message.
        if behaviour.expect and call_probe and probe_answer is None:
            call = {"name": call_probe[1].decode(), "arguments": '{"images": ["img:1"]}'}
            return Scripted(calls=[call]), bool(record.get("stream")) or behaviour.stream == "always"
        if probe_answer is None:
            requests.append(body)
        if any(key in record for key in behaviour.rejects):
            return Scripted(status=behaviour.status_of_refusal, body=behaviour.rejection), False
        if behaviour.stream == "only" and not record.get("stream"):
            return Scripted(status=400, error=behaviour.unstreamed), False
        events = bool(record.get("stream")) or behaviour.stream == "always"
        if probe_answer is not None:
            return Scripted(text=probe_answer), events
        messages = record["messages"]
        if not any(message["role"] == "assistant" for message in messages):
            plain = None if record.get("tools") else behaviour.without_tools
            other_text = plain or (firsts.pop() if firsts else behaviour.reply)
            return other_text, events and other_text.status == 200 and other_text.body is None
        # If nothing of the model's reply could be read, nothing has to be sent back.
        selected = behaviour.needs.encode() in body or not _calls(messages)
        if "tools declared" in behaviour.checks and not record.get("tools"):
            return Scripted(status=behaviour.status_of_refusal, error=behaviour.refusal), False
        if selected and all(CHECKS[name](messages) for name in behaviour.checks if name in CHECKS):
            return Scripted(text="Answer: (A)"), events
        return Scripted(status=behaviour.status_of_refusal, error=behaviour.refusal), False

    def pieces(_: bytes, body: bytes) -> list[bytes]:
        text_value, events = reply(body)
        data = (text_value.event_stream() if events else text_value.json_body()).encode()
        kind = text_value.content_type or ("text/event-stream" if events else "application/json")
        phrase = HTTPStatus(text_value.status).phrase if text_value.status in set(HTTPStatus) else "Capacity"
        head = framed(data, f"{text_value.status} {phrase}", {"Content-Type": kind, **text_value.headers})[
            : -len(data) or None
        ]
        return [head, *(data[start : start + behaviour.cut] for start in range(0, len(data), behaviour.cut))]

    return pieces
