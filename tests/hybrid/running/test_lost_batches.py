"""Batches that the provider loses, denies, mixes up or floods: no request is paid twice, and none is sent endlessly.

Time is simulated: `Follower` waits by a timer whose clock jumps.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench._batch_server import BatchServer, Behaviour, batch_server
from hybrid.config import ModelSettings, Price, RunConfig, RunLimits
from hybrid.log.batches import read_batches
from hybrid.models.batch_apis import BatchRules
from hybrid.models.batch_apis.openai import OpenAIBatches
from hybrid.models.batching import follow, reply_store
from hybrid.models.batching import http as batch_http
from hybrid.models.chat_completions import stream
from hybrid.models.failures import UnreadableReplyError
from hybrid.running.resolve import prepare
from hybrid.running.run import RunEnd, run_until_complete
from tests.hybrid.running.test_batches import APIS, at, sizes

ALL = pytest.mark.parametrize("model", APIS)
Rewrite = Callable[[int, bytes], bytes]


class JumpingTimer:
    """A clock that moves only during a sleep; `sleep` appends each requested duration to `slept`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._began = time.time()

    def clock(self) -> float:
        return self.now

    def wall(self) -> float:
        return self._began + self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JumpingTimer:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        monkeypatch.setenv(f"{name}_API_KEY", f"{name.lower()}-key-12345678")
    fast = JumpingTimer()
    monkeypatch.setattr(follow, "REAL_TIME", fast)
    return fast


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """Configuration of a run on six generated questions, each asked once."""
    settings = ModelSettings(batch=True, price=Price(10, 10), retries=1)
    return RunConfig("blink", ("mllm",), model="openai:m", data="sample", limit=6, model_settings=settings,
                     out=tmp_path / "run")  # fmt: skip


def ask(config: RunConfig, server: BatchServer, names: list[str] | None = None, **changed: Any) -> RunEnd:
    def watch(_: str, so_far: Any) -> None:
        if names is not None:
            names.append(so_far.waits)

    run = prepare(at(config, server, **changed))
    return asyncio.run(run_until_complete(run, lambda *_: None, lambda _: None, watch=watch))


def states(config: RunConfig) -> list[str]:
    assert config.out is not None
    return [batch.state for batch in read_batches(config.out / "batches.jsonl").values()]


@pytest.mark.system
@ALL
@pytest.mark.parametrize("looks", [1, 3, 12])
def test_a_batch_that_is_unknown_at_first_is_looked_for_and_never_made_again(
    config: RunConfig, model: str, looks: int, timer: JumpingTimer
) -> None:
    names: list[str] = []
    with batch_server(Behaviour(looks=looks, unknown=lambda _, look: look < looks)) as server:
        end = ask(replace(config, model=model), server, names)
        assert (end.failures, sizes(server), set(server.accepted.values())) == ((), [6], {1})
    assert any(re.search("does not know batch .* asked again for 15 minutes", line or "") for line in names)
    assert max(timer.slept) <= 60, "no silent wait of more than a minute"


