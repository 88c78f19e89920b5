"""Rules of tools from Python apply to a user's own rows by task or by the column `route`; several apply in order."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.core.types import Finding, Prompt
from hybrid.tool import Args, BackendCard, Card, Evidence, Tool
from hybrid.tool.rules import OneCall


class Mean:
    """Computes the mean of the pixels."""

    def setup(self, device: str, weights: str | None) -> None:
        """Do nothing, because nothing is loaded."""

    def run(self, requests: Any) -> list[Evidence]:
        """Return one evidence per request."""
        means = [float(request.images[0].mean()) / 255 for request in requests]
        return [Evidence(f"{mean:.2f}", {"mean_0_1": mean}, 1.0) for mean in means]


def light(finding: Finding, prompt: Prompt) -> str:
    return "bright" if float(finding.data["mean_0_1"]) > 0.5 else "dark"  # type: ignore[arg-type]


def wide(finding: Finding, prompt: Prompt) -> str | None:
    return "wide" if "shape" in prompt.text else None


def tall(finding: Finding, prompt: Prompt) -> str:
    return "tall"


def tool(name: str, route: str, reading: Any) -> Tool:
    card = Card(name, "Says how bright an image is.", "None.", (BackendCard("classical", "1", Mean, "The mean."),))
    return Tool(card, Args, rules={route: OneCall(name, reading)})


LAMP, WIDE, TALL = tool("lamp", "light", light), tool("wide", "by_text", wide), tool("tall", "by_text", tall)
WHITE, BLACK = np.full((40, 60, 3), 240, np.uint8), np.full((40, 60, 3), 10, np.uint8)
SIDES = ["wide", "tall"]
ROWS = [
    hybrid.Question("Is it bright?", WHITE, "bright", choices=["bright", "dark"], task="light"),
    hybrid.Question("Is it bright?", BLACK, "dark", choices=["bright", "dark"], task="x", route="light"),
    hybrid.Question("Which shape is it?", BLACK, "wide", choices=SIDES, task="form"),
    hybrid.Question("Which is it?", BLACK, "tall", choices=SIDES, task="form"),
]


def answers(tools: list[Any], out: Path) -> list[str]:
    hybrid.run(questions=ROWS, tools=["default", *tools], solvers=["specialist"], backend="classical", out=out)
    lines = (out / "specialist" / "scores.jsonl").read_text().splitlines()
    return [json.loads(line)["answer"] for line in lines]


@pytest.mark.system
def test_rules_of_several_tools_answer_the_rows_of_their_routes_in_the_order_of_tools(tmp_path: Path) -> None:
    assert answers([LAMP, WIDE, TALL], tmp_path / "first") == ["A", "B", "A", "B"]
    assert answers([LAMP, TALL, WIDE], tmp_path / "second") == ["A", "B", "B", "B"]
    manifest = json.loads((tmp_path / "second" / "manifest.json").read_text())
    assert manifest["solvers"]["specialist"]["rule_order"] == ["tall", "wide"]


def test_a_rule_that_no_row_asks_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    unasked = tool("lamp", "ligth", light)
    assert answers([unasked], tmp_path / "run") == [None, None, None, None]
    note = "lamp: no question has the route 'ligth' of its rule (did you mean 'light'?); available: by_text, form"
    assert note in " ".join(capfd.readouterr().err.split())
