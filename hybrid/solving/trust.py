"""How far a tool may be believed: reliability by confidence, from a trust file or from the tool's card.

`hybrid calibrate RUN -o trust.json` writes the file. It holds, for each fold of the questions, what was measured on all
other folds, so that no question is decided with its own answer. A fold is a hash of the base question id, so that a
question keeps its fold in other data that hold it too.

The file names what it was measured with: benchmark, data, model and backends. A run that uses another benchmark, model
or backend refuses it (`refuse_other`). Other data of the same benchmark are what such a file is for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.codecs import codec, to_json
from hybrid.errors import DataError, UsageError
from hybrid.tool import Bin
from hybrid.types import Json

FORMAT = 2


def fold_of(base_id: str, folds: int) -> int:
    """The fold of a base question: stable across runs, machines and the order of questions."""
    return int.from_bytes(hashlib.sha256(base_id.encode()).digest()[:8], "big") % folds


PRIOR_WEIGHT = 10
"""How many cases a card's curve counts for next to measured ones: a bin of a few cases must not overturn it."""


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
class Measured:
    """What a trust file was measured with, as the manifest of the counted run has it."""

    benchmark: str
    split: str
    data: Mapping[str, Json]
    """Kind of the data and what tells them apart: hash of the files, revision, or seed and generator."""
    model: Mapping[str, Json] | None
    """The facts of the MLLM whose answers were counted; None where only tools were."""
    tools: Mapping[str, Json]
    """Backend, version and weights of every counted tool and of those that it asks."""
    control: str
    """What the tools' answers were; always the real ones."""
    unchecked: tuple[str, ...] = ()
    """The tools whose weights answered without having been asked for known answers."""

    @property
    def generated(self) -> bool:
        """Whether the questions were generated."""
        return self.data.get("kind") == "sample"


@dataclass(frozen=True)
class TrustFile:
    """The folds of a trust file, the hash that the manifest of a run names, and what was measured."""

    folds: tuple[Mapping[Key, Curve], ...]
    sha256: str
    measured: Measured

    def for_question(self, base_id: str) -> Trust:
        """The curves measured without this question."""
        return Trust(self.folds[fold_of(base_id, len(self.folds))])


def seal(measured: Json, folds: Json) -> str:
    """The sha256 that a trust file holds over everything else in it."""
    content = json.dumps([measured, folds], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def trust_content(measured: Measured, folds: list[Json]) -> bytes:
    """The bytes of a trust file."""
    named = json.loads(to_json(Measured, measured))
    content = {"format": FORMAT, "measured": named, "folds": folds, "sha256": seal(named, folds)}
    return json.dumps(content, indent=1).encode() + b"\n"


def read_trust(path: Path) -> TrustFile:
    """Read what `hybrid calibrate` wrote.

    Raises:
        UsageError: there is no such file, or it is of the older format that does not name what was measured.
        DataError: it is malformed, or was changed after it was written.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--trust {path}: {error.strerror}") from error
    try:
        content = json.loads(data)
        rows = content["folds"]
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
    _check_counts(path, folds)
    return TrustFile(folds, hashlib.sha256(data).hexdigest(), _measured(path, content))


def _check_counts(path: Path, folds: tuple[Mapping[Key, Curve], ...]) -> None:
    if not folds:
        raise DataError(f"{path}: a trust file needs at least one fold")
    for key, curve in (entry for fold in folds for entry in fold.items()):
        starts = [bin_.confidence for bin_ in curve.bins]
        if starts != sorted(set(starts)) or any(not 0 <= bin_.right <= bin_.n for bin_ in curve.bins):
            raise DataError(f"{path}: the bins of {', '.join(key)} do not rise, or count more right than all")


def _measured(path: Path, content: Mapping[str, Any]) -> Measured:
    if content.get("format") != FORMAT or "measured" not in content:
        raise UsageError(
            f"--trust {path} is of an older format, which does not name the model and the backends that were measured: "
            "write it anew with `hybrid calibrate RUN -o FILE`"
        )
    try:
        measured: Measured = codec(Measured).validate_python(content["measured"])
    except ValueError as error:
        raise DataError(f"{path} does not name what was measured: {error}") from error
    if content.get("sha256") != seal(content["measured"], content["folds"]):
        raise DataError(f"{path} was changed after `hybrid calibrate` wrote it: its sha256 does not fit its content")
    return measured


NOT_THE_MODEL = frozenset({"retries", "timeout_s", "versions", "keep_images", "tool_calling"})
"""Facts of a model that do not decide what it answers alone: a run may differ in them from the counted one."""


def refuse_other(
    trust: TrustFile,
    path: Path,
    identity: Mapping[str, Any],
    tools: Mapping[str, Json],
    *,
    model_known: bool = True,
) -> None:
    """Check that a run is with the benchmark, the model and the backends that a trust file was measured with.

    A file in which only tools were counted fits any model. The tools compared are those that the file counts and those
    that they ask, as far as this run may call them (`tools`: their facts by name). Data may differ, since no question
    is judged by its own answer, but generated questions and those of the benchmark are not the same thing.
    `model_known` is False in a dry run without the model.

    Raises:
        UsageError: something differs; the message names each difference, measured and here.
    """
    was = trust.measured
    pairs: list[tuple[str, object, object]] = [("benchmark", was.benchmark, identity["benchmark"])]
    if was.generated != (identity["data"].get("kind") == "sample"):
        pairs.append(("data.kind", was.data.get("kind"), identity["data"].get("kind")))
    if was.model is not None and model_known:
        here = identity["model"] or {}
        names = sorted({*was.model, *here} - NOT_THE_MODEL)
        pairs += [(f"model.{name}", was.model.get(name), here.get(name)) for name in names]
    pairs += [(f"tools.{name}", facts, tools[name]) for name, facts in was.tools.items() if name in tools]
    wrong = [f"{name}: {json.dumps(a)} measured, {json.dumps(b)} here" for name, a, b in pairs if a != b]
    if wrong:
        raise UsageError("\n  ".join([f"--trust {path} was measured with something else:", *wrong]))
