"""`hybrid run` with the controller on servers without a parser of calls: they stand in the text of the replies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers import JsonHandler, LocalServer, listening

pytestmark = pytest.mark.system

BOX = {"x0": 1, "y0": 2, "x1": 30, "y1": 40}
CROP = {"name": "crop", "arguments": {"images": ["img:1"], "box": BOX}}
HERMES = f"<tool_call>\n{json.dumps(CROP)}\n</tool_call>"
CUT = '{"name": "crop", "arguments": 2222'


@pytest.fixture
def asked(command: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Run four questions on a server that says one text first; gives the ended command, the steps and the requests."""

    def run(said: str, *words: str, reason: str = "stop") -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
        requests: list[dict[str, Any]] = []

        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                requests.append(json.loads(body))
                again = any(one["role"] == "assistant" for one in requests[-1]["messages"])
                message = {"role": "assistant", "content": "Answer: (A)" if again else said}
                choice = {"message": message, "finish_reason": "stop" if again else reason}
                self.answer({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 5}})

        out = tmp_path / "run"
        with listening(LocalServer(Handler)) as server:
            ended = command(
                *("run", "blink", "--data", "sample", "--limit", "4", "--task", "Jigsaw", "--solver", "controller"),
                *("--model", "openai:m", "--base-url", f"{server.url}/v1", "--tools", "crop", "--allow", "blind"),
                *("--out", str(out), *words),
            )
        lines = (out / "controller" / "attempts.jsonl").read_text().splitlines()
        return ended, [step for line in lines for step in json.loads(line)["steps"][0]], requests

    return run


SOUND = {
    "Hermes": (HERMES, "crop: read from text (Hermes)"),
    "repaired": (
        "I look.\n[TOOL_CALLS]functions.crop[ARGS]{'image': 1, 'bbox_2d': [1, 2, 30, 40],}",
        "crop: read from text (Mistral); repaired: loose JSON, image name, coordinates",
    ),
}


@pytest.mark.parametrize("case", SOUND)
def test_a_call_in_the_text_runs_and_goes_back_as_a_call(asked: Callable[..., Any], case: str) -> None:
    said, told = SOUND[case]
    ended, steps, requests = asked(said)
    assert (ended.code, "4/4" in ended.out) == (0, True), ended.err
    assert "could not be read" not in ended.out + ended.err
    assert [step["text"] for step in steps if step["name"] == "call as read"] == [told] * 4
    ran = [step for step in steps if step["kind"] == "tool"]
    assert [(step["fault"], step["data"]["args"]["box"]) for step in ran] == [(None, BOX)] * 4
    (earlier,) = [one for one in requests[-1]["messages"] if one["role"] == "assistant"]
    assert [one["function"]["name"] for one in earlier["tool_calls"]] == ["crop"]
    assert (earlier["content"] or "") == said.partition("[TOOL_CALLS]")[0].strip().partition("<")[0]


def test_with_calls_as_text_it_goes_back_as_it_was_asked_for(asked: Callable[..., Any]) -> None:
    ended, steps, requests = asked(HERMES, "--tool-calling", "text")
    assert ended.code == 0, ended.err
    assert sum(step["kind"] == "tool" and step["fault"] is None for step in steps) == 4
    (earlier,) = [one for one in requests[-1]["messages"] if one["role"] == "assistant"]
    assert json.loads(earlier["content"].strip("`json\n")) == {
        "tool": "crop",
        "images": ["img:1"],
        "args": {"box": BOX},
    }


def test_a_call_that_cannot_be_read_is_told_counted_and_warned_of(
    asked: Callable[..., Any], command: Callable[..., Any], tmp_path: Path
) -> None:
    ended, steps, requests = asked(CUT, "--allow", "toolless", reason="length")
    assert (ended.code, "4/4" in ended.out) == (0, True), ended.err
    assert "4 of 4 questions" in ended.err
    assert "--enable-auto-tool-choice --tool-call-parser hermes), or run with --tool-calling text" in ended.err
    assert [step["fault"] for step in steps if step["kind"] == "tool"] == ["unreadable_call"] * 4
    asked_again = requests[-1]["messages"]
    assert [one["content"] for one in asked_again if one["role"] == "assistant"] == [CUT]
    assert "unreadable_call: " in json.dumps(asked_again[-1])
    assert "at the limit of tokens" in json.dumps(asked_again[-1])
    shown = command("compare", str(tmp_path / "run"), "--json")
    compared = json.loads(shown.out)
    limits = "controller wrote calls that could not be read about 4 of 4 questions"
    assert limits in json.dumps(compared["conclusion"])
    rows = {(row["section"], row["quantity"]): row["value"] for row in compared["results"] if not row.get("group")}
    assert rows["tool_use", "faults: unreadable call"] == rows["outcomes", "unreadable call"] == 4


def test_a_call_that_the_question_holds_runs_nothing(asked: Callable[..., Any], tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    lines = [{"id": f"val_Jigsaw_{n}", "text": f"It says {HERMES} here."} for n in range(1, 5)]
    notes.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    ended, steps, _ = asked(f"It says {HERMES}. Answer: (A)", "--setting", f"context={notes}")
    assert ended.code == 0, ended.err
    assert [step["kind"] for step in steps if step["kind"] == "tool"] == []
