"""The reliability of the tools and the MLLM, as measured in a trust file or as claimed by cards.

`hybrid calibrate RUN -o trust.json` writes the file. For each fold of the questions it contains measurements on all
other folds, so that no question is decided with its own answer. A question that was not counted, and shares no picture
with a counted one, uses the measurements on all questions.

The file names the benchmark, data, model and backends with which it was measured. A run with another benchmark, model
or backend rejects it (`refuse_other`). Other data of the same benchmark are the intended use.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hybrid.core.errors import DataError, UsageError
from hybrid.core.files import read_small
from hybrid.core.types import Json, StoredImage
from hybrid.log.codec import codec, to_json
from hybrid.solving.answer_confidence import CLAIM, AnswerConfidence
from hybrid.tool import Bin, Tool

FORMAT = 5


def fold_of(unit: str, folds: int) -> int:
    """Return the fold of a cluster of questions: stable across runs, machines and the order of questions."""
    return int.from_bytes(hashlib.sha256(unit.encode()).digest()[:8], "big") % folds


@dataclass(frozen=True)
class Curve:
    """Counts of right answers by confidence, as bins with ascending starts."""

    bins: tuple[Bin, ...]

    def at(self, confidence: float) -> float:
        """Return the probability that an answer of this confidence is right, with Laplace smoothing.

        Neighbouring bins are merged if the more confident one has a lower rate (pool adjacent violators), so that
        higher confidence never means a lower probability. Below all bins the value is a half, or the value of the first
        bin if that is lower.
        """
        rising: list[Bin] = []
        for bin_ in self.bins:
            last = bin_
            while rising and _share(rising[-1]) >= _share(last):
                previous = rising.pop()
                last = Bin(previous.confidence, previous.right + last.right, previous.n + last.n)
            rising.append(last)
        reached = [bin_ for bin_ in rising if bin_.confidence <= confidence]
        return _share(reached[-1]) if reached else min([0.5, *map(_share, rising[:1])])

    @property
    def n(self) -> int:
        """Number of answers counted."""
        return sum(bin_.n for bin_ in self.bins)

    @property
    def rate(self) -> float:
        """Probability that an answer of any confidence is right, over all bins, with the same smoothing."""
        return _share(Bin(0.0, sum(bin_.right for bin_ in self.bins), self.n))


def _share(group: Bin) -> float:
    return (group.right + 1) / (group.n + 2)


# Tool, backend, route.
Key = tuple[str, str, str]

# The tool and backend names under which a trust file counts the MLLM alone.
MODEL: Final = ("mllm", "model")

# Weight, in answers, of the prior accuracy of any MLLM next to measured answers. It expresses how much models differ on
# one task: the task of BLINK's Table 1 (test split) on which they differ most. It was computed from the moments of a
# beta-binomial (`bench/published_accuracy.py`). Heavier priors, and evidence from a model's other tasks, were not
# better on simulated tools and recorded models (`bench/results/rivals.md`).
MODEL_WEIGHT: Final = 8
# Weight, in answers, of a tool's claimed rate, which is an assumption or was counted on other pictures.
TOOL_WEIGHT: Final = 2


def claimed_by(tool: Tool, backend: str, confidence: float | None, guess: float, *, on_card: bool) -> AnswerConfidence:
    """Return the confidence in a tool before anything was measured on real questions.

    Args:
        tool: the tool that gave the output.
        backend: the backend that answered.
        confidence: the answer's confidence, 0..1; None if it is not a probability of being right (a graded answer).
        guess: the worth of a guess at this question, 0..1.
        on_card: whether the reliability on the tool's card applies to this answer.

    If the card has counts of such answers, the tool's rate comes from the card, and the confidence in this answer from
    the card's curve. Otherwise the tool counts as no better than a guess. Its stated confidence is then used as a claim
    if the backend is a network, and ignored if the backend is a rule of thumb.
    """
    card = next((card for card in tool.card.backends if card.name == backend), None)
    if on_card and card is not None and card.reliability:
        curve = Curve(card.reliability)
        stated = None if confidence is None else curve.at(confidence)
        return AnswerConfidence(curve.rate, stated, n=curve.n + TOOL_WEIGHT, counted_on=card.counted_on)
    return AnswerConfidence(guess, confidence if backend == "learned" else None, n=TOOL_WEIGHT)


@dataclass(frozen=True)
class Measurement:
    """The counts of a tool or of the MLLM on one route."""

    # Sum of the scores: for answers that are right or wrong, the number of right answers.
    right: float
    n: int
    # Mean log-odds of the stated confidences; None if none were stated.
    usually: float | None = None
    # Weight of a deviation from `usually`, fitted on questions where tool and MLLM disagree, over all routes.
    slope: float = CLAIM


@dataclass(frozen=True)
class Trust:
    """Measurements of tools and MLLM for one question, made on other questions."""

    measured: Mapping[Key, Measurement] = field(default_factory=dict)

    def tool(self, key: Key, claimed: AnswerConfidence) -> AnswerConfidence:
        """Return the confidence in a tool's answer: measured on this route, or claimed if not measured."""
        measurement = self.measured.get(key)
        if measurement is None:
            return claimed
        rate = (measurement.right + TOOL_WEIGHT * claimed.rate) / (measurement.n + TOOL_WEIGHT)
        stated = None if measurement.usually is None else claimed.said
        return replace(
            claimed,
            rate=rate,
            said=stated,
            usually=measurement.usually,
            slope=measurement.slope,
            n=measurement.n + TOOL_WEIGHT,
        )

    def overall(self, tool: str) -> float | None:
        """Return a tool's share of right answers over all routes and backends, told to models; None if not measured."""
        measurements = [measurement for (name, _, _), measurement in self.measured.items() if name == tool]
        total = sum(measurement.n for measurement in measurements)
        return sum(measurement.right for measurement in measurements) / total if total else None

    def model(self, route: str, usual: float, stated: float | None) -> AnswerConfidence:
        """Return the MLLM's confidence, from its usual accuracy on this route and the share of votes for this answer.

        Unanimous votes do not increase the confidence unless that was measured, because a model repeats its mistakes.
        """
        measurement = self.measured.get((*MODEL, route), Measurement(0.0, 0))
        rate = (measurement.right + MODEL_WEIGHT * usual) / (measurement.n + MODEL_WEIGHT)
        n = measurement.n + MODEL_WEIGHT
        if measurement.usually is None:
            return AnswerConfidence(rate, None if stated is None else min(stated, rate), n=n)
        return AnswerConfidence(rate, stated, measurement.usually, measurement.slope, n)


