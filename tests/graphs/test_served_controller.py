"""The controller with a real model and no script: question, call, picture, answer; over HTTP and in this process."""

import asyncio
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hybrid.models import ChatModel, ModelSettings, open_model
from hybrid.registry import load_solver
from hybrid.serving.service import ToolService
from hybrid.solving.session import Session
from hybrid.types import Outcome, Reply

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
BUILDER = HERE / "build_controller_vlm.py"
# What the conversation is made of: with other words it is another model.
SOURCES = (
    BUILDER,
    HERE.parent / "hybrid" / "models" / "build_tiny_vlm.py",
    HERE.parent / "fakes.py",
    *(ROOT / "hybrid" / name for name in ("messages.py", "prompts.py", "solving/frames.py")),
    *(ROOT / "hybrid" / "models" / name for name in ("render.py", "toolspec.py")),
    ROOT / "graphs" / "_controller_texts.py",
    ROOT / "graphs" / "controller.py",
    ROOT / "tools" / "jigsaw" / "__init__.py",
)

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "accelerate")),
    reason="needs transformers[serving]",
)


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    found = importlib.util.spec_from_file_location(BUILDER.stem, BUILDER)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tiny model, trained once for each version of the words and kept in pytest's cache."""
    key = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:16]
    cache = getattr(request.config, "cache", None)
    folder: Path = (cache.mkdir("controller_vlm") if cache else tmp_path_factory.mktemp("controller_vlm")) / key
    if not folder.is_dir():
        fresh = folder.with_name(f"{key}.{os.getpid()}")
        subprocess.run([sys.executable, str(BUILDER), str(fresh)], check=True, capture_output=True)
        fresh.rename(folder)
    return folder


@pytest.fixture(scope="module")
def served(checkpoint: Path, servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of `transformers serve`, once it answers."""
    with servers.serving(checkpoint, tmp_path_factory.mktemp("hf")) as address:
        yield address


async def asked(model: ChatModel, builder: ModuleType, service: ToolService) -> Reply:
    question, prompt = builder.puzzle(service.store)
    try:
        async with asyncio.timeout(120):
            return await Session(question, load_solver("controller"), builder.resources(model, service)).ask(prompt)
    finally:
        await model.close()


def told(reply: Reply) -> list[tuple[Any, ...]]:
    return [(step.kind, step.text, step.fault, step.data.get("tool_calls")) for step in reply.steps]


async def test_the_controller_works_alike_over_http_and_in_this_process(
    served: str, checkpoint: Path, builder: ModuleType, service: ToolService
) -> None:
    settings = ModelSettings(base_url=served, seed=0, timeout_s=60, max_tokens=64)
    over_http = await asked(open_model(f"openai:{checkpoint}", settings, service.store), builder, service)
    in_process = ModelSettings(seed=0, device="cpu", max_tokens=64)
    here = await asked(open_model(f"hf:{checkpoint}", in_process, service.store), builder, service)
    for reply in (over_http, here):
        assert (reply.text, reply.outcome) == (builder.ANSWER, Outcome.ANSWERED)
        assert [step.kind for step in reply.steps] == ["model", "tool", "model"]
        assert reply.steps[1].images
        assert (reply.usage.model_calls, reply.usage.tool_calls) == (2, 1)
    assert told(over_http) == told(here)
    assert (over_http.usage.input_tokens, over_http.usage.output_tokens) == (
        here.usage.input_tokens,
        here.usage.output_tokens,
    )
    # The second request held the picture that the tool made, besides the three of the question.
    for reply in (over_http, here):
        sent: Any = reply.steps[2].data["images_sent"]
        assert [image["name"] for image in sent] == [
            "img:1",
            "img:2",
            "img:3",
            *(ref.name for ref in reply.steps[1].images),
        ]
