"""Styles: models that answer in the form in which they were trained are answered right, whatever the picture's size."""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings, RunConfig
from hybrid.errors import UsageError
from hybrid.models.images import Resizing
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.solving.styles import AS_TRAINED, FOLDER, fitting, names, read_style, style_of
from hybrid.types import Exchange
from tests.servers import JsonHandler, LocalServer, listening

SIZES = ((4032, 3024), (300, 4000), (64, 64))
MEANT = (0.25, 0.5, 0.75, 0.875)
"""The box that a model draws, as shares of the picture that it is of."""
DRESSED = ("deepeyes", "mini-o3", "pixel-reasoner", "qwen3-vl")
MODELS = {
    "qwen3-vl": "Qwen/Qwen3-VL-8B-Instruct",
    "deepeyes": "ChenShawn/DeepEyes-7B",
    "mini-o3": "Mini-o3/Mini-o3-7B-v1",
    "pixel-reasoner": "TIGER-Lab/PixelReasoner-RL-v1",
    "glm-v": "zai-org/GLM-4.6V",
}


def tagged(value: Any) -> str:
    return f"<think>Smaller.</think>\n<tool_call>\n{json.dumps(value)}\n</tool_call>"


def qwen3(turn: int, size: tuple[int, int]) -> str:
    """In thousandths of the picture of the user, the second time too; the index is left out then."""
    del size
    box = [round(1000 * share) for share in MEANT]
    args = {"bbox_2d": box, "label": "sign", **({} if turn else {"img_idx": 0})}
    return tagged({"name": "image_zoom_in_tool", "arguments": args})


def deepeyes(turn: int, size: tuple[int, int]) -> str:
    """In pixels of the picture as the processor resizes it."""
    del turn
    width, height = Resizing(28, 3136, 12845056).size(*size)
    box = [share * side for share, side in zip(MEANT, (width, height, width, height), strict=True)]
    return tagged({"name": "image_zoom_in_tool", "arguments": {"bbox_2d": box, "label": "sign"}})


def mini_o3(turn: int, size: tuple[int, int]) -> str:
    """In fractions, of the first observation the third time."""
    del size
    source = [{"source": "original_image"}, {}, {"source": "observation_1"}][turn]
    return f"<think>Smaller.</think><grounding>{json.dumps({'bbox_2d': MEANT, **source})}</grounding>"


def pixel_reasoner(turn: int, size: tuple[int, int]) -> str:
    """In fractions, of the picture that came back first the third time."""
    del size
    index = [{"target_image": 1}, {}, {"target_image": 2}][turn]
    return tagged({"name": "crop_image_normalized", "arguments": {"bbox_2d": MEANT, **index}})


CALLS: dict[str, Callable[[int, tuple[int, int]], str]] = {
    "qwen3-vl": qwen3,
    "deepeyes": deepeyes,
    "mini-o3": mini_o3,
    "pixel-reasoner": pixel_reasoner,
}
TURNS = {"qwen3-vl": 2, "deepeyes": 2, "mini-o3": 3, "pixel-reasoner": 3}


class Trained:
    """A model that zooms so often, in its own words, and answers; it keeps what it was asked."""

    def __init__(self, style: str, size: tuple[int, int]) -> None:
        self.style, self.size, self.asked = style, size, list[dict[str, Any]]()

    def reply(self, asked: dict[str, Any]) -> str:
        self.asked.append(asked)
        said = sum(message["role"] == "assistant" for message in asked["messages"])
        probe = "Call the tool" in json.dumps(asked) or "Which number" in json.dumps(asked)
        if not probe and said == TURNS[self.style]:
            return "<think>Seen.</think><answer>Answer: (A)</answer>"
        return CALLS[self.style](said, self.size)


@pytest.fixture
def serve() -> Iterator[Callable[[Trained], str]]:
    """The address of a server for a model."""
    stack: list[Any] = []

    def start(model: Trained) -> str:
        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                message = {"role": "assistant", "content": model.reply(json.loads(body))}
                choices = [{"index": 0, "finish_reason": "stop", "message": message}]
                usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}
                self.answer({"id": "1", "model": "m", "choices": choices, "usage": usage})

        context = listening(LocalServer(Handler))
        stack.append(context)
        return context.__enter__().url

    yield start
    for context in stack:
        context.__exit__(None, None, None)


def data(folder: Path, size: tuple[int, int], count: int) -> Path:
    """Questions with a picture of a size, as a table."""
    from PIL import Image

    folder.mkdir()
    Image.new("RGB", size, (90, 120, 150)).save(folder / "one.png")
    rows = ["id,question,choices,answer,image"]
    rows += [f'q{number},Which one? ({number}),"[""red"", ""blue""]",A,one.png' for number in range(count)]
    (folder / "questions.csv").write_text("\n".join(rows))
    return folder / "questions.csv"


async def exchanges(
    tmp_path: Path, url: str, style: str, size: tuple[int, int], count: int = 1, **options: Any
) -> list[Exchange]:
    config = RunConfig(
        str(data(tmp_path / "data", size, count)),
        ("controller",),
        f"openai:{MODELS[style]}",
        model_settings=ModelSettings(base_url=url, **options.pop("settings", {})),
        tool_style="auto",
        tools=("crop",),
        allow=("blind",),
        out=tmp_path / "run",
        **options,
    )
    run = prepare(config)
    told: list[str] = []
    assert await execute(run, told.append) == ()
    assert run.identity["tool_style"]["name"] == style
    attempts = run.folder.recorded("controller").by_id
    return [attempts[question.id].exchanges[0] for question in run.sound]
