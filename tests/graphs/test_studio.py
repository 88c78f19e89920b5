"""`langgraph dev` with the project's langgraph.json, as Studio starts it: one question through its HTTP API.

The model is the embedded one, as for whoever names no other: its weights load in the server.
"""

import base64
import importlib.util
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.images import ImageStore
from hybrid.running.data import mount, questions
from hybrid.types import BrokenQuestion

ROOT = Path(__file__).parents[2]
installed = all(importlib.util.find_spec(name) is not None for name in ("langgraph_api", "langgraph_cli"))
served = pytest.mark.skipif(not installed, reason="needs langgraph-cli[inmem]")


@pytest.fixture(scope="module")
def studio(servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server once it answers; what it writes lies in a folder of its own."""
    work = tmp_path_factory.mktemp("studio")
    config = json.loads((ROOT / "langgraph.json").read_text())
    # The same configuration from another folder: the server keeps its state beside the file that it is given.
    config["dependencies"] = [str(ROOT)]
    config["graphs"] = {name: str(ROOT / place) for name, place in config["graphs"].items()}
    (work / "langgraph.json").write_text(json.dumps(config))
    port = servers.free_port()
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--config", str(work / "langgraph.json")]
    environment = {
        "HYBRID_HOME": str(work / "home"),
        "HYBRID_MODEL": "embedded",
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    }
    with servers.running(command, f"http://127.0.0.1:{port}/ok", work, environment):
        yield f"http://127.0.0.1:{port}"


def ask(studio: str, question: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps({"assistant_id": "controller", "input": question}).encode()
    request = urllib.request.Request(  # noqa: S310
        f"{studio}/runs/wait", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
        found: dict[str, Any] = json.loads(reply.read())
    return found


@served
def test_the_server_answers_a_question_with_tools(studio: str, tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "store")
    mounted = mount(BENCHMARK, "sample", split=None, tasks=("Jigsaw",), settings={}, store=store, limit=1)
    (puzzle,) = questions(BENCHMARK, mounted.source, 1)
    assert not isinstance(puzzle, BrokenQuestion)
    images = [base64.b64encode(store.read(image)).decode() for image in puzzle.images]
    question = {
        "question": puzzle.text.partition("\n(A)")[0],
        "choices": puzzle.choices,
        "images": [images[0], f"data:image/png;base64,{images[1]}", images[2]],
    }
    found = ask(studio, question)
    assert found["outcome"] == "answered"
    assert parse(found["answer"], puzzle.kind, puzzle.choices).value in ("A", "B")
    assert [step["kind"] for step in found["steps"]] == ["model", "tool", "model"]
    assert {step["fault"] for step in found["steps"]} == {None}
    assert found["steps"][1]["name"] == "jigsaw"


@served
def test_an_image_that_is_none_is_an_outcome_that_names_it(studio: str) -> None:
    found = ask(studio, {"question": "Which?", "images": ["!"]})
    assert (found["outcome"], found["answer"]) == ("broken", "")
    assert "image 1 is not base64" in found["steps"][0]["text"]
