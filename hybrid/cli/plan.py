"""`hybrid plan`: number of questions needed for a comparison, or the smallest difference that can be detected."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybrid.cli import _option_types as types
from hybrid.cli._options import path_option
from hybrid.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hybrid.stats import Design

ASSUMED = (
    "assumed from pairs of models on BLINK; one model with and without tools differs on fewer questions; a RUN gives "
    "the measured share"
)


@click.command("plan")
@click.argument("where", type=types.EXISTING_PATH, required=False, metavar="[RUN|DATA]")
@click.option(
    "--difference", type=types.DIFFERENCE, metavar="D", help="Difference in accuracy to detect, such as 0.05."
)
@click.option("--questions", type=types.NUMBER, metavar="N", help="Print the difference that N questions can detect.")
@click.option(
    "--tasks",
    cls=types.Listed,
    multiple=True,
    metavar="N,N",
    help="Number of questions of each task, such as 120,60,20.",
)
@click.option("--cluster", type=types.NUMBER, default=1, help="Number of rows per question, for example 5 rotations.")
@click.option(
    "--benchmark", type=types.BENCHMARK, help="The benchmark of DATA.  [default: blink; for a file of questions, none]"
)
@click.option(
    "--discordant", type=types.SHARE_TO_1, help="Share of the questions that only one of the two solvers gets right."
)
@click.option("--power", type=types.SHARE, default=0.8, show_default=True)
@click.option(
    "--level", type=types.SHARE, default=0.05, show_default=True, help="Significance level of the two-sided test."
)
@path_option
def command(
    where: Path | None,
    difference: float | None,
    questions: int | None,
    tasks: tuple[str, ...],
    cluster: int,
    benchmark: str | None,
    discordant: float | None,
    power: float,
    level: float,
) -> int:
    """Print how many questions are needed to find a difference, or which difference the given questions can show.

    The calculation is for two solvers that answer the same questions, and for the test of `hybrid compare`. Tasks and
    clusters come from RUN, DATA or options; a mean over tasks of unequal size needs more questions. RUN also shows on
    how many questions its model is right only with tools or only without.

    \b
    Examples:
      hybrid plan --difference 0.05
      hybrid plan --tasks 120,60,20 --cluster 5 --discordant 0.2
      hybrid plan runs/blink-gpt-4o-1a2b3c4d5e --difference 0.05
    """
    from hybrid.display.terminal import how_many
    from hybrid.stats import TYPICAL_DISCORDANT, Design, detectable_difference, sample_size

    _check_inputs(where, difference, questions, tasks)
    design, measured = Design.of([int(task) for task in tasks] or [questions or cluster], cluster), None
    if where:
        design, measured = _of_run(where) if (where / "manifest.json").is_file() else (_of_data(where, benchmark), None)
    share, whose = discordant, ASSUMED if discordant is None else "given"
    if discordant is None and measured is not None:
        share, whose = max(measured, abs(difference or 0.0)), f"with tools or without, in {where}"
    if difference is None:
        # Round up, so that the printed difference can really be detected.
        size = math.ceil(detectable_difference(design, share, power, level) * 1000) / 1000
        click.echo(f"a difference of {size:.3f}")
    else:
        size, design = abs(difference), sample_size(design, difference, share, power, level)
        click.echo(how_many(design.questions))
    share = max(TYPICAL_DISCORDANT, size) if share is None else share
    click.echo(
        "\n".join(
            [*_made_up(design), f"only one of the two solvers is right on {share:.2f} of the questions ({whose})"]
        )
    )
    return 0


def _check_inputs(where: Path | None, difference: float | None, questions: int | None, tasks: tuple[str, ...]) -> None:
    """Raise `UsageError` unless the inputs say which questions there are, or which difference is to be found."""
    if bool(where) + bool(questions) + bool(tasks) > 1:
        raise UsageError("give only one of these: RUN or DATA, --questions N, or --tasks N,N")
    if bool(questions) if difference is not None else not (where or questions or tasks):
        raise UsageError(
            "give --difference D for the number of questions, or --questions N, --tasks, RUN or DATA for the "
            "difference that they can detect"
        )
    if not all(task.isdecimal() and int(task) for task in tasks):
        raise UsageError(f"--tasks {','.join(tasks)}: write a number of questions for each task, such as 120,60,20")


def _made_up(design: Design) -> Iterator[str]:
    """Yield lines about the tasks and clusters, if any."""
    if len(design.tasks) > 1:
        counts = ", ".join(f"{sum(task):g}" for task in design.tasks)
        yield f"{'mean over' if design.macro else 'over all questions of'} {len(design.tasks)} tasks: {counts}"
    if design.clusters < design.questions:
        yield f"{design.clusters:,} clusters; rows of the same cluster are assumed to get the same verdict"


def _of_run(run: Path) -> tuple[Design, float | None]:
    """Return the design of a run, and the share of questions answered right only with tools or only without tools."""
    from hybrid.scoring.reports import compare_paths
    from hybrid.stats import measured_design

    comparison = compare_paths([run]).comparison
    pairs = [(group.alone, group.hybrid) for group in comparison.groups if group.alone is not None]
    for pair in pairs or [(solver, solver) for solver in comparison.solvers]:
        metrics = comparison.overlap(*pair).headline(pair[0].unanswered)
        if metrics is not None:
            design, share = measured_design(metrics[0], metrics[1])
            return design, share if pairs and share else None
    raise UsageError(f"{run}: no solver has answered a question yet, so the run gives no design to plan with")


def _of_data(data: Path, name: str | None) -> Design:
    """Return the design of a data set; its clusters are those that statistics resample."""
    from collections import Counter

    from hybrid.benchmarks.base import Benchmark
    from hybrid.cli._run_config import benchmark_of
    from hybrid.core.images import ImageStore, home
    from hybrid.plugins.registry import load
    from hybrid.running.data import mount, questions
    from hybrid.stats import Design

    benchmark: Benchmark = load("hybrid.benchmarks", name or benchmark_of(str(data)))
    card, store = benchmark.card, ImageStore(home() / "images")
    source = mount(benchmark, str(data), split=None, tasks=(), settings=card.counted_with, store=store).source
    rows = Counter((question.task, question.unit) for question in questions(benchmark, source, None).sound)
    tasks = {task: tuple(float(n) for (name, _), n in rows.items() if name == task) for task, _ in rows}
    return Design(tuple(tasks.values()), card.headline[0].endswith("_macro"))
