"""Several runs of one command: the runs of an ablation, which solvers of two runs answer alike, and a common estimate.

    plan = ablation(("depth", "crop", "ocr"), add_one=True)
    [variant.name for variant in plan.variants]     # full, none, without-depth, ..., only-depth, ...
    plan.variants[2].config(config, out)            # the run of `config` in OUT/without-depth

The same set of tools is asked with once: of two tools, the one without the other is the other alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path

from hybrid.config import RunConfig, concerning, digest
from hybrid.config.option import Concern
from hybrid.errors import UsageError
from hybrid.running.cost_estimate import CostEstimate, Level, SolverEstimate, Spent, estimate_row
from hybrid.running.resolve import ResolvedRun
from hybrid.running.tools_in_use import NO_TOOL, ToolsInUse, with_needs
from hybrid.types import Json

FULL = "full"
NONE = "none"
WITHOUT = "without-"
ONLY = "only-"


@dataclass(frozen=True)
class Variant:
    """One run of an ablation: the name of its folder, and the tools that it offers."""

    name: str
    tools_offered: tuple[str, ...]

    @property
    def words(self) -> str:
        """Its name in a table: `without depth`, `no tool`."""
        return self.name.replace("-", " ", 1) if self.name != NONE else "no tool"

    def config(self, config: RunConfig, out: Path) -> RunConfig:
        """The run with these tools, in a folder of its own in `out`."""
        tools = self.tools_offered or (NO_TOOL,)
        given = {**config.given, "tools": ",".join(tools)} if config.given else {}
        return replace(config, tools=tools, out=out / self.name, given=given)


@dataclass(frozen=True)
class Ablation:
    """The tools offered and the runs that show what each of them brings; the first run offers all of them."""

    tools_offered: tuple[str, ...]
    variants: tuple[Variant, ...]

    def still_called(self, tools: ToolsInUse) -> tuple[str, ...]:
        """A line for each tool that another tool calls, and that is therefore used where it is left out.

        `tools` are those of the full run.
        """
        lines = []
        for name in self.tools_offered:
            callers = [
                other
                for other in self.tools_offered
                if other != name and name in with_needs([other], tools.tools, tools.backends)
            ]
            if callers and any(
                name not in variant.tools_offered and {*callers} & {*variant.tools_offered} for variant in self.variants
            ):
                lines.append(f"{name} is called by {', '.join(callers)} also where it is left out")
        return tuple(lines)


def ablation(
    tools_offered: Sequence[str], vary: Iterable[str] | None = None, *, leave_out: bool = True, add_one: bool = False
) -> Ablation:
    """The runs of an ablation: full, none, then each tool left out, then each alone, in the order of the tools.

    Args:
        tools_offered: the tools that are offered.
        vary: those that are left out or added; None for all.
        leave_out: whether there is a run without each of these.
        add_one: whether there is a run with each of these alone.

    Raises:
        UsageError: no tool is offered, one of `vary` is not offered, or there is nothing to do.
    """
    offered = tuple(dict.fromkeys(tools_offered))
    if not offered:
        raise UsageError("no tool is offered: there is nothing to leave out")
    if not (leave_out or add_one):
        raise UsageError("--no-leave-out: give --add-one with it, or there is nothing to do")
    chosen = set(offered if vary is None else vary)
    if unknown := sorted(chosen - {*offered}):
        raise UsageError(f"--vary {','.join(unknown)}: not among the tools offered: {', '.join(offered)}")
    varied = [name for name in offered if name in chosen]
    variants = [Variant(FULL, offered), Variant(NONE, ())]
    if leave_out:
        variants += [Variant(f"{WITHOUT}{name}", tuple(other for other in offered if other != name)) for name in varied]
    if add_one:
        variants += [Variant(f"{ONLY}{name}", (name,)) for name in varied]
    first_with: dict[tuple[str, ...], Variant] = {}
    for variant in variants:
        first_with.setdefault(variant.tools_offered, variant)
    return Ablation(offered, tuple(first_with.values()))


def answers_rest_on(run: ResolvedRun, solver: str) -> str:
    """A digest of all that decides the answers of a solver: of two runs with the same digest, one need ask it."""
    asked = run.solvers[solver]
    called = run.tools.by_solver[solver]
    concerns: dict[Concern, bool] = {
        "all": True,
        "model": asked.needs_model,
        "tools": bool(called) or asked.offers_tools,
        "tools_offered": asked.offers_tools,
    }
    identity = concerning(run.identity, [concern for concern, holds in concerns.items() if holds])
    config, served = run.config, run.config.model_settings
    # Servers and devices are no part of the identity, but a list of two of them means that both are asked.
    where: list[Json] = [config.model, served.base_url, served.device] if asked.needs_model else []
    facts: dict[str, Json] = {
        "solver": solver,
        "repeats": config.repeats,
        "where": [*where, *([config.service.device] if called else [])],
        "tools": run.tools.metadata(solver),
        "unchecked": [name for name in run.unchecked if name in called],
        **run.tools.computed_in(solver, config.service),
    }
    return digest({**identity, **facts})


@dataclass(frozen=True)
class ManyEstimate:
    """Calls, tokens and cost of several runs by name; each run has its own price."""

    runs: Mapping[str, CostEstimate]
    ablation: str = ""
    """The folder of an ablation, in whose tables each run has one solver."""
    also: tuple[str, ...] = ()
    """Notes about all of them."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Lines on what is needed and absent: with any of them the runs are refused."""
        return tuple(dict.fromkeys(line for run in self.runs.values() for line in run.missing))

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines about the runs, each once."""
        return tuple(dict.fromkeys((*self.also, *(line for run in self.runs.values() for line in run.notes))))

    @property
    def total(self) -> SolverEstimate:
        """All runs together, without a price: each has its own."""
        solvers = [one for run in self.runs.values() for one in run.solvers.values()]
        low, expected, high = (
            reduce(add, (getattr(one, level) for one in self._parts()), Spent())
            for level in ("low", "expected", "high")
        )
        assumes = tuple(dict.fromkeys(line for one in solvers for line in one.assumes))
        return SolverEstimate(sum(one.questions for one in solvers), low, expected, high, None, assumes)

    @property
    def cost_usd(self) -> Mapping[Level, float] | None:
        """USD of all runs; None where a part that calls a model has no price or its tokens are not known."""
        costs = [one.cost_usd for one in self._parts() if one.high.calls or one.cost_usd is not None]
        known = [cost for cost in costs if cost is not None]
        if not known or len(known) < len(costs):
            return None
        return {level: sum(cost[level] for cost in known) for level in known[0]}

    def as_json(self) -> dict[str, Json]:
        """One JSON object; `total` is as a solver of `hybrid run --dry-run --json`."""
        cost = self.cost_usd
        return {
            **({"ablation": self.ablation} if self.ablation else {}),
            "number_of_runs": len(self.runs),
            "total": {**self.total.as_json(), "cost_usd": None if cost is None else dict(cost.items())},
            "runs": {name: run.as_json() for name, run in self.runs.items()},
            "missing": list(self.missing),
            "notes": list(self.notes),
        }

    def as_text(self, form: str = "text") -> str:
        """A row for each solver of each run as expected, and all together at the lowest, as expected and highest."""
        from hybrid.display.tables import RENDERERS, Column, Table

        by_solver = () if self.ablation else (Column("solver", "left"),)
        rows = [
            (name, *([solver] if by_solver else []), *estimate_row(asked, *asked.levels[1], asked.cost_usd))
            for name, run in self.runs.items()
            for solver, asked in run.solvers.items()
        ]
        all_runs = (f"{len(self.runs)} runs", *[""] * len(by_solver))
        rows += [(*all_runs, *estimate_row(self.total, *level, self.cost_usd)) for level in self.total.levels]
        lines = [
            *(f"missing: {line}" for line in self.missing),
            *(f"assumed: {line}" for line in self.total.assumes),
            *(f"note: {line}" for line in self.notes),
        ]
        headings = ("questions", "estimate", "model calls", "tokens in", "tokens out", "cost USD")
        columns = (Column("run", "left"), *by_solver, *(Column(name) for name in headings))
        title = f"{self.ablation or all_runs[0]} (nothing was asked)"
        return RENDERERS[form](Table(title, columns, tuple(rows), tuple(lines)))

    def _parts(self) -> Iterator[SolverEstimate]:
        for run in self.runs.values():
            yield from run.solvers.values()
            if run.captions is not None:
                yield run.captions
