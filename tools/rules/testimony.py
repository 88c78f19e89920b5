"""What a specialist says to a prompt: the reply, the finding it rests on, and how sure it is.

A library of `tools/rules/` and its tables; read by `baselines/specialist`, `graphs/arbiter` and `graphs/verify`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from hybrid.errors import NoBackend
from hybrid.solving.controls import ORACLE, ORACLE_ANSWER
from hybrid.solving.kit import Kit, ToolCall
from hybrid.types import LETTERS, Box, Finding, Json, Kind, Prompt


@dataclass(frozen=True)
class Testimony:
    """A specialist's answer of any kind, and whose finding it rests on."""

    answer: str
    """The whole reply, in the form of the format line of the prompt's kind."""
    tool: str
    finding: Finding
    choice: int | None = None
    """The place of the choice, where the prompt offers choices."""
    sure: float | None = None
    """Probability, 0..1, that the answer is right; None: that of the finding's own statement."""
    on_card: bool = True
    """Whether the reliability on the tool's card speaks of this answer. It does not where the card counts another
    statement, or counts generated pictures while the answer is about where people look."""

    @property
    def letter(self) -> str | None:
        """The letter of the choice; None where the answer is none."""
        return None if self.choice is None else LETTERS[self.choice]

    @property
    def confidence(self) -> float:
        """Probability, 0..1, that the answer is right."""
        return self.finding.confidence if self.sure is None else self.sure


Rule = Callable[[Prompt, Kit], Awaitable[Testimony | None]]


def choose(place: int, tool: str, finding: Finding, *, sure: float | None = None, on_card: bool = True) -> Testimony:
    """Testify for the choice at `place`, counted from 0."""
    return Testimony(f"Answer: ({LETTERS[place]})", tool, finding, place, sure, on_card)


def say(answer: str, tool: str, finding: Finding, sure: float | None = None) -> Testimony:
    """Testify with a word, a number or an order: `Answer: yes`. No card counts such answers."""
    return Testimony(f"Answer: {answer}", tool, finding, None, sure, on_card=False)


def about(prompt: Prompt, tool: str, finding: Finding, pattern: str) -> Testimony | None:
    """Testify for the one choice that the pattern fits; none or several is an abstention."""
    fits = [place for place, choice in enumerate(prompt.choices) if re.search(pattern, choice)]
    return choose(fits[0], tool, finding) if len(fits) == 1 else None


class OracleSpoke(Exception):
    """A perfect tool was called: what it says needs no rule."""

    def __init__(self, tool: str, finding: Finding, answer: str) -> None:
        super().__init__(answer)
        self.tool = tool
        self.finding = finding
        self.answer = answer

    def testimony(self, prompt: Prompt) -> Testimony:
        """The answer as a testimony of the tool that was called."""
        letter = re.search(r"\(([A-Z])\)", self.answer) if prompt.kind is Kind.CHOICE else None
        choice = LETTERS.index(letter[1]) if letter else None
        return Testimony(self.answer, self.tool, self.finding, choice, 1.0)


def until_oracle(tool: ToolCall) -> ToolCall:
    """A kit's tools for one rule, which an oracle's answer ends: it raises `OracleSpoke`."""

    async def call(name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        finding = await tool(name, images, args)
        answer = finding.data.get(ORACLE_ANSWER)
        if finding.backend == ORACLE and isinstance(answer, str):
            raise OracleSpoke(name, finding, answer)
        return finding

    return call


def names(prompt: Prompt) -> list[str]:
    """The names of the images shown, in order."""
    return [image.name for image in prompt.images]


async def heard(kit: Kit, tool: str, image: str, args: Mapping[str, Json]) -> Finding | None:
    """One tool's finding about one image, or None where it has nothing to answer with, for rules that can go on."""
    try:
        return await kit.tool(tool, [image], args)
    except NoBackend as error:
        kit.rule("no backend", str(error))
        return None


def rows_of(finding: Finding, key: str) -> list[Mapping[str, Json]]:
    """The list of objects under a key of a finding's data; empty where there is none."""
    value = finding.data.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [row for row in value if isinstance(row, Mapping)]


def box_of(row: Mapping[str, Json]) -> Box | None:
    """The box under `box_px` of an object in a finding's data, or None where it holds no four numbers."""
    value = row.get("box_px")
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 4:
        return None
    sides = [float(side) for side in value if isinstance(side, int | float)]
    return Box(*sides) if len(sides) == 4 else None


def number_of(row: Mapping[str, Json], key: str) -> float | None:
    """The number under a key of an object in a finding's data, or None."""
    value = row.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_json(testimony: Testimony) -> dict[str, Json]:
    """What a trace and `hybrid calibrate` keep of a testimony."""
    return {
        "letter": testimony.letter,
        "answer": testimony.answer,
        "tool": testimony.tool,
        "backend": testimony.finding.backend,
        "confidence": testimony.confidence,
    }
