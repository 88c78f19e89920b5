"""What goes over the wire, recorded by a real server and compared with golden files, one for each provider.

After a wanted change run once with HYBRID_WRITE_GOLDEN=1, read the difference, and run again.
"""

import base64
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from hybrid.images import ImageStore
from hybrid.messages import human, image_part, text_of
from hybrid.models import CallKey, ModelSettings, open_model
from hybrid.tool import Tool
from hybrid.types import ImageRef

GOLDEN = Path(__file__).with_name("golden")

BODIES: dict[str, Any] = {
    "openai_chat": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Answer: (A)"}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    },
    "openai_responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Answer: (A)", "annotations": []}],
            }
        ],
        "usage": {
            "input_tokens": 5,
            "output_tokens": 2,
            "total_tokens": 7,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    },
    "anthropic": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [{"type": "text", "text": "Answer: (A)"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 2},
    },
    "google_genai": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "Answer: (A)"}]}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7},
        "modelVersion": "g",
    },
    "ollama": {
        "model": "o",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "Answer: (A)"},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 5,
        "eval_count": 2,
    },
}
WIRES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai_chat": ("openai:gpt-4o", "/v1", {"seed": 3, "image_detail": "low", "max_tokens": 50}),
    "openai_responses": ("openai:gpt-4o", "/v1", {"seed": 3, "image_detail": "high", "extra": {"api": "responses"}}),
    "anthropic": ("anthropic:claude-test", "", {"seed": 3, "max_tokens": 100}),
    "google_genai": ("google_genai:gemini-test", "", {"seed": 3, "image_detail": "low", "max_tokens": 50}),
    "ollama": ("ollama:qwen-vl", "", {"seed": 3, "max_tokens": 50}),
}


def conversation(image: Callable[..., ImageRef]) -> list[BaseMessage]:
    def call(number: int, name: str) -> Any:
        args = {"images": [name], "box": [0, 0, 5, 5]}
        return {"name": "crop", "args": args, "id": f"call_{number}", "type": "tool_call"}

    def result(number: int, text: str, *images: ImageRef) -> ToolMessage:
        parts: list[Any] = [{"type": "text", "text": text}, *map(image_part, images)]
        status = "error" if "outside" in text else "success"
        return ToolMessage(parts, tool_call_id=f"call_{number}", name="crop", status=status)

    return [
        human(["Which one?", image("img:1", 1), image("img:2", 2)]),
        AIMessage("", tool_calls=[call(1, "img:1")]),
        result(1, "first", image("img:1.1", 3)),
        AIMessage("Closer.", tool_calls=[call(2, "img:1"), call(3, "img:2")]),
        result(2, "second", image("img:1.2", 4), image("img:1", 1)),
        result(3, "the box lies outside", image("img:2.1", 5)),
        HumanMessage("Give the final answer now."),
    ]


def named(node: Any, images: dict[str, str]) -> Any:
    """The request with every base64 image replaced by the name of the picture whose bytes it holds."""
    if isinstance(node, list):
        return [named(item, images) for item in node]
    if isinstance(node, dict):
        return {key: named(value, images) for key, value in node.items()}
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
    offered, withdrawn, again = [{"path": p, "body": named(body, pictures)} for p, body in recorder.requests]
    assert offered == again
    found = {"offered": offered, "withdrawn": withdrawn}
    file = GOLDEN / f"{wire}.json"
    if os.environ.get("HYBRID_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(file.read_text())
    text = json.dumps(offered)
    # The two of the question, and the last two of three others, each once.
    assert [text.count(f"<picture {seed}>") for seed in range(1, 6)] == [1, 1, 0, 1, 1]
    for reply in replies:
        assert text_of(reply) == "Answer: (A)"
        assert reply.usage_metadata is not None
        assert (reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]) == (5, 2)
        sent: Any = reply.response_metadata["images_sent"]
        assert [entry["name"] for entry in sent] == ["img:1", "img:2", "img:1.2", "img:2.1"]
        assert reply.response_metadata["refusal"] is False
        assert reply.response_metadata["attempts"] == 1


async def test_calls_come_back_with_their_arguments(
    recorder: Any, store: ImageStore, image: Callable[..., ImageRef], crop_tool: Tool
) -> None:
    def call(arguments: str) -> Any:
        return {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": arguments}}

    calls = [call('{"images": ["img:1"], "box": [0, 0, 1, 1]}'), call("{oops")]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    recorder.says(
        BODIES["openai_chat"] | {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    )
    model = open_model("openai:local", ModelSettings(base_url=f"{recorder.url}/v1"), store)
    try:
        reply = await model.chat([human(["Which?", image("img:1", 1)])], (crop_tool,), CallKey("q"))
    finally:
        await model.close()
    assert reply.tool_calls[0]["args"] == {"images": ["img:1"], "box": [0, 0, 1, 1]}
    assert reply.invalid_tool_calls[0]["args"] == "{oops"


async def test_what_only_a_compatible_server_knows_goes_through(recorder: Any, store: ImageStore) -> None:
    recorder.says(BODIES["openai_chat"])
    settings = ModelSettings(base_url=f"{recorder.url}/v1", extra={"extra_body": {"top_k": 5, "max_tokens": 9}})
    model = open_model("openai:local/model", settings, store)
    try:
        await model.chat([HumanMessage("Which?")], (), CallKey("q"))
    finally:
        await model.close()
    body = recorder.requests[0][1]
    assert (body["model"], body["top_k"], body["max_tokens"]) == ("local/model", 5, 9)
