"""A run offers its model the benchmark's own menu of tools for all questions, unless other tools are named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hybrid.config import ModelSettings, RunConfig
from hybrid.running.estimate import estimate
from hybrid.running.resolve import ResolvedRun, prepare


def resolved(tmp_path: Path, *tools: str) -> ResolvedRun:
    server = ModelSettings(base_url="http://127.0.0.1:9/v1")
    config = RunConfig("blink", model="openai:gpt-4o", model_settings=server, data="sample", tasks=("Jigsaw",), limit=1)
    return prepare(replace(config, out=tmp_path / "out", tools=tools), dry=True)


async def test_an_estimate_counts_the_menu_that_is_offered(tmp_path: Path) -> None:
    spent: Any = [await estimate(resolved(tmp_path, *tools)) for tools in (("crop",), (), ("all",))]
    read = [item.solvers["controller"].expected.input_tokens for item in spent]
    assert read[0] < read[1] < read[2]
