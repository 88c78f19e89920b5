"""Real implementations that read from a queue, and builders of small data; tests use the fixture `fakes`.

Nothing here patches anything: a `QueueModel` is a `ChatModel`, a
`QueueTools` a `CallTool`, and the BLINK folders are parquet files in the official layout.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.config import Limits, ModelSettings, Price, RunConfig
from hybrid.core.format_lines import Wording
from hybrid.core.messages import AssistantMessage, Message, TokenUsage
from hybrid.core.types import Finding, ImageRef, Json, Kind, Prompt, Question, StoredImage
from hybrid.models.base import CallKey, ChatModel
from hybrid.solving.controls import ToolCondition
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry
from hybrid.solving.session import AskSetup
from hybrid.solving.solver import Log, Meter, SolverContext
from hybrid.solving.trust import Trust
from hybrid.tool import Args, BackendCard, BackendName, Card, Evidence, Need, Picture, Pixels, Request, Tool
from tests.image_bytes import saved

if TYPE_CHECKING:
    from hybrid.core.images import ImageStore

TaskRow = dict[str, Any]


class Scripted:
    """Base of a model in this process; a subclass defines `chat`."""

    name: str

    def metadata(self) -> Mapping[str, Json]:
        return {"model": self.name}

    def connection(self) -> Mapping[str, Json]:
        return {}

    async def close(self) -> None:
        """Do nothing, because no resource is open."""


@dataclass
class QueueModel(Scripted):
    """Returns queued replies in order and records its requests. A reply is a text, a message, or an exception to
    raise."""

    replies: list[str | AssistantMessage | Exception]
    name: str = "queue:model"
    provider: str = "queue"
    # Awaited before each reply.
    speaks: Callable[[], Awaitable[object]] | None = None
    calls: list[tuple[tuple[Message, ...], tuple[Tool, ...], CallKey]] = field(default_factory=list)
    closed: bool = False

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        self.calls.append((tuple(messages), tuple(tools), call))
        reply = self.replies.pop(0)
        if self.speaks is not None:
            await self.speaks()
        if isinstance(reply, Exception):
            raise reply
        return AssistantMessage(reply) if isinstance(reply, str) else reply

    async def close(self) -> None:
        self.closed = True


def message_with_usage(text: str, input_tokens: int, output_tokens: int, reasoning: int = 0) -> AssistantMessage:
    """Return a message with the provider's token counts."""
    return AssistantMessage(text, usage=TokenUsage(input_tokens, output_tokens, reasoning))


@dataclass
class WatchedModel:
    """Wraps a model and records the ids of its questions; some questions fail before they reach the model."""

    inner: ChatModel
    failing: dict[str, Exception] = field(default_factory=dict)
    question_ids: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def provider(self) -> str:
        return self.inner.provider

    def metadata(self) -> Mapping[str, Json]:
        return self.inner.metadata()

    def connection(self) -> Mapping[str, Json]:
        return self.inner.connection()

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        self.question_ids.append(call.question)
        if call.question in self.failing:
            raise self.failing[call.question]
        return await self.inner.chat(messages, tools, call)

    async def close(self) -> None:
        await self.inner.close()


@dataclass
class QueueTools:
    """Tools of a solver context that return queued outputs, or raise queued errors, and record the calls."""

    findings: list[Finding | Exception]
    calls: list[tuple[str, tuple[str, ...], Mapping[str, Json] | Args]] = field(default_factory=list)

    async def __call__(self, name: str, images: Sequence[str], args: Mapping[str, Json] | Args) -> Finding:
        self.calls.append((name, tuple(images), args))
        value = self.findings.pop(0)
        if isinstance(value, Exception):
            raise value
        return value


@dataclass
class ContextModel:
    """The model of a solver context: passes each request to a `QueueModel`, without a session."""

    inner: QueueModel

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
        return await self.inner.chat(messages, tools, CallKey("opaque"))


def context_of(
    prompt: Prompt,
    replies: Sequence[str | AssistantMessage | Exception] = (),
    findings: Sequence[Finding | Exception] = (),
    trust: Trust | None = None,
    seed: int = 0,
    prior_accuracy: PriorAccuracy | None = None,
) -> SolverContext:
    """Return the context for one prompt to a solver, with model and tools fed by queues."""
    return SolverContext(
        model=ContextModel(QueueModel(list(replies))),
        tool=QueueTools(list(findings)),
        tools_offered=(),
        wording=Wording(),
        shown=prompt.parts,
        image_registry=ImageRegistry(prompt.images),
        meter=Meter(Limits()),
        log=Log(),
        trust=trust or Trust(),
        frame=CoordinateSystem(),
        show="both",
        seed=seed,
        prior_accuracy=prior_accuracy or PriorAccuracy(),
    )


