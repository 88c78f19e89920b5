"""Whatever the server does, every question is answered or marked as failed, and requests stay within bounds."""

import asyncio
import json
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from faulty_server import FAULTS, QUESTION, Fault, FaultyServer, Request, always, answer_to, only, seeded
from runs import CONTROLLER, MLLM, Files, Process, Questions, number_of, words

from bench._chat_server import answer_body, framed, on_thread, sight
from hybrid.models.circuit import Circuit
from hybrid.models.failures import Backoff, FailedRequest
from tests.finished_runs import Command, Ended
from tests.time_limits import join

COUNT = 40
IN_FLIGHT = "16"
# Number of retries of a failed request if no option changes it.
RETRIES = 3
PATIENT = ("--concurrency", IN_FLIGHT, "--json")
DOWN_REQUESTS = 200
# Longer than any wait here, however busy the machine is.
PATIENCE_S = 600


@pytest.mark.system
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_every_question_ends_answered_or_typed_as_failed(
    count: int, tmp_path: Path, questions: Questions, hybrid: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if count < 1000:
        monkeypatch.setattr("hybrid.models.caller.Backoff", partial(Backoff, base_s=0.02))
    run, short = Files(tmp_path / "run", "controller"), ("--model-arg", "timeout_s=8")
    with FaultyServer(seeded(0.05)) as server:
        arguments = words(questions(count), server.url, run.path, *CONTROLLER, *PATIENT, *short)
        result = hybrid(*arguments)
        assert {seen.fault for seen in server.seen if seen.fault} == set(FAULTS)
        _check_the_numbers(result, run, count)
        assert result.report["failed"] <= LOST * count
        assert max(server.count_requests().values()) <= MAX_REQUESTS
        server.plan = only({})
        finished, mark = run.finished(), len(server.seen)
        second = hybrid(*arguments, code=0)
    assert second.report["failed"] == 0
    assert set(server.count_requests(mark)) == set(range(1, count + 1)) - finished


class Gate:
    """A server that answers only after `count` requests wait at the same time."""

    def __init__(self, count: int) -> None:
        self.asked: Counter[int] = Counter()
        self._count = count
        self._all_here = asyncio.Event()

    async def answer(self, _: bytes, body: bytes) -> bytes:
        """Return the right answer to the question, once all requests have arrived."""
        if (seen := sight(body)) is not None:
            return seen
        (number,) = map(int, set(QUESTION.findall(body)))
        self.asked[number] += 1
        if self.asked.total() == self._count:
            self._all_here.set()
        await self._all_here.wait()
        return framed(answer_body({"content": answer_to(number)}, "stop"))


@pytest.mark.slow
@pytest.mark.parametrize("descriptors", [None, 512])
def test_a_thousand_requests_at_once_are_answered_each_once(
    descriptors: int | None, tmp_path: Path, questions: Questions, process: Callable[..., Process], hybrid: Command
) -> None:
    """Each of a thousand simultaneous requests is answered once. `descriptors` is the run's initial limit of open
    files, such as many shells have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The server also holds a thousand connections.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    count, run = 1000, Files(tmp_path / "run", "mllm")
    prefix = () if descriptors is None else ("prlimit", f"--nofile={descriptors}:{hard}")
    try:
        gate = Gate(count)
        with on_thread(gate.answer) as url:
            command_words = words(questions(count), f"{url}/v1", run.path, *MLLM, "--concurrency", count)
            assert process([*command_words, "--model-arg", "timeout_s=600"], prefix=prefix).end(600) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert gate.asked == dict.fromkeys(range(1, count + 1), 1)
    lines = [json.loads(line) for line in run.attempts.read_text().splitlines()]
    texts = {number_of(line["id"]): line["exchanges"][0]["reply"]["text"] for line in lines}
    assert texts == {number: answer_to(number) for number in range(1, count + 1)}


# Largest share of lost questions. Seven of the ten faults are retried, so a share of 0.35 ** 4 of the calls ends
# without a reply. With two calls per question, this is 3 % of the questions.
LOST = 0.08
# Largest number of requests per question: a tool call, a repeated call with corrected arguments, an answer, a repeated
# empty answer and a request in flight when the circuit opened, each with its retries.
MAX_REQUESTS = 5 * (1 + RETRIES)


def _check_the_numbers(result: Ended, run: Files, count: int) -> None:
    """Check both denominators, the outcomes, the exit code and the names of failures."""
    report, outcomes = result.report, result.report["outcomes"]
    failed = report["failed"]
    assert report["n"] == count
    assert set(outcomes) <= {"answered", "outage", "unparsed"}
    assert sum(outcomes.values()) == count
    assert outcomes.get("outage", 0) == failed == count - len(run.finished())
    assert result.code == (3 if failed else 0)
    assert result.err.count("\nfailed: val_") == min(failed, 20)
    scores = [json.loads(line) for line in run.scores.splitlines()]
    assert len(scores) == count
    for score in scores:
        number = int(score["id"].rsplit("_", 1)[1])
        if score["outcome"] == "answered":
            assert answer_to(number) == f"Answer: ({score['answer']})"
    # A reply that is empty twice is not an answer; it counts as wrong here.
    right = sum(score["correct"] for score in scores if score["outcome"] == "answered")
    assert report["metrics"]["accuracy_micro"] == pytest.approx(right / (count - failed))
    if failed:
        assert report["metrics"]["with_failed"]["accuracy_micro"] == pytest.approx(right / count)


def test_questions_that_always_fail_cost_themselves_and_are_asked_with_longer_and_longer_pauses(
    tmp_path: Path, questions: Questions, hybrid: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The pauses are a tenth of those of a usual run.
    assert Backoff().base_s == 0.5
    monkeypatch.setattr("hybrid.models.caller.Backoff", partial(Backoff, base_s=0.05))
    run, failing = Files(tmp_path / "run", "mllm"), (5, 6)
    with FaultyServer(only(dict.fromkeys(failing, Fault.HTTP_500))) as server:
        arguments = words(questions(COUNT), server.url, run.path, *MLLM, *PATIENT)
        result = hybrid(*arguments, code=3)
        assert result.report["outcomes"] == {"answered": COUNT - 2, "outage": 2}
        request = server.count_requests()
        assert {number: request[number] for number in failing} == dict.fromkeys(failing, 1 + RETRIES)
        assert set(request.values()) == {1, 1 + RETRIES}
        pauses = [_pauses(server, number) for number in failing]
        for output in pauses:
            # Each pause is twice the previous one, times a factor between 0.5 and 1.5.
            assert all(pause >= least for pause, least in zip(output, (0.025, 0.05, 0.1), strict=True))
        for number in failing:
            assert f"failed: val_Spatial_Relation_{number} (mllm): " in result.err
        server.plan, mark = only({}), len(server.seen)
        assert hybrid(*arguments).code == 0
    assert server.count_requests(mark) == dict.fromkeys(failing, 1)


def _pauses(server: FaultyServer, number: int) -> list[float]:
    """Return the seconds between the requests of a question; a busy machine makes them longer, never shorter."""
    times = [seen.at for seen in server.seen if seen.request.question == number]
    return [after - previous for previous, after in pairwise(times)]


def test_a_wait_that_the_server_asks_for_is_waited(tmp_path: Path, questions: Questions, hybrid: Command) -> None:
    def first_is_too_many(request: Request) -> Fault | None:
        # Probes of the model name no question, so each would count as a first request.
        return Fault.RATE_WITH_WAIT if request.question >= 0 and request.earlier == 0 else None

    with FaultyServer(first_is_too_many) as server:
        hybrid(*words(questions(COUNT), server.url, tmp_path / "run", *MLLM, *PATIENT, "--limit", "4"), code=0)
    by_value = {number: requests for number, requests in server.count_requests().items() if number >= 0}
    assert len(by_value) == 4
    for number, requests in by_value.items():
        assert requests == 2
        assert _pauses(server, number)[0] >= 1.0


def test_a_question_that_is_not_allowed_costs_itself_only(
    tmp_path: Path, questions: Questions, hybrid: Command
) -> None:
    refused = {7: Fault.FORBIDDEN, 12: Fault.NOT_FOUND, 20: Fault.BAD_REQUEST}
    run = Files(tmp_path / "run", "mllm")
    with FaultyServer(only(refused)) as server:
        arguments = words(questions(COUNT), server.url, run.path, *MLLM, "--concurrency", "2", "--json")
        result = hybrid(*arguments, code=3)
        assert result.report["outcomes"] == {"answered": COUNT - 3, "outage": 3}
        assert set(server.count_requests().values()) == {1}
        for number, fault in refused.items():
            (line,) = [line for line in result.err.splitlines() if f"val_Spatial_Relation_{number} " in line]
            assert fault.value in line
        server.plan, mark = only({}), len(server.seen)
        assert hybrid(*arguments).code == 0
    assert server.count_requests(mark) == dict.fromkeys(refused, 1)


def test_an_empty_account_stops_at_once_and_keeps_what_is_answered(
    tmp_path: Path, questions: Questions, hybrid: Command
) -> None:
    with FaultyServer(only({3: Fault.NO_CREDIT})) as server:
        arguments = words(questions(COUNT), server.url, tmp_path / "run", *MLLM, "--concurrency", "2", "--json")
        result = hybrid(*arguments, code=3)
        assert "the account is out of credit or quota: top it up" in result.err
        assert "Traceback" not in result.err
        # The run stops before it has asked every question.
        assert len(server.count_requests()) < COUNT
        paid = {number for number in server.count_requests() if number != 3}
        server.plan, mark = only({}), len(server.seen)
        assert hybrid(*arguments).code == 0
    second = server.count_requests(mark)
    assert 3 in second
    # Requests in flight at the end of the run may be sent again: one question besides the refused one.
    assert len(paid & set(second)) <= 1
    assert sum(number >= 0 for number in paid | set(second)) == COUNT


def test_a_wrong_key_stops_at_once(
    tmp_path: Path, questions: Questions, hybrid: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-loopback-only-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with FaultyServer(always(Fault.WRONG_KEY)) as server:
        result = hybrid(*words(questions(COUNT), server.url, tmp_path / "run", *CONTROLLER, *PATIENT), code=2)
    assert "401" in result.err
    assert "Traceback" not in result.err
    assert len(server.seen) <= int(IN_FLIGHT)
    assert key not in result.err + result.out
    assert not [name for name, data in Files(tmp_path / "run", "mllm").bytes().items() if key.encode() in data]


def test_a_server_that_takes_no_request_at_all_stops_early(
    tmp_path: Path, questions: Questions, hybrid: Command
) -> None:
    with FaultyServer(always(Fault.BAD_REQUEST)) as server:
        arguments = words(questions(100), server.url, tmp_path / "run", *MLLM, "--concurrency", "8", "--json")
        assert "400" in hybrid(*arguments, code=2).err
        assert len(server.seen) <= 30
        server.plan = only({})
        assert hybrid(*arguments).code == 0


@pytest.mark.system
@pytest.mark.parametrize("away_s", [0.0, pytest.param(30.0, marks=pytest.mark.slow)])
def test_a_server_that_goes_away_and_comes_back_costs_no_question(
    away_s: float, tmp_path: Path, questions: Questions, hybrid: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 1000 if away_s else 100
    tried, tried_in_vain = Circuit._note_failed_probe, threading.Event()

    def tried_and_told(circuit: Circuit, failed: FailedRequest) -> None:
        tried(circuit, failed)
        tried_in_vain.set()

    monkeypatch.setattr(Circuit, "_note_failed_probe", tried_and_told)
    with FaultyServer(latency_s=0.05) as server:

        def go_and_return() -> None:
            server.wait_for(count // 2)
            server.stop()
            # Calls are waiting, and one has tested whether the server is back.
            tried_in_vain.wait(PATIENCE_S)
            time.sleep(away_s)
            server.start()

        going = threading.Thread(target=go_and_return, daemon=True)
        going.start()
        result = hybrid(*words(questions(count), server.url, tmp_path / "run", *CONTROLLER, *PATIENT))
        join(going)
    assert tried_in_vain.is_set()
    assert result.code == 0
    assert result.report["outcomes"] == {"answered": count}
    # Each request in flight when the server went down is sent again, and few requests check whether it is back.
    assert len(server.seen) <= 2 * count + 2 * int(IN_FLIGHT)


@pytest.mark.system
@pytest.mark.parametrize("solver", [CONTROLLER, MLLM])
def test_an_empty_reply_is_asked_again_whoever_asks(
    solver: tuple[str, ...], tmp_path: Path, questions: Questions, hybrid: Command
) -> None:
    def first_is_empty(request: Request) -> Fault | None:
        return Fault.EMPTY if request.earlier == 0 else None

    with FaultyServer(first_is_empty) as server:
        result = hybrid(*words(questions(COUNT), server.url, tmp_path / "run", *solver, *PATIENT, "--limit", "6"))
    assert result.code == 0
    assert result.report["outcomes"] == {"answered": 6}


@pytest.mark.slow
def test_a_port_where_nobody_listens_is_given_up(
    tmp_path: Path, questions: Questions, process: Callable[..., Process]
) -> None:
    with FaultyServer() as server:
        url = server.url
    running = process(words(questions(COUNT), url, tmp_path / "run", *MLLM, *PATIENT))
    assert running.end() in (2, 3)
    assert "Connect" in running.output


@pytest.mark.slow
def test_a_server_that_is_down_is_given_up_with_the_reason(
    tmp_path: Path, questions: Questions, process: Callable[..., Process]
) -> None:
    with FaultyServer(always(Fault.OVERLOADED)) as server:
        running = process(words(questions(100), server.url, tmp_path / "run", *MLLM, *PATIENT))
        assert running.end() in (2, 3)
    assert "503" in running.output
    assert "Traceback" not in running.output
    assert len(server.seen) < DOWN_REQUESTS
