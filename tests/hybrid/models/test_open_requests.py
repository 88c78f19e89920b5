"""Requests in flight: a run that is told to stop waits for their replies and sends no others."""

import asyncio
import os
import signal

import pytest

from hybrid.models.open_requests import OpenRequests
from hybrid.running.process import SIGNALS, Interrupted, until_signal


async def test_a_run_that_stops_waits_for_what_is_out_and_sends_no_more() -> None:
    requests, reply = OpenRequests(), asyncio.Event()

    async def ask() -> str:
        await requests.admit()
        with requests.sending():
            await reply.wait()
        return "said"

    first = asyncio.create_task(ask())
    await asyncio.sleep(0)
    assert requests.count == 1
    requests.stop("SIGTERM")
    second = asyncio.create_task(ask())
    waits = asyncio.create_task(requests.drain(600.0))
    for _ in range(10):
        await asyncio.sleep(0)
    assert (requests.count, waits.done(), second.done()) == (1, False, False)
    reply.set()
    assert await waits == 0
    assert await first == "said"
    assert not second.done()
    second.cancel()
    requests.resume()
    assert await ask() == "said"


async def test_what_does_not_come_in_time_is_counted() -> None:
    requests = OpenRequests()
    with requests.sending(), requests.sending():
        requests.stop("SIGINT")
        assert await requests.drain(0.0) == 2


async def test_nothing_out_is_nothing_to_wait_for() -> None:
    requests = OpenRequests()
    requests.stop("SIGINT")
    assert await requests.drain(600.0) == 0


@pytest.mark.parametrize("number", SIGNALS)
async def test_a_signal_waits_for_what_is_out_and_is_named(number: signal.Signals) -> None:
    async def work() -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    handler = signal.getsignal(number)
    with pytest.raises(Interrupted, match=number.name) as interrupted:
        await until_signal(work())
    assert (interrupted.value.exit_code, signal.getsignal(number)) == (128 + number, handler)


async def test_a_program_of_nohup_goes_on_when_its_terminal_is_closed() -> None:
    async def work() -> str:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return "done"

    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert await until_signal(work()) == "done"
    finally:
        signal.signal(signal.SIGHUP, handler)
