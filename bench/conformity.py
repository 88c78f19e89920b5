"""What comes of the behaviours of servers and models that break loops of tool calls: one small server for each.

    python -m bench.conformity                    every behaviour of bench/conformity.toml, as a table
    python -m bench.conformity --only Gemini      those whose name or reference holds the text
    python -m bench.conformity --out bench/results/conformity.md

A behaviour is asked one generated question by the controller with one tool, through the real client. It ends in a call
that ran as it came, in one that ran after it was read from text or mended, in a typed fault, or it failed: less came of
it than the data want. It is silent where nothing tells of a call that did not run. Bodies are written here, after what
the issues say; none is copied.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Literal

import hybrid
from hybrid.errors import HybridError
from hybrid.log.attempts import read_attempts
from hybrid.running.probes import PROBE_NUMBER, PROBE_TEXT
from hybrid.types import Step

DATA: Final = Path(__file__).with_suffix(".toml")
ARGUMENTS: Final = '{"images": ["img:1"], "box": {"x0": 10, "y0": 10, "x1": 90, "y1": 80}}'
Kind = Literal["call", "repaired", "fault", "nothing", "failed"]
SAID: Final[Mapping[Kind, str]] = {
    "call": "call made right",
    "repaired": "repaired",
    "fault": "typed fault",
    "nothing": "nothing run",
    "failed": "failed",
}
ALLOWED: Final = ["blind"]
REPAIRS: Final = ("read_from", "repairs")
"""Keys of a step's data that tell of a call that was read from text or mended."""
WORTH: Final[Mapping[Kind, int]] = {"call": 3, "repaired": 2, "fault": 1, "nothing": 1, "failed": 0}


@dataclass(frozen=True, slots=True)
class Scripted:
    """One reply, in the words of the data file."""

    text: str | None = None
    calls: Sequence[Mapping[str, Any]] = ()
    message: Mapping[str, Any] = field(default_factory=dict)
    finish: str | None = None
    body: str | None = None
    deltas: Sequence[str] = ()
    before: str = ""
    end: str = "data: [DONE]"
    status: int = 200
    error: str | None = None
    content_type: str | None = None

    def said(self) -> dict[str, Any]:
        """The message, with the calls in OpenAI's form."""
        calls = [
            {
                "id": call.get("id", "call_1"),
                "type": "function",
                "function": {"name": call.get("name", "crop"), "arguments": call.get("arguments", ARGUMENTS)},
                **call.get("more", {}),
            }
            for call in self.calls
        ]
        return {"role": "assistant", "content": self.text, **({"tool_calls": calls} if calls else {}), **self.message}

    def whole(self) -> str:
        """The body of a reply that is not streamed."""
        if self.error is not None:
            return json.dumps({"error": {"message": self.error, "type": "error", "param": None, "code": None}})
        choice = {"index": 0, "message": self.said(), "finish_reason": self.ended()}
        return self.body or json.dumps({"choices": [choice], "usage": {"prompt_tokens": 90, "completion_tokens": 9}})

    def streamed(self) -> str:
        """The events of a reply."""
        said = self.said()
        for place, call in enumerate(said.get("tool_calls", ())):
            call["index"] = place
        chunks = [json.loads(delta) for delta in self.deltas] or [said]
        choices = [{"index": 0, "delta": chunk, "finish_reason": None} for chunk in chunks]
        if self.finish or not self.deltas:
            choices.append({"index": 0, "delta": {}, "finish_reason": self.ended()})
        events = (json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [one]}) for one in choices)
        return self.before + "".join(f"data: {event}\n\n" for event in events) + (f"{self.end}\n\n" if self.end else "")

    def ended(self) -> str:
        """Why the reply ended."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One server of the data file."""

    name: str
    reference: str
    wants: Kind
    reply: Scripted
    first: Scripted | None = None
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

    def link(self) -> str:
        """The reference in Markdown."""
        return f"[{self.reference}](https://github.com/{self.reference.replace('#', '/issues/')})"


def behaviours(path: Path = DATA) -> tuple[Behaviour, ...]:
    """The servers of a data file. Raises `TypeError` for a key that there is not."""
    return tuple(_behaviour(_filled(row)) for row in tomllib.loads(path.read_text())["server"])


def _filled(value: Any) -> Any:
    """The value with the good arguments wherever a text has their place."""
    if isinstance(value, str):
        return value.replace("@ARGS@", ARGUMENTS)
    if isinstance(value, dict):
        return {key: _filled(part) for key, part in value.items()}
    return [_filled(part) for part in value] if isinstance(value, list) else value


def _behaviour(row: dict[str, Any]) -> Behaviour:
    reply = {key: row.pop(key) for key in Scripted.__dataclass_fields__ if key in row}
    first = {"first": Scripted(**row.pop("first"))} if "first" in row else {}
    return Behaviour(reply=Scripted(**reply), **first, **row)


Messages = Sequence[Mapping[str, Any]]


def _ids(messages: Messages) -> list[str]:
    return [call.get("id") or "" for message in messages for call in message.get("tool_calls") or ()]


def _arguments_are_json(messages: Messages) -> bool:
    written = [call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or ()]
    try:
        return all(isinstance(json.loads(text), dict) for text in written)
    except ValueError:
        return False


