"""`hybrid quickstart`: everything once, offline, on generated questions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from hybrid.cli._table_options import allow_failed_option

QUESTIONS = 40
PARTS = {
    "blink": ("jigsaw, depth, correspondence, counting, boxes, camera motion, surfaces, relations", 1.0),
    "actiview": ("small text and small objects in one part of a picture, looked at part by part", 0.3),
}
"""For each benchmark what its generated questions are about, and its share of `--limit`."""


@click.command("quickstart")
@click.option(
    "--limit", type=click.IntRange(1), default=QUESTIONS, show_default=True, help="Questions of BLINK's kind."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/quickstart"), show_default=True)
@allow_failed_option
def command(limit: int, out: Path, allow_failed: bool) -> int:
    """Generate questions, answer them with three kinds of solver, and print the comparison. Needs no key, no weights.

    The questions are generated and their answers known; `embedded` is a small scripted stand-in for an MLLM that sees
    no pixel and reads what tools tell it. The numbers show that the parts work together, nothing about real models.
    """
    failed = [_one(benchmark, limit, out / benchmark, allow_failed=allow_failed) for benchmark in PARTS]
    click.echo(
        "generated questions, answered by a scripted stand-in for an MLLM: not a benchmark result.\n"
        f"next: hybrid compare {out / 'blink'}; hybrid tools list; "
        "hybrid run blink --data DIR --model openai:gpt-4o --dry-run"
    )
    return 3 if any(failed) else 0


def _one(benchmark: str, limit: int, out: Path, *, allow_failed: bool) -> bool:
    """Run and show one benchmark's part; whether a question failed."""
    from hybrid.benchmarks.base import ScoreOptions
    from hybrid.cli.run import Bars
    from hybrid.cli.score import show
    from hybrid.running.config import RunConfig
    from hybrid.running.resolve import prepare
    from hybrid.running.run import execute
    from hybrid.scoring.compare import Choice
    from hybrid.scoring.reports import TABLES_RULE, ScoreReport
    from hybrid.scoring.score import score_run
    from hybrid.serving.service import ServiceOptions

    about, share = PARTS[benchmark]
    count = max(1, round(limit * share))
    click.echo(f"generating questions whose answers are known: {about} ...", err=True)
    classical = ServiceOptions("classical", isolated=True)
    run = prepare(RunConfig(benchmark, model="embedded", data="sample", limit=count, service=classical, out=out))
    click.echo(f"{len(run.sound)} generated questions, run folder {out}", err=True)
    with Bars() as bars:
        failures = asyncio.run(execute(run, bars))
    scored = score_run(run.folder, ScoreOptions(abstain=TABLES_RULE), tuple(run.solvers))
    show(ScoreReport({out: scored}, Choice(allow_failed=allow_failed)), as_json=False)
    return bool(failures)
