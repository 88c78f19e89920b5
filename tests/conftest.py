"""Fixtures for every room: where the published data lies."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of published BLINK items and predictions beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"the published data is not at {SHARED}")
    return SHARED