@dataclass
class Clock:
    """A clock that only moves when a test advances it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


class NumberArgs(Args):
    """Arguments of the tool `counter`."""

    number: int = 0


@dataclass
class CountingBackend:
    """Returns the mean grey level of the first image and the number in its arguments; records its batch sizes.

    For number 13 it raises `ToolError`; for 14 it raises another error, like a defect; for 15 it waits until `gate`
    opens.
    """

    batches: list[int] = field(default_factory=list)
    needs: list[Mapping[str, tuple[Finding, ...]]] = field(default_factory=list)
    setups: list[tuple[str, str | None]] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    gate: threading.Event = field(default_factory=threading.Event)
    draw: bool = False
    confidence: float = 0.75
    # Number of outputs that are missing from each batch.
    lose: int = 0
    # Called once per batch, for example to advance the clock or to wait.
    takes: Callable[[], object] = lambda: None

    def setup(self, device: str, weights: str | None) -> None:
        self.setups.append((device, weights))

    def run(self, requests: Sequence[Request[Any]]) -> list[Evidence]:
        self.batches.append(len(requests))
        self.threads.add(threading.current_thread().name)
        self.needs.extend(request.needs for request in requests)
        self.takes()
        return [self._one(request) for request in requests][self.lose :]

    def _one(self, request: Request[Any]) -> Evidence:
        from hybrid.core.errors import ToolError

        number = request.args.number
        if number == 13:
            raise ToolError("13 cannot be counted")
        if number == 14:
            raise ZeroDivisionError("a defect")
        if number == 15:
            self.gate.wait(600)
        mean = float(request.images[0].mean())
        pictures = (Picture(255 - request.images[0]),) if self.draw else ()
        return Evidence(
            f"number {number}, mean {mean:.3f}", {"number": number, "mean": mean}, self.confidence, pictures
        )


def counter(
    backend: CountingBackend,
    *,
    name: str = "counter",
    kind: BackendName = "classical",
    weights: str | None = None,
    batch: int = 1,
    images: tuple[int, int] = (1, 1),
    needs: tuple[Need, ...] = (),
    fallback: CountingBackend | None = None,
) -> Tool:
    """Return a tool with `backend`; with `fallback` it also has a weight-free backend."""
    cards = [BackendCard(kind, "1", lambda: backend, "counts", weights=weights, batch=batch)]
    if fallback is not None:
        cards.append(BackendCard("classical", "7", lambda: fallback, "counts without weights"))
    return Tool(Card(name, "Counts.", "No limits.", tuple(cards), images, needs), NumberArgs)


def pixels(seed: int, size: tuple[int, int] = (24, 20)) -> Pixels:
    """Return noise with the shape (H, W, 3); `size` is (width, height)."""
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)


def encoded(array: Pixels, kind: str = "PNG") -> bytes:
    """Return the bytes of an image file."""
    return saved(Image.fromarray(array), kind)


def stored(store: ImageStore, seed: int, size: tuple[int, int] = (24, 20)) -> StoredImage:
    """Store a small picture."""
    return store.put_pixels(pixels(seed, size))


def refs(store: ImageStore, *seeds: int, size: tuple[int, int] = (24, 20)) -> tuple[ImageRef, ...]:
    """Store small pictures named img:1, img:2, ..."""
    return tuple(ImageRef(f"img:{place}", stored(store, seed, size)) for place, seed in enumerate(seeds, 1))


def puzzle(seed: int, side: int = 96) -> tuple[Pixels, Pixels, Pixels]:
    """Return three pictures: one with a black lower-right quarter, the quarter that fits there, and one that does not
    fit."""
    y, x = np.mgrid[0:side, 0:side]
    rng = np.random.default_rng(seed)
    waves = rng.uniform(0.03, 0.2, (3, 2))
    shift = rng.uniform(0, 6, 3)
    layers = [127 + 110 * np.sin(waves[c][0] * x + waves[c][1] * y + shift[c]) for c in range(3)]
    values = np.stack(layers, axis=-1).astype(np.uint8)
    half = side // 2
    right = values[half:, half:].copy()
    wrong = values[:half, :half][::-1].copy()
    holed = values.copy()
    holed[half:, half:] = 0
    return holed, right, wrong


def jigsaw_row(number: int, answer: str = "(A)", split: str = "val") -> TaskRow:
    """Return a row of BLINK's Jigsaw that the jigsaw tool can solve; `answer` is the position of the fitting piece."""
    holed, right, wrong = puzzle(number)
    second, third = (right, wrong) if answer != "(B)" else (wrong, right)
    return {
        "idx": f"{split}_Jigsaw_{number}",
        "prompt": "Which image completes the first?\nSelect from the following choices.\n"
        "(A) the second image\n(B) the third image",
        "choices": ["the second image", "the third image"],
        "answer": answer,
        "image_1": encoded(holed),
        "image_2": encoded(second),
        "image_3": encoded(third),
    }


