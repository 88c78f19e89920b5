"""Parts of a recipe: where its data lie, numbers of others, and what `--data sample` draws (`sample.py`)."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from hybrid.core.toml_records import ValueMismatch


def check_template(text: str, names: Collection[str]) -> None:
    """Raise `ValueMismatch` for a text with another placeholder than these."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ValueMismatch((), f"{error}; a brace that is none of a placeholder is written twice") from error
    for _, name, form, conversion in parts:
        if name is not None and (name not in names or form or conversion):
            placeholders = ", ".join(f"{{{name}}}" for name in sorted(names))
            raise ValueMismatch((), f"{{{name}}} is no placeholder; there are: {placeholders}")


def check_units(rows: int) -> None:
    """Raise `ValueMismatch` for another number of rows than units can have."""
    if not 2 <= rows <= 1000:
        raise ValueMismatch((), f"{rows}: a whole number from 2 to 1000")


def _inside(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueMismatch((), f"{pattern!r}: a path inside of the data set")


def _fraction(value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueMismatch((), f"{value:g}: a number from 0 to 1")


_SHOWN: Final = {"check": partial(check_template, names=("question", "choices", "unit"))}


@dataclass(frozen=True)
class Hub:
    """A data set on the hub."""

    id: str
    splits: tuple[str, ...]
    # Patterns of the tables' paths; `{split}` is the split.
    files: tuple[str, ...] = field(metadata={"check": _inside})
    # Patterns of further files, which the tables name.
    images: tuple[str, ...] = field(default=(), metadata={"check": _inside})


@dataclass(frozen=True)
class PublishedRow:
    """A number that a paper printed."""

    who: str
    # 0 to 1.
    value: float = field(metadata={"check": _fraction})
    # The paper and its table.
    source: str
    # The metric or task of the cell; the recipe's first metric where the file does not say.
    metric: str = ""
    # The recipe's first where the file does not say.
    split: str = ""
    n: str = ""
    kind: Literal["model", "specialist", "human", "chance"] = "model"
    note: str = ""


@dataclass(frozen=True)
class SampleScene:
    """A scene of `hybrid.samples.named` that generated rows are drawn from, and what stands in their other cells."""

    scene: str
    # By their column the text of the cell; of several, one row after the other has the next; `{unit}` is a number.
    cells: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # As of `Samples`, for this scene alone.
    question: str = field(default="", metadata=_SHOWN)


@dataclass(frozen=True)
class Samples:
    """The questions that `--data sample` draws for a recipe."""

    scenes: tuple[SampleScene, ...]
    # Rows of one unit.
    rows: int = field(default=1, metadata={"check": check_units})
    # Whether the rows of a unit are one question whose options go round.
    cyclic: bool = False
    # How the answer's cell writes a letter.
    letter: Literal["A", "(A)", "(a)"] = "A"
    # The cell of the question, with its options where `{choices}` stands, and the number of the unit for `{unit}`.
    question: str = field(default="{question}", metadata=_SHOWN)
