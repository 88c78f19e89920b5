"""`hybrid models check`: its results on servers of every kind, and the command that it prints at the end."""

import base64
import io
import json
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.finished_runs import Command
from tests.servers import JsonHandler, LocalServer, listening
from tests.tables import cases

TEXT_CALL = '```json\n{"tool": "crop", "images": ["img:1"], "args": {}}\n```'


@dataclass(frozen=True)
class Able:
    """Abilities of a model and its server."""

    pictures: int = 99
    forms: Sequence[str] = ("PNG", "JPEG")
    side: int = 1024
    sees: bool = True
    calls: int = 2
    # The server's reason for refusing tools.
    tools: str = ""
    # Text that the model generates in place of calls.
    says: str = ""
    in_text: bool = False
    # The server's reason for not continuing the conversation after a call.
    results: str = ""
    disc: str = "(630, 110)"
    rejects: Mapping[str, str] = field(default_factory=dict)
    counts: bool = True
    ends: str = "stop"
    streams: bool = True


class Model(LocalServer):
    """A server of a model with these abilities, and the list of its requests."""

    def __init__(self, able: Able) -> None:
        super().__init__(Asked)
        self.able = able
        self.asked: list[dict[str, Any]] = []


class Asked(JsonHandler):
    server: Model

    def posted(self, body: bytes) -> None:
        data = json.loads(body)
        self.server.asked.append(data)
        refusal = self.refusal(data)
        if refusal:
            self.answer({"error": {"message": refusal, "type": "invalid_request_error", "code": None}}, 400)
            return
        message, reason = self.message(data)
        counts = {"prompt_tokens": 20 + 200 * len(pictures(data)) * self.server.able.sees, "completion_tokens": 4}
        usage = {"usage": counts} if self.server.able.counts else {}
        streamed = data.get("stream", False) and self.server.able.streams
        form = "delta" if streamed else "message"
        messages = {"choices": [{"index": 0, form: message, "finish_reason": reason}], **usage}
        events = f"data: {json.dumps(messages)}\n\ndata: [DONE]\n\n".encode()
        self.answer(*((events, 200, {"content-type": "text/event-stream"}) if streamed else (messages,)))

    def refusal(self, request: Mapping[str, Any]) -> str:
        able, text = self.server.able, pictures(request)
        if len(text) > able.pictures:
            return f"At most {able.pictures} image(s) may be provided in one request."
        if wrong := next((item.format for item in text if item.format not in able.forms), None):
            return f"unsupported image type {wrong}"
        if any(max(entry.size) > able.side for entry in text):
            return "image too large"
        if any(message["role"] == "tool" for message in request["messages"]):
            return able.results
        wrong = next((reason for key, reason in able.rejects.items() if key in request), "")
        return wrong or (able.tools if "tools" in request else "")

    def message(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        able, text = self.server.able, str(request["messages"])
        messages = {"role": "assistant", "content": "ready", "reasoning_content": "A thought."}
        if any(message["role"] == "tool" for message in request["messages"]):
            return {**messages, "content": "4915"}, "stop"
        if "Call the tool crop" in text:
            if "tools" not in request:
                return {**messages, "content": TEXT_CALL if able.in_text else "I see a cat."}, "stop"
            function = {"name": "crop", "arguments": '{"images": ["img:1"]}'}
            calls = [{"id": f"c{at}", "type": "function", "function": function} for at in range(able.calls)]
            return {**messages, "content": able.says, **({"tool_calls": calls} if calls else {})}, "stop"
        if "red disc" in text:
            return {**messages, "content": able.disc}, "stop"
        if "Count from" in text:
            return {**messages, "content": "1\n2\n3"}, "length"
        numbers = ", ".join(f"{at}{at * 3 % 10}" for at in range(1, len(pictures(request)) + 1))
        several = "Each picture" in text
        return {
            **messages,
            "content": numbers if several else "7306" if able.sees and pictures(request) else "ready",
        }, able.ends


def pictures(request: Mapping[str, Any]) -> list[Image.Image]:
    urls = re.findall(r"data:image/\w+;base64,([\w+/=]+)", json.dumps(request["messages"]))
    return [Image.open(io.BytesIO(base64.b64decode(url))) for url in urls]


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the pictures by small ones, because drawing the largest takes a second."""
    monkeypatch.setattr("hybrid.running.model_check.SIDES", (1024, 512, 256))


def checked(command: Command, able: Able, *words: str) -> tuple[Any, dict[str, tuple[str, str]], Model]:
    with listening(Model(able)) as server:
        result = command("models", "check", "openai:k", "--base-url", f"{server.url}/v1", "--json", *words)
    data = json.loads(result.out)
    return result, {item["asked"]: (item["came"], item["means"]) for item in data["found"]}, server


def options_of(result: Any) -> list[str]:
    """Return the options after the address in the printed command."""
    words: list[str] = json.loads(result.out)["command"]
    return words[words.index("--base-url") + 2 :]


@pytest.mark.system
@pytest.mark.parametrize(*cases(__file__, "servers", able=lambda text: Able(**text)))
def test_what_a_server_can_do_is_found_and_the_options_follow(
    command: Command, able: Able, capability: str, answer: str, options: str | None, code: int
) -> None:
    result, output, server = checked(command, able)
    assert answer in output[capability][0]
    assert options is None or options_of(result) == shlex.split(options)
    assert result.code == code
    assert len(server.asked) <= 32


@pytest.mark.system
def test_the_command_that_is_printed_runs_as_printed(command: Command, tmp_path: Path) -> None:
    able = Able(tools="m does not support tools", in_text=True, disc="(700, 220)", pictures=2)
    with listening(Model(able)) as server:
        words = ("openai:k", "--base-url", f"{server.url}/v1", "--model-arg", "price=1/2", "--max-tokens", "900")
        *_, line = command("models", "check", *words).out.strip().splitlines()
        assert line.startswith("hybrid run blink ")
        assert "--model-arg price=1/2 " in line
        assert "--max-tokens 900 " in line
        assert "--tool-calling text" in line
        command(*shlex.split(line)[1:], "--out", "out", code=0)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["identity"]["frame"] == "thousandths"


def test_a_device_of_the_environment_is_not_read(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_DEVICE", "nonsense")
    error = command("models", "check", "openai:k", "--base-url", "http://127.0.0.1:9/v1", code=2).err
    assert "127.0.0.1:9" in error
    assert "HYBRID_DEVICE" not in error


def bad(answer: Callable[[JsonHandler], None]) -> type[JsonHandler]:
    class Bad(JsonHandler):
        def posted(self, body: bytes) -> None:
            answer(self)

    return Bad


ERROR = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda at: at.answer(b"<html>Welcome</html>", 200, {"content-type": "text/html"}), "check --base-url"),
        (lambda at: at.answer({"detail": "Not Found"}, 404), "need /v1 at its end"),
        (lambda at: at.answer(ERROR, 401), "check the key in the environment"),
        (lambda at: at.answer({"error": {"message": "The model `k` does not exist."}}, 404), "check the model's name"),
        (lambda at: time.sleep(3.0), "silence for 0.2 s"),
        (lambda at: at.answer(b""), "the reply is not JSON"),
        (lambda at: at.answer({"choices": []}), "the reply contains no message"),
        (lambda at: at.answer({"error": {"message": "overloaded"}}, 503), "overloaded"),
    ],
)
def test_a_server_that_does_not_answer_is_one_line(
    command: Command, answer: Callable[[JsonHandler], None], message: str
) -> None:
    with listening(LocalServer(bad(answer))) as server:
        timeout_s = 0.2 if message.startswith("silence") else 120
        words: Sequence[str] = ("--base-url", f"{server.url}/v1", "--model-arg", f"timeout_s={timeout_s}")
        result = command("models", "check", "openai:k", *words, code=2)
    (line,) = result.err.strip().splitlines()
    assert message in line
