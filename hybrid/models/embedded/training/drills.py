"""Exercises in copying and looking up, which a network from nothing needs before it can read: no pictures, short.

    a list and the same list again;  letters with values, then values with their letters;  letters with boxes, or with
    fixations, then these boxes, or those around them, as a call writes them;  the number of an image, then the option
    that names it

Calls copy numbers from a question, and an answer names the letter beside what a finding says.
"""

from __future__ import annotations

import random
from typing import Any

from hybrid.models.embedded.training.policy import ORDINALS, around
from hybrid.models.embedded.training.vocabulary import WORDS


def drill(rng: random.Random) -> dict[str, Any]:
    """One exercise as a line of the file of conversations."""
    kind = rng.choice((_copied, _listed, _looked_up, _looked_up, _boxed, _boxed, _numbered))
    asked, answered = kind(rng)
    turns = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return {"benchmark": "drill", "task": "drill", "form": "drill", "turns": turns, "tools": []}


def _unit(rng: random.Random) -> str:
    """A number or a word, each a token of its own."""
    return rng.choice(WORDS) if rng.random() < 0.4 else f"{rng.randint(0, 100) / 100:.2f}"


def _copied(rng: random.Random) -> tuple[str, str]:
    units = [_unit(rng) for _ in range(rng.randint(6, 24))]
    return ", ".join(units), ", ".join(units)


def _listed(rng: random.Random) -> tuple[str, str]:
    """Boxes after their letters, then as a call writes them."""
    boxes = [(letter, [f"{rng.randint(0, 99) / 100:.2f}" for _ in range(4)]) for letter in "ABCD"[: rng.randint(1, 4)]]
    asked = " ".join(f"[{letter}] [{', '.join(box)}]" for letter, box in boxes)
    rows = (_row(letter, tuple(map(float, box))) for letter, box in boxes)
    return asked, f'"boxes": [{", ".join(rows)}]'


def _boxed(rng: random.Random) -> tuple[str, str]:
    """Fixations after their letters, then the boxes around them as a call writes them."""
    spots = [(letter, rng.randint(2, 98) / 100, rng.randint(2, 98) / 100) for letter in "ABCD"[: rng.randint(1, 4)]]
    asked = " ".join(f"[{letter}] ({x:.2f}, {y:.2f})" for letter, x, y in spots)
    return asked, f'"boxes": [{", ".join(_row(letter, around(x, y)) for letter, x, y in spots)}]'


def _row(letter: str, box: tuple[float, ...]) -> str:
    sides = ", ".join(f'"{side}": {value:.2f}' for side, value in zip(("x0", "y0", "x1", "y1"), box, strict=True))
    return f'{{{sides}, "label": "{letter}"}}'


def _numbered(rng: random.Random) -> tuple[str, str]:
    """Options that name images, then some images by number with their options."""
    names = rng.sample(ORDINALS[1:4], rng.randint(2, 3))
    asked = "\n".join(f"({letter}) the {name} image" for letter, name in zip("ABC", names, strict=False))
    chosen = [rng.randrange(len(names)) for _ in range(rng.randint(2, 5))]
    told = (f"Image {ORDINALS.index(names[place]) + 1} continues: ({'ABC'[place]})" for place in chosen)
    return asked, "\n".join(told)


def _looked_up(rng: random.Random) -> tuple[str, str]:
    """Options, then some of them with their letters, from the letter to the value or the other way round."""
    letters = "ABCDEFGH"[: rng.randint(2, 6)]
    values: list[str] = []
    while len(values) < len(letters):
        value = " ".join(_unit(rng) for _ in range(rng.randint(1, 2)))
        values += [] if value in values else [value]
    form = rng.choice(("({}) {}", "[{}] {}", "{}. {}"))
    asked = rng.choice(("\n", "; ", " ")).join(form.format(*pair) for pair in zip(letters, values, strict=True))
    chosen = rng.choices(list(zip(letters, values, strict=True)), k=rng.randint(4, 10))
    told = [f"{letter} {value}" if rng.random() < 0.3 else f"{value}: ({letter})" for letter, value in chosen]
    return asked, "\n".join(told)