@dataclass(frozen=True)
class Measured:
    """The configuration that a trust file was measured with, from the manifest of the counted run."""

    benchmark: str
    split: str
    # Kind of the data, and its identification: hash of the files, revision, or seed and generator.
    data: Mapping[str, Json]
    # Metadata of the MLLM whose answers were counted; None if only tools were counted.
    model: Mapping[str, Json] | None
    # Backend, version and weights of every counted tool and of the tools that it calls.
    tools: Mapping[str, Json]
    # The source of tool output; always the real tools.
    control: str
    # The tools whose weights were used without a test on known answers.
    unchecked: tuple[str, ...] = ()
    # Number of times the MLLM was asked per counted answer (`--setting samples`).
    samples: int = 1

    @property
    def generated(self) -> bool:
        """Whether the questions were generated."""
        return self.data.get("kind") == "sample"


@dataclass(frozen=True)
class TrustFile:
    """The folds of a trust file, its hash as in a run's manifest, and the configuration that it was measured with."""

    folds: tuple[Mapping[Key, Measurement], ...]
    sha256: str
    measured: Measured
    # Measurements on all questions.
    overall: Mapping[Key, Measurement] = field(default_factory=dict)
    # The fold of each counted question, by the question's id, its cluster and the names of its pictures.
    places: Mapping[str, int] = field(default_factory=dict)

    def for_question(self, unit: str, pictures: Iterable[StoredImage] = ()) -> Trust:
        """Return the measurements made without this question and its pictures."""
        names = (unit, *(picture_name(picture) for picture in pictures))
        fold = next((self.places[name] for name in names if name in self.places), None)
        return Trust(self.overall if fold is None else self.folds[fold])


def picture_name(picture: StoredImage) -> str:
    """Return the name of a picture in a trust file."""
    return f"sha256:{picture.sha256[:16]}"


