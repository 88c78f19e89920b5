"""Prepares and asks the runs of one command, one or several under one budget, shows them, and returns the exit code.

Every run is an ordinary one: in the folder derived from its configuration, or in --out, named after its choices. In a
matrix, a solver whose answers do not depend on the differences between two runs is asked only in the first of these
runs. At its end the command prints one comparison per benchmark.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli._progress import ask_with_bars
from hybrid.cli._run_config import config_of
from hybrid.cli._sources import RunOptions
from hybrid.core.errors import HybridError, UsageError
from hybrid.core.files import advice_on
from hybrid.core.repetitions import word_of
from hybrid.core.secrets import redact
from hybrid.core.types import Json
from hybrid.display.notes import is_shown, tell
from hybrid.display.terminal import TEXT, folded, how_many, pasteable

if TYPE_CHECKING:
    from hybrid.config import RunConfig, RunLimits
    from hybrid.log.folder import RunFolder
    from hybrid.running.cost_estimate import CostEstimate, ManyEstimate
    from hybrid.running.resolve import ResolvedRun
    from hybrid.running.run import RunEnd
    from hybrid.scoring.reports import ComparisonReport
    from hybrid.solving.budgets import RunMeter

    # Prints the results of the runs; yields a line for each failure.
    Show = Callable[["AskedRuns"], Iterable[str]]

AGAIN = "run it again to continue"


def program() -> tuple[str, ...]:
    """Return the words that start this program: with `uv run` the command is not on the shell's path."""
    return ("uv", "run", "hybrid") if "UV" in os.environ else ("hybrid",)


@contextmanager
def nothing_asked_yet() -> Iterator[None]:
    """End the command if Ctrl+C interrupts the preparation in this block, with the command that starts it again."""
    try:
        yield
    except KeyboardInterrupt:
        again = redact(shlex.join([*program(), *sys.argv[1:]]))
        click.echo(f"interrupted during the preparation, before anything was asked; to start again: {again}", err=True)
        click.get_current_context().exit(130)


def prepared(config: RunConfig, *, dry: bool = False) -> ResolvedRun:
    """Resolve the run. Raises `UsageError` and `DataError` as `prepare` does, and also for unreadable files."""
    from hybrid.core.images import home
    from hybrid.running.resolve import prepare

    try:
        return prepare(config, dry=dry, forks=True)
    except OSError as error:
        reason = f"{error.strerror or error}{advice_on(error)}"
        raise UsageError(f"{error.filename or home()} cannot be read or written: {reason}") from error


@dataclass
class AskedRuns:
    """The results of the runs so far."""

    done: list[str] = field(default_factory=list)
    answered: int = 0
    # Number of questions that are still open, without failed questions.
    left: int = 0
    # Number of runs that were not started.
    waiting: int = 0
    unneeded: int = 0
    # The error by question and run.
    failures: dict[str, str] = field(default_factory=dict)
    # Folders created by this command: those without an answer are removed if the model cannot be asked at all.
    created: list[RunFolder] = field(default_factory=list)
    # Why the command stopped early; None if it did not.
    reason: HybridError | str | None = None

    @property
    def lines(self) -> list[str]:
        """A line for each failure."""
        return [f"{question}: {reason}" for question, reason in self.failures.items()]

    def remove_unanswered(self) -> None:
        """Remove the created folders without an answer, and the default folder if nothing else is in it."""
        from hybrid.running.resolve import RUNS

        for folder in self.created:
            folder.remove_unanswered()
        with suppress(OSError):
            RUNS.rmdir()

    def add(self, run: ResolvedRun, end: RunEnd, name: str) -> None:
        """Record the end of a run; a single run has no name and is listed by its solvers."""
        self.done.append(name)
        self.answered += end.answered
        self.left += sum(len(run.open_questions(solver)) for solver in run.solvers) - len(end.failures)
        for solver_name in [name] if name else run.solvers:
            self.failures |= {f"{broken.id} ({solver_name})": broken.error for broken in run.questions.broken}
        for failure in end.failures:
            parts = ((failure.solver if len(run.solvers) > 1 or not name else ""), name)
            self.failures[f"{failure.id} ({', '.join(filter(None, parts))})"] = failure.error
        if end.stopped is not None:
            self.reason = end.stopped
        elif spent := run.resources.run_meter.spent():
            self.reason = f"the budget of {spent} is spent"


