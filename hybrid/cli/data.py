"""`hybrid data check`: read a benchmark's data as a run would, and say what is wrong with it."""

from __future__ import annotations

from collections import Counter

import click


@click.group("data")
def command() -> None:
    """Check a benchmark's data before a run."""


@command.command()
@click.argument("folder")
@click.option("--benchmark", default="blink", show_default=True)
@click.option("--split", help="A split of the data.  [default: the benchmark's first]")
def check(folder: str, benchmark: str, split: str | None) -> int:
    """Read every row of FOLDER, decode every image and compare the counts with the benchmark's card.

    \b
    Example:
      hybrid data check DIR --benchmark blink
    """
    from hybrid.images import ImageStore, home
    from hybrid.registry import load
    from hybrid.running.data import mount, questions
    from hybrid.types import BrokenQuestion

    bench = load("hybrid.benchmarks", benchmark)
    store = ImageStore(home() / "images")
    mounted = mount(bench, folder, split=split, tasks=(), settings={}, store=store)
    found = questions(bench, mounted.source, None)
    broken = [question for question in found if isinstance(question, BrokenQuestion)]
    counts = Counter(question.task for question in found)
    for task, count in sorted(counts.items()):
        expected = bench.card.tasks.get(task)
        note = "" if not expected or count == expected else f"  (the card says {expected:,})"
        click.echo(f"{task:28} {count:6,}{note}")
    for question in broken:
        click.echo(f"broken: {question.id}: {question.error}")
    click.echo(f"{len(found):,} rows, {len(broken)} broken")
    return 3 if broken else 0
