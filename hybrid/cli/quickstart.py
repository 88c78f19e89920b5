"""`hybrid quickstart`: everything once, offline, on generated questions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

QUESTIONS = 40


@click.command("quickstart")
@click.option("--limit", type=click.IntRange(1), default=QUESTIONS, show_default=True, help="Questions in all.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/quickstart"), show_default=True)
def command(limit: int, out: Path) -> int:
    """Generate questions, answer them with three kinds of solver, and print the comparison. Needs no key, no weights.

    The questions are generated and their answers known; `embedded` is a small scripted stand-in for an MLLM that sees
    no pixel and reads what tools tell it. The numbers show that the parts work together, nothing about real models.
    """
    from hybrid.benchmarks.base import ScoreOptions
    from hybrid.cli.run import Bars
    from hybrid.cli.score import show
    from hybrid.config import RunConfig
    from hybrid.plan import prepare
    from hybrid.run import execute
    from hybrid.score import score_run

    config = RunConfig("blink", model="embedded", data="sample", limit=limit, backend="classical", out=out)
    click.echo("generating questions whose answers are known ...", err=True)
    plan = prepare(config)
    click.echo(f"{len(plan.sound)} generated questions, run folder {out}", err=True)
    with Bars() as bars:
        failures = asyncio.run(execute(plan, bars))
    scored = score_run(plan.folder, ScoreOptions(), tuple(plan.solvers))
    show(scored, out, as_json=False)
    click.echo(
        "generated questions, answered by a scripted stand-in for an MLLM: not a benchmark result.\n"
        f"next: hybrid compare {out}; hybrid tools list; hybrid run blink --data DIR --model openai:gpt-4o --dry-run"
    )
    return 3 if failures else 0
