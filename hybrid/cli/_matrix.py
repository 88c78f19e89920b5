"""The runs of a matrix: lists of values in the file of `--config`, or benchmarks `A,B`; one comparison at the end.

Every run is an ordinary one: in the folder that its configuration derives, or under --out in one named by its choices.
A solver whose answers rest on nothing in which two runs differ is asked in the first of them alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli._configured import Configured, Variant, options_of
from hybrid.cli._several_runs import AskedRuns, PlannedRun, ask_all, prepared, tell_interrupted
from hybrid.display import TEXT, Shape, folded, pasteable
from hybrid.errors import UsageError
from hybrid.notes import tell
from hybrid.repeats import word_of
from hybrid.types import Json

if TYPE_CHECKING:
    from hybrid.cli._several_runs import Ask
    from hybrid.running.config import RunConfig
    from hybrid.running.estimate import CostEstimate
    from hybrid.scoring.reports import ComparisonReport


@dataclass(frozen=True)
class _Planned:
    variant: Variant
    run: PlannedRun
    folder: Path
    benchmark: str
    solvers: tuple[str, ...]
    """Those that this run asks."""
    elsewhere: Mapping[str, Path]
    """Those whose answers rest on nothing in which this run differs from an earlier one, with the folder of that."""

    @property
    def told(self) -> str:
        """Its choices, and which solvers are in another folder."""
        return "; ".join((self.variant.told, *(f"{name} is in {where}" for name, where in self.elsewhere.items())))


def run_matrix(variants: Sequence[Variant], command: click.Command, ask: Ask) -> int:
    """Check every run before anything is asked, then ask them one after the other and compare; the exit code."""
    from hybrid.cli._run_options import config_of
    from hybrid.running.estimate import estimate
    from hybrid.running.several import MatrixEstimate, answers_rest_on
    from hybrid.running.signals import Interrupted
    from hybrid.scoring.score import refuse_hidden

    assert isinstance(command, Configured)  # noqa: S101 - only such a command has variants
    plan: list[_Planned] = []
    first: dict[str, Path] = {}
    estimates: dict[str, CostEstimate] = {}
    missing: dict[str, None] = {}
    options: Mapping[str, Any] = {}
    for variant in variants:
        context = command.context_of(variant)
        options = context.params
        config = config_of(options, options_of(context))
        if config.out is not None:
            config = replace(config, out=config.out / variant.name)
        tell(f"checking run {len(plan) + 1} of {len(variants)}: {variant.told}")
        run = prepared(config, dry=True)
        refuse_hidden(run.benchmark, run.mounted.source.split)
        if same := [one for one in plan if one.folder == run.folder.path]:
            both = f"{same[0].variant.told} and {variant.told}"
            raise UsageError(f"{both} are the same run, {run.folder.path}: what tells them apart counts for nothing")
        places = {name: first.setdefault(answers_rest_on(run, name), run.folder.path) for name in run.solvers}
        elsewhere = {name: where for name, where in places.items() if where != run.folder.path}
        for name, where in elsewhere.items():
            tell(f"note: {name} would answer as in {where}: it is asked there alone")
        run = replace(run, solvers={name: one for name, one in run.solvers.items() if name not in elsewhere})
        planned = PlannedRun(variant.told, _asking(config, tuple(run.solvers)))
        plan.append(_Planned(variant, planned, run.folder.path, run.benchmark.card.name, tuple(run.solvers), elsewhere))
        missing |= dict.fromkeys(run.missing)
        if options["dry_run"]:
            estimates[variant.name] = asyncio.run(estimate(run))
    if options["dry_run"]:
        told = MatrixEstimate(estimates)
        click.echo(json.dumps(told.as_json()) if options["as_json"] else told.as_text(TEXT[options["tables"]]))
        return 2 if told.missing else 0
    if missing:
        raise UsageError("; ".join(missing))
    try:
        found = ask_all([one.run for one in plan if one.solvers], plan[0].run.config.run_limits, ask)
    except Interrupted as interrupted:
        return tell_interrupted(interrupted, ", ".join(str(one.folder) for one in plan))
    return _compared(plan, found, options)


def _asking(config: RunConfig, names: Sequence[str]) -> RunConfig:
    """The configuration with these solvers alone."""
    words = tuple(dict.fromkeys(map(word_of, names)))
    given = {**config.given, "solver": list(words)} if config.given else {}
    return replace(config, solvers=words, given=given)


def _compared(plan: Sequence[_Planned], found: AskedRuns, options: Mapping[str, Any]) -> int:
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
            if one.benchmark == benchmark and one.run.words in found.done and RunFolder(one.folder).finished(name)
        ]
        reports[benchmark] = compare_paths(begun, **counting) if begun else None
    if options["as_json"]:
        runs: list[Json] = [_as_json(one, found) for one in plan]
        told: dict[str, Json] = {name: report.as_json() if report else None for name, report in reports.items()}
        several = {"comparisons": told} if len(told) > 1 else {"comparison": next(iter(told.values()))}
        click.echo(json.dumps({"runs": runs, **several}))
    elif any(reports.values()):
        _tell_compared(plan, reports, options["tables"])
    damage = [line for report in reports.values() if report for line in report.failed]
    failed = [*damage, *(f"{question}: {why}" for question, why in found.failures.items())]
    name_failed(failed)
    return 3 if failed or found.left or found.waiting or not all(reports.values()) else 0


def _tell_compared(plan: Sequence[_Planned], reports: Mapping[str, ComparisonReport | None], tables: Shape) -> None:
    """The comparison within each benchmark, the folders, and the commands that print every table."""
    click.echo("\n".join(report.render(TEXT[tables]) for report in reports.values() if report), nl=False)
    made = [one for one in plan if one.solvers]
    runs_made = "\n".join(f"  {one.folder}  {one.told}" for one in made)
    click.echo(folded(f"\nruns\n{runs_made}\n", tables))
    for benchmark in reports:
        everything = ("hybrid", "compare", *(str(one.folder) for one in made if one.benchmark == benchmark), "--all")
        click.echo(pasteable(everything, tables, "every table: "))


def _as_json(one: _Planned, found: AskedRuns) -> Json:
    return {
        "run": str(one.folder),
        "chosen": dict(one.variant.chosen),
        "solvers": list(one.solvers),
        "elsewhere": {name: str(where) for name, where in one.elsewhere.items()},
        "options": dict(one.run.config.given),
        "begun": one.run.words in found.done,
    }
