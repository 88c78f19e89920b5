"""Which image collections contain images of which others, to find out whether two collections may share pictures.

The facts and their sources are in `image_sets.toml`: weights trained on VQAv2 have seen COCO images, because VQAv2 uses
them. Only names are compared, so the result is that two collections may share pictures, never that they do. `hybrid
tools show NAME` prints the training data of weights, and `hybrid benchmarks show NAME` prints the source of a
benchmark's pictures.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# Maps a collection to the collections from which it takes images.
DRAWN_FROM: Final[Mapping[str, list[str]]] = FACTS["drawn_from"]
# Collections crawled from the web, or never listed: they may contain any published picture; this was not checked.
CRAWLED: Final = frozenset[str](FACTS["crawled"])


def origins(name: str) -> frozenset[str]:
    """Return the collection and all that it took images from, recursively; for an unknown name, only that name."""
    collections: set[str] = set()
    waiting = [canonical(name)]
    while waiting:
        collection = waiting.pop()
        if collection not in collections:
            collections.add(collection)
            waiting.extend(DRAWN_FROM.get(collection, ()))
    return frozenset(collections)


def shared(name: str, other: str) -> frozenset[str]:
    """Return the collections from which both take images, each itself included; empty if they share no known one."""
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
