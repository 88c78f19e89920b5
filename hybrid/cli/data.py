"""`hybrid data check`: read data as a run does, and report missing or broken questions; `template`: an example file.

hybrid data check questions.csv              the first questions as asked, their kinds, doubtful and broken rows
hybrid data check DIR --benchmark blink      counts per task compared with the card, broken rows and missing images
hybrid data check hub --benchmark blink      the files of the hub with their sizes; nothing is downloaded
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybrid.cli import _option_types as types
from hybrid.cli._options import logging_options_of, path_option
from hybrid.core.errors import DataError, UsageError
from hybrid.core.image_clusters import shared_pictures
from hybrid.core.types import BrokenQuestion, Question
from hybrid.display.terminal import how_many

if TYPE_CHECKING:
    from hybrid.benchmarks.base import Benchmark, Source

# Exit code if the data can be used but are not the complete benchmark.
INCOMPLETE = 3


# Number of questions to show as asked.
SHOWN = 3
# Endings of the files that count as pictures in a folder without questions.
PICTURE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
MAX_DOUBTS = 50
OTHER_DATA = "for other data, give a file of questions, or add --benchmark"


@click.group("data")
def command() -> None:
    """Check data before a run; write generated data, or a file of questions to start from."""


@command.command()
@click.option(
    "-o",
    "--out",
    type=types.ANY_PATH,
    default="questions.jsonl",
    show_default=True,
    metavar="FILE",
    help="The file to write; its name ends in .jsonl, .csv or .tsv.",
)
@logging_options_of
def template(out: Path) -> int:
    """Write a file of questions, one of each kind and explained, with the image that they ask about.

    \b
    Examples:
      hybrid data template -o mine/questions.csv
    """
    from hybrid.benchmarks.questions.template import write

    for path in write(out):
        click.echo(path)
    return 0


@command.command()
@click.option("-o", "--out", "out", type=types.FOLDER, required=True, metavar="DIR", help="A new folder.")
@click.option("--benchmark", type=types.BENCHMARK, default="blink", show_default=True)
@click.option(
    "--task",
    "tasks",
    cls=types.Listed,
    multiple=True,
    metavar="A,B",
    help="Generate only these tasks.  [default: every task that can be generated]",
)
@click.option("--each", type=types.NUMBER, default=4, show_default=True, help="Number of questions per task.")
@click.option("--seed", type=types.COUNT, default=0, show_default=True)
@click.option(
    "--replies",
    cls=types.Listed,
    multiple=True,
    metavar="A,B",
    help="Also write made-up answers of models with these names, one folder each, for --model replay:NAME. The "
    "first model answers (B) to every second question and (A) to the others; the second model answers (B) to every "
    "third, and so on.",
)
@logging_options_of
def sample(out: Path, benchmark: str, tasks: tuple[str, ...], each: int, seed: int, replies: tuple[str, ...]) -> int:
    """Write generated questions in a benchmark's official layout: a folder for --data, to try the program offline.

    The pictures are drawn, and the wording is this project's: a score on them is never a result of the benchmark.
    --replies also writes recorded models to compare.

    \b
    Examples:
      hybrid data sample -o BLINK
      hybrid data sample -o BLINK --task Jigsaw,Relative_Depth --replies alpha,beta
    """
    from hybrid.core.files import complete_or_absent
    from hybrid.core.images import home
    from hybrid.plugins.registry import load
    from hybrid.running.data import refuse_ungenerated
    from hybrid.running.generated import generate, mark_subfolders

    bench: Benchmark = load("hybrid.benchmarks", benchmark)
    selected = refuse_ungenerated(bench.card, tasks)
    if wrong := [name for name in replies if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name)]:
        raise UsageError(f"--replies {wrong[0]}: give names of letters, digits, '.', '_' and '-', such as alpha,beta")
    for option, folder in (("--out", out), *(("--replies", Path(name)) for name in replies)):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{option} {folder}: it is not an empty folder; give a new one")
    with complete_or_absent(out):
        shutil.copytree(generate(bench, home() / "samples", selected, each, seed), out, dirs_exist_ok=True)
        mark_subfolders(out)
    click.echo(f"{out}: {each} generated questions of each of {', '.join(selected)}")
    for period, name in enumerate(replies, 2):
        count = _write_replies(bench, out, Path(name), period)
        click.echo(f"{name}: {count} made-up answers, for --model replay:{name}")
    return 0


def _write_replies(benchmark: Benchmark, data: Path, folder: Path, period: int) -> int:
    """Write a recording that answers (B) to every `period`-th question and (A) to the others.

    Returns the number of questions.
    """
    from hybrid.core.files import write_atomic
    from hybrid.core.images import ImageStore, home
    from hybrid.running.data import mount, questions

    mounted = mount(benchmark, str(data), split=None, tasks=(), settings={}, store=ImageStore(home() / "images"))
    lines = []
    for place, question in enumerate(questions(benchmark, mounted.source, None)):
        if isinstance(question, BrokenQuestion) or len(question.choices) < 2:
            raise UsageError(f"--replies: {question.id} has no choices (A) and (B): made-up answers are letters")
        letter = "B" if place % period == 0 else "A"
        lines.append(json.dumps({"id": question.id, "ask": 0, "call": 0, "text": f"Answer: ({letter})"}))
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "calls.jsonl", ("\n".join(lines) + "\n").encode())
    return len(lines)


def _expected_counts(benchmark: Benchmark, source: Source, tasks: tuple[str, ...]) -> dict[str, int | None]:
    """Return the number of questions of each task from the card, which states only the numbers of its first split.

    The number is None if it is unknown.
    """
    card = benchmark.card
    return {
        task: (card.tasks.get(task) or None) if source.split == card.splits[0] else None
        for task in (tasks or card.tasks or source.tasks)
    }


@command.command()
@click.argument("where", metavar="FILE|DIR|hub")
@click.option(
    "--benchmark",
    type=types.BENCHMARK,
    help="The benchmark of the data.  [default: blink; for a file of questions, none]",
)
@click.option("--split", help="A split of the data.  [default: the benchmark's first]")
@click.option(
    "--task",
    "tasks",
    cls=types.Listed,
    multiple=True,
    metavar="A,B",
    help="Check only these tasks.  [default: every task]",
)
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting, as for `hybrid run`: mapping=FILE.yaml.",
)
@click.option(
    "--images-root",
    type=types.ANY_PATH,
    metavar="DIR",
    help="The folder that image paths are relative to, as for `hybrid run`.",
)
@click.option("--strict", is_flag=True, help="End with exit code 2 if a row of the data cannot be used.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@path_option
@logging_options_of
def check(
    where: str,
    benchmark: str | None,
    split: str | None,
    tasks: tuple[str, ...],
    settings: tuple[str, ...],
    images_root: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Check whether FILE is read as intended, or DIR is a complete copy of a benchmark.

    Every row is read and every image decoded. For a file of questions, the first three are shown as a model gets them,
    and doubtful rows are named; for a benchmark, the number of questions per task is compared with its card. For the
    hub (or hub@REVISION), only the list of files is read. Exit code 0: complete; 3: questions are missing or broken; 2:
    unusable data.

    \b
    Examples:
      hybrid data check questions.csv
      hybrid data check DIR --benchmark blink --json
      hybrid data check hub --benchmark hvsbench
    """
    from hybrid.cli._run_config import benchmark_of
    from hybrid.config.values import pairs
    from hybrid.core.images import ImageStore, home
    from hybrid.plugins.registry import load
    from hybrid.running.data import mount, questions, refuse_broken
    from hybrid.running.hub import is_hub

    folder = Path(where).expanduser()
    if not (is_hub(where) or where == "sample" or folder.exists()):
        raise UsageError(f"{where}: file or folder not found; give a file of questions, a folder, hub or sample")
    bench: Benchmark = load("hybrid.benchmarks", benchmark or benchmark_of(where))
    if is_hub(where):
        return _check_hub(bench, where, split, tasks, as_json)
    card, store = bench.card, ImageStore(home() / "images")
    values = {**card.counted_with, **pairs("--setting", list(settings))}
    try:
        mounted = mount(bench, where, split=split, tasks=tasks, settings=values, store=store, images_root=images_root)
    except DataError as error:
        if benchmark is not None or not folder.is_dir():
            raise
        raise DataError(_advice_without_questions(folder, where) or f"{error}; {OTHER_DATA}") from error
    source, expected = mounted.source, _expected_counts(bench, mounted.source, tasks)
    data = _Checked(bench, source.split, expected, questions(bench, source, None), tuple(bench.doubts(source)))
    if strict:
        refuse_broken(data.broken, "--strict")
    click.echo(json.dumps(data.as_json()) if as_json else "\n".join(data.lines()))
    return 0 if data.complete else INCOMPLETE


