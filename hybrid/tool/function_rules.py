"""The rule of a tool that is a function (`@NAME.rule`): one call of the tool, and its output as an answer."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.core.types import Finding, Json, Kind, Prompt
from hybrid.tool.outputs import ToolOutput
from hybrid.tool.rules import RuleContext, SpecialistAnswer, choose, image_names, say


@dataclass(frozen=True)
class FunctionRule:
    """A rule that calls its tool once and turns the output into an answer by a function."""

    tool: str
    function: Callable[..., Any]
    output_type: type[ToolOutput]
    args: Callable[[Prompt], Mapping[str, Json] | None]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tool of the rule."""
        return (self.tool,)

    async def __call__(self, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        """Return the answer, or None for an abstention."""
        args = self.args(prompt)
        if args is None:
            ctx.rule("no arguments", "the question does not contain the arguments of the tool")
            return None
        finding = await ctx.tool(self.tool, image_names(prompt), args)
        output = self.output_type.from_finding(finding, self.tool)
        takes_prompt = len(inspect.signature(self.function).parameters) > 1
        value = self.function(output, prompt) if takes_prompt else self.function(output)
        return answer_with(value, prompt, ctx, self.tool, finding)


def answer_with(
    value: object, prompt: Prompt, ctx: RuleContext, tool_name: str, finding: Finding
) -> SpecialistAnswer | None:
    """Return the answer for a value: the text of a choice, else the value as text.

    Returns None if the value is None, or, with a note in the trace, if it does not select exactly one choice.

    Raises:
        TypeError: the value is not a text, number or boolean.
    """
    if value is None:
        return None
    if not isinstance(value, str | int | float):
        raise TypeError(
            f"a rule must return the answer as a text, a number or a truth value, not a {type(value).__name__}"
        )
    words = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, bool):
        words = "yes" if value else "no"
    if prompt.kind is not Kind.CHOICE:
        return say(words, tool_name, finding)
    place = _choice_of(words, prompt.choices)
    if place is None:
        ctx.rule("no choice", f"{words!r:.80} matches none of the choices, or several")
        return None
    return choose(place, tool_name, finding)


def _choice_of(words: str, choices: Sequence[str]) -> int | None:
    """Return the index of the only choice with this text, else with this letter, else of the only one containing it."""
    plain = [choice.strip(" .").casefold() for choice in choices]
    phrase = words.strip(" .").casefold()
    if plain.count(phrase) == 1:
        return plain.index(phrase)
    if (letter := re.fullmatch(r"\(?([a-z])\)?", phrase)) and ord(letter[1]) - ord("a") < len(choices):
        return ord(letter[1]) - ord("a")
    inside = [place for place, choice in enumerate(plain) if phrase and re.search(rf"\b{re.escape(phrase)}\b", choice)]
    return inside[0] if len(inside) == 1 else None
