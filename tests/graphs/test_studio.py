"""`langgraph dev` with the project's langgraph.json, as Studio starts it: questions are sent through its HTTP API.

The model is the embedded one, the default: its weights load in the server.
"""

import base64
import importlib.util
import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Kind
from hybrid.running.data import mount, questions
from tests.runnable import forked

ROOT = Path(__file__).parents[2]
installed = all(importlib.util.find_spec(name) is not None for name in ("langgraph_api", "langgraph_cli"))
served = pytest.mark.skipif(not installed, reason="needs langgraph-cli[inmem]")


@dataclass(frozen=True)
class Puzzle:
    """A generated jigsaw: its text, its two choices, its three pictures."""

    words: str
    choices: tuple[str, ...]
    images: tuple[bytes, ...]

    @property
    def text(self) -> str:
        return f"{self.words}\n(A) {self.choices[0]}\n(B) {self.choices[1]}"


@pytest.fixture(scope="module")
def puzzle(tmp_path_factory: pytest.TempPathFactory) -> Puzzle:
    """Return a puzzle for which the model calls a tool."""
    store = ImageStore(tmp_path_factory.mktemp("drawn"))
    mounted = mount(BENCHMARK, "sample", split=None, tasks=("Jigsaw",), settings={}, store=store, limit=1)
    (question,) = questions(BENCHMARK, mounted.source, 1)
    assert not isinstance(question, BrokenQuestion)
    return Puzzle(
        question.text.partition("\n(A)")[0], question.choices, tuple(store.read(image) for image in question.images)
    )


@pytest.fixture(scope="module")
def studio(servers: Any, puzzle: Puzzle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server once the server answers; the server writes to its own folder."""
    work = tmp_path_factory.mktemp("studio")
    config = json.loads((ROOT / "langgraph.json").read_text())
    # The same configuration in another folder, because the server keeps its state beside the configuration file.
    config["dependencies"] = [str(ROOT)]
    for served in config["graphs"].values():
        served["path"] = str(ROOT / served["path"])
    images = work / "allowed"
    images.mkdir()
    for place, picture in enumerate(puzzle.images, 1):
        (images / f"{place}.jpg").write_bytes(picture)
    (work / "outside.jpg").write_bytes(puzzle.images[0])
    (work / "langgraph.json").write_text(json.dumps(config))
    port = servers.free_port()
    command = [
        *forked("libraries"),
        str(Path(sys.executable).with_name("langgraph")),
        "dev",
        "--no-browser",
        "--no-reload",
    ]
    command += ["--host", "127.0.0.1", "--port", str(port), "--config", str(work / "langgraph.json")]
    environment = {
        "HYBRID_HOME": str(work / "home"),
        "HYBRID_MODEL": "embedded",
        "HYBRID_STUDIO_IMAGES": str(images),
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    }
    with servers.running(command, f"http://127.0.0.1:{port}/ok", work, environment):
        yield f"http://127.0.0.1:{port}"


def fetch(studio: str, path: str, body: Any = None) -> Any:
    """Return the server's response to a GET, or to a POST with a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{studio}{path}", data, {"content-type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=600) as reply:  # noqa: S310
        return json.loads(reply.read())


def url(image: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(image).decode()}"


def check_solved(results: Mapping[str, Any], puzzle: Puzzle) -> None:
    """Check that the jigsaw tool was called on the puzzle, that the model has answered, and that both are displayed."""
    assert results["outcome"] == "answered"
    assert parse(results["answer"], Kind.CHOICE, puzzle.choices).value in ("A", "B")
    _, calling, result, text = results["messages"]
    assert [message["type"] for message in results["messages"]] == ["human", "ai", "tool", "ai"]
    assert [call["name"] for call in calling["tool_calls"]] == ["jigsaw"]
    assert result["tool_call_id"] == calling["tool_calls"][0]["id"]
    assert "img:1" in result["content"]
    assert text["content"] == results["answer"]


@pytest.mark.system
@served
def test_paths_and_uploads_are_one_question_and_stay_in_the_chat(studio: str, puzzle: Puzzle) -> None:
    images = [{"type": "image_url", "image_url": {"url": url(image)}} for image in puzzle.images]
    thread = fetch(studio, "/threads", {})["thread_id"]

    def send_message(content: Any, *paths: str) -> dict[str, Any]:
        message = {"messages": [{"type": "human", "content": content}], "image_paths": paths}
        request = {"assistant_id": "controller", "input": message}
        results: dict[str, Any] = fetch(studio, f"/threads/{thread}/runs/wait", request)
        return results

    first = send_message([{"type": "text", "text": puzzle.text}, *images[1:]], "1.jpg")
    check_solved(first, puzzle)
    # The next message of the chat is about the same uploads.
    second = send_message(puzzle.text, "1.jpg")
    assert second["messages"][:4] == first["messages"]
    check_solved({**second, "messages": second["messages"][4:]}, puzzle)


@pytest.mark.system
@served
def test_a_path_outside_the_folder_is_refused(studio: str) -> None:
    message = {"messages": [{"type": "human", "content": "Which?"}], "image_paths": ["../outside.jpg"]}
    result = fetch(studio, "/runs/wait", {"assistant_id": "controller", "input": message})
    assert (result["outcome"], result["answer"]) == ("broken", "")
    assert "image_paths: '../outside.jpg' is outside" in result["messages"][-1]["content"]
