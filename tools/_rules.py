"""What the specialists alone say to a prompt: one rule a route, read by `baselines/specialist` and `graphs/arbiter`.

`testify` looks up the prompt's route in `RULES`, calls the tools of that rule and turns their `data` (never their text)
into one of the offered choices. A route without a rule, or a finding that does not decide, is an abstention.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from hybrid.kit import Kit
from hybrid.registry import load
from hybrid.tool import Tool
from hybrid.trust import Curve
from hybrid.types import LETTERS, Finding, Json, Prompt

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True)
class Testimony:
    """A specialist's answer: the place of a choice, and whose finding it rests on."""

    choice: int
    tool: str
    finding: Finding

    @property
    def letter(self) -> str:
        """The letter of the choice."""
        return LETTERS[self.choice]


Rule = Callable[[Prompt, Kit], Awaitable[Testimony | None]]


async def testify(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The specialists' answer, or None for an abstention. Raises `ToolError` when a tool cannot answer."""
    rule = RULES.get(prompt.route)
    return await rule(prompt, kit) if rule else None


def card_curve(testimony: Testimony) -> Curve:
    """What the tool's card says of the reliability of the backend that answered."""
    tool: Tool = load("tools", testimony.tool)
    card = next((card for card in tool.card.backends if card.name == testimony.finding.backend), None)
    return Curve(card.reliability if card else ())


async def jigsaw(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The candidate whose seams fit; choices name candidates by their place among the images."""
    finding = await kit.tool("jigsaw", _names(prompt), {})
    best = finding.data["best"]
    if not isinstance(best, int):
        return None
    return _about(prompt, "jigsaw", finding, rf"\b{ORDINALS[best + 1]} image\b")


async def relative_depth(prompt: Prompt, kit: Kit) -> Testimony | None:
    """The point that the depth tool puts nearer; choices name points by their drawn letter."""
    labels = [match[1] for choice in prompt.choices if (match := re.search(r"\b([A-Z])\b", choice))]
    finding = await kit.tool("depth", _names(prompt), {"labels": labels})
    nearer = finding.data["nearer"]
    return _about(prompt, "depth", finding, rf"\b{nearer}\b") if isinstance(nearer, str) else None


RULES: Mapping[str, Rule] = {
    "Jigsaw": jigsaw,
    "Relative_Depth": relative_depth,
}


def _names(prompt: Prompt) -> Sequence[str]:
    return [image.name for image in prompt.images]


def _about(prompt: Prompt, tool: str, finding: Finding, pattern: str) -> Testimony | None:
    """Testify for the one choice that the pattern fits; none or several is an abstention."""
    fits = [place for place, choice in enumerate(prompt.choices) if re.search(pattern, choice)]
    return Testimony(fits[0], tool, finding) if len(fits) == 1 else None


def as_json(testimony: Testimony) -> dict[str, Json]:
    """What a trace and `hybrid calibrate` keep of a testimony."""
    return {
        "letter": testimony.letter,
        "answer": f"Answer: ({testimony.letter})",
        "tool": testimony.tool,
        "backend": testimony.finding.backend,
        "confidence": testimony.finding.confidence,
    }
