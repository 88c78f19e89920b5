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

Depth = Literal["quick", "full"]
MAIN: Final = "with-tools"
"""The run that every other cell is compared with."""


@dataclass(frozen=True)
class Cell:
    """One run of a study: its folder's name, its solvers, and the options in which it differs from the main run."""

    name: str
    solvers: tuple[str, ...]
    about: str
    changes: Mapping[str, str] = field(default_factory=dict)
    """By field of `RunConfig`."""
    former: str = ""
    """The name of its folder in studies that were begun before it had this one: they go on there."""

    def folder(self, out: Path) -> Path:
        """Its folder in that of the study."""
        return out / (self.former if self.former and (out / self.former).is_dir() else self.name)

    def config(self, config: RunConfig, out: Path) -> RunConfig:
        """The run of this cell, in a folder of its own in `out`."""
        changes: dict[str, Any] = dict(self.changes)
        given = {**config.given, "solver": list(self.solvers)}
        given |= {name.replace("_", "-"): value for name, value in self.changes.items()}
        return replace(
            config, solvers=self.solvers, out=self.folder(out), given=given if config.given else {}, **changes
        )


def cells_of(depth: Depth, solver: str) -> tuple[Cell, ...]:
    """The cells of a study of a hybrid solver, the main run first.

    Args:
        depth: `quick` asks alone, with tools, format only and the specialists; `full` also without a loop, without
            pictures, with wrong and with perfect findings, and with findings in one form.
        solver: the hybrid solver that is studied.
    """
    quick = (
        Cell(MAIN, (solver, "mllm", "specialist"), "with tools, alone, the specialists alone"),
        Cell("blank-tools", (solver,), "tools are offered and say nothing", {"tool_output": "blank"}, "format-only"),
    )
    if depth == "quick":
        return quick
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
    )
