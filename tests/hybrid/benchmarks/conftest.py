"""Fixtures for the tests of all benchmarks."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

SIDE = 4


def _shrink(folder: Path) -> Path:
    for path in folder.rglob("*.jpg"):
        with Image.open(path) as image:
            image.resize((image.width // SIDE, image.height // SIDE)).save(path)
    return folder


@pytest.fixture(scope="session")
def shrunk() -> Callable[[Path], Path]:
    """Function that shrinks all pictures below a folder to a quarter of their sides, for tests that do not look at
    them."""
    return _shrink
