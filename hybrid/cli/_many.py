"""Several runs asked one after the other by one command, under one budget: `hybrid ablate`, lists in a file, `A,B`.

Every run is an ordinary one: in the folder that its configuration derives, or under --out in one named by its choices.
In a matrix a solver whose answers rest on nothing in which two runs differ is asked in the first of them alone, and one
comparison for each benchmark ends the command.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli._configured import Configured, Variant, options_of
from hybrid.cli._run_options import config_of
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape, folded, pasteable
from hybrid.errors import HybridError, UsageError
from hybrid.repeats import word_of
from hybrid.secrets import redact
from hybrid.types import Json

if TYPE_CHECKING:
    from hybrid.config import RunConfig, RunLimits
    from hybrid.running.cost_estimate import CostEstimate
    from hybrid.running.engine import Opener
    from hybrid.running.many import ManyEstimate
    from hybrid.running.resolve import ResolvedRun
    from hybrid.running.run import RunEnd
    from hybrid.running.signals import Interrupted
    from hybrid.scoring.reports import ComparisonReport
    from hybrid.solving.budgets import RunMeter

    Ask = Callable[[ResolvedRun, Opener], RunEnd]
    """Asks what is open in one run, and shows it."""


AGAIN = "run it again to go on"


def stopped(what: str, reason: object) -> str:
    """The line that says what is open, why, and what to do, which a reason may say itself; without secrets."""
    more = "" if AGAIN in str(reason) else f"; what is finished is kept: {AGAIN}"
    return redact(f"stopped with {what}: {reason}{more}")


def tell_interrupted(interrupted: Interrupted, kept: str) -> int:
    """Say where the finished part lies and how to go on; the exit code."""
    from hybrid.running.batching import left_behind, left_in

    again = redact(shlex.join([*program(), *sys.argv[1:]]))
    for left in filter(None, (words(Path(place)) for place in kept.split(", ") for words in (left_behind, left_in))):
        click.echo(left, err=True)
    click.echo(f"{interrupted}; what is finished is kept in {kept}; to go on: {again}", err=True)
    return interrupted.exit_code


def program() -> tuple[str, ...]:
    """The words by which this program was started: `uv run` has it in an environment that no shell knows."""
    return ("uv", "run", "hybrid") if "UV" in os.environ else ("hybrid",)


def prepared(config: RunConfig, *, dry: bool = False) -> ResolvedRun:
    """The run, resolved. Raises `UsageError` and `DataError` as `prepare` does, and for files that cannot be read."""
    from hybrid.images import home
    from hybrid.running.resolve import prepare

    try:
        return prepare(config, dry=dry, forks=True)
    except OSError as error:
        raise UsageError(f"{error.filename or home()} cannot be read or written: {error.strerror or error}") from error


@dataclass(frozen=True)
class PlannedRun:
    """A run before anything is resolved, and its name in messages."""

    words: str
    config: RunConfig


@dataclass
class AskedRuns:
    """The results of the runs so far."""

    done: list[str] = field(default_factory=list)
    answered: int = 0
    left: int = 0
    """Questions that are still open, besides those that failed."""
    waiting: int = 0
    """Runs that were not begun."""
    failures: dict[str, str] = field(default_factory=dict)
    """The error by question and run."""
    reason: HybridError | str | None = None
    """Why it stopped before all was asked."""

    def add(self, run: ResolvedRun, end: RunEnd, name: str) -> None:
        """Record the end of a run."""
        self.done.append(name)
        self.answered += end.answered
        self.left += sum(len(run.open_questions(solver)) for solver in run.solvers) - len(end.failures)
        self.failures |= {f"{broken.id} ({name})": broken.error for broken in run.broken}
        by_solver = len(run.solvers) > 1
        self.failures |= {
            f"{one.id} ({f'{one.solver}, ' if by_solver else ''}{name})": one.error for one in end.failures
        }
        if end.stopped is not None:
            self.reason = end.stopped
        elif spent := run.resources.run_meter.spent():
            self.reason = f"the budget of {spent} is spent"


def ask_all(runs: Sequence[PlannedRun], limits: RunLimits, ask: Ask) -> AskedRuns:
    """Ask what is open in every run, until the common budget is spent; says on stderr where it stopped.

    Raises:
        Interrupted: a signal ended it.
        UsageError: a run cannot be made, and nothing was answered before.
        HybridError: something that a run uses ended the program.
    """
    from hybrid.solving.budgets import RunMeter

    meter = RunMeter(limits)
    asked = AskedRuns()
    for number, planned in enumerate(runs, 1):
        if asked.reason is not None:
            break
        _ask(planned, meter, asked, f"run {number} of {len(runs)}", ask)
    if isinstance(asked.reason, UsageError) and not asked.answered:
        raise asked.reason
    asked.waiting = len(runs) - len(asked.done)
    if asked.reason is not None and (asked.left or asked.waiting):
        more = f" and {asked.waiting} of {len(runs)} runs not begun" if asked.waiting else ""
        click.echo(stopped(f"{asked.left} questions open{more}", asked.reason), err=True)
    return asked


def _ask(planned: PlannedRun, meter: RunMeter, asked: AskedRuns, place: str, ask: Ask) -> None:
    """One run, to its end."""
    from hybrid.engines import opener_of
    from hybrid.scoring.runs import refuse_hidden

    run = prepared(planned.config)
    refuse_hidden(run.benchmark, run.mounted.source.split)
    if not asked.done:
        for label in run.opened:
            tell(f"note: {label}")
    run = replace(run, resources=replace(run.resources, run_meter=meter))
    waiting = sum(len(run.open_questions(solver)) for solver in run.solvers)
    total = len(run.sound) * len(run.solvers)
    tell(f"{place}, {planned.words}: {waiting} of {total} questions open, {run.folder.path}")
    asked.add(run, ask(run, opener_of(run.config)), planned.words)
    for notice in run.service.notices:
        tell(f"note: {notice}")


def show_estimate(estimate: ManyEstimate, form: str) -> int:
    """Print what all runs would take; the exit code."""
    click.echo(json.dumps(estimate.as_json()) if form == "json" else estimate.as_text(form))
    return 2 if estimate.missing else 0


# A matrix


@dataclass(frozen=True)
class _Planned:
    """One run of a matrix, checked without asking; nothing of its data is held."""

    variant: Variant
    run: PlannedRun
    folder: Path
    benchmark: str
    solvers: tuple[str, ...]
    """Those that this run asks."""
    elsewhere: Mapping[str, Path]
    """The solvers that an earlier run asks, with its folder: their answers rest on nothing in which the two differ."""
    missing: tuple[str, ...]
    estimate: CostEstimate | None
    """In a dry run."""

    @property
    def told(self) -> str:
        """Its choices, and which solvers are in another folder."""
        return "; ".join((self.variant.told, *(f"{name} is in {where}" for name, where in self.elsewhere.items())))

    def as_json(self, asked: AskedRuns) -> Json:
        """The run in the output of `--json`."""
        return {
            "run": str(self.folder),
            "chosen": dict(self.variant.chosen),
            "solvers": list(self.solvers),
            "elsewhere": {name: str(where) for name, where in self.elsewhere.items()},
            "options": dict(self.run.config.given),
            "begun": self.run.words in asked.done,
        }


def run_matrix(variants: Sequence[Variant], command: click.Command, ask: Ask) -> int:
    """Check every run before anything is asked, then ask them one after the other and compare; the exit code."""
    from hybrid.running.many import ManyEstimate
    from hybrid.running.signals import Interrupted

    assert isinstance(command, Configured)  # noqa: S101 - only such a command has variants
    plan: list[_Planned] = []
    first: dict[str, Path] = {}
    for variant in variants:
        context = command.context_of(variant)
        tell(f"checking run {len(plan) + 1} of {len(variants)}: {variant.told}")
        config = config_of(context.params, options_of(context))
        plan.append(_planned(variant, config, plan, first, dry=context.params["dry_run"]))
    options = context.params
    if options["dry_run"]:
        estimates = {one.variant.name: one.estimate for one in plan if one.estimate is not None}
        return show_estimate(ManyEstimate(estimates), "json" if options["as_json"] else TEXT[options["tables"]])
    if missing := dict.fromkeys(line for one in plan for line in one.missing):
        raise UsageError("; ".join(missing))
    try:
        asked = ask_all([one.run for one in plan if one.solvers], plan[0].run.config.run_limits, ask)
    except Interrupted as interrupted:
        return tell_interrupted(interrupted, ", ".join(str(one.folder) for one in plan))
    return _compared(plan, asked, options)


def _planned(
    variant: Variant, config: RunConfig, before: Sequence[_Planned], first: dict[str, Path], *, dry: bool
) -> _Planned:
    """A run of the matrix, less the solvers that an earlier run asks.

    Args:
        variant: its choices.
        config: its options.
        before: the earlier runs.
        first: for each digest of what answers rest on, the folder where they are asked; gets those of this run.
        dry: whether it is estimated.

    Raises:
        UsageError: it is one of the earlier runs, its answers are hidden, or as `prepare`.
    """
    from hybrid.running.estimate import estimate
    from hybrid.running.many import answers_rest_on
    from hybrid.scoring.runs import refuse_hidden

    if config.out is not None:
        config = replace(config, out=config.out / variant.name)
    run = prepared(config, dry=True)
    folder = run.folder.path
    refuse_hidden(run.benchmark, run.mounted.source.split)
    if same := [one for one in before if one.folder == folder]:
        both = f"{same[0].variant.told} and {variant.told}"
        raise UsageError(f"{both} are the same run, {folder}: what tells them apart counts for nothing")
    places = {name: first.setdefault(answers_rest_on(run, name), folder) for name in run.solvers}
    elsewhere = {name: where for name, where in places.items() if where != folder}
    for name, where in elsewhere.items():
        tell(f"note: {name} would answer as in {where}: it is asked there alone")
    run = replace(run, solvers={name: one for name, one in run.solvers.items() if name not in elsewhere})
    words = tuple(dict.fromkeys(map(word_of, run.solvers)))
    given = {**config.given, "solver": list(words)} if config.given else {}
    return _Planned(
        variant,
        PlannedRun(variant.told, replace(config, solvers=words, given=given)),
        folder,
        run.benchmark.card.name,
        tuple(run.solvers),
        elsewhere,
        run.missing,
        asyncio.run(estimate(run)) if dry else None,
    )


def _compared(plan: Sequence[_Planned], asked: AskedRuns, options: Mapping[str, Any]) -> int:
    from hybrid.cli.score import name_failed
    from hybrid.log.folder import RunFolder
    from hybrid.scoring.reports import compare_paths

    counting = {name: options[name] for name in ("protocol", "abstain", "allow_failed")}
    reports: dict[str, ComparisonReport | None] = {}
    for benchmark in dict.fromkeys(one.benchmark for one in plan):
        begun = [
            one.folder / name
            for one in plan
            for name in one.solvers
            if one.benchmark == benchmark and one.run.words in asked.done and RunFolder(one.folder).finished(name)
        ]
        reports[benchmark] = compare_paths(begun, **counting) if begun else None
    if options["as_json"]:
        comparisons: dict[str, Json] = {name: report.as_json() if report else None for name, report in reports.items()}
        several = (
            {"comparisons": comparisons} if len(comparisons) > 1 else {"comparison": next(iter(comparisons.values()))}
        )
        click.echo(json.dumps({"runs": [one.as_json(asked) for one in plan], **several}))
    elif any(reports.values()):
        _tell_compared(plan, reports, options["tables"])
    damage = [line for report in reports.values() if report for line in report.failed]
    failed = [*damage, *(f"{question}: {why}" for question, why in asked.failures.items())]
    name_failed(failed)
    return 3 if failed or asked.left or asked.waiting or not all(reports.values()) else 0


def _tell_compared(plan: Sequence[_Planned], reports: Mapping[str, ComparisonReport | None], tables: Shape) -> None:
    """The comparison within each benchmark, the folders, and the commands that print every table."""
    click.echo("\n".join(report.render(TEXT[tables]) for report in reports.values() if report), nl=False)
    made = [one for one in plan if one.solvers]
    runs_made = "\n".join(f"  {one.folder}  {one.told}" for one in made)
    click.echo(folded(f"\nruns\n{runs_made}\n", tables))
    for benchmark in reports:
        everything = ("hybrid", "compare", *(str(one.folder) for one in made if one.benchmark == benchmark), "--all")
        click.echo(pasteable(everything, tables, "every table: "))
