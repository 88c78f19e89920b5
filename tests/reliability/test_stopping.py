"""A stopped run says how to resume it, and one folder belongs to one process at a time."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from runs import MLLM, Files, Process, Questions, words

from tests.finished_runs import Command

pytestmark = pytest.mark.system

COUNT = 30
STOP_S = 240


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_told_to_stop_keeps_what_it_has_and_says_how_to_go_on(
    number: signal.Signals,
    code: int,
    times: int,
    tmp_path: Path,
    questions: Questions,
    hybrid: Command,
    process: Callable[..., Process],
) -> None:
    data, run = questions(COUNT), Files(tmp_path / "run", "mllm")
    with FaultyServer(latency_s=1.0 if times > 1 else 0.1) as server:
        arguments = words(data, server.url, run.path, *MLLM, "--concurrency", "4")
        running = process(arguments)
        server.wait_for(12)
        for time in range(times):
            running.kill(number)
            if time < times - 1:
                running.wait_for("in flight, already paid for")
        assert running.end(STOP_S) == code
        assert f"ended by {number.name}; finished answers are saved in {run.path}; " in running.output
        assert re.search("to resume: .*hybrid run blink", running.output)
        assert "Traceback" not in running.output
        finished, mark = run.finished(), len(server.seen)
        assert finished
        server.latency_s = 0.0
        hybrid(*arguments, code=0)
    assert run.finished() == set(range(1, COUNT + 1))
    assert not finished & set(server.count_requests(mark))
    # No request is paid for twice, because the run waited for replies in flight and saved them.
    assert set(server.count_requests().values()) == {1}
    assert f"ended by {number.name}" in (run.path / "log.txt").read_text()


def test_replies_that_do_not_come_are_given_up_and_counted(
    tmp_path: Path, questions: Questions, process: Callable[..., Process]
) -> None:
    with FaultyServer(latency_s=600.0) as server:
        running = process(words(questions(COUNT), server.url, tmp_path / "run", *MLLM, "--concurrency", "4"))
        server.wait_for(4)
        running.kill(signal.SIGTERM)
        running.wait_for("waiting up to 10 s for 4 replies in flight")
        assert running.end(STOP_S) == 143
    assert "ended by SIGTERM; 4 replies in flight did not arrive within 10 s and will be asked again" in running.output
    assert "SIGTERM: 4 replies in flight are lost" in (tmp_path / "run" / "log.txt").read_text()


def test_a_second_process_on_the_folder_is_refused_and_harms_nothing(
    tmp_path: Path, questions: Questions, hybrid: Command, process: Callable[..., Process]
) -> None:
    run = Files(tmp_path / "run", "mllm")
    with FaultyServer(latency_s=0.2) as server:
        arguments = words(questions(COUNT), server.url, run.path, *MLLM, "--concurrency", "2")
        running = process(arguments)
        server.wait_for(4)
        second = hybrid(*arguments, code=2)
        assert second.err.splitlines()[-1].startswith("hybrid: ")
        assert "is being written by another process" in second.err
        server.latency_s = 0.0
        assert running.end() == 0
    assert run.finished() == set(range(1, COUNT + 1))
    assert set(server.count_requests().values()) == {1}


def test_a_traced_run_that_is_told_to_stop_writes_the_spans_of_what_it_had_in_flight(
    tmp_path: Path, questions: Questions, process: Callable[..., Process]
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `trace`")
    data, spans = questions(COUNT), tmp_path / "spans.jsonl"
    with FaultyServer(latency_s=0.1) as server:
        running = process([*words(data, server.url, tmp_path / "run", *MLLM, "--concurrency", "4"), "--trace", spans])
        server.wait_for(12)
        running.kill(signal.SIGINT)
        assert running.end(STOP_S) == 130
    rows = [json.loads(line) for line in spans.read_text().splitlines()]
    ends = [row["attributes"].get("error.type") for row in rows if row["name"] == "question mllm"]
    finished = Files(tmp_path / "run", "mllm").finished()
    assert ends.count("CancelledError") <= 4
    assert ends.count("CancelledError") + ends.count(None) == len(ends)
    assert ends.count(None) >= len(finished) > 0
    assert rows[-1]["name"] == "run blink"
