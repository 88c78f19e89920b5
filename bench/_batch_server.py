"""A server on the loopback interface that has the batches of OpenAI, Anthropic and Google beside their single forms.

    with batch_server(Behaviour(looks=2)) as server:
        server.url, server.accepted, server.batches

It behaves as the public references say: states in order, results in another order than the requests, partly failed and
expired batches, refusals of files that are too large and of batches that are too many. A request that offers tools and
carries no result of one gets a call of `crop`; any other one a letter that follows from its bytes.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hybrid.running.probes import PROBE_NUMBER, PROBE_TEXT

CALL_PROBE_TEXT = re.compile(rb"Call the tool (\w+) once on the image")
RESULTS = (b'"role":"tool"', b'"tool_result"', b'"functionResponse"')
BOX = {"x0": 1, "y0": 1, "x1": 9, "y1": 9}
Fate = Callable[[int, int], str]
"""From the number of a batch and the place of a request, both from 0, to `succeeded`, `errored`, `expired`, `lost`."""


def all_succeed(batch: int, place: int) -> str:
    """Each request gets its reply."""
    del batch, place
    return "succeeded"


@dataclass
class Behaviour:
    """What the server does beside answering."""

    looks: int = 1
    """So many times a batch is not ready when it is looked at."""
    seconds: float = 0.0
    """So long it is not ready at least."""
    fate: Fate = all_succeed
    ends: Callable[[int], str] = field(default=lambda _: "completed")
    """From the number of a batch to the state in which it ends, in OpenAI's words."""
    refusals: list[int] = field(default_factory=list)
    """Statuses with which the next batches are refused."""
    loses_answer: set[int] = field(default_factory=set)
    """Numbers of batches that are taken, while the connection breaks before the client hears of it."""
    most: int = 50_000
    """Requests of one batch; OpenAI fails the batch, the others refuse it."""
    queue: int = 0
    """Requests that may wait together, 0 for any number; OpenAI fails the batch where there are more."""
    bad_line: int | None = None
    """The line of the first batch that cannot be used."""


@dataclass
class Batch:
    """One batch that was taken."""

    id: str
    number: int
    name: str
    requests: list[tuple[str, bytes]]
    created: float
    state: str = "in_progress"
    looks: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    results: bytes = b""
    file: str = ""
    """Of its requests, until it is deleted."""


