"""Fork tool workers in these tests, because each would otherwise load the same libraries again."""

from collections.abc import Iterator

import pytest

from hybrid.serving import worker_process
from tests import workers

STARTED = worker_process._started


@pytest.fixture(scope="module", autouse=True)
def forked_workers() -> Iterator[None]:
    """Fork tool workers, in the tests of this package only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_process, "_started", lambda sock: workers.start(sock, worker_process._environment()))
        yield


@pytest.fixture
def started_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start workers as separate processes, as the program does."""
    monkeypatch.setattr(worker_process, "_started", STARTED)
