"""`--engine ray` on a cluster of two nodes, each with its own image store: same answers, and nothing is asked twice."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings, RunConfig, RunLimits, ServiceOptions

pytest.importorskip("ray", reason="the extra `ray` is not installed")

import ray
from ray.cluster_utils import Cluster

from bench._chat_server import answer_body, framed, offers_tools, read_request, sight, tool_call, tool_results
from hybrid.benchmarks.base import ScoreOptions
from hybrid.core.types import Attempt
from hybrid.engines.ray.crew import WorkerSlot
from hybrid.engines.ray.engine import RayEngine, on_ray
from hybrid.engines.ray.images import lacking
from hybrid.models.base import ModelRefused
from hybrid.running.engine import Engine, Tell
from hybrid.running.process import Interrupted, until_signal
from hybrid.running.replies import RunReplies
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import RunEnd, run_until_complete
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored

pytestmark = pytest.mark.system

OPTIONS = ScoreOptions()
KEY = "sk-proj-0123456789abcdefSECRET"
# Numbers of questions in flight for which a run starts one worker and two workers. Two workers take at most nine
# questions each.
ONE_WORKER, TWO_WORKERS = 16, 17
CAT = re.compile(rb"Is the cat (\d+) on the mat")


@pytest.fixture(scope="module")
def session() -> Iterator[Path]:
    """Start two nodes of one CPU each and connect to them; return Ray's log folder. Its path is short, as Ray's sockets
    require."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    # Ray writes its address to this folder, but creates the folder only for a cluster inside it.
    Path(tempfile.gettempdir(), "ray").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")  # otherwise Ray writes a token into the home folder
        patch.setenv("RAY_enable_worker_prestart", "0")
        patch.setenv("RAY_worker_niceness", "0")
        cluster = Cluster()
        for number in range(2):
            cluster.add_node(
                num_cpus=1,
                env_vars={"HYBRID_HOME": str(folder / f"home-{number}")},
                object_store_memory=80_000_000,
                include_dashboard=False,
                include_log_monitor=False,
                no_monitor=True,
                temp_dir=str(folder),
            )
        ray.init(cluster.address, log_to_driver=False, configure_logging=False)
        yield folder
        ray.shutdown()
        cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def answer_request(body: bytes) -> bytes:
    """Return a call of jigsaw if tools are offered and none has run, then the letter of the image in its output.

    Without tools, return "(A)" for a question about a cat, and a description for any other request.
    """
    if offers_tools(body) and not tool_results(body):
        call = tool_call(json.dumps({"images": ["img:1", "img:2", "img:3"]}), "jigsaw")
        return framed(answer_body(call, "tool_calls"))
    fits = re.compile(rb"Image (\d) continues").search(body)
    letter = {b"2": "A", b"3": "B"}[fits[1]] if fits else "A" if CAT.search(body) else None
    return framed(answer_body({"content": f"Answer: ({letter})" if letter else "a cat and a mat"}, "stop"))


