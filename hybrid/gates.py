"""What a run must not do unawares: weights that saw the benchmark's images, or that may not be used commercially.

Cards name what weights were trained on and under which licence; benchmarks name where their images come from. A run in
which the two meet is refused with the list unless `--allow overlap` or `--allow non-commercial` says otherwise, and
then it is labelled in the manifest, in tables and in reports. So is a run that takes weights without asking them for
known answers (`--unchecked-weights`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hybrid.benchmarks.base import BenchmarkCard
from hybrid.errors import UsageError
from hybrid.tool import Tool

Gate = Literal["overlap", "non-commercial"]


@dataclass(frozen=True)
class Finding:
    """Why a gate is closed: one tool, and what is wrong with its weights."""

    gate: Gate
    tool: str
    reason: str


def closed(tools: Sequence[Tool], in_use: Mapping[str, str], benchmark: BenchmarkCard) -> tuple[Finding, ...]:
    """Every gate that the learned backends in use meet on this benchmark.

    `in_use` maps a tool's name to the backend that will answer (`weights.backends_in_use`).
    """
    found: list[Finding] = []
    for tool in tools:
        card = tool.backend("learned")
        if card is None or not in_use.get(tool.card.name, "").startswith("learned"):
            continue
        seen = overlap(card.trained_on, benchmark.image_sources)
        if seen:
            found.append(Finding("overlap", tool.card.name, f"trained on {', '.join(seen)}, as {benchmark.name} is"))
        if card.non_commercial:
            found.append(Finding("non-commercial", tool.card.name, f"licence {card.licence}"))
    return tuple(found)


def overlap(trained_on: Collection[str], sources: Collection[str]) -> tuple[str, ...]:
    """The sources that a list of training sets names; "COCO 2017" and "COCO-FreeView" both name "COCO"."""
    return tuple(source for source in sources if any(_same(source, trained) for trained in trained_on))


def _same(source: str, trained: str) -> bool:
    a, b = (re.sub(r"[^a-z0-9]+", " ", name.lower()).split() for name in (source, trained))
    return a[: len(b)] == b or b[: len(a)] == a


def check(found: Sequence[Finding], allowed: Collection[str]) -> tuple[str, ...]:
    """The labels of the gates that were opened.

    Raises:
        UsageError: a gate is closed that nobody opened; the message lists every tool and reason.
    """
    shut = [finding for finding in found if finding.gate not in allowed]
    if shut:
        lines = [f"{finding.tool}: {finding.reason} (--allow {finding.gate})" for finding in shut]
        raise UsageError("weights that this run should not use unawares:\n  " + "\n  ".join(lines))
    return tuple(sorted({f"{finding.gate}: {finding.tool}" for finding in found}))


def unchecked(tools: Sequence[Tool], in_use: Mapping[str, str]) -> tuple[str, ...]:
    """The tools whose learned weights answer, and would be asked for known answers first without `--unchecked-weights`.

    `in_use` as in `closed`. A tool without known-answer images misses nothing.
    """
    return tuple(
        tool.card.name for tool in tools if tool.checks and in_use.get(tool.card.name, "").startswith("learned")
    )
