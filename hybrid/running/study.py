"""The cells of a study: the settings that are asked to find out where a gain comes from.

    cells = cells_of("full", "controller")
    cells[1].config(config, out)          # the run of `config` with blank tools, in OUT/blank-tools

A cell is one ordinary run. Settings that differ in the solver alone share a run. After MED (arXiv 2602.01334), which
compares with and without tools, and arXiv 2606.02357, which adds format only and result only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from hybrid.config import RunConfig
from hybrid.log.folder import RunFolder

Depth = Literal["quick", "full"]
TRAINED: Final = "as-trained"
MAIN: Final = "with-tools"
"""The run that every other cell is compared with."""


@dataclass(frozen=True)
class Cell:
    """One run of a study: its folder's name, its solvers, and the options in which it differs from the main run."""

    name: str
    solvers: tuple[str, ...]
    about: str
    changes: Mapping[str, str] = field(default_factory=dict)
    """By field of `RunConfig`, or of its `ModelSettings`."""
    former: str = ""
    """The name of its folder in studies that were begun before it had this one: they go on there."""
    calls: int = 0
    """It is asked only where the main run has a question with so many calls of tools."""

    def folder(self, out: Path) -> Path:
        """Its folder in that of the study."""
        return out / (self.former if self.former and (out / self.former).is_dir() else self.name)

    def config(self, config: RunConfig, out: Path) -> RunConfig:
        """The run of this cell, in a folder of its own in `out`."""
        changes: dict[str, Any] = dict(self.changes)
        asking = {name: changes.pop(name) for name in self.changes if hasattr(config.model_settings, name)}
        if asking:
            changes["model_settings"] = replace(config.model_settings, **asking)
        given = {**config.given, "solver": list(self.solvers)}
        given |= {name.replace("_", "-"): value for name, value in self.changes.items()}
        return replace(
            config, solvers=self.solvers, out=self.folder(out), given=given if config.given else {}, **changes
        )


def cells_of(depth: Depth, solver: str, style: str = "") -> tuple[Cell, ...]:
    """The cells of a study of a hybrid solver, the main run first.

    Args:
        depth: `quick` asks alone, with tools, format only and the specialists; `full` also without a loop, without
            pictures, with wrong and with perfect findings, with findings in one form, and with one picture at a time.
        solver: the hybrid solver that is studied.
        style: the form of tools in which the model was trained, where it is another than that of the main run.
    """
    quick = (
        Cell(MAIN, (solver, "mllm", "specialist"), "with tools, alone, the specialists alone"),
        Cell("blank-tools", (solver,), "tools are offered and say nothing", {"tool_output": "blank"}, "format-only"),
    )
    trained = (Cell(TRAINED, (solver,), f"tools in the form {style}", {"tool_style": style}),) if style else ()
    if depth == "quick":
        return (*quick, *trained)
    main = replace(
        quick[0],
        solvers=(*quick[0].solvers, "result_only", "text_only"),
        about=f"{quick[0].about}, the result in the prompt, text only",
    )
    return (
        main,
        quick[1],
        Cell(
            "other-findings", (solver,), "findings about other questions", {"tool_output": "shuffled"}, "wrong-results"
        ),
        Cell("oracle", (solver,), "findings of a perfect tool", {"tool_output": "oracle"}),
        Cell("findings-as-text", (solver,), "the text of findings alone", {"show": "text"}),
        Cell("findings-as-pictures", (solver,), "the pictures of findings alone", {"show": "image"}),
        *trained,
        Cell("latest-picture", (solver,), "a tool's latest picture alone stays", {"keep_pictures": "latest"}, calls=2),
    )


def calls_tools(run: Path, solver: str, least: int) -> bool:
    """Whether a solver of a run called tools so often on one question."""
    attempts = RunFolder(run).recorded(solver).without_steps.values()
    return any(sum(one.reply.usage.tool_calls for one in each.exchanges) >= least for each in attempts)
