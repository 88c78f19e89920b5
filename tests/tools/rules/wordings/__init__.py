"""Invented questions in the wording of seven benchmarks, with the correct recognition.

`recognised.psv` and `abstained.psv` were written with the rules. `held_out.psv` was written before any rule;
`docs/specialists.md` gives the shares of right, unrecognised and wrong questions in the first run on it.

    form|question|choices|asked|things      # form: kind of reply (c, y, i, t), then the number of images if not one
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid.core.types import ImageRef, Kind, Prompt, StoredImage
from tools.rules.questions.recognising import recognise_question
from tools.rules.questions.sentence import Thing, Unclear
from tools.rules.questions.values import (
    AttributeQuestion,
    CountQuestion,
    ExistenceQuestion,
    NearestQuestion,
    PositionQuestion,
    RecognisedQuestion,
    RelationQuestion,
)

KINDS = {"c": Kind.CHOICE, "y": Kind.YES_NO, "i": Kind.INTEGER, "t": Kind.FREE}


@dataclass(frozen=True)
class Wording:
    """A question, and its correct recognition ("-" for nothing)."""

    form: str
    question: str
    choices: tuple[str, ...]
    expected: str

    def prompt(self, letters: str = "({letter}) {choice}") -> Prompt:
        """Return the question as it is asked."""
        lines = [letters.format(letter=a, choice=b) for a, b in zip("ABCDEFG", self.choices, strict=False)]
        count = int(self.form[1:] or 1)
        stored = StoredImage("0" * 64, 640, 480, "image/png")
        images = [ImageRef(f"img:{place}", stored) for place in range(1, count + 1)]
        return Prompt((*images, "\n".join([self.question, *lines])), KINDS[self.form[0]], self.choices, route="by_text")


def prompt(text: str, *choices: str, kind: Kind | None = None, size: tuple[int, int] = (640, 480)) -> Prompt:
    """Return a question about one image, without letters; yes or no if it has no choices."""
    image = ImageRef("img:1", StoredImage("0" * 64, *size, "image/png"))
    kind = kind or (Kind.CHOICE if choices else Kind.YES_NO)
    return Prompt((image, text), kind, choices, route="by_text")


def wordings(name: str) -> Iterator[Wording]:
    """Yield the questions of one file."""
    with (Path(__file__).parent / f"{name}.psv").open(newline="") as lines:
        for row in csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE):
            choices = tuple(filter(None, row["choices"].split(" / ")))
            expected = f"{row['asked']} : {row['things']}" if row.get("asked", "-") != "-" else "-"
            yield Wording(row["form"], row["question"], choices, expected)


def recognised(prompt: Prompt) -> str:
    """Return the rule's reading of a prompt, in the words of these files."""
    result = recognise_question(prompt)
    return "-" if isinstance(result, Unclear) else _describe(result)


def _describe(question: RecognisedQuestion) -> str:
    match question:
        case ExistenceQuestion(name) | CountQuestion(name):
            return f"{'existence' if isinstance(question, ExistenceQuestion) else 'counting'} : {name}"
        case NearestQuestion(things, form):
            return f"depth {form} : {' ; '.join(map(_thing, things))}"
        case RelationQuestion(subject, reference, relation):
            return f"relation {relation or 'options'} : {_thing(subject)} ; {_thing(reference)}"
        case PositionQuestion(thing, part):
            side = None if part is None else {"low": "left", "high": "right"}.get(part.x or "", "?")
            return f"position {side or 'options'} : {_thing(thing)}"
        case AttributeQuestion(thing, attribute):
            return f"attribute {attribute} : {_thing(thing)}"
        case _:
            return "reading : "


def _thing(name: Thing) -> str:
    mark = name.color or name.letter
    return f"{name.name or ''}{f'[{mark}]' if mark else ''}"
