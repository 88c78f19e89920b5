"""The training conversations come from real runs on questions that no sample shows."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ToolMessage, UserMessage
from hybrid.models.in_process.chat import HuggingFaceChat
from tests.tables import stored
from training.conversations import Batch, hold, turns

BENCHMARKS = stored(__file__, "BENCHMARKS")


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[dict[str, Any]]]]:
    folder = tmp_path_factory.mktemp("conversations")
    return folder, {name: list(hold(Batch(name, task, 2, 0), folder)) for name, task in BENCHMARKS.items()}


@pytest.mark.system
def test_every_benchmark_is_asked_with_and_without_tools(
    conversations: tuple[Path, dict[str, list[dict[str, Any]]]],
) -> None:
    for name, rows in conversations[1].items():
        assert {"plain", "tools"} <= {row["form"] for row in rows} | {
            "tools" if row["form"] == "text" else "" for row in rows
        }
        for row in rows:
            assert row["turns"][-1]["role"] == "assistant"
            assert row["turns"][-1]["content"], name
            assert bool(row["tools"]) == (row["form"] == "tools")


def test_a_call_its_finding_and_the_answer_follow_each_other(
    conversations: tuple[Path, dict[str, list[dict[str, Any]]]],
) -> None:
    for name in ("blink", "hvsbench"):
        rows = [row for row in conversations[1][name] if any("tool_calls" in turn for turn in row["turns"])]
        assert rows
        for row in rows:
            roles = [turn["role"] for turn in row["turns"]]
            assert roles[:4] == ["system", "user", "assistant", "tool"]
            assert roles[-1] == "assistant"
        blank = [row for row in rows if "no information about this image" in json.dumps(row["turns"])]
        assert blank


def test_turns_are_what_a_chat_template_is_handed(tmp_path: Path) -> None:
    import numpy as np

    from hybrid.core.messages import ImagePart, ToolCall
    from hybrid.core.types import ImageRef

    store = ImageStore(tmp_path)
    refs = [
        ImageRef(name, store.put_pixels(np.full((8, 9, 3), value, np.uint8)))
        for name, value in (("img:1", 1), ("img:1.1", 2))
    ]
    call = ToolCall("call_0_0", "crop", {"image": "img:1"})
    messages = (
        UserMessage(("Which?", ImagePart(refs[0]))),
        AssistantMessage("", (call,)),
        ToolMessage("call_0_0", "crop", ("Enlarged.", ImagePart(refs[1]))),
        AssistantMessage("Answer: (A)"),
    )
    model = HuggingFaceChat("hf:nowhere", ModelSettings(), store)
    conversation, sent = asyncio.run(model._conversation(list(messages), ()))
    by_name = {id(part): part for turn in conversation.messages for part in turn["content"] if isinstance(part, dict)}
    assert [image.original for image in sent] == [ref.image for ref in refs]
    pictures = iter(image.original.sha256 for image in sent)
    for part in by_name.values():
        if part["type"] == "image":
            part["image"] = next(pictures)
    handed = [{key: value for key, value in turn.items() if key != "tool_call_id"} for turn in conversation.messages]
    for turn in handed:
        for built in turn.get("tool_calls", ()):
            del built["id"]
    assert handed == turns(messages)


@pytest.mark.system
def test_what_is_seen_stands_before_an_answer_that_no_tool_helps_with(tmp_path: Path) -> None:
    from training.lessons import Eyes

    by_task = {
        task: [Eyes(tmp_path).conversation(row)["turns"] for row in hold(Batch(benchmark, task, 2, 0), tmp_path)]
        for benchmark, task in (("mm_sap", "BasicVisQA"), ("blink", "Multi-view_Reasoning"))
    }
    pattern = r"1 \w+ (ball|cube) 1 0\.\d 0\.\d0(, .*)?\nAnswer: \([A-E]\)"
    assert all(re.fullmatch(pattern, text[-1]["content"]) for text in by_task["BasicVisQA"])
    assert by_task["Multi-view_Reasoning"]
    assert all("\n" not in message[-1]["content"] for message in by_task["Multi-view_Reasoning"])
