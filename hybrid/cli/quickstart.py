"""`hybrid quickstart`: what tools bring to a model, on generated questions, offline."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybrid.cli._logging_options import told_options
from hybrid.cli._table_options import allow_failed_option, tables_option
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape, folded, pasteable

if TYPE_CHECKING:
    from hybrid.config import ToolOutput
    from hybrid.running.run import RunEnd
    from hybrid.scoring.reports import ScoreReport
    from hybrid.scoring.score import Scored

QUESTIONS = 60
BATCH = 8
"""Replies that the model generates at once."""


BENCHMARK = "blink"
TASKS = {
    "Jigsaw": "jigsaw",
    "Multi-view_Reasoning": "motion",
    "Relative_Depth": "depth",
    "Visual_Correspondence": "correspondence",
    "Spatial_Relation": "",
}
"""By task of the benchmark the tool that fits it without weights, empty for none."""
MISHAPS = (
    "Not everything went well. unparsed: no answer could be read in the reply; budget: the calls or seconds of the "
    "question were spent; tool_fault: a specialist alone met an error; lost: a tool call ended in an error or a "
    "timeout, and the question was answered without it."
)
ABOUT = (
    "Generated questions, answered by `embedded`, a small demonstration model that ships with the project. The numbers "
    "say what the machinery does, nothing about real MLLMs, and are no benchmark result."
)


@click.command("quickstart")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=QUESTIONS,
    show_default=True,
    help="Questions, evenly over the tasks.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/quickstart"), show_default=True)
@allow_failed_option
@tables_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@told_options
def command(limit: int, out: Path, allow_failed: bool, tables: Shape, as_json: bool) -> int:
    """Generate questions, answer them in four ways, and say what the tools brought. Needs no key and no weights.

    A model answers with tools (`controller`), with tools whose findings are blank, and alone (`mllm`); the tools answer
    without it (`specialist`). The model is `embedded`, a small demonstration model that ships with the project: the
    numbers say what the machinery does, nothing about real MLLMs. The same command again goes on where it stopped.
    """
    from hybrid.cli.score import name_failed
    from hybrid.running.signals import Interrupted
    from hybrid.scoring.reports import ScoreReport

    try:
        runs = {folder: _answered(output, limit, folder) for folder, output in _runs(out).items()}
    except Interrupted as interrupted:
        again = shlex.join([*program(), *sys.argv[1:]])
        click.echo(f"{interrupted}; what is finished is kept in {out}; to go on: {again}", err=True)
        return interrupted.exit_code
    report = ScoreReport(runs)
    _show(report, out, tables, allow_failed=allow_failed, as_json=as_json)
    name_failed(report.failed)
    return exit_code(report)


def exit_code(report: ScoreReport) -> int:
    """3 where questions failed, are still open, or where a run is damaged; else 0."""
    return 3 if report.failed or any(one.open for one in report.solvers) else 0


def _runs(out: Path) -> dict[Path, ToolOutput]:
    """The folder of each run, and what its tools return."""
    return {out / BENCHMARK: "real", out / f"{BENCHMARK}-blank": "blank"}


def _answered(output: ToolOutput, limit: int, folder: Path) -> tuple[Scored, ...]:
    """The scored solvers of one run, after what was open has been asked.

    Raises:
        Interrupted: a signal ended it.
        HybridError: the folder holds another run or cannot be written, or nothing could be asked.
    """
    from hybrid.benchmarks.base import ScoreOptions
    from hybrid.cli.run import asked
    from hybrid.config import DEFAULT_SOLVERS, ModelSettings, RunConfig, ServiceOptions
    from hybrid.running.engine import here
    from hybrid.running.resolve import prepare
    from hybrid.scoring.paths import TABLES_RULE, tell_unkept
    from hybrid.scoring.runs import score_run

    tell(f"{folder}: making ready {BENCHMARK}'s questions, tool output {output} ...")
    config = RunConfig(
        BENCHMARK,
        solvers=DEFAULT_SOLVERS if output == "real" else ("controller",),
        model="embedded",
        model_settings=ModelSettings(extra={"batch": BATCH}),
        data="sample",
        tasks=tuple(TASKS),
        limit=limit,
        tool_output=output,
        service=ServiceOptions("classical", isolated=True),
        out=folder,
    )
    run = prepare(config)
    tell(f"{folder}: {len(run.sound)} generated questions")
    _tell_open(asked(run, here))
    return tell_unkept(score_run(run.folder, ScoreOptions(abstain=TABLES_RULE)))


def _tell_open(end: RunEnd) -> None:
    """Name what was not finished, and raise what stopped everything."""
    from hybrid.cli.score import name_failed

    if end.stopped is not None:
        raise end.stopped
    name_failed([f"{failure.id} ({failure.solver}): {failure.error}" for failure in end.failures])


def _show(report: ScoreReport, out: Path, tables: Shape, *, allow_failed: bool, as_json: bool) -> None:
    """Print the conclusion with its tables, what went wrong, and what to do next; or one JSON object."""
    from hybrid.scoring.reports import compare_paths

    compared = compare_paths([*report.paths], allow_failed=allow_failed)
    if as_json:
        said = [asdict(sentence) for sentence in compared.conclusion]
        click.echo(json.dumps({"conclusion": said, **report.as_json()}))
        return
    told = (compared.render(TEXT[tables]), *(folded(part, "narrow", hang=0) for part in (*mishaps(report), ABOUT)))
    click.echo("\n\n".join(part.strip() for part in (*told, _next(out, tables))))


def mishaps(report: ScoreReport) -> list[str]:
    """What ended otherwise than in an answer or an abstention, with where to look; nothing where nothing did."""
    lines = [
        f"  {path / one.solver}: {', '.join(found)}"
        for path, solvers in report.paths.items()
        for one in solvers
        if (found := _bad_ends(one))
    ]
    return ["\n".join((MISHAPS, *lines))] if lines else []


def _bad_ends(one: Scored) -> list[str]:
    """How many questions of a solver ended in each bad way, and how many of its tool calls were lost."""
    from hybrid.types import Outcome

    ends = Counter(score.outcome for score in one.scores)
    found = [f"{ends[kind]} {kind}" for kind in (Outcome.UNPARSED, Outcome.BUDGET, Outcome.TOOL_FAULT) if ends[kind]]
    lost = one.usage.tool_faults if one.usage else 0
    return [*found, f"{lost} lost"] if lost else found


def _next(out: Path, tables: Shape) -> str:
    """Commands on this run and beyond, to be pasted as they stand."""
    commands = (
        ("compare", str(out / BENCHMARK), str(out / f"{BENCHMARK}-blank")),
        ("report", str(out / BENCHMARK), str(out / f"{BENCHMARK}-blank"), "-o", str(out / "site")),
        ("tools", "list"),
        ("run", "blink", "--data", "sample", "--limit", "20", "--model", "openai:gpt-4o", "--dry-run"),
    )
    return "\n".join(pasteable([*program(), *words], tables, "next: ") for words in commands)


def program() -> tuple[str, ...]:
    """The words by which this program was started: `uv run` has it in an environment that no shell knows."""
    return ("uv", "run", "hybrid") if "UV" in os.environ else ("hybrid",)
