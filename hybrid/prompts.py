"""The words around a prompt: whether to reason first, and the one format line of each kind.

Text that data carries is used verbatim. A format line is the same for every solver and can be left out
(`--format-line off`); under `--protocol official` it always is, because the papers' own code adds nothing to what the
data and `benchmarks/NAME/texts.toml` say. Its wording and the settings are in the manifest as a hash.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybrid.config import Reasoning
from hybrid.types import Kind, Prompt

REASONING: Mapping[Reasoning, str] = {
    "first": "Reason step by step in writing first, then give your answer.",
    "none": "Give your answer at once, without writing down any reasoning.",
}
# Kinds of prompt that ask for an answer; the others steer a dialogue, and their words leave no room for reasoning.
REASONED = frozenset(
    {
        *(Kind.CHOICE, Kind.YES_NO, Kind.INTEGER, Kind.NUMBER, Kind.TEXT),
        *(Kind.ORDER, Kind.POINT, Kind.BOX, Kind.SCANPATH),
    }
)

_LINES: Final = tomllib.loads(Path(__file__).with_name("format_lines.toml").read_text("utf-8"))
FORMAT_LINES: Final[Mapping[Kind, str]] = {Kind(kind): line for kind, line in _LINES.items()}

_ANSWER = re.compile(r"Answer: (?:\(([^()]*)\)|(.*))")


def bare(answer: str) -> str:
    """The `B` of `Answer: (B)`, the `yes` of `Answer: yes`; any other text as it is."""
    match = _ANSWER.fullmatch(answer)
    return answer if match is None else match[2] if match[1] is None else match[1]


@dataclass(frozen=True)
class Wording:
    """Which words that are ours close a prompt: the format lines, and whether to reason first."""

    format_line: bool = True
    # None says nothing of it, and leaves it to the model.
    reasoning: Reasoning | None = None

    def closing(self, prompt: Prompt) -> tuple[str, ...]:
        """Whether to reason first, where that was chosen, and the format line of the prompt's kind."""
        instruction = REASONING[self.reasoning] if self.reasoning is not None and prompt.kind in REASONED else ""
        line = FORMAT_LINES[prompt.kind] if self.format_line else ""
        return tuple(filter(None, (instruction, line)))

    def format_answer(self, answer: str) -> str:
        """An answer of a solver of ours, `Answer: (B)`, in the form asked for: bare (`B`) without our format line.

        The official parses read a bare letter or word; most of them do not read `Answer: (B)`.
        """
        return answer if self.format_line else bare(answer)

    @property
    def sha256(self) -> str:
        """Hash of the lines, whether or not they are used."""
        content = {str(kind): line for kind, line in FORMAT_LINES.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
