"""Limits of servers, in simulated time: how many requests a run sends, which replies it loses, and what it reports."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.messages import AssistantMessage
from hybrid.models.caller import Caller, ChatRequest, Keep
from hybrid.models.circuit import Circuit, CircuitLimits
from hybrid.models.failures import StatusError
from tests.hybrid.models.test_circuit import World, passing

HOUR_S = 3600.0


@dataclass
class Limited(World):
    """A server that accepts `at_once` requests at a time and answers others with 429. `wait` is the value of
    `--wait-for-server`."""

    at_once: int = 1000
    retry_after: str | None = None
    wait: str | None = None
    out: int = 0

    def __post_init__(self) -> None:
        circuit = Circuit(self.name, CircuitLimits.of(self.wait), lambda: asyncio.get_running_loop().time())
        self.model = Caller(self, ModelSettings(retries=self.retries, wait_for_server=self.wait), circuit)

    async def send(self, request: ChatRequest[None], keep: Keep) -> AssistantMessage:
        if self.out >= self.at_once:
            self.requests.append((asyncio.get_running_loop().time(), request.call.question))
            await asyncio.sleep(0.01)
            raise StatusError(429, "too many", self.retry_after)
        self.out += 1
        try:
            return await super().send(request, keep)
        finally:
            self.out -= 1


def until(seconds: float, status: int, retry_after: str | None = None) -> Callable[[str, float], Exception | None]:
    return lambda _, now: StatusError(status, "overloaded", retry_after) if now < seconds else None


def test_what_a_server_takes_is_said_once_and_stands_in_the_log(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    passing(Limited(lambda *_: None, at_once=4).run(300, 32))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: openai:m accepts about ")
    number = int(line.split("about ")[1].split()[0])
    assert 2 <= number <= 5
    assert line.endswith(f"use --concurrency {number}")
    assert "too many requests at a time (429); limit from now on: 16" in caplog.text
    world = Limited(until(HOUR_S, 529), wait="2h")
    passing(world.run(50, 8))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: openai:m is down (")
    assert line.endswith("waiting for it, up to 2h each time")


@pytest.mark.parametrize("text", ["", "2 days", "-1h", "h", "1e3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write a time such as 90m or 2h"):
        ModelSettings(wait_for_server=text)


@pytest.mark.parametrize(
    ("retry_after", "concurrency", "lines"), [("60", 1, 1), ("60", 8, 1), (None, 1, 1), (None, 8, 1), ("5", 1, 1)]
)
def test_no_wait_is_longer_than_a_minute_without_a_line(
    retry_after: str | None, concurrency: int, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Limited(until(300, 429, retry_after))
    passing(world.run(20, concurrency))
    values = [line for line in capsys.readouterr().err.splitlines() if "has not replied for" in line]
    assert len(values) == lines
    assert "StatusError: status 429 overloaded); next try in" in values[0]
    silent, pause = map(int, re.findall(r"for (\d+) s \(.*next try in (\d+) s", values[0])[0])
    assert silent < 60 <= silent + pause + 1
    world = Limited(until(20, 503))
    passing(world.run(20, concurrency))
    assert "has not replied" not in capsys.readouterr().err
