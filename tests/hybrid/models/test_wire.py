"""Requests as a real server records them, compared with golden files, one per provider.

After an intended change run once with HYBRID_WRITE_GOLDEN=1, read the difference, and run again.
"""

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ImagePart, Message, ToolCall, ToolMessage, user_message
from hybrid.core.types import ImageRef
from hybrid.models import CallKey, open_model, remembering
from hybrid.tool import Tool
from tests.hybrid.models.reply_log import Pages
from tests.tables import cases, stored

GOLDEN = Path(__file__).with_name("golden")

BODIES: dict[str, Any] = stored(__file__, "BODIES")
WIRES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai_chat": ("openai:gpt-4o", "/v1", {"seed": 3, "image_detail": "low", "max_tokens": 50}),
    "openai_responses": ("openai:gpt-4o", "/v1", {"seed": 3, "image_detail": "high", "extra": {"api": "responses"}}),
    "anthropic": ("anthropic:claude-test", "", {"seed": 3, "max_tokens": 100}),
    "google_genai": ("google_genai:gemini-test", "", {"seed": 3, "image_detail": "low", "max_tokens": 50}),
    "ollama": ("ollama:qwen-vl", "", {"seed": 3, "max_tokens": 50}),
}


def conversation(image: Callable[..., ImageRef]) -> list[Message]:
    def call(number: int, name: str) -> ToolCall:
        return ToolCall(f"call_{number}", "crop", {"images": [name], "box": [0, 0, 5, 5]})

    def result(number: int, text: str, *images: ImageRef) -> ToolMessage:
        return ToolMessage(f"call_{number}", "crop", (text, *map(ImagePart, images)), failed="outside" in text)

    return [
        user_message(["Which one?", image("img:1", 1), image("img:2", 2)]),
        AssistantMessage("", (call(1, "img:1"),)),
        result(1, "first", image("img:1.1", 3)),
        AssistantMessage("Closer.", (call(2, "img:1"), call(3, "img:2"))),
        result(2, "second", image("img:1.2", 4), image("img:1", 1)),
        result(3, "the box lies outside", image("img:2.1", 5)),
        user_message(["Give the final answer now."]),
    ]


# The version of Google's interface, which its package chooses.
VERSION = re.compile(r"^/v\d\w*/(?=models/)")


def with_picture_names(node: Any, images: dict[str, str]) -> Any:
    """Return the request with every base64 image replaced by the name of its picture."""
    if isinstance(node, list):
        return [with_picture_names(item, images) for item in node]
    if isinstance(node, dict):
        return {key: with_picture_names(value, images) for key, value in node.items()}
    if isinstance(node, str) and len(node) > 200:
        head, _, data = node.rpartition(",")
        raw = base64.b64decode(data.replace("-", "+").replace("_", "/"))
        return f"{head}<{images[hashlib.sha256(raw).hexdigest()]}>"
    return node


@pytest.mark.parametrize("wire", WIRES)
async def test_the_request_is_the_golden_one(
    wire: str,
    recorder: Any,
    store: ImageStore,
    image: Callable[..., ImageRef],
    crop_tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    model_name, path, options = WIRES[wire]
    recorder.says(BODIES[wire])
    model = open_model(model_name, ModelSettings(base_url=recorder.url + path, keep_images=2, **options), store)
    messages = conversation(image)
    pictures = {image("", seed).image.sha256: f"picture {seed}" for seed in range(1, 6)}
    try:
        replies = [await model.chat(messages, tools, CallKey("q")) for tools in ((crop_tool,), (), (crop_tool,))]
    finally:
        await model.close()
    offers, withdrawn, second = [
        {"path": VERSION.sub("/", path), "body": with_picture_names(body, pictures)} for path, body in recorder.requests
    ]
    assert offers == second
    payload = {"offered": offers, "withdrawn": withdrawn}
    file = GOLDEN / f"{wire}.json"
    if os.environ.get("HYBRID_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(payload, indent=1) + "\n")
    assert payload == json.loads(file.read_text())
    text = json.dumps(offers)
    # The two pictures of the question and the last two of three others are sent, each once.
    assert [text.count(f"<picture {seed}>") for seed in range(1, 6)] == [1, 1, 0, 1, 1]
    for reply in replies:
        assert reply.text == "Answer: (A)"
        assert reply.usage is not None
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (5, 2)
        assert reply.images_sent is not None
        assert [image.name for image in reply.images_sent] == ["img:1", "img:2", "img:1.2", "img:2.1"]
        assert (reply.refusal, reply.attempts) == (None, 1)


THOUGHT = {"type": "thinking", "thinking": "A closer look.", "signature": "c2lnbmVk"}
CROP = {"images": ["img:1"], "box": [0, 0, 1, 1]}
ANTHROPIC_CALL = {"type": "tool_use", "id": "c1", "name": "crop", "input": CROP}
THOUGHTFUL: dict[str, tuple[str, Any]] = {name: tuple(rest) for name, *rest in cases(__file__, "THOUGHTFUL", list)[1]}


@pytest.mark.parametrize("name", THOUGHTFUL)
async def test_a_signed_thought_goes_back_as_it_came_also_when_it_was_kept(
    name: str, recorder: Any, store: ImageStore, image: Callable[..., ImageRef], crop_tool: Tool
) -> None:
    path, body = THOUGHTFUL[name]
    recorder.says(body)
    log, histories = Pages(), []
    for _ in range(2):
        model = remembering(open_model(name, ModelSettings(base_url=recorder.url + path), store), log)
        messages: list[Message] = [user_message(["Which?", image("img:1", 1)])]
        try:
            reply = await model.chat(messages, (crop_tool,), CallKey("q"))
            (call,) = reply.calls
            assert reply.reasoning == (THOUGHT["thinking"] if name == "anthropic:c" else "")
            messages += [reply, ToolMessage(call.id, call.name, ("found",))]
            await model.chat(messages, (crop_tool,), CallKey("q", 0, 1 + len(histories)))
        finally:
            await model.close()
        histories.append(recorder.requests[-1][1])
    # The first reply was requested once and came from the log the second time.
    assert len(recorder.requests) == 3
    assert histories[0] == histories[1]
    if name == "anthropic:c":
        content = histories[0]["messages"][1]["content"]
        assert content == [THOUGHT, ANTHROPIC_CALL]
    else:
        (part,) = histories[0]["contents"][1]["parts"]
        assert (part["functionCall"]["name"], part["thoughtSignature"]) == ("crop", "c2lnbmVk")
