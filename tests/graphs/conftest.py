"""Fixtures for the graphs: an OpenAI-compatible server that replies from a queue, and an `Asker` that uses it."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.config import ModelSettings, ServiceOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Exchange, Fault, ImageRef, Prompt, Question, Reply, Score
from hybrid.models.caller import Caller
from hybrid.models.failures import Backoff
from hybrid.models.langchain.client import LangChainClient
from hybrid.plugins.registry import load, load_solver
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.session import Session
from tests.fakes import resources
from tests.servers import JsonHandler, LocalServer, listening

# Time limit for one prompt of these tests, whatever the server does.
HANGS_S = 240
# Usage that the server reports for every reply.
INPUT_TOKENS, OUTPUT_TOKENS = 100, 10


@dataclass(frozen=True)
class Raw:
    """A reply that the server sends unchanged: held back until the test ends if `waits_for_end`, or cut short if
    `cut`."""

    body: bytes
    status: int = 200
    waits_for_end: bool = False
    cut: bool = False


def call(name: str, arguments: Mapping[str, Any] | str, identity: str = "c0") -> dict[str, Any]:
    """Return a tool call as the API writes it; arguments that are strings are sent unchanged."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}


def says(
    text: str | None = None,
    *calls: Mapping[str, Any],
    finish: str | None = None,
    refusal: str | None = None,
    waits_for_end: bool = False,
) -> Raw:
    """Return a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    if refusal is not None:
        message["refusal"] = refusal
    body = {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if calls else "stop")}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }
    return Raw(json.dumps(body).encode(), waits_for_end=waits_for_end)


class Adversary:
    """A server on 127.0.0.1 that returns queued replies, repeats the last one, and records every request."""

    def __init__(self) -> None:
        self.queue: list[Raw] = []
        self.requests: list[dict[str, Any]] = []
        self.over = threading.Event()
        adversary = self

        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                adversary.requests.append(json.loads(body))
                reply = adversary.queue.pop(0) if len(adversary.queue) > 1 else adversary.queue[0]
                if reply.waits_for_end:
                    adversary.over.wait(HANGS_S)
                length = len(reply.body) + (100 if reply.cut else 0)
                self.answer(reply.body, reply.status, {"content-length": str(length)})
                self.close_connection = reply.cut

        self.server = LocalServer(Handler)
        self.url = f"{self.server.url}/v1"

    def tool_texts(self, request: int = -1) -> list[str]:
        """Return the texts of a request's tool messages, in order."""
        return [m["content"] for m in self.requests[request]["messages"] if m["role"] == "tool"]


@pytest.fixture
def adversary() -> Iterator[Adversary]:
    """Yield the running server."""
    item = Adversary()
    with listening(item.server):
        yield item
        item.over.set()


@dataclass
class Asker:
    """Asks a solver about generated images through the openai client and the real tools."""

    adversary: Adversary
    service: CachedTools
    question: Question
    prompt: Prompt
    options: dict[str, Any] = field(default_factory=dict)
    session: Session | None = None

    async def __call__(self, *replies: Raw, solver: str = "controller", retries: int = 1, **changes: Any) -> Reply:
        """Give the prompt to the solver; `changes` are fields of `AskSetup`. Fails the test if the answer takes too
        long.
        """
        self.adversary.queue = list(replies)
        settings = ModelSettings(base_url=self.adversary.url, retries=retries, timeout_s=HANGS_S)
        client = LangChainClient("openai:scripted", settings, self.service.store)
        model = Caller(client, settings, backoff=Backoff(base_s=0.01))
        tools: Sequence[str] = changes.pop("tools", ("crop", "depth", "jigsaw", "markers"))
        options: dict[str, Any] = {
            "control": ToolCondition(self.service),
            "tools_offered": tuple(load("tools", name) for name in tools),
            **changes,
        }
        self.session = Session(self.question, load_solver(solver), resources(model, **options))
        try:
            async with asyncio.timeout(HANGS_S):
                return await self.session.ask(self.prompt)
        finally:
            await model.close()

    def scored(self, reply: Reply) -> Score:
        """Return the verdict on the reply by the benchmark's own scorer."""
        blink: Benchmark = load("hybrid.benchmarks", "blink")
        return blink.score(self.question, (Exchange(self.prompt, reply),), ScoreOptions())

    def faults(self, reply: Reply) -> dict[Fault, int]:
        """Count the faults in the reply's steps, by kind."""
        return dict(Counter(step.fault for step in reply.steps if step.fault))

    def exact(self, reply: Reply) -> None:
        """Assert that the usage in the reply equals the usage that the server and the steps recorded."""
        usage, steps = reply.usage, Counter(step.kind for step in reply.steps)
        assert usage.model_calls == len(self.adversary.requests) == steps["model"]
        assert usage.tool_calls == steps["tool"]
        assert usage.input_tokens == INPUT_TOKENS * usage.model_calls
        assert usage.output_tokens == OUTPUT_TOKENS * usage.model_calls

    def about(self, *pictures: Any, **changes: Any) -> "Asker":
        """Return an asker for the same question with these images (arrays) and with other fields changed."""
        images = tuple(self.service.store.put_pixels(picture) for picture in pictures)
        question = replace(self.question, images=images, **changes)
        refs = tuple(ImageRef(f"img:{place}", image) for place, image in enumerate(images, 1))
        prompt = Prompt((question.text, *refs), question.kind, question.choices, route=question.route)
        return replace(self, question=question, prompt=prompt)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[CachedTools]:
    """Weight-free tools with a store and a cache of their own."""
    store = ImageStore(tmp_path / "images")
    item = CachedTools(store, FindingCache(tmp_path / "findings", store), ServiceOptions("classical", threads=2))
    yield item
    item.close()


@pytest.fixture
def asker(adversary: Adversary, service: CachedTools, fakes: Any) -> Asker:
    """Return an asker for a puzzle of three images that the jigsaw tool solves: the second image fits, which is (A)."""
    question = fakes.question("q1", text="Which image fits?", task="Jigsaw", route="Jigsaw", target="(A)")
    empty = Prompt((question.text,), question.kind, question.choices)
    choices = ("the second image", "the third image")
    return Asker(adversary, service, question, empty).about(*fakes.puzzle(3), choices=choices)


@pytest.fixture
def completion() -> Callable[..., Raw]:
    """`completion(text, *calls)` returns a reply of the server."""
    return says


@pytest.fixture
def tool_call() -> Callable[..., dict[str, Any]]:
    """`tool_call(name, arguments, id)` returns a tool call as the API writes it."""
    return call


@pytest.fixture
def raw() -> type[Raw]:
    """Return the class `Raw`, a reply that the server sends unchanged."""
    return Raw
