"""The interface of a chat model, the key of a call, and whether the model that answered is the requested one.

`hybrid.models.open_model` makes a model. Messages contain images by reference (`hybrid.core.messages`), and every model
resolves them itself. With every reply, a server names the model that answered, which may not be the requested one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

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
    """The identity of one model call. A solver never sees it; recordings are found, and seeds computed, by it.

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
        """Number of the solver's repetition, from 1; each repetition has its own seed."""
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
        """From now on, save every reply in the log, and send no request whose reply is already there."""


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
        """Return the model's reply to a conversation in which it may call `tools`.

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
    """A model with local weights, which can score given options instead of generating a reply."""

    async def likelihood(self, messages: Sequence[Message], options: Sequence[str]) -> AssistantMessage:
        """Return the most likely of the options as a reply; `AssistantMessage.likelihood` has their probabilities."""


# Requested names for which the server itself chooses the model.
_CHOOSERS: Final = frozenset({"auto", "default", "model-router", "router", "local", "local-model"})
# At Azure the requested name is the name of a deployment, which does not reveal the deployed model.
_DEPLOYMENTS: Final = frozenset({"azure_openai", "azure_ai", "langchain"})
# A date in a name: 2024-08-06, 20240806, 2025-01, 0806, 05-06, 09-2025. `_YEAR_MONTH` matches 2411.
_DATE: Final = re.compile(
    r"[-@_:.]?(?<!\d)(?:20\d\d[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?[0-3]\d)?|(?:0[1-9]|1[0-2])-?(?:[0-3]\d|20\d\d))(?!\d)"
)
_YEAR_MONTH: Final = re.compile(r"[-@_](?:2[3-9])(?:0[1-9]|1[0-2])(?!\d)")
_VERSION: Final = re.compile(r"[-@:_](?:v\d+(?::\d+)?|00\d)$")
_ALIAS: Final = re.compile(
    r"[-:@](?:latest|preview|exp|experimental|stable|default|free|beta|online|nitro|floor|thinking)(?=$|[-:@])"
)
# Bedrock puts the region and the vendor before a model's name.
_MAKER: Final = re.compile(
    r"^(?:(?:us|eu|apac|global|jp|au)\.)?(?:anthropic|amazon|meta|mistral|cohere|deepseek|qwen|openai|ai21)\."
)


def other_models(requested_model: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of replies of each model that answered, except the requested `provider:model`."""
    provider, _, model = requested_model.partition(":")
    if provider in _DEPLOYMENTS or not model:
        return {}
    return {name: count for name, count in counts.items() if not is_same_model(model, name)}


def is_same_model(requested_model: str, answered: str) -> bool:
    """Return whether two names differ only in a path, a date, a version or an alias such as `latest`."""
    first, second = _plain(requested_model), _plain(answered)
    if first == second or first in _CHOOSERS:
        return True
    if not re.search(r"latest|preview", requested_model.lower()):
        return False
    # An alias means the newest model of its family: `gemini-flash-latest`, `kimi-latest`.
    parts = set(re.split(r"[-_.]", first)) - {""}
    return parts <= set(re.split(r"[-_.]", second)) or len(parts) == 1


def _plain(name: str) -> str:
    """Return a model's name without its path, dates, versions and aliases."""
    name = name.strip().lower().rstrip("/").removesuffix(".gguf")
    # Files in a hub's cache: .../models--Qwen--Qwen2-VL/snapshots/HASH
    hub = re.search(r"models--[^/]+?--([^/]+)/snapshots/", name)
    name = hub[1] if hub else name.rpartition("/")[2]
    name = _MAKER.sub("", name)
    for pattern in (_DATE, _YEAR_MONTH, _ALIAS, _VERSION):
        name = pattern.sub("", name)
    return name.strip("-_.:@")
