"""A wall clock that jumps by up to a year in either direction at every reading changes no answer and no count."""

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from runs import CONTROLLER, Files, Questions, words

from tests.finished_runs import Command

pytestmark = pytest.mark.system

COUNT, DAY_S = 30, 86_400.0
JUMPS_D = (0, 1, -1, 365, -365, 30, -2)


def jumping() -> Callable[[], float]:
    """Return the wall clock, moved by a different number of days at each reading."""
    real, jumps = time.time, itertools.cycle(JUMPS_D)
    return lambda: real() + next(jumps) * DAY_S


@pytest.mark.parametrize("in_flight", [1, 16])
def test_a_clock_that_jumps_moves_nothing(
    in_flight: int, tmp_path: Path, questions: Questions, hybrid: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, clock = itertools.count(), jumping()
    more = (*CONTROLLER, "--concurrency", in_flight, "--no-cache", "--max-seconds", 600, "--run-max-seconds", 6000)
    for name in ("whole", "jumped"):
        with FaultyServer() as server:
            hybrid(*words(questions(COUNT), server.url, tmp_path / name, *more), code=0)
            # Two requests per question: no timer expired and nothing was asked again.
            assert len(server.seen) == 2 * COUNT
        monkeypatch.setattr(time, "time", lambda: next(looks) * 0 + clock())
    jumped = Files(tmp_path / "jumped", "controller")
    assert next(looks) > 0, "nothing looked at this clock"
    assert jumped.scores == Files(tmp_path / "whole", "controller").scores
    seconds = [
        json.loads(line)["exchanges"][0]["reply"]["usage"]["seconds"]
        for line in jumped.attempts.read_text().splitlines()
    ]
    # A duration measured with the wall clock would be days long, or negative.
    assert all(0 <= duration < DAY_S for duration in seconds)
