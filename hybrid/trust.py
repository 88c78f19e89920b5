"""How far a tool may be believed: reliability by confidence, from a trust file or from the tool's card.

`hybrid calibrate RUN -o trust.json` writes the file. It holds, for each fold of the questions, what was measured on all
other folds, so that no question is decided with its own answer. A fold is a hash of the base question id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.errors import DataError, UsageError
from hybrid.tool import Bin


def fold_of(base_id: str, folds: int) -> int:
    """The fold of a base question: stable across runs, machines and the order of questions."""
    return int.from_bytes(hashlib.sha256(base_id.encode()).digest()[:8], "big") % folds


PRIOR_WEIGHT = 10
"""How many cases a card's curve counts for beside measured ones: a bin of a few cases must not overturn it."""


@dataclass(frozen=True)
class Curve:
    """Counts of right testimonies by confidence, as bins that start at rising confidences."""

    bins: tuple[Bin, ...]

    def bin_at(self, confidence: float) -> Bin:
        """The bin that holds this confidence; an empty one where no bin reaches down to it."""
        return next((bin_ for bin_ in reversed(self.bins) if bin_.confidence <= confidence), Bin(0.0, 0, 0))

    def at(self, confidence: float) -> float:
        """Probability that a testimony of this confidence is right: one right and one wrong case added (Laplace)."""
        found = self.bin_at(confidence)
        return (found.right + 1) / (found.n + 2)

    @property
    def overall(self) -> float | None:
        """Right / all over every bin; None without a case."""
        total = sum(bin_.n for bin_ in self.bins)
        return sum(bin_.right for bin_ in self.bins) / total if total else None


Key = tuple[str, str, str]
"""Tool, backend, route."""

MODEL = ("mllm", "model")
"""Under this tool and backend a trust file keeps how often the MLLM alone was right."""


@dataclass(frozen=True)
class Trust:
    """What one question may know of the tools: curves measured on other questions, else the cards' defaults."""

    curves: Mapping[Key, Curve] = field(default_factory=dict)
    source: str = "cards"

    def reliability(self, tool: str, backend: str, route: str, confidence: float, card: Curve) -> float:
        """Probability that this testimony is right.

        The card's curve, and where something was measured the mean of a beta distribution that starts from it with
        the weight of `PRIOR_WEIGHT` cases.
        """
        expected = card.at(confidence)
        measured = self.curves.get((tool, backend, route))
        if measured is None:
            return expected
        found = measured.bin_at(confidence)
        return (found.right + PRIOR_WEIGHT * expected) / (found.n + PRIOR_WEIGHT)

    def overall(self, tool: str) -> float | None:
        """Right / all of a tool over every route and backend measured: what a model may be told of it."""
        bins = tuple(bin_ for (name, _, _), curve in self.curves.items() if name == tool for bin_ in curve.bins)
        return Curve(bins).overall

    def model(self, route: str, prior: float) -> float:
        """Probability that the MLLM alone is right on this route: as measured, else `prior`."""
        curve = self.curves.get((*MODEL, route))
        return curve.at(1.0) if curve else prior


@dataclass(frozen=True)
class TrustFile:
    """The folds of a trust file, and the hash that stands in the manifest of a run that used it."""

    folds: tuple[Mapping[Key, Curve], ...]
    sha256: str

    def for_question(self, base_id: str) -> Trust:
        """The curves measured without this question."""
        return Trust(self.folds[fold_of(base_id, len(self.folds))], f"trust:{self.sha256[:12]}")


def read_trust(path: Path) -> TrustFile:
    """Read what `hybrid calibrate` wrote. Raises `UsageError` when absent, `DataError` when malformed."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--trust {path}: {error.strerror}") from error
    try:
        rows = json.loads(data)["folds"]
        folds = tuple(
            {
                (entry["tool"], entry["backend"], entry["route"]): Curve(
                    tuple(Bin(float(c), int(right), int(n)) for c, right, n in entry["bins"])
                )
                for entry in fold
            }
            for fold in rows
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a trust file: {error!r}") from error
    if not folds:
        raise DataError(f"{path}: a trust file needs at least one fold")
    for key, curve in (entry for fold in folds for entry in fold.items()):
        starts = [bin_.confidence for bin_ in curve.bins]
        if starts != sorted(set(starts)) or any(not 0 <= bin_.right <= bin_.n for bin_ in curve.bins):
            raise DataError(f"{path}: the bins of {', '.join(key)} do not rise, or count more right than all")
    return TrustFile(folds, hashlib.sha256(data).hexdigest())
