"""Effects of each tool in a run: calls, faults, verdicts and seconds, by the tool that answered."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.core.errors import ToolError
from hybrid.log.folder import RunFolder
from hybrid.scoring.paths import scored_at
from hybrid.scoring.tool_metrics import metrics_table, tool_metrics
from hybrid.tool import Image, ToolOutput, tool


@tool(limits="Says nothing about what the image shows.")
def lamp(image: Image) -> ToolOutput:
    """Says how light an image is on average."""
    if image.mean() == 7:
        raise ToolError("seven is refused")
    return ToolOutput("Light.", light_0_1=image.mean() / 255)


@lamp.rule("light")
def judge(output: Any) -> str | None:
    return None if output.light_0_1 == 0 else "bright" if output.light_0_1 > 0.5 else "dark"


def row(level: int, answer: str, task: str = "light") -> hybrid.Question:
    pixels = np.full((20, 30, 3), level, np.uint8)
    return hybrid.Question("Is it bright?", pixels, answer, choices=["bright", "dark"], task=task)


def test_each_tool_is_counted_by_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(240, "bright"), row(10, "dark"), row(200, "dark"), row(0, "dark"), row(7, "dark"), row(9, "dark", "x")]
    out = tmp_path / "run"
    hybrid.run(questions=rows, tools=[lamp], solvers=["specialist"], backend="classical", out=out)
    # The rules are found again as they were in the run.
    from hybrid.solving.rules import rules_in_order

    with rules_in_order(["lamp"], [lamp]):
        (scored,) = scored_at(out, {})
        (counts,) = tool_metrics(scored)
    assert (counts.solver, counts.tool, counts.route) == ("specialist", "lamp", "light")
    assert (counts.questions, counts.calls, counts.faults) == (5, 5, 1)
    assert (counts.right, counts.wrong, counts.abstained, counts.unknown) == (2, 1, 2, 0)
    table = metrics_table(RunFolder.existing(out), [counts])
    assert table.rows[0][:4] == ("specialist", "lamp", "light", "5")
    assert metrics_table(RunFolder.existing(out), []).notes == ("No tool was called.",)
