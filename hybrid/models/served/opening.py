"""Opens a model whose server this program starts; the server starts with the first request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.timing import waiting
from hybrid.core.types import Json
from hybrid.models.base import CallKey, ChatModel, ModelRefused
from hybrid.models.caller import Caller, ChatRequest
from hybrid.models.chat_completions.client import ChatCompletionsClient, RequestBody, speaks
from hybrid.models.failures import read_failure
from hybrid.models.providers import PROVIDERS
from hybrid.models.served.commands import ServerCommand, command_of
from hybrid.models.served.process import OwnServer, server_for
from hybrid.tool import Tool

# Seconds to wait for a server's end after its connections broke.
ENDS_S: Final = 2.0


def open_served(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Make a model whose server is not started yet.

    Raises:
        UsageError: the server is not installed, an argument that the program sets itself, an address, or an option that
            the server's chat API does not have.
    """
    word = name.partition(":")[0]
    if settings.base_url is not None:
        other = f"openai:{name.partition(':')[2]}"
        raise UsageError(
            f"--base-url: {word}: starts its own server; for one that is already running, give --model {other}"
        )
    command = command_of(name, settings.server_args)
    server = server_for(command)
    reached = replace(settings, base_url=server.base_url)
    if not speaks(reached, name):
        raise UsageError(
            f"--model-arg: {word}: uses the chat completions API, which does not support one of these options"
        )
    # Do not send the key of another provider to this server.
    provider = replace(PROVIDERS["openai"], name=word, key_env=(), url_env=(), no_temperature=None)
    return ServedModel(ChatCompletionsClient(name, reached, store, provider), reached, command, server)


class ServedModel(Caller[RequestBody]):
    """A model of a server that starts with the first request."""

    def __init__(
        self, client: ChatCompletionsClient, settings: ModelSettings, command: ServerCommand, server: OwnServer
    ) -> None:
        super().__init__(client, settings)
        self._command = command
        self._server = server

    def metadata(self) -> Mapping[str, Json]:
        """Return the model's facts and the arguments of its server, without the server's address."""
        return {**super().metadata(), "server": dict(self._command.facts)}

    def connection(self) -> Mapping[str, Json]:
        """Return how the server is reached; its port differs from run to run."""
        return {**super().connection(), "base_url": f"started by hybrid ({self.provider})"}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """Wait until the server is ready, then ask it.

        Raises:
            ModelRefused: the server could not be started, or has ended.
            Outage, ServerDown, DataError: as `Caller.chat`.
        """
        # Starting takes minutes, which are not charged to the question.
        with waiting(long=True):
            await self._server.wait_until_ready()
        return await super().chat(messages, tools, call)

    async def _send(self, request: ChatRequest[RequestBody]) -> AssistantMessage:
        """Send a request. Raises `ModelRefused` with the server's last lines if the server has ended."""
        try:
            return await super()._send(request)
        except Exception as error:
            # A broken connection is often the first sign; only a server that does not answer can have ended.
            if read_failure(error).status is None and await self._server.ends_within(ENDS_S):
                raise ModelRefused(self._server.describe_end()) from error
            raise
