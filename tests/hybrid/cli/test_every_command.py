"""Rules for every command, including future ones: an error of the system is reported in one line, with the right exit
code."""

import asyncio
import itertools
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from hybrid.config import RunConfig, ServiceOptions
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from tests.finished_runs import Command, Words
from tests.hybrid.cli import command_tree

SLOW = frozenset({("quickstart",), ("tools", "gallery")})
KINDS = (
    *("a folder", "a file", "a link to nothing", "a link to itself", "below a file", "a name too long"),
    *("what cannot be read", "where nothing can be made"),
)
# Used only for output files, because reading the device never ends.
FULL = "a full disk"
# Exit codes of a command that finished by itself.
ENDS = {0, 2, 3}


TREE: dict[Words, click.Command] = command_tree.commands()
# Commands that take seconds per call, or start a process if no tool output is cached.
WORKING = frozenset(
    {("quickstart",), ("ablate",), ("study",), ("tools", "check"), ("run",), ("tools", "run"), ("completion",)}
)


def of_all(*leave_out: Words, having: Callable[[Words], object] = bool) -> Any:
    """Return one test case per command, except the commands named and those for which `having` is false; commands in
    `WORKING` become system tests."""
    return pytest.mark.parametrize(
        "words",
        [
            pytest.param(words, id=" ".join(words), marks=[pytest.mark.system] if words in WORKING else [])
            for words in TREE
            if words not in leave_out and having(words)
        ],
    )


@pytest.fixture(scope="module")
def finished_inputs(tmp_path_factory: pytest.TempPathFactory, fakes: Any) -> tuple[Any, Path]:
    """A small finished run and other inputs of commands, with the home that it was made with."""
    folder = tmp_path_factory.mktemp("made")
    data = fakes.blink_folder(folder / "blink")
    model = fakes.recordings(folder / "model", fakes.blink_replies())
    images = folder / "images"
    images.mkdir()
    (images / "photo.png").write_bytes(fakes.encoded(fakes.pixels(1)))
    # Run tools in this process: otherwise the first test would start a worker process.
    config = RunConfig(
        "blink",
        ("mllm", "specialist"),
        model=f"replay:{model}",
        data=str(data),
        service=ServiceOptions("classical"),
        out=folder / "run",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folder / "home"))
        asyncio.run(ask_run(prepare(config), lambda *_: None))
    return command_tree.Given(folder / "run", data, model, images / "photo.png", folder / "free"), folder / "home"


