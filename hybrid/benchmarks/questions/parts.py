"""Parts of a recipe: where its data lie, numbers of others, and what `--data sample` draws (`sample.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hub:
    """A data set on the hub."""

    id: str
    splits: tuple[str, ...]
    files: tuple[str, ...]
    """Patterns of the tables' paths; `{split}` is the split."""
    images: tuple[str, ...] = ()
    """Patterns of further files, which the tables name."""


@dataclass(frozen=True)
class PublishedRow:
    """A number that a paper printed."""

    who: str
    value: float
    """0 to 1."""
    source: str
    """The paper and its table."""
    metric: str
    """The metric or task of the cell; the recipe's first metric where the file does not say."""
    split: str
    n: str = ""
    kind: str = "model"
    note: str = ""


@dataclass(frozen=True)
class SampleScene:
    """A scene of `hybrid.samples.named` that generated rows are drawn from, and what stands in their other cells."""

    scene: str
    cells: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By their column the text of the cell; of several, one row after the other has the next; `{unit}` is a number."""
    question: str = ""
    """As of `Samples`, for this scene alone."""


@dataclass(frozen=True)
class Samples:
    """The questions that `--data sample` draws for a recipe."""

    scenes: tuple[SampleScene, ...]
    rows: int = 1
    """Rows of one unit."""
    cyclic: bool = False
    """Whether the rows of a unit are one question whose options go round."""
    letter: str = "A"
    """How the answer's cell writes a letter: `A`, `(A)` or `(a)`."""
    question: str = "{question}"
    """The cell of the question, with its options where `{choices}` stands, and the number of the unit for `{unit}`."""
