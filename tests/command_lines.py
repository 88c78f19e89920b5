"""Command lines in documents: find them, and report the commands and options that the program does not have."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from hybrid.cli import cli

ROOT = Path(__file__).resolve().parents[1]
FENCED = re.compile(r"^ *```[^\n`]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}\S[^\n]*\n)+")
INLINE = re.compile(r"`((?:hybrid|uv run|python -m) [^`]+)`")
START = re.compile(r"(?:^|&& |; |\$ |- |\buv run (?:-\S+ \S+ )*|python -m |[A-Z_]+=\S+ )hybrid (?=[a-z-])")
BENCH = re.compile(r"python -m bench\.(?=[\w.]+)")
COMMENT = re.compile(r"(?:^|\s)#.*")
END = re.compile(r"[|;<>]|&&")


def prose(text: str) -> str:
    """Return a document without its code blocks."""
    return FENCED.sub("", text)


def code(text: str) -> Iterator[str]:
    """Yield the lines of code in a document, without comments: lines of blocks, with continued lines joined, and code
    in prose."""
    for block in FENCED.findall(text) + INDENTED.findall(prose(text)):
        yield from (" ".join(COMMENT.sub("", line).split()) for line in block.replace("\\\n", " ").splitlines())
    yield from (" ".join(match.split()) for match in INLINE.findall(prose(text)))


def commands(text: str) -> list[str]:
    """Return the words after `hybrid` in each line of code that calls it, up to a comment, pipe or next command."""
    return [END.split(line[start.end() :])[0].strip() for line in code(text) for start in START.finditer(line)]


def benches(text: str) -> list[str]:
    """Return the words after `bench.` in each line of code that calls a bench, up to a comment, pipe or next
    command."""
    return [END.split(line[start.end() :])[0].strip() for line in code(text) for start in BENCH.finditer(line)]


def unknown(line: str) -> list[str]:
    """Return the commands and options in a line that do not exist. The line is given without `hybrid`."""
    command: click.Command = cli
    context = click.Context(cli)
    words = shlex.split(line)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        # A placeholder on a page may stand for a group's commands: "hybrid runs list|show".
        name = words.pop(0)
        if name in ("...", "COMMAND"):
            return []
        result = command.get_command(context, name)
        if result is None:
            return [name]
        command = result
    expected_values = {"--help", "-h"} | {
        name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
    }
    used = [word.strip("[](),.").split("=")[0] for word in words]
    return [word for word in used if re.match(r"--?[a-z]", word) and word not in expected_values]


def unknown_to_bench(line: str) -> list[str]:
    """Return the options in a line that its module does not have, or the module's name if there is no such module. The
    line is given without `python -m bench.`."""
    name, *words = line.split()
    modules = _with_its_own(ROOT / "bench", name)
    if not modules:
        return [name]
    values = {option for path in modules for option in _options(path)}
    used = [word.strip("[](),.").split("=")[0] for word in words]
    return [word for word in used if word.startswith("--") and len(word) > 2 and word not in values]


@cache
def _options(path: Path) -> frozenset[str]:
    """Return every string in a file that is written like an option."""
    nodes = ast.walk(ast.parse(path.read_text()))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    # A name that ends in "..." takes several words (bench/_frame.py).
    return frozenset(text.removesuffix("...") for text in texts if text.startswith("--"))


@cache
def _with_its_own(folder: Path, name: str) -> frozenset[Path]:
    """Return the files of a module and of its neighbours that it imports; an empty set if the module does not exist."""
    open_ = _files(folder, name)
    paths: set[Path] = set()
    while open_:
        path = open_.pop()
        paths.add(path)
        matches = re.findall(r"\bbench(?:\.| import )(\w+)", path.read_text())
        open_ |= {file for other in matches for file in _files(folder, other)} - paths
    return frozenset(paths)


def _files(folder: Path, name: str) -> set[Path]:
    path = folder / f"{name}.py"
    return {path} if path.is_file() else set((folder / name).rglob("*.py"))
