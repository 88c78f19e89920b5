"""The runs of a matrix: `hybrid run --config FILE` where the file has lists of values; one comparison at the end.

Every run is an ordinary one: in the folder that its configuration derives, or under --out in one named by its choices.
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
from hybrid.display import TEXT, folded, pasteable
from hybrid.errors import UsageError
from hybrid.notes import tell
from hybrid.types import Json

if TYPE_CHECKING:
    from hybrid.cli._several_runs import Ask
    from hybrid.running.estimate import Estimate


@dataclass(frozen=True)
class _Planned:
    variant: Variant
    run: PlannedRun
    folder: Path
    solvers: tuple[str, ...]


def run_matrix(variants: Sequence[Variant], command: click.Command, ask: Ask) -> int:
    """Check every run before anything is asked, then ask them one after the other and compare; the exit code."""
    from hybrid.cli._run_options import config_of
    from hybrid.running.estimate import estimate
    from hybrid.running.several import MatrixEstimate
    from hybrid.running.signals import Interrupted
    from hybrid.scoring.score import refuse_hidden

    assert isinstance(command, Configured)  # noqa: S101 - only such a command has variants
    plan: list[_Planned] = []
    estimates: dict[str, Estimate] = {}
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
        plan.append(_Planned(variant, PlannedRun(variant.told, config), run.folder.path, tuple(run.solvers)))
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
        found = ask_all([one.run for one in plan], plan[0].run.config.run_limits, ask)
    except Interrupted as interrupted:
        return tell_interrupted(interrupted, ", ".join(str(one.folder) for one in plan))
    return _compared(plan, found, options)


def _compared(plan: Sequence[_Planned], found: AskedRuns, options: Mapping[str, Any]) -> int:
    from hybrid.cli.score import name_failed
    from hybrid.run_folder import RunFolder
    from hybrid.scoring.reports import compare_paths

    begun = [
        one.folder / name
        for one in plan
        for name in one.solvers
        if one.run.words in found.done and RunFolder(one.folder).finished(name)
    ]
    report = None
    if begun:
        told = {name: options[name] for name in ("protocol", "abstain", "allow_failed")}
        report = compare_paths(begun, brief=not options["as_json"], **told)
    if options["as_json"]:
        runs: list[Json] = [_as_json(one, found) for one in plan]
        click.echo(json.dumps({"runs": runs, "comparison": report.as_json() if report else None}))
    elif report is not None:
        click.echo(report.render(TEXT[options["tables"]]), nl=False)
        runs_made = "\n".join(f"  {one.folder}  {one.variant.told}" for one in plan)
        click.echo(folded(f"\nruns\n{runs_made}\n", options["tables"]))
        everything = ("hybrid", "compare", *(str(one.folder) for one in plan))
        click.echo(pasteable(everything, options["tables"], "every table: "))
    damage = report.failed if report else ()
    failed = [*damage, *(f"{question}: {why}" for question, why in found.failures.items())]
    name_failed(failed)
    return 3 if failed or found.left or found.waiting or report is None else 0


def _as_json(one: _Planned, found: AskedRuns) -> Json:
    return {
        "run": str(one.folder),
        "chosen": dict(one.variant.chosen),
        "solvers": list(one.solvers),
        "options": dict(one.run.config.given),
        "begun": one.run.words in found.done,
    }
