"""`hybrid quickstart`: run the quick study on generated questions, offline, with its report."""

from __future__ import annotations

import asyncio
import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import logging_options_of, shared_option, tables_option
from hybrid.cli._several_runs import program
from hybrid.cli._tool_cache import open_cache
from hybrid.cli.study import DEFAULT_SOLVER, ask_cells, study_as_json
from hybrid.core.errors import importable
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape, folded

if TYPE_CHECKING:
    from hybrid.report.payload import OverviewSection
    from hybrid.scoring.reports import ComparisonReport
    from hybrid.scoring.score import Scored

# Number of replies that the model generates at once.
BATCH = 8


BENCHMARK = "blink"
# First words of the ids of the conclusion's sentences that are printed.
SENTENCES = ("nothing", "gain", "specialists", "content")
# A small study of a provider's model on generated questions, which needs only the key.
KEY = "OPENAI_API_KEY"
NEXT = ("study", BENCHMARK, *shlex.split("--data sample --limit 20 --model openai:gpt-4o -o runs/study"))
TEXTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
ABOUT, MISHAPS = TEXTS["about"], TEXTS["mishaps"]
# The tool that answers each task of the benchmark.
TASKS: Final[Mapping[str, str]] = TEXTS["tasks"]
# The task whose question the trained matcher also answers.
MATCHED = "Visual_Correspondence"


@click.command("quickstart")
@click.option(
    "--limit",
    type=types.NUMBER,
    default=48,
    show_default=True,
    help="Number of questions, spread evenly over the tasks.",
)
@click.option("-o", "--out", type=types.ANY_PATH, default="runs/quickstart", show_default=True)
@shared_option("allow_failed")
@tables_option
@shared.as_json
@logging_options_of
def command(limit: int, **options: Any) -> int:
    """Generate questions, answer them in four ways, and print the gain from tools. Needs no key and no weights.

    A model answers with tools (`controller`), with tools whose output is blank, and alone (`mllm`); the tools answer
    without it (`specialist`). This is the quick study of `hybrid study`. The model is `embedded`, a small demonstration
    model that ships with the project: the numbers show that the program works, and say nothing about real MLLMs.
    OUT/site has the report. The same command resumes where it stopped.
    """
    from hybrid.cli._run_config import config_of
    from hybrid.cli._sources import resolve
    from hybrid.config.groups import CPU
    from hybrid.running.study import cells_of

    tell(f"{BENCHMARK}: preparing generated questions ...")
    folders = (BENCHMARK, f"{BENCHMARK}-blank")
    cells = [replace(cell, name=name) for cell, name in zip(cells_of("quick", DEFAULT_SOLVER), folders, strict=True)]
    given = {
        "benchmark": BENCHMARK,
        "task": tuple(TASKS),
        "limit": limit,
        "data": "sample",
        "model": "embedded",
        "model_arg": {"batch": str(BATCH)},
        "backend": "classical",
        "overlays": True,
    }
    config = config_of(*resolve(given, environment=False))
    # Earlier versions set no seed for the model, and ran the tools on the CPU. Keep both settings, so that runs in
    # their folders can be resumed.
    config = replace(
        config,
        model_settings=replace(config.model_settings, seed=None),
        service=replace(config.service, device=CPU),
    )
    return ask_cells(cells, config, options, partial(_show, options))


def _show(options: Mapping[str, Any], report: ComparisonReport, runs: Sequence[Path]) -> None:
    """Print a short conclusion, the accuracy by task, the path of the report and the next command; or JSON."""
    from hybrid.report.collect import collect_paths
    from hybrid.report.site import write_site

    pages = collect_paths(runs, allow_failed=options["allow_failed"])
    if (section := trained_matcher(runs[0])) is not None:
        first, *others = pages.benchmarks
        overview = replace(first.overview, sections=(*first.overview.sections, section))
        pages = replace(pages, benchmarks=(replace(first, overview=overview), *others))
    page = write_site(pages, options["out"] / "site")
    if options["as_json"]:
        click.echo(study_as_json(report, runs))
        return
    shape: Shape = options["tables"]
    notes = (folded(part, "narrow", hang=0).strip() for part in (*mishaps(report.solvers), ABOUT))
    parts = [*summarise(report, shape), "\n".join((f"report: {page}", *notes)), next_command()]
    click.echo("\n\n".join(filter(None, parts)))


