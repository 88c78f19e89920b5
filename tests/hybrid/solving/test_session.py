"""One prompt of a session: budgets, the images that can be reached, counts, and the message for each kind of end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from hybrid.config import ImageForm, Limits, Price, RunConfig
from hybrid.core.errors import Outage, ToolError
from hybrid.core.messages import AssistantMessage
from hybrid.core.timing import CallTime
from hybrid.core.types import Fault, Finding, ImageRef, Kind, Outcome, Prompt, Question, Reply
from hybrid.plugins.registry import load
from hybrid.serving.service import CachedTools
from hybrid.solving.call_tool import find_tool
from hybrid.solving.controls import AskedQuestion, ToolCondition
from hybrid.solving.session import AskSetup, Session, seed_of
from hybrid.solving.solver import SolverContext
from hybrid.tool import Args, Tool
from tests.tables import cases

Play = Callable[[Prompt, SolverContext], Awaitable[Reply]]


@dataclass
class Scripted:
    """A solver whose behaviour a test defines."""

    play: Play
    needs_model: bool = True
    runs_own_tools: bool = False
    needs_live: bool = False
    samples_itself: bool = False
    images: ImageForm | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    def calls(self, limits: Limits) -> tuple[int, int]:
        return (1, 1)

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        return await self.play(prompt, ctx)


@pytest.fixture
def question(service: CachedTools, fakes: Any) -> Question:
    """A puzzle that the jigsaw tool can solve: the second image fits."""
    images = tuple(service.store.put_pixels(piece) for piece in fakes.puzzle(3))
    result: Question = fakes.question("q1", images=images, route="Jigsaw")
    return result


@pytest.fixture
def prompt(question: Question, fakes: Any) -> Prompt:
    refs = [fakes.ImageRef(f"img:{place}", image) for place, image in enumerate(question.images, 1)]
    return Prompt((question.text, *refs), Kind.CHOICE, question.choices, route=question.route)


Start = Callable[..., Session]


@pytest.fixture
def start(service: CachedTools, question: Question, fakes: Any) -> Start:
    """`start(play, replies=[...], limits=...)` is a session of the question."""

    def make(play: Play, replies: Any = (), model: Any = None, **changes: Any) -> Session:
        queue_model = model if model is not None else fakes.QueueModel(list(replies))
        return Session(
            question, Scripted(play), fakes.resources(queue_model, **{"control": ToolCondition(service), **changes})
        )

    return make


NAMES = ("img:1", "img:2", "img:3")


async def say(prompt: Prompt, ctx: SolverContext) -> Reply:
    return Reply((await ctx.model([ctx.message(prompt)])).text)


async def solve(prompt: Prompt, ctx: SolverContext) -> Reply:
    finding = await ctx.tool("jigsaw", NAMES, {})
    return Reply(f"candidate {finding.data['best']}")


@pytest.mark.parametrize("length", [0, 5, 8_000, 200_000])
async def test_the_step_of_a_reply_keeps_its_thoughts_up_to_a_length(length: int, start: Start, prompt: Prompt) -> None:
    thoughts = f"{'a' * length}"[:-1] + "z" * min(length, 1)
    reply = await start(say, [AssistantMessage("(A)", reasoning=thoughts)]).ask(prompt)
    text = str(reply.steps[0].data.get("reasoning", ""))
    assert (text == thoughts) == (length <= 8_000)
    assert (text[:1], text[-1:], len(text) < 8_100) == (thoughts[:1], thoughts[-1:], True)
    assert ("192,000 characters are left out" in text) == (length == 200_000)


@pytest.mark.parametrize(*cases(__file__, "test_a_wrong_call_is_an_error_with_its_fault_and_counts", fault=Fault))
async def test_a_wrong_call_is_an_error_with_its_fault_and_counts(
    start: Start, prompt: Prompt, name: str, images: tuple[str, ...], args: dict[str, Any], fault: Fault, message: str
) -> None:
    async def play(prompt: Prompt, ctx: SolverContext) -> Reply:
        with pytest.raises(ToolError, match=message) as caught:
            await ctx.tool(name, images, args)
        assert caught.value.fault is fault
        return Reply("went on")

    reply = await start(play).ask(prompt)
    assert (reply.text, reply.outcome, reply.usage.tool_calls) == ("went on", Outcome.ANSWERED, 1)
    assert reply.usage.tool_faults == 0
    assert [(step.kind, step.fault) for step in reply.steps] == [("tool", fault)]


async def test_tool_calls_are_limited_over_all_asks_of_a_question(start: Start, prompt: Prompt) -> None:
    session = start(solve, limits=Limits(tool_calls=2))
    assert [(await session.ask(prompt)).outcome for _ in range(3)] == [
        Outcome.ANSWERED,
        Outcome.ANSWERED,
        Outcome.BUDGET,
    ]
    assert session.meter.used.tool_calls == 2
    assert session.meter.tool_calls_left == 0


async def test_the_tokens_of_a_question_are_limited(start: Start, prompt: Prompt, fakes: Any) -> None:
    model = fakes.QueueModel(
        [fakes.message_with_usage("a", 60, 20), fakes.message_with_usage("b", 60, 20), "never said"]
    )
    session = start(say, model=model, limits=Limits(tokens=100))
    outcomes = [(await session.ask(prompt)).outcome for _ in range(3)]
    assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.BUDGET]
    assert len(model.calls) == 2


async def test_the_cost_of_a_question_is_limited(start: Start, prompt: Prompt, fakes: Any) -> None:
    session = start(
        say, [fakes.message_with_usage("a", 1_000_000, 0)], price=Price(1.0, 1.0), limits=Limits(cost_usd=1.0)
    )
    assert (await session.ask(prompt)).outcome is Outcome.ANSWERED
    spent = await session.ask(prompt)
    assert spent.outcome is Outcome.BUDGET
    assert spent.steps[-1].text == "the question's budget of cost is spent"
    assert spent.usage.model_calls == 0
    assert spent.usage.cost_usd == pytest.approx(0.0)


async def test_a_model_that_takes_too_long_spends_the_seconds(start: Start, prompt: Prompt, fakes: Any) -> None:
    model = fakes.QueueModel(["late", "too late"], speaks=asyncio.Event().wait)
    session = start(say, model=model, limits=Limits(seconds=0.05))
    reply = await session.ask(prompt)
    assert (reply.outcome, reply.text) == (Outcome.BUDGET, "")
    assert (await session.ask(prompt)).outcome is Outcome.BUDGET
    assert len(model.calls) == 1


async def test_no_time_left_is_a_timeout_of_the_tool(start: Start, prompt: Prompt) -> None:
    reply = await start(solve, limits=Limits(seconds=0.0)).ask(prompt)
    assert reply.outcome is Outcome.TOOL_FAULT
    assert reply.steps[0].fault is Fault.TIMEOUT
    assert reply.usage.tool_faults == 1


@dataclass(frozen=True)
class Counting(ToolCondition):
    """Replaces every tool by one of the test."""

    tool: Tool | None = None
    number: int = 0

    async def find(
        self,
        tool: Tool,
        args: Args,
        images: Sequence[ImageRef],
        subject: AskedQuestion,
        prompt: Prompt,
        seed: int,
        spent: CallTime | None = None,
        **_: Any,
    ) -> Finding:
        assert self.tool is not None
        numbered = self.tool.args.model_validate({"number": self.number})
        return await self.service.call(self.tool, numbered, images[:1], seed, spent)


async def call_jigsaw(prompt: Prompt, ctx: SolverContext) -> Reply:
    return Reply((await ctx.tool("jigsaw", NAMES, {})).text)


@pytest.mark.parametrize(("images", "args"), [(NAMES, None), (None, {})], ids=["no arguments", "no images"])
async def test_a_call_that_is_no_call_does_not_hold_up_the_next(
    start: Start, prompt: Prompt, images: Any, args: Any
) -> None:
    async def goes_on(prompt: Prompt, ctx: SolverContext) -> Reply:
        with suppress(AttributeError, TypeError):
            await ctx.tool("jigsaw", images, args)
        async with asyncio.timeout(60):
            return await solve(prompt, ctx)

    reply = await start(goes_on).ask(prompt)
    assert reply.text == "candidate 0"
    assert [step.name for step in reply.steps if step.kind == "tool"] == ["jigsaw"]


@pytest.mark.parametrize(("number", "count"), [(1, 0), (13, 1), (14, 1)])
async def test_a_tool_that_is_lost_is_counted(
    service: CachedTools, start: Start, prompt: Prompt, fakes: Any, number: int, count: int
) -> None:
    tool = fakes.counter(fakes.CountingBackend())

    async def goes_on(prompt: Prompt, ctx: SolverContext) -> Reply:
        with suppress(ToolError):
            await call_jigsaw(prompt, ctx)
        return Reply("went on")

    session = start(goes_on, control=Counting(service, tool=tool, number=number))
    assert [(await session.ask(prompt)).usage.tool_faults for _ in range(2)] == [count, count]


async def test_a_tool_that_never_ran_leaves_the_question_open(
    service: CachedTools, start: Start, prompt: Prompt
) -> None:
    service.close()
    with pytest.raises(Outage, match="the tool service is closed"):
        await start(solve).ask(prompt)


@pytest.mark.parametrize(
    "error", [Outage("the server is away"), ZeroDivisionError("a defect"), TimeoutError("the socket's own")]
)
async def test_an_outage_or_a_defect_is_nobodys_answer(start: Start, prompt: Prompt, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        await start(say, [error]).ask(prompt)


async def test_without_a_model_nothing_is_recorded(service: CachedTools, question: Question, prompt: Prompt) -> None:
    session = Session(question, Scripted(say), AskSetup(RunConfig(""), None, ToolCondition(service)))
    assert (await session.ask(prompt)).outcome is Outcome.NOT_RECORDED


async def test_the_kit_says_nothing_of_the_question(start: Start, prompt: Prompt) -> None:
    seen: list[SolverContext] = []

    async def play(prompt: Prompt, ctx: SolverContext) -> Reply:
        seen.append(ctx)
        return Reply("")

    for session in (start(play), start(play)):
        for _ in range(2):
            await session.ask(prompt)
    first, second, repeat, _ = seen
    assert first.seed != second.seed
    assert first.seed == repeat.seed == seed_of(0, 0, prompt.text, *(ref.image.sha256 for ref in prompt.images))


def test_arguments_are_typed() -> None:
    tool = load("tools", "jigsaw")
    assert find_tool("jigsaw") is tool
    assert tool.parse({"trim_px": 3}).model_dump() == {"trim_px": 3}
