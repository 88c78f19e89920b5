"""A server on the loopback interface with the batch APIs of OpenAI, Anthropic and Google and their direct APIs.

    with batch_server(Behaviour(looks=2)) as server:
        server.url, server.accepted, server.batches

It follows the public references: states in order, results in a different order than the requests, partly failed and
expired batches, and errors for files that are too large and for too many batches. A request that offers tools and
contains no tool result gets a call of `crop`; any other request gets a letter that depends only on its bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from bench._chat_server import CALL_PROBE_TEXT, answer_body, framed, on_thread, tool_call
from hybrid.running.probes import ORDER_NUMBERS, ORDER_TEXT, PROBE_NUMBER, PROBE_TEXT

RESULTS = (b'"role":"tool"', b'"tool_result"', b'"functionResponse"')
BOX = {"x0": 1, "y0": 1, "x1": 9, "y1": 9}
# Fields that all replies share, and errors that all failed requests share.
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
MESSAGE |= {"usage": {"input_tokens": 1000, "output_tokens": 100}}
METADATA = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "error": None}
RESPONSE |= {"incomplete_details": None, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
RESPONSE |= {"usage": {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}}
CHAT = {"model": "m", "done": True, "done_reason": "stop", "prompt_eval_count": 1000, "eval_count": 100}
UNEXECUTED = {"message": "This request was not executed."}
OPENAI_FAILED = {"error": {"message": "The server had an error", "type": "server_error", "code": None}}
ANTHROPIC_FAILED = {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}
# Maps the index of a batch and of a request, both from 0, to `succeeded`, `errored`, `expired` or `lost`.
Fate = Callable[[int, int], str]


@dataclass
class Behaviour:
    """Deviations of the server from its normal behaviour."""

    # How many status requests report a batch as unfinished.
    looks: int = 1
    # Minimum time for which a batch is unfinished.
    seconds: float = 0.0
    fate: Fate = field(default=lambda batch, place: "succeeded")
    # Maps the index of a batch to its final state, in OpenAI's terms.
    ends: Callable[[int], str] = field(default=lambda _: "completed")
    # HTTP statuses with which the next batches are rejected.
    refusals: list[int] = field(default_factory=list)
    # Indices of batches that are accepted, although the connection breaks before the client gets the reply.
    loses_answer: set[int] = field(default_factory=set)
    # Maximum requests per batch; OpenAI fails a larger batch, the others reject it.
    most: int = 50_000
    # Maximum requests that may be queued together, 0 for no limit; OpenAI fails a batch beyond it.
    queue: int = 0
    # Index of the line, in the first batch, that the server rejects as unusable.
    bad_line: int | None = None
    # Maps the index of a batch and of a status request, both from 0, to whether the server answers with a 404.
    unknown: Callable[[int, int], bool] = field(default=lambda batch, look: False)
    # Maps the index of a batch to whether the list of batches contains it.
    is_in_list: Callable[[int], bool] = field(default=lambda _: True)
    # Maps the index of a batch and its results to the results that are sent.
    rewrite: Callable[[int, bytes], bytes] = field(default=lambda _, results: results)
    # Whether responses are compressed with gzip.
    packed: bool = False


@dataclass
class Batch:
    """One accepted batch."""

    id: str
    number: int
    name: str
    requests: list[tuple[str, bytes]]
    created: float
    state: str = "in_progress"
    looks: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    results: bytes = b""
    # Name of the file with the batch's requests, until the file is deleted.
    file: str = ""


class BatchServer:
    """State of the server: how often each request was received, directly (`singles`) or in a batch (`accepted`).

    Requests before a run's first question are not counted.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.files: dict[str, bytes] = {}
        self.uploads = 0
        self.batches: dict[str, Batch] = {}
        self.accepted: Counter[str] = Counter()
        self.singles: Counter[str] = Counter()
        self.url = ""

    def take(self, word: str, name: str, requests: list[tuple[str, bytes]]) -> Batch:
        """Accept a batch. Faults found before any request is run are stored in its errors."""
        number = len(self.batches)
        prefix = {"openai": "batch_", "anthropic": "msgbatch_", "google": "batches/"}[word]
        batch = Batch(f"{prefix}{number}", number, name, requests, time.time())
        self.batches[batch.id] = batch
        waiting = sum(len(item.requests) for item in self.batches.values() if item.state == "in_progress")
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
        """Return a batch as the next status request sees it."""
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
                lines.append(json.dumps(result(word, identity, fate, body)))
        random.Random(batch.number).shuffle(lines)
        return "\n".join(lines).encode() + b"\n"

    def answer(self, head: bytes, body: bytes) -> bytes:
        """Return the reply to one request."""
        method, path = head.split(b" ", 2)[:2]
        place = path.decode().partition("?")[0]
        if method == b"DELETE":
            # Delete a file; its path is /v1/files/in-ID or /v1beta/files/in-ID.
            del self.files[re.sub("^/(v1/files|v1beta)/", "", place)]
            return _response({})
        built = self._got(place) if method == b"GET" else self._posted(place, head, body)
        if isinstance(built, bytes) and built.startswith(b"HTTP/"):
            return built
        return _response(built, packed=self.behaviour.packed)

    def _got(self, path: str) -> object:
        """Handle GET requests: lists, status requests and results."""
        word = next((word for word, prefix in LISTS.items() if path.startswith(prefix)), None)
        if word is None or path.endswith("/results"):
            # Results, at one of these paths: /v1/files/out-ID/content, /download/v1beta/files/out-ID:download,
            # /v1/messages/batches/ID/results
            number = int(re.findall(r"(?:out-|msgbatch_)(\d+)", path)[-1])
            batch = next(item for item in self.batches.values() if item.number == number)
            return self.behaviour.rewrite(number, batch.results)
        if path == LISTS[word]:
            batches = [batch for batch in self.batches.values() if self.behaviour.is_in_list(batch.number)]
            values = [view(word, batch) for batch in reversed(batches)]
            return {"operations" if word == "google" else "data": values}
        name = path.removeprefix(f"{LISTS[word]}/")
        batch = self.look(f"batches/{name}" if word == "google" else name, word)
        if self.behaviour.unknown(batch.number, batch.looks - 1):
            return _response({"error": {"message": "No such batch"}}, 404)
        return view(word, batch)

    def _posted(self, path: str, head: bytes, body: bytes) -> object:
        """Handle POST requests: single requests, files and batches."""
        if path.endswith("cancel"):
            batch = self.batches[re.sub(r"^/(v1/messages/batches|v1/batches|v1beta)/|[:/]cancel$", "", path)]
            batch.state = "cancelling" if batch.state == "in_progress" else batch.state
            return {"id": batch.id}
        if path == "/v1/files":
            boundary = re.search(rb'(?i)boundary="?([^"\r\n;]+)', head)
            end = b"\r\n--" + (boundary[1] if boundary else b"")
            part = next(part for part in (b"\r\n" + body).split(end) if b"filename=" in part[:500])
            return {"id": self._store_file(part.partition(b"\r\n\r\n")[2])}
        if path == "/upload/v1beta/files":
            return framed(b"{}", headers={"x-goog-upload-url": f"{self.url}{path}/go"})
        if path == "/upload/v1beta/files/go":
            return {"file": {"name": self._store_file(body, "files/")}}
        if path.endswith(("/batches", ":batchGenerateContent")):
            if self.behaviour.refusals:
                return _response(
                    {"error": {"message": "Too many batches", "type": "x"}}, self.behaviour.refusals.pop(0)
                )
            word, batch = self._create_batch(path, json.loads(body))
            if batch.number in self.behaviour.loses_answer:
                raise ConnectionError
            return view(word, batch)
        asks_first = any(text.encode() in body for text in (PROBE_TEXT, ORDER_TEXT))
        if not asks_first and CALL_PROBE_TEXT.search(body) is None:
            self.singles[digest(body)] += 1
        kinds = {"chat/completions": "openai", "messages": "anthropic"}
        return direct_reply(next((word for end, word in kinds.items() if path.endswith(end)), "google"), body)

    def _store_file(self, data: bytes, folder: str = "") -> str:
        name = f"{folder}in-{self.uploads}"
        self.uploads += 1
        self.files[name] = data
        return name

    def _create_batch(self, path: str, request: dict[str, Any]) -> tuple[str, Batch]:
        if path == LISTS["anthropic"]:
            requests = [(item["custom_id"], json.dumps(item["params"]).encode()) for item in request["requests"]]
            if not all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", identity) for identity, _ in requests):
                raise ValueError("an id that Anthropic does not take")
            return "anthropic", self.take("anthropic", "", requests)
        openai = path == LISTS["openai"]
        file = request["input_file_id"] if openai else request["batch"]["inputConfig"]["fileName"]
        lines = [json.loads(line) for line in self.files[file].splitlines() if line]
        if openai and any((line["url"], line["method"]) != (request["endpoint"], "POST") for line in lines):
            raise ValueError("a line has another endpoint than its batch")
        identity, content = ("custom_id", "body") if openai else ("key", "request")
        requests = [(line[identity], json.dumps(line[content]).encode()) for line in lines]
        name = request["metadata"]["hybrid_batch"] if openai else request["batch"]["displayName"]
        word = "openai" if openai else "google"
        batch = self.take(word, name, requests)
        batch.file = file
        return word, batch


