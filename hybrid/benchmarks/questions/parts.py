"""Parts of a recipe: the location of its data, published scores, and the samples of `--data sample` (`sample.py`)."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from hybrid.core.toml_records import ValueMismatch


def check_template(text: str, names: Collection[str]) -> None:
    """Raise `ValueMismatch` for a text with a placeholder that is not in `names`."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ValueMismatch((), f"{error}; write a brace twice if it is not part of a placeholder") from error
    for _, name, form, conversion in parts:
        if name is not None and (name not in names or form or conversion):
            placeholders = ", ".join(f"{{{name}}}" for name in sorted(names))
            raise ValueMismatch((), f"{{{name}}} is not a placeholder; available: {placeholders}")


def check_units(rows: int) -> None:
    """Raise `ValueMismatch` for an invalid number of rows per unit."""
    if not 2 <= rows <= 1000:
        raise ValueMismatch((), f"{rows}: a whole number from 2 to 1000")


def _inside(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueMismatch((), f"{pattern!r}: must be a path inside the data set")


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
    # Patterns of additional files, which the tables name.
    images: tuple[str, ...] = field(default=(), metadata={"check": _inside})


@dataclass(frozen=True)
class PublishedRow:
    """A score that a paper printed."""

    who: str
    # A fraction, 0 to 1.
    value: float = field(metadata={"check": _fraction})
    # The paper and its table.
    source: str
    # The metric or task of the cell; by default the recipe's first metric.
    metric: str = ""
    # The split of the cell; by default the recipe's first split.
    split: str = ""
    n: str = ""
    kind: Literal["model", "specialist", "human", "chance"] = "model"
    note: str = ""


@dataclass(frozen=True)
class SampleScene:
    """A scene of `hybrid.samples.named` for generated rows, and the content of the rows' other cells."""

    scene: str
    # Texts of the cells by column; several texts are used in turn, one per row; `{unit}` is a number.
    cells: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Overrides `Samples.question` for this scene.
    question: str = field(default="", metadata=_SHOWN)


@dataclass(frozen=True)
class Samples:
    """The questions that `--data sample` draws for a recipe."""

    scenes: tuple[SampleScene, ...]
    # Number of rows of a unit.
    rows: int = field(default=1, metadata={"check": check_units})
    # Whether the rows of a unit are one question with rotated options.
    cyclic: bool = False
    # Form of a letter in the answer's cell.
    letter: Literal["A", "(A)", "(a)"] = "A"
    # Text of the question's cell, with `{choices}` for its options and `{unit}` for the number of the unit.
    question: str = field(default="{question}", metadata=_SHOWN)