class Server:
    """An OpenAI-compatible server in the loop of the test. It returns the replies of `answer_request`; the test decides
    which replies it holds until they are released."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.status: str | None = None
        """Of an error that every request gets."""
        self.holds: Callable[[bytes], bool] = lambda _: False
        self.released = asyncio.Event()
        self._came = asyncio.Condition()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def cats(self) -> list[int]:
        """Return the numbers of the questions in all requests, without requests for a description."""
        return sorted(filter(None, map(self.number, self.bodies)))

    @staticmethod
    def number(body: bytes) -> int:
        """Return the number of the question, or 0 for a request for a description."""
        match = CAT.search(body)
        return int(match[1]) if match else 0

    async def until(self, seen: Callable[[], bool]) -> None:
        async with self._came:
            await self._came.wait_for(seen)

    async def until_seen_by(self, run: asyncio.Task[Any], seen: Callable[[], bool]) -> None:
        """Wait until the condition holds for the requests; fail if the run ends before that."""
        waiting = asyncio.create_task(self.until(seen))
        await asyncio.wait({waiting, run}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        assert not run.done(), run.result()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 22)

    async def stop(self) -> None:
        assert self._server is not None
        self.released.set()
        self._server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                _, body = request
                if (seen := sight(body)) is not None and self.status is None:
                    writer.write(seen)
                    await writer.drain()
                    continue
                async with self._came:
                    self.bodies.append(body)
                    self._came.notify_all()
                if self.holds(body):
                    await self.released.wait()
                refused = framed(answer_body({"content": ""}, "stop"), self.status) if self.status else None
                writer.write(refused or answer_request(body))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    item = Server()
    await item.start()
    yield item
    await item.stop()


@pytest.fixture
def cats(tmp_path: Path, fakes: Any, server: Server) -> RunConfig:
    """Configuration of a run that asks the server twelve questions about cats, with one worker."""
    fakes.write_task(tmp_path / "cats", "Spatial_Relation", [fakes.spatial_row(n, "(A)") for n in range(1, 13)])
    return RunConfig(
        "blink",
        ("mllm",),
        model="openai:mock",
        model_settings=ModelSettings(base_url=server.url, retries=0),
        data=str(tmp_path / "cats"),
        service=ServiceOptions("classical"),
        concurrency=ONE_WORKER,
        out=tmp_path / "run",
    )


class Watched:
    """Opens the engine and stores it for inspection; an event is set after each saved reply."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.kept = 0
        self._changed = asyncio.Condition()
        self._engine: RayEngine | None = None

    @property
    def engine(self) -> RayEngine:
        assert self._engine is not None
        return self._engine

    @asynccontextmanager
    async def open(self, run: ResolvedRun, replies: RunReplies, tell: Tell) -> AsyncIterator[Engine]:
        keep = _Counting(replies, self)
        async with on_ray(run, keep, tell) as engine:
            assert isinstance(engine, RayEngine)
            self._engine = engine
            yield engine

    async def run_until_complete(self, run: ResolvedRun) -> RunEnd:
        return await run_until_complete(run, lambda *_: None, self.told.append, self.open)

    async def until_kept(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.kept >= count)

    async def count(self) -> None:
        async with self._changed:
            self.kept += 1
            self._changed.notify_all()


class _Counting(RunReplies):
    """Passes a run's replies on and counts those that were saved."""

    def __init__(self, inner: RunReplies, watched: Watched) -> None:
        self._inner = inner
        self._watched = watched
        self._counts: list[asyncio.Task[None]] = []

    def earlier(self) -> Iterator[tuple[Any, str, bytes]]:
        return self._inner.earlier()

    def keep(self, call: Any, request_sha256: str, reply: bytes) -> None:
        self._inner.keep(call, request_sha256, reply)
        self._counts.append(asyncio.get_running_loop().create_task(self._watched.count()))


def timeless(attempt: Attempt) -> Attempt:
    """Return an attempt without the times that differ from run to run."""
    exchanges = []
    for exchange in attempt.exchanges:
        usage = replace(exchange.reply.usage, seconds=0.0, queued_seconds=0.0)
        steps = tuple(replace(step, seconds=0.0) for step in exchange.reply.steps)
        exchanges.append(replace(exchange, reply=replace(exchange.reply, usage=usage, steps=steps)))
    return replace(attempt, exchanges=tuple(exchanges), seconds=0.0, started=None)


def attempts(run: ResolvedRun, solver: str) -> dict[str, Attempt]:
    return {attempt.id: timeless(attempt) for attempt in run.folder.attempts(solver)}


def figures(scored: Scored) -> tuple[object, ...]:
    """Return the metrics and the verdicts by question."""
    return [(metric.name, metric.value, metric.n) for metric in scored.metrics], {
        score.id: score for score in scored.scores
    }


