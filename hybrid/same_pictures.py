"""Questions that show the same pictures are no independent ones: they are one cluster, unless the data name clusters.

shown = SamePictures()
shown.add(question)            # every question, as the data have it
shown.clusters                 # {"q3": "picture of q1", "q1": "picture of q1"}: of those that share one, by unit
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

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
        self._by_picture, self._by_all = _Joined(), _Joined()

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


class _Joined:
    """Sets of units that grow together; each is known by its first unit."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._above: dict[str, str] = {}

    def add(self, unit: str, keys: Iterable[str]) -> None:
        for key in keys:
            first, own = self._root(self._first.setdefault(key, unit)), self._root(unit)
            if first != own:
                self._above[own] = first

    def _root(self, unit: str) -> str:
        while unit in self._above:
            unit = self._above[unit]
        return unit

    def joined(self) -> dict[str, str]:
        """By unit the first one of its set, of sets of two and more."""
        found = {unit: self._root(unit) for unit in self._above}
        return found | {first: first for first in found.values()}


def shared_pictures(clusters: Iterable[str]) -> str:
    """`60 questions show 20 pictures`, of the clusters of all questions; empty where each has its own."""
    counted = Counter(cluster for cluster in clusters if cluster.startswith(PICTURE))
    return f"{counted.total()} questions show {len(counted)} picture{'s' * (len(counted) > 1)}" if counted else ""
