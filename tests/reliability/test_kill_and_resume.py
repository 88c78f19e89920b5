"""A run that is killed at random moments loses no answer, asks no finished question again and scores the same."""

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from runs import CONTROLLER, Files, Process, Questions, number_of, words

from tests.finished_runs import Command
from tests.time_limits import END_S, wait_until

IN_FLIGHT = 16
# Longer than a worker takes between two requests, even on a busy machine.
STILL_S = 3.0


@pytest.mark.system
@pytest.mark.parametrize(("count", "kills"), [(60, 2), pytest.param(500, 20, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_as_if_nothing_had_been(
    count: int, kills: int, tmp_path: Path, questions: Questions, hybrid: Command, process: Callable[..., Process]
) -> None:
    data, values = questions(count), (*CONTROLLER, "--concurrency", str(IN_FLIGHT))
    with FaultyServer() as server:
        hybrid(*words(data, server.url, tmp_path / "whole", *values), code=0)
    run, moments = Files(tmp_path / "killed", "controller"), random.Random(count)
    ends: list[tuple[int, set[int]]] = []
    with FaultyServer(latency_s=0.02) as server:
        for place in range(kills):
            # Two requests per question: the kills are spread over the run, each at random within its part.
            moment = int(0.95 * 2 * count * (place + moments.random()) / kills)
            running = process(words(data, server.url, run.path, *values))
            server.wait_for(max(moment, len(server.seen) + 1))
            running.kill()
            assert running.end() == -signal.SIGKILL
            ends.append((len(server.seen), run.finished()))
        hybrid(*words(data, server.url, run.path, *values), code=0)
    assert run.finished() == set(range(1, count + 1))
    for mark, finished in ends:
        assert not finished & set(server.count_requests(mark)), "a finished question was asked again"
    # Requests in flight at a kill are sent once more, and no others.
    assert len(server.seen) <= 2 * count + kills * IN_FLIGHT
    assert run.scores == Files(tmp_path / "whole", "controller").scores


@pytest.mark.system
@pytest.mark.slow
def test_a_killed_run_of_ray_workers_asks_nothing_more_and_goes_on_here(
    tmp_path: Path, questions: Questions, hybrid: Command, process: Callable[..., Process]
) -> None:
    """A killed run of Ray workers sends no more requests: the workers end with the run, because a request without a
    receiver would still be paid for."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    count, values = 60, (*CONTROLLER, "--concurrency", str(IN_FLIGHT))
    with FaultyServer() as server:
        hybrid(*words(questions(count), server.url, tmp_path / "whole", *values), code=0)
    run = Files(tmp_path / "killed", "controller")
    with FaultyServer(latency_s=0.2) as server:
        for moment in (20, 60):
            ray = (*values, "--engine", "ray")
            running = process(words(questions(count), server.url, run.path, *ray))
            server.wait_for(moment, seconds=600)
            running.kill()
            assert running.end() == -signal.SIGKILL
            request = wait_until_still(server)
            finished = run.finished()
        hybrid(*words(questions(count), server.url, run.path, *values), code=0)
        assert not finished & set(server.count_requests(request)), "a finished question was asked again"
    assert run.finished() == set(range(1, count + 1))
    assert run.scores == Files(tmp_path / "whole", "controller").scores
    # Only requests in flight at a kill, and those that workers hold ready, are sent once more.
    assert len(server.seen) <= 2 * count + 2 * 2 * IN_FLIGHT


def wait_until_still(server: FaultyServer) -> int:
    """Return the number of requests after `STILL_S` seconds without a new one."""
    seen = -1
    for _ in range(int(END_S / STILL_S)):
        if len(server.seen) == seen:
            return seen
        seen = len(server.seen)
        time.sleep(STILL_S)
    pytest.fail(f"after {END_S:g} s there are still new requests")


@pytest.mark.system
@pytest.mark.slow
def test_a_killed_run_of_weights_in_this_process_goes_on(
    tmp_path: Path, questions: Questions, process: Callable[..., Process]
) -> None:
    """A killed run of a model without a server keeps its finished answers, and answers each question once."""
    pytest.importorskip("torch", reason="the extra `local` is not installed")
    from bench._tiny_qwen import teach

    count, weights = 16, tmp_path / "weights"
    teach(weights, steps=1)
    values = [
        "run",
        "blink",
        "--data",
        str(questions(count)),
        "--model",
        f"hf:{weights}",
        "--max-tokens",
        "8",
    ]
    values += ["--solver", "mllm", "--concurrency", "2", "--out"]
    killed, full = Files(tmp_path / "killed", "mllm"), Files(tmp_path / "whole", "mllm")
    for goal in (1, count // 2):
        running = process([*values, str(killed.path)])
        wait_until(lambda g=goal, r=running: len(killed.finished()) >= g or not r.is_alive, f"{goal} answers")
        running.kill()
        assert running.end() == -signal.SIGKILL, running.output
        finished = killed.finished()
        assert len(finished) >= goal
    for files in (killed, full):
        assert process([*values, str(files.path)]).end() == 0
    ids = [json.loads(line)["id"] for line in killed.attempts.read_text().splitlines()]
    assert sorted(map(number_of, ids)) == list(range(1, count + 1))
    assert killed.scores == full.scores
