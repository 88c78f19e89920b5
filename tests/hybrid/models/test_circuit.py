"""The circuit breaker, tested in simulated time by an event loop whose clock jumps to the next timer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.config import ModelSettings
from hybrid.core.errors import HybridError, Outage, ServerDown
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage
from hybrid.models import CallKey, ModelRefused
from hybrid.models.caller import Caller, ChatRequest, Keep
from hybrid.models.circuit import Circuit
from hybrid.models.failures import StatusError
from hybrid.models.images import ImageEncoder, ImageRules


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer whenever nothing else is ready."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


@dataclass
class World:
    """A server that answers after `latency_s`; `says` chooses the answer by question and request time."""

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
        """Do nothing, because no resource is open."""

    async def ask(self, question: str) -> str:
        return (await self.model.chat([], (), CallKey(question))).text

    async def run(self, questions: int, concurrency: int) -> float:
        """Ask all questions until an error that would stop a run; return the simulated seconds."""
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
    async def ask_once() -> tuple[Any, float]:
        try:
            return await work, asyncio.get_running_loop().time()
        except HybridError as error:
            return error, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(ask_once())


REFUSED = ConnectionRefusedError("refused")


def test_a_few_questions_that_always_fail_do_not_end_the_run() -> None:
    bad = {f"q{number}" for number in range(8)}
    world = World(lambda question, _: StatusError(503, "no") if question in bad else None)
    finished, seconds = passing(world.run(200, 8))
    assert finished == seconds < 150
    assert set(world.lost()) == bad
    assert all("only errors" in world.ends[question] or "no reply" in world.ends[question] for question in bad)


def test_a_quota_that_does_not_end_is_given_up_after_ten_minutes() -> None:
    error, seconds = passing(World(lambda *_: StatusError(429, "slow down")).run(100, 64))
    assert isinstance(error, ServerDown)
    assert 600 <= seconds < 620


def test_who_is_cancelled_leaves_his_turn_to_the_next() -> None:
    world = World(lambda _, now: REFUSED if now < 3 else None)

    async def some() -> list[Any]:
        tasks = [asyncio.create_task(world.ask(f"q{number}")) for number in range(6)]
        for second, task in enumerate(tasks[:5]):
            await asyncio.sleep(0.3)
            assert second >= 0
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ends, _ = passing(some())
    assert [isinstance(end, asyncio.CancelledError) for end in ends] == [True] * 5 + [False]
    assert ends[-1] == "said"


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
