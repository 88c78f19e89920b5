"""Servers that tests start as a user does: waited for, and ended with what they started. See the fixture `servers`."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.runnable import forked

START_S = 90
STOP_S = 10


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(command: Sequence[str], health: str, folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """A server in `folder`, where its log lies, from when its address `health` answers."""
    log = folder / "log"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        ) as server,
    ):
        try:
            _wait(health, server, log)
            yield
        finally:
            _stop(server)


@contextmanager
def serving(checkpoint: Path | str, folder: Path) -> Iterator[str]:
    """Address of `transformers serve` with a checkpoint, offline, with `folder` for its own."""
    (folder / "hub").mkdir()
    port = free_port()
    command = [*forked("libraries"), str(Path(sys.executable).with_name("transformers")), "serve", str(checkpoint)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--default-seed", "0"]
    offline = {"HF_HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    with running(command, f"http://127.0.0.1:{port}/health", folder, offline):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def provider(key: str, model: str) -> Iterator[str]:
    """Address of a server that asks for a key, knows one model, and refuses as OpenAI does; it always answers A."""
    message = {"role": "assistant", "content": "Answer: (A)"}
    reply = {"model": model, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            given = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if given != key:
                where = "You can find your API key at https://platform.openai.com/account/api-keys."
                self.refuse(401, f"Incorrect API key provided: {given}. {where}", "invalid_api_key")
            elif body["model"] != model:
                said = f"The model `{body['model']}` does not exist or you do not have access to it."
                self.refuse(404, said, "model_not_found")
            else:
                tokens = 100 + 100 * str(body["messages"]).count("data:image")  # Of one that sees.
                self.answer(200, {**reply, "usage": {"prompt_tokens": tokens, "completion_tokens": 4}})

        def refuse(self, status: int, said: str, code: str) -> None:
            error = {"message": said, "type": "invalid_request_error", "param": None, "code": code}
            self.answer(status, {"error": error})

        def answer(self, status: int, said: Mapping[str, object]) -> None:
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as door:
        thread = threading.Thread(target=door.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{door.server_address[1]}/v1"
        finally:
            door.shutdown()
            thread.join()


def _wait(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(START_S * 4):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.25)
    pytest.fail(f"the server did not come up:\n{log.read_text()[-2000:]}")


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """End the server and the processes that it started, whatever it is doing."""
    if server.poll() is not None:
        return
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(STOP_S)
