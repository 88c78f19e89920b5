"""Images shared between the stores of nodes: bytes by sha256, put into Ray's object store only once.

images = SharedImages(store)
refs = images.refs(["9f2c..."])           # Ray objects; each image is put once, however often it is requested
await take(store, refs)                   # on another node: fetch, verify, store
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ray

from hybrid.core.errors import DataError
from hybrid.core.files import write_atomic
from hybrid.core.images import ImageStore
from hybrid.core.types import SHA256, Attempt, Question

if TYPE_CHECKING:
    from ray import ObjectRef

# Maximum number of images whose Ray objects are kept: questions about one image follow each other closely, and a run
# has many images.
MAX_HELD = 512


class SharedImages:
    """The images of a store as Ray objects. Used from one event loop."""

    def __init__(self, store: ImageStore) -> None:
        self._store = store
        self._held: OrderedDict[str, ObjectRef[bytes]] = OrderedDict()
        self.puts = 0
        """Number of images put into the object store."""

    def refs(self, sha256s: Iterable[str]) -> dict[str, ObjectRef[bytes]]:
        """Return Ray objects of the images that the store has; each image is put only once."""
        by_hash: dict[str, ObjectRef[bytes]] = {}
        for sha256 in sha256s:
            if sha256 not in self._held and self._store.path(sha256).exists():
                self._held[sha256] = ray.put(_read_image(self._store, sha256))
                self.puts += 1
            if sha256 in self._held:
                self._held.move_to_end(sha256)
                by_hash[sha256] = self._held[sha256]
        while len(self._held) > MAX_HELD:
            self._held.popitem(last=False)
        return by_hash


def lacking(store: ImageStore, sha256s: Iterable[str]) -> tuple[str, ...]:
    """Return the hashes that the store lacks, without duplicates."""
    return tuple(sha256 for sha256 in dict.fromkeys(sha256s) if not store.path(sha256).exists())


async def take(store: ImageStore, refs: Mapping[str, ObjectRef[bytes]]) -> None:
    """Fetch the images that the store lacks. Raises `DataError` if bytes do not match their hash."""
    missing = lacking(store, refs)
    for sha256, data in zip(missing, await asyncio.gather(*(refs[digest] for digest in missing)), strict=True):
        keep(store, sha256, data)


def keep(store: ImageStore, sha256: str, data: bytes) -> None:
    """Store an image from another node. Raises `DataError` if the bytes do not match the hash."""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(f"image {sha256[:12]} arrived damaged: its bytes have a different hash")
    write_atomic(store.path(sha256), data)


def bytes_of(store: ImageStore, sha256s: Sequence[str]) -> dict[str, bytes]:
    """Read images by hash. Raises `DataError` if one is missing or damaged."""
    return {sha256: _read_image(store, sha256) for sha256 in sha256s}


def _read_image(store: ImageStore, sha256: str) -> bytes:
    try:
        data = store.path(sha256).read_bytes()
    except OSError as error:
        raise DataError(f"image {sha256[:12]} cannot be read from the store: {error}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(f"image {sha256[:12]} is damaged in the store {store.root}")
    return data


def of_question(question: Question) -> Iterator[str]:
    """Yield the hashes of all images that a dialogue about the question may show."""
    yield from (image.sha256 for image in question.images)
    yield from _hashes(question.protocol)


def _hashes(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value that looks like a sha256: dialogues refer to images by such hashes."""
    if isinstance(value, str):
        yield from (value,) if SHA256.fullmatch(value) else ()
    elif isinstance(value, Mapping | Sequence):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _hashes(inner)


def of_attempt(attempt: Attempt) -> Iterator[str]:
    """Yield the hashes of all images in an attempt: those shown and those that tools made."""
    for exchange in attempt.exchanges:
        derived_refs = (ref for step in exchange.reply.steps for ref in step.images)
        yield from (ref.image.sha256 for ref in (*exchange.prompt.images, *exchange.prompt.derived, *derived_refs))