def spatial_row(number: int, answer: str = "(A)", split: str = "val") -> TaskRow:
    """Return a row of BLINK's Spatial_Relation, for which no specialist has a rule."""
    return {
        "idx": f"{split}_Spatial_Relation_{number}",
        "prompt": f"Is the cat {number} on the mat?\nSelect from the following choices.\n(A) yes\n(B) no",
        "choices": ["yes", "no"],
        "answer": answer,
        "image_1": encoded(pixels(1000 + number)),
    }


def write_parquet(path: Path, rows: Sequence[TaskRow]) -> Path:
    """Write a parquet file with BLINK's official columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = ("idx", "prompt", "choices", "answer", "image_1", "image_2", "image_3", "image_4")
    names = [name for name in columns if any(name in row for row in rows)]
    table = {name: [_cell(name, row.get(name)) for row in rows] for name in names}
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), path)
    return path


def _cell(name: str, value: Any) -> Any:
    return {"bytes": value, "path": "picture.png"} if name.startswith("image") and isinstance(value, bytes) else value


def write_task(folder: Path, task: str, rows: Sequence[TaskRow], split: str = "val") -> Path:
    """Write one task in BLINK's layout to `folder`."""
    return write_parquet(folder / task / f"{split}-00000-of-00001.parquet", rows)


def blink_folder(folder: Path, jigsaws: int = 3, spatials: int = 3) -> Path:
    """Write BLINK data of two tasks; the answers alternate between (A) and (B)."""
    for task, row, count in (("Jigsaw", jigsaw_row, jigsaws), ("Spatial_Relation", spatial_row, spatials)):
        if count:
            write_task(folder, task, [row(n, "(A)" if n % 2 else "(B)") for n in range(1, count + 1)])
    return folder


def recordings(folder: Path, replies: Mapping[str, str]) -> Path:
    """Write a folder for `replay:DIR` with one reply per question id."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": identity, "ask": 0, "call": 0, "text": text}) for identity, text in replies.items()]
    (folder / "calls.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def blink_replies(jigsaws: int = 3, spatials: int = 3, text: str = "Answer: (A)") -> dict[str, str]:
    """Return the same reply for every question of `blink_folder`, by the question's id."""
    ids = [f"val_Jigsaw_{n}" for n in range(1, jigsaws + 1)]
    ids += [f"val_Spatial_Relation_{n}" for n in range(1, spatials + 1)]
    return dict.fromkeys(ids, text)


def question(identity: str, **changes: Any) -> Question:
    """Return a question with two choices and no images, with the given fields replaced."""
    facts: dict[str, Any] = {
        "id": identity,
        "task": "Task",
        "images": (),
        "text": f"What about {identity}?",
        "kind": Kind.CHOICE,
        "choices": ("yes", "no"),
        "target": "(A)",
        "route": "Route",
    }
    return Question(**{**facts, **changes})


Reader = Callable[[Path], list[dict[str, Any]]]


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def resources(
    model: Any,
    control: ToolCondition,
    tools_offered: tuple[Tool, ...] = (),
    *,
    price: Price | None = None,
    **changes: Any,
) -> AskSetup:
    """Return the resources of a run; `changes` are fields of the resources or of the configuration."""
    by_name = {name: changes.pop(name) for name in [*changes] if name in AskSetup.__dataclass_fields__}
    captioner_settings = ModelSettings(price=changes.pop("caption_price", None))
    settings = ModelSettings(temperature=None, price=price)
    config = RunConfig("", model_settings=settings, captioner_settings=captioner_settings, **changes)
    return AskSetup(config, model, control, tools_offered, **by_name)
