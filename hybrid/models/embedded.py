"""`embedded`: a small scripted stand-in for an MLLM, so that everything runs offline. Not a model of anything.

`hybrid quickstart` and `--model embedded` ask it. It never sees a pixel: it reads the question's text, calls the tools
whose name fits it, and answers with what their findings say; without a finding it guesses by a hash of the question.
Its numbers say that the plumbing works, nothing about MLLMs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from hybrid.messages import (
    AssistantMessage,
    Message,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
    images_of,
)
from hybrid.models._scripted import answer
from hybrid.models.base import CallKey
from hybrid.models.render import arrange
from hybrid.models.tokens import menu_tokens, text_tokens
from hybrid.models.toolspec import IMAGES
from hybrid.tool import Tool
from hybrid.types import ImageRef, Json

VERSION = "2"

# Words of a question that make it call a tool; a tool that is not listed is called when its own name is there.
CUES: Mapping[str, str] = {
    "jigsaw": r"jigsaw|missing|corner|puzzle",
    "depth": r"closer|nearer|closest|nearest|farther|depth",
    "correspondence": r"correspond|reference point|same (?:point|part)",
    "motion": r"camera moved|clockwise",
    "localization": r"bounding box|encloses",
    "reflectance": r"darker|brighter|lighter surface|reflectance|albedo",
    "similarity": r"similar",
    "saliency": r"how many|pops? out|stands? out|salient|attention|attract|notice|catch",
    "scanpath": r"scanpath|fixat|gaze|eye movement",
    "ocr": r"\bread\b|\btext\b|written|\bword\b|\bsign\b",
    "crop": r"\bread\b|\btext\b|detail|small",
}
MOST_CALLS = 2
KEEP_IMAGES = 8


class EmbeddedModel:
    """The `ChatModel` of the name `embedded`. Deterministic: the same call gives the same message."""

    name = "embedded"
    provider = "embedded"

    def facts(self) -> Mapping[str, Json]:
        """Says that it is a stand-in, and that its token counts are estimates."""
        return {"model": self.name, "stand_in": True, "version": VERSION, "token_counts": "estimated"}

    def connection(self) -> Mapping[str, Json]:
        """Empty: there is no server."""
        return {}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """A tool call while none was made and one fits, else an answer in the format that the prompt asks for."""
        opening = next((message for message in messages if isinstance(message, UserMessage)), None)
        question = opening.text if opening is not None else ""
        seed = random.Random(f"{call.question}/{call.ask}/{question}")
        acted = any(isinstance(message, ToolMessage) for message in messages)
        calls = [] if acted else _calls(tools, question, images_of([opening]) if opening is not None else ())
        text = "" if calls else answer(question, _findings(messages), seed)
        read = menu_tokens(tools) + sum(text_tokens(message.text) for message in arrange(messages, KEEP_IMAGES))
        written = text_tokens(text) + sum(text_tokens(str(made.args)) for made in calls)
        return AssistantMessage(text, tuple(calls), usage=TokenUsage(read, written))

    async def close(self) -> None:
        """Nothing is held open."""


def _findings(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage) and not message.failed]


def _calls(tools: Sequence[Tool], question: str, images: Sequence[ImageRef]) -> list[ToolCall]:
    """At most two calls: of tools that fit the question, need no argument and can take the images shown."""
    calls: list[ToolCall] = []
    for tool in tools:
        name, (fewest, most) = tool.card.name, tool.card.images
        words = CUES.get(name, re.escape(name.replace("_", " ")))
        # Coordinates that it would have to make up are not arguments.
        fillable = not tool.args.model_json_schema().get("required")
        if fillable and len(images) >= fewest and re.search(words, question, re.IGNORECASE):
            names = [ref.name for ref in images[:most]]
            calls.append(ToolCall(f"call_0_{len(calls)}", name, {IMAGES: names}))
    return calls[:MOST_CALLS]