def attempt_ids(run: ResolvedRun, solver: str = "mllm") -> list[str]:
    """Return the sorted ids of all lines in the file of attempts."""
    lines = (run.folder.path / solver / "attempts.jsonl").read_text().splitlines()
    return sorted(json.loads(line)["id"] for line in lines)


async def test_scores_attempts_and_pictures_are_those_of_this_process(
    session: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fakes: Any
) -> None:
    config = RunConfig(
        "blink",
        ("controller", "specialist"),
        model="openai:mock",
        model_settings=ModelSettings(base_url=server.url, retries=0),
        data=str(fakes.blink_folder(tmp_path / "blink", jigsaws=5, spatials=0)),
        service=ServiceOptions("classical", isolated=True),
        concurrency=ONE_WORKER,
        out=tmp_path / "local",
    )
    local = prepare(config)
    assert (await run_until_complete(local, lambda *_: None, lambda _: None)).failures == ()
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "another-home"))
    # The run starts in this process, with some of the questions.
    prepared = prepare(replace(config, solvers=("specialist",), limit=2, out=tmp_path / "shared"))
    assert (await run_until_complete(prepared, lambda *_: None, lambda _: None)).answered == 2
    run = prepare(replace(config, out=tmp_path / "shared", engine="ray"))
    end = await Watched().run_until_complete(run)
    assert (end.failures, end.stopped, end.answered) == ((), None, 5 + 3)
    for solver in config.solvers:
        assert attempts(run, solver) == attempts(local, solver)
        assert len(attempt_ids(run, solver)) == 5
    expected = {item.solver: item for item in score_run(local.folder, OPTIONS)}
    for scored in score_run(run.folder, OPTIONS):
        assert figures(scored) == figures(expected.pop(scored.solver))
    assert expected == {}
    usages = [exchange.reply.usage for attempt in run.folder.attempts("controller") for exchange in attempt.exchanges]
    assert [(usage.model_calls, usage.tool_calls) for usage in usages] == [(2, 1)] * 5
    recorded = (run.folder.path / "specialist" / "attempts.jsonl").read_text()
    seen = set(re.findall(r'"sha256": ?"([0-9a-f]{64})"', recorded))
    sha256s = {image.sha256 for question in run.sound for image in question.images}
    # Each picture that a tool made is in the run's store, although only two questions ran a tool in this process.
    assert seen - sha256s
    assert lacking(run.service.store, seen) == ()


async def test_repetitions_are_those_of_this_process(session: Path, tmp_path: Path, fakes: Any) -> None:
    config = RunConfig(
        "blink",
        ("chance",),
        data=str(fakes.blink_folder(tmp_path / "blink", jigsaws=6, spatials=0)),
        service=ServiceOptions("classical"),
        concurrency=ONE_WORKER,
        seed=1,
        repeats=3,
        out=tmp_path / "local",
    )
    local, run = prepare(config), prepare(replace(config, out=tmp_path / "shared", engine="ray"))
    assert (await run_until_complete(local, lambda *_: None, lambda _: None)).answered == 18
    end = await Watched().run_until_complete(run)
    assert (end.failures, end.stopped, end.answered) == ((), None, 18)
    for solver in ("chance", "chance@2", "chance@3"):
        assert attempts(run, solver) == attempts(local, solver)
    assert attempts(run, "chance") != attempts(run, "chance@2")


