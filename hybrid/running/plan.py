"""Several runs from one configuration: the cells of a study, the runs of an ablation or of a matrix.

planned = PlannedRun("blank-tools", "tools are offered and say nothing", {"tool_output": "blank"})
planned.config(config, Path("runs/study"))      # an ordinary run, in runs/study/blank-tools
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hybrid.config import RunConfig, concerning, digest
from hybrid.config.option import Concern, option_fields
from hybrid.config.values import as_written
from hybrid.core.types import Json
from hybrid.running.resolve import ResolvedRun


@dataclass(frozen=True)
class PlannedRun:
    """One of several runs: its differences from the shared configuration."""

    # Name of its folder within the common folder.
    name: str
    about: str
    # Changed values by field of `RunConfig` or of its `ModelSettings`.
    changes: Mapping[str, Any] = field(default_factory=dict)
    # Former name of the run's folder. A run that was started under that name is continued there.
    former: str = ""
    # If above 0, the run is asked only if a question of the main run has at least this many tool calls.
    calls: int = 0
    # Whether the run is asked only if tools made a picture in the main run.
    pictures: bool = False

    def folder(self, out: Path) -> Path:
        """Return the run's folder in `out`; if a folder with the run's former name exists, return that one."""
        return out / (self.former if self.former and (out / self.former).is_dir() else self.name)

    def config(self, config: RunConfig, out: Path) -> RunConfig:
        """Return the shared configuration with this run's changes, in its folder."""
        changes = {**self.changes, "out": self.folder(out)}
        asking = {name: changes.pop(name) for name in self.changes if hasattr(config.model_settings, name)}
        if asking:
            overrides = (
                {name.replace("_", "-"): value for name, value in asking.items()} if config.options_as_used else {}
            )
            used = {**config.options_as_used, **overrides}
            config = replace(config, model_settings=replace(config.model_settings, **asking), options_as_used=used)
        return changed(config, changes)


def changed(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Return the configuration with these fields changed; the options in its manifest are changed accordingly."""
    options: dict[str, Json] = dict(config.options_as_used)
    for option_field in option_fields(RunConfig) if config.options_as_used else ():
        if option_field.path[0] in changes and option_field.option.in_manifest:
            options[option_field.option.long] = as_written(option_field, changes[option_field.path[0]])
    return replace(config, options_as_used=options, **changes)


def answers_rest_on(run: ResolvedRun, solver: str) -> str:
    """Return a digest of everything that affects a solver's answers; runs with equal digests can share the answers."""
    entry = run.solvers[solver]
    tools = run.tools.by_solver[solver]
    concerns: dict[Concern, bool] = {
        "all": True,
        "model": entry.needs_model,
        "tools": bool(tools) or entry.offers_tools,
        "tools_offered": entry.offers_tools,
    }
    identity = concerning(run.identity, [concern for concern, holds in concerns.items() if holds])
    config, served = run.config, run.config.model_settings
    # Servers and devices are not part of the identity, but a user who lists two of them wants answers from each.
    addresses: list[Json] = [config.model, served.base_url, served.device] if entry.needs_model else []
    facts: dict[str, Json] = {
        "solver": solver,
        "repeats": config.repeats,
        "where": [*addresses, *([config.service.device] if tools else [])],
        "tools": run.tools.metadata(solver),
        "unchecked": [name for name in run.tools.unchecked(config.service) if name in tools],
        **run.tools.computed_in(solver, config.service),
    }
    return digest({**identity, **facts})