@ALL
def test_a_batch_that_stays_unknown_is_sent_again_once(
    config: RunConfig, model: str, timer: JumpingTimer, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(config, model=model)
    behaviour = Behaviour(looks=0, unknown=lambda number, _: number == 0, is_in_list=lambda number: number > 0)
    with batch_server(behaviour) as server:
        assert ask(config, server).failures == ()
        assert (sizes(server), server.files) == ([6, 6], {})
    assert timer.now >= follow.MISSING_YOUNG_S
    assert states(config) == ["lost", "over"]
    assert "its 6 requests count as paid, 6 are sent again" in capsys.readouterr().err


@pytest.mark.system
@ALL
def test_a_server_that_knows_no_batch_is_sent_two(config: RunConfig, model: str) -> None:
    config = replace(config, model=model)
    with batch_server(Behaviour(looks=0, unknown=lambda *_: True, is_in_list=lambda _: False)) as server:
        end = ask(config, server)
        assert sizes(server) == [6, 6]
        assert end.answered == 0
        assert "lost this request in two batches" in end.failures[0].error
        # The next command does not send the requests again either.
        assert "lost this request in two batches" in ask(config, server).failures[0].error
        assert sizes(server) == [6, 6]
        server.behaviour.unknown = lambda *_: False
        # Without batches the questions can be asked.
        assert ask(config, server, batch=False).failures == ()


@ALL
def test_a_batch_that_is_listed_is_looked_at_for_longer(config: RunConfig, model: str, timer: JumpingTimer) -> None:
    found_at = 1.5 * follow.MISSING_YOUNG_S
    with batch_server(Behaviour(looks=0, unknown=lambda *_: timer.now < found_at)) as server:
        assert ask(replace(config, model=model), server).failures == ()
        assert sizes(server) == [6]


@ALL
def test_a_batch_that_is_listed_and_never_shown_is_given_up(config: RunConfig, model: str, timer: JumpingTimer) -> None:
    with batch_server(Behaviour(looks=0, unknown=lambda number, _: number == 0)) as server:
        assert ask(replace(config, model=model), server).failures == ()
        assert sizes(server) == [6, 6]
    assert timer.now >= follow.LISTED_S


@ALL
def test_an_old_batch_is_looked_for_a_shorter_time(config: RunConfig, model: str, timer: JumpingTimer) -> None:
    def unknown(number: int, look: int) -> bool:
        if number == 0 and look == 0:
            timer.now += 2 * follow.YOUNG_S
        return number == 0

    with batch_server(Behaviour(looks=0, unknown=unknown, is_in_list=lambda number: number > 0)) as server:
        assert ask(replace(config, model=model), server).failures == ()
        assert sizes(server) == [6, 6]
    assert timer.now < 2 * follow.YOUNG_S + follow.MISSING_YOUNG_S


@ALL
@pytest.mark.parametrize(("calls", "batches", "answered"), [(20, 2, 6), (12, 1, 0), (7, 1, 0)])
def test_what_was_lost_counts_as_paid(config: RunConfig, model: str, calls: int, batches: int, answered: int) -> None:
    config = replace(config, model=model, run_limits=RunLimits(model_calls=calls))
    behaviour = Behaviour(looks=0, unknown=lambda number, _: number == 0, is_in_list=lambda number: number > 0)
    with batch_server(behaviour) as server:
        end = ask(config, server)
        assert (len(server.batches), end.answered) == (batches, answered)
    if not answered:
        assert "budget allows no second request" in end.failures[0].error


def tripled(number: int, results: bytes) -> bytes:
    return results * 3


def renamed(number: int, results: bytes) -> bytes:
    return re.sub(rb'"h([0-9a-f]{16})-', rb'"k\1-', results)


def halved(number: int, results: bytes) -> bytes:
    return b"\n".join(results.splitlines()[:3]) + b"\n"


def beyond(number: int, results: bytes) -> bytes:
    return re.sub(rb'(h[0-9a-f]{16})-\d+"', rb'\1-99"', results)


def negative(number: int, results: bytes) -> bytes:
    return re.sub(rb'(h[0-9a-f]{16})-\d+"', rb'\1--1"', results)


def garbled(number: int, results: bytes) -> bytes:
    return b"null\n[]\n{}\n" + b'"a"\n' + results.replace(b"\n", b"\r\n\n") + b"\xff\xfe"


@ALL
@pytest.mark.parametrize("rewrite", [tripled, garbled])
def test_results_beside_ours_change_nothing(config: RunConfig, model: str, rewrite: Rewrite) -> None:
    with batch_server(Behaviour(looks=0, rewrite=rewrite)) as server:
        assert ask(replace(config, model=model), server).failures == ()
        assert sizes(server) == [6]


@ALL
@pytest.mark.parametrize("rewrite", [renamed, beyond, negative])
def test_results_of_others_are_no_reason_to_make_batches_for_ever(
    config: RunConfig, model: str, rewrite: Rewrite
) -> None:
    with batch_server(Behaviour(looks=0, rewrite=rewrite)) as server:
        end = ask(replace(config, model=model), server)
        assert (end.answered, sizes(server)) == (0, [6, 6])


@pytest.mark.system
@ALL
def test_missing_results_are_asked_for_as_often_as_retries_allow(config: RunConfig, model: str) -> None:
    with batch_server(Behaviour(looks=0, rewrite=halved)) as server:
        assert ask(replace(config, model=model), server).answered == 6
        assert sizes(server) == [6, 3]
    none = replace(config, model=model, out=config.out and config.out.with_name("none"))
    with batch_server(Behaviour(looks=0, fate=lambda *_: "expired")) as server:
        end = ask(none, server)
        assert (end.answered, sizes(server)) == (0, [6, 6])


@pytest.mark.parametrize("requests", [1, 50_000])
def test_a_queue_that_is_always_full_ends_the_run(
    config: RunConfig, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that is always full ends the run. With one request per batch, six batches are in flight, and each waits
    for the others."""
    monkeypatch.setattr(follow, "MAX_REFUSED", 4)
    monkeypatch.setattr(OpenAIBatches, "rules", BatchRules(requests, 10**6))

    class Full(BatchServer):
        def take(self, word: str, name: str, requests: list[tuple[str, bytes]]) -> Any:
            batch = super().take(word, name, requests)
            batch.state = "failed"
            batch.errors = [{"code": "token_limit_exceeded", "message": "Enqueued token limit", "line": None}]
            return batch

    monkeypatch.setattr("bench._batch_server.BatchServer", Full)
    with batch_server(Behaviour(looks=0)) as server:
        end = ask(config, server)
        assert end.answered == 0
        # At most 12 batches for six questions with one retry each, and 4 for earlier attempts in smaller batches.
        assert len(server.batches) <= 12 + 4


@ALL
def test_a_429_for_ever_ends_the_run(config: RunConfig, model: str, timer: JumpingTimer) -> None:
    with batch_server(Behaviour(refusals=[429] * 1000)) as server:
        end = ask(replace(config, model=model), server)
        assert "takes no batch for 600 s" in str(end.stopped)
        assert (server.batches, server.uploads <= 1) == ({}, True)
    assert timer.now < 2 * follow.PATIENCE_S


@ALL
def test_a_gateway_that_gave_up_is_no_reason_to_create_a_batch_twice(config: RunConfig, model: str) -> None:
    """After a gateway's error the batch is searched for in the provider's list, which may lag behind, before another is
    created."""
    looks: list[int] = []

    def is_listed(number: int) -> bool:
        looks.append(number)
        return len(looks) > 3

    with batch_server(Behaviour(looks=0, loses_answer={0}, is_in_list=is_listed)) as server:
        assert ask(replace(config, model=model), server).failures == ()
        assert (sizes(server), len(looks) > 3) == ([6], True)


@ALL
def test_a_batch_whose_creation_is_never_confirmed_counts_as_lost(config: RunConfig, model: str) -> None:
    with batch_server(Behaviour(looks=0, loses_answer={0, 1, 2, 3}, is_in_list=lambda _: False)) as server:
        end = ask(replace(config, model=model), server)
        assert (end.answered, sizes(server)) == (0, [6, 6])
        assert set(server.accepted.values()) == {2}


@ALL
def test_what_may_have_been_created_by_a_killed_command_is_looked_for(config: RunConfig, model: str) -> None:
    config = replace(config, model=model)
    with batch_server(Behaviour(looks=0, loses_answer={0})) as server:
        assert ask(config, server).failures == ()
    assert config.out is not None
    log = config.out / "batches.jsonl"
    lines = log.read_text().splitlines()
    assert any('"state":"creating"' in line for line in lines), "on disk before the provider is asked"
    assert [line for line in lines if '"state":"creating"' in line] == lines[1 + ("input" in lines[1]) :][:1]


@ALL
def test_looks_and_results_are_read_as_far_as_a_reply_may_be(
    config: RunConfig, model: str, monkeypatch: pytest.MonkeyPatch, timer: JumpingTimer
) -> None:
    monkeypatch.setattr(stream, "MAX_REPLY_BYTES", 20_000)
    monkeypatch.setattr(batch_http, "MAX_REPLY_BYTES", 20_000)

    def long_first(_: int, results: bytes) -> bytes:
        lines = results.splitlines()
        padding = json.dumps("x" * 30_000).encode()
        lines[0] = lines[0][:-1] + b',"padding":' + padding + b"}"
        return b"\n".join(lines) + b"\n"

    packed = Behaviour(looks=0, packed=True, rewrite=lambda number, data: data if number else long_first(0, data))
    with batch_server(packed) as server:
        assert ask(replace(config, model=model), server).failures == ()
        assert sizes(server) == [6, 1], "the line that is too long is missing, and asked for again"


@ALL
def test_a_file_of_results_without_end_is_read_no_further(config: RunConfig, model: str) -> None:
    filling = b'{"padding": 1}\n' * 1_020
    with batch_server(Behaviour(looks=0, rewrite=lambda _, data: filling + data)) as server:
        assert ask(replace(config, model=model), server).answered == 0
        assert sizes(server) == [6, 6]


def test_a_line_of_results_without_end_is_read_no_further(
    config: RunConfig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(batch_http, "MAX_REPLY_BYTES", 20_000)
    monkeypatch.setattr(batch_http, "MAX_STREAM_BYTES", 100_000)
    endless = b"x" * 10**6 + b"\n"
    # Results before the malformed line count; those after it do not.
    with batch_server(Behaviour(looks=0, rewrite=lambda number, data: endless + data if number else data)) as server:
        assert ask(config, server).answered == 6
    other_run = replace(config, out=config.out and config.out.with_name("behind"))
    with batch_server(Behaviour(looks=0, rewrite=lambda _, data: endless + data)) as server:
        assert ask(other_run, server).answered == 0
        assert sizes(server) == [6, 6]
    assert "the rest is left out" in caplog.text


def test_replies_that_wait_are_in_a_file_and_each_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_store, "MEMORY_BYTES", 50)
    store = reply_store.ReplyStore()
    replies = [(200 + place, bytes([65 + place]) * 10 * place) for place in range(6)]
    readers = [store.keep(reply) for reply in replies]
    assert store._file._rolled, "more than fits in memory"  # type: ignore[attr-defined]
    assert [read() for read in reversed(readers)] == replies[::-1]
    store.keep((200, b"behind"))
    assert readers[1]() == replies[1]
    store.close()


@pytest.mark.parametrize("location", ["http://127.0.0.1:9/x", "ftp://127.0.0.1:9/x", "https://other:9/x"])
async def test_no_step_leads_from_https_to_another_host_or_scheme(location: str) -> None:
    from hybrid.models.chat_completions.wire import Address

    http = batch_http.Http(Address("https://127.0.0.1:9/v1/chat/completions", {"key": "secret"}), 5)
    with pytest.raises(UnreadableReplyError, match="points"):
        await http.say("POST", location, {})
    await http.close()
