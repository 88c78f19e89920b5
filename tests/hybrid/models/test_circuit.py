"""The circuit breaker in time that passes at once: a loop whose clock jumps to the next timer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings
from hybrid.errors import HybridError, Outage, ServerDown
from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage
from hybrid.models import CallKey, ModelRefused
from hybrid.models.caller import Caller, ChatRequest, Keep
from hybrid.models.circuit import Circuit
from hybrid.models.failures import StatusError, UnreadableReplyError
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.timing import CallTime, counted


class JumpingLoop(asyncio.SelectorEventLoop):
    """Time passes only when nothing else is to be done, and then up to the next timer."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


@dataclass
class World:
    """A server that answers after `latency_s` as `says` decides, from the question and the second it is asked in."""

    says: Callable[[str, float], Exception | None]
    latency_s: float = 0.1
    retries: int = 3
    requests: list[tuple[float, str]] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)
    name: str = "openai:m"
    images: ImageEncoder = field(default_factory=lambda: ImageEncoder(ImageStore(Path("unused")), ImageRules()))

    def __post_init__(self) -> None:
        circuit = Circuit(self.name, clock=lambda: asyncio.get_running_loop().time())
        self.model = Caller(self, ModelSettings(retries=self.retries), circuit)

    def metadata(self) -> dict[str, Any]:
        return {}

    def connection(self) -> dict[str, Any]:
        return {}

    def request(self, messages: Any, tools: Any, call: CallKey) -> ChatRequest[None]:
        return ChatRequest(call, None, "", ())

    async def send(self, request: ChatRequest[None], keep: Keep) -> AssistantMessage:
        loop, question = asyncio.get_running_loop(), request.call.question
        self.requests.append((loop.time(), question))
        error = self.says(question, loop.time())
        await asyncio.sleep(0.0 if isinstance(error, ConnectionRefusedError) else self.latency_s)
        if error is not None:
            raise error
        return AssistantMessage("said")

    def read(self, reply: bytes, call: CallKey) -> AssistantMessage:
        return AssistantMessage(reply.decode())

    async def close(self) -> None:
        """Nothing is held open."""

    async def ask(self, question: str) -> str:
        return (await self.model.chat([], (), CallKey(question))).text

    async def run(self, questions: int, concurrency: int) -> float:
        """Ask them all; what stops a run stops this one. Returns the seconds that it took."""
        queue = iter(range(questions))
        over: list[HybridError] = []

        async def worker() -> None:
            for number in queue:
                if over:
                    return
                try:
                    self.ends[f"q{number}"] = await self.ask(f"q{number}")
                except (ServerDown, ModelRefused) as error:
                    over.append(error)
                except Outage as error:
                    self.ends[f"q{number}"] = str(error)

        await asyncio.gather(*(worker() for _ in range(concurrency)))
        if over:
            raise over[0]
        return asyncio.get_running_loop().time()

    def lost(self) -> list[str]:
        return sorted(question for question, end in self.ends.items() if end != "said")


def passing(work: Awaitable[Any]) -> Any:
    async def whole() -> tuple[Any, float]:
        try:
            return await work, asyncio.get_running_loop().time()
        except HybridError as error:
            return error, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(whole())


REFUSED = ConnectionRefusedError("refused")
DROPPED = ConnectionResetError("dropped")


@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_a_server_that_is_down_is_given_up_in_time(concurrency: int) -> None:
    world = World(lambda _, now: REFUSED if now > 1 else None)
    error, seconds = passing(world.run(1000, concurrency))
    assert isinstance(error, ServerDown)
    assert 86 < seconds < 106
    assert len(world.requests) < 200 + len(world.ends)
    assert world.lost() == []
    said = str(error)
    assert "no reply for 9" in said
    assert "refused" in said
    assert f"{len(world.requests) - len(world.ends)} requests" in said


@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_a_server_that_was_never_there_is_given_up_sooner(concurrency: int) -> None:
    world = World(lambda *_: REFUSED)
    error, seconds = passing(world.run(1000, concurrency))
    assert isinstance(error, ServerDown)
    assert 8 < seconds < 20
    assert not world.ends
    said = str(error)
    assert "refused" in said
    assert "Check that the server runs, and that --base-url is its address; then run it again to go on." in said
    assert f"{len(world.requests)} requests" in said


