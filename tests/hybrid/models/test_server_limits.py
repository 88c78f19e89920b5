"""Limits of servers, in time that passes at once: how many requests a run takes, what it loses, and what it says."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.errors import UsageError
from hybrid.messages import AssistantMessage
from hybrid.models.caller import Caller, ChatRequest, Keep
from hybrid.models.circuit import Circuit, CircuitLimits
from hybrid.models.failures import StatusError
from tests.hybrid.models.test_circuit import World, passing

HOUR_S = 3600.0


@dataclass
class Limited(World):
    """Takes so many requests at a time; others get a 429. `wait` is the value of `--wait-for-server`."""

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


def a_minute(most: int) -> Callable[[str, float], Exception | None]:
    """A quota of requests by the minute."""
    used: dict[int, int] = {}

    def says(_: str, now: float) -> Exception | None:
        used[minute] = used.get(minute := int(now // 60), 0) + 1
        return StatusError(429, "quota") if used[minute] > most else None

    return says


def thin_strips(question: str, _: float) -> Exception | None:
    return StatusError(500, "cannot resize 1 x 4000") if question in {"q100", "q101", "q102", "q103"} else None


def gone_until(seconds: float) -> Callable[[str, float], Exception | None]:
    return lambda _, now: ConnectionRefusedError("refused") if now < seconds else None


@pytest.mark.parametrize(
    ("server", "lost", "most_requests", "most_seconds"),
    [
        ({"says": lambda *_: None}, 0, 104, 1),
        ({"at_once": 4}, 0, 200, 30),
        ({"at_once": 1}, 0, 250, 60),
        ({"at_once": 16}, 0, 160, 10),
        ({"at_once": 4, "retry_after": "1"}, 0, 200, 60),
        ({"says": a_minute(30)}, 0, 250, 360),
        ({"says": until(60, 503)}, 0, 200, 100),
        ({"says": until(60, 529, "20")}, 0, 150, 120),
        ({"says": until(HOUR_S, 529), "wait": "2h"}, 0, 500, HOUR_S + 60),
        ({"says": until(432, 429, "432"), "wait": "2h"}, 0, 150, 500),
        ({"says": gone_until(300), "wait": "10m"}, 0, 300, 400),
        ({"says": until(200, 529)}, "openai:m: only errors for", 100, 120),
        ({"says": gone_until(300)}, "openai:m: no reply for", 100, 30),
        ({"says": until(HOUR_S, 500)}, "openai:m: ", 200, 300),
        ({"says": until(HOUR_S, 503), "wait": "600"}, "openai:m: only errors for 6", 200, 700),
        ({"says": thin_strips}, 4, 130, 30),
    ],
)
def test_a_limit_costs_time_and_no_question(
    server: dict[str, Any], lost: int | str, most_requests: int, most_seconds: float
) -> None:
    world = Limited(**{"says": lambda *_: None, **server})
    end, seconds = passing(world.run(104, 32))
    assert len(world.requests) <= most_requests
    assert seconds <= most_seconds
    if isinstance(lost, str):
        assert str(end).startswith(lost)
    else:
        assert len(world.lost()) == lost
        assert all("cannot resize" in world.ends[question] for question in world.lost())


def test_what_a_server_takes_is_said_once_and_stands_in_the_log(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    passing(Limited(lambda *_: None, at_once=4).run(300, 32))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: openai:m takes about ")
    number = int(line.split("about ")[1].split()[0])
    assert 2 <= number <= 5
    assert line.endswith(f"say --concurrency {number}")
    assert "too many requests at a time (429): 16 from now on" in caplog.text
    world = Limited(until(HOUR_S, 529), wait="2h")
    passing(world.run(50, 8))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: openai:m is away (")
    assert line.endswith("it is waited for, up to 2h each time")


@pytest.mark.parametrize(("written", "seconds"), [("45s", 45), ("90m", 5400), ("2h", 7200), ("1.5H", 5400), ("30", 30)])
def test_how_long_is_waited(written: str, seconds: float) -> None:
    limits = CircuitLimits.of(written)
    assert limits.away_s == max(90.0, seconds)
    assert limits.longest_pause_s == limits.away_s


@pytest.mark.parametrize("written", ["", "2 days", "-1h", "h", "1e3"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="write a time such as 90m or 2h"):
        ModelSettings(wait_for_server=written)
