"""Every command of the program with a valid call, for tests that apply to all of them.

A new command is found by walking the program; `words_of` fills in its required arguments by their types, unless `bases`
has an entry for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hybrid.cli import cli
from tests.finished_runs import Words

# A valid model name; no server listens at its address.
SERVED = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
# Commands that run until they are stopped, or take minutes: they are only called in ways that fail.
WAITING: frozenset[Words] = frozenset(
    {
        ("view",),
        ("models", "serve"),
        ("tools", "serve"),
        ("quickstart",),
        ("tools", "gallery"),
        ("tools", "try"),
        ("tools", "up"),
        ("rollouts",),
    }
)


def commands(group: click.Group = cli, *words: str) -> dict[Words, click.Command]:
    """Return every command of the program by its words."""
    results: dict[Words, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        results |= commands(command, *words, name) if isinstance(command, click.Group) else {(*words, name): command}
    return results


@dataclass(frozen=True)
class Given:
    """Objects for commands: a finished run, its data and model, an image, and a folder for other files."""

    run: Path
    data: Path
    model: Path
    image: Path
    # A folder in which commands write, and in which the files that they ask for do not exist yet.
    free: Path

    def bases(self) -> Mapping[Words, Words]:
        """Return, by command, arguments that make it succeed; `out` is an unused path."""
        run, data, image, out = (str(path) for path in (self.run, self.data, self.image, self.free / "out"))
        values = ("blink", "--data", data, "--model", f"replay:{self.model}", "--backend", "classical")
        return {
            ("run",): (*values, "--solver", "mllm", "--out", out),
            ("ablate",): (*values[:3], *SERVED, "--backend", "classical", "--dry-run", "-o", out),
            ("study",): (*values[:3], *SERVED, "--backend", "classical", "--dry-run", "-o", out),
            ("rollouts",): values[:3],
            ("ask",): (image, "Is it?", *SERVED, "--solver", "text_only", "--model-arg", "retries=0", "--out", out),
            ("score",): (run,),
            ("compare",): (run,),
            ("judge",): (run, "--model", f"replay:{self.model}"),
            ("report",): (run, "-o", out),
            ("export",): (f"{run}/mllm", "--to", "parquet", "-o", f"{out}.parquet"),
            ("calibrate",): (run, "-o", out),
            ("plan",): ("--difference", "0.1"),
            ("view",): (run,),
            ("models", "check"): (f"replay:{self.model}",),
            ("completion",): ("bash",),
            ("runs", "list"): (run,),
            ("runs", "show"): (run,),
            ("runs", "cancel"): (run,),
            ("data", "check"): (data,),
            ("data", "sample"): ("-o", out, "--task", "Jigsaw", "--each", "1"),
            ("data", "template"): ("-o", f"{out}/questions.jsonl"),
            ("benchmarks", "show"): ("blink",),
            ("tools", "show"): ("markers",),
            ("tools", "measure"): ("saliency", "--fixations", str(self._fixations())),
            ("tools", "run"): ("markers", image),
            ("tools", "try"): ("markers", image),
            ("tools", "up"): ("--tools", "depth"),
            ("models", "serve"): ("vllm:tiny",),
            ("tools", "fetch"): ("depth", "--dry-run"),
            ("tools", "new"): ("glow", "--tool-path", out),
            ("new", "plugin"): ("glow", "-o", out),
            ("new", "benchmark"): ("glow", "--path", out),
            ("new", "recipe"): ("glow", "--path", out),
            ("tools", "gallery"): (str(self.image.parent), "-o", out, "--limit", "1"),
            ("tools", "check"): ("crop", "--contract"),
            ("tools", "cache", "prune"): ("--older-than", "1"),
        }

    def _fixations(self) -> Path:
        """Return a folder with three fixations on the image."""
        folder = self.free.parent / "eyes"
        folder.mkdir(exist_ok=True)
        (folder / self.image.name).write_bytes(self.image.read_bytes())
        rows = [f"{self.image.name},{at},{at},200" for at in (1, 3, 5)]
        (folder / "fixations.csv").write_text("\n".join(["image,x,y,t", *rows]))
        return folder

    def words_of(self, words: Words, command: click.Command) -> Words:
        """Return words that make a command succeed: from `bases`, or by the types of its required arguments."""
        if words == ("tools", "import-weights"):
            return (str(self._checkpoint()), str(self.free / "out"))
        expected_values = self.bases()
        return expected_values[words] if words in expected_values else tuple(self._required(command))

    def _checkpoint(self) -> Path:
        """Write a file of tensors as torch saves it."""
        import torch

        file = self.free.parent / "net.pth"
        torch.save({"weight": torch.zeros(2)}, file)
        return file

    def _required(self, command: click.Command) -> Iterator[str]:
        for param in command.params:
            if not param.required:
                continue
            if isinstance(param, click.Option):
                yield param.opts[0]
            if isinstance(param.type, click.Choice):
                yield str(param.type.choices[0])
            elif isinstance(param.type, click.Path):
                yield str(self.run if param.type.file_okay is False else self.image)
            else:
                yield "1"


def replaced(command: click.Command, base: Words, param: click.Parameter, value: str) -> Words:
    """Return the words of a call with another value for one argument or option."""
    if isinstance(param, click.Option):
        name = next((opt for opt in param.opts if opt.startswith("--")), param.opts[0])
        items = list(base)
        while place := next((at for at, word in enumerate(items) if word in param.opts), None):
            del items[place : place + 2]
        return (*items, f"{name}={value}" if name.startswith("--") else name)
    previous: Any = command.make_context("x", list(base), resilient_parsing=True).params.get(param.name or "")
    values = previous if isinstance(previous, tuple) else (previous,)
    first = str(values[0]) if values else ""
    if first not in base:
        return (value, *base)
    place = base.index(first)
    return (*base[:place], value, *base[place + 1 :])
