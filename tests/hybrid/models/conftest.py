"""Fixtures for the models: an image store, a tool, and a real HTTP server that records its requests."""

import hashlib
import importlib.util
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import Field

from hybrid.core.images import ImageStore
from hybrid.core.types import ImageRef, StoredImage
from hybrid.tool import Args, Card, Tool
from tests.servers import JsonHandler, LocalServer, listening


class CropArgs(Args):
    """Arguments of the tool that the tests offer."""

    box: tuple[float, float, float, float] = Field(description="x0, y0, x1, y1 in pixels of the image")
    zoom: int = Field(default=2, ge=1, le=4, description="how much larger the piece is shown")


@pytest.fixture
def crop_tool() -> Tool:
    return Tool(Card("crop", "Cuts a piece out.", "Sees no more than the image holds.", backends=()), CropArgs)


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")


def picture(store: ImageStore, seed: int, size: tuple[int, int] = (12, 10)) -> StoredImage:
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    return store.put_pixels(pixels)


@pytest.fixture
def image(store: ImageStore) -> Callable[..., ImageRef]:
    """`image("img:1", seed)`: a reference to a small stored picture."""

    def make(name: str, seed: int = 0, size: tuple[int, int] = (12, 10)) -> ImageRef:
        return ImageRef(name, picture(store, seed, size))

    return make


@dataclass
class Answer:
    """The server's next response: a JSON value or raw bytes, a status, headers, and a pause before it."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: threading.Event | None = None


class Recorder:
    """A server on 127.0.0.1 that answers from a queue (repeating the last answer) and records every request."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        recorder = self

        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                recorder.requests.append((self.path, json.loads(body)))
                recorder.headers.append({key.lower(): value for key, value in self.headers.items()})
                answer = recorder.answers.pop(0) if len(recorder.answers) > 1 else recorder.answers[0]
                if answer.pause is not None:
                    answer.pause.wait(600)
                self.answer(answer.body, answer.status, answer.headers)

        self.server = LocalServer(Handler)
        self.url = self.server.url

    def says(self, *answers: Any) -> None:
        """Queue answers: `Answer` objects or plain bodies."""
        self.answers = [answer if isinstance(answer, Answer) else Answer(answer) for answer in answers]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    yield from running()


@pytest.fixture
def other_recorder() -> Iterator[Recorder]:
    yield from running()


def running() -> Iterator[Recorder]:
    item = Recorder()
    with listening(item.server):
        yield item


@pytest.fixture
def answer() -> type[Answer]:
    return Answer


BUILDER = Path(__file__).with_name("build_tiny_vlm.py")


@pytest.fixture(scope="session")
def tiny_words() -> ModuleType:
    """The module that builds the tiny model: its training conversations, and the tool that it calls."""
    result = importlib.util.spec_from_file_location("build_tiny_vlm", BUILDER)
    assert result is not None
    assert result.loader is not None
    module = importlib.util.module_from_spec(result)
    result.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tiny_vlm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tiny_words: ModuleType) -> Path:
    """Folder of the tiny model, trained once for each version of its builder and kept in pytest's cache."""
    source = b"".join(path.read_bytes() for path in (BUILDER, Path(str(_toolspec().origin))))
    key = hashlib.sha256(source).hexdigest()[:16]
    cache = getattr(request.config, "cache", None)
    folder = (cache.mkdir("tiny_vlm") if cache else tmp_path_factory.mktemp("tiny_vlm")) / key
    if not folder.is_dir():
        fresh = folder.with_name(f"{key}.{os.getpid()}")
        tiny_words.main(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            # Another process of the tests has trained the model in the meantime.
            if not folder.is_dir():
                raise
            shutil.rmtree(fresh)
    return folder


def _toolspec() -> Any:
    return importlib.util.find_spec("hybrid.models.toolspec")
