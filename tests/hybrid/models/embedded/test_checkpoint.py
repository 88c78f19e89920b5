"""The shipped model loads like any other; it sees, calls a tool, reads the output, answers, and has the size on its
card.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest

from hybrid.config import ModelSettings
from hybrid.core.format_lines import FORMAT_LINES
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, SystemMessage, ToolMessage, user_message
from hybrid.core.types import ImageRef, Kind
from hybrid.models import CallKey, ChatModel, open_model
from hybrid.models.base import Likelihoods
from hybrid.models.providers.embedded import CHECKPOINT
from hybrid.plugins.registry import load
from hybrid.tool import Tool

DEPTH = (
    "Two points on the image are circled and labeled A and B. Which point is closer to the camera?\n"
    "Select from the following choices.\n(A) A is closer\n(B) B is closer"
)
SIZES = "The images that can be given to tools: img:1, 500 x 333 px."
TOLD = "You answer a question about images. You may call tools that look at the images for you."
LINE = FORMAT_LINES[Kind.CHOICE]


@pytest.fixture
async def open_checkpoint(store: ImageStore) -> AsyncIterator[Callable[..., ChatModel]]:
    models: list[ChatModel] = []

    def open_one(**settings: Any) -> ChatModel:
        models.append(open_model("embedded", ModelSettings(**{"device": "cpu", **settings}), store))
        return models[-1]

    yield open_one
    for model in models:
        await model.close()


@pytest.fixture
def picture(store: ImageStore) -> ImageRef:
    pixels = np.random.default_rng(0).integers(0, 255, (333, 500, 3), dtype=np.uint8)
    return ImageRef("img:1", store.put_pixels(pixels))


def tools_offered() -> tuple[Tool, ...]:
    return tuple(load("tools", name) for name in load("hybrid.benchmarks", "blink").card.tools_offered)


def test_its_weights_are_at_most_twelve_megabytes() -> None:
    assert (CHECKPOINT / "model.safetensors").stat().st_size <= 12e6


@pytest.mark.system
@pytest.mark.parametrize("protocol", ["auto", "text"])
async def test_it_calls_the_tool_and_answers_what_the_finding_says(
    open_checkpoint: Callable[..., ChatModel], picture: ImageRef, protocol: str
) -> None:
    """In both protocols and for both answers, the model follows the tool output and not a habit."""
    model = open_checkpoint(tool_calling=protocol)
    conversation = [SystemMessage(TOLD), user_message([DEPTH, picture, SIZES, LINE])]
    reply = await model.chat(conversation, tools_offered(), CallKey("q"))
    assert [call.name for call in reply.calls] == ["depth"]
    assert reply.calls[0].args["points"] == [{"label": "A"}, {"label": "B"}]
    for letter, other in (("A", "B"), ("B", "A")):
        finding = (
            f"on img:1:\nImage 1: {letter} is nearest to the camera, confidence 0.65.\nNearest first: {letter} at "
            f"(85, 145) px, {other} at (183, 101) px.\nBasis: {letter} lies lower in the picture; rows differ by 44 px."
            "\nRead from cues at the points: there is no depth map, and what hangs or stands raised misleads them."
        )
        result = ToolMessage(reply.calls[0].id, "depth", (finding,))
        text = await model.chat([*conversation, reply, result], tools_offered(), CallKey("q", call=1))
        assert (text.text, text.calls) == (f"Answer: ({letter})", ())


@pytest.mark.system
async def test_the_same_call_gives_the_same_message(
    open_checkpoint: Callable[..., ChatModel], picture: ImageRef
) -> None:
    opening = user_message([DEPTH, picture, LINE])
    first, second = [await open_checkpoint().chat([opening], (), CallKey("q")) for _ in range(2)]
    assert first == second
    assert isinstance(first, AssistantMessage)
    assert first.usage is not None
    assert first.usage.output_tokens > 0


@pytest.mark.system
async def test_pictures_reach_the_network(open_checkpoint: Callable[..., ChatModel], store: ImageStore) -> None:
    model = open_checkpoint()
    assert isinstance(model, Likelihoods)
    results = []
    for colour in ((160, 10, 10), (10, 20, 160)):
        ref = ImageRef("img:1", store.put_pixels(np.full((192, 256, 3), colour, np.uint8)))
        message = user_message(["Is there a red ball in the image?", ref, FORMAT_LINES[Kind.YES_NO]])
        reply = await model.likelihood([message], ("yes", "no"), "Answer: ")
        assert reply.likelihood is not None
        results.append(reply.likelihood["yes"])
    assert results[0] != results[1]


def test_its_card_says_how_large_it_is() -> None:
    card = (CHECKPOINT.parent / "CARD.md").read_text()
    assert f"{(CHECKPOINT / 'model.safetensors').stat().st_size / 1e6:.1f} MB" in card
    assert (
        f"BPE of {json.loads((CHECKPOINT / 'config.json').read_text())['text_config']['vocab_size']:,} tokens" in card
    )
    assert "demonstration" in card


def test_the_commands_of_its_card_are_commands() -> None:
    from bench import embedded
    from training import __main__ as training

    parsers = {"bench.embedded": embedded.parser, "training": training.parser}
    card = (CHECKPOINT.parent / "CARD.md").read_text()
    lines = re.findall(r"^uv run python -m (\S+) ([^#\n]*)", card, re.MULTILINE)
    assert {module for module, _ in lines} == set(parsers)
    for module, options in lines:
        parsers[module]().parse_args(options.split())
