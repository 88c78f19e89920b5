"""One ask: budgets, the images that can be reached, what is counted, and how each kind of end is told."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ImageForm, Limits, Price, RunConfig, ServiceOptions
from hybrid.errors import BudgetSpent, NotRecorded, Outage, ToolError
from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, images_of
from hybrid.models.base import prompt_sha256
from hybrid.prompts import FORMAT_LINES
from hybrid.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ToolService
from hybrid.solving.call_tool import find_tool, loaded_tool
from hybrid.solving.controls import Control, Subject
from hybrid.solving.self_consistency import confidence_in
from hybrid.solving.session import AskSetup, Session, seed_of
from hybrid.solving.solver import SolverContext
from hybrid.solving.trust import Measured, Measurement, TrustFile, fold_of
from hybrid.timing import CallTime, waiting
from hybrid.tool import Args, Tool
from hybrid.types import Fault, Finding, ImageRef, Kind, Outcome, Prompt, Question, Reply, Usage

Play = Callable[[Prompt, SolverContext], Awaitable[Reply]]


@dataclass
class Scripted:
    """A solver that does what a test says."""

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
def service(tmp_path: Path) -> Iterator[ToolService]:
    store = ImageStore(tmp_path / "images")
    one = ToolService(store, FindingCache(tmp_path / "findings", store), ServiceOptions("classical", threads=1))
    yield one
    one.close()


@pytest.fixture
def question(service: ToolService, fakes: Any) -> Question:
    """A puzzle that the jigsaw tool can solve: the second image fits."""
    images = tuple(service.store.put_pixels(piece) for piece in fakes.puzzle(3))
    found: Question = fakes.question("q1", images=images, route="Jigsaw")
    return found


@pytest.fixture
def prompt(question: Question, fakes: Any) -> Prompt:
    refs = [fakes.ImageRef(f"img:{place}", image) for place, image in enumerate(question.images, 1)]
    return Prompt((question.text, *refs), Kind.CHOICE, question.choices, route=question.route)


Start = Callable[..., Session]


@pytest.fixture
def start(service: ToolService, question: Question, fakes: Any) -> Start:
    """`start(play, replies=[...], limits=...)` is a session of the question."""

    def make(play: Play, replies: Any = (), model: Any = None, **changes: Any) -> Session:
        chosen = model if model is not None else fakes.QueueModel(list(replies))
        return Session(question, Scripted(play), fakes.resources(chosen, **{"control": Control(service), **changes}))

    return make


NAMES = ("img:1", "img:2", "img:3")


async def say(prompt: Prompt, ctx: SolverContext) -> Reply:
    message = await ctx.model([ctx.message(prompt)])
    return Reply(message.text)


async def solve(prompt: Prompt, ctx: SolverContext) -> Reply:
    finding = await ctx.tool("jigsaw", NAMES, {})
    return Reply(f"candidate {finding.data['best']}")


@pytest.mark.parametrize(
    ("solver", "config", "drawn"),
    [
        ({}, {}, True),
        ({}, {"show": "text"}, False),
        ({"needs_model": False}, {}, False),
        ({"needs_model": False}, {"overlays": True}, True),
        ({"needs_model": False, "runs_own_tools": True}, {"show": "text"}, True),
    ],
)
async def test_overlays_are_drawn_for_who_sees_them(
    service: ToolService, question: Question, prompt: Prompt, fakes: Any, solver: Any, config: Any, drawn: bool
) -> None:
    async def mark(prompt: Prompt, ctx: SolverContext) -> Reply:
        finding = await ctx.tool("markers", ("img:1",), {})
        return Reply(str(len(finding.images)))

    resources = fakes.resources(fakes.QueueModel([]), control=Control(service), **config)
    reply = await Session(question, Scripted(mark, **solver), resources).ask(prompt)
    assert reply.text == str(int(drawn))


async def test_usage_is_what_the_provider_counted_and_the_price_makes_of_it(
    start: Start, prompt: Prompt, fakes: Any
) -> None:
    async def twice(prompt: Prompt, ctx: SolverContext) -> Reply:
        await ctx.model([ctx.message(prompt)])
        return await say(prompt, ctx)

    replies = [fakes.counted("hm", 100, 20, 5), fakes.counted("(A)", 300, 10)]
    reply = await start(twice, replies, price=Price(2.0, 10.0)).ask(prompt)
    assert reply.text == "(A)"
    usage = reply.usage
    assert (usage.model_calls, usage.tool_calls, usage.input_tokens, usage.output_tokens) == (2, 0, 400, 30)
    assert usage.reasoning_tokens == 5
    assert usage.cost_usd == pytest.approx((400 * 2 + 30 * 10) / 1e6)
    assert [(step.kind, step.text) for step in reply.steps] == [("model", "hm"), ("model", "(A)")]


@pytest.mark.parametrize(
    ("mode", "offered", "warmed"), [("real", True, 1), ("real", False, 0), ("shuffled", True, 1), ("blank", True, 0)]
)
async def test_tools_are_warmed_by_a_model_call_that_offers_any_and_may_lead_to_one(
    start: Start, service: ToolService, prompt: Prompt, mode: Any, offered: bool, warmed: int
) -> None:
    class Counting(ToolService):
        warmed = 0

        def warm(self) -> None:
            self.warmed += 1

    async def offer(prompt: Prompt, ctx: SolverContext) -> Reply:
        return Reply((await ctx.model([ctx.message(prompt)], [load("tools", "crop")] if offered else ())).text)

    counting = Counting(service.store, service.cache, service.options)
    await start(offer, ["(A)"], control=Control(counting, mode)).ask(prompt)
    counting.close()
    assert counting.warmed == warmed


async def test_without_a_price_the_cost_is_unknown(start: Start, prompt: Prompt, fakes: Any) -> None:
    reply = await start(say, [fakes.counted("(A)", 100, 20)]).ask(prompt)
    assert reply.usage.cost_usd is None


@pytest.mark.parametrize("length", [0, 5, 8_000, 200_000])
async def test_the_step_of_a_reply_keeps_its_thoughts_up_to_a_length(length: int, start: Start, prompt: Prompt) -> None:
    thoughts = f"{'a' * length}"[:-1] + "z" * min(length, 1)
    reply = await start(say, [AssistantMessage("(A)", reasoning=thoughts)]).ask(prompt)
    kept = str(reply.steps[0].data.get("reasoning", ""))
    assert (kept == thoughts) == (length <= 8_000)
    assert (kept[:1], kept[-1:], len(kept) < 8_100) == (thoughts[:1], thoughts[-1:], True)
    assert ("192,000 characters are left out" in kept) == (length == 200_000)


async def test_each_ask_reports_its_own_usage_and_its_own_call_key(start: Start, prompt: Prompt, fakes: Any) -> None:
    model = fakes.QueueModel([fakes.counted("a", 10, 1), fakes.counted("b", 20, 2), fakes.counted("c", 40, 4)])

    async def twice_and_then_once(prompt: Prompt, ctx: SolverContext) -> Reply:
        if len(model.calls) == 0:
            await say(prompt, ctx)
        return await say(prompt, ctx)

    session = start(twice_and_then_once, model=model)
    first = await session.ask(prompt)
    second = await session.ask(prompt)
    assert (first.usage.input_tokens, second.usage.input_tokens) == (30, 40)
    assert session.meter.used.input_tokens == 70
    keys = [(key.question, key.ask, key.call) for _, _, key in model.calls]
    assert keys == [("q1", 0, 0), ("q1", 0, 1), ("q1", 1, 0)]
    assert {key.prompt_sha256 for _, _, key in model.calls} == {prompt_sha256(prompt.text)}


async def test_a_tool_call_finds_and_leaves_a_step_and_a_named_picture(start: Start, prompt: Prompt) -> None:
    contexts: list[SolverContext] = []

    async def play(prompt: Prompt, ctx: SolverContext) -> Reply:
        contexts.append(ctx)
        return await solve(prompt, ctx)

    reply = await start(play).ask(prompt)
    assert reply.text == "candidate 0"
    assert reply.usage.tool_calls == 1
    (step,) = reply.steps
    assert (step.kind, step.name, step.fault) == ("tool", "jigsaw", None)
    assert step.data["images"] == list(NAMES)
    assert step.data["backend"] == "classical"
    made = [name for name in contexts[0].image_registry.names if name not in NAMES]
    assert made == [ref.name for ref in step.images]
    assert made
    assert all(name.startswith("img:1.") for name in made)


async def test_a_made_picture_can_be_given_to_a_tool_again(start: Start, prompt: Prompt) -> None:
    async def again(prompt: Prompt, ctx: SolverContext) -> Reply:
        finding = await ctx.tool("jigsaw", NAMES, {})
        marks = await ctx.tool("markers", [finding.images[0].name], {})
        return Reply(marks.backend)

    assert (await start(again).ask(prompt)).text == "classical"


@pytest.mark.parametrize(
    ("name", "images", "args", "fault", "message"),
    [
        ("jigsaw", ("img:1", "img:4", "img:2"), {}, Fault.UNKNOWN_IMAGE, "no image 'img:4'; the images are: img:1, "),
        ("jigsaw", ("img:1",), {}, Fault.BAD_ARGUMENTS, "jigsaw takes .* images, not 1"),
        ("jigsaw", NAMES, {"trim_px": -1}, Fault.BAD_ARGUMENTS, "wrong arguments for jigsaw: trim_px: "),
        ("jigsaw", NAMES, {"trim": 1}, Fault.BAD_ARGUMENTS, "wrong arguments for jigsaw: trim: Extra inputs"),
        ("crystal_ball", NAMES, {}, Fault.UNKNOWN_TOOL, "no tool 'crystal_ball'; the tools are: .*jigsaw"),
    ],
)
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


async def test_a_view_that_this_ask_does_not_show_cannot_be_reached(start: Start, prompt: Prompt) -> None:
    async def marks(prompt: Prompt, ctx: SolverContext) -> Reply:
        return Reply((await ctx.tool("markers", ["img:1"], {})).backend)

    session = start(marks)
    assert (await session.ask(prompt)).outcome is Outcome.ANSWERED
    hidden = await session.ask(Prompt(("And now without images?",), Kind.CHOICE, prompt.choices))
    assert hidden.outcome is Outcome.TOOL_FAULT
    assert "no image 'img:1'; the images are: none" in hidden.steps[-1].text


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
    model = fakes.QueueModel([fakes.counted("a", 60, 20), fakes.counted("b", 60, 20), "never said"])
    session = start(say, model=model, limits=Limits(tokens=100))
    outcomes = [(await session.ask(prompt)).outcome for _ in range(3)]
    assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.BUDGET]
    assert len(model.calls) == 2


async def test_the_cost_of_a_question_is_limited(start: Start, prompt: Prompt, fakes: Any) -> None:
    session = start(say, [fakes.counted("a", 1_000_000, 0)], price=Price(1.0, 1.0), limits=Limits(cost_usd=1.0))
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
    again = await session.ask(prompt)
    assert again.outcome is Outcome.BUDGET
    assert len(model.calls) == 1


async def test_no_time_left_is_a_timeout_of_the_tool(start: Start, prompt: Prompt) -> None:
    reply = await start(solve, limits=Limits(seconds=0.0)).ask(prompt)
    assert reply.outcome is Outcome.TOOL_FAULT
    assert reply.steps[0].fault is Fault.TIMEOUT
    assert reply.usage.tool_faults == 1


@dataclass(frozen=True)
class Counting(Control):
    """Lets a tool of the test answer instead of whatever is called."""

    tool: Tool | None = None
    number: int = 0

    async def find(
        self,
        tool: Tool,
        args: Args,
        images: Sequence[ImageRef],
        subject: Subject,
        prompt: Prompt,
        seed: int,
        spent: CallTime | None = None,
        **_: Any,
    ) -> Finding:
        assert self.tool is not None
        numbered = self.tool.args.model_validate({"number": self.number})
        return await self.service.call(self.tool, numbered, images[:1], seed, spent)


async def heard(prompt: Prompt, ctx: SolverContext) -> Reply:
    return Reply((await ctx.tool("jigsaw", NAMES, {})).text)


async def test_waiting_for_a_tool_is_no_time_of_a_question(
    service: ToolService, start: Start, prompt: Prompt, fakes: Any
) -> None:
    clock = fakes.Clock()
    tool = fakes.counter(fakes.CountingBackend(takes=lambda: clock.passes(2.0)))
    one = ToolService(service.store, FindingCache(None, service.store), ServiceOptions("classical", threads=1), clock)
    sessions = [
        start(heard, control=Counting(one, tool=tool, number=number), limits=Limits(seconds=3.0), clock=clock)
        for number in range(8)
    ]
    # The first run loads what the tool needs.
    await start(heard, control=Counting(one, tool=tool, number=99), clock=clock).ask(prompt)
    replies = await asyncio.gather(*(session.ask(prompt) for session in sessions))
    one.close()
    assert [reply.outcome for reply in replies] == [Outcome.ANSWERED] * 8
    assert [reply.usage.seconds for reply in replies] == [2.0] * 8
    assert max(reply.usage.queued_seconds for reply in replies) == 14.0


async def test_tools_and_model_spend_the_same_seconds(
    service: ToolService, start: Start, prompt: Prompt, fakes: Any
) -> None:
    clock = fakes.Clock()

    async def speaks() -> None:
        clock.passes(0.5)

    async def both(prompt: Prompt, ctx: SolverContext) -> Reply:
        await heard(prompt, ctx)
        return await say(prompt, ctx)

    tool = fakes.counter(fakes.CountingBackend(takes=lambda: clock.passes(2.0)))
    one = ToolService(service.store, FindingCache(None, service.store), ServiceOptions("classical", threads=1), clock)
    model = fakes.QueueModel(["(A)"], speaks=speaks)
    await start(heard, control=Counting(one, tool=tool, number=99), clock=clock).ask(prompt)
    session = start(both, model=model, control=Counting(one, tool=tool), limits=Limits(seconds=2.5), clock=clock)
    replies = [await session.ask(prompt) for _ in range(2)]
    one.close()
    assert [reply.outcome for reply in replies] == [Outcome.ANSWERED, Outcome.TOOL_FAULT]
    assert [(reply.usage.seconds, reply.usage.tool_faults) for reply in replies] == [(2.5, 0), (0.0, 1)]


async def test_a_models_own_queue_is_no_time_of_a_question(start: Start, prompt: Prompt, fakes: Any) -> None:
    clock = fakes.Clock()

    async def speaks() -> None:
        with waiting():
            clock.passes(100.0)
        clock.passes(0.5)

    model = fakes.QueueModel(["(A)", "(B)"], speaks=speaks)
    session = start(say, model=model, limits=Limits(seconds=0.9), clock=clock)
    for text in ("(A)", "(B)"):
        reply = await session.ask(prompt)
        assert (reply.text, reply.usage.seconds, reply.usage.queued_seconds) == (text, 0.5, 100.0)
    assert (await session.ask(prompt)).outcome is Outcome.BUDGET


@pytest.mark.parametrize(("number", "lost"), [(1, 0), (13, 1), (14, 1)])
async def test_a_tool_that_is_lost_is_counted(
    service: ToolService, start: Start, prompt: Prompt, fakes: Any, number: int, lost: int
) -> None:
    tool = fakes.counter(fakes.CountingBackend())

    async def goes_on(prompt: Prompt, ctx: SolverContext) -> Reply:
        with suppress(ToolError):
            await heard(prompt, ctx)
        return Reply("went on")

    session = start(goes_on, control=Counting(service, tool=tool, number=number))
    assert [(await session.ask(prompt)).usage.tool_faults for _ in range(2)] == [lost, lost]


async def test_a_tool_that_has_nothing_to_answer_with_is_not_lost(
    service: ToolService, start: Start, prompt: Prompt, fakes: Any
) -> None:
    tool = fakes.counter(fakes.CountingBackend(), kind="learned", weights="/nowhere")
    reply = await start(heard, control=Counting(service, tool=tool)).ask(prompt)
    assert (reply.outcome, reply.usage.tool_faults) == (Outcome.TOOL_FAULT, 0)
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [Fault.ABSENT]


async def test_a_tool_that_never_ran_leaves_the_question_open(
    service: ToolService, start: Start, prompt: Prompt
) -> None:
    service.close()
    with pytest.raises(Outage, match="the tool service is closed"):
        await start(solve).ask(prompt)


async def test_no_limit_of_seconds_is_none(start: Start, prompt: Prompt) -> None:
    assert (await start(say, ["(A)"], limits=Limits(seconds=None)).ask(prompt)).text == "(A)"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotRecorded("no recording of q1"), Outcome.NOT_RECORDED),
        (BudgetSpent("all gone"), Outcome.BUDGET),
        (ToolError("it broke"), Outcome.TOOL_FAULT),
    ],
)
async def test_what_ends_an_ask_is_an_outcome_with_its_reason(
    start: Start, prompt: Prompt, error: Exception, outcome: Outcome
) -> None:
    reply = await start(say, [error]).ask(prompt)
    assert (reply.text, reply.outcome) == ("", outcome)
    assert (reply.steps[-1].name, reply.steps[-1].text) == (outcome.value, str(error))


@pytest.mark.parametrize(
    "error", [Outage("the server is away"), ZeroDivisionError("a defect"), TimeoutError("the socket's own")]
)
async def test_an_outage_or_a_defect_is_nobodys_answer(start: Start, prompt: Prompt, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        await start(say, [error]).ask(prompt)


async def test_without_a_model_nothing_is_recorded(service: ToolService, question: Question, prompt: Prompt) -> None:
    session = Session(question, Scripted(say), AskSetup(RunConfig(""), None, Control(service)))
    assert (await session.ask(prompt)).outcome is Outcome.NOT_RECORDED


async def test_the_kit_says_nothing_of_the_question(start: Start, prompt: Prompt) -> None:
    seen: list[SolverContext] = []

    async def play(prompt: Prompt, ctx: SolverContext) -> Reply:
        seen.append(ctx)
        return Reply("")

    for session in (start(play), start(play)):
        for _ in range(2):
            await session.ask(prompt)
    first, second, again, _ = seen
    assert first.seed != second.seed
    assert first.seed == again.seed == seed_of(0, 0, prompt.text, *(ref.image.sha256 for ref in prompt.images))


async def test_trust_is_that_of_the_other_folds(start: Start, prompt: Prompt, question: Question) -> None:
    folds = tuple({("jigsaw", "classical", f"fold {place}"): Measurement(0, 0)} for place in range(7))
    seen: list[Any] = []

    async def play(prompt: Prompt, ctx: SolverContext) -> Reply:
        seen.append(ctx.trust.measured)
        return Reply("")

    measured = Measured("blink", "val", {}, None, {}, "real")
    await start(play, trust=TrustFile(folds, "ab" * 32, measured)).ask(prompt)
    assert seen == [folds[fold_of(question.unit, 7)]]


async def test_what_the_model_reads_is_the_prompt_and_the_format_line(start: Start, prompt: Prompt, fakes: Any) -> None:
    model = fakes.QueueModel(["(A)"])
    await start(say, model=model).ask(prompt)
    ((message,), tools, _) = model.calls[0]
    assert tools == ()
    assert images_of([message]) == prompt.images
    texts = [part for part in message.parts if isinstance(part, str)]
    assert texts == [prompt.text, FORMAT_LINES[Kind.CHOICE]]


def test_a_tool_that_is_loaded_is_found_without_a_look_at_the_disk() -> None:
    tool, looks = load("tools", "crop"), []
    watching = [True]

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if watching[0] and event in ("os.listdir", "os.scandir", "open", "import"):
            looks.append((event, arguments))

    sys.addaudithook(look)
    try:
        assert loaded_tool("crop") is tool
    finally:
        # A hook stays for as long as the process.
        watching[0] = False
    assert looks == []
    assert [loaded_tool(name) for name in ("rules", "_shared", "os.path", "", "no_such_tool")] == [None] * 5


def test_seeds_differ_and_repeat() -> None:
    seeds = [seed_of(0, "q1", 0), seed_of(1, "q1", 0), seed_of(0, "q1", 1), seed_of(0, "q11"), seed_of(0, "q1", "1")]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_arguments_are_typed() -> None:
    tool = load("tools", "jigsaw")
    assert find_tool("jigsaw") is tool
    assert tool.parse({"trim_px": 3}).model_dump() == {"trim_px": 3}


def test_usage_adds_up_and_leaves_unknown_costs_out() -> None:
    a, b = Usage(1, 2, 3, 4, 5, 0.5, 1.0), Usage(1, 0, 7, 0, 0, None, 2.0)
    assert a + b == Usage(2, 2, 10, 4, 5, 0.5, 3.0)
    assert (b + b).cost_usd is None


async def test_every_sample_is_an_ask_of_its_own_and_all_are_paid(start: Start, prompt: Prompt, fakes: Any) -> None:
    model = fakes.QueueModel([fakes.counted(text, 100, 20) for text in ("(A)", "hm", "(B)", "(B)")])

    async def twice_at_first(prompt: Prompt, ctx: SolverContext) -> Reply:
        reply = await say(prompt, ctx)
        return await say(prompt, ctx) if reply.text == "hm" else reply

    reply = await start(twice_at_first, model=model, samples=3).ask(prompt)
    assert (reply.text, reply.outcome) == ("(B)", Outcome.ANSWERED)
    assert (reply.usage.model_calls, reply.usage.input_tokens, reply.usage.output_tokens) == (4, 400, 80)
    # Counted on from sample to sample: no two calls of an ask have one identity or one seed.
    assert [call.call for _, _, call in model.calls] == [0, 1, 2, 3]
    assert len({str(messages) for messages, _, _ in model.calls}) == 1
    assert confidence_in(reply.steps) == pytest.approx((2 + 1 / len(prompt.choices)) / 4)
    assert [step.text for step in reply.steps if step.name == "sample"] == ["(A)", "(B)", "(B)"]


async def test_a_sample_knows_no_picture_of_another(start: Start, prompt: Prompt, fakes: Any) -> None:
    seen: list[int] = []

    async def play(prompt: Prompt, ctx: SolverContext) -> Reply:
        seen.append(len(ctx.image_registry.names))
        await ctx.tool("jigsaw", NAMES, {})
        return await say(prompt, ctx)

    await start(play, ["(A)", "(A)"], samples=2).ask(prompt)
    assert seen == [3, 3]


async def test_the_questions_budget_is_that_of_all_samples(start: Start, prompt: Prompt, fakes: Any) -> None:
    replies = [fakes.counted("(B)", 60, 0) for _ in range(5)]
    reply = await start(say, replies, samples=5, limits=Limits(tokens=100)).ask(prompt)
    assert (reply.text, reply.outcome, reply.usage.model_calls) == ("(B)", Outcome.ANSWERED, 2)
    assert [step.fault for step in reply.steps if step.name == "budget"] == [Fault.BUDGET]


async def test_an_outage_in_a_sample_leaves_the_question_open(start: Start, prompt: Prompt) -> None:
    with pytest.raises(Outage):
        await start(say, ["(A)", Outage("away")], samples=3).ask(prompt)


@pytest.mark.parametrize(("itself", "needs"), [(True, True), (False, False)])
async def test_who_samples_itself_or_needs_no_model_is_asked_once(
    start: Start, prompt: Prompt, fakes: Any, itself: bool, needs: bool
) -> None:
    asked: list[int] = []

    async def play(prompt: Prompt, ctx: SolverContext) -> Reply:
        asked.append(ctx.samples)
        return Reply("(A)")

    session = start(play, samples=4)
    solver = Scripted(play, needs_model=needs, samples_itself=itself)
    other = Session(fakes.question("q1"), solver, session._shared)
    await other.ask(prompt)
    assert asked == [4]
