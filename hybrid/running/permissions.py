"""Weights that a run must not use unawares: trained on the benchmark's images, or not for commercial use.

Cards name for each published checkpoint what it was trained on and under which licence; benchmarks name where their
images come from, and `hybrid.tool.image_sets` which collections take images from which. A run in which the two meet is
refused with the list unless `--allow overlap` or `--allow non-commercial` says otherwise, and then it is labelled in
the manifest, in tables and in reports. So is a run that takes weights without asking them for known answers
(`--unchecked-weights`).

What is not known is labelled and not refused: weights that no card knows, and those whose training images are not
published or have names that `hybrid.tool.image_sets` lacks. No `--allow` removes these labels, nor that of a backend
which was made with answers of the questions that are asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hybrid.config import Gate
from hybrid.errors import UsageError
from hybrid.tool import BackendCard, Tool
from hybrid.tool.image_sets import is_known, shared
from hybrid.weights import provenance_of, weights_in_use

# Reasons to label a run without refusing it.
Doubt = Literal["unknown training data and licence", "unknown training data"]

DOUBTS: Final[frozenset[str]] = frozenset({"unknown training data and licence", "unknown training data"})


@dataclass(frozen=True)
class Caveat:
    """Why a gate is closed, or what cannot be known: one tool, and what is wrong with its weights."""

    gate: Gate | Doubt
    tool: str
    reason: str


def closed(
    tools: Sequence[Tool], in_use: Mapping[str, str], weights: Mapping[str, str], sources: Collection[str]
) -> tuple[Caveat, ...]:
    """Every gate and doubt that the learned backends in use meet.

    Args:
        tools: the tools that may be called.
        in_use: a tool's name -> the backend that will answer (`weights.backends_in_use`).
        weights: a tool's name -> the directory or hub id that was named for it (`--weights`).
        sources: the collections that the benchmark's images come from; none for generated questions, which no weights
            have seen.
    """
    learned = ((tool, card) for tool, card in answering(tools, in_use) if card.name == "learned")
    found = ((tool, card, weights_in_use(tool, card, weights)) for tool, card in learned)
    each = (_caveats(tool.card.name, card, where, sources) for tool, card, where in found if where is not None)
    return tuple(itertools.chain.from_iterable(each))


def answering(tools: Iterable[Tool], in_use: Mapping[str, str]) -> list[tuple[Tool, BackendCard]]:
    """The tools that can answer, each with the card of the backend that does; `in_use` as in `closed`."""
    every = ((tool, card, in_use.get(tool.card.name, "")) for tool in tools for card in tool.card.backends)
    return [(tool, card) for tool, card, backend in every if backend.startswith(card.name)]


def _caveats(tool: str, card: BackendCard, where: str, sources: Collection[str]) -> Iterator[Caveat]:
    """The caveats about the weights at `where`, worst first."""
    known = provenance_of(card, where)
    if known is None:
        yield Caveat("unknown training data and licence", tool, f"no card knows {where}")
        return
    if seen := overlap(known.trained_on, sources):
        trained = [name for name in known.trained_on if overlap((name,), sources)]
        yield Caveat("overlap", tool, f"trained on {', '.join(trained)}, which may share images with {', '.join(seen)}")
    if known.non_commercial:
        yield Caveat("non-commercial", tool, f"licence {known.licence}")
    unheard = [name for name in known.trained_on if not is_known(name)]
    if unheard or not known.trained_on:
        yield Caveat("unknown training data", tool, ", ".join(unheard) or f"of {known.weights}")


def overlap(trained_on: Collection[str], sources: Collection[str]) -> tuple[str, ...]:
    """The sources that may share images with a training set, by what both take images from (`image_sets.shared`)."""
    return tuple(source for source in sources if any(shared(source, trained) for trained in trained_on))


def check(caveats: Sequence[Caveat], allowed: Collection[str]) -> tuple[str, ...]:
    """The labels of the gates that were opened and of the doubts: one a kind, with the tools by name.

    Raises:
        UsageError: a closed gate is not in `allowed`; the message lists every tool and reason.
    """
    shut = [caveat for caveat in caveats if caveat.gate not in DOUBTS and caveat.gate not in allowed]
    if shut:
        lines = [f"{caveat.tool}: {caveat.reason} (--allow {caveat.gate})" for caveat in shut]
        raise UsageError("weights that this run should not use unawares:\n  " + "\n  ".join(lines))
    kinds = sorted({caveat.gate for caveat in caveats})
    return tuple(
        f"{kind}: {', '.join(sorted({caveat.tool for caveat in caveats if caveat.gate == kind}))}" for kind in kinds
    )


def seen(tools: Sequence[Tool], in_use: Mapping[str, str], asked: Collection[tuple[str, str, str]]) -> tuple[str, ...]:
    """A label for each backend in use that was made with the answers of what is asked: (benchmark, split, task)."""
    return tuple(
        f"seen before: {tool.card.name}, {what} of {' '.join(where)}"
        for tool, card in answering(tools, in_use)
        for *where, what in card.seen
        if tuple(where) in asked
    )