class BatchServer:
    """The state of the server: how often each request was taken, sent directly (`singles`) or in a batch (`accepted`).

    What a run asks before its first question is not counted.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.files: dict[str, bytes] = {}
        self.uploads = 0
        self.batches: dict[str, Batch] = {}
        self.accepted: Counter[str] = Counter()
        self.singles: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.defects: list[BaseException] = []
        self.url = ""

    def take(self, word: str, name: str, requests: list[tuple[str, bytes]]) -> Batch:
        """Take a batch. What it fails at before anything is done is in its errors."""
        number = len(self.batches)
        prefix = {"openai": "batch_", "anthropic": "msgbatch_", "google": "batches/"}[word]
        batch = Batch(f"{prefix}{number}", number, name, requests, time.time())
        self.batches[batch.id] = batch
        waiting = sum(len(one.requests) for one in self.batches.values() if one.state == "in_progress")
        if self.behaviour.queue and waiting > self.behaviour.queue:
            batch.errors = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None}]
        elif len(requests) > self.behaviour.most:
            batch.errors = [{"code": "too_many_tasks", "message": "too many requests", "line": None}]
        elif number == 0 and self.behaviour.bad_line is not None:
            line = self.behaviour.bad_line
            batch.errors = [{"code": "invalid_json_line", "message": "This line is not parseable", "line": line}]
        if batch.errors:
            batch.state = "failed"
        else:
            self.accepted.update(digest(body) for _, body in requests)
        return batch

    def look(self, identity: str, word: str) -> Batch:
        """A batch as it is when it is looked at once more."""
        batch = self.batches[identity]
        batch.looks += 1
        ready = batch.looks > self.behaviour.looks and time.time() - batch.created >= self.behaviour.seconds
        if batch.state == "cancelling" or (batch.state == "in_progress" and ready):
            batch.state = "cancelled" if batch.state == "cancelling" else self.behaviour.ends(batch.number)
            batch.results = self._results(batch, word)
        return batch

    def _results(self, batch: Batch, word: str) -> bytes:
        lines = []
        for place, (identity, body) in enumerate(batch.requests):
            fate = self.behaviour.fate(batch.number, place)
            if batch.state in ("cancelled", "expired") and place % 2:
                fate = batch.state
            if fate != "lost":
                lines.append(json.dumps(RESULT[word](identity, fate, body)))
        random.Random(batch.number).shuffle(lines)
        return "\n".join(lines).encode() + b"\n"


def digest(body: bytes) -> str:
    """The same for the same request, however its JSON is written."""
    return hashlib.sha256(json.dumps(json.loads(body), sort_keys=True).encode()).hexdigest()


def said(word: str, body: bytes) -> dict[str, Any]:
    """The reply of the single form to a request."""
    text, call, arguments = f"Answer: ({'AB'[int(digest(body)[:8], 16) % 2]})", "", dict[str, Any]()
    if PROBE_TEXT.encode() in body:
        text = PROBE_NUMBER
    elif (told := CALL_PROBE_TEXT.search(body)) is not None:
        call, arguments = told[1].decode(), {"images": ["img:1"]}
    elif b'"crop"' in body and not any(kind in body.replace(b": ", b":") for kind in RESULTS):
        call, arguments = "crop", {"images": ["img:1"], "box": BOX}
    return REPLY[word](text, call, arguments)


def _openai(text: str, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call, "arguments": json.dumps(arguments)}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": calls} if call else {"role": "assistant"}
    choice = {"index": 0, "message": {"content": text, **message}, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def _anthropic(text: str, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "tool_use", "id": "toolu_1", "name": call, "input": arguments} if call else {}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [part or {"type": "text", "text": text}],
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 100},
    }


def _google(text: str, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    part = {"functionCall": {"name": call, "args": arguments}} if call else {"text": text}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}


def _openai_result(identity: str, fate: str, body: bytes) -> dict[str, Any]:
    if fate in ("expired", "cancelled"):
        error = {"code": f"batch_{fate}", "message": "This request was not executed."}
        return {"id": "r", "custom_id": identity, "response": None, "error": error}
    failed = {"error": {"message": "The server had an error", "type": "server_error", "code": None}}
    response = {"status_code": 200, "body": said("openai", body)}
    response = {"status_code": 500, "body": failed} if fate == "errored" else response
    return {"id": "r", "custom_id": identity, "response": {"request_id": "q", **response}, "error": None}


def _anthropic_result(identity: str, fate: str, body: bytes) -> dict[str, Any]:
    result: dict[str, Any] = {"type": {"cancelled": "canceled"}.get(fate, fate)}
    if fate == "succeeded":
        result["message"] = said("anthropic", body)
    elif fate == "errored":
        result["error"] = {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}
    return {"custom_id": identity, "result": result}


def _google_result(identity: str, fate: str, body: bytes) -> dict[str, Any]:
    if fate == "succeeded":
        return {"key": identity, "response": said("google", body)}
    code = {"expired": 4, "cancelled": 1}.get(fate, 13)
    return {"key": identity, "error": {"code": code, "message": fate}}


REPLY = {"openai": _openai, "anthropic": _anthropic, "google": _google}
RESULT = {"openai": _openai_result, "anthropic": _anthropic_result, "google": _google_result}
_GOOGLE_STATE = {"in_progress": "RUNNING", "completed": "SUCCEEDED", "cancelling": "RUNNING"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listening

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """Lists, looks and results."""
        state, path = self.server.state, self.path.partition("?")[0]
        with state.lock:
            if path in ("/v1/batches", "/v1/messages/batches", "/v1beta/batches"):
                view = {"/v1/batches": _openai_view, "/v1/messages/batches": _anthropic_view}.get(path, _google_view)
                key = "operations" if view is _google_view else "data"
                self._answer({key: [view(one) for one in reversed(state.batches.values())]})
            elif path.startswith("/v1/batches/"):
                self._answer(_openai_view(state.look(path.rpartition("/")[2], "openai")))
            elif path.startswith("/v1beta/batches/"):
                self._answer(_google_view(state.look(path.removeprefix("/v1beta/"), "google")))
            elif path.endswith("/results"):
                self._answer(state.batches[path.split("/")[-2]].results)
            elif path.startswith("/v1/messages/batches/"):
                self._answer(_anthropic_view(state.look(path.rpartition("/")[2], "anthropic")))
            else:
                # /v1/files/out-ID/content, /download/v1beta/files/out-ID:download
                named = re.search(r"out-([\w-]+)", path)
                of = next(one for one in state.batches.values() if named and one.id.endswith(named[1]))
                self._answer(of.results)

    def do_DELETE(self) -> None:
        """A file: /v1/files/in-ID, /v1beta/files/in-ID."""
        with self.server.state.lock:
            del self.server.state.files[re.sub("^/(v1/files|v1beta)/", "", self.path)]
            self._answer({})

    def do_POST(self) -> None:
        """Single requests, files and batches."""
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        state, path, here = self.server.state, self.path.partition("?")[0], self.server.state.behaviour
        with state.lock:
            if path.endswith("cancel"):
                batch = state.batches[re.sub(r"^/(v1/messages/batches|v1/batches|v1beta)/|[:/]cancel$", "", path)]
                batch.state = "cancelling" if batch.state == "in_progress" else batch.state
                self._answer({"id": batch.id})
            elif path == "/v1/files":
                end = b"\r\n--" + self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
                part = next(part for part in (b"\r\n" + body).split(end) if b"filename=" in part[:500])
                self._keep(part.partition(b"\r\n\r\n")[2])
            elif path == "/upload/v1beta/files":
                place = f"{state.url}/upload/v1beta/files/go"
                self._answer({}, headers={"x-goog-upload-url": place})
            elif path == "/upload/v1beta/files/go":
                self._keep(body, google=True)
            elif path.endswith(("/batches", ":batchGenerateContent")):
                if here.refusals:
                    self._answer({"error": {"message": "Too many batches", "type": "x"}}, here.refusals.pop(0))
                    return
                batch, view = self._taken(path, json.loads(body))
                if batch.number in here.loses_answer:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self._answer(view(batch))
            else:
                if PROBE_TEXT.encode() not in body and CALL_PROBE_TEXT.search(body) is None:
                    state.singles[digest(body)] += 1
                google = path.endswith(":generateContent")
                self._answer(
                    said(
                        "google"
                        if google
                        else path.split("/")[2].replace("chat", "openai").replace("messages", "anthropic"),
                        body,
                    )
                )

    def _keep(self, data: bytes, *, google: bool = False) -> None:
        state = self.server.state
        name = f"{'files/' if google else ''}in-{state.uploads}"
        state.uploads += 1
        state.files[name] = data
        self._answer({"file": {"name": name}} if google else {"id": name})

    def _taken(self, path: str, asked: dict[str, Any]) -> tuple[Batch, Callable[[Batch], dict[str, Any]]]:
        state = self.server.state
        if path == "/v1/messages/batches":
            requests = [(one["custom_id"], json.dumps(one["params"]).encode()) for one in asked["requests"]]
            if not all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", identity) for identity, _ in requests):
                raise ValueError("an id that Anthropic does not take")
            return state.take("anthropic", "", requests), _anthropic_view
        if path == "/v1/batches":
            lines = [json.loads(line) for line in state.files[asked["input_file_id"]].splitlines() if line]
            if any((line["url"], line["method"]) != (asked["endpoint"], "POST") for line in lines):
                raise ValueError("a line of another endpoint than its batch")
            requests = [(line["custom_id"], json.dumps(line["body"]).encode()) for line in lines]
            taken = state.take("openai", asked["metadata"]["hybrid_batch"], requests)
            taken.file = asked["input_file_id"]
            return taken, _openai_view
        batch = asked["batch"]
        file = state.files[batch["inputConfig"]["fileName"]]
        lines = [json.loads(line) for line in file.splitlines() if line]
        requests = [(line["key"], json.dumps(line["request"]).encode()) for line in lines]
        taken = state.take("google", batch["displayName"], requests)
        taken.file = batch["inputConfig"]["fileName"]
        return taken, _google_view

    def _answer(self, value: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            "content-type": "application/json",
            "content-length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _openai_view(batch: Batch) -> dict[str, Any]:
    done = len(batch.requests) if batch.results else 0
    return {
        "id": batch.id,
        "object": "batch",
        "status": batch.state,
        "metadata": {"hybrid_batch": batch.name},
        "input_file_id": batch.file,
        "request_counts": {"total": len(batch.requests), "completed": done, "failed": 0},
        "output_file_id": f"out-{batch.number}" if batch.results else None,
        "error_file_id": None,
        "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
    }


def _anthropic_view(batch: Batch) -> dict[str, Any]:
    ended, count = bool(batch.results), len(batch.requests)
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    status = "canceling" if batch.state == "cancelling" else "in_progress"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if ended else status,
        "request_counts": {**counts, "succeeded" if ended else "processing": count},
        "created_at": datetime.fromtimestamp(batch.created, UTC).isoformat().replace("+00:00", "Z"),
        "results_url": f"https://api.anthropic.com/v1/messages/batches/{batch.id}/results" if ended else None,
    }


def _google_view(batch: Batch) -> dict[str, Any]:
    state = _GOOGLE_STATE.get(batch.state, batch.state.upper())
    facts: dict[str, Any] = {"displayName": batch.name, "state": f"BATCH_STATE_{state}"}
    facts["inputConfig"] = {"fileName": batch.file}
    if batch.results:
        facts["output"] = {"responsesFile": f"files/out-{batch.number}"}
        facts["batchStats"] = {"requestCount": str(len(batch.requests)), "successfulRequestCount": "0"}
    return {"name": batch.id, "metadata": facts, "done": bool(batch.results)}


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, state: BatchServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state = state

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what is a defect of a request; clients that were killed, and answers that get lost, are none."""
        if not isinstance(error := sys.exc_info()[1], ConnectionError | None):
            self.state.defects.append(error)


@contextmanager
def batch_server(behaviour: Behaviour | None = None) -> Iterator[BatchServer]:
    """The server while it answers, on a thread of this process."""
    state = BatchServer(behaviour or Behaviour())
    with _Listening(state) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
            if state.defects:
                raise state.defects[0]
