"""`hybrid ablate`: omits or adds one tool at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hybrid.cli import _option_types as types
from hybrid.cli._configured import RARE_BESIDE_RUN, run_config
from hybrid.cli._help import Grouped
from hybrid.cli._options import FORMS, form_options, logging_options_of
from hybrid.cli._output import paint_head, print_failures
from hybrid.cli._several_runs import AskedRuns, ask_and_show, estimated, prepared, show_estimate
from hybrid.cli.run import lacking_options
from hybrid.core.errors import UsageError
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT
from hybrid.log.folder import RunFolder, refuse_foreign_beside

if TYPE_CHECKING:
    from hybrid.config import RunConfig
    from hybrid.running.ablation import Ablation

# Options that --report uses.
HEEDED = frozenset(
    {"report", "solver", "unanswered", "allow_failed", "tables", "verbose", "quiet", "debug"}
    | {f"form_{form}" for form in FORMS}
)
DEFAULT_SOLVER = "controller"
# Additional options of `hybrid run` that the short help of an ablation omits.
RARE = RARE_BESIDE_RUN | {"tool_output", "path", "form_csv", "form_latex"}


@click.command("ablate", cls=Grouped, rare=RARE)
@click.argument("benchmark", required=False, shell_complete=types.benchmarks)
@click.option(
    "--solver",
    type=types.SOLVER,
    shell_complete=types.solvers,
    help="The solver to examine; it must offer tools to the model.  [default: controller]",
)
@click.option("-o", "--out", type=types.ANY_PATH, help="Folder of the ablation; each run gets a folder in it.")
@click.option(
    "--leave-out/--no-leave-out",
    is_flag=True,
    default=True,
    help="For each tool, make a run without it.  [default: leave-out]",
)
@click.option("--add-one", is_flag=True, help="For each tool, also make a run with that tool alone.")
@click.option(
    "--vary",
    metavar="A,B",
    shell_complete=types.tool_lists,
    help="Leave out or add only these tools.  [default: every tool offered]",
)
@click.option(
    "--report",
    type=types.EXISTING_PATH,
    metavar="DIR",
    help="Print the existing ablation in this folder and ask nothing. Of the other options, it takes only --solver, "
    "--unanswered, --allow-failed and the output formats.",
)
@form_options
@logging_options_of
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
    are those of --tools, or the benchmark's, if they can answer on this machine; everything else is the same. The same
    command resumes where it stopped and asks nothing twice; `hybrid ablate --report OUT` prints without asking.

    In `none` the solver offers no tool (--tools none): the controller's prompt mentions no tools, and it asks as the
    MLLM alone does. A tool that is left out may still be called by another tool that needs it: the command prints
    which. If two tools give the same evidence, leaving out one of them changes little; --add-one shows each alone.

    --run-max-calls, -tokens, -seconds and -cost are for all runs of the command together. Exit code 0 if nothing
    failed, 2 for a usage error, 3 if questions failed or were left open.
    """
    form = form or TEXT[options["tables"]]
    if options["report"] is not None:
        if options["benchmark"] is not None or options["out"] is not None:
            raise UsageError("--report prints an existing ablation: give neither a benchmark nor --out with it")
        if unheeded := _ignored_options(click.get_current_context()):
            raise UsageError(f"--report prints an existing ablation: leave out {', '.join(unheeded)}")
        failed = _show(options["report"], options["solver"], options, form)
        print_failures(failed)
        return 3 if failed else 0
    if options["benchmark"] is None or options["out"] is None:
        raise UsageError("give BENCHMARK and --out DIR, or --report DIR to print an existing ablation")
    from hybrid.plugins.registry import load_solver
    from hybrid.running.ablation import ablation
    from hybrid.running.resolve import offered_tools

    options["solver"] = options["solver"] or DEFAULT_SOLVER
    config = run_config(click.get_current_context(), {"solver": (options["solver"],)})
    if not load_solver(options["solver"]).offers_tools:
        raise UsageError(
            f"--solver {options['solver']} does not offer tools to a model, so there is nothing to leave out"
        )
    tools = offered_tools(config)
    vary = None if options["vary"] is None else [name.strip() for name in options["vary"].split(",") if name.strip()]
    tools_offered = [tool.card.name for tool in tools.tools_offered]
    plan = ablation(tools_offered, vary, leave_out=options["leave_out"], add_one=options["add_one"])
    return _ask_runs(plan, plan.still_called(tools), config, options, form)


command.params += lacking_options(command, "config")


def _ignored_options(context: click.Context) -> list[str]:
    """Return the options on the command line that only control asking, and that printing therefore ignores."""
    return [
        option.opts[0]
        for option in context.command.params
        if option.name not in HEEDED
        and option.name is not None
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]


def _ask_runs(plan: Ablation, notes: tuple[str, ...], config: RunConfig, options: Mapping[str, Any], form: str) -> int:
    """Ask the open questions of every run and print all results; with `dry_run` print the estimates."""
    from hybrid.running.ablation import FULL
    from hybrid.running.cost_estimate import ManyEstimate

    out: Path = options["out"]
    configs = {run.name: run.config(config, out) for run in plan.runs}
    if options["dry_run"]:
        return show_estimate(ManyEstimate(estimated(configs), str(out), notes), form)
    refuse_foreign_beside(out, configs)
    for line in notes:
        tell(f"note: {line}")

    def show(results: AskedRuns) -> Sequence[str]:
        if not RunFolder(out / FULL).finished(options["solver"]):
            return results.lines
        return _show(out, options["solver"], options, form, results.failures)

    runs = {run.about: partial(prepared, configs[run.name]) for run in plan.runs}
    return ask_and_show(runs, config.run_limits, [out], show)


def _show(
    out: Path, solver: str | None, options: Mapping[str, Any], form: str, failures: Mapping[str, str] | None = None
) -> list[str]:
    """Print the existing results; return a line for each failure, including those while asking."""
    from hybrid.scoring.ablation import ablation_at

    report = ablation_at(out, solver, {"unanswered": options["unanswered"], "allow_failed": options["allow_failed"]})
    text = json.dumps(report.as_json()) + "\n" if form == "json" else paint_head(report.render(form), form)
    click.echo(text, nl=False)
    reasons = {**report.failures, **(failures or {})}
    return [*report.damage, *(f"{question}: {reason}" for question, reason in reasons.items())]
