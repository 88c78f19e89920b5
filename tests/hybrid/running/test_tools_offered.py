"""Which tools a run offers to its model: a benchmark's own menu, one for all its questions, unless others are named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings, RunConfig
from hybrid.registry import load, names
from hybrid.running.estimate import estimate
from hybrid.running.resolve import ResolvedRun, prepare
from tools.rules import tools_asked

TOOLS = frozenset(names("tools"))
BENCHMARKS = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.sample_tasks]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_menu_has_each_tool_once_and_all_that_the_rules_ask(benchmark: str) -> None:
    card = load("hybrid.benchmarks", benchmark).card
    tools_offered = card.tools_offered
    assert tools_offered
    assert len(set(tools_offered)) == len(tools_offered)
    assert set(tools_offered) <= TOOLS
    asked = tools_asked(card.tasks if card.routes_are_tasks else card.routes)
    assert asked
    assert asked <= set(tools_offered)


def test_menus_are_short_of_what_a_benchmark_has_no_use_for() -> None:
    tools_offered_by = {name: set(load("hybrid.benchmarks", name).card.tools_offered) for name in BENCHMARKS}
    assert "jigsaw" in tools_offered_by["blink"]
    assert not any("jigsaw" in tools_offered for name, tools_offered in tools_offered_by.items() if name != "blink")
    assert all(tools_offered < TOOLS for tools_offered in tools_offered_by.values())


def resolved(tmp_path: Path, *tools: str) -> ResolvedRun:
    server = ModelSettings(base_url="http://127.0.0.1:9/v1")
    config = RunConfig("blink", model="openai:gpt-4o", model_settings=server, data="sample", tasks=("Jigsaw",), limit=1)
    return prepare(replace(config, out=tmp_path, tools=tools), dry=True)


def offered(run: ResolvedRun) -> list[str]:
    return [tool.card.name for tool in run.resources.tools_offered]


def test_the_menu_is_the_benchmarks_own_and_stands_in_the_identity(tmp_path: Path) -> None:
    run = resolved(tmp_path)
    tools_offered = load("hybrid.benchmarks", "blink").card.tools_offered
    able = [name for name in tools_offered if run.tools.backends.get(name, "absent") != "absent"]
    assert offered(run) == able
    assert "jigsaw" in able
    assert "scanpath" not in able
    # Which of them can answer is no choice of this run: the solver's facts say it.
    assert run.identity["tools_offered"] == list(tools_offered)


def test_named_tools_replace_it_and_all_is_every_tool_that_can_answer(tmp_path: Path) -> None:
    named = resolved(tmp_path, "scanpath", "attributes")
    assert offered(named) == named.identity["tools_offered"] == ["scanpath", "attributes"]
    every = resolved(tmp_path, "all")
    assert offered(every) == [name for name in sorted(TOOLS) if every.tools.backends.get(name, "absent") != "absent"]
    assert "scanpath" in offered(every)
    assert every.identity["tools_offered"] == sorted(TOOLS)


async def test_an_estimate_counts_the_menu_that_is_offered(tmp_path: Path) -> None:
    spent: Any = [await estimate(resolved(tmp_path, *tools)) for tools in (("crop",), (), ("all",))]
    read = [one.solvers["controller"].expected.input_tokens for one in spent]
    assert read[0] < read[1] < read[2]
