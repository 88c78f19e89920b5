"""A run with many requests in flight raises the limit of open files, and warns if it cannot."""

import resource

import pytest

from hybrid.running.process import allow_open_files


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """Record new limits instead of setting them, so that this process keeps its own."""
    payload = {"files": (1024, 4096)}

    def change(_: int, pair: tuple[int, int]) -> None:
        payload["files"] = pair

    monkeypatch.setattr(resource, "getrlimit", lambda _: payload["files"])
    monkeypatch.setattr(resource, "setrlimit", change)
    return payload


@pytest.mark.parametrize(
    ("numbers", "concurrency", "after", "is_told"),
    [
        ((1024, 4096), 8, (1024, 4096), False),
        ((1024, 4096), 1000, (2256, 4096), False),
        ((1024, 4096), 4000, (4096, 4096), True),
        ((1024, resource.RLIM_INFINITY), 4000, (8256, resource.RLIM_INFINITY), False),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 4000, (resource.RLIM_INFINITY,) * 2, False),
        # Never lowered.
        ((20_000, 20_000), 1000, (20_000, 20_000), False),
    ],
)
def test_the_limit_rises_as_far_as_it_may(
    numbers: tuple[int, int],
    concurrency: int,
    after: tuple[int, int],
    is_told: bool,
    limits: dict[str, tuple[int, int]],
) -> None:
    limits["files"], text = numbers, list[str]()
    allow_open_files(concurrency, text.append)
    assert limits["files"] == after
    assert [("ulimit -n" in line and "--concurrency 1920" in line) for line in text] == [True] * is_told


def test_a_system_that_allows_less_than_it_says(
    limits: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, pair: tuple[int, int]) -> None:
        raise ValueError(pair)

    monkeypatch.setattr(resource, "setrlimit", refuse)
    names: list[str] = []
    allow_open_files(1000, names.append)
    assert limits["files"] == (1024, 4096)
    assert "allows 1,024" in names[0]
    assert "--concurrency 384" in names[0]
