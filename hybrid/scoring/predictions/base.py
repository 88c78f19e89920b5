"""The rows that readers of other programs' predictions return, and how they were joined to questions."""

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

# Maximum number of ids named in a list.
NAMED = 5
# Exceptions that a zip reader raises for a damaged, encrypted or unsupported archive.
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(RuntimeError, ValueError, OSError),
)


@dataclass(frozen=True)
class Recognised:
    """The rows of predictions in a recognised format; `notes` are full sentences about them."""

    format: str
    rows: tuple[PredictedRow, ...]
    notes: tuple[str, ...] = ()
    # The solver and its model in the run that was exported, such as `mllm@2` and `openai/gpt-4o`; empty if not known.
    solver: str = ""
    model: str = ""


@dataclass(frozen=True)
class Origin:
    """The source of imported predictions, and what could not be matched.

    `missing` are the data's questions (without variants) that have no prediction, `extra` the predictions that have no
    question in the data.
    """

    format: str
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """Return the lines to print."""
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
    # The data's source, as in a manifest (`{"kind": "sample", ...}`); empty without `--data`.
    data: Mapping[str, Json] = field(default_factory=dict)
    # As in `Recognised`.
    solver: str = ""
    model: str = ""


def first(names: Sequence[str]) -> str:
    """Return the first few names, and the number of the rest."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def letter_of(answer: str) -> str:
    """Return a gold answer, `(A)` or `A` depending on the harness, without parentheses and spaces."""
    bare = answer.strip()
    match = re.fullmatch(r"\(\s*([A-Za-z])\s*\)", bare)
    return match[1].upper() if match else bare
