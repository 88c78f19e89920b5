"""Several runs of one command: which of their solvers answer alike, and what all would take, each with its own price.

report = MatrixEstimate({"gpt-4o_real": estimate, "gpt-4o_blank": estimate})
print(report.as_text())
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hybrid.config import concerning, digest
from hybrid.config.option import Concern
from hybrid.running.ablation import TOTAL, AblationEstimate, _row
from hybrid.running.estimate import CostEstimate, Level, SolverEstimate
from hybrid.running.resolve import ResolvedRun
from hybrid.types import Json


def answers_rest_on(run: ResolvedRun, solver: str) -> str:
    """A digest of all that decides the answers of a solver of a run: two runs with the same need not both ask it."""
    asked = run.solvers[solver]
    called = run.tools.by_solver[solver]
    concerns: dict[Concern, bool] = {
        "all": True,
        "model": asked.needs_model,
        "tools": bool(called) or asked.offers_tools,
        "tools_offered": asked.offers_tools,
    }
    own = concerning(run.identity, [concern for concern, holds in concerns.items() if holds])
    config, served = run.config, run.config.model_settings
    # No part of what a run is; but who lists two servers or devices wants both asked.
    where: list[Json] = [config.model, served.base_url, served.device] if asked.needs_model else []
    facts: dict[str, Json] = {
        "solver": solver,
        "repeats": config.repeats,
        "where": [*where, *([config.service.device] if called else [])],
        "tools": run.tools.metadata(solver),
        "unchecked": [name for name in run.unchecked if name in called],
    }
    return digest({**own, **facts})


@dataclass(frozen=True)
class MatrixEstimate:
    """The runs of a matrix by their names."""

    runs: Mapping[str, CostEstimate]

    @property
    def missing(self) -> tuple[str, ...]:
        """What must be there and is not: the runs would be refused."""
        return self._together.missing

    @property
    def cost_usd(self) -> Mapping[Level, float] | None:
        """USD of all runs; None where one of them has no price or its tokens are not known."""
        asked = [one for one in self._asked() if one.high.calls]
        costs = [one.cost_usd for one in asked]
        known = [cost for cost in costs if cost is not None]
        if not asked or len(known) < len(costs):
            return None
        return {level: sum(cost[level] for cost in known) for level in known[0]}

    def as_json(self) -> dict[str, Json]:
        """One JSON object; `total` is as a solver of `hybrid run --dry-run --json`."""
        told = self._together.as_json()
        total = told[TOTAL]
        assert isinstance(total, dict)  # noqa: S101 - as `AblationEstimate` writes it
        cost = self.cost_usd
        return {
            "number_of_runs": len(self.runs),
            "total": {**total, "cost_usd": None if cost is None else {str(level): usd for level, usd in cost.items()}},
            "runs": {name: run.as_json() for name, run in self.runs.items()},
            "missing": list(self.missing),
            "notes": told["notes"],
        }

    def as_text(self, form: str = "text") -> str:
        """A row for each solver of each run as expected, and all together at the lowest, as expected and highest."""
        from hybrid.tables import NONE, RENDERERS, Column, Table

        rows = [
            (name, f"{solver}", *_row("", asked, *asked.levels[1])[1:])
            for name, run in self.runs.items()
            for solver, asked in run.solvers.items()
        ]
        total, costs = self._total, self.cost_usd
        for level, spent in total.levels:
            cost = NONE if costs is None else f"{costs[level]:.2f}"
            rows.append((f"{len(self.runs)} runs", "", *_row("", total, level, spent)[1:-1], cost))
        lines = [
            *(f"missing: {line}" for line in self.missing),
            *(f"assumed: {line}" for line in total.assumes),
            *(f"note: {line}" for line in dict.fromkeys(line for run in self.runs.values() for line in run.notes)),
        ]
        headings = ("questions", "estimate", "model calls", "tokens in", "tokens out", "cost USD")
        columns = (Column("run", "left"), Column("solver", "left"), *(Column(name) for name in headings))
        return RENDERERS[form](Table(f"{len(self.runs)} runs (nothing was asked)", columns, tuple(rows), tuple(lines)))

    @property
    def _together(self) -> AblationEstimate:
        return AblationEstimate("", self.runs)

    @property
    def _total(self) -> SolverEstimate:
        # One price for all would be that of the first model.
        return replace(self._together.total, price=None)

    def _asked(self) -> Iterator[SolverEstimate]:
        for run in self.runs.values():
            yield from run.solvers.values()
            if run.captions is not None:
                yield run.captions
