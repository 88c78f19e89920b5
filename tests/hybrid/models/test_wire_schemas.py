"""The schema of every tool as sent to each provider, field by field, and the order of labels and pictures.

A provider's client may drop unknown keys, so a real server records the requests.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ImagePart, Message, ToolCall, ToolMessage, user_message
from hybrid.core.types import ImageRef
from hybrid.models import CallKey, open_model
from hybrid.models.toolspec import COORDINATES, spec
from hybrid.plugins.registry import load, names
from hybrid.tool import Tool
from tests.hybrid.models.test_wire import BODIES

TOOLS: dict[str, Tool] = {name: load("tools", name) for name in names("tools")}
WIRES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai_chat": ("openai:gpt-4o", "/v1", {}),
    "openai_responses": ("openai:gpt-4o", "/v1", {"extra": {"api": "responses"}}),
    "anthropic": ("anthropic:claude-test", "", {"max_tokens": 100}),
    "google_genai": ("google_genai:gemini-test", "", {}),
    "ollama": ("ollama:qwen-vl", "", {}),
}
WORDS = {"title", "additionalProperties", "strict"}  # Fields that a client may add, if it removes none.


def schemas(wire: str, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return name, description and parameters of each tool in a request, by name."""
    if wire == "google_genai":
        values = [item for group in body["tools"] for item in group["functionDeclarations"]]
        return {entry["name"]: entry for entry in values}
    if wire == "anthropic":
        return {value["name"]: {**value, "parameters": value["input_schema"]} for value in body["tools"]}
    if wire == "openai_responses":
        return {first_item["name"]: first_item for first_item in body["tools"]}
    return {item_value["function"]["name"]: item_value["function"] for item_value in body["tools"]}


def differences(actual: Any, reference: Any, at: str = "") -> Iterator[str]:
    """Yield the places where a schema in the request has lost or changed a part of the project's schema."""
    if isinstance(actual, dict):
        for key, value in actual.items():
            if not isinstance(reference, dict) or key not in reference:
                yield f"{at}.{key} is missing"
            else:
                yield from differences(value, reference[key], f"{at}.{key}")
        more = reference.keys() - actual.keys() - WORDS if isinstance(reference, dict) else ()
        # A client may add a list of required names that is empty or has only coordinates: the system text states once
        # that coordinates belong together.
        yield from (
            f"{at}.{key} is new: {reference[key]}" for key in more if not COORDINATES.issuperset(reference[key])
        )
    elif isinstance(actual, list):
        if not isinstance(reference, list) or len(actual) != len(reference):
            yield f"{at} is {reference}, not {actual}"
        else:
            # The order of required arguments does not matter.
            in_any_order = at.endswith("required")
            pairs = zip(*(sorted(item) if in_any_order else item for item in (actual, reference)), strict=True)
            for place, (entry, other) in enumerate(pairs):
                yield from differences(entry, other, f"{at}[{place}]")
    elif (str(reference).lower() if at.endswith(".type") else reference) != actual:
        yield f"{at} is {reference!r}, not {actual!r}"


@pytest.fixture
def bodies(
    recorder: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, list[Message], tuple[Tool, ...]], Any]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    async def sent(wire: str, messages: list[Message], tools: tuple[Tool, ...]) -> dict[str, Any]:
        name, path, options = WIRES[wire]
        recorder.says(BODIES[wire])
        model = open_model(name, ModelSettings(base_url=recorder.url + path, **options), store)
        try:
            await model.chat(messages, tools, CallKey("q"))
        finally:
            await model.close()
        body: dict[str, Any] = recorder.requests[-1][1]
        return body

    return sent


def test_there_are_eighteen_tools_with_objects_lists_and_choices() -> None:
    text = str([spec(tool) for tool in TOOLS.values()])
    assert len(TOOLS) == 18
    assert all(f"'{word}'" in text for word in ("enum", "items", "properties", "required"))


@pytest.mark.parametrize("wire", WIRES)
async def test_every_field_of_every_tool_is_on_the_wire(wire: str, bodies: Any) -> None:
    sent = schemas(wire, await bodies(wire, [user_message(["?"])], tuple(TOOLS.values())))
    assert list(sent) == list(TOOLS), "in our order"
    lines = [
        f"{name}{difference}"
        for name, tool in TOOLS.items()
        for key in ("description", "parameters")
        for difference in differences(spec(tool)["function"][key], sent[name].get(key), f".{key}")
    ]
    assert lines == []


def parts_shown(node: Any) -> Iterator[str]:
    """Yield labels and pictures in the order of a request."""
    if isinstance(node, list):
        for item in node:
            yield from parts_shown(item)
    elif isinstance(node, dict):
        # Ollama's pictures are separate from the text; test_ollama.py checks that no message has both.
        for key, value in node.items():
            if key in ("images", "image_url", "inlineData", "source") and value:
                yield from ["picture"] * (len(value) if isinstance(value, list) else 1)
            elif key not in ("tools", "functionCall", "tool_calls", "arguments"):
                yield from parts_shown(value)
    elif isinstance(node, str):
        yield from re.findall(r"^img:[\d.]+(?=:$)", node, re.MULTILINE)


@pytest.mark.parametrize("wire", WIRES)
async def test_each_picture_follows_its_label(wire: str, bodies: Any, image: Callable[..., ImageRef]) -> None:
    messages: list[Message] = [
        user_message(["Which one?", image("img:1", 1), image("img:2", 2), "A or B?"]),
        AssistantMessage("", (ToolCall("c1", "crop", {"image": "img:1"}), ToolCall("c2", "crop", {"image": "img:2"}))),
        ToolMessage("c1", "crop", ("first", ImagePart(image("img:1.1", 3)))),
        ToolMessage("c2", "crop", ("second", ImagePart(image("img:2.1", 4)))),
        user_message(["Now answer."]),
    ]
    body = await bodies(wire, messages, (TOOLS["crop"],))
    turns = next(body[key] for key in ("messages", "input", "contents") if key in body)
    labels = ["img:1", "img:2", "img:1.1", "img:2.1"]
    assert list(parts_shown(turns)) == [part for label in labels for part in (label, "picture")]
