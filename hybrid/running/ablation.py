"""The runs of an ablation: the same questions with all tools, without each tool, and with each tool alone.

    plan = ablation(("depth", "crop", "ocr"), add_one=True)
    [run.name for run in plan.runs]     # full, none, without-depth, ..., only-depth, ...

Each set of tools has only one run: with two tools, leaving out one is the same as offering the other alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hybrid.core.errors import UsageError
from hybrid.running.plan import PlannedRun
from hybrid.running.tools_in_use import NO_TOOL, ToolsInUse, with_needs

FULL = "full"
NONE = "none"


@dataclass(frozen=True)
class Ablation:
    """The offered tools, and the runs that measure the effect of each tool; the first run offers all tools."""

    tools_offered: tuple[str, ...]
    runs: tuple[PlannedRun, ...]

    def still_called(self, tools: ToolsInUse) -> tuple[str, ...]:
        """Return a line for each tool that is used even when it is left out, because another tool calls it.

        `tools` are those of the full run.
        """
        lines = []
        for name in self.tools_offered:
            others = (other for other in self.tools_offered if other != name)
            callers = [other for other in others if name in with_needs([other], tools.tools, tools.backends)]
            if callers and any(name not in menu and {*callers} & {*menu} for menu in map(tools_of, self.runs)):
                lines.append(f"{name} is called by {', '.join(callers)} even in a run that leaves it out")
        return tuple(lines)


def ablation(
    tools_offered: Sequence[str], vary: Iterable[str] | None = None, *, leave_out: bool = True, add_one: bool = False
) -> Ablation:
    """Return the runs of an ablation: full, none, each tool left out, then each tool alone, in the order of the tools.

    Args:
        tools_offered: the tools to offer.
        vary: the tools to leave out or add; None for all.
        leave_out: whether to include runs without one of these tools.
        add_one: whether to include runs with one of these tools alone.

    Raises:
        UsageError: no tool is offered, a tool of `vary` is not offered, or there is nothing to do.
    """
    tool_names = tuple(dict.fromkeys(tools_offered))
    if not tool_names:
        raise UsageError("no tool is offered, so there is nothing to leave out")
    if not (leave_out or add_one):
        raise UsageError("--no-leave-out without --add-one leaves nothing to do: add --add-one")
    to_vary = set(tool_names if vary is None else vary)
    if unknown := sorted(to_vary - {*tool_names}):
        raise UsageError(f"--vary {','.join(unknown)}: not among the tools offered: {', '.join(tool_names)}")
    varied = [name for name in tool_names if name in to_vary]
    # Of two runs with the same set of tools, only the first is kept.
    menus = {tool_names: (FULL, FULL), (): (NONE, "no tool")}
    for name in varied if leave_out else ():
        menus.setdefault(tuple(tool for tool in tool_names if tool != name), (f"without-{name}", f"without {name}"))
    for name in varied if add_one else ():
        menus.setdefault((name,), (f"only-{name}", f"only {name}"))
    return Ablation(
        tool_names, tuple(PlannedRun(*words, {"tools": menu or (NO_TOOL,)}) for menu, words in menus.items())
    )


def tools_of(run: PlannedRun) -> tuple[str, ...]:
    """Return the tools that a run of an ablation offers."""
    menu: tuple[str, ...] = run.changes["tools"]
    return () if menu == (NO_TOOL,) else menu
