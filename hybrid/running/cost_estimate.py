"""The estimate of a run's model calls, tokens and cost, as a table and as JSON (`estimate.py` makes it).

print(CostEstimate("runs/blink", {"mllm": solver_estimate}, None, (), ()).as_text())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hybrid.config import Price
from hybrid.types import Json

Level = Literal["low", "expected", "high"]


@dataclass(frozen=True)
class Spent:
    """Model calls and tokens; `input_tokens` is None where the provider's rule for images is not known."""

    calls: float = 0.0
    input_tokens: float | None = 0.0
    output_tokens: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        known = None
        if self.input_tokens is not None and other.input_tokens is not None:
            known = self.input_tokens + other.input_tokens
        return Spent(self.calls + other.calls, known, self.output_tokens + other.output_tokens)

    def times(self, factor: float) -> Spent:
        """So many times as much."""
        known = None if self.input_tokens is None else self.input_tokens * factor
        return Spent(self.calls * factor, known, self.output_tokens * factor)


@dataclass(frozen=True)
class SolverEstimate:
    """Calls and tokens for the open questions of one solver: at the lowest, as expected, and at the highest."""

    questions: int
    low: Spent
    expected: Spent
    high: Spent
    price: Price | None
    assumes: tuple[str, ...] = ()
    rounds: tuple[int, int] = (0, 0)
    """The most calls one after the other of a question, as expected and at the highest."""

    @property
    def levels(self) -> tuple[tuple[Level, Spent], ...]:
        """The three by name."""
        return (("low", self.low), ("expected", self.expected), ("high", self.high))

    @property
    def cost_usd(self) -> Mapping[Level, float] | None:
        """USD of each; None without a price or where tokens are not known."""
        cost: dict[Level, float] = {}
        for level, spent in self.levels:
            if self.price is None or spent.input_tokens is None:
                return None
            cost[level] = self.price.of(spent.input_tokens, spent.output_tokens)
        return cost

    def as_json(self, counted: str = "questions") -> dict[str, Json]:
        """One JSON object; `counted` is the key of the number of questions."""

        def by_level(value: Callable[[Spent], float | None]) -> dict[str, Json]:
            numbers = {level: value(spent) for level, spent in self.levels}
            return {level: None if number is None else round(number) for level, number in numbers.items()}

        cost = self.cost_usd
        return {
            counted: self.questions,
            "model_calls": by_level(lambda spent: spent.calls),
            "input_tokens": by_level(lambda spent: spent.input_tokens),
            "output_tokens": by_level(lambda spent: spent.output_tokens),
            "cost_usd": None if cost is None else {level: cost[level] for level, _ in self.levels},
            "assumes": list(self.assumes),
        }


@dataclass(frozen=True)
class CostEstimate:
    """The estimate of a run that has not been made."""

    folder: str
    solvers: Mapping[str, SolverEstimate]
    captions: SolverEstimate | None
    """For describing images, once for all solvers, counted in images; None where none is described."""
    missing: tuple[str, ...]
    """Why the run would be refused: lines on what is needed and absent."""
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """The estimate as one JSON object."""
        return {
            "run": self.folder,
            "solvers": {name: asked.as_json() for name, asked in self.solvers.items()},
            **({"captions": self.captions.as_json("images")} if self.captions else {}),
            "missing": list(self.missing),
            "notes": list(self.notes),
        }

    def as_text(self, form: str = "text") -> str:
        """The estimate as a table, three lines a solver where they differ, and lines below."""
        from hybrid.display.tables import RENDERERS, Column, Table

        headings = ("questions", "estimate", "model calls", "tokens in", "tokens out", "cost USD")
        rows = []
        estimates = {**self.solvers, **({"(captions)": self.captions} if self.captions else {})}
        for name, asked in estimates.items():
            same = asked.low == asked.expected == asked.high
            for level, spent in asked.levels[1:2] if same else asked.levels:
                questions, _, *numbers = estimate_row(asked, level, spent, asked.cost_usd)
                rows.append((name, questions, "certain" if same else level, *numbers))
        assumed = [f"{name}: {line}" for name, asked in estimates.items() for line in asked.assumes]
        lines = [
            *(f"missing: {line}" for line in self.missing),
            *(f"assumed of {line}" for line in assumed),
            *(f"note: {line}" for line in self.notes),
        ]
        columns = (Column("solver", "left"), *(Column(name) for name in headings))
        return RENDERERS[form](Table(f"{self.folder} (nothing was asked)", columns, tuple(rows), tuple(lines)))


def estimate_row(
    asked: SolverEstimate, level: Level, spent: Spent, cost_usd: Mapping[Level, float] | None
) -> tuple[str, ...]:
    """Questions, level, model calls, tokens read and written, and USD, as a table shows them."""
    from hybrid.display.tables import NONE, tokens

    counts = (spent.calls, spent.input_tokens, spent.output_tokens)
    numbers = (tokens(None if count is None else round(count)) for count in counts)
    return (str(asked.questions), level, *numbers, NONE if cost_usd is None else f"{cost_usd[level]:.2f}")
