"""`hybrid data check`: read a benchmark's data as a run would, and say whether it is whole.

hybrid data check DIR --benchmark blink      counts by task against the card, broken rows and missing images by name
hybrid data check hub --benchmark blink      what would be fetched, with sizes; nothing is
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import click

from hybrid.cli._logging_options import told_options
from hybrid.cli._option_types import BENCHMARK, Listed
from hybrid.cli._path import path_option

if TYPE_CHECKING:
    from hybrid.benchmarks.base import Benchmark

INCOMPLETE = 3
"""Exit code where the data can be used and is not all of the benchmark."""


@click.group("data")
def command() -> None:
    """Check a benchmark's data before a run."""


@command.command()
@click.argument("where", metavar="DIR|hub")
@click.option("--benchmark", type=BENCHMARK, default="blink", show_default=True)
@click.option("--split", help="A split of the data.  [default: the benchmark's first]")
@click.option(
    "--task", "tasks", cls=Listed, multiple=True, metavar="A,B", help="Only these tasks.  [default: every task]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@path_option
@told_options
def check(where: str, benchmark: str, split: str | None, tasks: tuple[str, ...], as_json: bool) -> int:
    """Say whether DIR is a complete copy of a benchmark, or what a run would fetch from the hub.

    Every row of DIR is read and every image decoded, and the questions of each task are counted against the
    benchmark's card. The exit code is 0 where all is there, 3 where a question is missing or broken (each is named), 2
    where the data cannot be used at all. Of the hub (or hub@REVISION) the list of files is read, and none of them.

    \b
    Examples:
      hybrid data check DIR --benchmark blink
      hybrid data check DIR --benchmark blink --task Jigsaw --json
      hybrid data check hub --benchmark hvsbench
    """
    from hybrid.registry import load
    from hybrid.running.hub import is_hub

    bench = load("hybrid.benchmarks", benchmark)
    if is_hub(where):
        return _check_hub(bench, where, split, tasks, as_json)
    return _check_folder(bench, where, split, tasks, as_json)


def _check_folder(bench: Benchmark, folder: str, split: str | None, tasks: tuple[str, ...], as_json: bool) -> int:
    from hybrid.images import ImageStore, home
    from hybrid.running.data import mount, questions
    from hybrid.types import BrokenQuestion

    card = bench.card
    store = ImageStore(home() / "images")
    mounted = mount(bench, folder, split=split, tasks=tasks, settings=card.counted_with, store=store)
    readable = questions(bench, mounted.source, None)
    broken = [question for question in readable if isinstance(question, BrokenQuestion)]
    sound = Counter(question.task for question in readable if not isinstance(question, BrokenQuestion))
    lost = Counter(question.task for question in broken)
    # The card counts the first split alone.
    expected = {
        task: (card.tasks.get(task) or None) if mounted.source.split == card.splits[0] else None
        for task in (tasks or card.tasks)
    }
    other = [task for task, count in expected.items() if count is not None and sound[task] != count]
    complete = not broken and not other
    if as_json:
        counts = {
            task: {"questions": sound[task], "broken": lost[task], "expected": count}
            for task, count in expected.items()
        }
        named = [{"id": question.id, "task": question.task, "error": question.error} for question in broken]
        facts = {"benchmark": card.name, "split": mounted.source.split, "complete": complete}
        click.echo(json.dumps({**facts, "tasks": counts, "broken": named}))
        return 0 if complete else INCOMPLETE
    click.echo(f"{sum(sound.values()):,} questions, {len(broken):,} broken: {'' if complete else 'not '}complete")
    for task, count in expected.items():
        note = f"  {lost[task]:,} broken" if lost[task] else ""
        note += f"  (the card says {count:,})" if task in other else ""
        note += "  (the card does not say how many)" if count is None else ""
        click.echo(f"{task:28} {sound[task]:6,}{note}")
    for question in broken:
        click.echo(f"broken: {question.id}: {question.error}")
    return 0 if complete else INCOMPLETE


def _check_hub(bench: Benchmark, data: str, split: str | None, tasks: tuple[str, ...], as_json: bool) -> int:
    from hybrid.running.data import chosen_split
    from hybrid.running.hub import listing

    chosen = chosen_split(bench.card, split, tasks)
    hub_files = listing(bench, chosen, tasks, data.partition("@")[2] or None)
    total = sum(file.size for file in hub_files.files)
    absent = sum(file.size for file in hub_files.files if not file.on_disk)
    if as_json:
        files = [{"path": file.path, "bytes": file.size, "on_disk": file.on_disk} for file in hub_files.files]
        facts = {"benchmark": bench.card.name, "split": chosen, "id": hub_files.id, "revision": hub_files.revision}
        click.echo(json.dumps({**facts, "gated": hub_files.gated, "bytes": total, "to_fetch": absent, "files": files}))
        return 0
    click.echo(
        f"{hub_files.id} at {hub_files.revision}: {total / 1e6:,.2f} MB, {absent / 1e6:,.2f} MB of them to fetch"
    )
    if hub_files.gated:
        click.echo("It is gated: its conditions must be accepted on its page, and HF_TOKEN be a token of that account.")
    for file in hub_files.files:
        click.echo(f"{file.size / 1e6:10,.2f} MB  {file.path}{'  (on disk)' if file.on_disk else ''}")
    return 0