def ask_and_show(
    runs: Mapping[str, Callable[[], ResolvedRun | None]], limits: RunLimits, folders: Sequence[Path], show: Show
) -> int:
    """Ask the open questions of every run, until the common budget is spent; show the results; return the exit code.

    Args:
        runs: functions that make each run, by name, in order; a single run has no name; None skips a run.
        limits: budget of all runs together.
        folders: folders in which an interruption leaves finished answers.
        show: prints the results, unless an error ended the command.

    Raises:
        UsageError: a run cannot be made, and nothing was answered before.
        HybridError: a component of a run ended the program.
    """
    from hybrid.running.batching import batches_still_running, left_in
    from hybrid.running.process import Interrupted
    from hybrid.solving.budgets import RunMeter

    meter, results = RunMeter(limits), AskedRuns()
    try:
        for number, (name, make) in enumerate(runs.items(), 1):
            place = f"run {number} of {len(runs)}, {name}"
            if results.reason is not None:
                break
            if (run := make()) is None:
                results.unneeded += 1
                tell(f"{place}: left out, because it would repeat a run that was already asked")
            else:
                _ask(run, meter, results, name, place)
    except Interrupted as interrupted:
        places, command = ", ".join(map(str, folders)), redact(shlex.join([*program(), *sys.argv[1:]]))
        for warning in filter(None, (words(place) for place in folders for words in (batches_still_running, left_in))):
            click.echo(warning, err=True)
        click.echo(f"{interrupted}; finished answers are saved in {places}; to resume: {command}", err=True)
        return interrupted.exit_code
    except UsageError:
        results.remove_unanswered()
        raise
    if isinstance(results.reason, UsageError) and not results.answered:
        results.remove_unanswered()
        raise results.reason
    results.waiting = len(runs) - len(results.done) - results.unneeded
    if results.reason is not None and (results.left or results.waiting):
        _print_stop(results, len(runs))
    failed = list(dict.fromkeys(show(results)))
    from hybrid.cli._output import print_failures

    print_failures(failed)
    return 3 if failed or results.left or results.waiting else 0


def _print_stop(results: AskedRuns, runs: int) -> None:
    """Print the number of open questions and runs, and why the command stopped."""
    waiting = f" and {results.waiting} of {runs} runs not started" if results.waiting else ""
    # Some reasons already say what to do.
    more = "" if AGAIN in str(results.reason) else f"; finished answers are saved: {AGAIN}"
    click.echo(redact(f"stopped with {how_many(results.left)} open{waiting}: {results.reason}{more}"), err=True)


def _ask(run: ResolvedRun, meter: RunMeter, results: AskedRuns, name: str, place: str) -> None:
    """Ask one run until it is complete."""
    if name:
        # Import here, because scoring loads numpy, which a run of a model alone does not need.
        from hybrid.scoring.runs import refuse_hidden

        refuse_hidden(run.benchmark, run.mounted.source.split)
        for label in () if results.done else run.opened:
            tell(f"note: {label}")
        waiting = sum(len(run.open_questions(solver)) for solver in run.solvers)
        total = len(run.sound) * len(run.solvers)
        tell(f"{place}: {waiting} of {how_many(total)} open, {run.folder.path}")
    run = replace(run, resources=replace(run.resources, run_meter=meter))
    if not run.folder.path.exists():
        results.created.append(run.folder)
    results.add(run, ask_with_bars(run), name)
    for notice in run.service.notices:
        if not is_shown(notice):
            tell(f"note: {notice}")


def show_estimate(estimate: CostEstimate | ManyEstimate, form: str) -> int:
    """Print the estimate of one or several runs; return the exit code."""
    click.echo(json.dumps(estimate.as_json()) if form == "json" else estimate.as_text(form))
    return 2 if estimate.missing else 0


def estimated(runs: Mapping[str, RunConfig], resolve: Callable[..., ResolvedRun] = prepared) -> dict[str, CostEstimate]:
    """Return the estimate of each run, resolved by `resolve(config, dry=True)`."""
    from hybrid.running.estimate import estimate

    return {name: asyncio.run(estimate(resolve(config, dry=True))) for name, config in runs.items()}


# Runs of a matrix


@dataclass(frozen=True)
class _Planned:
    """One run of a matrix, which was checked without sending requests. It keeps no data in memory."""

    options: RunOptions
    config: RunConfig
    folder: Path
    benchmark: str
    # The solvers that this run asks.
    solvers: tuple[str, ...]
    # Solvers that an earlier run asks, with that run's folder: their answers do not depend on the runs' differences.
    elsewhere: Mapping[str, Path]
    missing: tuple[str, ...]
    # The estimate; set only in a dry run.
    estimate: CostEstimate | None

    @property
    def label(self) -> str:
        """The run's choices, and the folders of solvers that other runs ask."""
        return "; ".join((self.options.label, *(f"{name} is in {folder}" for name, folder in self.elsewhere.items())))

    def as_json(self, results: AskedRuns) -> Json:
        """Return the run for the output of `--json`."""
        return {
            "run": str(self.folder),
            "chosen": dict(self.options.distinguishing),
            "solvers": list(self.solvers),
            "elsewhere": {name: str(folder) for name, folder in self.elsewhere.items()},
            "options": dict(self.config.options_as_used),
            "begun": self.options.label in results.done,
        }


