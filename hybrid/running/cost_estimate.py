"""The estimate of a run's model calls, tokens and cost, as a table and as JSON (computed by `estimate.py`).

print(CostEstimate("runs/blink", {"mllm": solver_estimate}, None, (), ()).as_text())
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hybrid.config import Price
from hybrid.core.types import Json

Level = Literal["low", "expected", "high"]


@dataclass(frozen=True)
class Spent:
    """Model calls and tokens; `input_tokens` is None if the provider's rule for images is unknown."""

    calls: float = 0.0
    input_tokens: float | None = 0.0
    output_tokens: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        input_tokens = None
        if self.input_tokens is not None and other.input_tokens is not None:
            input_tokens = self.input_tokens + other.input_tokens
        return Spent(self.calls + other.calls, input_tokens, self.output_tokens + other.output_tokens)

    def times(self, factor: float) -> Spent:
        """Return the amounts multiplied by a factor."""
        input_tokens = None if self.input_tokens is None else self.input_tokens * factor
        return Spent(self.calls * factor, input_tokens, self.output_tokens * factor)


# The low, expected and high estimate.
Levels = tuple[Spent, Spent, Spent]
# Lines below the table: what is missing, what is assumed, and notes.
_Below = tuple[Sequence[str], Sequence[str], Sequence[str]]


def summed(parts: Iterable[Levels]) -> Levels:
    """Return the sums of the low, of the expected and of the high estimates."""
    low, expected, high = Spent(), Spent(), Spent()
    for lowest, usual, highest in parts:
        low, expected, high = low + lowest, expected + usual, high + highest
    return low, expected, high


@dataclass(frozen=True)
class SolverEstimate:
    """The low, expected and high estimates of the calls and tokens for the open questions of one solver."""

    questions: int
    low: Spent
    expected: Spent
    high: Spent
    price: Price | None
    assumes: tuple[str, ...] = ()
    # Largest number of sequential calls for a question in the expected and the high estimate.
    rounds: tuple[int, int] = (0, 0)

    @property
    def levels(self) -> tuple[tuple[Level, Spent], ...]:
        """The three estimates by name."""
        return (("low", self.low), ("expected", self.expected), ("high", self.high))

    @property
    def cost_usd(self) -> Mapping[Level, float] | None:
        """Cost of each estimate in USD; None without a price or if tokens are unknown."""
        if self.price is None or any(spent.input_tokens is None for _, spent in self.levels):
            return None
        return {level: self.price.of(spent.input_tokens or 0.0, spent.output_tokens) for level, spent in self.levels}

    def as_json(self, unit: str = "questions") -> dict[str, Json]:
        """Return one JSON object; `unit` is the key of the number of questions."""
        counts = {"model_calls": "calls", "input_tokens": "input_tokens", "output_tokens": "output_tokens"}
        spent: dict[str, Json] = {}
        for key, name in counts.items():
            numbers = {level: getattr(spent, name) for level, spent in self.levels}
            spent[key] = {level: None if number is None else round(number) for level, number in numbers.items()}
        cost: Json = None if self.cost_usd is None else {level: self.cost_usd[level] for level, _ in self.levels}
        return {unit: self.questions, **spent, "cost_usd": cost, "assumes": list(self.assumes)}


