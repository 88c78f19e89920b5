"""`hybrid ablate`: leave out or add one tool at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hybrid.cli import _complete
from hybrid.cli._configured import options_of
from hybrid.cli._help import Grouped
from hybrid.cli._logging_options import told_options
from hybrid.cli._many import PlannedRun, ask_all, prepared, show_estimate, tell_interrupted
from hybrid.cli._option_types import SOLVER
from hybrid.cli._run_options import config_of
from hybrid.cli._table_options import FORMS, form_options
from hybrid.cli._tool_path import tool_path_option
from hybrid.cli.run import asked
from hybrid.cli.run import command as run_command
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.config import RunConfig
    from hybrid.running.many import Ablation

OWN = frozenset({"benchmark", "config", "solver", "out", "as_json", "verbose", "quiet", "debug"})
"""Options of `hybrid run` that are others here."""
HEEDED = frozenset(
    {"report", "solver", "abstain", "allow_failed", "tables", "verbose", "quiet", "debug"}
    | {f"form_{form}" for form in FORMS}
)
"""Options that --report heeds."""
DEFAULT_SOLVER = "controller"
RARE = frozenset(
    {
        "setting",
        "max_tokens",
        "model_arg",
        "weights",
        "tool_output",
        "tool_path",
        "max_turns",
        "concurrency",
        "form_csv",
        "form_latex",
    }
)
"""Options of `hybrid run` that the short help of an ablation leaves out, besides those that it leaves out there."""


@click.command("ablate", cls=Grouped, rare=RARE)
@click.argument("benchmark", required=False, shell_complete=_complete.benchmarks)
@click.option(
    "--solver",
    type=SOLVER,
    shell_complete=_complete.solvers,
    help=f"One that offers a model tools.  [default: {DEFAULT_SOLVER}]",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder of the ablation, with a run in each folder.")
@click.option("--leave-out/--no-leave-out", default=True, help="A run without each tool.  [default: leave-out]")
@click.option("--add-one", is_flag=True, help="Also a run with each tool alone.")
@click.option(
    "--vary",
    shell_complete=_complete.tool_lists,
    metavar="A,B",
    help="Leave out or add only these.  [default: every tool offered]",
)
@click.option(
    "--report",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True),
    help="Only print the ablation in this folder. Heeds --solver, --abstain, --allow-failed and the forms.",
)
@form_options
@told_options
@tool_path_option
def command(form: str | None, **options: Any) -> int:
    """Ask the same questions with every tool, without each tool, and without any.

    \b
    Examples:
      hybrid ablate blink --data DIR --model openai:gpt-4o --limit 200 -o runs/ablation --dry-run
      hybrid ablate blink --data DIR --model openai:gpt-4o --tools depth,crop,ocr --add-one -o runs/ablation
      hybrid ablate blink --data sample --model embedded --backend classical --vary depth -o runs/depth
      hybrid ablate --report runs/ablation --markdown
    \f
    Each is an ordinary run in OUT: `full`, `none`, `without-TOOL`, and with --add-one `only-TOOL`. The tools offered
    are those of --tools, or the benchmark's, less those that cannot answer here; everything else is the same in all
    runs. The same command goes on where it stopped and asks nothing twice; `hybrid ablate --report OUT` prints without
    asking.

    In `none` the solver offers no tool (--tools none): the controller's prompt mentions no tools, and it asks as the
    MLLM alone does. A tool that is left out may still be called by another tool that needs it: the command says which.
    Where two tools give the same evidence, leaving out one of them changes little; --add-one shows each alone.

    --run-max-calls, -tokens, -seconds and -cost are for all runs of the command together. Exit code 0 if nothing
    failed, 2 for a usage error, 3 if questions failed or were left open.
    """
    form = form or TEXT[options["tables"]]
    if options["report"] is not None:
        if options["benchmark"] is not None or options["out"] is not None:
            raise UsageError("--report prints what is there: give neither a benchmark nor --out with it")
        if unheeded := _unheeded(click.get_current_context()):
            raise UsageError(f"--report prints what is there: leave out {', '.join(unheeded)}")
        return _show_report(options["report"], options["solver"], options, form, left=0)
    if options["benchmark"] is None or options["out"] is None:
        raise UsageError("give BENCHMARK and --out DIR, or --report DIR to print what is there")
    from hybrid.registry import load_solver
    from hybrid.running.many import ablation
    from hybrid.running.resolve import offered_tools

    options["solver"] = options["solver"] or DEFAULT_SOLVER
    given = {**options_of(click.get_current_context(), run_command), "solver": [options["solver"]]}
    config = config_of({**options, "solver": (options["solver"],)}, given)
    if not load_solver(options["solver"]).offers_tools:
        raise UsageError(f"--solver {options['solver']} offers a model no tools: there is nothing to leave out")
    tools = offered_tools(config)
    vary = None if options["vary"] is None else [name.strip() for name in options["vary"].split(",") if name.strip()]
    tools_offered = [tool.card.name for tool in tools.tools_offered]
    plan = ablation(tools_offered, vary, leave_out=options["leave_out"], add_one=options["add_one"])
    notes = plan.still_called(tools)
    if options["dry_run"]:
        return _dry_run(plan, config, notes, form)
    for line in notes:
        tell(f"note: {line}")
    return _carried_out(plan, config, options, form)


command.params += [option for option in run_command.params if option.name not in OWN]


def _unheeded(context: click.Context) -> list[str]:
    """The options of the command line that say how to ask, which printing does not."""
    return [
        option.opts[0]
        for option in context.command.params
        if option.name not in HEEDED
        and option.name is not None
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]


def _carried_out(plan: Ablation, config: RunConfig, options: Mapping[str, Any], form: str) -> int:
    """Ask what is open in every run, then print all of them, where there is anything."""
    from hybrid.cli.score import name_failed
    from hybrid.log.folder import RunFolder
    from hybrid.running.many import FULL
    from hybrid.running.signals import Interrupted

    out: Path = options["out"]
    runs = [PlannedRun(variant.words, variant.config(config, out)) for variant in plan.variants]
    try:
        ends = ask_all(runs, config.run_limits, asked)
    except Interrupted as interrupted:
        return tell_interrupted(interrupted, str(out))
    if not RunFolder(out / FULL).finished(options["solver"]):
        name_failed([f"{question}: {why}" for question, why in ends.failures.items()])
        return 3
    return _show_report(out, options["solver"], options, form, left=ends.left + ends.waiting, failures=ends.failures)


def _dry_run(plan: Ablation, config: RunConfig, notes: tuple[str, ...], form: str) -> int:
    import asyncio

    from hybrid.running.estimate import estimate
    from hybrid.running.many import ManyEstimate

    assert config.out is not None  # noqa: S101 - `command` has asked for it
    runs = {}
    for variant in plan.variants:
        runs[variant.name] = asyncio.run(estimate(prepared(variant.config(config, config.out), dry=True)))
    return show_estimate(ManyEstimate(runs, str(config.out), notes), form)


def _show_report(
    out: Path,
    solver: str | None,
    options: Mapping[str, Any],
    form: str,
    *,
    left: int,
    failures: Mapping[str, str] | None = None,
) -> int:
    """Print what lies there; the exit code."""
    from hybrid.cli.score import name_failed
    from hybrid.scoring.ablation import ablation_at

    report = ablation_at(out, solver, {"abstain": options["abstain"], "allow_failed": options["allow_failed"]})
    click.echo(json.dumps(report.as_json()) + "\n" if form == "json" else report.render(form), nl=False)
    reasons = {**report.failures, **(failures or {})}
    failed = [*report.damage, *(f"{question}: {why}" for question, why in reasons.items())]
    name_failed(failed)
    return 3 if failed or left else 0
