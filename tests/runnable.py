"""Runs the pages of the documentation as a reader would: in an empty folder, from top to bottom. See CONTRIBUTING.md.

    page = Page.read("docs/data.md")
    said = follow(page, folder, Setting())          # what every command printed

The fence of a block says what it is:

    bash     commands that are run; a block `text` right below shows their output
    sh       commands that are not run because they need a key, a GPU, the network or hours; they must exist
    python   run in the order of the page, in one namespace
    other    read only

A line that is only a path in backticks writes the block below it to that file; "`FILE`, in `NAME`" adds it as
the first lines of the table NAME there. `<!-- exit code 2 -->` above a block gives the exit code of its commands, and
`<!-- needs MODULE -->` runs it only if that module is installed.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.time_limits import kill_late

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
WRITTEN = re.compile(r"^`(?P<file>[\w./-]+)`(?:, in `(?P<table>\w+)`)?$")
ENDS = re.compile(r"^<!-- exit code (\d+) -->$")
NEEDS = re.compile(r"^<!-- needs ([\w.]+) -->$")
SHOWN = "text"
RUN = "bash"
NOT_RUN = "sh"
LANGUAGES = frozenset({RUN, NOT_RUN, SHOWN, "python", "csv", "toml", "json", "yaml", "mermaid", ""})
END_S = 120
OFFLINE = {"HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    # Line of the page that has the block's opening fence, counted from 1.
    line: int
    # File that its text is written to.
    file: str | None = None
    # Table of that file whose first lines the block becomes.
    table: str | None = None
    exit_code: int = 0
    # Module that the block needs.
    needs: str | None = None
    # Output of its commands as the page shows it.
    expected_output: str | None = None


@dataclass(frozen=True)
class Page:
    """A page and its blocks, in order."""

    name: str
    text: str
    blocks: tuple[Block, ...]

    @classmethod
    def read(cls, name: str) -> Page:
        """Read the page at that path, relative to the checkout."""
        text = (ROOT / name).read_text()
        return cls(name, text, tuple(_blocks(text)))

    @property
    def prose(self) -> str:
        """The page without its blocks."""
        return FENCE.sub("", self.text)

    def of(self, language: str) -> tuple[Block, ...]:
        """Return the blocks of one language."""
        return tuple(block for block in self.blocks if block.language == language)


@dataclass(frozen=True)
class Setting:
    """The environment of a page when it is followed, besides the program and an empty folder."""

    environment: Mapping[str, str] = field(default_factory=dict)
    # Words of the page and their replacements, such as the address of a server that a test started.
    replace: Mapping[str, str] = field(default_factory=dict)
    # Whether the folder is a copy of the checkout, whose code then runs.
    checkout: bool = False


@dataclass(frozen=True)
class Said:
    """A command and its complete output."""

    command: str
    output: str
    stdout: str


def commands(text: str) -> list[str]:
    """Return the commands of a block: continued lines joined, comments left out."""
    joined = re.sub(r"\\\n\s*", "", text)
    without = (re.sub(r"(^|\s)#\s.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in without if line]


def follow(page: Page, folder: Path, setting: Setting) -> list[Said]:
    """Write the files of a page and run its commands in `folder`; return the output of each.

    A command with another exit code or output than the page says is a failed assertion.
    """
    environment = _environment(folder, setting)
    results = []
    names: dict[str, Any] = {}
    for block in page.blocks:
        text = f"{page.name}:{block.line}"
        if block.file:
            write(block, folder, new=setting.checkout)
        elif not importable(block.needs):
            continue
        elif block.language == "python":
            run_python(block, names, folder, text)
        elif block.language == RUN:
            lines = commands(block.text)
            of_block = [_run(line, block.exit_code, folder, environment, setting, text) for line in lines]
            if block.expected_output is not None:
                unlike = missing(block.expected_output, "\n".join(item.output for item in of_block))
                assert unlike is None, f"{text}: not printed: {unlike}\n" + "\n".join(
                    entry.output for entry in of_block
                )
            results += of_block
    return results


def importable(module: str | None) -> bool:
    """Return whether a module that a block needs is installed."""
    try:
        return module is None or importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # The package that would contain it is missing.
        return False


def write(block: Block, folder: Path, *, new: bool) -> str:
    """Write a block to its file, which must not exist if it is `new`, or insert its lines into the block's table.

    Return the name of the file.
    """
    assert block.file
    path = folder / block.file
    if block.table:
        text = path.read_text()
        head = rf"^({block.table}\b.*\{{\n)"
        path.write_text(re.sub(head, lambda result: result[1] + block.text, text, count=1, flags=re.MULTILINE))
        assert len(path.read_text().splitlines()) == len(text.splitlines()) + block.text.count("\n"), block.file
    else:
        assert not (new and path.exists()), f"{block.file} is there"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
    return block.file


def missing(text: str, output: str) -> str | None:
    """Return the first shown line that was not printed at its position; None if all were.

    Lines must occur in order. `...` in a line is any text, `...` alone any lines, and white space may have any
    length, because the width of a column depends on its other cells.
    """
    printed = output.splitlines()
    at = 0
    for line in text.splitlines():
        if line.strip() in {"", "..."}:
            continue
        parts = [r"\s+".join(map(re.escape, part.split())) for part in line.split("...")]
        expected = re.compile(r"\s*" + r".*?".join(f"{part}\\s*" for part in parts))
        match = next((number for number in range(at, len(printed)) if expected.fullmatch(printed[number])), None)
        if match is None:
            return line
        at = match + 1
    return None


def run_python(block: Block, names: dict[str, Any], folder: Path, location: str) -> None:
    """Run a Python block in `folder` with the names that earlier blocks have set."""
    previous = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile(block.text, location, "exec"), names)  # noqa: S102 - the pages are ours
    finally:
        os.chdir(previous)


def copy_of_the_checkout(to: Path) -> None:
    """Copy the tracked files as they are now and their compiled files, with the modification times on which the latter
    depend."""
    stdout = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
            compiled = Path(importlib.util.cache_from_source(str(ROOT / name))) if name.endswith(".py") else None
            if compiled is not None and compiled.is_file() and compiled.is_relative_to(ROOT):
                place = to / compiled.relative_to(ROOT)
                place.parent.mkdir(exist_ok=True)
                shutil.copy2(compiled, place)


def _blocks(text: str) -> Iterator[Block]:
    items = list(FENCE.finditer(text))
    for number, match in enumerate(items):
        above = text[: match.start()].rstrip("\n").rpartition("\n")[2]
        output, ends, needs = WRITTEN.match(above), ENDS.match(above), NEEDS.match(above)
        rendered = None
        if match["language"] == RUN and number + 1 < len(items) and items[number + 1]["language"] == SHOWN:
            rendered = items[number + 1]["text"]
        yield Block(
            match["language"],
            match["text"],
            text.count("\n", 0, match.start()) + 1,
            output["file"] if output else None,
            output["table"] if output else None,
            int(ends[1]) if ends else 0,
            needs[1] if needs else None,
            rendered,
        )


def forked(loaded: str = "project") -> list[str]:
    """Return the command that gets an interpreter from `tests/forked.py` in place of a new one."""
    return [sys.executable, "-I", "-S", str(ROOT / "tests" / "forked.py"), str(_server() / loaded)]


@cache
def _server() -> Path:
    """Folder in which `tests/forked.py` listens: one for all test processes, which ends with the last of them."""
    folder = Path(tempfile.gettempdir(), f"hybrid-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}")
    folder.mkdir(exist_ok=True)
    stored = folder / "held"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stored.exists():
            # Without a reader an open that blocks would wait forever, because nothing starts the server again.
            os.open(stored, os.O_WRONLY | os.O_NONBLOCK)
            return folder
        os.mkfifo(stored)
        read = os.open(stored, os.O_RDONLY | os.O_NONBLOCK)
        stream = os.open(stored, os.O_WRONLY)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | OFFLINE
        words = [sys.executable, str(ROOT / "tests" / "forked.py"), str(folder)]
        forks = subprocess.Popen(words, env=environment, stdin=read, stdout=subprocess.PIPE)
        os.close(read)
        assert forks.stdout is not None
        with kill_late(forks):
            lines = [forks.stdout.readline() for _ in range(2)]
        assert lines == [b"ready\n"] * 2, f"tests/forked.py did not start: {lines}"
    # A process that holds the pipe open does not block the tests.
    atexit.register(forks.communicate, timeout=END_S)
    atexit.register(os.close, stream)
    return folder


def _environment(folder: Path, setting: Setting) -> dict[str, str]:
    """Return the environment of the commands: the program first on the path, a separate home, no other settings."""
    programs = folder / ".programs"
    programs.mkdir(exist_ok=True)
    start = shlex.join(forked("libraries" if setting.checkout else "project"))
    # A module loaded before pytest is a warning, and in a checkout warnings are errors.
    tests = shlex.quote(sys.executable) if setting.checkout else start
    for name, words in (("hybrid", f"{start} -m hybrid"), ("pytest", f"{tests} -m pytest"), ("python", start)):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)
    by_value = {
        key: value for key, value in os.environ.items() if not key.startswith(("HYBRID_", "OPENAI_", "PYTEST_"))
    }
    payload = {
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(folder if setting.checkout else ROOT),
        "HYBRID_HOME": str(folder / ".home"),
        "COLUMNS": "200",
    }
    return {**by_value, **payload, **OFFLINE, **setting.environment}


def _run(line: str, code: int, folder: Path, environment: dict[str, str], setting: Setting, location: str) -> Said:
    for word, instead in setting.replace.items():
        line = line.replace(word, instead)
    exported = re.fullmatch(r"export (\w+)=(\S*)", line)
    if exported:
        assert not exported[1].startswith("HF_"), "read by a library that tests/forked.py has loaded"
        environment[exported[1]] = exported[2]
        return Said(line, "", "")
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        stdin=subprocess.DEVNULL,
    )
    # Errors first: they are shown immediately, and a result is printed at the end.
    output = f"{result.stderr}\n{result.stdout}"
    for word, instead in setting.replace.items():
        output = output.replace(instead, word)
    assert result.returncode == code, f"{location}: {line}: ended with {result.returncode}\n{output}"
    return Said(line, output, result.stdout)
