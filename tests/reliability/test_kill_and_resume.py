"""A run that is killed at random moments loses no answer, asks no finished question again and scores the same."""

import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from runs import CONTROLLER, Files, Process, Questions, words

from tests.ended import Command

IN_FLIGHT = 16


@pytest.mark.system
@pytest.mark.parametrize(("count", "kills"), [(60, 2), pytest.param(500, 20, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_as_if_nothing_had_been(
    count: int, kills: int, tmp_path: Path, questions: Questions, hybrid: Command, process: Callable[..., Process]
) -> None:
    data, told = questions(count), (*CONTROLLER, "--concurrency", str(IN_FLIGHT))
    with FaultyServer() as server:
        hybrid(*words(data, server.url, tmp_path / "whole", *told), code=0)
    run, moments = Files(tmp_path / "killed", "controller"), random.Random(count)
    ends: list[tuple[int, set[int]]] = []
    with FaultyServer(latency_s=0.02) as server:
        for place in range(kills):
            # Two requests a question: the moments are spread over the run, each random within its part of it.
            moment = int(0.95 * 2 * count * (place + moments.random()) / kills)
            running = process(words(data, server.url, run.path, *told))
            server.wait_for(max(moment, len(server.seen) + 1))
            running.kill()
            assert running.end() == -signal.SIGKILL
            ends.append((len(server.seen), run.finished()))
        hybrid(*words(data, server.url, run.path, *told), code=0)
    assert run.finished() == set(range(1, count + 1))
    for mark, finished in ends:
        assert not finished & set(server.asked(mark)), "a finished question was asked again"
    # What was in flight at a kill is asked once more, and nothing else is.
    assert len(server.seen) <= 2 * count + kills * IN_FLIGHT
    assert run.scores == Files(tmp_path / "whole", "controller").scores
