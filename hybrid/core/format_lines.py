"""The texts appended to a prompt: an instruction whether to reason first, and a format line for each kind of answer.

Text from the data is used verbatim. A format line is the same for every solver and can be left out
(`--format-line off`); `--protocol official` always leaves it out, because the papers' code adds nothing to the text of
the data and of `benchmarks/NAME/texts.toml`. The manifest contains the settings and a hash of the wording.
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

from hybrid.core.types import Kind, Prompt, Reasoning

REASONING: Mapping[Reasoning, str] = {
    "first": "Reason step by step in writing first, then give your answer.",
    "none": "Give your answer at once, without writing down any reasoning.",
}
# Kinds of prompt that ask for an answer. The others steer a dialogue and leave no room for reasoning.
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
    """Return the `B` of `Answer: (B)` or the `yes` of `Answer: yes`; any other text unchanged."""
    match = _ANSWER.fullmatch(answer)
    return answer if match is None else match[2] if match[1] is None else match[1]


@dataclass(frozen=True)
class Wording:
    """The texts that hybrid appends to a prompt: the format line, and an instruction whether to reason first."""

    format_line: bool = True
    # Whether to reason first; None leaves it to the model.
    reasoning: Reasoning | None = None

    def closing(self, prompt: Prompt) -> tuple[str, ...]:
        """Return the texts to append: the reasoning instruction, if chosen, and the format line of the kind."""
        instruction = REASONING[self.reasoning] if self.reasoning is not None and prompt.kind in REASONED else ""
        line = FORMAT_LINES[prompt.kind] if self.format_line else ""
        return tuple(filter(None, (instruction, line)))

    def format_answer(self, answer: str) -> str:
        """Format an answer of hybrid's own solvers (`Answer: (B)`); without a format line, reduce it to the bare `B`.

        The official parsers read a bare letter or word; most of them do not read `Answer: (B)`.
        """
        return answer if self.format_line else bare(answer)

    @property
    def sha256(self) -> str:
        """Hash of all format lines, whether they are used or not."""
        content = {str(kind): line for kind, line in FORMAT_LINES.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
