"""`hybrid benchmarks`: list and describe the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hybrid.cli import _complete

if TYPE_CHECKING:
    from hybrid.benchmarks.base import BenchmarkCard, Setting


@click.group("benchmarks")
def command() -> None:
    """List and describe the benchmarks."""


@command.command("list")
def list_() -> int:
    """Print every benchmark with its size."""
    from hybrid.registry import load, names

    for name in names("hybrid.benchmarks"):
        card: BenchmarkCard = load("hybrid.benchmarks", name).card
        click.echo(f"{name:12} {sum(card.tasks.values()):6,} questions, {len(card.tasks):2} tasks  {card.title}")
    return 0


@command.command()
@click.argument("name", shell_complete=_complete.benchmarks)
def show(name: str) -> int:
    """Print the card of a benchmark and what papers printed of it.

    The card: source, licence, tasks, tools, settings, how each metric is reckoned and by whose definition, baselines.

    Of the tools it prints the default menu, which --tools A,B replaces; --tools all offers every tool.
    """
    from hybrid.registry import load
    from hybrid.scoring.published import published
    from hybrid.scoring.published_tables import published_tables
    from hybrid.tables import as_text

    card: BenchmarkCard = load("hybrid.benchmarks", name).card
    facts = {
        "title": card.title,
        "citation": card.citation,
        "licence": card.licence,
        "hub": card.hub_id or "not on the hub",
        "splits": ", ".join(f"{s} (answers hidden)" if s in card.hidden_splits else s for s in card.splits),
        "generated": ", ".join(card.sample_tasks) or "none",
        "tools": ", ".join(card.menu) or "all",
    }
    for key, value in facts.items():
        click.echo(f"{key:12} {value}")
    click.echo("\nimages from")
    for source in card.image_sources:
        click.echo(f"  {source.name:36} {source.where}")
    click.echo("\ntasks")
    for task, count in card.tasks.items():
        click.echo(f"  {task:28} {count or 'unknown':>7}")
    click.echo("\nsettings (--setting KEY=VALUE)" if card.settings else "\nno settings")
    for each in card.settings:
        click.echo(f"  {each.name}={each.default}  {' | '.join(each.values)}: {each.help}")
    click.echo("\nsettings of every benchmark, which say how a model is asked")
    for each in settings_of_every_benchmark():
        click.echo(f"  {each.name}={each.default}  {' | '.join(each.values)}: {each.help}")
    for line in _metrics(card):
        click.echo(line)
    if card.baselines:
        click.echo("\nwhat the paper reports, and the command that asks the same here")
    for baseline in card.baselines:
        click.echo(f"  {baseline.name} ({baseline.where})\n    {baseline.command}")
        if baseline.differs:
            click.echo(f"    other than there: {baseline.differs}")
    for table in published_tables(published(card.name)):
        click.echo(f"\n{as_text(table)}", nl=False)
    return 0


def settings_of_every_benchmark() -> tuple[Setting, ...]:
    """The keys of `--setting` that say how a model is asked."""
    from hybrid.cli._any_settings import SETTINGS

    return SETTINGS


def _metrics(card: BenchmarkCard) -> Iterator[str]:
    """How every metric is reckoned; those that any benchmark may have last."""
    from hybrid.scoring.metric_cards import FURTHER

    yield "\nmetrics"
    for metric in (*card.metrics, *FURTHER):
        yield f"  {metric.name}\n    = {metric.formula}"
        yield f"    {metric.values}; n: {metric.counts}"
        yield f"    {metric.source}"
        if metric.about:
            yield f"    {metric.about}"
