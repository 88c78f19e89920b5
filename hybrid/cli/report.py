"""`hybrid report`: write the results of runs as pages for a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._help import Grouped
from hybrid.cli._options import logging_options_of, path_option, shared_option
from hybrid.core.errors import UsageError
from hybrid.display.notes import tell
from hybrid.display.progress_bar import with_progress

if TYPE_CHECKING:
    from hybrid.scoring.paths import CompareArguments


@click.command("report", cls=Grouped, rare=("benchmark", "data", "field", "protocol", "margin", "other_labels"))
@shared.paths
@click.option("-o", "--out", type=types.ANY_PATH, help="Folder of the pages.")
@click.option("--title", default="", help="[default: the benchmarks' names]")
@click.option(
    "--sample-errors",
    type=types.COUNT,
    default=0,
    show_default=True,
    help="Per task, put this many wrong answers of the first hybrid solver on an error sheet, for people to tag.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the error sheet.")
@click.option(
    "--tags",
    type=types.EXISTING_FILE,
    help="Tags that were saved from an error sheet, as JSON: they are shown and counted.",
)
@shared.by
@shared.benchmark
@shared.data
@shared.field
@shared.protocol
@shared_option("unanswered")
@shared.other_labels
@shared.baseline
@shared.pairs
@shared_option("allow_failed")
@click.option(
    "--margin",
    type=types.SHARE,
    metavar="M",
    help="Differences below this count as equal, deficits below it as non-inferior, in units of the headline metric.  "
    "[default: 0.05]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of the pages as one JSON object.")
@path_option
@logging_options_of
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
    """Write a report of runs: pages that a browser reads from disk, or from any web server.

    PATH is a run, a solver's folder in a run, or saved predictions (with --benchmark), as for `hybrid compare`. Each
    benchmark gets its own pages: the conclusion with its charts, the numbers, a list of all questions, and a page per
    question with every solver's steps. Nothing is loaded from the network.

    \b
    Examples:
      hybrid report runs/blink-gpt-4o-1a2b3c4d5e -o site
      hybrid report runs/real runs/blank -o site --sample-errors 10
      hybrid report runs/real -o site --tags tags.json
    """
    from hybrid.cli._output import print_failures
    from hybrid.report import data_files
    from hybrid.report.collect import ReportOptions, collect, scored_behind
    from hybrid.report.site import refuse_other, write_site
    from hybrid.scoring.reports import corruption_warnings

    if out is None and not as_json:
        raise UsageError("give -o DIR for the pages, or --json to print only their numbers")
    if out is not None:
        refuse_other(out)
    scored = scored_behind(paths, **options)
    pages = collect(scored, ReportOptions(title, sample_errors, seed, tags), **options)

    benchmarks = [replace(part, questions=with_progress(part.questions, part.key, part.n)) for part in pages.benchmarks]
    index = None if out is None else write_site(replace(pages, benchmarks=tuple(benchmarks)), out)
    if as_json:
        click.echo(data_files.as_json({benchmark.key: benchmark.overview for benchmark in pages.benchmarks}))
    if index is not None:
        (tell if as_json else click.echo)(f"wrote {index}")
    damage = corruption_warnings([entry.scored for entry in scored])
    print_failures(damage)
    return 3 if damage else 0