def digest(body: bytes) -> str:
    """Return a hash that is the same for equal requests, whatever the formatting of their JSON."""
    return hashlib.sha256(json.dumps(json.loads(body), sort_keys=True).encode()).hexdigest()


def direct_reply(word: str, body: bytes) -> dict[str, Any]:
    """Return the direct reply to a request: a text, or a call of a tool."""
    text, call, arguments = f"Answer: ({'AB'[int(digest(body)[:8], 16) % 2]})", "", dict[str, Any]()
    if PROBE_TEXT.encode() in body:
        text = PROBE_NUMBER
    elif ORDER_TEXT.encode() in body:
        text = " ".join(ORDER_NUMBERS)
    elif (match := CALL_PROBE_TEXT.search(body)) is not None:
        call, arguments = match[1].decode(), {"images": ["img:1"]}
    elif b'"crop"' in body and not any(kind in body.replace(b": ", b":") for kind in RESULTS):
        call, arguments = "crop", {"images": ["img:1"], "box": BOX}
    return reply_of(word, text, call, arguments)


def reply_of(wire: str, text: str, call: str = "", arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the body of a complete reply of an API: a text, or a call of the tool `call`."""
    values = dict(arguments or {})
    match wire:
        case "openai":
            message = tool_call(json.dumps(values), call) if call else {"content": text}
            reply = answer_body(message, "tool_calls" if call else "stop", input_tokens=1000, output_tokens=100)
            return dict(json.loads(reply))
        case "anthropic":
            part = {"type": "tool_use", "id": "toolu_1", "name": call, "input": values} if call else {}
            part = part or {"type": "text", "text": text}
            return {**MESSAGE, "content": [part], "stop_reason": "tool_use" if call else "end_turn"}
        case "responses":
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": call, "status": "completed"}
            item |= {"arguments": json.dumps(values)}
            parts = [{"type": "output_text", "text": text, "annotations": []}]
            words = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}
            return {**RESPONSE, "output": [item if call else words]}
        case "ollama":
            calls = {"tool_calls": [{"function": {"name": call, "arguments": values}}]} if call else {}
            return {**CHAT, "message": {"role": "assistant", "content": text, **calls}}
    part = {"functionCall": {"name": call, "args": values}} if call else {"text": text}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": METADATA, "modelVersion": "m"}


def result(word: str, identity: str, fate: str, body: bytes) -> dict[str, Any]:
    """Return the line for a request in the results of its batch."""
    finished = direct_reply(word, body) if fate == "succeeded" else None
    match word:
        case "openai":
            line = {"id": "r", "custom_id": identity, "response": None, "error": None}
            if fate in ("expired", "cancelled"):
                return {**line, "error": {"code": f"batch_{fate}", **UNEXECUTED}}
            payload = (
                {"status_code": 200, "body": finished} if finished else {"status_code": 500, "body": OPENAI_FAILED}
            )
            return {**line, "response": {"request_id": "q", **payload}}
        case "anthropic":
            more = {"message": finished} if finished else {"error": ANTHROPIC_FAILED} if fate == "errored" else {}
            return {"custom_id": identity, "result": {"type": {"cancelled": "canceled"}.get(fate, fate), **more}}
    code = {"expired": 4, "cancelled": 1}.get(fate, 13)
    return {"key": identity, **({"response": finished} if finished else {"error": {"code": code, "message": fate}})}


def view(word: str, batch: Batch) -> dict[str, Any]:
    """Return the description of a batch that the server sends."""
    flag, count = bool(batch.results), len(batch.requests)
    match word:
        case "openai":
            options: dict[str, Any] = {"id": batch.id, "object": "batch", "status": batch.state, "error_file_id": None}
            options |= {"metadata": {"hybrid_batch": batch.name}, "input_file_id": batch.file}
            options["request_counts"] = {"total": count, "completed": count if flag else 0, "failed": 0}
            options["output_file_id"] = f"out-{batch.number}" if flag else None
            return {**options, "errors": {"object": "list", "data": batch.errors} if batch.errors else None}
        case "anthropic":
            status = "ended" if flag else "canceling" if batch.state == "cancelling" else "in_progress"
            counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
            options = {"id": batch.id, "type": "message_batch", "processing_status": status}
            options["request_counts"] = {**counts, "succeeded" if flag else "processing": count}
            options["created_at"] = datetime.fromtimestamp(batch.created, UTC).isoformat().replace("+00:00", "Z")
            url = f"https://api.anthropic.com/v1/messages/batches/{batch.id}/results"
            return {**options, "results_url": url if flag else None}
    state = {"in_progress": "RUNNING", "completed": "SUCCEEDED", "cancelling": "RUNNING"}.get(batch.state)
    options = {"displayName": batch.name, "state": f"BATCH_STATE_{state or batch.state.upper()}"}
    options["inputConfig"] = {"fileName": batch.file}
    if flag:
        options["output"] = {"responsesFile": f"files/out-{batch.number}"}
        options["batchStats"] = {"requestCount": str(count), "successfulRequestCount": "0"}
    return {"name": batch.id, "metadata": options, "done": flag}


LISTS = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches", "google": "/v1beta/batches"}


def _response(value: object, status: int = 200, *, packed: bool = False) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    if packed:
        data = gzip.compress(data)
    headers = {"content-encoding": "gzip"} if packed else {}
    return framed(data, f"{status} {HTTPStatus(status).phrase}", headers=headers)


@contextmanager
def batch_server(behaviour: Behaviour | None = None) -> Iterator[BatchServer]:
    """Run the server on a thread of this process."""
    state = BatchServer(behaviour or Behaviour())
    with on_thread(state.answer) as state.url:
        yield state
