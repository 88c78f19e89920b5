"""The command line as a user calls it: `command("score", ...)` runs the program's own `main` in this process."""

import importlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench._chat_server import chat_server
from hybrid.config.command_options import PATH
from hybrid.plugins import discovery as plugins
from hybrid.plugins.discovery import KINDS
from hybrid.plugins.registry import load
from tests.finished_runs import Command, Words, run_command

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tools_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo a test's changes to the folders of plug-ins, and forget the modules that it imported from other folders."""
    monkeypatch.delenv(PATH.variable, raising=False)
    by_package, modules = {kind.package: plugins.folders(kind.package) for kind in KINDS}, set(sys.modules)
    yield
    plugins._entry_points.cache_clear()
    for package, places in by_package.items():
        sys.modules[package].__path__[:] = places
    outside = (*(f"{package}." for package in by_package), "red_package", "own_package")
    for name in set(sys.modules) - modules:
        package, _, item = name.rpartition(".")
        if name.startswith(outside) and not Path(str(sys.modules[name].__file__)).is_relative_to(ROOT):
            del sys.modules[name]
            if package in sys.modules:
                vars(sys.modules[package]).pop(item, None)
    importlib.invalidate_caches()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Function that runs `hybrid` with the given words, from an empty working directory."""
    monkeypatch.chdir(tmp_path)
    return partial(run_command, capsys, monkeypatch)


@pytest.fixture
def blink(tmp_path: Path, fakes: Any) -> Words:
    """Return words after `hybrid run` for three puzzles and three relations, all answered "(A)" by a recorded model."""
    data = fakes.blink_folder(tmp_path / "blink")
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    words = ("blink", "--data", data, "--model", f"replay:{model}", "--backend", "classical", "--out", tmp_path / "run")
    return tuple(map(str, words))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Address of a chat completions server that answers immediately."""
    with chat_server(0.0) as running:
        yield running.url


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated question in the layout of MVP-Bench: JSON and JPEGs."""
    folder = tmp_path_factory.mktemp("mvp_bench")
    load("hybrid.benchmarks", "mvp_bench").generate(folder, ("yes_no",), 1, 0)
    return folder
