"""`hybrid benchmarks`: lists and describes the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hybrid.cli import _option_types as types
from hybrid.cli._options import path_option, tables_option
from hybrid.display.terminal import TEXT, Shape, folded, pasteable

if TYPE_CHECKING:
    from hybrid.benchmarks.card import BenchmarkCard


@click.group("benchmarks")
def command() -> None:
    """List and describe the benchmarks."""


@command.command("list")
@path_option
@tables_option
def list_(tables: Shape) -> int:
    """Print every benchmark with its size."""
    from hybrid.plugins.registry import load_each

    for name, benchmark in load_each("hybrid.benchmarks"):
        card: BenchmarkCard = benchmark.card
        counts = f"{sum(card.tasks.values()):6,} questions, {len(card.tasks):2} tasks" if card.tasks else ""
        uncounted = "of your own file" if benchmark.accepts_file else "not counted"
        line = f"{name:12} {counts or uncounted:>26}  {card.title}"
        click.echo(folded(line, tables, hang=4))
    return 0


@command.command()
@click.argument("name", shell_complete=types.benchmarks)
@click.option("--all", "show_all", is_flag=True, help="Also print settings, metrics, baselines and published numbers.")
@path_option
@tables_option
def show(name: str, show_all: bool, tables: Shape) -> int:
    """Describe a benchmark: source, licence, tools, images and tasks.

    --all adds settings, the definition of each metric and its source, baselines, and published numbers.

    The tools are those that a run offers by default; --tools A,B replaces them, --tools all offers every tool.
    """
    from hybrid.display.tables import RENDERERS
    from hybrid.plugins.registry import load
    from hybrid.scoring.published import published
    from hybrid.scoring.published_tables import published_tables

    card: BenchmarkCard = load("hybrid.benchmarks", name).card
    for line in (*_facts(card), *(_settings_and_metrics(card) if show_all else ())):
        click.echo(folded(line, tables, hang=4))
    if not show_all:
        click.echo("\nMore: --all (settings, metrics and their formulas, baselines, published numbers)")
        return 0
    if card.baselines:
        click.echo("\nbaselines of the paper, each with the command that asks the same questions here")
    for baseline in card.baselines:
        click.echo(folded(f"  {baseline.name} ({baseline.where})", tables))
        click.echo(
            f"    {baseline.command}" if tables == "wide" else pasteable(baseline.command.split(), tables, "    ")
        )
        if baseline.differs:
            click.echo(folded(f"    different from the paper: {baseline.differs}", tables))
    for table in published_tables(published(card.name)):
        click.echo(f"\n{RENDERERS[TEXT[tables]](table)}", nl=False)
    return 0


def _facts(card: BenchmarkCard) -> Iterator[str]:
    """Yield the benchmark's source, images and tasks."""
    facts = {
        "title": card.title,
        "citation": card.citation,
        "licence": card.licence,
        "hub": card.hub_id or "not on the hub",
        **({"elsewhere": card.elsewhere} if card.elsewhere else {}),
        **{f"corrected {correction.on}": f"{correction.task}: {correction.said}" for correction in card.corrections},
        **({"unchecked": card.unchecked} if card.unchecked else {}),
        "splits": ", ".join(f"{s} (answers hidden)" if s in card.hidden_splits else s for s in card.splits),
        "generated": ", ".join(card.sample_tasks) or "none",
        "tools": ", ".join(card.tools_offered) or "all",
    }
    yield from (f"{key:12} {value}" for key, value in facts.items())
    yield "\nimages from"
    yield from (f"  {source.name:36} {source.where}" for source in card.image_sources)
    yield "\ntasks"
    yield from (f"  {task:28} {count or 'unknown':>7}" for task, count in card.tasks.items())
    if not card.tasks:
        yield "  those named in the data" + (":" if card.sample_tasks else "")
        yield from (f"  {task:28} generated" for task in card.sample_tasks)


def _settings_and_metrics(card: BenchmarkCard) -> Iterator[str]:
    """Yield the settings, one line each, and the definition of every metric; common settings last."""
    from hybrid.cli._run_config import common_settings
    from hybrid.scoring.metric_cards import FURTHER

    own_heading = "\nsettings (--setting KEY=VALUE)" if card.settings else "\nno settings"
    common = "\nsettings of every benchmark, which determine how a model is asked"
    for heading, settings in ((own_heading, card.settings), (common, common_settings())):
        yield heading
        for setting in settings:
            yield f"  {setting.name}={setting.default}  {' | '.join(setting.values)}: {setting.help}"
    yield "\nmetrics"
    for metric in (*card.metrics, *FURTHER):
        yield f"  {metric.name}\n    = {metric.formula}"
        yield f"    {metric.values}; n: {metric.counts}"
        yield f"    {metric.source}"
        if metric.about:
            yield f"    {metric.about}"
