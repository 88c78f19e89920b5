"""How a prompt is put into words: the one format line of each kind.

Text that data carries is used verbatim. A format line is the same for every solver and can be left out
(`--format-line off`); its wording and the settings stand in the manifest as a hash.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from hybrid.types import Kind, Prompt

FORMAT_LINES: dict[Kind, str] = {
    Kind.CHOICE: 'End your reply with one line of this form, with the letter of one option: "Answer: (X)".',
    Kind.YES_NO: 'End your reply with one line: "Answer: yes" or "Answer: no".',
    Kind.INTEGER: 'End your reply with one line that holds a single whole number: "Answer: N".',
    Kind.ORDER: 'End your reply with one line that holds the letters in order, without spaces: "Answer: BCA".',
    Kind.SCANPATH: "End your reply with the three lists, each on a line of its own: X = [...], Y = [...], T = [...].",
    Kind.VIEWS: 'End your reply with one line that holds the numbers of the parts: "Answer: 1, 3".',
    Kind.CONTINUE: 'Reply with one word: "yes" or "no".',
    Kind.VIEW_PLAN: "Reply with the JSON object alone.",
    Kind.FREE: "",
}


@dataclass(frozen=True)
class Wording:
    """The words that are ours: format lines, by kind, and whether they are used."""

    format_line: bool = True
    lines: dict[Kind, str] = field(default_factory=lambda: dict(FORMAT_LINES))

    def closing(self, prompt: Prompt) -> tuple[str, ...]:
        """The format line of the prompt's kind, where there is one."""
        line = self.lines[prompt.kind] if self.format_line else ""
        return (line,) if line else ()

    @property
    def sha256(self) -> str:
        """Hash of everything that changes the words a model reads."""
        content = {"format_line": self.format_line, "lines": {str(k): v for k, v in self.lines.items()}}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
