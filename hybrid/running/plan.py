"""Several runs made of one configuration: the cells of a study, the menus of an ablation, the choices of a matrix.

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
from hybrid.core.types import Json
from hybrid.running.resolve import ResolvedRun


@dataclass(frozen=True)
class PlannedRun:
    """One run of several: what it differs in from the configuration that they share."""

    # Of its folder in that of all of them.
    name: str
    about: str
    # By field of `RunConfig`, or of its `ModelSettings`.
    changes: Mapping[str, Any] = field(default_factory=dict)
    # The name of its folder where it was begun before it had this one: it goes on there.
    former: str = ""
    # It is asked only where the main run has a question with so many calls of tools.
    calls: int = 0
    # It is asked only where tools made a picture in the main run.
    pictures: bool = False

    def folder(self, out: Path) -> Path:
        """Its folder in that of all of them."""
        return out / (self.former if self.former and (out / self.former).is_dir() else self.name)

    def config(self, config: RunConfig, out: Path) -> RunConfig:
        """The shared configuration with what this run changes in it, in its folder."""
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
    """The configuration with other values of some fields, which are among the options of its manifest too."""
    options: dict[str, Json] = dict(config.options_as_used)
    for option_field in option_fields(RunConfig) if config.options_as_used else ():
        if option_field.path[0] in changes and option_field.option.kept:
            value = changes[option_field.path[0]]
            text = (
                ",".join(value) if option_field.option.form == "A,B" else list(value) if option_field.is_many else value
            )
            options[option_field.option.name.removeprefix("--")] = text
    return replace(config, options_as_used=options, **changes)


def answers_rest_on(run: ResolvedRun, solver: str) -> str:
    """A digest of all that decides the answers of a solver: of two runs with the same digest, one need ask it."""
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
    # Servers and devices are no part of the identity, but a list of two of them means that both are asked.
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
