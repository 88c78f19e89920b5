"""The cells of a study: the settings that are asked to find out where a gain comes from.

    cells = cells_of("full", "controller")
    cells[1].config(config, out)          # the run of `config` with blank tools, in OUT/blank-tools

A cell is one ordinary run. Settings that differ in the solver alone share a run. After MED (arXiv 2602.01334), which
compares with and without tools, and arXiv 2606.02357, which adds format only and result only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from hybrid.log.folder import RunFolder
from hybrid.running.plan import PlannedRun

Depth = Literal["quick", "full"]
TRAINED: Final = "as-trained"
# The run that every other cell is compared with.
MAIN: Final = "with-tools"


def cells_of(depth: Depth, solver: str, style: str = "") -> tuple[PlannedRun, ...]:
    """The cells of a study of a hybrid solver, the main run first.

    Args:
        depth: `quick` asks alone, with tools, format only and the specialists; `full` also without a loop, without
            pictures, with wrong and with perfect findings, and, where tools made pictures, with findings in one form
            and with one picture at a time.
        solver: the hybrid solver that is studied.
        style: the form of tools in which the model was trained, where it is another than that of the main run.
    """
    solvers, about = (solver, "mllm", "specialist"), "with tools, alone, the specialists alone"
    blank = _varied(solver, "blank-tools", "tools are offered and say nothing", "format-only", tool_output="blank")
    trained = (_varied(solver, TRAINED, f"tools in the form {style}", tool_style=style),) if style else ()
    if depth == "quick":
        return PlannedRun(MAIN, about, {"solvers": solvers}), blank, *trained
    about = f"{about}, the result in the prompt, text only"
    latest = _varied(solver, "latest-picture", "a tool's latest picture alone stays", keep_pictures="latest")
    return (
        PlannedRun(MAIN, about, {"solvers": (*solvers, "result_only", "text_only")}),
        blank,
        _varied(solver, "other-findings", "findings about other questions", "wrong-results", tool_output="shuffled"),
        _varied(solver, "oracle", "findings of a perfect tool", tool_output="oracle"),
        replace(_varied(solver, "findings-as-text", "the text of findings alone", show="text"), pictures=True),
        replace(_varied(solver, "findings-as-pictures", "the pictures of findings alone", show="image"), pictures=True),
        *trained,
        replace(latest, calls=2, pictures=True),
    )


def _varied(solver: str, name: str, about: str, former: str = "", **changes: str) -> PlannedRun:
    return PlannedRun(name, about, {"solvers": (solver,), **changes}, former)


def calls_tools(run: Path, solver: str, least: int) -> bool:
    """Whether a solver of a run called tools so often on one question."""
    attempts = RunFolder(run).recorded(solver).without_steps.values()
    return any(sum(exchange.reply.usage.tool_calls for exchange in attempt.exchanges) >= least for attempt in attempts)