@pytest.mark.parametrize("concurrency", [8, 64])
def test_a_page_for_a_browser_ends_it_unless_something_else_has_answered(concurrency: int) -> None:
    page = UnreadableReplyError("the reply is no JSON: <!DOCTYPE html><p>Welcome")
    world = World(lambda *_: page)
    error, seconds = passing(world.run(1000, concurrency))
    assert isinstance(error, ModelRefused)
    assert "a page for a browser answers, no model; check --base-url" in str(error)
    assert len(world.requests) <= max(4, concurrency)
    assert seconds < 10
    world = World(lambda _, now: page if 2 <= now < 12 else None)
    passing(world.run(1000, concurrency))
    assert world.lost() == []


@pytest.mark.parametrize("concurrency", [8, 64])
def test_two_pages_and_another_error_are_not_the_wrong_address(concurrency: int) -> None:
    pages = [UnreadableReplyError("no JSON: <html>"), StatusError(503, "busy")]
    world = World(lambda _, now: pages[int(now * 2) % 2] if now < 4 else None)
    passing(world.run(100, concurrency))
    assert world.lost() == []


@pytest.mark.parametrize("concurrency", [8, 64])
@pytest.mark.parametrize(
    "gone", [REFUSED, DROPPED, StatusError(503, "busy"), StatusError(500, "no"), TimeoutError("late")], ids=str
)
def test_a_server_that_is_away_for_half_a_minute_costs_no_question(gone: Exception, concurrency: int) -> None:
    world = World(lambda _, now: gone if 2 <= now < 32 else None)
    done, seconds = passing(world.run(1000, concurrency))
    assert done == seconds < 50
    assert world.lost() == []
    assert len(world.ends) == 1000
    # Those in flight, and one after the other while it is away.
    assert len(world.requests) < 1000 + concurrency + 8 + 20


@pytest.mark.parametrize("status", [429, 502, 503, 504, 529])
@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_question_alone_waits_for_a_server_that_is_back_after_a_minute(concurrency: int, status: int) -> None:
    world = World(lambda _, now: StatusError(status, "starting") if now < 60 else None)
    done, seconds = passing(world.run(concurrency, concurrency))
    assert done == seconds < 70
    assert world.lost() == []


def test_a_question_alone_is_given_up_when_many_would_be() -> None:
    world = World(lambda question, now: StatusError(503, "starting") if question == "q0" else None)
    _, seconds = passing(world.run(3, 1))
    assert world.lost() == ["q0"]
    assert 90 <= seconds < 100


@pytest.mark.parametrize("concurrency", [1, 3])
def test_who_is_alone_waits_for_a_server_that_does_not_listen(concurrency: int) -> None:
    world = World(lambda _, now: REFUSED if 1 <= now < 31 else None, retries=0)
    passing(world.run(40, concurrency))
    assert world.lost() == []


def test_everybody_goes_on_when_the_server_is_back() -> None:
    world = World(lambda _, now: REFUSED if now < 5 else None)
    passing(world.run(64, 64))
    back = [now for now, _ in world.requests if now >= 5]
    # The one that tried, and 0.1 seconds later all others.
    assert len(back) == 64
    assert max(back) - min(back) < 0.2


@pytest.mark.parametrize("concurrency", [1, 64])
def test_a_question_that_always_fails_costs_itself(concurrency: int) -> None:
    world = World(lambda question, _: StatusError(500, "no") if question == "q7" else None)
    _, seconds = passing(world.run(300, concurrency))
    assert world.lost() == ["q7"]
    assert "no reply after 4 attempts" in world.ends["q7"]
    assert sum(question == "q7" for _, question in world.requests) == 4
    assert seconds < 300 * 0.1 / concurrency + 10


def test_a_few_questions_that_always_fail_do_not_end_the_run() -> None:
    bad = {f"q{number}" for number in range(8)}
    world = World(lambda question, _: StatusError(503, "no") if question in bad else None)
    done, seconds = passing(world.run(200, 8))
    assert done == seconds < 150
    assert set(world.lost()) == bad
    assert all("only errors" in world.ends[question] or "no reply" in world.ends[question] for question in bad)


def test_many_that_fail_from_a_server_that_answers_end_the_run() -> None:
    world = World(lambda *_: StatusError(500, "broken"))
    error, seconds = passing(world.run(1000, 64))
    assert isinstance(error, ServerDown)
    assert seconds < 110
    assert "broken" in str(error)