CHECKS: Final[Mapping[str, Callable[[Messages], bool]]] = {
    "ids": lambda messages: len({*_ids(messages), ""}) == len(_ids(messages)) + 1,
    "short ids": lambda messages: all(re.fullmatch(r"[a-zA-Z0-9]{9}", one) for one in _ids(messages)),
    "arguments are JSON": _arguments_are_json,
    "no empty text": lambda messages: not any(message.get("content") == "" for message in messages),
    "no thoughts": lambda messages: not any("reasoning_content" in message for message in messages),
    "tools speak text": lambda messages: all(
        isinstance(message["content"], str) for message in messages if message["role"] == "tool"
    ),
}


class Server(ThreadingHTTPServer):
    """One behaviour on a free port of 127.0.0.1."""

    daemon_threads = True

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour = behaviour
        self.requests: list[bytes] = []
        self.first = [behaviour.first] if behaviour.first else []

    @property
    def url(self) -> str:
        """What `--base-url` takes."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def reply(self, body: bytes) -> tuple[Scripted, bool]:
        """What it says to a request, and whether as events."""
        row, asked = self.behaviour, json.loads(body)
        self.requests.append(body)
        streamed = bool(asked.get("stream"))
        if any(key in asked for key in row.rejects):
            return Scripted(status=row.status_of_refusal, body=row.rejection), False
        if row.stream == "only" and not streamed:
            return Scripted(status=400, error=row.unstreamed), False
        events = streamed or row.stream == "always"
        if PROBE_TEXT.encode() in body:
            return Scripted(text=PROBE_NUMBER), events
        messages = asked["messages"]
        if not any(message["role"] == "assistant" for message in messages):
            return (self.first.pop() if self.first else row.reply), events
        # A conversation goes on without what it needs where nothing of the model's could be read.
        kept = not any(message.get("tool_calls") for message in messages) or row.needs.encode() in body
        if kept and all(CHECKS[name](messages) for name in row.checks):
            return Scripted(text="Answer: (A)"), events
        return Scripted(status=row.status_of_refusal, error=row.refusal), False


class Handler(BaseHTTPRequestHandler):
    """Sends what the server says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        """One request."""
        reply, events = self.server.reply(self.rfile.read(int(self.headers["Content-Length"])))
        events = events and reply.status == 200 and reply.body is None
        data = (reply.streamed() if events else reply.whole()).encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type or ("text/event-stream" if events else "application/json"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for start in range(0, len(data), self.server.behaviour.cut):
            self.wfile.write(data[start : start + self.server.behaviour.cut])


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Server]:
    """The server of a behaviour while it answers, on a thread."""
    with Server(behaviour) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a behaviour, and the words that tell of it."""

    behaviour: Behaviour
    kind: Kind
    said: str
    seconds: float

    @property
    def silent(self) -> bool:
        """Whether it failed without a word."""
        return self.kind == "failed" and not self.said


def measured(behaviour: Behaviour, folder: Path) -> Result:
    """Ask one question of the server of a behaviour, in a folder of its own."""
    began, said, steps = time.perf_counter(), "", ()
    with serving(behaviour) as server:
        try:
            hybrid.run(
                "blink",
                data="sample",
                task="Jigsaw",
                limit=1,
                model="openai:k",
                base_url=server.url,
                solvers=["controller"],
                tools=["crop"],
                allow=ALLOWED,
                model_arg={"retries": 1},
                out=str(folder),
                quiet=True,
                **behaviour.options,
            )
        except HybridError as error:
            said = str(error)
    recorded = read_attempts(folder / "controller" / "attempts.jsonl", None)
    for attempt in recorded.by_id.values():
        steps = tuple(step for exchange in attempt.exchanges for step in exchange.reply.steps)
    for error in recorded.unfinished.values():
        said = said or next(line for line in reversed(error.splitlines()) if line.startswith("hybrid.errors."))
    kind, said = _kind(behaviour, steps, said)
    return Result(behaviour, kind, said, time.perf_counter() - began)


def _kind(behaviour: Behaviour, steps: Sequence[Step], said: str) -> tuple[Kind, str]:
    """What the steps of the attempt, and the error without one, come to."""
    ran = [step for step in steps if step.kind == "tool" and step.fault is None]
    faults = [f"{step.fault.value}: {step.text}" for step in steps if step.fault is not None]
    marks = [mark for step in steps for mark in REPAIRS if mark in step.data]
    kind: Kind = "failed"
    if faults or said:
        kind, said = "fault", said or "; ".join(faults)
    elif len(ran) == behaviour.calls_made:
        kind, said = ("repaired", ", ".join(marks)) if marks else ("call", "")
    elif steps and not ran and behaviour.wants == "nothing":
        kind = "nothing"
    if behaviour.wants == "nothing" and ran:
        kind, said = "failed", "a call ran that is none"
    return (kind if WORTH[kind] >= WORTH[behaviour.wants] else "failed"), said


def table(results: Sequence[Result]) -> str:
    """The results in Markdown, one a row."""
    head = ["behaviour", "reported in", "came to", "what is said"]
    rows = [[one.behaviour.name, one.behaviour.link(), SAID[one.kind], _short(one.said)] for one in results]
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def _short(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:160]


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a behaviour failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="behaviours whose name or reference holds it")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the page of results there")
    given = parser.parse_args(words)
    chosen = [one for one in behaviours() if given.only.lower() in f"{one.name} {one.reference}".lower()]
    with tempfile.TemporaryDirectory() as home:
        results = [measured(one, Path(home) / str(place)) for place, one in enumerate(chosen)]
    print(table(results))
    counts = Counter(SAID[one.kind] for one in results)
    print(f"\n{len(results)} behaviours: {dict(counts)}, silent: {sum(one.silent for one in results)}")
    return int(any(one.kind == "failed" for one in results))


if __name__ == "__main__":
    raise SystemExit(main())
