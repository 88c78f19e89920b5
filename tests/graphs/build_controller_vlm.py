"""Build a tiny vision language model that plays the controller's part: python build_controller_vlm.py OUT.

The model of `tests/hybrid/models/build_tiny_vlm.py`, overfitted on one conversation that the controller itself held:
the question of a puzzle, a call of the jigsaw tool, its finding with a picture, an answer. The tests cache the result.
"""

import asyncio
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, ToolCall
from hybrid.models.base import ModelSettings
from hybrid.models.huggingface import HuggingFaceChat
from hybrid.models.toolspec import spec
from hybrid.prompts import Wording
from hybrid.registry import load, load_solver
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ServiceOptions, ToolService
from hybrid.solving.controls import Control
from hybrid.solving.kit import Limits
from hybrid.solving.session import Resources, Session
from hybrid.tool import Tool
from hybrid.types import ImageRef, Prompt, Question

TESTS = Path(__file__).parents[1]
CHOICES = ("the second image", "the third image")
ARGUMENTS = {"images": ["img:1", "img:2", "img:3"]}
ANSWER = "The second image fits.\nAnswer: (A)"


def module(path: Path) -> ModuleType:
    """A module of the tests by its path."""
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None
    assert found.loader is not None
    one = importlib.util.module_from_spec(found)
    # Dataclasses look their module up by name while they are made.
    sys.modules[found.name] = one
    found.loader.exec_module(one)
    return one


def puzzle(store: ImageStore) -> tuple[Question, Prompt]:
    """The question that the model is taught."""
    fakes = module(TESTS / "fakes.py")
    images = tuple(store.put_pixels(piece) for piece in fakes.puzzle(3))
    question: Question = fakes.question("q1", text="Which image fits?", images=images, choices=CHOICES)
    refs = tuple(ImageRef(f"img:{place}", image) for place, image in enumerate(images, 1))
    return question, Prompt((question.text, *refs), question.kind, CHOICES)


def resources(model: Any, service: ToolService) -> Resources:
    """What the ask is given besides the question: one tool, short budgets."""
    menu: tuple[Tool, ...] = (load("tools", "jigsaw"),)
    return Resources(model, Control(service), menu, Wording(), Limits(tool_calls=4, turns=4))


async def held(folder: Path) -> list[list[dict[str, Any]]]:
    """The conversation at each of the two calls, as a chat template gets it."""
    store = ImageStore(folder / "images")
    service = ToolService(store, FindingCache(folder / "findings", store), ServiceOptions("classical", threads=1))
    call = AssistantMessage("", (ToolCall("call_0_0", "jigsaw", ARGUMENTS),))
    script = module(TESTS / "fakes.py").QueueModel([call, ANSWER])
    question, prompt = puzzle(store)
    await Session(question, load_solver("controller"), resources(script, service)).ask(prompt)
    service.close()
    template = HuggingFaceChat("hf:nothing", ModelSettings(), store)
    turns = [(await template._conversation(list(messages), ()))[0].messages for messages, _, _ in script.calls]
    await template.close()
    return turns


def main(out: Path) -> None:
    """Hold the conversation, then teach it."""
    tiny = module(TESTS / "hybrid" / "models" / "build_tiny_vlm.py")
    with tempfile.TemporaryDirectory() as folder:
        conversations = asyncio.run(held(Path(folder)))
    tools = [spec(load("tools", "jigsaw"))]
    calls = json.dumps({"name": "jigsaw", "arguments": ARGUMENTS})
    replies = [f"<tool_call>{calls}</tool_call><|im_end|>", f"{ANSWER}<|im_end|>"]
    texts = [
        part["text"] if isinstance(part, dict) else part
        for turn in conversations[-1]
        for part in (turn["content"] if isinstance(turn["content"], list) else [turn["content"]])
        if isinstance(part, str) or part["type"] == "text"
    ]
    words = tiny.tokenizer([*texts, *replies, json.dumps(tools), "user assistant tool system # Tools"], 1500)
    processor = tiny.processor_of(words)
    data = [tiny.example(processor, turns, tools, reply) for turns, reply in zip(conversations, replies, strict=True)]
    tiny.train(tiny.untrained(words), processor, data, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
