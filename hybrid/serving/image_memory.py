"""A cache of recently decoded pixels, because the calls of a question use the same few images.

The threads of a service share one `DecodedImages(store)`; `pixels(image)` returns an array that the caller may modify.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from hybrid.core.images import ImageStore
from hybrid.core.types import StoredImage

if TYPE_CHECKING:
    from hybrid.tool import Pixels

# Maximum bytes of pixels: seventeen images of 640 x 480; photographs above five megapixels are not cached.
KEPT_BYTES: Final = 16_000_000


class DecodedImages:
    """Decodes images of a store, from any thread, and caches the most recently used pixels."""

    def __init__(self, store: ImageStore, most_bytes: int = KEPT_BYTES) -> None:
        self._store, self._most = store, most_bytes
        self._kept: OrderedDict[str, Pixels] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def pixels(self, image: StoredImage) -> Pixels:
        """Return the pixels of an image as an array that the caller may modify, like `ImageStore.pixels`."""
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
                # Another thread may have decoded the image in the meantime.
                self._bytes += 0 if image.sha256 in self._kept else copy.nbytes
                self._kept.setdefault(image.sha256, copy)
                while self._bytes > self._most:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return pixels
