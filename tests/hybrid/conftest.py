"""Workers of tools are forked: each would else load the same libraries anew."""

from collections.abc import Iterator

import pytest

from hybrid.serving import worker_process
from tests import workers

STARTED = worker_process._started


@pytest.fixture(scope="module", autouse=True)
def forked_workers() -> Iterator[None]:
    """A worker of tools that starts is a forked one, here and not in the rooms beside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_process, "_started", lambda sock: workers.start(sock, worker_process._environment()))
        yield


@pytest.fixture
def started_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are processes of their own, as the program starts them."""
    monkeypatch.setattr(worker_process, "_started", STARTED)
