"""Tests of how often a run loads plug-ins."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.plugins import registry
from hybrid.plugins.registry import load
from tests.finished_runs import run_command


@pytest.mark.system
def test_a_run_loads_each_plugin_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: Counter[tuple[str, str]] = Counter()
    load_uncached = registry._load_uncached

    def count(package: str, name: str, in_process: bool) -> Any:
        loads[package, name] += 1
        return load_uncached(package, name, in_process)

    monkeypatch.setattr(registry, "_load_uncached", count)
    monkeypatch.setattr(registry, "_CACHE", {})
    options = ("--data", "sample", "--limit", 1, "--solver", "specialist", "--backend", "classical")
    run_command(capsys, monkeypatch, "run", "blink", *options, "--out", tmp_path / "run", code=0)
    assert {("tools", "depth"), ("tools.rules", "hvsbench"), ("hybrid.benchmarks", "blink")} <= loads.keys()
    assert {name: number for name, number in loads.items() if number > 1} == {}


def test_a_module_that_was_replaced_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = load("tools", "crop")
    with monkeypatch.context() as uncached:
        uncached.setattr(registry, "_load_uncached", lambda *_: pytest.fail("loaded again"))
        assert load("tools", "crop") is tool
    other = replace(tool)
    monkeypatch.setattr("tools.crop.TOOL", other)
    assert load("tools", "crop") is other
