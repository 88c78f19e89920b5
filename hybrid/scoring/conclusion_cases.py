"""A case of a conclusion: its condition and its words. Each case is declared beside the code that chooses it.

    FAILED = case("limits.failed", "questions failed", "failed and left out: {each}")
    FAILED.fill(each="mllm 1 of 40")

`gain`, `specialists` and `content` read one paired difference each, b minus a. They report a difference only if its 95
% interval excludes 0 under the output's rule for questions without a readable answer. If the other rule gives another
verdict, the last sentence says so. `hybrid.scoring.conclusion.cases` returns all cases, as the docs print them.
"""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.scoring.groups import AGAIN

# The cases by id, in the order in which modules declare them.
DECLARED: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """A case of a conclusion; its `id` begins with the name of its sentence."""

    id: str
    condition: str
    words: str  # A format string of the fields that the conclusion fills in

    def fill(self, **fields: object) -> str:
        """Return the words with their fields filled in."""
        return self.words.format(**fields)


def case(identity: str, condition: str, words: str) -> Case:
    """Declare a case."""
    DECLARED[identity] = Case(identity, condition, words)
    return DECLARED[identity]


@dataclass(frozen=True)
class Sentence:
    """One sentence of a conclusion, and the id of its case."""

    id: str
    text: str
    command: str = ""  # The command that the text ends with


def say(chosen: Case, **fields: object) -> Sentence:
    """Return the sentence of a case with its fields filled in."""
    command = str(fields.get("command", ""))
    return Sentence(chosen.id, chosen.fill(**fields), "" if command == AGAIN else command)
