"""Permission checks for weights that were trained on the benchmark's images or forbid commercial use.

Cards name the training data and the licence of each published checkpoint; benchmarks name the sources of their images,
and `image_sets.toml` names collections that take images from others: weights trained on VQAv2 have seen COCO images,
because VQAv2 uses them. Only names are compared. If training data and benchmark may share pictures, or a licence
forbids commercial use, the run is rejected with a list of the reasons. With `--allow overlap` or `--allow
non-commercial` it is admitted, and labelled in the manifest, in tables and in reports. A run is also labelled if it
uses weights without testing them on known answers (`--unchecked-weights`).

Unknown facts are labelled and not rejected: weights that no card knows, and weights whose training images are not
published or have names that `image_sets.toml` lacks. No `--allow` removes these labels.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from hybrid.config import Gate
from hybrid.core.errors import UsageError
from hybrid.plugins.weights import provenance_of, weights_in_use
from hybrid.tool import BackendCard, Tool

FACTS = tomllib.loads(Path(__file__).with_name("image_sets.toml").read_text("utf-8"))
# Maps a collection to the collections from which it takes images.
DRAWN_FROM: Final[Mapping[str, list[str]]] = FACTS["drawn_from"]
# Collections that were crawled from the web, or whose pictures were never listed. They may contain any published
# picture; it was not checked whether they do.
CRAWLED: Final = frozenset[str](FACTS["crawled"])

# Reasons to label a run without rejecting it.
Doubt = Literal["unknown training data and licence", "unknown training data"]

DOUBTS: Final[frozenset[str]] = frozenset({"unknown training data and licence", "unknown training data"})


@dataclass(frozen=True)
class Caveat:
    """A failed permission check or an unknown fact about the weights of one tool."""

    gate: Gate | Doubt
    tool: str
    reason: str


def closed(
    tools: Sequence[Tool], in_use: Mapping[str, str], weights: Mapping[str, str], sources: Collection[str]
) -> tuple[Caveat, ...]:
    """Return every failed permission check and unknown fact about the learned backends in use.

    Args:
        tools: the tools that may be called.
        in_use: a tool's name -> its backend (`weights.backends_in_use`).
        weights: a tool's name -> the directory or hub id given for it (`--weights`).
        sources: the collections that the benchmark's images come from; empty for generated questions, which no weights
            have seen.
    """
    caveats: list[Caveat] = []
    for tool, card in answering(tools, in_use):
        location = weights_in_use(tool, card, weights) if card.name == "learned" else None
        if location is None:
            continue
        # The most serious caveats come first.
        name, provenance = tool.card.name, provenance_of(card, location)
        if provenance is None:
            caveats.append(Caveat("unknown training data and licence", name, f"{location} is not on any card"))
            continue
        if seen := overlap(provenance.trained_on, sources):
            trained = ", ".join(source for source in provenance.trained_on if overlap((source,), sources))
            reason = f"trained on {trained}, which may share images with {', '.join(seen)}"
            caveats.append(Caveat("overlap", name, reason))
        if provenance.non_commercial:
            caveats.append(Caveat("non-commercial", name, f"licence {provenance.licence}"))
        unheard = [source for source in provenance.trained_on if not is_known(source)]
        if unheard or not provenance.trained_on:
            caveats.append(Caveat("unknown training data", name, ", ".join(unheard) or f"of {provenance.weights}"))
    return tuple(caveats)


def answering(tools: Iterable[Tool], in_use: Mapping[str, str]) -> list[tuple[Tool, BackendCard]]:
    """Return the tools that can answer, each with the card of its active backend; `in_use` as in `closed`."""
    candidates = ((tool, card, in_use.get(tool.card.name, "")) for tool in tools for card in tool.card.backends)
    return [(tool, card) for tool, card, backend in candidates if backend.startswith(card.name)]


def overlap(trained_on: Collection[str], sources: Collection[str]) -> tuple[str, ...]:
    """Return the sources that may share images with a training set (`shared`)."""
    return tuple(source for source in sources if any(shared(source, trained) for trained in trained_on))


def check(caveats: Sequence[Caveat], allowed: Collection[str]) -> tuple[str, ...]:
    """Return the labels for allowed checks and unknown facts: one per kind, with the tools by name.

    Raises:
        UsageError: a failed check is not in `allowed`; the message lists every tool and reason.
    """
    shut = [caveat for caveat in caveats if caveat.gate not in DOUBTS and caveat.gate not in allowed]
    if shut:
        lines = [f"{caveat.tool}: {caveat.reason} (--allow {caveat.gate})" for caveat in shut]
        raise UsageError("this run needs your permission to use these weights:\n  " + "\n  ".join(lines))
    kinds = sorted({caveat.gate for caveat in caveats})
    return tuple(
        f"{kind}: {', '.join(sorted({caveat.tool for caveat in caveats if caveat.gate == kind}))}" for kind in kinds
    )


def origins(name: str) -> frozenset[str]:
    """Return the collection and, recursively, those from which it took images; for an unknown name, only that name."""
    collections: set[str] = set()
    waiting = [canonical(name)]
    while waiting:
        collection = waiting.pop()
        if collection not in collections:
            collections.add(collection)
            waiting.extend(DRAWN_FROM.get(collection, ()))
    return frozenset(collections)


def shared(name: str, other: str) -> frozenset[str]:
    """Return the collections from which both take images; each counts as its own origin. Empty if none is known."""
    return origins(name) & origins(other)


def is_known(name: str) -> bool:
    """Return whether the table has the collection."""
    return canonical(name) in DRAWN_FROM


def crawled(names: Collection[str]) -> tuple[str, ...]:
    """Return the collections that are crawls or take images from one."""
    return tuple(name for name in names if origins(name) & CRAWLED)


def canonical(name: str) -> str:
    """Return the name as the table spells it: case, punctuation and a note in parentheses do not count."""
    return _SPELLED.get(_bare(name), _bare(name))


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", re.sub(r"\([^()]*\)", "", name.lower()))


_SPELLED: Final[Mapping[str, str]] = {_bare(name): name for name in DRAWN_FROM} | {
    _bare(other): name for other, name in FACTS["also"].items()
}
