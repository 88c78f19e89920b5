"""What a recipe says about the rows that `--data sample` draws for it (`samples:`); `sample.py` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """What `--data sample` draws for a recipe."""

    scenes: tuple[SampleScene, ...]
    rows: int = 1
    """Rows of one unit."""
    cyclic: bool = False
    """Whether the rows of a unit are one question whose options go round."""
    letter: str = "A"
    """How the answer's cell writes a letter: `A`, `(A)` or `(a)`."""
    question: str = "{question}"
    """The cell of the question, with its options where `{choices}` stands, and the number of the unit for `{unit}`."""
