"""Servers for tests: on a thread with custom answers, or started as a user would and stopped with their child
processes.

    with listening(LocalServer(Handler)) as server:      # a subclass of `JsonHandler`
        url = server.url

Those in separate processes are `running` and `serving`.
"""

import json
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from bench.servers import Server, free_port
from bench.servers import running as started
from tests.runnable import forked
from tests.time_limits import join


class JsonHandler(BaseHTTPRequestHandler):
    """Reads and answers requests in JSON, keeps connections open, and prints nothing."""

    protocol_version = "HTTP/1.1"
    # The head and the body are two writes: the second would wait 40 ms for the client's acknowledgement of the first.
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        self.posted(self.rfile.read(int(self.headers["Content-Length"])))

    @abstractmethod
    def posted(self, body: bytes) -> None:
        """Answer a request that has this body."""

    def answer(self, message: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send bytes unchanged, or anything else as JSON; with its length, unless `headers` have one."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.send_response(status)
        options = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
        for name, value in options.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class LocalServer(ThreadingHTTPServer):
    """A server on a free port of 127.0.0.1."""

    daemon_threads = True
    # A connection that finds the queue full is tried again a second later.
    request_queue_size = 128

    def __init__(self, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connection errors: some tests are about a client that disconnects before the answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


Listener = TypeVar("Listener", bound=ThreadingHTTPServer)


@contextmanager
def listening(server: Listener) -> Iterator[Listener]:
    """Run the server on a thread until the context manager exits."""
    with server:
        # Seconds after which a server on a thread notices that it should stop.
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            join(thread)


@contextmanager
def running(command: Sequence[str], health: str, folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Start a server in `folder`, which has its log, and wait until its address `health` answers."""
    with started(Server(command, health, folder / "log", environment, 600)):
        yield


@contextmanager
def serving(checkpoint: Path | str, folder: Path) -> Iterator[str]:
    """Yield the address of `transformers serve` with a checkpoint, offline, with `folder` as its home."""
    (folder / "hub").mkdir()
    port = free_port()
    command = [*forked("libraries"), str(Path(sys.executable).with_name("transformers")), "serve", str(checkpoint)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--default-seed", "0"]
    offline = {"HF_HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    with running(command, f"http://127.0.0.1:{port}/health", folder, offline):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def provider(key: str, model: str) -> Iterator[str]:
    """Yield the address of a server with one model that requires a key.

    It rejects a wrong key or model with OpenAI's error, and answers A to everything else.
    """
    message = {"role": "assistant", "content": "Answer: (A)"}
    reply = {"model": model, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    class Door(JsonHandler):
        def posted(self, body: bytes) -> None:
            data = json.loads(body)
            options = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if options != key:
                text = "You can find your API key at https://platform.openai.com/account/api-keys."
                self.refuse(401, f"Incorrect API key provided: {options}. {text}", "invalid_api_key")
            elif data["model"] != model:
                expected_text = f"The model `{data['model']}` does not exist or you do not have access to it."
                self.refuse(404, expected_text, "model_not_found")
            else:
                # A server that reads pictures counts tokens for them.
                tokens = 100 + 100 * str(data["messages"]).count("data:image")
                self.answer({**reply, "usage": {"prompt_tokens": tokens, "completion_tokens": 4}})

        def refuse(self, status: int, other_message: str, code: str) -> None:
            error = {"message": other_message, "type": "invalid_request_error", "param": None, "code": code}
            self.answer({"error": error}, status)

    with listening(LocalServer(Door)) as door:
        yield f"{door.url}/v1"