def _advice_without_questions(folder: Path, where: str) -> str:
    """Return how to begin with a folder that has pictures and no questions; empty if it has no picture."""
    pictures = sum(path.suffix.lower() in PICTURE_SUFFIXES for path in folder.rglob("*"))
    file = shlex.quote(str(Path(where) / "questions.csv"))
    advice = f"no file of questions; `hybrid data template -o {file}` writes one to start from"
    return f"{where} has {how_many(pictures, 'picture')} and {advice}" if pictures else ""


@dataclass(frozen=True)
class _Checked:
    """The data that were read, compared with the card."""

    benchmark: Benchmark
    split: str
    # The number of questions on the card, by task.
    expected: Mapping[str, int | None]
    readable: Sequence[Question | BrokenQuestion]
    doubts: tuple[str, ...]

    @cached_property
    def broken(self) -> list[BrokenQuestion]:
        return [question for question in self.readable if not isinstance(question, Question)]

    @cached_property
    def kinds(self) -> dict[str, Counter[str]]:
        """The number of questions of each kind, by task."""
        kinds: dict[str, Counter[str]] = {}
        for question in self.readable:
            if isinstance(question, Question):
                kinds.setdefault(question.task, Counter())[str(question.kind)] += 1
        return kinds

    @property
    def first(self) -> list[tuple[Question, str]]:
        """The first questions with their correct answers, if the benchmark has them."""
        sound = itertools.islice((question for question in self.readable if isinstance(question, Question)), SHOWN)
        return [(question, answer) for question in sound if (answer := self.benchmark.expected(question)) is not None]

    def sound(self, task: str) -> int:
        return sum(self.kinds.get(task, Counter()).values())

    def lost(self, task: str) -> int:
        return sum(question.task == task for question in self.broken)

    @property
    def other(self) -> list[str]:
        """The tasks whose number of questions differs from the card."""
        return [task for task, count in self.expected.items() if count is not None and self.sound(task) != count]

    @cached_property
    def same_pictures(self) -> str:
        return shared_pictures(question.cluster for question in self.readable)

    @property
    def complete(self) -> bool:
        return not self.broken and not self.other

    def as_json(self) -> Mapping[str, object]:
        tasks: dict[str, object] = {
            task: {
                "questions": self.sound(task),
                "broken": self.lost(task),
                "expected": count,
                "kinds": self.kinds.get(task, {}),
            }
            for task, count in self.expected.items()
        }
        return {
            "benchmark": self.benchmark.card.name,
            "split": self.split,
            "complete": self.complete,
            "tasks": tasks,
            "broken": [{"id": question.id, "task": question.task, "error": question.error} for question in self.broken],
            "first": [
                {
                    "id": question.id,
                    "text": question.text,
                    "images": _sizes(question),
                    "kind": str(question.kind),
                    "expected": answer,
                }
                for question, answer in self.first
            ],
            "doubtful": self.doubts,
            **({"same_pictures": self.same_pictures} if self.same_pictures else {}),
        }

    def lines(self) -> Iterator[str]:
        """Yield the first questions as asked, the counts, and the broken and doubtful rows."""
        for question, answer in self.first:
            images = f"{len(question.images)} images: " if len(question.images) > 1 else "image: "
            yield f"--- {question.id}  ({question.task}, {question.kind}; {images}{', '.join(_sizes(question))})"
            yield question.text
            yield f"--> {answer}\n"
        total = sum(self.sound(task) for task in self.kinds)
        yield f"{how_many(total)}, {len(self.broken):,} broken: {'' if self.complete else 'not '}complete"
        if self.same_pictures:
            yield (
                f"{self.same_pictures}: questions about one picture count as one cluster, unless the data "
                "name other clusters"
            )
        for task, count in self.expected.items():
            note = f"  {self.lost(task):,} broken" if self.lost(task) else ""
            note += f"  (the card says {count:,})" if task in self.other else ""
            if self.benchmark.card.tasks:
                note += "  (the card does not say how many)" if count is None else ""
            else:
                note += "  " + ", ".join(f"{number:,} {kind}" for kind, number in self.kinds.get(task, {}).items())
            yield f"{task:28} {self.sound(task):6,}{note}"
        yield from (f"broken: {question.id}: {question.error}" for question in self.broken)
        yield from (f"doubtful: {doubt}" for doubt in self.doubts[:MAX_DOUBTS])
        if len(self.doubts) > MAX_DOUBTS:
            yield f"doubtful: and {len(self.doubts) - MAX_DOUBTS:,} more (--json has all)"


