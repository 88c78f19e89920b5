"""Names of the spatial relations that boxes and depth can decide."""

from __future__ import annotations

from typing import Literal

RelationName = Literal[
    "left of",
    "right of",
    "above",
    "below",
    "on",
    "under",
    "inside",
    "containing",
    "outside",
    "touching",
    "next to",
    "far from",
    "in front of",
    "behind",
]
