"""Degree of a spatial relation between two boxes: geometry of the image plane, and depth for front and behind.

`holds("left of", cat, bed)` is a degree between 0 (no) and 1 (yes). The relations are those of VSR (Liu et al. 2023)
that boxes can determine; the thresholds of each rule are assumptions, not fitted.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from hybrid.core.types import Box
from tools._shared.boxes import area, shared_area

PlanarName = Literal["left of", "right of", "above", "below", "on", "under", "inside", "containing", "outside"]
RelationName = Literal[PlanarName, "touching", "next to", "far from", "in front of", "behind"]

# VSR's phrases for its relations (Liu et al. 2023), if boxes and depth can determine them.
PHRASES: Mapping[str, RelationName] = {
    phrase: relation
    for relation, phrases in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["phrases"].items()
    for phrase in phrases
}
BY_DEPTH: tuple[RelationName, ...] = ("in front of", "behind")

Degree = Callable[[Box, Box], float]


def holds(relation: RelationName, subject: Box, reference: Box, depths: tuple[float, float] | None = None) -> float:
    """Return the degree, 0..1, to which the subject's box is in a relation to the reference's; 0.5 is undecided.

    Args:
        relation: name of the relation.
        subject: box in pixels.
        reference: box in pixels.
        depths: relative depth of both, 0..1, larger is nearer; required by "in front of" and "behind", else ignored.

    Raises:
        KeyError: a relation by depth without depths.
    """
    if relation in BY_DEPTH:
        if depths is None:
            raise KeyError(relation)
        nearer = _step(depths[0] - depths[1], 0.04)
        return nearer if relation == "in front of" else 1 - nearer
    return PLANAR[relation][0](subject, reference)


def _step(value: float, width: float) -> float:
    """Return a soft threshold at 0: 0.73 at one `width` above."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value / width))))


def _centre(box: Box) -> tuple[float, float]:
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


def _left_degree(subject: Box, reference: Box) -> float:
    shift = _centre(reference)[0] - _centre(subject)[0]
    return _step(shift, 0.1 * ((subject.x1 - subject.x0) + (reference.x1 - reference.x0)) / 2)


def _above(subject: Box, reference: Box) -> float:
    shift = _centre(reference)[1] - _centre(subject)[1]
    return _step(shift, 0.1 * ((subject.y1 - subject.y0) + (reference.y1 - reference.y0)) / 2)


def _columns_shared(subject: Box, reference: Box) -> float:
    """Return the shared width over the smaller width, -inf..1; negative if the boxes are apart horizontally."""
    shared = min(subject.x1, reference.x1) - max(subject.x0, reference.x0)
    return shared / min(subject.x1 - subject.x0, reference.x1 - reference.x0)


def _gap(subject: Box, reference: Box) -> float:
    """Return the distance between two boxes over the mean of their diagonals; 0 if they touch."""
    across = max(0.0, max(subject.x0, reference.x0) - min(subject.x1, reference.x1))
    down = max(0.0, max(subject.y0, reference.y0) - min(subject.y1, reference.y1))
    diagonals = [math.hypot(box.x1 - box.x0, box.y1 - box.y0) for box in (subject, reference)]
    return math.hypot(across, down) / (sum(diagonals) / 2)


def _within(subject: Box, reference: Box) -> float:
    """Return the degree to which the subject is inside the reference, from the share of its box that is inside."""
    smaller = _step(area(reference) - area(subject), 0.1 * area(reference))
    return _step(shared_area(subject, reference) / area(subject) - 0.75, 0.08) * smaller


def _meets(subject: Box, reference: Box) -> float:
    return _step(0.03 - _gap(subject, reference), 0.02)


def _on(subject: Box, reference: Box) -> float:
    """Return the degree to which the subject is on the reference.

    It is the degree to which the subject is above the reference, shares its columns, touches it, and has a bottom that
    is not below the reference's.
    """
    stands = _step(reference.y1 - subject.y1, 0.08 * (reference.y1 - reference.y0))
    over = _step(_columns_shared(subject, reference) - 0.3, 0.1)
    return min(_above(subject, reference), stands, over, _meets(subject, reference))


def _beside_degree(subject: Box, reference: Box) -> float:
    rows = min(subject.y1, reference.y1) - max(subject.y0, reference.y0)
    level = _step(rows / min(subject.y1 - subject.y0, reference.y1 - reference.y0) - 0.2, 0.1)
    return min(_step(0.35 - _gap(subject, reference), 0.08), level)


# The relations that need no depth, each with its highest confidence.
PLANAR: Mapping[RelationName, tuple[Degree, float]] = {
    "left of": (_left_degree, 0.85),
    "right of": (lambda subject, reference: 1 - _left_degree(subject, reference), 0.85),
    "above": (_above, 0.8),
    "below": (lambda subject, reference: 1 - _above(subject, reference), 0.8),
    "on": (_on, 0.75),
    "under": (
        lambda subject, reference: min(
            _above(reference, subject), _step(_columns_shared(subject, reference) - 0.2, 0.1)
        ),
        0.75,
    ),
    "inside": (_within, 0.7),
    "containing": (lambda subject, reference: _within(reference, subject), 0.7),
    "outside": (lambda subject, reference: 1 - _within(subject, reference), 0.7),
    "touching": (_meets, 0.6),
    "next to": (_beside_degree, 0.65),
    "far from": (lambda subject, reference: _step(_gap(subject, reference) - 0.6, 0.12), 0.65),
}
# Highest confidence in each relation: assumptions, not measured. Boxes that touch in the image may be apart in space.
CERTAIN: Mapping[RelationName, float] = {name: row[1] for name, row in PLANAR.items()} | dict.fromkeys(BY_DEPTH, 0.7)
