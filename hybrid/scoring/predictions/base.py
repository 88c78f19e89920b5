"""The rows that a reader of foreign predictions returns, and how they were joined to questions."""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.benchmarks.base import PredictedRow, Prediction
from hybrid.core.types import Json, Question
from hybrid.display.terminal import how_many

# So many ids are named where a list is counted.
NAMED = 5
# What the reader of a zip raises of one that is damaged, encrypted or compressed in another way.
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(RuntimeError, ValueError, OSError),
)


@dataclass(frozen=True)
class Recognised:
    """The rows of predictions whose format was recognised; `notes` are whole sentences about them."""

    format: str
    rows: tuple[PredictedRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """Where imported predictions come from, and what of them has no counterpart.

    `missing` are the data's questions (without variants) without a prediction, `extra` the predictions that the data
    has no question for.
    """

    format: str
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """The lines printed about them."""
        lines = [f"format: {self.format}", *self.notes]
        if self.missing:
            count = how_many(len(self.missing), verb=("of the data has", "of the data have"))
            lines.append(f"missing: {count} no prediction: {first(self.missing)}")
        if self.extra:
            count = how_many(len(self.extra), "prediction", ("has", "have"))
            lines.append(f"extra: {count} no question in the data: {first(self.extra)}")
        return tuple(lines)


@dataclass(frozen=True)
class Joined:
    """Predictions with their questions."""

    pairs: tuple[tuple[Question, Prediction], ...]
    origin: Origin
    # Where the data come from, as a manifest has it (`{"kind": "sample", ...}`); empty without `--data`.
    data: Mapping[str, Json] = field(default_factory=dict)


def first(names: Sequence[str]) -> str:
    """The first few of a list, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def letter_of(answer: str) -> str:
    """A gold answer as both harnesses write it, `(A)` or `A`, without the parentheses and blanks around it."""
    bare = answer.strip()
    match = re.fullmatch(r"\(\s*([A-Za-z])\s*\)", bare)
    return match[1].upper() if match else bare