@pytest.fixture
def command_inputs(finished_inputs: tuple[Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the inputs for one test, with a folder to write to."""
    result, home = finished_inputs
    monkeypatch.setenv("HYBRID_HOME", str(home))
    (tmp_path / "free").mkdir()
    return replace(result, free=tmp_path / "free")


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Return paths that the system refuses to every user, including root."""
    folder = tmp_path / "places"
    (folder / "folder").mkdir(parents=True)
    (folder / "file").write_bytes(b"neither a picture nor a record")
    (folder / "nowhere").symlink_to(folder / "absent" / "deep")
    (folder / "loop").symlink_to(folder / "loop")
    values = (folder / "folder", folder / "file", folder / "nowhere", folder / "loop", folder / "file" / "below")
    system = ("/proc/self/mem", "/sys/kernel/new")
    return {
        FULL: full_disk(folder),
        **dict(zip(KINDS, map(str, (*values, folder / ("x" * 300), *system)), strict=True)),
    }


def full_disk(folder: Path) -> str:
    """Return a full device. If possible it is the test's own device, because a defect could destroy it."""
    current = folder / "full"
    try:
        os.mknod(current, stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)
    except PermissionError:
        return "/dev/full"
    return str(current)


def find_defect(result: Any, what: str) -> str:
    """Return how an end of `what` is not the program's own: a traceback, another exit code than `ENDS`, or a last line
    that is no message; empty if it is."""
    if "Traceback" in result.err:
        return f"{what}\n{result.err[-1500:]}"
    lines = result.err.rstrip().splitlines()
    is_message = not lines or lines[-1].startswith(("hybrid: ", "Error: ", "missing: ")) or "--dry-run" in what
    if result.code in ENDS and (result.code != 2 or is_message):
        return ""
    return f"{what}: {result.code}\n{result.err[-500:]}"


def list_refused_paths(words: Words) -> list[tuple[click.Parameter, str]]:
    """Return each path option or argument with every refused path, and each text option with one refused path."""
    item, waits = TREE[words], words in command_tree.WAITING
    paths = [param for param in item.params if isinstance(param.type, click.Path)]
    texts = [param for param in item.params if isinstance(param.type, click.types.StringParamType) and not waits]
    turns = itertools.cycle(KINDS)
    rows = [(param, FULL) for param in paths if param.name in ("out", "picture")]
    return [*itertools.product(paths, KINDS), *rows, *((param, next(turns)) for param in texts)]


# `tools try` is left out because it would serve its page; it has the options of `tools run`. `view` is left out because
# it waits for a run at any usable path; tests/hybrid/cli/test_wrong_turns.py covers unusable paths.
@of_all(("tools", "try"), ("view",), having=list_refused_paths)
def test_a_path_that_the_system_refuses_is_one_line(
    command: Command, command_inputs: Any, places: dict[str, str], words: Words
) -> None:
    item = TREE[words]
    base = command_inputs.words_of(words, item)
    for param, kind in list_refused_paths(words):
        if words in SLOW and kind not in ("below a file", "a link to itself"):
            # These commands take long if the path is accepted.
            continue
        text = command_tree.replaced(item, base, param, places[kind])
        assert not find_defect(command(*words, *text), f"{' '.join(words)}, {param.name}: {kind}: {text}")


# Options whose values contain a path after another word.
KEYED = {
    "--weights": ("depth={}", "detection={}"),
    "--setting": ("context={}",),
    "--model": ("replay:{}", "hf:{}"),
    "--args": ("markers={}",),
}


def list_path_patterns(words: Words) -> list[tuple[click.Parameter, str]]:
    """Return the options whose values contain a path after a prefix, such as `depth=DIR`, each with such a pattern."""
    return [(param, pattern) for param in TREE[words].params for pattern in KEYED.get(param.opts[0], ())]


@of_all(*command_tree.WAITING, having=list_path_patterns)
def test_a_path_behind_a_word_too(command: Command, command_inputs: Any, places: dict[str, str], words: Words) -> None:
    item = TREE[words]
    base = command_inputs.words_of(words, item)
    for (param, pattern), kind in zip(list_path_patterns(words), itertools.cycle(KINDS), strict=False):
        text = command_tree.replaced(item, base, param, pattern.format(places[kind]))
        assert not find_defect(command(*words, *text), f"{' '.join(words)}, {param.name}: {kind}: {text}")


@of_all(*command_tree.WAITING)
def test_a_home_that_the_system_refuses_is_one_line(
    command: Command, command_inputs: Any, places: dict[str, str], words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = command_inputs.words_of(words, TREE[words])
    for kind in ("a file", "where nothing can be made"):
        monkeypatch.setenv("HYBRID_HOME", places[kind])
        assert not find_defect(command(*words, *base), f"{' '.join(words)}, HYBRID_HOME: {kind}")


@of_all(*command_tree.WAITING)
def test_it_succeeds_as_these_tests_call_it_and_ends_quietly_when_nobody_reads(
    command: Command, command_inputs: Any, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command succeeds with the words that these tests use, and ends quietly if its pipe is closed before the first
    word."""
    base = command_inputs.words_of(words, TREE[words])
    result = command(*words, *base)
    assert result.code in (0, 3), result.err
    values = (*words, *(word.replace("free/out", "free/again") for word in base))
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        quiet = command(*values)
    assert "Traceback" not in quiet.err
    assert quiet.code == (141 if result.out else result.code), quiet.err


class _Interrupter:
    """Raise KeyboardInterrupt when the program opens the first file below a folder, as Ctrl-C at that moment would."""

    def __init__(self) -> None:
        self.below: str | None = None
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.below is not None and event == "open" and str(args[0]).startswith(self.below):
            self.below = None
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def interrupter() -> _Interrupter:
    """One hook for all tests, because it cannot be removed. It is created late, because it slows down all code after
    it."""
    return _Interrupter()


@of_all(*command_tree.WAITING)
def test_an_interruption_is_one_line_and_130(
    command: Command, command_inputs: Any, words: Words, tmp_path: Path, interrupter: _Interrupter
) -> None:
    base = command_inputs.words_of(words, TREE[words])
    interrupter.below = str(tmp_path)
    try:
        result = command(*words, *base)
        was_opened = interrupter.below is None
    finally:
        interrupter.below = None
    assert "Traceback" not in result.err
    if was_opened:
        assert result.code == 130, result.err
        assert result.err.rstrip().splitlines()[-1].strip().startswith("interrupted")
