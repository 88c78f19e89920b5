"""The tool calls of an exchange, reconstructed from its steps.

attempt = folder.recorded("controller").by_id["val_Jigsaw_1"]
calls_of(attempt.exchanges[0])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hybrid.core.types import Exchange, Fault, Finding, Json
from hybrid.log.folder import RunFolder
from hybrid.solving.paraphrase import UNCHANGED


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A recorded tool call: images and arguments as the tool got them; no output after a fault."""

    tool: str
    images: tuple[str, ...]
    args: Mapping[str, Json]
    seconds: float
    fault: Fault | None
    finding: Finding | None


def calls_of(exchange: Exchange) -> tuple[TracedCall, ...]:
    """Return the tool calls of one exchange, in order."""
    calls = []
    for step in (step for step in exchange.reply.steps if step.kind == "tool"):
        images, args = step.data.get("images"), step.data.get("args")
        image_names = tuple(map(str, images)) if isinstance(images, list | tuple) else ()
        arguments = args if isinstance(args, Mapping) else {}
        data, confidence = step.data.get("data"), step.data.get("confidence")
        finding = None
        if step.fault is None and isinstance(data, Mapping):
            confidence_value = float(confidence) if isinstance(confidence, int | float) else 0.0
            backend, version = str(step.data.get("backend", "")), str(step.data.get("version", ""))
            finding = Finding(step.text, data, confidence_value, backend, version, step.images)
        calls.append(TracedCall(step.name, image_names, arguments, step.seconds, step.fault, finding))
    return tuple(calls)


def unchanged_outputs(folder: RunFolder, solver: str) -> tuple[int, int]:
    """Return how many tool outputs of a run with paraphrased output kept their words, and how many have a text.

    Raises `DataError` if a trace cannot be read. Older versions did not mark such outputs, so their runs count none.
    """
    exchanges = (exchange for attempt in folder.recorded(solver).by_id.values() for exchange in attempt.exchanges)
    findings = (call.finding for exchange in exchanges for call in calls_of(exchange))
    versions = [finding.version for finding in findings if finding is not None and finding.text.strip()]
    return sum(version.startswith(UNCHANGED) for version in versions), len(versions)


def lacks_pictures(folder: RunFolder, solver: str) -> bool:
    """Return whether no tool output of a solver has a picture; this includes the case that no tool answered."""
    return not any(any(outputs) for _, outputs in _picture_flags(folder, solver))


def questions_with_pictures(folder: RunFolder, solver: str) -> frozenset[str]:
    """Return the ids of the questions that have tool output, with a picture in every output."""
    return frozenset(name for name, outputs in _picture_flags(folder, solver) if outputs and all(outputs))


def _picture_flags(folder: RunFolder, solver: str) -> Iterator[tuple[str, list[bool]]]:
    """Yield the id of each question, and for each of its tool outputs whether it has a picture."""
    for name, attempt in folder.recorded(solver).by_id.items():
        steps = (step for exchange in attempt.exchanges for step in exchange.reply.steps)
        yield name, [bool(step.images) for step in steps if step.kind == "tool" and step.fault is None]
