"""Several runs asked one after the other by one command, under one budget: `hybrid ablate`, `hybrid run --config`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from hybrid.errors import HybridError, UsageError
from hybrid.notes import tell
from hybrid.secrets import redact

if TYPE_CHECKING:
    from hybrid.config import RunConfig, RunLimits
    from hybrid.running.engine import Opener
    from hybrid.running.resolve import ResolvedRun
    from hybrid.running.run import RunEnd
    from hybrid.running.signals import Interrupted
    from hybrid.solving.budgets import RunMeter

    Ask = Callable[[ResolvedRun, Opener], RunEnd]
    """Asks what is open in one run, and shows it."""


AGAIN = "run it again to go on"


def stopped(what: str, reason: object) -> str:
    """The line that says what is open, why, and what to do, which a reason may say itself; without secrets."""
    more = "" if AGAIN in str(reason) else f"; what is finished is kept: {AGAIN}"
    return redact(f"stopped with {what}: {reason}{more}")


@dataclass(frozen=True)
class PlannedRun:
    """One of them, before anything is resolved."""

    words: str
    """What it is called where its failures and its progress are told."""
    config: RunConfig


@dataclass
class AskedRuns:
    """What has come of the runs so far."""

    done: list[str] = field(default_factory=list)
    answered: int = 0
    left: int = 0
    """Questions that are still open, besides those that failed."""
    waiting: int = 0
    """Runs that were not begun."""
    failures: dict[str, str] = field(default_factory=dict)
    reason: HybridError | str | None = None
    """Why it stopped before all was asked."""

    def add(self, run: ResolvedRun, end: RunEnd, name: str) -> None:
        """Take in how a run ended."""
        self.done.append(name)
        self.answered += end.answered
        self.left += sum(len(run.open_questions(solver)) for solver in run.solvers) - len(end.failures)
        self.failures |= {f"{broken.id} ({name})": broken.error for broken in run.broken}
        by_solver = len(run.solvers) > 1
        self.failures |= {
            f"{one.id} ({f'{one.solver}, ' if by_solver else ''}{name})": one.error for one in end.failures
        }
        spent = run.resources.run_meter.spent()
        if end.stopped is not None:
            self.reason = end.stopped
        elif spent:
            self.reason = f"the budget of {spent} is spent"


def ask_all(runs: Sequence[PlannedRun], limits: RunLimits, ask: Ask) -> AskedRuns:
    """Ask what is open in every run, until the budget of all together is spent; says on stderr where it stopped.

    Raises:
        Interrupted: a signal ended it.
        UsageError: a run cannot be made, and nothing was answered before.
        HybridError: something that a run uses ended the program.
    """
    from hybrid.solving.budgets import RunMeter

    meter = RunMeter(limits)
    found = AskedRuns()
    for number, planned in enumerate(runs, 1):
        if found.reason is not None:
            break
        _ask(planned, meter, found, f"run {number} of {len(runs)}", ask)
    if isinstance(found.reason, UsageError) and not found.answered:
        raise found.reason
    found.waiting = len(runs) - len(found.done)
    if found.reason is not None and (found.left or found.waiting):
        more = f" and {found.waiting} of {len(runs)} runs not begun" if found.waiting else ""
        click.echo(stopped(f"{found.left} questions open{more}", found.reason), err=True)
    return found


def _ask(planned: PlannedRun, meter: RunMeter, found: AskedRuns, place: str, ask: Ask) -> None:
    """One run, to its end."""
    from hybrid.engines import opener_of
    from hybrid.scoring.score import refuse_hidden

    run = prepared(planned.config)
    refuse_hidden(run.benchmark, run.mounted.source.split)
    if not found.done:
        for label in run.opened:
            tell(f"note: {label}")
    run = replace(run, resources=replace(run.resources, run_meter=meter))
    waiting = sum(len(run.open_questions(solver)) for solver in run.solvers)
    total = len(run.sound) * len(run.solvers)
    tell(f"{place}, {planned.words}: {waiting} of {total} questions open, {run.folder.path}")
    found.add(run, ask(run, opener_of(run.config)), planned.words)
    for notice in run.service.notices:
        tell(f"note: {notice}")


def prepared(config: RunConfig, *, dry: bool = False) -> ResolvedRun:
    """The run, resolved. Raises `UsageError` and `DataError` as `prepare` does, and for files that cannot be read."""
    from hybrid.images import home
    from hybrid.running.resolve import prepare

    try:
        return prepare(config, dry=dry)
    except OSError as error:
        raise UsageError(f"{error.filename or home()} cannot be read or written: {error.strerror or error}") from error


def tell_interrupted(interrupted: Interrupted, kept: str) -> int:
    """Say where what is finished lies and how to go on; the exit code."""
    say = redact(shlex.join(["hybrid", *sys.argv[1:]]))
    click.echo(f"{interrupted}; what is finished is kept in {kept}; to go on: {say}", err=True)
    return interrupted.exit_code