def _sizes(question: Question) -> list[str]:
    return [f"{image.width} x {image.height} px" for image in question.images]


def _check_hub(bench: Benchmark, data: str, split: str | None, tasks: tuple[str, ...], as_json: bool) -> int:
    from hybrid.running.data import chosen_split
    from hybrid.running.hub import listing

    selected = chosen_split(bench.card, split, tasks)
    hub_files = listing(bench, selected, tasks, data.partition("@")[2] or None)
    total = sum(file.size for file in hub_files.files)
    absent = sum(file.size for file in hub_files.files if not file.on_disk)
    if as_json:
        files = [{"path": file.path, "bytes": file.size, "on_disk": file.on_disk} for file in hub_files.files]
        facts = {"benchmark": bench.card.name, "split": selected, "id": hub_files.id, "revision": hub_files.revision}
        click.echo(json.dumps({**facts, "gated": hub_files.gated, "bytes": total, "to_fetch": absent, "files": files}))
        return 0
    click.echo(
        f"{hub_files.id} at {hub_files.revision}: {total / 1e6:,.2f} MB, {absent / 1e6:,.2f} MB of them to download"
    )
    if hub_files.gated:
        click.echo(
            "The data set is gated: accept its conditions on its page, and set HF_TOKEN to a token of your account."
        )
    for file in hub_files.files:
        click.echo(f"{file.size / 1e6:10,.2f} MB  {file.path}{'  (on disk)' if file.on_disk else ''}")
    return 0
