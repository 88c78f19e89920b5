"""`--tools` restricts the tools that the rules of specialists use, and a named tool that never ran fails the run."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Command

SPECIALIST = ("run", "blink", "--data", "sample", "--limit", "2", "--solver", "specialist", "--out", "run")


def tool_steps(run: Path) -> list[dict[str, Any]]:
    lines = (run / "specialist" / "attempts.jsonl").read_text().splitlines()
    return [step for line in lines for ask in json.loads(line)["steps"] for step in ask if step["kind"] == "tool"]


def entry(run: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((run / "manifest.json").read_text())["solvers"]["specialist"]
    return data


@pytest.mark.system
@pytest.mark.parametrize(("tools", "calls"), [("crop", 0), ("none", 0), ("crop,jigsaw", 2), ("default,crop", 2)])
def test_a_rule_uses_no_tool_that_the_list_leaves_out(tools: str, calls: int, command: Command, tmp_path: Path) -> None:
    result = command(*SPECIALIST, "--task", "Jigsaw", "--backend", "classical", "--tools", tools, code=0)
    assert [step["name"] for step in tool_steps(tmp_path / "run")] == ["jigsaw"] * calls
    assert set(entry(tmp_path / "run")["tools"]) == ({"jigsaw"} if calls else set())
    note = "specialist: --tools leaves out every tool of the rules for these questions, so no specialist answers"
    assert (note in result.err) is (calls == 0)


@pytest.mark.system
@pytest.mark.parametrize(("tools", "code"), [((), 0), (("--tools", "detection"), 3)])
def test_a_named_tool_that_never_ran_for_the_specialist_is_a_failure(
    tools: tuple[str, ...], code: int, command: Command
) -> None:
    result = command(*SPECIALIST, "--task", "Counting", *tools, code=code)
    assert ("failed: specialist: 2 of 2 calls of detection failed: " in result.err) is (code == 3)
