"""Questions that show the same pictures are no independent ones: they are one cluster, unless the data name clusters.

shown = SamePictures()
shown.add(question)            # every question, as the data have it
shown.clusters                 # {"q3": "picture of q1", "q1": "picture of q1"}: of those that share one, by unit
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hybrid.types import Question

# How the names of such clusters begin.
PICTURE = "picture of "


class SamePictures:
    """Joins units that share a picture, by its sha256.

    Where one picture is in most questions of several pictures (a legend, an example), it says nothing of them: then
    only those are joined that show the very same pictures.
    """

    def __init__(self) -> None:
        self._units: set[str] = set()
        self._named = False
        self._by_picture, self._by_all = JoinedUnits(), JoinedUnits()

    def add(self, question: Question) -> None:
        """Take a question up."""
        self._named |= bool(question.cluster)
        pictures = sorted({image.sha256 for image in question.images})
        self._units.add(question.unit)
        self._by_picture.add(question.unit, pictures)
        self._by_all.add(question.unit, [" ".join(pictures)] if pictures else [])

    @property
    def clusters(self) -> Mapping[str, str]:
        """The cluster of each unit that shows a picture of another; none where the data name clusters."""
        joined = {} if self._named else self._by_picture.joined()
        most = max(Counter(joined.values()).values(), default=0)
        joined = joined if 2 * most <= len(self._units) else self._by_all.joined()
        return {unit: f"{PICTURE}{first}" for unit, first in joined.items()}


def cluster_by_pictures(questions: Sequence[Question]) -> tuple[Question, ...]:
    """These questions with the clusters that their pictures give; clusters that a larger set of them gave are dropped.

    A run of some of the data's questions clusters these alone, so predictions of the same questions have to as well.
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
    """Sets of units that grow together; each is known by its first unit."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._above: dict[str, str] = {}

    def add(self, unit: str, keys: Iterable[str]) -> None:
        """Join the unit to every earlier one that has one of these keys."""
        for key in keys:
            first, second = self.root(self._first.setdefault(key, unit)), self.root(unit)
            if first != second:
                self._above[second] = first

    def root(self, unit: str) -> str:
        """The first unit of the set of a unit; the unit itself where it is alone."""
        while unit in self._above:
            unit = self._above[unit]
        return unit

    def joined(self) -> dict[str, str]:
        """By unit the first one of its set, of sets of two and more."""
        roots = {unit: self.root(unit) for unit in self._above}
        return roots | {first: first for first in roots.values()}


def shared_pictures(clusters: Iterable[str]) -> str:
    """`60 questions show 20 pictures`, of the clusters of all questions; empty where each has its own."""
    counts = Counter(cluster for cluster in clusters if cluster.startswith(PICTURE))
    return f"{counts.total()} questions show {len(counts)} picture{'s' * (len(counts) > 1)}" if counts else ""
