"""A specialist's answer to a prompt: the reply, the finding it rests on, and its confidence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from hybrid.solving.solver import SolverContext
from hybrid.types import LETTERS, Finding, Json, Prompt


@dataclass(frozen=True)
class SpecialistAnswer:
    """A specialist's answer to a prompt of any kind, and the finding it rests on."""

    answer: str
    """The whole reply, in the form of the format line of the prompt's kind."""
    tool: str
    finding: Finding
    choice: int | None = None
    """The place of the choice, from 0, if the prompt offers choices."""
    sure: float | None = None
    """Probability, 0..1, that the answer is right; None: that of the finding."""
    on_card: bool = False
    """Whether the reliability on the tool's card applies to this answer. It does not where the card counts another
    statement, or counts generated pictures while the answer is about where people look."""

    @property
    def letter(self) -> str | None:
        """The letter of the choice; None where the answer is none."""
        return None if self.choice is None else LETTERS[self.choice]

    @property
    def confidence(self) -> float:
        """Probability, 0..1, that the answer is right."""
        return self.finding.confidence if self.sure is None else self.sure

    def as_json(self) -> dict[str, Json]:
        """The answer as written to a trace and read by `hybrid calibrate`."""
        return {
            "letter": self.letter,
            "answer": self.answer,
            "tool": self.tool,
            "backend": self.finding.backend,
            "confidence": self.confidence,
            "on_card": self.on_card,
        }


class Rule(Protocol):
    """Asks tools about a prompt of its route."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the rule may ask; others are refused."""
        ...

    async def __call__(self, prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
        """Return the specialists' answer, or None for an abstention."""
        ...


@dataclass(frozen=True)
class RuleInWords:
    """A rule that is a function."""

    answer: Callable[[Prompt, SolverContext], Awaitable[SpecialistAnswer | None]]
    tools: tuple[str, ...]

    async def __call__(self, prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
        """Return the function's answer, or None for an abstention."""
        return await self.answer(prompt, ctx)


def asks(*tools: str) -> Callable[[Callable[[Prompt, SolverContext], Awaitable[SpecialistAnswer | None]]], Rule]:
    """Make a function a rule, and name the tools that it may ask: `@asks("detection", "ocr")`."""
    return lambda answer: RuleInWords(answer, tools)


def choose(
    place: int, tool: str, finding: Finding, *, sure: float | None = None, on_card: bool = False
) -> SpecialistAnswer:
    """The specialists' choice at `place`, counted from 0."""
    return SpecialistAnswer(f"Answer: ({LETTERS[place]})", tool, finding, place, sure, on_card)


def say(answer: str, tool: str, finding: Finding, sure: float | None = None) -> SpecialistAnswer:
    """The specialists' answer as a word, a number or an order: `Answer: yes`. No card counts such answers."""
    return SpecialistAnswer(f"Answer: {answer}", tool, finding, None, sure)
