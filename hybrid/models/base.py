"""The seam of a chat model: what `provider:name` becomes, and the key that identifies one call of it.

`hybrid.models.open_model` makes a model. Messages hold images by
reference (`hybrid.messages`), and every model here resolves them itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from hybrid.errors import UsageError
from hybrid.messages import AssistantMessage, Message
from hybrid.models.prices import Price, parse_price
from hybrid.pairs import pairs
from hybrid.repeats import number_of
from hybrid.tool import Tool
from hybrid.types import Json

ToolCalling = Literal["native", "text", "auto"]


class ModelRefused(UsageError):
    """The provider rejects the key, the model's name or an option: no call of this configuration can succeed."""


@dataclass(frozen=True, slots=True)
class CallKey:
    """The identity of one model call. A solver never sees it; recordings and seeded models are keyed by it.

    `question` is the id with its variant (`val_Jigsaw_3#r1`), `ask` counts the asks of the question and `call` the
    model calls of the ask, both from 0. `prompt_sha256` is `prompt_sha256(prompt.text)`. `solver` is its name in the
    run, which tells two solvers' calls of one question apart; recordings do not look at it, and seeds only for the
    repetition.
    """

    question: str
    ask: int = 0
    call: int = 0
    prompt_sha256: str = ""
    solver: str = ""

    @property
    def repetition(self) -> int:
        """The number of the solver's repetition, from 1; each draws by a seed of its own."""
        return number_of(self.solver)

    def following(self) -> CallKey:
        """The key of the next call of the same ask."""
        return CallKey(self.question, self.ask, self.call + 1, self.prompt_sha256, self.solver)


def prompt_sha256(text: str) -> str:
    """Hex sha256 of a prompt's text (`Prompt.text`, in UTF-8), as it is in a `CallKey` and in recordings."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is called, as typed by the user; None leaves an option to the provider.

    `max_pixels` is the largest width x height sent, `max_tokens` the longest reply, `timeout_s` the limit of one HTTP
    request and `retries` how many more follow a failed one. `keep_images` is how many images besides those of the
    opening message stay in a request. `prompt_cache` lets providers keep what requests share (`prompt_cache.py`).
    `extra` holds `--model-arg K=V`.
    """

    base_url: str | None = None
    image_detail: str | None = None
    max_pixels: int | None = None
    reasoning_effort: str | None = None
    max_tokens: int | None = None
    temperature: float | None = 0.0
    seed: int | None = None
    timeout_s: float = 120.0
    retries: int = 3
    extra: Mapping[str, Json] = field(default_factory=dict)
    tool_calling: ToolCalling = "auto"
    device: str | None = None
    keep_images: int = 8
    price: Price | None = None
    prompt_cache: bool = True

    def __post_init__(self) -> None:
        least: dict[str, tuple[float | None, float]] = {
            "max_pixels": (self.max_pixels, 1),
            "max_tokens": (self.max_tokens, 1),
            "temperature": (self.temperature, 0),
            "retries": (self.retries, 0),
            "keep_images": (self.keep_images, 0),
        }
        for name, (value, lowest) in least.items():
            if value is not None and not value >= lowest:
                raise UsageError(f"--{name.replace('_', '-')} {value}: must be at least {lowest:g}")
        if not self.timeout_s > 0:
            raise UsageError(f"timeout_s={self.timeout_s}: must be above 0")
        if self.tool_calling not in ("native", "text", "auto"):
            raise UsageError(f"--tool-calling {self.tool_calling}: choose native, text or auto")


def parse_model_args(items: Sequence[str]) -> ModelSettings:
    """Read `--model-arg K=V`: `V` is JSON where it parses as JSON, else a string.

    `price=IN/OUT[/CACHED]`, `timeout_s`, `retries`, `keep_images`, `prompt_cache=on|off` and `temperature` (`null`
    leaves it to the provider) are ours; everything else goes to the provider, as `extra`.

    Raises:
        UsageError: an item without `=`, a key given twice, or a value that one of our own keys cannot take.
    """
    given = pairs("--model-arg", items)
    values: dict[str, Json] = {key: text if key == "price" else _value(text) for key, text in given.items()}
    ours: dict[str, Any] = {key: read(key, values.pop(key)) for key, read in _OURS.items() if key in values}
    return ModelSettings(extra=values, **ours)


def _value(text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=lambda name: name)
    except ValueError:
        return text
    return value


def _number(key: str, value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"--model-arg {key}={value}: must be a number")
    return float(value)


def _whole(key: str, value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"--model-arg {key}={value}: must be a whole number")
    return value


def _switch(key: str, value: Json) -> bool:
    if value not in ("on", "off"):
        raise UsageError(f"--model-arg {key}={value}: must be on or off")
    return value == "on"


_OURS: Mapping[str, Callable[[str, Json], object]] = {
    "price": lambda _, value: parse_price(str(value)),
    "timeout_s": _number,
    "retries": _whole,
    "keep_images": _whole,
    "prompt_cache": _switch,
    "temperature": lambda key, value: None if value is None else _number(key, value),
}


class ReplyLog(Protocol):
    """The replies to questions that are not finished, kept as soon as they arrive. Safe in any thread."""

    def said(self, call: CallKey, request_sha256: str) -> bytes | None:
        """The reply to this request of this call, as it was kept, or None."""
        ...

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Keep a reply: a kill of the process after the return does not lose it."""
        ...


@runtime_checkable
class Listener(Protocol):
    """A model that keeps its replies itself, where they arrive; `RememberedModel` does it for any other."""

    def listen(self, log: ReplyLog) -> None:
        """Keep every reply in the log from now on, and ask for none that it holds."""
        ...


class ChatModel(Protocol):
    """An MLLM behind `--model`. Built without loading or connecting; safe for concurrent calls on one event loop."""

    @property
    def name(self) -> str:
        """The name as typed by the user: `openai:gpt-4o`, `replay:DIR`."""
        ...

    @property
    def provider(self) -> str:
        """The word before the first colon."""
        ...

    def metadata(self) -> Mapping[str, Json]:
        """The model's part of the manifest: name, settings as sent, versions, hashes; never a secret."""
        ...

    def connection(self) -> Mapping[str, Json]:
        """How its server is reached: `base_url` (redacted), `timeout_s`, `retries`; empty for a model without one.

        A run shows it, and may go on with another one: it is no part of the model's identity.
        """
        ...

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """The model's message to a conversation, with `tools` offered.

        Raises:
            Outage: no reply after the retries, or the server does not take this request; the question stays open.
            ServerDown: the server has been away for too long; no other question can be asked either.
            NotRecorded: a replayed model has no such call.
            ModelRefused: the configuration cannot work (key, model name, option).
            WeightsError: local weights that are absent or incomplete.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and weights. A closed model may not be called again."""
        ...


@runtime_checkable
class Likelihoods(Protocol):
    """A model whose weights are at hand, so that options can be scored instead of asked for."""

    async def likelihood(self, messages: Sequence[Message], options: Sequence[str]) -> AssistantMessage:
        """The most likely of the options as a reply; `AssistantMessage.likelihood` has their probabilities."""
        ...
