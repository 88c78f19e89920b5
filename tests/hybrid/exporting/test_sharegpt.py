"""Conversations in the form that LLaMA-Factory reads: turns alternate, and there are as many placeholders as images."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    images_of,
)
from hybrid.core.types import ImageRef, StoredImage
from hybrid.exporting._enacted import LeftOut
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.conversations import openai_message
from hybrid.exporting.sharegpt import EXPORTER, PLACE, RESERVED, sharegpt_turns
from hybrid.models.images import arrange
from hybrid.plugins.registry import load
from tests.hybrid.exporting.conversation_runs import write

REF = ImagePart(ImageRef("img:1", StoredImage("0" * 64, 4, 4, "image/png")))


def image(number: int) -> ImagePart:
    return ImagePart(ImageRef(f"img:{number}", StoredImage(f"{number:064x}", 4, 4, "image/png")))


texts = st.text(st.characters(codec="utf-8"), max_size=12)
parts = st.lists(st.one_of(texts, st.integers(1, 6).map(image)), max_size=4).map(tuple)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw any sequence of steps: calls and their results with pictures, nudges, empty texts, then an answer."""
    messages: list[Message] = [SystemMessage(draw(texts))] if draw(st.booleans()) else []
    messages.append(UserMessage(draw(parts)))
    number = 0
    for _ in range(draw(st.integers(0, 4))):
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            calls.append(
                ToolCall(f"call_{number}", draw(st.sampled_from(["crop", "nothing"])), {"images": [draw(texts)]})
            )
        messages.append(AssistantMessage(draw(texts), tuple(calls)))
        messages += [ToolMessage(call.id, call.name, draw(parts), draw(st.booleans())) for call in calls]
        if not calls or draw(st.booleans()):
            messages.append(UserMessage(draw(parts)))
    messages.append(AssistantMessage(draw(texts)))
    return arrange(messages, len(images_of(messages)))


def check_turns(turns: Sequence[dict[str, str]], images: int) -> None:
    """Check a row for what `SharegptDatasetConverter` of LLaMA-Factory requires."""
    assert len(turns) % 2 == 0
    for place, turn in enumerate(turns):
        assert turn["from"] in (("human", "observation"), ("gpt", "function_call"))[place % 2]
        if turn["from"] == "function_call":
            text = turn["value"].partition("<tool_call>")[2].partition("</tool_call>")[0] or turn["value"]
            assert all(set(call) == {"name", "arguments"} for call in json.loads(text))
    assert sum(turn["value"].count(PLACE) for turn in turns) == images


@pytest.mark.system
@given(conversations())
def test_places_are_as_many_as_images_and_turns_alternate(messages: list[Message]) -> None:
    tools = [load("tools", "crop")]
    images = len(images_of(messages))
    values = [openai_message(message, tools) for message in messages]
    places: list[Any] = [part for item in values for part in item["content"] if part["type"] == "image"]  # type: ignore[union-attr,index,call-overload]
    assert len(places) == images
    check_turns(sharegpt_turns(messages, tools), images)


@pytest.mark.parametrize("word", RESERVED)
@pytest.mark.parametrize("location", ["question", "result", "reply", "arguments"])
def test_a_word_of_the_form_in_a_text_is_left_out(word: str, location: str) -> None:
    by_name = {
        name: f"a {word} b" if name == location else "c" for name in ("question", "result", "reply", "arguments")
    }
    messages: list[Message] = [
        UserMessage((by_name["question"], REF)),
        AssistantMessage("", (ToolCall("1", "crop", {"image": by_name["arguments"]}),)),
        ToolMessage("1", "crop", (by_name["result"],)),
        AssistantMessage(by_name["reply"]),
    ]
    with pytest.raises(LeftOut, match="sharegpt reserves"):
        sharegpt_turns(messages, ())
    plain = [UserMessage(("c", REF)), AssistantMessage("c")]
    assert sharegpt_turns(plain, ()) == [{"from": "human", "value": f"c\n{PLACE}"}, {"from": "gpt", "value": "c"}]


def test_a_run_is_a_folder_that_its_description_fits(tmp_path: Path) -> None:
    run = ExportedRun.at(write(tmp_path).path)
    out = tmp_path / "out"
    export = EXPORTER.export(run, out, ExportOptions(only="all"))
    (info,) = json.loads((out / "dataset_info.json").read_text()).values()
    rows = [json.loads(line) for line in (out / info["file_name"]).read_text().splitlines()]
    assert export.rows == len(rows) == 5
    assert info["formatting"] == "sharegpt"
    for row in rows:
        assert set(info["columns"].values()) <= set(row)
        check_turns(row["conversations"], len(row["images"]))
        assert all((out / path).is_file() for path in row["images"])
        assert [tool["name"] for tool in json.loads(row["tools"])] == ["depth", "jigsaw", "crop"]
        assert row["system"].startswith("You answer a question about images.")
    by_id = {row["id"]: row["conversations"] for row in rows}
    words, _, call = by_id["generated_val_Jigsaw_1"][1]["value"].partition("\n<tool_call>")
    assert words == "I look closer."
    assert [item["name"] for item in json.loads(call.removesuffix("</tool_call>"))] == ["crop", "jigsaw"]