def run_matrix(runs: Sequence[RunOptions], options: Mapping[str, Any]) -> int:
    """Check every run before asking, then ask them one after the other and compare; return the exit code.

    Args:
        runs: the options of each run.
        options: those of the command, which are equal in every run.

    Raises:
        UsageError: two runs are equal, or the answers of a run are hidden; also the errors of `prepare`.
    """
    from hybrid.running.cost_estimate import ManyEstimate

    with nothing_asked_yet():
        plan = _check_runs(runs, dry=options["dry_run"])
    if options["dry_run"]:
        estimates = {planned.options.name: planned.estimate for planned in plan if planned.estimate is not None}
        return show_estimate(ManyEstimate(estimates), "json" if options["json"] else TEXT[options["tables"]])
    if missing := dict.fromkeys(line for planned in plan for line in planned.missing):
        raise UsageError("; ".join(missing))
    makers = {planned.options.label: partial(prepared, planned.config) for planned in plan if planned.solvers}
    folders = [planned.folder for planned in plan]
    return ask_and_show(makers, plan[0].config.run_limits, folders, partial(_compared, plan, options))


def _check_runs(runs: Sequence[RunOptions], *, dry: bool) -> list[_Planned]:
    """Check every run without asking; with `dry`, also estimate it. Raises like `run_matrix`."""
    from hybrid.running.estimate import estimate
    from hybrid.running.plan import answers_rest_on, changed
    from hybrid.scoring.runs import refuse_hidden

    plan: list[_Planned] = []
    # Maps the digest of everything on which a solver's answers depend to the folder with these answers.
    first: dict[str, Path] = {}
    for run_options in runs:
        tell(f"checking run {len(plan) + 1} of {len(runs)}: {run_options.label}")
        config = config_of(run_options.values, run_options.recorded)
        if config.out is not None:
            config = replace(config, out=config.out / run_options.name)
        run = prepared(config, dry=True)
        folder = run.folder.path
        refuse_hidden(run.benchmark, run.mounted.source.split)
        if same := [other for other in plan if other.folder == folder]:
            pair = f"{same[0].options.label} and {run_options.label}"
            raise UsageError(f"{pair} are the same run, {folder}: the option that differs between them has no effect")
        # Solvers asked in an earlier run are not asked again.
        places = {name: first.setdefault(answers_rest_on(run, name), folder) for name in run.solvers}
        elsewhere = {name: other_folder for name, other_folder in places.items() if other_folder != folder}
        for name, other_folder in elsewhere.items():
            tell(f"note: {name} would answer as in {other_folder}: it is asked only there")
        run = replace(run, solvers={name: solver for name, solver in run.solvers.items() if name not in elsewhere})
        config = changed(config, {"solvers": tuple(dict.fromkeys(map(word_of, run.solvers)))})
        facts = (run_options, config, folder, run.benchmark.card.name, tuple(run.solvers), elsewhere, run.missing)
        plan.append(_Planned(*facts, asyncio.run(estimate(run)) if dry else None))
    return plan


def _compared(plan: Sequence[_Planned], options: Mapping[str, Any], results: AskedRuns) -> Sequence[str]:
    """Print the comparison within each benchmark, the folders, and the commands that print every table."""
    from hybrid.log.folder import RunFolder
    from hybrid.scoring.reports import compare_paths

    counting = {name: options[name] for name in ("protocol", "unanswered", "allow_failed")}
    reports: dict[str, ComparisonReport | None] = {}
    for benchmark in dict.fromkeys(planned.benchmark for planned in plan):
        answered_paths = [
            planned.folder / name
            for planned in plan
            for name in planned.solvers
            if planned.benchmark == benchmark
            and planned.options.label in results.done
            and RunFolder(planned.folder).finished(name)
        ]
        reports[benchmark] = compare_paths(answered_paths, **counting) if answered_paths else None
    asking, tables = [planned for planned in plan if planned.solvers], options["tables"]
    if options["json"]:
        comparisons: dict[str, Json] = {name: report.as_json() if report else None for name, report in reports.items()}
        several = (
            {"comparisons": comparisons} if len(comparisons) > 1 else {"comparison": next(iter(comparisons.values()))}
        )
        click.echo(json.dumps({"runs": [planned.as_json(results) for planned in plan], **several}))
    elif any(reports.values()):
        click.echo("\n".join(report.render(TEXT[tables]) for report in reports.values() if report), nl=False)
        click.echo(
            folded("\nruns\n" + "\n".join(f"  {planned.folder}  {planned.label}" for planned in asking) + "\n", tables)
        )
        for benchmark in reports:
            places = [str(planned.folder) for planned in asking if planned.benchmark == benchmark]
            click.echo(pasteable(("hybrid", "compare", *places, "--all"), tables, "every table: "))
    return [*(line for report in reports.values() if report for line in report.failed), *results.lines]
