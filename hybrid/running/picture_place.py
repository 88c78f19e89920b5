"""The place of a tool's picture in a request, probed once per run: the model must see it and keep its thinking.

    found = await find_place(probe, conversation, tools)     # ToolPicture("sees", ..., place="inside", thinking="kept")
    settings = with_place(settings, found)                   # for `AdoptsSettings.adopt`

A picture after the tool message is sent as a user message, and the templates of Qwen3.5, GLM-4.6, Gemma 4 and others
drop all thinking before the last user message. So for a model that thinks, the picture is first tried inside the tool
message. If it is not seen there, a template switch is tried, and the number of prompt tokens shows whether it works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.thinking import without_thoughts
from hybrid.models.base import AdoptsSettings, CallKey, ChatModel, ModelRefused
from hybrid.models.failures import ABOUT_THE_REQUEST, read_failure
from hybrid.models.thoughts import has_thoughts, thinking_switches
from hybrid.running.probes import (
    PROBE_NUMBER,
    RESULT_PROBE,
    SECOND_NUMBER,
    Chat,
    Sight,
    ToolPicture,
    look_at_result,
    result_messages,
)
from hybrid.tool import Tool


@dataclass(frozen=True)
class PlaceProbe:
    """The model to probe: `chat` asks `model`, which adopts changed settings between the requests."""

    model: ChatModel
    chat: Chat
    settings: ModelSettings
    store: ImageStore
    # Whether the model has read a number in a picture of a user message.
    reads_pictures: bool = False
    # Whether results are sent as tool messages instead of user text.
    native_results: bool = True
    numbers: tuple[str, str] = (PROBE_NUMBER, SECOND_NUMBER)

    def adopt(self, **changes: Any) -> bool:
        """Change the settings of the next requests; return whether the model supports this."""
        if not isinstance(self.model, AdoptsSettings):
            return False
        self.model.adopt(replace(self.settings, **changes))
        return True

    async def look(self, conversation: Sequence[Message], tools: Sequence[Tool]) -> Sight:
        """Test whether a picture in a result is seen with the current settings."""
        return await look_at_result(
            self.chat, self.store, conversation, tools, reads_pictures=self.reads_pictures, numbers=self.numbers
        )

    async def tokens(self, conversation: Sequence[Message], tools: Sequence[Tool], number: str | None) -> int:
        """Add results to the calls of the last reply, and return the number of prompt tokens; 0 if not reported."""
        reply = conversation[-1]
        assert isinstance(reply, AssistantMessage)  # noqa: S101 - the model has made a call
        sent = [*conversation, *result_messages(reply, self.store, number)]
        answer = await self.chat(sent, tools, CallKey(RESULT_PROBE, call=2))
        return answer.usage.input_tokens if answer.usage else 0


async def find_place(probe: PlaceProbe, conversation: Sequence[Message], tools: Sequence[Tool]) -> ToolPicture:
    """Find the place where tool pictures are seen and thinking is kept. Restores the model's own settings.

    `conversation` ends with a reply that calls a tool. Raises the model's exceptions for a request with the picture in
    a user message.
    """
    reply = conversation[-1]
    assert isinstance(reply, AssistantMessage)  # noqa: S101 - the model has called
    settings = probe.settings
    thinks = has_thoughts(reply) and settings.thoughts == "keep"
    may_choose = settings.tool_pictures == "auto" and probe.native_results
    try:
        if thinks and may_choose and (seen := await _look_inside(probe, conversation, tools)) is not None:
            picture = ToolPicture(seen.verdict, seen.said, seen.input_tokens, seen.without_image, "inside")
            return await _find_switch(probe, conversation, tools, picture)
        place: Literal["inside", "beside"] = "beside"
        if settings.tool_pictures == "inside" and probe.native_results:
            place = "inside"
        try:
            sight = await probe.look(conversation, tools)
        except Outage as error:
            if (words := _refusal(error)) is None:
                raise
            # Mistral's servers reject a user message directly after a tool message.
            if not thinks and may_choose and (seen := await _look_inside(probe, conversation, tools)) is not None:
                return ToolPicture(seen.verdict, seen.said, seen.input_tokens, seen.without_image, "inside")
            # Repeat the request without the picture; this raises an error if the picture is not the reason.
            await probe.tokens(conversation, tools, None)
            return ToolPicture("refused", words, place=place)
        result = ToolPicture(sight.verdict, sight.said, sight.input_tokens, sight.without_image, place)
        if not thinks or sight.verdict == "blind":
            return result
        return await _find_switch(probe, conversation, tools, result)
    finally:
        probe.adopt()


async def _look_inside(probe: PlaceProbe, conversation: Sequence[Message], tools: Sequence[Tool]) -> Sight | None:
    """Test a picture inside the tool message; return None if it is refused or not read."""
    if not probe.adopt(results_inside=True):
        return None
    try:
        sight = await probe.look(conversation, tools)
    except (Outage, ModelRefused):
        return None
    finally:
        probe.adopt()
    return sight if sight.verdict == "sees" else None


async def _find_switch(
    probe: PlaceProbe, conversation: Sequence[Message], tools: Sequence[Tool], picture: ToolPicture
) -> ToolPicture:
    """Add to the result what happens to the thinking at this place, and the template switch that keeps it, if any."""
    reply = conversation[-1]
    assert isinstance(reply, AssistantMessage)  # noqa: S101 - the model has called
    inside = picture.place == "inside"
    probe.adopt(results_inside=inside)
    with_thoughts = await probe.tokens(conversation, tools, probe.numbers[0])
    if with_thoughts:
        bare = replace(reply, text=without_thoughts(reply.text).strip(), reasoning="", native=None)
        if with_thoughts > await probe.tokens([*conversation[:-1], bare], tools, probe.numbers[0]):
            return replace(picture, thinking="kept")
    result = replace(picture, thinking="lost" if with_thoughts else "unknown")
    for switch in thinking_switches(probe.model.name, _address(probe)):
        if not (with_thoughts or switch.matches) or not probe.adopt(results_inside=inside, thinking_switch=switch.body):
            continue
        try:
            tokens = await probe.tokens(conversation, tools, probe.numbers[0])
        except (Outage, ModelRefused):
            continue
        if tokens > with_thoughts or not with_thoughts:
            return replace(result, thinking="switched", switch=switch.body)
    return result


def _refusal(error: Outage) -> str | None:
    """Return the server's message if it rejects this request; None for a temporary outage."""
    failed = read_failure(error.__cause__) if error.__cause__ else None
    if failed is None or not (failed.status in ABOUT_THE_REQUEST or failed.status == 500):
        return None
    return failed.text[:200]


def _address(probe: PlaceProbe) -> str | None:
    address = probe.model.connection().get("base_url")
    return address if isinstance(address, str) else None


def with_place(settings: ModelSettings, facts: Mapping[str, Any]) -> ModelSettings:
    """Return the settings with the probe's result, which is given in the form of the manifest."""
    inside, switch = facts.get("place") == "inside", facts.get("switch") or {}
    return replace(settings, results_inside=inside, thinking_switch=switch)
