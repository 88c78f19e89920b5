"""Exercises in copying and looking up, which a network from nothing needs before it can read: no pictures, short.

    a list and the same list again;  letters with values, then values with their letters

Calls copy numbers from a question, and an answer names the letter beside what a finding says. With the heads that
`architecture.prepare` gives, both are learnt from these in about a hundred steps; without them neither was in 550.
"""

from __future__ import annotations

import random
from typing import Any

from hybrid.models.embedded.training.vocabulary import WORDS


def drill(rng: random.Random) -> dict[str, Any]:
    """One exercise as a line of the file of conversations."""
    kind = rng.choice((_copied, _listed, _looked_up, _looked_up))
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
    rows = (f'{{"x0": {a}, "y0": {b}, "x1": {c}, "y1": {d}, "label": "{letter}"}}' for letter, (a, b, c, d) in boxes)
    return asked, f'"boxes": [{", ".join(rows)}]'


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
