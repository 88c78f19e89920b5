"""Failed tool calls, and replies that ended abnormally, read from the attempts of a run.

for fault in tool_faults(scored):
    fault.tool, fault.calls, fault.kinds, fault.never_ran     # "depth", 12, {Fault.TOOL_ERROR: 12}, True
reply_ends(scored)                                            # {("cut", "length"): 3, ("filtered", "SAFETY"): 1}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from hybrid.core.errors import DataError
from hybrid.core.types import Fault
from hybrid.display.terminal import how_many
from hybrid.log.folder import RunFolder, attempts_of
from hybrid.plugins.registry import names
from hybrid.scoring.attempt_facts import facts_of
from hybrid.scoring.groups import is_imported, role
from hybrid.scoring.score import Scored

# Replaces any name that is not a tool's, because a model may have made up any text.
NO_SUCH: Final = "(no such tool)"
# Minimum share of failed calls at which a tool's faults are reported as a limit of statements about tools.
NOTED: Final = 0.05
# Faults of a tool that does not work.
FAILED: Final = frozenset({Fault.TOOL_ERROR, Fault.TIMEOUT})
# Faults of a tool that is not available, or has no weights here. All other faults are wrong calls by a model.
NOT_THERE: Final = frozenset({Fault.UNKNOWN_TOOL, Fault.ABSENT})


@dataclass(frozen=True, slots=True)
class ToolFaults:
    """The calls of one tool by one solver: total, count by kind of fault, and the first error."""

    tool: str
    calls: int
    kinds: Mapping[Fault, int]
    # Text of the first fault, with file and line if the tool's code raised it.
    error: str = ""

    @property
    def faults(self) -> int:
        """Number of calls that ended in a fault of any kind."""
        return sum(self.kinds.values())

    @property
    def never_ran(self) -> bool:
        """Whether every call ended in a fault, at least one of them because the tool failed."""
        return self.faults == self.calls and not FAILED.isdisjoint(self.kinds)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind.value.replace('_', ' ')} {count}" for kind, count in self.kinds.items())
        return f"{self.tool}: {self.faults} of {self.calls} calls ended in faults ({kinds})"


@dataclass(frozen=True, slots=True)
class Counts:
    """The tools that a solver called, and how its model's replies ended."""

    tools: tuple[ToolFaults, ...] = ()
    ends: Mapping[tuple[str, str], int] = field(default_factory=dict)


def tool_faults(scored: Scored) -> tuple[ToolFaults, ...]:
    """Return the faults of each tool that a solver called, by name; empty for answers of another program."""
    if scored.folder is None or is_imported(scored) or role(scored) == "mllm":
        return ()
    return _count(scored).tools


def reply_ends(scored: Scored) -> Mapping[tuple[str, str], int]:
    """Count the replies of a solver's model that ended abnormally, by kind and finish reason.

    The kinds are those of `End`, and `broken_off` for replies that were requested again.
    """
    return {} if scored.folder is None or is_imported(scored) or role(scored) == "specialist" else _count(scored).ends


def _count(scored: Scored) -> Counts:
    """Return the counts of a solver's attempts, cached per open run until the file changes on disk."""
    assert scored.folder is not None  # noqa: S101 - both callers have checked that it is set
    path = scored.folder.path / attempts_of(scored.recorded)
    if not path.exists():
        return Counts()
    state = path.stat()
    return _count_faults(scored.folder, scored.recorded, state.st_mtime_ns, state.st_size)


def broken_tools(scored: Scored) -> tuple[str, ...]:
    """Return a line for each tool that never ran; unavailable tools are listed only if no tool of the solver ran."""
    faults = tool_faults(scored)
    nothing_ran = role(scored) == "hybrid" and all(fault.faults == fault.calls for fault in faults)
    return tuple(
        f"{scored.solver}: {fault.faults} of {how_many(fault.calls, 'call')} of {fault.tool} failed: {fault.error}"
        for fault in faults
        if fault.never_ran or (nothing_ran and not NOT_THERE.isdisjoint(fault.kinds))
    )


def noted(scored: Scored) -> tuple[ToolFaults, ...]:
    """Return the tools of a solver whose share of failed calls is at least `NOTED`."""
    return tuple(fault for fault in tool_faults(scored) if fault.faults and fault.faults >= NOTED * fault.calls)


@lru_cache(maxsize=64)
def _count_faults(folder: RunFolder, solver: str, changed: int, size: int) -> Counts:
    del changed, size
    recorded = folder.recorded(solver)
    ends = Counter[tuple[str, str]]()
    calls, errors = Counter[str](), dict[str, str]()
    kinds: dict[str, Counter[Fault]] = {}
    tool_names = frozenset(names("tools"))
    for identity in recorded.by_id:
        try:
            facts = facts_of(recorded, identity)
        except DataError:
            continue
        ends.update(facts.ends)
        calls.update(facts.answered)
        for step in facts.faulted:
            tool = resolve_name(step.tool, step.fault, tool_names) if step.is_call else step.tool
            # Only a call adds a tool to the list; a refused picture does not.
            if step.is_call:
                calls[tool] += 1
            kinds.setdefault(tool, Counter())[step.fault] += 1
            errors.setdefault(tool, step.error)
    tools = (ToolFaults(tool, calls[tool], kinds.get(tool, {}), errors.get(tool, "")) for tool in sorted(calls))
    return Counts(tuple(tools), dict(sorted(ends.items())))


def resolve_name(tool: str, fault: Fault | None, tool_names: frozenset[str]) -> str:
    """Return the tool that was called; `NO_SUCH` for a name that no tool has."""
    strange = fault in (Fault.UNKNOWN_TOOL, Fault.UNREADABLE_CALL) or (
        fault is Fault.BAD_ARGUMENTS and tool not in tool_names
    )
    return NO_SUCH if strange else tool
