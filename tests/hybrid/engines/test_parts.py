"""The parts of `--engine ray` that need no cluster: which engine, how many actors, pickled errors, images."""

import asyncio
import pickle
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="the extra `ray` is not installed")

from hybrid.config import RunConfig, RunLimits, ServiceOptions
from hybrid.core.errors import DataError, HybridError, Outage, ServerDown, ToolError, UsageError, WeightsError
from hybrid.core.images import ImageStore
from hybrid.core.secrets import keep_secret
from hybrid.core.timing import CallTime, ElapsedTime
from hybrid.core.types import Attempt, Exchange, Fault, ImageRef, Kind, Prompt, Reply, Step, Usage
from hybrid.engines import opener_of
from hybrid.engines.ray.cluster import (
    ClusterDown,
    Sizes,
    code,
    connected,
    environment_of,
    loads_weights,
    other_program,
    plugin_code_hash,
    sizes,
)
from hybrid.engines.ray.crew import MAX_STARTS, WorkerPool, WorkerSlot
from hybrid.engines.ray.engine import on_ray
from hybrid.engines.ray.images import SharedImages, bytes_of, keep, lacking, of_attempt, of_question
from hybrid.engines.ray.line import MessageChannel
from hybrid.engines.ray.messages import (
    HandlerCall,
    ImagesLacking,
    NodeCode,
    QuestionFailure,
    Ready,
    RemoteError,
    TimedResponse,
    ToolSetup,
)
from hybrid.engines.ray.question_handler import QuestionHandler
from hybrid.engines.ray.tools import LINE, ActorExecutor, options_of, other_tools
from hybrid.engines.ray.worker import MeterOfRun
from hybrid.models.base import ModelRefused
from hybrid.plugins.registry import load
from hybrid.plugins.weights import backends_in_use
from hybrid.running.engine import local_engine
from hybrid.serving.cache import FindingCache
from hybrid.serving.executor import failure_of
from hybrid.serving.protocol import ToolRequest
from hybrid.serving.service import CachedTools
from hybrid.solving.budgets import RunBudgetSpent, RunMeter
from hybrid.solving.captions import RunCaptions
from tests.tables import cases


def test_the_engine_is_the_one_that_was_named() -> None:
    assert opener_of(RunConfig("blink")) is local_engine
    assert opener_of(RunConfig("blink", engine="ray", address="10.0.0.4:6379")) is on_ray


def test_an_address_needs_an_engine_that_has_one() -> None:
    with pytest.raises(UsageError, match=r"--address 10\.0\.0\.4:6379: .* --engine ray"):
        opener_of(RunConfig("blink", address="10.0.0.4:6379"))


def test_an_engine_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"--engine rya: unknown engine .*ray.*; available: local, ray"):
        opener_of(RunConfig("blink", engine="rya"))


@pytest.mark.parametrize("address", ["nowhere", "ray://127.0.0.1:10001", "127.0.0.1:x", "127.0.0.1:{closed}"])
async def test_an_address_where_nobody_listens_is_refused_at_once(address: str) -> None:
    with socket.socket() as selected:
        # Bound but not listening: no other process gets the port, and nothing answers.
        selected.bind(("127.0.0.1", 0))
        text = address.format(closed=selected.getsockname()[1])
        with pytest.raises(UsageError, match=f"^--address {text}: "):
            async with connected(text):
                pytest.fail("connected to nobody")


@pytest.mark.parametrize(*cases(__file__, "test_how_many_actors_a_run_gets", expected=Sizes))
def test_how_many_actors_a_run_gets(has: dict[str, Any], expected: Sizes) -> None:
    assert sizes(**{"learned": False, "in_process": False, **has}) == expected


