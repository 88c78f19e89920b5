"""`hybrid study`: find out where the gain from tools comes from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._configured import RARE_BESIDE_RUN, run_config
from hybrid.cli._help import Grouped
from hybrid.cli._options import FORMS, form_options, logging_options_of
from hybrid.cli._several_runs import AskedRuns, ask_and_show, estimated, prepared, show_estimate
from hybrid.cli.run import lacking_options
from hybrid.core.errors import UsageError
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape, pasteable

if TYPE_CHECKING:
    from hybrid.config import RunConfig
    from hybrid.log.folder import RunFolder
    from hybrid.running.plan import PlannedRun
    from hybrid.running.resolve import ResolvedRun
    from hybrid.scoring.reports import ComparisonReport

    Show = Callable[[ComparisonReport, Sequence[Path]], None]

DEFAULT_SOLVER = "controller"
# Options shown only by `--help-all`, in addition to the rare options of `hybrid run`.
RARE = RARE_BESIDE_RUN | {"margin", "path", "device"} | {f"form_{form}" for form in FORMS if form != "json"}


@click.command("study", cls=Grouped, rare=RARE)
@click.argument("benchmark", required=False, shell_complete=types.benchmarks)
@click.option(
    "--solver",
    type=types.SOLVER,
    default="controller",
    show_default=True,
    shell_complete=types.solvers,
    help="The solver with tools.",
)
@click.option(
    "--depth",
    type=click.Choice(["quick", "full"]),
    default="quick",
    show_default=True,
    help=(
        "full adds runs without the loop, without images, with outputs of other questions, and with one form of output."
    ),
)
@click.option("-o", "--out", type=types.ANY_PATH, help="Folder of the study, with a run for each cell.")
@shared.margin
@click.option(
    "--recorded",
    type=types.ANY_FILE,
    multiple=True,
    metavar="FILE",
    help="Files with recorded results: first without tools, then with tools.",
)
@form_options
@logging_options_of
def command(form: str | None, **options: Any) -> int:
    """Where does the gain from tools come from? This command runs the settings that show it, and reports the result.

    \b
    Examples:
      hybrid study blink --data DIR --model openai:gpt-4o -o runs/study --dry-run
      hybrid study blink --data DIR --model openai:gpt-4o -o runs/study --depth full
      hybrid study --recorded without.csv --recorded with.csv
    \f
    Each cell is an ordinary run in OUT. The same command resumes where it stopped and asks nothing twice; a study of
    depth quick is continued by depth full. The gain is split exactly into gain and harm, each on
    questions with a call and without (`docs/study.md` has the formulas and a worked example).

    --run-max-calls, -tokens, -seconds and -cost are for all cells together. Exit code 0 if nothing failed, 2 for a
    usage error, 3 if questions failed or were left open.
    """
    form = form or TEXT[options["tables"]]
    if options["recorded"]:
        return _recorded(options["recorded"], options["benchmark"], form)
    if options["benchmark"] is None or options["out"] is None:
        raise UsageError("give BENCHMARK and --out DIR, or two files with --recorded")
    from hybrid.plugins.registry import load_solver
    from hybrid.running.study import cells_of, leave_out_other_words
    from hybrid.solving.styles import PLAIN, fitting

    solver = options["solver"]
    if load_solver(solver).role != "hybrid":
        raise UsageError(f"--solver {solver} is not a solver with tools, so there is no gain to explain")
    config = run_config(click.get_current_context(), {"solver": (solver,)})
    fit = fitting(config.model)
    style = fit.name if config.tool_style == PLAIN.name and not fit.is_plain else ""
    cells, lacking = leave_out_other_words(cells_of(options["depth"], solver, style), config, options["out"])
    if lacking:
        tell(
            "note: other-words is not asked, because these tools have no second wording (Tool.wording): "
            f"{', '.join(lacking)}"
        )
    if options["dry_run"]:
        from hybrid.running.cost_estimate import ManyEstimate

        runs = {cell.name: cell.config(config, options["out"]) for cell in cells}
        return show_estimate(ManyEstimate(estimated(runs, prepared_cell)), form)
    return ask_cells(cells, config, options, partial(_print_study, form, options["tables"]))


# A study sets the form of tool outputs itself.
command.params += lacking_options(command, "config", "tool_output", "show")


def ask_cells(cells: Sequence[PlannedRun], config: RunConfig, options: Mapping[str, Any], show: Show) -> int:
    """Ask the open questions of every cell of a study, then show the results; returns the exit code.

    Args:
        cells: the main run first.
        config: the options that all cells share.
        options: those of the command: the folder `out`, `allow_failed` and optionally `unanswered` of the comparison.
        show: prints the comparison of the cells that have answers; takes their folders; not called without answers.
    """
    from hybrid.log.folder import RunFolder, refuse_foreign_beside
    from hybrid.running.study import calls_tools

    out: Path = options["out"]
    refuse_foreign_beside(out, (*(cell.name for cell in cells), "site"))
    main = cells[0]

    def prepare_run(cell: PlannedRun) -> ResolvedRun | None:
        if cell.pictures and (
            reason := _missing_pictures_reason(cell, RunFolder(main.folder(out)), main.changes["solvers"][0])
        ):
            tell(f"note: {cell.name} is not asked, because {reason} (run {main.folder(out)})")
            return None
        if cell.calls and not calls_tools(main.folder(out), main.changes["solvers"][0], cell.calls):
            return None
        return prepared_cell(cell.config(config, out))

    def compared(results: AskedRuns) -> Sequence[str]:
        from hybrid.scoring.reports import compare_paths

        places = [(cell.folder(out), cell.changes["solvers"]) for cell in cells]
        answered_folders = [
            place for place, solvers in places if place.is_dir() and any(map(RunFolder(place).finished, solvers))
        ]
        if not answered_folders:
            return results.lines
        rules: dict[str, Any] = {name: options.get(name) for name in ("unanswered", "margin")}
        report = compare_paths(answered_folders, **rules, allow_failed=options["allow_failed"])
        show(report, answered_folders)
        return [*results.lines, *report.failed, *_unanswerable(report)]

    runs = {f"{cell.name} ({cell.about})": partial(prepare_run, cell) for cell in cells}
    return ask_and_show(runs, config.run_limits, [out], compared)


def _unanswerable(report: ComparisonReport) -> Iterator[str]:
    """Yield the questions that failed permanently, such as those that a recording lacks; others are asked again."""
    from hybrid.core.types import Outcome

    for solver in report.solvers:
        for score in solver.scores:
            if score.outcome.failed and score.outcome is not Outcome.OUTAGE:
                yield f"{score.id} ({solver.solver}): {solver.reasons.get(score.id, score.outcome.value)}"


def _missing_pictures_reason(cell: PlannedRun, run: RunFolder, solver: str) -> str:
    """Return why a cell cannot show the main run's tool output in its own form; empty if it can."""
    from hybrid.scoring.attempt_facts import lacks_pictures, questions_with_pictures

    if lacks_pictures(run, solver):
        return "no tool made a picture"
    if cell.changes.get("show") == "image" and not questions_with_pictures(run, solver):
        return "no question has a picture in every tool output"
    return ""


