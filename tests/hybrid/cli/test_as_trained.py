"""`hybrid study` of a model that was trained with tools: the effect of the tools' form, and of sending fewer
pictures."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.finished_runs import Command
from tests.servers import JsonHandler, LocalServer, listening

TRAINED = "image_zoom_in_tool"


class Zoomer(JsonHandler):
    """A model that makes two native calls; it is right with the tool of its training and wrong with another one."""

    calls = 2

    def posted(self, body: bytes) -> None:
        data = json.loads(body)
        names = [tool["function"]["name"] for tool in data.get("tools", ())]
        total = sum(message["role"] == "assistant" for message in data["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": f"Answer: ({'A' if TRAINED in str(data) else 'B'})"}
        if total < self.calls and names:
            args: dict[str, Any] = {"image": "img:1", "box": [2, total, 9, 9]}
            if names == [TRAINED]:
                args = {"bbox_2d": [100, 100 * total, 500, 500], "label": "it", "img_idx": 0}
            function = {"name": names[0], "arguments": json.dumps(args)}
            message |= {"content": "", "tool_calls": [{"id": f"c{total}", "type": "function", "function": function}]}
        usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        self.answer({"id": "1", "model": "m", "choices": choices, "usage": usage})


class OnceOnly(Zoomer):
    calls = 1


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    # Questions about one picture would be a single cluster, which allows no test.
    for number in range(16):
        Image.new("RGB", (640, 480), (90, 120, 10 * number)).save(tmp_path / f"{number}.png")
    rows = [f'q{number},Which one? ({number}),"[""red"", ""blue""]",A,{number}.png' for number in range(16)]
    (tmp_path / "questions.csv").write_text("\n".join(["id,question,choices,answer,image", *rows]))
    return tmp_path / "questions.csv"


@pytest.mark.system
def test_a_study_says_what_the_form_of_the_tools_brings_and_keeps_what_was_written(
    command: Command, questions: Path, tmp_path: Path
) -> None:
    with listening(LocalServer(Zoomer)) as server:
        words = ("--model", "openai:Qwen3-VL-8B", "--base-url", server.url, "--tools", "crop", "--allow", "blind")
        result = command("study", questions, *words, "--depth", "full", "-o", tmp_path / "study", code=0)
    text = " ".join(result.out.split())
    assert (
        "In the form in which it was trained (qwen3-vl) the model does better with the same tools: 100 points (95% CI"
        in text
    )
    assert "tools as trained - in our form 16 +1.000" in text
    assert "the latest picture alone - all kept 16 +0.000" in text
    assert result.err.count("was trained with tools in the form qwen3-vl but gets them in hybrid's form") >= 1
    model = json.loads((tmp_path / "study" / "latest-picture" / "manifest.json").read_text())["identity"]["model"]
    assert model["keep_pictures"] == "latest"
    run = tmp_path / "study" / "as-trained"
    command(
        "export", run / "controller", "--to", "conversations", "-o", tmp_path / "rows", "--allow", "test-split", code=0
    )
    row = json.loads((tmp_path / "rows" / "conversations.jsonl").read_text().splitlines()[0])
    calls = [call["function"] for message in row["messages"] for call in message.get("tool_calls", ())]
    assert [call["name"] for call in calls] == ["image_zoom_in_tool"] * 2
    assert calls[1]["arguments"] == {"bbox_2d": [100, 100, 500, 500], "label": "it", "img_idx": 0}
    assert row["tools"][0]["function"]["parameters"]["required"] == ["bbox_2d", "label", "img_idx"]
    command("report", run, "-o", tmp_path / "site", code=0)
    assert "ran as crop on img:1" in "".join(path.read_text() for path in (tmp_path / "site").rglob("*.js*"))


@pytest.mark.system
def test_a_model_that_calls_once_is_not_asked_with_fewer_pictures(
    command: Command, questions: Path, tmp_path: Path
) -> None:
    with listening(LocalServer(OnceOnly)) as server:
        words = ("--model", "openai:gpt-4o", "--base-url", server.url, "--tools", "crop", "--allow", "blind")
        result = command("study", questions, *words, "--depth", "full", "-o", tmp_path / "study", code=0)
    assert (
        "only the latest picture of a tool is kept): left out, because it would repeat a run that was already asked"
        in result.err
    )
    assert not (tmp_path / "study" / "latest-picture").exists()
    assert not (tmp_path / "study" / "as-trained").exists()
