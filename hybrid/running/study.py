"""The cells of a study: settings that show where a gain comes from.

    cells = cells_of("full", "controller")
    cells[1].config(config, out)          # the run of `config` with blank tools, in OUT/blank-tools

A cell is one ordinary run. Settings that differ only in the solver share a run. This follows MED (arXiv 2602.01334),
which compares runs with and without tools, and arXiv 2606.02357, which adds a run with only the format of calls and a
run with only the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from hybrid.config import RunConfig
from hybrid.log.folder import RunFolder
from hybrid.running.plan import PlannedRun
from hybrid.running.resolve import offered_tools

Depth = Literal["quick", "full"]
TRAINED: Final = "as-trained"
# Name of the run with which every other cell is compared.
MAIN: Final = "with-tools"


def cells_of(depth: Depth, solver: str, style: str = "") -> tuple[PlannedRun, ...]:
    """Return the cells of a study of a hybrid solver, the main run first.

    Args:
        depth: `quick` has four cells: `solver` with tools, the model alone, the specialists alone, and `solver` with
            tools that return nothing. `full` adds the cells without a loop, without pictures, and with shuffled,
            perfect and paraphrased tool output. If tools made pictures, it also adds cells with tool output in one form
            and with one picture at a time.
        solver: the hybrid solver to study.
        style: the tool style in which the model was trained, if it differs from that of the main run.
    """
    solvers, about = (solver, "mllm", "specialist"), "with tools, alone, the specialists alone"
    blank = _varied(solver, "blank-tools", "tools are offered but return nothing", "format-only", tool_output="blank")
    trained = (_varied(solver, TRAINED, f"tools in the form {style}", tool_style=style),) if style else ()
    if depth == "quick":
        return PlannedRun(MAIN, about, {"solvers": solvers}), blank, *trained
    about = f"{about}, the result in the prompt, text only"
    latest = _varied(solver, "latest-picture", "only the latest picture of a tool is kept", keep_pictures="latest")
    return (
        PlannedRun(MAIN, about, {"solvers": (*solvers, "result_only", "text_only")}),
        blank,
        _varied(
            solver, "other-findings", "tool outputs about other questions", "wrong-results", tool_output="shuffled"
        ),
        _varied(solver, "oracle", "outputs of a perfect tool", tool_output="oracle"),
        _varied(solver, "other-words", "the same tool output in other words", tool_output="paraphrased"),
        replace(_varied(solver, "findings-as-text", "only the text of tool output", show="text"), pictures=True),
        replace(
            _varied(solver, "findings-as-pictures", "only the pictures of tool output", show="image"), pictures=True
        ),
        *trained,
        replace(latest, calls=2, pictures=True),
    )


def leave_out_other_words(
    cells: Sequence[PlannedRun], config: RunConfig, out: Path
) -> tuple[tuple[PlannedRun, ...], tuple[str, ...]]:
    """Return the cells that can be asked, and the names of the tools without a second wording.

    The cell with paraphrased tool output is left out if there is such a tool. Raises `UsageError` as `offered_tools`
    does.
    """
    paraphrased = [cell for cell in cells if cell.changes.get("tool_output") == "paraphrased"]
    lacking = offered_tools(paraphrased[0].config(config, out)).without_wording if paraphrased else ()
    return tuple(cell for cell in cells if not (lacking and cell in paraphrased)), lacking


def _varied(solver: str, name: str, about: str, former: str = "", **changes: str) -> PlannedRun:
    return PlannedRun(name, about, {"solvers": (solver,), **changes}, former)


def calls_tools(run: Path, solver: str, least: int) -> bool:
    """Return whether a solver of a run called tools at least `least` times on one question."""
    attempts = RunFolder(run).recorded(solver).without_steps.values()
    return any(sum(exchange.reply.usage.tool_calls for exchange in attempt.exchanges) >= least for attempt in attempts)