async def test_a_worker_killed_half_way_costs_what_it_had_in_flight(
    session: Path, cats: RunConfig, server: Server
) -> None:
    # Each question takes two calls: a description, and the answer, which the server holds until a worker is killed.
    server.holds = lambda body: CAT.search(body) is not None
    generous = RunLimits(model_calls=1000)
    run = prepare(replace(cats, images="caption", concurrency=TWO_WORKERS, run_limits=generous))
    watched = Watched()
    task = asyncio.create_task(watched.run_until_complete(run))
    # A worker requests the answer after the run has saved the description.
    await server.until_seen_by(task, lambda: len(server.cats()) == 12)
    crew: list[WorkerSlot] = watched.engine.crew.hands
    assert len(crew) == 2
    largest = max(crew, key=lambda hand: hand.in_flight)
    in_flight = largest.in_flight
    os.kill(largest.ready.pid, signal.SIGKILL)
    await server.until_seen_by(task, lambda: len(server.cats()) == 12 + in_flight)
    server.released.set()
    end = await task
    assert (end.failures, end.stopped, end.answered) == ((), None, 12)
    assert attempt_ids(run) == sorted(question.id for question in run.sound)
    # Replies that were received are not requested again, but those lost on the way are.
    assert sorted(Counter(body for body in server.bodies if not CAT.search(body)).values()) == [1] * 12
    assert len(server.cats()) == 12 + in_flight
    assert [line for line in watched.told if "was lost (ActorDiedError)" in line and f"({in_flight})" in line]
    # A saved description does not count as a call in the budget.
    meter = run.resources.run_meter
    assert (meter.used.model_calls, meter.pending) == (1 + 12 + 12 + in_flight, 0)
    lines = (run.folder.path / "replies.jsonl").read_text().splitlines()
    assert len({json.loads(line)["image"] for line in lines}) == len(lines) == 12
    # Each image is put into the object store once, for any number of workers and nodes, and arrives unchanged.
    sha256s = {question.images[0].sha256 for question in run.sound}
    assert watched.engine.shelf.puts == len(sha256s) == 12
    for sha256 in sha256s:
        copies = [home / "images" / sha256[:2] / sha256 for home in session.glob("home-*")]
        contents = [copy.read_bytes() for copy in copies if copy.exists()]
        assert {hashlib.sha256(data).hexdigest() for data in contents} == {sha256}
    assert any(path.stat().st_size for path in session.rglob("*.out"))
    assert not [path for path in session.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


async def test_an_error_that_ends_a_run_ends_it(session: Path, cats: RunConfig, server: Server) -> None:
    server.status = "401 Unauthorized"
    end = await Watched().run_until_complete(prepare(replace(cats, limit=2)))
    assert isinstance(end.stopped, ModelRefused)
    assert (end.answered, end.failures) == (0, ())


async def test_the_budget_of_a_run_is_kept_by_the_run(session: Path, cats: RunConfig, server: Server) -> None:
    run = prepare(replace(cats, run_limits=RunLimits(model_calls=5)))
    end = await Watched().run_until_complete(run)
    # The first of the five calls checks whether the model sees pictures.
    assert len(server.bodies) == 4
    assert (end.answered, end.failures, end.stopped) == (4, (), None)
    meter = run.resources.run_meter
    assert (meter.spent(), meter.used.model_calls, meter.pending) == ("5 model calls", 5, 0)


async def test_an_interrupt_ends_as_it_does_here_and_this_process_goes_on(
    session: Path, cats: RunConfig, server: Server
) -> None:
    server.holds = lambda body: server.number(body) > 3
    run = prepare(cats)
    watched = Watched()

    async def interrupt() -> None:
        await server.until(lambda: len(server.bodies) == 12)
        await watched.until_kept(3)
        os.kill(os.getpid(), signal.SIGINT)

    sender = asyncio.create_task(interrupt())
    with pytest.raises(Interrupted) as result:
        await until_signal(watched.run_until_complete(run))
    await sender
    assert result.value.exit_code == 130
    assert set(attempt_ids(run)) <= {f"val_Spatial_Relation_{n}" for n in (1, 2, 3)}
    server.holds = lambda _: False
    server.bodies.clear()
    prepared = prepare(cats)
    assert (await run_until_complete(prepared, lambda *_: None, lambda _: None)).stopped is None
    assert attempt_ids(prepared) == sorted(question.id for question in prepared.sound)
    # Replies received before the interrupt are not requested again, whether or not they were recorded.
    assert server.cats() == list(range(4, 13))