def test_a_quota_of_a_minute_is_waited_for() -> None:
    world = World(lambda _, now: StatusError(429, "slow down", "20") if now < 170 else None)
    done, seconds = passing(world.run(100, 64))
    assert done == seconds < 240
    assert world.lost() == []
    tried = [now for now, _ in world.requests if 0.2 < now < 170]
    assert all(later - earlier >= 20 for earlier, later in pairwise(tried))


def test_a_quota_that_does_not_end_is_given_up_after_ten_minutes() -> None:
    error, seconds = passing(World(lambda *_: StatusError(429, "slow down")).run(100, 64))
    assert isinstance(error, ServerDown)
    assert 600 <= seconds < 620


def test_every_call_after_the_end_says_the_same_at_once() -> None:
    world = World(lambda *_: REFUSED)

    async def twice() -> tuple[int, str]:
        with pytest.raises(ServerDown):
            await world.run(8, 8)
        sent, began = len(world.requests), asyncio.get_running_loop().time()
        with pytest.raises(ServerDown) as told:
            await world.ask("later")
        assert asyncio.get_running_loop().time() == began
        return len(world.requests) - sent, str(told.value)

    (more, said), _ = passing(twice())
    assert more == 0
    assert "no reply for" in said


def test_the_wait_is_not_time_of_the_question() -> None:
    world = World(lambda _, now: REFUSED if 0.05 < now < 20 else None)

    async def one() -> float:
        await world.ask("one before")
        spent = CallTime(left=3.0)
        async with counted(spent, asyncio.get_running_loop().time):
            await world.ask("q")
        return spent.busy

    busy, seconds = passing(one())
    assert seconds > 20
    assert busy < 1


def test_who_is_cancelled_leaves_his_turn_to_the_next() -> None:
    world = World(lambda _, now: REFUSED if now < 3 else None)

    async def some() -> list[Any]:
        asked = [asyncio.create_task(world.ask(f"q{number}")) for number in range(6)]
        for second, task in enumerate(asked[:5]):
            await asyncio.sleep(0.3)
            assert second >= 0
            task.cancel()
        return await asyncio.gather(*asked, return_exceptions=True)

    ends, _ = passing(some())
    assert [isinstance(end, asyncio.CancelledError) for end in ends] == [True] * 5 + [False]
    assert ends[-1] == "said"


def test_a_server_that_takes_nothing_stops_the_run_early() -> None:
    world = World(lambda *_: StatusError(400, {"error": {"message": "unknown flag --top"}}))
    error, _ = passing(world.run(1000, 4))
    assert isinstance(error, ModelRefused)
    assert "unknown flag --top" in str(error)
    assert len(world.requests) <= 10 + 4


@pytest.mark.parametrize("status", [400, 402, 403, 404, 413, 422])
def test_a_question_that_is_not_taken_costs_itself(status: int) -> None:
    world = World(lambda question, _: StatusError(status, "not you") if question in {"q0", "q9"} else None)
    passing(world.run(200, 8))
    assert world.lost() == ["q0", "q9"]
    assert len(world.requests) == 200


def test_ten_questions_in_a_row_that_are_not_taken_stop_a_run_that_worked() -> None:
    world = World(lambda _, now: StatusError(404, "moved") if now > 1 else None)
    error, _ = passing(world.run(1000, 1))
    assert isinstance(error, ModelRefused)
    assert len(world.lost()) == 9


def test_a_key_is_believed_to_be_wrong_at_once_or_after_it_has_worked_after_several_times() -> None:
    at_once = World(lambda *_: StatusError(401, "wrong key"))
    error, _ = passing(at_once.run(100, 1))
    assert isinstance(error, ModelRefused)
    assert len(at_once.requests) == 1
    later = World(lambda _, now: StatusError(401, "expired") if now > 1 else None)
    error, _ = passing(later.run(100, 1))
    assert isinstance(error, ModelRefused)
    assert len(later.lost()) == 4
    once = World(lambda question, _: StatusError(401, "a hiccup") if question == "q5" else None)
    passing(once.run(100, 1))
    assert once.lost() == ["q5"]


def test_a_model_that_is_not_there_is_refused_at_once() -> None:
    error, _ = passing(World(lambda *_: StatusError(404, {"error": {"code": "model_not_found"}})).run(100, 1))
    assert isinstance(error, ModelRefused)
