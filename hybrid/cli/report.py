"""`hybrid report`: write the results of runs as pages for a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from hybrid.cli._help import Grouped
from hybrid.cli._logging_options import told_options
from hybrid.cli._options import options
from hybrid.core.errors import UsageError
from hybrid.display.notes import is_quiet, tell

if TYPE_CHECKING:
    from hybrid.report.payload import QuestionPage
    from hybrid.scoring.paths import CompareArguments


@click.command("report", cls=Grouped, rare=("benchmark", "data", "field", "protocol", "margin", "other_labels"))
@options("report")
@told_options
def command(
    paths: tuple[Path, ...],
    out: Path | None,
    title: str,
    sample_errors: int,
    seed: int,
    tags: Path | None,
    as_json: bool,
    **options: Unpack[CompareArguments],
) -> int:
    """Write a report of runs as pages that a browser reads from disk, or from any web server.

    A PATH is as `hybrid compare` takes it: a run, a solver's folder in it, or saved predictions (with --benchmark).
    Every benchmark among them gets pages of its own: the conclusion with its charts, the numbers, a list of all
    questions, and a page for each with what every solver said. Nothing is loaded from the network.

    \b
    Examples:
      hybrid report runs/blink-gpt-4o-1a2b3c4d5e -o site
      hybrid report runs/real runs/blank -o site --sample-errors 10
      hybrid report runs/real -o site --tags tags.json
    """
    from tqdm import tqdm

    from hybrid.cli.score import name_failed
    from hybrid.report import data_files
    from hybrid.report.collect import ReportOptions, collect, scored_behind
    from hybrid.report.site import refuse_other, write_site
    from hybrid.scoring.reports import damage_of

    if out is None and not as_json:
        raise UsageError("-o DIR says where the pages go; --json alone prints their numbers")
    if out is not None:
        refuse_other(out)
    scored = scored_behind(paths, **options)
    pages = collect(scored, ReportOptions(title, sample_errors, seed, tags), **options)

    def counted(questions: Iterator[QuestionPage], total: int, name: str) -> Iterator[QuestionPage]:
        yield from tqdm(questions, desc=name, total=total, unit="q", mininterval=0.5, disable=is_quiet())

    benchmarks = [replace(part, questions=counted(part.questions, part.n, part.key)) for part in pages.benchmarks]
    index = None if out is None else write_site(replace(pages, benchmarks=tuple(benchmarks)), out)
    if as_json:
        click.echo(data_files.as_json({benchmark.key: benchmark.overview for benchmark in pages.benchmarks}))
    if index is not None:
        (tell if as_json else click.echo)(f"wrote {index}")
    damage = damage_of([entry.scored for entry in scored])
    name_failed(damage)
    return 3 if damage else 0
