"""`hybrid models check` on pictures of tools, thinking, and limits of pictures; then the printed command is run."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from bench._picture_server import Treatment, serving
from tests.finished_runs import Command


def checked(command: Command, treatment: Treatment) -> tuple[int, dict[str, tuple[str, str]], list[str]]:
    """Return the exit code, the result and its meaning for each check, and the options in the printed command."""
    with serving(treatment) as server:
        result = command("models", "check", "openai:k", "--base-url", server.url, "--json")
    data = json.loads(result.out)
    words: list[str] = data["command"]
    mapping = {item["asked"]: (item["came"], item["means"]) for item in data["found"]}
    return result.code, mapping, words[words.index("--base-url") + 2 :]


RESULT, THINKING, HISTORY = (
    "a picture in a result",
    "thinking before a picture of a tool",
    "history that the model reads",
)


@pytest.mark.system
@pytest.mark.parametrize(
    ("treatment", "text", "came", "options", "code"),
    [
        (Treatment(), RESULT, "seen", [], 0),
        (Treatment(beside="ignored"), RESULT, "not seen", ["--show", "text"], 3),
        (Treatment(beside="ignored", counts="all"), RESULT, "not seen", ["--show", "text"], 3),
        (Treatment(beside="refused"), RESULT, "not accepted: ", ["--show", "text"], 3),
        (Treatment(beside="refused", inside="taken"), RESULT, "seen", [], 0),
        (Treatment(thinks=True, inside="taken"), THINKING, "kept", [], 0),
        (Treatment(thinks=True, switch=("preserve_thinking", True)), THINKING, "switched", [], 0),
        (Treatment(thinks=True), THINKING, "lost", [], 0),
        (Treatment(thinks=True, drops_history=True), HISTORY, "no thinking; no text beside a call", [], 0),
        (Treatment(thinks=True), HISTORY, "thinking and text beside a call kept", [], 0),
        (Treatment(uncounted=True), HISTORY, "tokens are not counted", [], 0),
        (Treatment(order="reversed"), "pictures in one message", "8 accepted, out of order", ["--images", "concat"], 3),
        (
            Treatment(least_opening=20),
            "smallest picture",
            "28 px a side accepted",
            ["--model-arg", "image_limits=least_side:28"],
            0,
        ),
        (
            Treatment(least_opening=30, ratio_opening=60),
            "smallest picture",
            "32 px a side accepted, and a ratio of 50",
            ["--model-arg", "image_limits=least_side:32,most_ratio:50"],
            0,
        ),
    ],
)
def test_what_becomes_of_pictures_is_found_and_the_options_follow(
    command: Command, treatment: Treatment, text: str, came: str, options: list[str], code: int
) -> None:
    result, output, words = checked(command, treatment)
    assert output[text][0].startswith(came)
    assert words == options
    assert result == code


@pytest.mark.system
def test_the_command_that_is_printed_runs(command: Command, tmp_path: Path, capsys: Any) -> None:
    with serving(Treatment(beside="ignored")) as server:
        *_, line = command("models", "check", "openai:k", "--base-url", server.url).out.strip().splitlines()
        assert line.endswith("--show text")
        command(*shlex.split(line)[1:], "--tools", "crop", "--out", "out", code=0)
    content = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert content["labels"] == ["generated questions"]
