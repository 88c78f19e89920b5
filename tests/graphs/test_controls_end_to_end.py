"""Controls in a full run: with perfect tools a competent model is right; blank or shuffled tool outputs add nothing.

The questions are generated and their answers known; the model of these tests knows how each of three tools words its
output, and guesses if no tool gives one. The rest is the real path: data on disk, plan, run, scores,
comparison.
"""

import asyncio
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink.sample import write
from hybrid.cli.compare import command
from hybrid.config import ModelSettings, RunConfig, ServiceOptions, ToolOutput
from hybrid.core.messages import AssistantMessage, Message, ToolCall, images_of
from hybrid.models.base import CallKey
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run
from hybrid.scoring.compare import unique
from hybrid.scoring.runs import score_run
from hybrid.tool import Tool
from tests.fakes import Scripted

TASKS = {"Jigsaw": "jigsaw", "Multi-view_Reasoning": "motion", "Relative_Depth": "depth"}
PER_TASK = 6
CUES = {"jigsaw": "corner", "motion": "lockwise", "depth": "closer"}
MODES: tuple[ToolOutput, ...] = ("real", "blank", "shuffled", "oracle")
# Patterns of a perfect tool's outputs, and of the outputs of jigsaw, depth and motion if these tools are certain.
NAMES_A_CHOICE = (
    r"^The evidence favours \((\w)\)",
    r"^Image (\d) continues",
    r"^Image 1: (\w) is nearest",
    r"the camera moved to its (left|right)",
)
ORDINALS = {"2": "second", "3": "third"}


def favoured(finding: str, choices: Mapping[str, str]) -> str | None:
    """Return the letter of the choice that a tool output names: by letter, by index or in words."""
    match = next(filter(None, (re.search(pattern, finding, re.MULTILINE) for pattern in NAMES_A_CHOICE)), None)
    value = ORDINALS.get(match[1], match[1]) if match else None
    return next((letter for letter, text in choices.items() if value == letter or value in text.split()), None)


class Competent(Scripted):
    """Calls the tool that a question needs and follows its output; guesses without an output.

    Guesses differ with the conversation, so a controller without evidence does not just repeat the MLLM alone.
    """

    name = "scripted:competent"
    provider = "scripted"

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        opening = next(message for message in messages if message.role == "user")
        question, texts = opening.text, [message.text for message in messages if message.role == "tool"]
        match = next((tool for tool in tools if CUES[tool.card.name] in question), None)
        if match is not None and not texts:
            images = [ref.name for ref in images_of([opening])][: match.card.images[1]]
            return AssistantMessage("", (ToolCall("c", match.card.name, {"images": images}),))
        choices = dict(re.findall(r"^\((\w)\) (.+)$", question, re.MULTILINE))
        letter = favoured("\n".join(texts), choices)
        guess = random.Random(f"{call.question}/{len(messages)}").choice(sorted(choices))
        return AssistantMessage(f"Answer: ({letter or guess})")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ResolvedRun]]:
    """One run per kind of tool output on the same questions; the run with real outputs also asks the MLLM alone."""
    folder = tmp_path_factory.mktemp("controls")
    write(folder / "data", tuple(TASKS), per_task=PER_TASK, seed=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folder / "home"))
        yield {mode: finish_run(folder, mode) for mode in MODES}


def finish_run(folder: Path, mode: ToolOutput) -> ResolvedRun:
    """Finish a run whose tools return this kind of output; return the run."""
    config = RunConfig(
        "blink",
        ("controller", "mllm") if mode == "real" else ("controller",),
        model="openai:mock",
        model_settings=ModelSettings(base_url="http://127.0.0.1:9/v1"),
        data=str(folder / "data"),
        tools=tuple(TASKS.values()),
        tool_output=mode,
        service=ServiceOptions("classical"),
        out=folder / f"run-{mode}",
    )
    plan = prepare(config)
    plan = replace(plan, resources=replace(plan.resources, model=Competent()))
    assert asyncio.run(ask_run(plan, lambda *_: None)) == ()
    return plan


@pytest.mark.system
def test_a_shuffled_finding_speaks_of_another_questions_images(runs: dict[str, ResolvedRun]) -> None:
    mine, foreign = (finding_texts(runs[mode]) for mode in ("real", "shuffled"))
    assert mine.keys() == foreign.keys()
    assert sum(mine[name] != foreign[name] for name in mine) > len(mine) // 2
    assert all(step["version"].startswith("shuffled:") for step in steps(runs["shuffled"]))


def steps(plan: ResolvedRun) -> list[dict[str, Any]]:
    """Return the records of all tool calls in the attempts."""
    results = []
    for line in (plan.folder.path / "controller" / "attempts.jsonl").read_text().splitlines():
        attempt = json.loads(line)
        values = [step for steps in attempt["steps"] for step in steps]
        results += [{"id": attempt["id"], "text": s["text"], **s["data"]} for s in values if s["kind"] == "tool"]
    return sorted(results, key=lambda step: str(step["id"]))


def finding_texts(plan: ResolvedRun) -> dict[str, str]:
    return {step["id"]: step["text"] for step in steps(plan)}


@pytest.mark.system
def test_a_control_never_writes_to_the_cache(runs: dict[str, ResolvedRun], tmp_path: Path) -> None:
    """A real run after all controls gets the real outputs from the cache, unchanged."""
    previous = finding_texts(runs["real"])
    plan = prepare(replace(runs["real"].config, out=tmp_path / "again", solvers=("controller",), limit=6))
    plan = replace(plan, resources=replace(plan.resources, model=Competent()))
    asyncio.run(ask_run(plan, lambda *_: None))
    second = finding_texts(plan)
    assert len(second) == 6
    assert second == {name: previous[name] for name in second}


@pytest.mark.system
def test_the_command_names_each_run_by_what_sets_it_apart(runs: dict[str, ResolvedRun]) -> None:
    paths = [str(runs[mode].folder.path / "controller") for mode in ("real", "blank")]
    text = CliRunner().invoke(command, [*paths, "--json"], standalone_mode=False)
    assert list(json.loads(text.stdout)["solvers"]) == ["controller", "controller [blank]"]
    values = ("difference", "accuracy_macro", None)
    rows = json.loads(text.stdout)["results"]
    (row,) = [row for row in rows if (row["quantity"], row.get("metric"), row.get("group")) == values]
    assert (row["a"], row["b"], row["value"] > 0) == ("controller [blank]", "controller", True)


def test_runs_that_no_label_sets_apart_carry_where_they_lie(runs: dict[str, ResolvedRun]) -> None:
    (scored,) = score_run(runs["real"].folder, ScoreOptions(), ("controller",))
    names = [by_label.solver for by_label in unique([scored, scored, scored], ["runs/a", "runs/b", "runs/b"])]
    assert names == ["controller (runs/a)", "controller (runs/b) #1", "controller (runs/b) #2"]
    assert [other_by_label.solver for other_by_label in unique([scored], ["runs/a"])] == ["controller"]