@dataclass(frozen=True)
class CostEstimate:
    """The estimate of a run that has not started."""

    folder: str
    solvers: Mapping[str, SolverEstimate]
    # The estimate for describing images, which happens once for all solvers; it counts images instead of questions.
    # None if no images are described.
    captions: SolverEstimate | None
    # Required things that are missing; if there are any, the run would be rejected.
    missing: tuple[str, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """Return the estimate as one JSON object."""
        return {
            "run": self.folder,
            "solvers": {name: estimate.as_json() for name, estimate in self.solvers.items()},
            **({"captions": self.captions.as_json("images")} if self.captions else {}),
            "missing": list(self.missing),
            "notes": list(self.notes),
        }

    def as_text(self, form: str = "text") -> str:
        """Return the estimate as a table, three lines per solver if they differ, with notes below."""
        rows = []
        estimates = {**self.solvers, **({"(captions)": self.captions} if self.captions else {})}
        for name, estimate in estimates.items():
            same = estimate.low == estimate.expected == estimate.high
            for level, spent in estimate.levels[1:2] if same else estimate.levels:
                questions, _, *numbers = _row(estimate, level, spent, estimate.cost_usd)
                rows.append((name, questions, "certain" if same else level, *numbers))
        assumed = [f"assumed of {name}: {line}" for name, estimate in estimates.items() for line in estimate.assumes]
        return _table(self.folder, ("solver",), rows, (self.missing, assumed, self.notes), form)


@dataclass(frozen=True)
class ManyEstimate:
    """Calls, tokens and cost of several runs by name; each run has its own price."""

    runs: Mapping[str, CostEstimate]
    # Folder of an ablation, in which each run has one solver; empty for other runs.
    ablation: str = ""
    # Notes about all runs.
    also: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Required things that are missing; if there are any, the runs are rejected."""
        return tuple(dict.fromkeys(line for run in self.runs.values() for line in run.missing))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the runs, without duplicates."""
        return tuple(dict.fromkeys((*self.also, *(line for run in self.runs.values() for line in run.notes))))

    @property
    def total(self) -> SolverEstimate:
        """The total of all runs, without a price because each run has its own."""
        solvers = [solver for run in self.runs.values() for solver in run.solvers.values()]
        levels = summed((part.low, part.expected, part.high) for part in self._parts())
        assumes = tuple(dict.fromkeys(line for solver in solvers for line in solver.assumes))
        return SolverEstimate(sum(solver.questions for solver in solvers), *levels, price=None, assumes=assumes)

    @property
    def cost_usd(self) -> Mapping[Level, float] | None:
        """Total cost in USD; None if a part that calls a model has no price or unknown tokens."""
        costs = [part.cost_usd for part in self._parts() if part.high.calls or part.cost_usd is not None]
        known_costs = [cost for cost in costs if cost is not None]
        if not known_costs or len(known_costs) < len(costs):
            return None
        return {level: sum(cost[level] for cost in known_costs) for level in known_costs[0]}

    def as_json(self) -> dict[str, Json]:
        """Return one JSON object; `total` has the form of a solver in `hybrid run --dry-run --json`."""
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
        """Return a row with the expected estimate for each solver of each run, then low, expected and high totals."""
        keys = ("run",) if self.ablation else ("run", "solver")
        rows = [
            (*(name, solver)[: len(keys)], *_row(estimate, *estimate.levels[1], estimate.cost_usd))
            for name, run in self.runs.items()
            for solver, estimate in run.solvers.items()
        ]
        count = f"{len(self.runs)} runs"
        all_runs = (count, "")[: len(keys)]
        rows += [(*all_runs, *_row(self.total, *level, self.cost_usd)) for level in self.total.levels]
        assumed = [f"assumed: {line}" for line in self.total.assumes]
        return _table(self.ablation or count, keys, rows, (self.missing, assumed, self.notes), form)

    def _parts(self) -> Iterator[SolverEstimate]:
        for run in self.runs.values():
            yield from run.solvers.values()
            if run.captions is not None:
                yield run.captions


def _row(
    estimate: SolverEstimate, level: Level, spent: Spent, cost_usd: Mapping[Level, float] | None
) -> tuple[str, ...]:
    """Return questions, level, model calls, tokens in and out, and USD as table cells."""
    from hybrid.display.tables import NONE, tokens

    counts = (spent.calls, spent.input_tokens, spent.output_tokens)
    numbers = (tokens(None if count is None else round(count)) for count in counts)
    return (str(estimate.questions), level, *numbers, NONE if cost_usd is None else f"{cost_usd[level]:.2f}")


def _table(title: str, key_columns: Sequence[str], rows: Iterable[tuple[str, ...]], below: _Below, form: str) -> str:
    """Render the rows as a table, followed by what is missing, what is assumed, and notes."""
    from hybrid.display.tables import RENDERERS, Column, Table

    missing, assumed, notes = below
    lines = (*(f"missing: {line}" for line in missing), *assumed, *(f"note: {line}" for line in notes))
    numbers = ("questions", "estimate", "model calls", "tokens in", "tokens out", "cost USD")
    columns = (*(Column(name, "left") for name in key_columns), *(Column(name) for name in numbers))
    return RENDERERS[form](Table(f"{title} (nothing was asked)", columns, tuple(rows), lines))