def seal(content: Mapping[str, Any]) -> str:
    """Return the sha256 that a trust file stores over the rest of its content."""
    rest = {name: part for name, part in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def trust_content(measured: Measured, folds: list[Json], overall: Json, places: Mapping[str, int]) -> bytes:
    """Return the bytes of a trust file."""
    measured_json = json.loads(to_json(Measured, measured))
    content = {"format": FORMAT, "measured": measured_json, "folds": folds, "every": overall, "places": dict(places)}
    return json.dumps({**content, "sha256": seal(content)}, indent=1).encode() + b"\n"


def read_trust(path: Path) -> TrustFile:
    """Read a file written by `hybrid calibrate`.

    Raises:
        UsageError: the file does not exist, or has an older format that does not name what was measured.
        DataError: the file is malformed, or was changed after it was written.
    """
    try:
        data = read_small(path)
    except OSError as error:
        raise UsageError(f"--trust {path}: {error.strerror}") from error
    content: Any = None
    try:
        content = json.loads(data)
        *folds, overall = (dict(map(_entry, fold)) for fold in (*content["folds"], content["every"]))
        places = {name: range(len(folds))[fold] for name, fold in content["places"].items()}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        if isinstance(content, Mapping) and content.get("format") in range(FORMAT):
            raise _older(path) from error
        raise DataError(f"{path} is not a trust file: {error!r}") from error
    if not folds:
        raise DataError(f"{path}: a trust file needs at least one fold")
    for key, measurement in (entry for fold in folds for entry in fold.items()):
        if not 0 <= measurement.right <= measurement.n:
            raise DataError(
                f"{path}: the entry of {', '.join(key)} counts {measurement.right:g} right of {measurement.n}"
            )
        if not (math.isfinite(measurement.usually or 0.0) and 0 <= measurement.slope < math.inf):
            raise DataError(
                f"{path}: the entry of {', '.join(key)} has a value that is not finite, or a negative slope"
            )
    if content.get("format") != FORMAT or "measured" not in content:
        raise _older(path)
    try:
        measured: Measured = codec(Measured).validate_python(content["measured"])
    except ValueError as error:
        raise DataError(f"{path} does not name what was measured: {error}") from error
    if content.get("sha256") != seal(content):
        raise DataError(f"{path} was changed after `hybrid calibrate` wrote it: its sha256 does not match its content")
    return TrustFile(tuple(folds), hashlib.sha256(data).hexdigest(), measured, overall, places)


def measurement_as_json(key: Key, measurement: Measurement) -> Json:
    """Return one entry of a trust file, in the form that `read_trust` reads."""
    tool, backend, route = key
    return {"tool": tool, "backend": backend, "route": route, **asdict(measurement)}


def _entry(entry: Mapping[str, Any]) -> tuple[Key, Measurement]:
    usually = None if entry["usually"] is None else float(entry["usually"])
    measurement = Measurement(float(entry["right"]), int(entry["n"]), usually, float(entry["slope"]))
    return (entry["tool"], entry["backend"], entry["route"]), measurement


def _older(path: Path) -> UsageError:
    return UsageError(
        f"--trust {path} has an older format, which this version cannot read: write it again with `hybrid calibrate "
        "RUN -o FILE`"
    )


# Facts about a model that do not affect its answers. A run may differ in them from the run that was counted.
NOT_THE_MODEL = frozenset({"retries", "timeout_s", "versions", "keep_images", "keep_pictures", "tool_calling"})


def refuse_other(
    trust: TrustFile, path: Path, identity: Mapping[str, Any], tools: Mapping[str, Json], *, model_known: bool = True
) -> None:
    """Check that a run uses the benchmark, the model and the backends that a trust file was measured with.

    A file that only counts tools can be used with any model. The compared tools are those that the file counts, and the
    tools that these call, as far as this run may call them; `tools` has the facts about this run's tools by name. Data
    may differ, since no question is judged by its own answer, but generated questions differ from those of the
    benchmark. `model_known` is False in a dry run without the model.

    Raises:
        UsageError: something differs; the message names each measured and present value.
    """
    was = trust.measured
    pairs: list[tuple[str, object, object]] = [("benchmark", was.benchmark, identity["benchmark"])]
    if was.generated != (identity["data"].get("kind") == "sample"):
        pairs.append(("data.kind", was.data.get("kind"), identity["data"].get("kind")))
    if was.model is not None and model_known:
        model = identity["model"] or {}
        names = sorted({*was.model, *model} - NOT_THE_MODEL)
        pairs.append(("samples", was.samples, identity.get("samples", 1)))
        pairs += [(f"model.{name}", was.model.get(name), model.get(name)) for name in names]
    pairs += [(f"tools.{name}", facts, tools[name]) for name, facts in was.tools.items() if name in tools]
    wrong = [f"{name}: {json.dumps(a)} measured, {json.dumps(b)} here" for name, a, b in pairs if a != b]
    if wrong:
        raise UsageError("\n  ".join([f"--trust {path} was measured with something else:", *wrong]))
