"""Paths of this machine in files about a run are shortened in whatever form they occur; nothing else is changed."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.core.machine_paths import hide_paths, hide_paths_in, hide_paths_in_step
from hybrid.core.types import Fault, Step


@pytest.mark.parametrize(
    ("text", "other_text"),
    [
        ("hybrid run blink --data /mnt/d/BLINK --out /home/ada/runs/r1", "hybrid run blink --data BLINK --out r1"),
        ("hybrid run blink --out='/home/ada/my runs/r1'", "hybrid run blink --out='r1'"),
        ("~/runs/r1", "r1"),
        ("hf:/home/ada/weights/qwen", "hf:qwen"),
        ("file:///home/ada/x.png is broken", "x.png is broken"),
        (r"C:\\Users\\ada\\runs\\r1", "r1"),
        ('File "/usr/lib/python3.11/json/decoder.py", line 3', 'File "decoder.py", line 3'),
        ("/home/ada/q.csv:3: there is no id", "q.csv:3: there is no id"),
        ("(/tmp/a/b)", "(b)"),
        ("data=/data/set/", "data=set"),
    ],
)
def test_a_path_is_shortened(text: str, other_text: str) -> None:
    assert hide_paths(text.replace("\\\\", "\\")) == other_text


@pytest.mark.parametrize(
    "text",
    [
        "https://host/a/b/c",
        "POST /v1/chat/completions",
        "18/18 and 1/2/3",
        "runs/blink/mllm",
        "</div></span>",
        "openai/gpt-4o",
        "and/or",
        "./runs/r1",
        "../runs/r1",
    ],
)
def test_what_is_no_path_of_the_machine_stays(text: str) -> None:
    assert hide_paths(text) == text


def test_what_is_below_the_working_directory_stays_runnable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hide_paths(f"hybrid compare {tmp_path}/runs/r1 --all") == "hybrid compare runs/r1 --all"


def test_every_text_of_a_value_is_looked_at() -> None:
    value = {"a": ["/mnt/x/y", 3, None], "b": ({"c": "/mnt/x/z"},)}
    assert hide_paths_in(value) == {"a": ["y", 3, None], "b": ({"c": "z"},)}


def test_the_name_of_a_model_and_an_error_of_a_tool_are_shortened() -> None:
    step = hide_paths_in_step(Step("model", "replay:/mnt/x/alpha", "see /mnt/x/y", data={"model": "/srv/models/m"}))
    assert (step.name, step.text, step.data) == ("replay:alpha", "see /mnt/x/y", {"model": "m"})
    data = {"args": {"text": "/mnt/x/y"}, "raised_at": "/mnt/x/tool.py, line 7"}
    step = hide_paths_in_step(Step("tool", "depth", "cannot open /mnt/x/w", fault=Fault.TOOL_ERROR, data=data))
    assert step.text == "cannot open w"
    assert step.data == {"args": {"text": "/mnt/x/y"}, "raised_at": "tool.py, line 7"}


@pytest.mark.parametrize(
    ("step", "name", "data"),
    [
        (Step("model", "replay:/mnt/x/alpha", ""), "replay:alpha", {}),
        (Step("model", "alpha", "", data={"model": "/srv/models/alpha"}), "alpha", {"model": "alpha"}),
        (Step("model", "alpha", "/mnt/x/y", fault=Fault.TOOL_ERROR, data={"at": "/mnt/x/w"}), "alpha", {"at": "w"}),
        (Step("model", "alpha", "", data={"file": "/mnt/x/y"}), "alpha", {"file": "/mnt/x/y"}),
    ],
)
def test_a_path_in_name_model_or_error_of_a_step_is_shortened(step: Step, name: str, data: dict[str, Any]) -> None:
    result = hide_paths_in_step(step)
    assert (result.name, result.data) == (name, data)


def test_tool_output_stays() -> None:
    step = Step("tool", "ocr", "the sign says /mnt/x/y", data={"text": "/mnt/x/y"})
    assert hide_paths_in_step(step) == step
