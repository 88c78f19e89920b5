"""The rules of a tool: which questions it answers without an MLLM, and how its output becomes the answer.

    RULES = {"Relative_Depth": OneCall("depth", letter("nearer"), drawn_labels)}      # of `TOOL`: rules=RULES

The route of a prompt selects the rule. The rule calls the tools that it names, and turns their `data` (never their
text) into a reply of the prompt's kind, or into None, an abstention. It depends only on the prompt and the tool outputs
and is deterministic, because a rule of an external tool is run again for each of its calls (`hybrid/serving/rules.py`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from hybrid.core.errors import NoBackend
from hybrid.core.types import LETTERS, Finding, Json, Prompt
from hybrid.tool.finding_data import whole_number

ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


class CallTool(Protocol):
    """Call a specialist on images that the prompt or an earlier tool output has shown, given by their names."""

    async def __call__(self, name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        """Return the tool output, after its images were named and registered. Raises `ToolError` or `BudgetSpent`."""


class RuleContext(Protocol):
    """Everything that a rule may use besides the prompt; a solver's context has this type."""

    @property
    def tool(self) -> CallTool:
        """Calls a tool that the rule names."""

    def rule(self, name: str, text: str) -> None:
        """Write why the rule abstains into the trace."""


@dataclass(frozen=True)
class SpecialistAnswer:
    """A specialist's answer to a prompt of any kind, and the tool output behind it."""

    # The whole reply, in the form of the format line of the prompt's kind.
    answer: str
    tool: str
    finding: Finding
    # Index of the choice, from 0, if the prompt offers choices.
    choice: int | None = None
    # Probability, 0..1, that the answer is right; if None, the confidence of the tool output applies.
    sure: float | None = None
    # Whether the reliability on the tool's card applies to this answer. It does not if the card counts a different kind
    # of statement, or if it was counted on generated pictures and the answer is about where people look.
    on_card: bool = False

    @property
    def letter(self) -> str | None:
        """Return the letter of the choice; None if the answer is not a choice."""
        return None if self.choice is None else LETTERS[self.choice]

    @property
    def confidence(self) -> float:
        """Probability, 0..1, that the answer is right."""
        return self.finding.confidence if self.sure is None else self.sure

    def as_json(self) -> dict[str, Json]:
        """Return the answer in the form that traces contain and `hybrid calibrate` reads."""
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

    async def __call__(self, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        """Return the specialists' answer, or None for an abstention."""


class Abstained(Exception):
    """Ends a rule without an answer. Its arguments, if any, are the name and the text of a note for the trace."""


@dataclass(frozen=True)
class RuleInWords:
    """A rule that is a function."""

    answer: Callable[[Prompt, RuleContext], Awaitable[SpecialistAnswer | None]]
    tools: tuple[str, ...]

    async def __call__(self, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        """Return the function's answer, or None for an abstention."""
        try:
            return await self.answer(prompt, ctx)
        except Abstained as abstained:
            if abstained.args:
                ctx.rule(*abstained.args)
            return None


def asks(*tools: str) -> Callable[[Callable[[Prompt, RuleContext], Awaitable[SpecialistAnswer | None]]], Rule]:
    """Make a function a rule, and name the tools that it may ask: `@asks("detection", "ocr")`.

    The function returns the answer; it returns None or raises `Abstained` for an abstention.
    """
    return lambda answer: RuleInWords(answer, tools)


@dataclass(frozen=True)
class RuleByText:
    """A rule for prompts of any kind: it passes each prompt to the rule that fits the question in its text."""

    # The rules, by name of the recognised question.
    rules: Mapping[str, Rule]
    # Returns the name of the recognised question, or None with the reason why the question is unclear.
    name_of: Callable[[Prompt], tuple[str | None, str]]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that any of these rules may ask."""
        return tuple(dict.fromkeys(tool for rule in self.rules.values() for tool in rule.tools))

    async def __call__(self, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        """Return the answer to the recognised question; None, with the reason in the trace, if it is unclear."""
        name, reason = self.name_of(prompt)
        if name is None:
            ctx.rule("not clear", reason)
            return None
        return await self.rules[name](prompt, ctx)


def image_names(prompt: Prompt) -> list[str]:
    """Return the names of the images shown, in order."""
    return [image.name for image in prompt.images]


async def ask_tool(ctx: RuleContext, tool: str, image: str, args: Mapping[str, Json]) -> Finding | None:
    """Return one tool's output about one image, or None without a backend, for rules that can continue without it."""
    try:
        return await ctx.tool(tool, [image], args)
    except NoBackend as error:
        ctx.rule("no backend", str(error))
        return None


def choose(
    place: int | None, tool: str, finding: Finding, *, sure: float | None = None, on_card: bool = False
) -> SpecialistAnswer:
    """Return the specialists' choice at `place`, counted from 0. Raises `Abstained` if `place` is None."""
    if place is None:
        raise Abstained
    return SpecialistAnswer(
        f"Answer: ({LETTERS[place]})", tool, finding=finding, choice=place, sure=sure, on_card=on_card
    )


def say(answer: str, tool: str, finding: Finding, sure: float | None = None) -> SpecialistAnswer:
    """Return the specialists' answer as a word, a number or an order: `Answer: yes`.

    A card's reliability does not apply to such answers.
    """
    return SpecialistAnswer(f"Answer: {answer}", tool, finding, None, sure)


def choose_matching(prompt: Prompt, tool: str, finding: Finding, pattern: str | None) -> SpecialistAnswer | None:
    """Return the choice that a pattern matches; None (an abstention) if it matches no choice or several.

    The pattern is compared with the words of a choice, never with its own letter: choices name points and boxes by the
    letter drawn in the picture, and images by their position.
    """
    fits = [place for place, choice in enumerate(prompt.choices) if pattern is not None and re.search(pattern, choice)]
    return choose(fits[0], tool, finding, on_card=True) if len(fits) == 1 else None


# Turns a tool output into a pattern that matches the right choice; None if the output does not decide.
Reading = Callable[[Finding, Prompt], str | None]


@dataclass(frozen=True)
class OneCall:
    """A rule that calls one tool once, on all images, and takes the one choice that matches its output."""

    tool: str
    reading: Reading
    # The tool's arguments; None if the question does not contain them.
    args: Callable[[Prompt], Mapping[str, Json] | None] = lambda prompt: {}
    # The note that an abstention adds to the trace.
    unread: tuple[str, str] = ("", "")

    @property
    def tools(self) -> tuple[str, ...]:
        """The tool of the rule."""
        return (self.tool,)

    async def __call__(self, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        """Return the choice, or None for an abstention."""
        args = self.args(prompt)
        if args is None:
            ctx.rule(*self.unread)
            return None
        finding = await ctx.tool(self.tool, image_names(prompt), args)
        return choose_matching(prompt, self.tool, finding, self.reading(finding, prompt))


def letter(key: str = "best") -> Reading:
    """Return a reading whose pattern matches the letter under `key` in choices such as "Point B" or "B is closer"."""

    def reading(finding: Finding, prompt: Prompt) -> str | None:
        label = finding.data.get(key)
        return rf"\b{re.escape(label)}\b" if isinstance(label, str) else None

    return reading


def later_image(finding: Finding, prompt: Prompt) -> str | None:
    """Return a pattern for the best of the images after the first, such as "third image"."""
    best = whole_number(finding, "best", min(len(prompt.images), len(ORDINALS)) - 1)
    return None if best is None else rf"\b{ORDINALS[best + 1]} image\b"


def drawn_labels(prompt: Prompt) -> dict[str, Json]:
    """Return the letters that the choices name."""
    return {"labels": [match[1] for choice in prompt.choices if (match := re.search(r"\b([A-Z])\b", choice))]}
