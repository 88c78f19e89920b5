"""Clusters questions that share pictures, because their answers are not independent.

Clusters that the data define take priority.

pictures = SamePictures()
pictures.add(question)         # every question of the data
pictures.clusters              # {"q3": "picture of q1", "q1": "picture of q1"}: by unit, for shared pictures only
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hybrid.core.types import Question

# Prefix of the names of clusters whose questions share a picture.
PICTURE = "picture of "


class SamePictures:
    """Joins units that share a picture; pictures are compared by their sha256.

    If one picture (a legend, an example) is in most questions, it does not relate them: then only questions with
    identical sets of pictures are joined.
    """

    def __init__(self) -> None:
        self._units: set[str] = set()
        self._named = False
        self._by_picture, self._by_all = JoinedUnits(), JoinedUnits()

    def add(self, question: Question) -> None:
        """Add a question."""
        self._named |= bool(question.cluster)
        pictures = sorted({image.sha256 for image in question.images})
        self._units.add(question.unit)
        self._by_picture.add(question.unit, pictures)
        self._by_all.add(question.unit, [" ".join(pictures)] if pictures else [])

    @property
    def clusters(self) -> Mapping[str, str]:
        """The cluster of each unit that shares a picture with another; empty if the data define clusters."""
        joined = {} if self._named else self._by_picture.joined()
        most = max(Counter(joined.values()).values(), default=0)
        joined = joined if 2 * most <= len(self._units) else self._by_all.joined()
        return {unit: f"{PICTURE}{first}" for unit, first in joined.items()}


def cluster_by_pictures(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Cluster questions by their pictures, and drop picture clusters that came from a larger set of questions.

    A run of a subset clusters only that subset, so predictions for the same questions must do the same.
    """
    pictures = SamePictures()
    bare = [
        replace(question, cluster="") if question.cluster.startswith(PICTURE) else question for question in questions
    ]
    for question in bare:
        pictures.add(question)
    clusters = pictures.clusters
    return tuple(replace(question, cluster=clusters.get(question.unit, question.cluster)) for question in bare)


class JoinedUnits:
    """Disjoint sets of units; each set is identified by its first unit."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._above: dict[str, str] = {}

    def add(self, unit: str, keys: Iterable[str]) -> None:
        """Join a unit with all earlier units that have one of these keys."""
        for key in keys:
            first, second = self.root(self._first.setdefault(key, unit)), self.root(unit)
            if first != second:
                self._above[second] = first

    def root(self, unit: str) -> str:
        """Return the first unit of the set that contains this unit."""
        while unit in self._above:
            unit = self._above[unit]
        return unit

    def joined(self) -> dict[str, str]:
        """Return the first unit of each unit's set, for sets of two or more."""
        roots = {unit: self.root(unit) for unit in self._above}
        return roots | {first: first for first in roots.values()}


def shared_pictures(clusters: Iterable[str]) -> str:
    """Return `60 questions show 20 pictures`, counted from all questions' clusters; empty if no picture is shared."""
    counts = Counter(cluster for cluster in clusters if cluster.startswith(PICTURE))
    return f"{counts.total()} questions show {len(counts)} picture{'s' * (len(counts) > 1)}" if counts else ""
