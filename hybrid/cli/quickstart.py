"""`hybrid quickstart`: the quick study of `hybrid study`, on generated questions, offline, with its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli._logging_options import told_options
from hybrid.cli._many import program
from hybrid.cli._table_options import allow_failed_option, tables_option
from hybrid.cli.study import DEFAULT_SOLVER, ask_cells, study_as_json
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape, folded, pasteable

if TYPE_CHECKING:
    from hybrid.scoring.reports import ComparisonReport
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
def command(limit: int, **options: Any) -> int:
    """Generate questions, answer them in four ways, and say what the tools brought. Needs no key and no weights.

    A model answers with tools (`controller`), with tools whose findings are blank, and alone (`mllm`); the tools answer
    without it (`specialist`): the quick study of `hybrid study`. The model is `embedded`, a small demonstration model
    that ships with the project: the numbers say what the machinery does, nothing about real MLLMs. OUT/site holds the
    report. The same command again goes on where it stopped.
    """
    from hybrid.config import ModelSettings, RunConfig, ServiceOptions
    from hybrid.running.study import cells_of

    tell(f"{BENCHMARK}: making ready generated questions ...")
    folders = (BENCHMARK, f"{BENCHMARK}-blank")
    cells = [replace(cell, name=name) for cell, name in zip(cells_of("quick", DEFAULT_SOLVER), folders, strict=True)]
    config = RunConfig(
        BENCHMARK,
        model="embedded",
        model_settings=ModelSettings(extra={"batch": BATCH}),
        data="sample",
        tasks=tuple(TASKS),
        limit=limit,
        service=ServiceOptions("classical", isolated=True),
        overlays=True,
    )

    return ask_cells(cells, config, options, partial(_show, options))


def _show(options: Mapping[str, Any], report: ComparisonReport, runs: Sequence[Path]) -> None:
    """Print the conclusion with its tables, where the report lies, what went wrong, and what to do next; or JSON."""
    from hybrid.report.collect import collect_paths
    from hybrid.report.site import write_site

    tables: Shape = options["tables"]
    click.echo(study_as_json(report, runs) if options["as_json"] else report.render(TEXT[tables]).strip())
    page = write_site(collect_paths(runs, allow_failed=options["allow_failed"]), options["out"] / "site")
    if not options["as_json"]:
        said = (folded(part, "narrow", hang=0).strip() for part in (*mishaps(report.solvers), ABOUT))
        click.echo("\n" + "\n\n".join((f"report: {page}", *said, _next(runs, tables))))


def mishaps(solvers: Sequence[Scored]) -> list[str]:
    """Lines on the questions that ended in neither an answer nor an abstention, with the folder to look in."""
    lines = [
        f"  {one.folder.path / one.recorded if one.folder else one.solver}: {', '.join(bad_ends)}"
        for one in solvers
        if (bad_ends := _bad_ends(one))
    ]
    return ["\n".join((MISHAPS, *lines))] if lines else []


def _bad_ends(one: Scored) -> list[str]:
    """How many questions of a solver ended in each bad way, and how many of its tool calls were lost."""
    from hybrid.types import Outcome

    ends = Counter(score.outcome for score in one.scores)
    counts = [f"{ends[kind]} {kind}" for kind in (Outcome.UNPARSED, Outcome.BUDGET, Outcome.TOOL_FAULT) if ends[kind]]
    lost = one.usage.tool_faults if one.usage else 0
    return [*counts, f"{lost} lost"] if lost else counts


def _next(runs: Sequence[Path], tables: Shape) -> str:
    """Commands on these runs and beyond, to be pasted as they stand."""
    commands = (
        ("compare", *map(str, runs), "--only", "decomposition"),
        ("tools", "list"),
        (
            "study",
            "blink",
            "--data",
            "sample",
            "--limit",
            "20",
            "--model",
            "openai:gpt-4o",
            "-o",
            "runs/study",
            "--dry-run",
        ),
    )
    return "\n".join(pasteable([*program(), *words], tables, "next: ") for words in commands)
