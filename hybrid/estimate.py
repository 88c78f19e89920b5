"""What a run would ask, before it asks: `hybrid run ... --dry-run`.

Token counts are estimates from published formulas (`models/tokens.py`); a cost is printed only where a price was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.models.tokens import image_tokens, text_tokens
from hybrid.plan import Plan
from hybrid.registry import load
from hybrid.tool import Tool
from hybrid.types import Json, Question

REPLY_TOKENS = 125
"""The published replies of GPT4o and GPT4V to BLINK val hold 104 and 149 on average, by characters / 4."""


@dataclass(frozen=True)
class Asked:
    """What one solver still has to ask. Model calls lie between the two; tokens are for the fewest."""

    questions: int
    fewest_calls: int
    most_calls: int
    input_tokens: int | None
    output_tokens: int
    cost_usd: float | None


@dataclass(frozen=True)
class Estimate:
    """A run before it is made."""

    folder: str
    solvers: Mapping[str, Asked]
    missing: tuple[str, ...]
    """What must be there and is not: the run would be refused."""
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """The estimate as one JSON object."""
        return {
            "run": self.folder,
            "solvers": {name: _asked_json(asked) for name, asked in self.solvers.items()},
            "missing": list(self.missing),
            "notes": list(self.notes),
        }

    def as_text(self) -> str:
        """The estimate as a table and lines."""
        from hybrid.report.tables import Column, Table, as_text, tokens

        headings = ("questions", "model calls", "tokens in (estimate)", "tokens out (estimate)", "cost USD (estimate)")
        rows = []
        for name, asked in self.solvers.items():
            calls = tokens(asked.fewest_calls)
            if asked.most_calls != asked.fewest_calls:
                calls += f" to {tokens(asked.most_calls)}"
            cost = "-" if asked.cost_usd is None else f"{asked.cost_usd:.2f}"
            rows.append(
                (name, str(asked.questions), calls, tokens(asked.input_tokens), tokens(asked.output_tokens), cost)
            )
        lines = [f"missing: {line}" for line in self.missing] + [f"note: {line}" for line in self.notes]
        columns = (Column("solver", "left"), *(Column(name) for name in headings))
        return as_text(Table(f"{self.folder} (nothing was asked)", columns, tuple(rows), tuple(lines)))


def _asked_json(asked: Asked) -> dict[str, Json]:
    return {
        "questions": asked.questions,
        "model_calls": [asked.fewest_calls, asked.most_calls],
        "input_tokens": asked.input_tokens,
        "output_tokens": asked.output_tokens,
        "cost_usd": asked.cost_usd,
    }


def estimate(plan: Plan) -> Estimate:
    """Count what is open, solver by solver, and name what is missing."""
    solvers = {}
    for name, solver in plan.solvers.items():
        waiting = plan.open_questions(name)
        solvers[name] = _asked(plan, waiting, *solver.calls(plan.config.limits))
    notes = _weights(plan)
    if plan.broken:
        notes.append(f"{len(plan.broken)} rows of the data cannot be used: {plan.broken[0].error}")
    if any(asked.most_calls for asked in solvers.values()) and plan.config.model_settings.price is None:
        notes.append("no cost: give the price with --model-arg price=IN/OUT in USD per million tokens")
    return Estimate(str(plan.folder.path), solvers, plan.missing, tuple(notes))


def _asked(plan: Plan, waiting: tuple[Question, ...], fewest: int, most: int) -> Asked:
    counts = [_tokens(plan, question) for question in waiting] if fewest else []
    known = [count for count in counts if count is not None]
    total = fewest * sum(known) if len(known) == len(counts) else None
    written = REPLY_TOKENS * fewest * len(waiting)
    price = plan.config.model_settings.price
    cost = None
    if price is not None and total is not None:
        cost = (total * price.input_usd + written * price.output_usd) / 1e6
    return Asked(len(waiting), fewest * len(waiting), most * len(waiting), total, written, cost)


def _tokens(plan: Plan, question: Question) -> int | None:
    """Tokens of the question's first prompt; None where the provider's rule for images is not known."""
    provider, _, model = (plan.config.model or "").partition(":")
    if provider in ("replay", "embedded"):
        return 0
    total = text_tokens(question.text)
    for image in question.images:
        detail = plan.config.model_settings.image_detail
        count = image_tokens(provider, model, image.width, image.height, detail)
        if count is None:
            return None
        total += count
    return total


def _weights(plan: Plan) -> list[str]:
    notes: list[str] = []
    for name, in_use in sorted(plan.tools.items()):
        tool: Tool = load("tools", name)
        learned = tool.backend("learned")
        if in_use == "absent":
            notes.append(f"{name}: no weights, and no weight-free backend: it will not answer")
        elif learned is not None and not in_use.startswith("learned") and plan.config.backend == "auto":
            notes.append(f"{name}: {learned.weights} is not on disk; the weight-free backend will answer")
    return notes
