"""`langgraph dev` with the project's langgraph.json, as Studio starts it: questions through its HTTP API.

The model is the embedded one, as for whoever names no other: its weights load in the server.
"""

import base64
import importlib.util
import json
import re
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphs.controller import build
from hybrid.answers import parse
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.images import ImageStore
from hybrid.running.data import mount, questions
from hybrid.types import BrokenQuestion, Kind

ROOT = Path(__file__).parents[2]
installed = all(importlib.util.find_spec(name) is not None for name in ("langgraph_api", "langgraph_cli"))
served = pytest.mark.skipif(not installed, reason="needs langgraph-cli[inmem]")


@dataclass(frozen=True)
class Puzzle:
    """A generated jigsaw: its words, its two choices, its three pictures."""

    words: str
    choices: tuple[str, ...]
    images: tuple[bytes, ...]

    @property
    def text(self) -> str:
        return f"{self.words}\n(A) {self.choices[0]}\n(B) {self.choices[1]}"


@pytest.fixture(scope="module")
def puzzle(tmp_path_factory: pytest.TempPathFactory) -> Puzzle:
    """A puzzle that the model asks a tool about."""
    store = ImageStore(tmp_path_factory.mktemp("drawn"))
    mounted = mount(BENCHMARK, "sample", split=None, tasks=("Jigsaw",), settings={}, store=store, limit=1)
    (one,) = questions(BENCHMARK, mounted.source, 1)
    assert not isinstance(one, BrokenQuestion)
    return Puzzle(one.text.partition("\n(A)")[0], one.choices, tuple(store.read(image) for image in one.images))


@pytest.fixture(scope="module")
def studio(servers: Any, puzzle: Puzzle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server once it answers; what it writes lies in a folder of its own."""
    work = tmp_path_factory.mktemp("studio")
    config = json.loads((ROOT / "langgraph.json").read_text())
    # The same configuration from another folder: the server keeps its state beside the file that it is given.
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
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
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


def called(studio: str, path: str, body: Any = None) -> Any:
    """What the server says to a GET, or to a POST of a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{studio}{path}", data, {"content-type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
        return json.loads(reply.read())


def ask(studio: str, question: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = called(studio, "/runs/wait", {"assistant_id": "controller", "input": question})
    return found


def url(image: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(image).decode()}"


def check_solved(found: Mapping[str, Any], puzzle: Puzzle) -> None:
    """The jigsaw tool was called on the puzzle and the model has answered; both are drawn."""
    assert (found["outcome"], found["problem"]) == ("answered", "")
    assert parse(found["answer"], Kind.CHOICE, puzzle.choices).value in ("A", "B")
    (finding,) = found["findings"]
    assert (finding["tool"], finding["fault"]) == ("jigsaw", None)
    assert finding["data"]
    human, calling, result, said = found["messages"]
    assert [message["type"] for message in found["messages"]] == ["human", "ai", "tool", "ai"]
    assert [block["type"] for block in human["content"]] == ["text", "image_url", "image_url", "image_url"]
    assert [call["name"] for call in calling["tool_calls"]] == ["jigsaw"]
    assert result["tool_call_id"] == calling["tool_calls"][0]["id"]
    assert finding["text"] in result["content"][0]["text"]
    assert said["content"] == found["answer"]


@served
def test_the_nodes_of_the_controller_are_drawn(studio: str) -> None:
    (assistant,) = called(studio, "/assistants/search", {"graph_id": "controller"})
    assert {"question", "image_paths", "images", "choices"} <= set(re.findall(r"\w+", assistant["description"]))
    drawn = called(studio, f"/assistants/{assistant['assistant_id']}/graph")
    assert {node["id"] for node in drawn["nodes"]} == {"__start__", "read", "model", "tools", "__end__"}
    steps = {(edge["source"], edge["target"]) for edge in drawn["edges"]}
    own = {(edge.source, edge.target) for edge in build().get_graph().edges}
    # The controller's own, but that it is entered with a conversation, and here with an input that is read first.
    assert {step for step in own if step[0] != "__start__"} < steps
    assert steps - own == {("__start__", "read"), ("read", "model"), ("read", "__end__")}


@served
def test_the_schema_of_the_input_describes_every_field(studio: str) -> None:
    (assistant,) = called(studio, "/assistants/search", {"graph_id": "controller"})
    schemas = called(studio, f"/assistants/{assistant['assistant_id']}/schemas")
    fields = schemas["input_schema"]["properties"]
    assert set(fields) == {"question", "choices", "image_paths", "images", "messages"}
    assert all(len(field["description"]) > 40 for field in fields.values())
    assert "$HYBRID_STUDIO_IMAGES" in fields["image_paths"]["description"]
    assert {"answer", "outcome", "problem", "findings"} < set(schemas["output_schema"]["properties"])


@served
def test_images_by_path_and_by_upload_are_one_question(studio: str, puzzle: Puzzle) -> None:
    uploads = [url(puzzle.images[1]), base64.b64encode(puzzle.images[2]).decode()]
    found = ask(
        studio, {"question": puzzle.words, "choices": puzzle.choices, "image_paths": ["1.jpg"], "images": uploads}
    )
    check_solved(found, puzzle)
    shown = [block["image_url"]["url"] for block in found["messages"][0]["content"][1:]]
    assert shown == [url(image) for image in puzzle.images]


@served
def test_a_chat_with_uploaded_images_is_a_question(studio: str, puzzle: Puzzle) -> None:
    images = [{"type": "image_url", "image_url": {"url": url(image)}} for image in puzzle.images]
    message = {"type": "human", "content": [{"type": "text", "text": puzzle.text}, *images]}
    thread = called(studio, "/threads", {})["thread_id"]

    def said(content: Any) -> dict[str, Any]:
        asked = {"assistant_id": "controller", "input": {"messages": [{**message, "content": content}]}}
        found: dict[str, Any] = called(studio, f"/threads/{thread}/runs/wait", asked)
        return found

    check_solved(said(message["content"]), puzzle)
    # What comes next in the chat is about the same images.
    again = said(puzzle.text)
    check_solved({**again, "messages": [*again["messages"][:1], *again["messages"][5:]]}, puzzle)
    assert again["messages"][4]["content"] == puzzle.text


@served
def test_a_path_outside_the_folder_is_refused(studio: str) -> None:
    found = ask(studio, {"question": "Which?", "image_paths": ["../outside.jpg"]})
    assert (found["outcome"], found["answer"], found["findings"]) == ("broken", "", [])
    assert "image_paths: '../outside.jpg' lies outside" in found["problem"]
    assert "HYBRID_STUDIO_IMAGES" in found["problem"]
    assert found["problem"] in found["messages"][-1]["content"]
