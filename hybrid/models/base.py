"""The interface of a chat model, and the key that identifies one call of it.

`hybrid.models.open_model` makes a model. Messages contain images by reference (`hybrid.core.messages`), and every model
resolves them itself.
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
    """The server rejected this request, perhaps because of new pictures from tools (`pictures`)."""

    def __init__(self, message: str, pictures: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.pictures = pictures


@dataclass(frozen=True, slots=True)
class CallKey:
    """The identity of one model call. A solver never sees it; recordings and seeded models are keyed by it.

    `question` is the id with its variant (`val_Jigsaw_3#r1`), `ask` is the number of the prompt within the question,
    and `call` the number of the model call for this prompt, both from 0. `prompt_sha256` is
    `prompt_sha256(prompt.text)`. `solver` is the solver's name in the run, which distinguishes the calls of two solvers
    for one question; recordings ignore the name, and seeds use only the number of the repetition in it.
    """

    question: str
    ask: int = 0
    call: int = 0
    prompt_sha256: str = ""
    solver: str = ""

    @property
    def repetition(self) -> int:
        """Number of the solver's repetition, from 1; each has its own seed."""
        return number_of(self.solver)

    def following(self) -> CallKey:
        """Return the key of the next call for the same prompt."""
        return CallKey(self.question, self.ask, self.call + 1, self.prompt_sha256, self.solver)


def prompt_sha256(text: str) -> str:
    """Return the hex sha256 of a prompt's text (`Prompt.text`, in UTF-8), as in a `CallKey` and in recordings."""
    return hashlib.sha256(text.encode()).hexdigest()


class ReusedReply(bytes):
    """A reply that another run has paid for, from a `ReplyLog`: its tokens and its cost are not counted again."""


class ReplyLog(Protocol):
    """The replies to unfinished questions, saved as soon as they arrive. Thread-safe."""

    def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
        """Return the saved reply to this request of this call, or None."""

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Save a reply; once this returns, killing the process does not lose it."""


@runtime_checkable
class Listener(Protocol):
    """A model that saves its replies itself, as they arrive; `RememberedModel` saves those of any other model."""

    def listen(self, log: ReplyLog) -> None:
        """Save every reply in the log from now on, and take logged replies from it instead of asking."""


class ModelFacts(Protocol):
    """Facts that both a model and the client of its server provide."""

    @property
    def name(self) -> str:
        """The model's name as typed by the user: `openai:gpt-4o`, `replay:DIR`."""

    def metadata(self) -> Mapping[str, Json]:
        """Return the model's part of the manifest: name, settings as sent, versions, hashes; never a secret."""

    def connection(self) -> Mapping[str, Json]:
        """Return how the server is reached: `base_url` (redacted), `timeout_s`, `retries`; empty without a server.

        A run shows these values. They are not part of the model's identity, so the run may resume with another server.
        """

    async def close(self) -> None:
        """Release connections and weights. A closed model may not be called again."""


@runtime_checkable
class ChatModel(ModelFacts, Protocol):
    """An MLLM behind `--model`. Built without loading or connecting; safe for concurrent calls on one event loop."""

    @property
    def provider(self) -> str:
        """The word before the first colon."""

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """Return the model's message to a conversation, with `tools` offered.

        Raises:
            Outage: no reply after the retries, or the server rejected this request; the question stays open.
            ServerDown: the server has been down for too long; no other question can be asked either.
            NotRecorded: a replayed model has no recording of this call.
            ModelRefused: the configuration cannot work (key, model name, option).
            WeightsError: local weights are missing or incomplete.
        """


@runtime_checkable
class AdoptsSettings(Protocol):
    """A model that accepts the results of a run's probe (`ModelSettings.results_inside` and the reasoning switch)."""

    def adopt(self, settings: ModelSettings) -> None:
        """Use these settings for the next request and all later ones."""


class ModelOpener(Protocol):
    """Opens the models of one provider; each file of `hybrid/models/providers` exports such an opener as `MODEL`."""

    def __call__(self, name: str, settings: ModelSettings, store: ImageStore, /) -> ChatModel:
        """Make the model with this full name, as the user typed it, not yet connected or loaded.

        Raises:
            UsageError: an unsupported name or option.
        """


@runtime_checkable
class Likelihoods(Protocol):
    """A model with local weights, so that options can be scored instead of generated."""

    async def likelihood(self, messages: Sequence[Message], options: Sequence[str]) -> AssistantMessage:
        """Return the most likely of the options as a reply; `AssistantMessage.likelihood` has their probabilities."""