def prepared_cell(config: RunConfig, *, dry: bool = False) -> ResolvedRun:
    """Resolve the run of a cell. Also raises `UsageError` if its answers are hidden, before anything is paid for."""
    run = prepared(config, dry=dry)
    split = run.mounted.source.split
    if split in run.benchmark.card.hidden_splits:
        raise UsageError(
            f"the answers of the split {split!r} of {run.benchmark.card.short_title} are hidden, so "
            "a study has nothing to compare: use `hybrid run`"
        )
    return run


def study_as_json(report: ComparisonReport, folders: Sequence[Path]) -> str:
    """Return the comparison of a study as a JSON object, with the folder of each cell that has answers."""
    return json.dumps({"study": {path.name: str(path) for path in folders}, **report.as_json()})


def _print_study(form: str, shape: Shape, report: ComparisonReport, folders: Sequence[Path]) -> None:
    """Print the conclusion and the tables of a study."""
    from hybrid.cli._output import paint_head
    from hybrid.display.tables import RENDERERS
    from hybrid.scoring.headline import flag_captions
    from hybrid.scoring.study_tables import study_tables

    if form == "json":
        click.echo(study_as_json(report, folders))
    elif form == "csv":
        click.echo(report.render(form), nl=False)
    else:
        tables = "\n".join(map(RENDERERS[form], study_tables(report.sections)))
        tables = flag_captions(tables, report.solvers) if form == "latex" else tables
        click.echo(f"{paint_head(report.render(form), form)}\n{tables}", nl=False)
        click.echo(pasteable(("hybrid", "report", *map(str, folders), "-o", "site"), shape, "\nevery question: "))


def _recorded(files: Sequence[Path], benchmark: str | None, form: str) -> int:
    """Print the decomposition of results from elsewhere."""
    from hybrid.scoring.recorded_pair import decomposed, read_pair

    if benchmark is not None:
        raise UsageError("--recorded reads files and asks no questions: leave BENCHMARK out")
    if len(files) != 2:
        raise UsageError("--recorded: give two files, first the one without tools, then the one with tools")
    pair = read_pair(*files)
    report = decomposed(pair, *(file.stem for file in files))
    click.echo(json.dumps(report.as_json()) if form == "json" else report.render(form), nl=form == "json")
    for line in pair.missing:
        tell(f"note: {line}")
    return 0