def test_a_model_in_this_process_is_loaded_by_each_worker() -> None:
    assert [loads_weights(name) for name in ("hf:tiny", "embedded", "openai:gpt-4o", None)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_worker_gets_the_variables_of_its_provider_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, f"value of {name}")
    for name in ("OPENAI_API_BASE", "OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    assert set(environment_of("openai:gpt-4o")) == {"OPENAI_API_KEY", "OPENAI_BASE_URL"}
    assert set(environment_of("hf:tiny")) == {"HF_TOKEN"}
    assert environment_of("embedded") == environment_of(None) == {}


def test_another_program_is_not_asked() -> None:
    same = NodeCode(code(), Path(), plugins_hash=plugin_code_hash())
    assert other_program(same, "n1") is None
    text = other_program(replace(same, code="0" * 64), "n1")
    assert text is not None
    assert text.startswith("node n1 runs another version")


class Unsendable(Exception):
    """An error that cannot be rebuilt from its message."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason} ({code})")


def throw(error: BaseException) -> None:
    raise error


def raised(error: BaseException) -> BaseException:
    """Return the error with a traceback."""
    try:
        throw(error)
    except BaseException as caught:
        return caught
    return error


@pytest.mark.parametrize(
    "error",
    [
        Outage("503"),
        ServerDown("nobody answered"),
        ModelRefused("the key is wrong"),
        WeightsError("no weights"),
        RunBudgetSpent("5 model calls"),
        DataError("no image"),
        ToolError("too slow", Fault.TIMEOUT),
        ZeroDivisionError("a defect"),
        SystemExit(3),
        asyncio.CancelledError(),
    ],
)
def test_an_error_arrives_as_what_it_was(error: BaseException) -> None:
    arrived = pickle.loads(pickle.dumps(QuestionFailure.of(raised(error))))  # noqa: S301
    assert type(arrived.error) is type(error)
    assert str(arrived.error) == str(error)
    assert getattr(arrived.error, "fault", None) == getattr(error, "fault", None)
    assert "in throw" in arrived.error.__notes__[0]


def test_an_error_that_cannot_be_sent_says_what_it_was_without_secrets() -> None:
    keep_secret("sk-proj-verysecret")
    arrived = pickle.loads(pickle.dumps(QuestionFailure.of(raised(Unsendable(7, "no sk-proj-verysecret"))))).error  # noqa: S301
    assert type(arrived) is RemoteError
    assert str(arrived).startswith("Unsendable: no ")
    assert "verysecret" not in arrived.__notes__[0]


def test_images_of_a_question_are_those_that_its_dialogue_may_reveal(fakes: Any, tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "images")
    text, hidden = (store.put_pixels(fakes.pixels(number)) for number in (1, 2))
    question = fakes.question("q", images=(text,), protocol={"views": {"all": [hidden.sha256, 4, 4]}, "start": "a"})
    assert list(of_question(question)) == [text.sha256, hidden.sha256]


def test_images_of_an_attempt_are_those_shown_and_those_made(fakes: Any, tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "images")
    first, half, crop = (ImageRef(f"img:{n}", store.put_pixels(fakes.pixels(n))) for n in (1, 2, 3))
    prompt = Prompt(("What?", first), Kind.FREE, derived=(half,))
    reply = Reply("", steps=(Step("tool", "crop", "", images=(crop,)),))
    result = of_attempt(Attempt("q", (Exchange(prompt, reply),), 1.0))
    assert list(result) == [ref.image.sha256 for ref in (first, half, crop)]


def test_an_image_is_kept_only_under_its_own_hash(fakes: Any, tmp_path: Path) -> None:
    here_, store = ImageStore(tmp_path / "here"), ImageStore(tmp_path / "there")
    image = here_.put_pixels(fakes.pixels(1))
    (data,) = bytes_of(here_, [image.sha256]).values()
    assert lacking(store, [image.sha256, image.sha256]) == (image.sha256,)
    with pytest.raises(DataError, match="arrived damaged"):
        keep(store, image.sha256, data[:-1])
    assert lacking(store, [image.sha256]) == (image.sha256,)
    keep(store, image.sha256, data)
    assert store.read(image) == data
    assert lacking(store, [image.sha256]) == ()


async def test_a_line_says_in_order_and_hears_the_answer() -> None:
    line = MessageChannel()
    line.tell(QuestionHandler.notice, "first")
    wish = asyncio.create_task(line.request(QuestionHandler.tools))
    await asyncio.sleep(0)
    actor: Any = Nobody()
    line.answer(0, (actor,))
    assert await wish == (actor,)
    line.answer(0, "again")
    line.close()
    messages = [message async for message in line]
    assert pickle.loads(pickle.dumps(messages)) == [  # noqa: S301
        HandlerCall(None, QuestionHandler.notice, ("first",)),
        HandlerCall(0, QuestionHandler.tools, ()),
    ]


async def test_the_run_allows_each_call_of_a_worker_and_counts_one_whose_end_is_lost(tmp_path: Path) -> None:
    line, run_meter = MessageChannel(), RunMeter(RunLimits(model_calls=2))
    unused: Any = None
    handler = QuestionHandler(run_meter, RunCaptions(), SharedImages(ImageStore(tmp_path)), unused, [], [], unused)

    async def run_side() -> None:
        async for message in line:
            assert isinstance(message, HandlerCall)
            answer = await message.method(handler, *message.args)
            if message.number is not None:
                line.answer(message.number, answer)

    answers, meter = asyncio.create_task(run_side()), MeterOfRun(line, RunLimits())
    await meter.begin()
    meter.end(Usage(model_calls=1, input_tokens=7))
    await meter.begin()
    with pytest.raises(RunBudgetSpent, match="2 model calls"):
        await meter.begin()
    line.close()
    await answers
    await handler.close()
    assert (run_meter.used.model_calls, run_meter.used.input_tokens, run_meter.pending) == (2, 7, 0)


@dataclass(frozen=True)
class Nobody:
    """Takes the place of an actor."""


def hand(number: int) -> WorkerSlot:
    actor: Any = Nobody()
    return WorkerSlot(actor, Ready(number, "n1"))


async def test_workers_are_used_evenly_and_replaced_once() -> None:
    hired = iter(map(hand, range(3)))

    async def hire() -> WorkerSlot:
        return next(hired)

    crew = WorkerPool(hire, 2, most=2)
    values = [await crew.acquire() for _ in range(4)]
    assert sorted(item.ready.pid for item in values) == [0, 0, 1, 1]
    waiting = asyncio.create_task(crew.acquire())
    missing = values[0]
    assert crew.lose(missing)
    assert not crew.lose(missing)
    assert (await waiting).ready.pid == 2
    assert sorted(entry.ready.pid for entry in crew.hands) == [1, 2]
    crew.close()


@pytest.mark.parametrize(
    ("error", "starts"), [(ClusterDown("another version"), 1), (RuntimeError("it died\nat once"), MAX_STARTS)]
)
async def test_a_crew_that_cannot_start_ends_the_run(error: HybridError, starts: int) -> None:
    tried = []

    async def hire() -> WorkerSlot:
        tried.append(error)
        raise error

    crew = WorkerPool(hire, 1, most=1)
    with pytest.raises(ClusterDown, match=str(error).partition("\n")[0]):
        await crew.acquire()
    assert len(tried) == starts


def test_a_node_whose_tools_are_others_is_refused() -> None:
    def why(backends: dict[str, str]) -> str | None:
        return other_tools(ToolSetup(NodeCode("", Path()), ServiceOptions("classical"), backends, 1), "abc (10.0.0.4)")

    assert why(backends_in_use([load("tools", "jigsaw")], "classical", {})) is None
    assert "put the same weights on every node" in str(why({"jigsaw": "learned:other"}))


class Method:
    """A method of an actor: `remote` calls it in this process."""

    def __init__(self, run: Callable[..., Awaitable[Any]]) -> None:
        self.remote = run


class SlowTools:
    """A tool actor whose tool has run for five seconds and continues until `ended` is set."""

    def __init__(self) -> None:
        self.ask, self.look = Method(self._ask), Method(self._look)
        self.awaited: list[bool] = []
        self.ended, self.seen = asyncio.Event(), asyncio.Event()

    async def _ask(self, request: ToolRequest, token: str, refs: Any) -> TimedResponse | ImagesLacking:
        if not refs:
            return ImagesLacking(tuple(ref.image.sha256 for ref in request.images))
        await self.ended.wait()
        return TimedResponse(failure_of(request.number, ToolError("it has ended")), ElapsedTime(7.0, 7.0, False, 1.0))

    async def _look(self, token: str, awaited: bool) -> ElapsedTime | None:
        self.awaited.append(awaited)
        if not awaited:
            self.seen.set()
        return None if self.ended.is_set() else ElapsedTime(5.0, 5.0, True, 1.0)


async def test_a_call_is_charged_what_its_actor_says_and_the_actor_hears_that_its_caller_gave_up(
    fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.engines.ray.tools.LOOK_S", 0.05)
    line, actor, store = MessageChannel(), SlowTools(), ImageStore(tmp_path / "images")
    LINE.set(line)

    async def run_side() -> None:
        async for message in line:
            if isinstance(message, HandlerCall) and message.number is not None:
                lent = dict.fromkeys(*message.args, b"lent") if message.method is QuestionHandler.images else (actor,)
                line.answer(message.number, lent)

    answers = asyncio.create_task(run_side())
    cache = FindingCache(None, store)
    executor = ActorExecutor(cache, SharedImages(store))
    service = CachedTools(store, cache, ServiceOptions("classical"), executor=executor)
    tool, refs, impatient, patient = load("tools", "jigsaw"), fakes.refs(store, 1, 2, 3), CallTime(3.0), CallTime(60.0)
    values = [service.call(tool, tool.parse({}), refs, 0, spent) for spent in (impatient, patient)]
    late = asyncio.ensure_future(values[0])
    other = asyncio.ensure_future(values[1])
    with pytest.raises(ToolError, match="did not answer within the question's time"):
        await late
    assert impatient.busy >= 5.0
    assert set(actor.awaited) == {True}
    other.cancel()
    await actor.seen.wait()
    actor.ended.set()
    line.close()
    await answers
    service.close()


@pytest.mark.parametrize(("text", "own_part"), [("cuda:2,cuda:3", "cuda"), ("auto", "auto"), ("cpu", "cpu")])
def test_a_tool_actor_takes_the_gpu_that_it_sees_and_its_share_of_the_memory(text: str, own_part: str) -> None:
    options = options_of(ToolSetup(NodeCode("", Path()), ServiceOptions(device=text), {}, 4))
    assert options.device == own_part
    assert options.process_bytes == pytest.approx(ServiceOptions().process_bytes / 4, rel=0.01)
