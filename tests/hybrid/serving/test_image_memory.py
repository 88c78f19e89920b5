"""The cache of recently decoded pixels."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.core.images import ImageStore
from hybrid.core.types import StoredImage
from hybrid.serving.image_memory import DecodedImages


class CountingStore(ImageStore):
    """Counts its reads."""

    reads = 0

    def read(self, image: StoredImage) -> bytes:
        self.reads += 1
        return super().read(image)


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path)


def test_an_image_that_is_too_large_is_decoded_each_time_and_costs_no_other(fakes: Any, store: CountingStore) -> None:
    small, large = store.put_pixels(fakes.pixels(1)), store.put_pixels(fakes.pixels(2, (90, 90)))
    decoded = DecodedImages(store, fakes.pixels(1).nbytes)
    for image in (small, large, large, small):
        decoded.pixels(image)
    assert store.reads == 3
