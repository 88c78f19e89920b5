"""Which runs an ablation is made of: the menu as it is, none of it, each tool left out, each tool alone.

    plan = ablation(("depth", "crop", "ocr"), add_one=True)
    [variant.name for variant in plan.variants]     # full, none, without-depth, ..., only-depth, ...
    plan.variants[2].config(config, out)            # the run of `config` in OUT/without-depth

A menu is asked with once: of two tools, the one without the other is the other alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path

from hybrid.config import RunConfig
from hybrid.errors import UsageError
from hybrid.running.estimate import CostEstimate, SolverEstimate, Spent
from hybrid.running.resolve import NO_TOOL
from hybrid.running.tools_in_use import ToolsInUse, needs_of
from hybrid.types import Json

FULL = "full"
NONE = "none"
WITHOUT = "without-"
ONLY = "only-"
TOTAL = "total"


@dataclass(frozen=True)
class Variant:
    """One run: the name of its folder, and the tools that it offers."""

    name: str
    tools_offered: tuple[str, ...]

    @property
    def words(self) -> str:
        """What it is called in a table: `without depth`, `no tool`."""
        return self.name.replace("-", " ", 1) if self.name != NONE else "no tool"

    def config(self, config: RunConfig, out: Path) -> RunConfig:
        """The same run with these tools, in a folder of its own in `out`."""
        tools = self.tools_offered or (NO_TOOL,)
        given = {**config.given, "tools": ",".join(tools)} if config.given else {}
        return replace(config, tools=tools, out=out / self.name, given=given)


@dataclass(frozen=True)
class Ablation:
    """A menu, and the runs that tell what its tools bring; the full menu is the first."""

    tools_offered: tuple[str, ...]
    variants: tuple[Variant, ...]

    def still_called(self, tools: ToolsInUse) -> tuple[str, ...]:
        """A line for each tool that others call of their own accord, so that it is not gone where it is left out.

        `tools` are those of the full menu.
        """
        lines = []
        for name in self.tools_offered:
            callers = [other for other in self.tools_offered if other != name and name in _needed(other, tools)]
            if callers and any(
                name not in variant.tools_offered and {*callers} & {*variant.tools_offered} for variant in self.variants
            ):
                lines.append(f"{name} is called by {', '.join(callers)} also where it is left out of the menu")
        return tuple(lines)


def ablation(
    tools_offered: Sequence[str], vary: Iterable[str] | None = None, *, leave_out: bool = True, add_one: bool = False
) -> Ablation:
    """The runs of an ablation: full, none, then each tool left out, then each alone, in the menu's order.

    Args:
        tools_offered: the tools that are offered.
        vary: those that are left out or added; None for all.
        leave_out: whether there is a run without each of these.
        add_one: whether there is a run with each of these alone.

    Raises:
        UsageError: the menu is empty, a tool of `vary` is not on it, or there is nothing to do.
    """
    offered = tuple(dict.fromkeys(tools_offered))
    if not offered:
        raise UsageError("no tool is offered: there is nothing to leave out")
    if not (leave_out or add_one):
        raise UsageError("--no-leave-out: give --add-one with it, or there is nothing to do")
    chosen = set(offered if vary is None else vary)
    if strange := sorted(chosen - {*offered}):
        raise UsageError(f"--vary {','.join(strange)}: not on the menu, which is: {', '.join(offered)}")
    varied = [name for name in offered if name in chosen]
    found = [Variant(FULL, offered), Variant(NONE, ())]
    if leave_out:
        found += [Variant(f"{WITHOUT}{name}", tuple(other for other in offered if other != name)) for name in varied]
    if add_one:
        found += [Variant(f"{ONLY}{name}", (name,)) for name in varied]
    by_tools_offered: dict[tuple[str, ...], Variant] = {}
    for variant in found:
        by_tools_offered.setdefault(variant.tools_offered, variant)
    return Ablation(offered, tuple(by_tools_offered.values()))


def _needed(name: str, tools: ToolsInUse) -> set[str]:
    """What a tool calls, whatever lies between."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        own = waiting.pop()
        new = set(needs_of(tools.tools[own], tools.backends[own])) - found
        found |= new
        waiting += new
    return found


@dataclass(frozen=True)
class AblationEstimate:
    """An ablation before it is made: each run by its name."""

    folder: str
    runs: Mapping[str, CostEstimate]
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """What must be there and is not: the runs would be refused."""
        return tuple(dict.fromkeys(line for run in self.runs.values() for line in run.missing))

    @property
    def total(self) -> SolverEstimate:
        """All runs together."""
        asked = [one for run in self.runs.values() for one in run.solvers.values()]
        described = [run.captions for run in self.runs.values() if run.captions is not None]
        low, expected, high = (
            reduce(add, (getattr(one, level) for one in (*asked, *described)), Spent())
            for level in ("low", "expected", "high")
        )
        assumes = tuple(dict.fromkeys(line for one in asked for line in one.assumes))
        return SolverEstimate(sum(one.questions for one in asked), low, expected, high, asked[0].price, assumes)

    def as_json(self) -> dict[str, Json]:
        """The estimate as one JSON object; `total` is as a solver of `hybrid run --dry-run --json`."""
        whole = CostEstimate(self.folder, {TOTAL: self.total}, None, (), ()).as_json()["solvers"]
        assert isinstance(whole, dict)  # noqa: S101 - an estimate has its solvers by name
        return {
            "ablation": self.folder,
            "number_of_runs": len(self.runs),
            "total": whole[TOTAL],
            "runs": {name: run.as_json() for name, run in self.runs.items()},
            "missing": list(self.missing),
            "notes": self._notes(),
        }

    def as_text(self, form: str = "text") -> str:
        """A row for each run as expected, and all together at the lowest, as expected and at the highest."""
        from hybrid.tables import RENDERERS, Column, Table

        rows = [
            _row(name, asked, *asked.levels[1]) for name, run in self.runs.items() for asked in run.solvers.values()
        ]
        total = self.total
        rows += [_row(f"{len(self.runs)} runs", total, *level) for level in total.levels]
        headings = ("questions", "estimate", "model calls", "tokens in", "tokens out", "cost USD")
        lines = [
            *(f"missing: {line}" for line in self.missing),
            *(f"assumed: {line}" for line in total.assumes),
            *(f"note: {line}" for line in self._notes()),
        ]
        columns = (Column("run", "left"), *(Column(name) for name in headings))
        return RENDERERS[form](Table(f"{self.folder} (nothing was asked)", columns, tuple(rows), tuple(lines)))

    def _notes(self) -> list[Json]:
        return list(dict.fromkeys((*self.notes, *(line for run in self.runs.values() for line in run.notes))))


def _row(name: str, asked: SolverEstimate, level: str, spent: Spent) -> tuple[str, ...]:
    from hybrid.tables import NONE as NOTHING
    from hybrid.tables import tokens

    costs = asked.cost_usd
    counts = (spent.calls, spent.input_tokens, spent.output_tokens)
    numbers = (tokens(None if count is None else round(count)) for count in counts)
    cost = NOTHING if costs is None else next(f"{usd:.2f}" for known, usd in costs.items() if known == level)
    return (name, str(asked.questions), level, *numbers, cost)
