"""The seam of a chat model: what `provider:name` becomes, and the key that identifies one call of it.

`hybrid.models.open_model` makes a model. Messages hold images by
reference (`hybrid.core.messages`), and every model here resolves them itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.repetitions import number_of
from hybrid.core.types import Json
from hybrid.tool import Tool


class ModelRefused(UsageError):
    """The provider rejects the key, the model's name or an option: no call of this configuration can succeed."""


class PicturesRefused(Outage):
    """The server does not take this request, and `pictures` that tools made are new in it: they may be the reason."""

    def __init__(self, message: str, pictures: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.pictures = pictures


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


class ReplyLog(Protocol):
    """The replies to questions that are not finished, kept as soon as they arrive. Safe in any thread."""

    def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
        """The reply to this request of this call, as it was kept, or None."""

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Keep a reply: a kill of the process after the return does not lose it."""


@runtime_checkable
class Listener(Protocol):
    """A model that keeps its replies itself, where they arrive; `RememberedModel` does it for any other."""

    def listen(self, log: ReplyLog) -> None:
        """Keep every reply in the log from now on, and ask for none that it holds."""


class ModelFacts(Protocol):
    """The facts of a model, which it and the client of its server tell alike."""

    @property
    def name(self) -> str:
        """The name as typed by the user: `openai:gpt-4o`, `replay:DIR`."""

    def metadata(self) -> Mapping[str, Json]:
        """The model's part of the manifest: name, settings as sent, versions, hashes; never a secret."""

    def connection(self) -> Mapping[str, Json]:
        """How its server is reached: `base_url` (redacted), `timeout_s`, `retries`; empty for a model without one.

        A run shows it, and may go on with another one: it is no part of the model's identity.
        """

    async def close(self) -> None:
        """Let go of connections and weights. A closed model may not be called again."""


@runtime_checkable
class ChatModel(ModelFacts, Protocol):
    """An MLLM behind `--model`. Built without loading or connecting; safe for concurrent calls on one event loop."""

    @property
    def provider(self) -> str:
        """The word before the first colon."""

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """The model's message to a conversation, with `tools` offered.

        Raises:
            Outage: no reply after the retries, or the server does not take this request; the question stays open.
            ServerDown: the server has been away for too long; no other question can be asked either.
            NotRecorded: a replayed model has no such call.
            ModelRefused: the configuration cannot work (key, model name, option).
            WeightsError: local weights that are absent or incomplete.
        """


@runtime_checkable
class AdoptsSettings(Protocol):
    """A model that goes on with what the probe of a run has found (`ModelSettings.results_inside` and the switch)."""

    def adopt(self, settings: ModelSettings) -> None:
        """Use these settings from the next request on."""


class ModelOpener(Protocol):
    """Makes the models of one word before the colon: what a file of `hybrid/models/providers` exports as `MODEL`."""

    def __call__(self, name: str, settings: ModelSettings, store: ImageStore, /) -> ChatModel:
        """The model of the whole name, as the user typed it, not yet connected or loaded.

        Raises:
            UsageError: a name or an option that it does not take.
        """


@runtime_checkable
class Likelihoods(Protocol):
    """A model whose weights are at hand, so that options can be scored instead of asked for."""

    async def likelihood(self, messages: Sequence[Message], options: Sequence[str]) -> AssistantMessage:
        """The most likely of the options as a reply; `AssistantMessage.likelihood` has their probabilities."""
