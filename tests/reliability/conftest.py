"""Fixtures of the reliability tests: questions on disk, `hybrid` in this process and as a separate process."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Ended, run_command
from tests.hybrid.conftest import forked_workers  # noqa: F401 - for commands in this process

# The modules next to the tests (`faulty_server`, `runs`) belong to no package.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from runs import Process


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory, fakes: Any) -> Callable[[int], Path]:
    """Return a BLINK folder with this many questions, made once."""
    mapping: dict[int, Path] = {}

    def folder(count: int) -> Path:
        if count not in mapping:
            mapping[count] = tmp_path_factory.mktemp("questions")
            rows = [fakes.spatial_row(number, "(A)") for number in range(1, count + 1)]
            fakes.write_task(mapping[count], "Spatial_Relation", rows)
        return mapping[count]

    return folder


@pytest.fixture(autouse=True)
def a_plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the keys and proxies of the user who runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)


@pytest.fixture
def hybrid(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Function that runs `hybrid` with the given words in this process, to its end."""
    return partial(run_command, capsys, monkeypatch)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Function that starts `hybrid` with the given words as a process; all processes are stopped after the test."""
    started: list[Process] = []

    def start(names: list[str], **mode: Any) -> Process:
        started.append(Process(tmp_path / f"log-{len(started)}", names, **mode))
        return started[-1]

    yield start
    for item in started:
        item.sweep()