def summarise(report: ComparisonReport, shape: Shape) -> tuple[str, ...]:
    """Return the first sentences of the conclusion, within 80 columns, and the table of tasks.

    The sentences left out are about single tasks, which are in the table, and about limits, which `ABOUT` and `mishaps`
    name. If nothing was answered, only that statement is returned.
    """
    from hybrid.display.tables import RENDERERS
    from hybrid.display.terminal import NARROW, filled
    from hybrid.scoring.headline import headline_tables, nothing_answered_by, rule_head

    if nothing := nothing_answered_by(report.solvers):
        return (nothing.strip(),)
    sentences = [sentence.text for sentence in report.conclusion if sentence.id.partition(".")[0] in SENTENCES]
    conclusion = "\n".join(line for text in sentences for line in filled(text, NARROW))
    _, *tables = headline_tables(report.comparison)
    by_task = [RENDERERS[TEXT[shape]](replace(table, title="")).replace("\n\n", "\n").strip() for table in tables]
    return (rule_head(report.solvers, "text") + conclusion, *by_task)


def next_command() -> str:
    """Return the command for a user with a key, always on one line, so that it is the last line."""
    return f"Next, with a key in {KEY}:\n{shlex.join((*program(), *NEXT))}"


def trained_matcher(run: Path) -> OverviewSection | None:
    """Run the installed trained matcher on one question of a run; return its output with the drawing.

    The result is None if the matcher is not installed, or if no question of the run is about correspondence.
    """
    from hybrid.benchmarks.base import show
    from hybrid.config import ServiceOptions
    from hybrid.core.images import home
    from hybrid.core.types import Question
    from hybrid.log.folder import RunFolder
    from hybrid.plugins.registry import load
    from hybrid.report.payload import OverviewSection
    from hybrid.report.pictures import Drawn, Pictures
    from hybrid.serving.service import CachedTools
    from hybrid.tool import Tool

    tool: Tool = load("tools", TASKS[MATCHED])
    learned = tool.backend("learned")
    questions = [question for question in RunFolder(run).questions().by_id.values() if question.task == MATCHED]
    if not questions or learned is None or not learned.package or not importable(learned.package):
        return None
    tell(f"{tool.card.name}: running the trained weights of {learned.package} on one pair ...")
    question = questions[0]
    assert isinstance(question, Question)  # noqa: S101 - generated questions are never broken
    images = show(question.images)
    cached = open_cache()
    # Known answers are not checked here, because the weights in the package are compared with the published weights.
    options = ServiceOptions("learned", unchecked=True, pictures="png")
    with closing(CachedTools(cached.store, cached, options)) as service:
        finding = asyncio.run(service.call(tool, tool.parse({}), images))
    pictures = Pictures(home() / "images")
    drawings = [replace(image, name=f"{image.parent} {tool.card.name}") for image in finding.images]
    overlay = Drawn(tool.card.name, {image.name: (image.image.width, image.image.height) for image in images})
    files = [str(cached.store.path(image.image.sha256)) for image in images]
    return OverviewSection(
        "trained-matcher",
        "A separate example: a trained matcher on one pair",
        lead=f"The run did not use this matcher. {learned.package} on {question.id}: {' '.join(finding.text.split())}",
        charts=(),
        tables=(),
        command=shlex.join(("hybrid", "tools", "run", tool.card.name, *files, "--backend", "learned")),
        pictures=(
            *(pictures.of(image, "image of the question") for image in images),
            *(pictures.of(image, "drawn matches", overlay) for image in drawings),
        ),
    )


def mishaps(solvers: Sequence[Scored]) -> list[str]:
    """Return lines on the questions that ended without an answer or abstention, and the folder with the details."""
    from hybrid.core.types import Outcome

    lines = []
    for solver in solvers:
        ends = Counter(score.outcome for score in solver.scores)
        bad = (Outcome.UNPARSED, Outcome.BUDGET, Outcome.TOOL_FAULT)
        counts = [f"{ends[kind]} {kind}" for kind in bad if ends[kind]]
        if solver.usage and solver.usage.tool_faults:
            counts.append(f"{solver.usage.tool_faults} lost")
        if counts:
            place = solver.folder.path / solver.recorded if solver.folder else solver.solver
            lines.append(f"  {place}: {', '.join(counts)}")
    return ["\n".join((MISHAPS, *lines))] if lines else []
