"""The model that ships: it loads as any other, sees, calls, reads, answers, and is what its card says in size."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, ToolMessage, user_message
from hybrid.models import CallKey, ChatModel, ModelSettings, open_model, own_frame
from hybrid.models.embedded import CHECKPOINT
from hybrid.prompts import FORMAT_LINES
from hybrid.registry import load
from hybrid.tool import Tool
from hybrid.types import ImageRef, Kind

JIGSAW = (
    "The lower right corner of the first image is missing. Which one is the missing part, the second image or the "
    "third image? Compare how the edges of each continue the first image.\nSelect from the following choices.\n"
    "(A) the second image\n(B) the third image"
)
LINE = FORMAT_LINES[Kind.CHOICE]


@pytest.fixture
async def opened(store: ImageStore) -> AsyncIterator[Callable[..., ChatModel]]:
    made: list[ChatModel] = []

    def open_one(**settings: Any) -> ChatModel:
        made.append(open_model("embedded", ModelSettings(**{"device": "cpu", **settings}), store))
        return made[-1]

    yield open_one
    for model in made:
        await model.close()


@pytest.fixture
def pictures(store: ImageStore) -> list[ImageRef]:
    rng = np.random.default_rng(0)
    return [
        ImageRef(f"img:{number}", store.put_pixels(rng.integers(0, 255, (40, 60, 3), dtype=np.uint8)))
        for number in (1, 2, 3)
    ]


def menu() -> tuple[Tool, ...]:
    return tuple(load("tools", name) for name in load("hybrid.benchmarks", "blink").card.menu)


def test_its_weights_are_at_most_twelve_megabytes() -> None:
    assert (CHECKPOINT / "model.safetensors").stat().st_size <= 12e6


def test_it_says_what_it_is(opened: Callable[..., ChatModel]) -> None:
    facts = opened().facts()
    assert facts["model"] == "embedded"
    assert facts["demonstration"] is True
    assert facts["weights_sha256"]
    assert "path" not in facts
    assert str(CHECKPOINT) not in str(facts)


def test_its_frame_is_declared() -> None:
    assert own_frame("embedded") == "fractions"
    assert own_frame("openai:gpt-4o") == own_frame(None) == "pixels"


@pytest.mark.parametrize("protocol", ["auto", "text"])
async def test_it_calls_the_tool_and_answers_what_the_finding_says(
    opened: Callable[..., ChatModel], pictures: list[ImageRef], protocol: str
) -> None:
    """Both protocols, both answers: what it says follows the finding and not a habit."""
    model = opened(tool_calling=protocol)
    opening = user_message([JIGSAW, *pictures, LINE])
    reply = await model.chat([opening], menu(), CallKey("q"))
    assert [(call.name, call.args) for call in reply.calls] == [("jigsaw", {"images": ["img:1", "img:2", "img:3"]})]
    for place, letter in ((2, "A"), (3, "B")):
        finding = (
            f"on img:1, img:2, img:3:\nImage {place} continues the missing lower-right quarter of image 1 best: 3 of 3 "
            "seam measures, margin 0.66 (0..1)."
        )
        result = ToolMessage(reply.calls[0].id, "jigsaw", (finding,))
        said = await model.chat([opening, reply, result], menu(), CallKey("q", call=1))
        assert (said.text, said.calls) == (f"Answer: ({letter})", ())


async def test_the_same_call_gives_the_same_message(opened: Callable[..., ChatModel], pictures: list[ImageRef]) -> None:
    opening = user_message([JIGSAW, *pictures, LINE])
    first, second = [await opened().chat([opening], (), CallKey("q")) for _ in range(2)]
    assert first == second
    assert isinstance(first, AssistantMessage)
    assert first.usage is not None
    assert first.usage.output_tokens > 0


async def test_it_sees_pixels(opened: Callable[..., ChatModel], store: ImageStore) -> None:
    """The colour of a flag decides which country is named."""
    model = opened()
    said = set()
    for stripes in (((0, 60, 165), (250, 250, 250), (205, 30, 45)), ((0, 140, 70), (250, 250, 250), (205, 30, 45))):
        flag = np.full((300, 400, 3), 140, np.uint8)
        for place, colour in enumerate(stripes):
            flag[100:220, 100 + 60 * place : 160 + 60 * place] = colour
        text = (
            "Which country does this flag belong to?\nA. France\nB. Italy\nC. Germany\nD. Sorry, I can't help with it\n"
            "E. Peru\nChoose one of the options above and reply with its letter."
        )
        shown = ImageRef("img:1", store.put_pixels(flag))
        said.add((await model.chat([user_message([shown, text, LINE])], (), CallKey("q"))).text)
    assert said == {"Answer: (A)", "Answer: (B)"}


def test_its_card_names_the_command_that_measured_it() -> None:
    card = (Path(CHECKPOINT).parent / "CARD.md").read_text()
    assert "python -m bench.embedded" in card
    assert "demonstration" in card


@pytest.mark.slow
def test_a_little_training_makes_the_loss_fall(tmp_path: Path) -> None:
    """`uv run pytest -m slow tests/hybrid/models/embedded`: conversations of one task, a minute of steps."""
    from hybrid.models.embedded.training.conversations import Batch, write
    from hybrid.models.embedded.training.learn import Schedule, train

    write([Batch("blink", "Jigsaw", 6, 0)], tmp_path / "data", 1)
    losses = train(tmp_path / "data", tmp_path / "out", Schedule(60.0, tokens=1500, warmup=5))
    assert len(losses) > 5
    assert sum(losses[-3:]) / 3 < losses[0] / 2
    assert (tmp_path / "out" / "model.safetensors").is_file()
