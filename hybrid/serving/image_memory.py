"""Pixels of images that were decoded a short while ago: the calls of a question look at the same few images.

One `DecodedImages(store)` is shared by the threads of a service; `pixels(image)` gives an array of the caller's own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from hybrid.core.images import ImageStore
from hybrid.core.types import StoredImage

if TYPE_CHECKING:
    from hybrid.tool import Pixels

# Pixels that are kept: seventeen images of 640 x 480, or none of a photograph of more than five megapixels.
KEPT_BYTES: Final = 16_000_000


class DecodedImages:
    """Decodes images of a store, from any thread, and keeps the pixels of those that were wanted last."""

    def __init__(self, store: ImageStore, most_bytes: int = KEPT_BYTES) -> None:
        self._store, self._most = store, most_bytes
        self._kept: OrderedDict[str, Pixels] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def pixels(self, image: StoredImage) -> Pixels:
        """As `ImageStore.pixels`: an array of the caller's own."""
        with self._lock:
            cached = self._kept.get(image.sha256)
            if cached is not None:
                self._kept.move_to_end(image.sha256)
        if cached is not None:
            return cached.copy()
        pixels = self._store.pixels(image)
        if pixels.nbytes <= self._most:
            copy = pixels.copy()
            with self._lock:
                # Another thread may have decoded it meanwhile.
                self._bytes += 0 if image.sha256 in self._kept else copy.nbytes
                self._kept.setdefault(image.sha256, copy)
                while self._bytes > self._most:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return pixels
