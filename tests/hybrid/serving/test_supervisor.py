"""Tools in a worker process: whatever a tool does, it costs only its own request.

The tools are files that the tests write next to those of `tools/`; every fault is a real one. Tests of how a process
starts use the program's own start (`started_workers`).
"""

import asyncio
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import tools
from hybrid.config import ServiceOptions
from hybrid.core.errors import Outage, ToolError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.secrets import keep_secret
from hybrid.core.timing import CallTime
from hybrid.core.types import Fault, Finding
from hybrid.display.notes import OTHER_BARS, loading_shown_by
from hybrid.log.codec import codec
from hybrid.plugins.registry import load
from hybrid.serving import supervisor, worker_process
from hybrid.serving.cache import FindingCache
from hybrid.serving.jobs import Worker, WorkerEnd, judge
from hybrid.serving.protocol import ToolRequest
from hybrid.serving.service import CachedTools
from tests.time_limits import running_process
from tests.tool_source import tool_source

ROOT = Path(__file__).parents[3]

HEAD = '''import ctypes
import os
import sys
import time
from pathlib import Path


def marked(args):
    """Leave a file for one more run; how many there are."""
    folder = Path(args.marks)
    count = len(list(folder.iterdir())) + 1
    (folder / str(count)).touch()
    return count


def stop(error):
    raise error


class AcceleratorError(RuntimeError):
    """Of torch, known by this name."""


POISONED = []
KEPT_OPEN = []


FAULTS = {
    "none": lambda args: None,
    "print": lambda args: print("said on stdout", flush=True),
    "sleep": lambda args: time.sleep(10000),
    "hold": lambda args: ctypes.PyDLL(None).sleep(10000),
    "os_exit": lambda args: os._exit(3),
    "closes": lambda args: os.closerange(0, 4096),
    "reuses": lambda args: (os.closerange(3, 4096), KEPT_OPEN.extend(open(os.devnull) for _ in range(64))),
    "sys_exit": lambda args: sys.exit(0),
    "interrupt": lambda args: stop(KeyboardInterrupt()),
    "segfault": lambda args: ctypes.string_at(0),
    "memory": lambda args: stop(MemoryError()),
    "recursion": lambda args: FAULTS["recursion"](args),
    "leak": lambda args: (globals().setdefault("KEPT", []).append(b"x" * 500_000_000), time.sleep(10000)),
    "environment": lambda args: stop(ValueError(os.environ.get(args.marks))),
    "mark": lambda args: marked(args),
    "marked_sleep": lambda args: marked(args) and time.sleep(10000),
    "marked_exit": lambda args: marked(args) and os._exit(3),
    "kernel": lambda args: POISONED.append(args.number),
    "exit_once": lambda args: marked(args) == 1 and os._exit(3),
}
'''
FIELDS = 'fault: str = "none"\nnumber: int = 0\nmarks: str = ""'
FAULTY = """found = []
for request in requests:
    FAULTS[request.args.fault](request.args)
    if POISONED:
        raise AcceleratorError("CUDA error: device-side assert triggered")
    mean = float(request.images[0].mean()) / 3
    data = {"mean": mean, "nested": [{"number": request.args.number}], "seed": request.seed}
    found.append(Evidence(f"number {request.args.number}", data, 0.1 + 0.2, (Picture(255 - request.images[0]),)))
return found"""
LOADS = """with (Path(__file__).parent / "loads").open("a") as file:
    file.write("x")
"""
DIES, HANGS = f"{LOADS}os._exit(5)", f"{LOADS}time.sleep(10000)"
FAULTS = {
    name: tool_source(name, FAULTY, args=FIELDS, head=HEAD, backend=f'"classical", "1", Backend, "Is.", batch={batch}')
    for name, batch in (("faulty", 1), ("faulty_batch", 4))
}
FILES = FAULTS | {
    name: tool_source(name, "return []", setup=setup, head=HEAD)
    for name, setup in (("hanging", HANGS), ("unloadable", DIES))
}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A second folder of the package `tools`."""
    place = tmp_path_factory.mktemp("tools")
    for name, text in FILES.items():
        (place / f"{name}.py").write_text(text)
    tools.__path__.append(str(place))
    importlib.invalidate_caches()
    yield place
    tools.__path__.remove(str(place))
    for name in FILES:
        sys.modules.pop(f"tools.{name}", None)
        vars(tools).pop(name, None)


Make = Callable[..., CachedTools]


@pytest.fixture
def make(tmp_path: Path, store: ImageStore) -> Iterator[Make]:
    results: list[CachedTools] = []

    def runner(*, keeps: bool = False, **options: Any) -> CachedTools:
        cache = FindingCache(tmp_path / "findings" if keeps else None, store)
        # Limits that must not be reached in a test are longer than any machine needs for it.
        selected = ServiceOptions("classical", **{"threads": 2, "silence_s": 60.0, **options}, isolated=True)
        results.append(CachedTools(store, cache, selected))
        return results[-1]

    yield runner
    for item in results:
        item.close()


@pytest.fixture
def ask(fakes: Any, store: ImageStore) -> Callable[..., Any]:
    """`await ask(runner, [{"fault": "sleep"}, ...])`: the outputs or errors of simultaneous requests."""

    async def all_of_them(
        runner: Any, rows: Sequence[dict[str, Any]], name: str = "faulty"
    ) -> list[Finding | BaseException]:
        tool, refs = load("tools", name), fakes.refs(store, 1)
        findings: list[Finding | BaseException] = await asyncio.gather(
            *(runner.call(tool, tool.parse(args), refs) for args in rows), return_exceptions=True
        )
        return findings

    return all_of_them


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sleeping tool counts as late as soon as nothing else runs in its worker."""

    def judged(worker: Worker, options: ServiceOptions, passed_s: float, now: float) -> WorkerEnd | None:
        sleeping = [
            job.start.stage == "cpu"
            and any(
                isinstance(request.request, ToolRequest) and request.request.args["fault"] == "sleep"
                for request in job.requests
            )
            for job in worker.jobs.values()
        ]
        late_s = options.timeout_s if sleeping and all(sleeping) else 0.0
        return judge(worker, options, passed_s, now + late_s)

    monkeypatch.setattr(supervisor, "judge", judged)
    monkeypatch.setattr(supervisor, "TICK_S", 0.02)


def numbers(*of: int) -> list[dict[str, Any]]:
    return [{"number": number} for number in of]


def texts(findings: Sequence[Finding | BaseException]) -> list[str]:
    return [item.text if isinstance(item, Finding) else f"{type(item).__name__}: {item}" for item in findings]


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_findings_are_those_of_a_service_in_this_process(
    make: Make, ask: Any, fakes: Any, store: ImageStore
) -> None:
    async def every_finding(runner: Any) -> list[bytes]:
        crop, markers = load("tools", "crop"), load("tools", "markers")
        box = {"x0": 2, "y0": 3.5, "x1": 20, "y1": 17}
        output = await ask(runner, numbers(1, 2))
        output += await ask(runner, numbers(1, 2, 3, 4, 5), "faulty_batch")
        refs = fakes.refs(store, 5)
        output.append(await runner.call(crop, crop.parse({"box": box}), refs, 7))
        output.append(await runner.call(markers, markers.parse({}), refs))
        return [codec(Finding).dump_json(item) for item in output]

    service = CachedTools(store, FindingCache(None, store), ServiceOptions("classical", threads=2))
    service_there = make()
    assert await every_finding(service_there) == await every_finding(service)
    assert (service_there.computed, service.computed) == (9, 9)
    service.close()


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_what_the_cache_has_needs_no_worker(
    make: Make, fakes: Any, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    crop, depth, refs = load("tools", "crop"), load("tools", "depth"), fakes.refs(store, 5)

    async def every_finding(runner: Any) -> list[Finding]:
        # The first tool needs another tool, which is called as well; the second tool needs none.
        box = {"x0": 2, "y0": 3.5, "x1": 20, "y1": 17}
        return [
            await runner.call(depth, depth.parse({}), refs),
            await runner.call(crop, crop.parse({"box": box}), refs),
        ]

    built = await every_finding(make(keeps=True))
    other = make(keeps=True)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert await every_finding(other) == built
    with pytest.raises(Outage, match="no worker process for the tools can be started"):
        await other.call(crop, crop.parse({}), refs)


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_a_worker_that_was_started_before_the_first_call_answers_it(
    make: Make, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SOON_S", 0.0)
    runner = make()
    runner.warm()
    for _ in range(3):
        await asyncio.sleep(0)
    # The worker has started by now, and a second worker cannot start.
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    runner.warm()
    assert texts(await ask(runner, numbers(1))) == ["number 1"]


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_errors_arrive_as_what_they_are_and_prints_do_not_reach_stdout(
    make: Make, ask: Any, capfd: pytest.CaptureFixture[str], store: ImageStore
) -> None:
    runner = make(keeps=True)
    faults = ("sys_exit", "interrupt", "memory", "recursion", "print")
    output = await ask(runner, [{"fault": fault} for fault in faults])
    assert texts(output) == [
        "ToolError: the tool failed: SystemExit: 0",
        "ToolError: the tool failed: KeyboardInterrupt: ",
        "ToolError: the tool failed: MemoryError: ",
        "ToolError: the tool failed: RecursionError: maximum recursion depth exceeded",
        "number 0",
    ]
    assert runner.computed == 1
    # Cached outputs remain, for the same process and for others.
    assert texts(await ask(runner, [{"fault": "print"}])) == ["number 0"]
    assert runner.computed == 1
    out, err = capfd.readouterr()
    assert (out, err.count("said on stdout")) == ("", 1)
    tool = load("tools", "faulty")
    with pytest.raises(ToolError, match="takes 1 images, not 0") as caught:
        await runner.call(tool, tool.parse({}), ())
    assert caught.value.fault is Fault.BAD_ARGUMENTS


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_a_tool_does_not_see_the_keys_of_models_and_draws_no_bars_of_libraries(
    make: Make, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_secret("a-key-of-this-test")
    monkeypatch.delenv(OTHER_BARS, raising=False)
    for name in ("KEY_OF_A_MODEL", "HF_TOKEN"):
        monkeypatch.setenv(name, "a-key-of-this-test")
    names = ("KEY_OF_A_MODEL", "HF_TOKEN", OTHER_BARS)
    output = await ask(make(), [{"fault": "environment", "marks": name} for name in names])
    seen = (None, "a-key-of-this-test", "1")
    assert texts(output) == [f"ToolError: the tool failed: ValueError: {item}" for item in seen]


@pytest.mark.parametrize(
    ("machine", "given", "threads"),
    [
        ("x86_64", {}, "1"),
        ("x86_64", {worker_process.BLAS_THREADS: "8"}, "8"),
        ("x86_64", {worker_process.ALL_THREADS: "8"}, ""),
        ("ARM64", {}, ""),
    ],
)
def test_numpy_has_one_thread_in_a_worker_except_on_arm_or_by_the_users_choice(
    monkeypatch: pytest.MonkeyPatch, machine: str, given: dict[str, str], threads: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    for variable in (worker_process.BLAS_THREADS, worker_process.ALL_THREADS):
        monkeypatch.delenv(variable, raising=False)
    for variable, number in given.items():
        monkeypatch.setenv(variable, number)
    assert worker_process._environment().get(worker_process.BLAS_THREADS, "") == threads


@pytest.mark.system
async def test_one_that_holds_the_interpreter_is_killed(make: Make, ask: Any) -> None:
    runner = make(silence_s=2.0)
    assert texts(await ask(runner, [{"fault": "hold"}])) == [
        "ToolError: faulty ended its worker process: no sign of life for 2 s"
    ]
    assert texts(await ask(runner, numbers(1))) == ["number 1"]


@pytest.mark.system
@pytest.mark.parametrize("fault", ["closes", "reuses"])
async def test_one_that_closes_descriptors_costs_its_call_and_no_silence(make: Make, ask: Any, fault: str) -> None:
    """A call that closes the worker's descriptors fails without a wait. Otherwise the worker would be silent until the
    limit, which is longer here than the test may take."""
    runner = make(silence_s=3600.0, timeout_s=3600.0)
    async with asyncio.timeout(300):
        assert texts(await ask(runner, [{"fault": fault}])) == [
            "ToolError: faulty ended its worker process: exit code 71"
        ]
        assert texts(await ask(runner, numbers(1))) == ["number 1"]


@pytest.mark.system
async def test_a_process_that_dies_by_chance_costs_nobody_and_who_asks_the_same_gets_the_same_verdict(
    make: Make, ask: Any, tmp_path: Path
) -> None:
    runner, marks, others = make(), tmp_path / "marks", tmp_path / "others"
    marks.mkdir()
    others.mkdir()
    output = await ask(runner, [{"fault": "exit_once", "marks": str(others)}, *numbers(1, 2)])
    assert texts(output) == ["number 0", "number 1", "number 2"]
    assert len(list(others.iterdir())) == 2
    output = await ask(runner, [{"fault": "marked_exit", "marks": str(marks)}] * 5)
    assert texts(output) == ["ToolError: faulty ended its worker process: exit code 3"] * 5
    assert len(list(marks.iterdir())) == 2


@pytest.mark.system
async def test_a_process_that_takes_too_much_memory_is_killed(
    make: Make, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "TICK_S", 0.02)
    runner = make(process_bytes=400_000_000)
    (leak,) = await ask(runner, [{"fault": "leak"}])
    assert str(leak).startswith("faulty ended its worker process: 0.")
    assert str(leak).endswith(" GB of memory, above the limit of 0.4 GB")
    assert texts(await ask(runner, numbers(1))) == ["number 1"]


@pytest.mark.system
async def test_a_tool_that_ends_its_process_when_it_is_loaded_is_refused(make: Make, ask: Any, folder: Path) -> None:
    runner = make()
    assert texts(await ask(runner, [{}], "unloadable")) == [
        "ToolError: unloadable ended its worker process: exit code 5"
    ]
    refused = "unloadable ended its worker process: exit code 5; the tool is no longer run"
    assert texts(await ask(runner, [{}], "unloadable")) == [f"ToolError: {refused}"]
    assert (folder / "loads").read_text() == "xx"
    assert runner.notices == [refused]


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_weights_that_never_load_cost_their_tool_alone_and_only_once(
    make: Make, ask: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make(load_s=1.5)
    rows: list[tuple[str, ...]] = []
    monkeypatch.setattr(supervisor, "TOLD_S", 0.0)
    # The interval is shorter than the start of any process, so that the start is observed.
    monkeypatch.setattr(supervisor, "TICK_S", 0.005)
    with loading_shown_by(lambda what: rows.append(tuple(what))):
        missing, others = await asyncio.gather(ask(runner, [{}, {}], "hanging"), ask(runner, numbers(1, 2)))
        output = await ask(runner, [{}], "hanging")
        runner.close()
    text = "hanging could not be loaded within 1.5 s (--max-load-seconds sets the limit)"
    assert {type(item) for item in missing} == {ToolError}
    assert all(str(entry).startswith(text) for entry in missing)
    assert texts(others) == ["number 1", "number 2"]
    refused = f"{text}; the tool is no longer run"
    assert texts(output) == [f"ToolError: {refused}"]
    assert runner.notices == [refused]
    assert refused in caplog.messages
    assert ("the process of the tools",) in rows
    assert ("hanging",) in rows
    assert rows[-1] == ()


@pytest.mark.system
async def test_a_question_whose_time_is_up_goes_on_and_what_it_asked_is_ended(
    make: Make, ask: Any, fakes: Any, store: ImageStore
) -> None:
    runner, tool = make(threads=1, grace_s=0.1), load("tools", "faulty")
    # The first run of a tool is not charged.
    await ask(runner, numbers(1))
    spent = CallTime(limit_s=0.1)
    with pytest.raises(ToolError, match="did not answer within the question's time") as caught:
        await runner.call(tool, tool.parse({"fault": "sleep"}), fakes.refs(store, 1), 0, spent)
    assert caught.value.fault is Fault.TIMEOUT
    assert spent.busy > 0
    assert texts(await ask(runner, numbers(2))) == ["number 2"]


@pytest.mark.system
async def test_waiting_is_not_charged(make: Make, fakes: Any, store: ImageStore) -> None:
    runner, tool, spent = make(), load("tools", "faulty"), CallTime(limit_s=60.0)
    # This call includes the start of the process, the import and the first run.
    await runner.call(tool, tool.parse({}), fakes.refs(store, 1), 0, spent)
    assert spent.busy == 0
    await runner.call(tool, tool.parse({"number": 1}), fakes.refs(store, 1), 0, spent)
    assert spent.busy > 0


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_a_closed_runner_answers_nobody_and_leaves_no_process(make: Make, ask: Any, tmp_path: Path) -> None:
    runner = make()
    marks = tmp_path / "marks"
    marks.mkdir()
    waits = asyncio.ensure_future(ask(runner, [{"fault": "mark", "marks": str(marks)}, {"fault": "sleep"}]))
    while not list(marks.iterdir()):
        await asyncio.sleep(0.01)
    (supervisor,) = runner.executor._loops.values()
    assert supervisor._worker is not None
    pid = supervisor._worker.process._process.pid
    runner.close()
    assert texts(await waits)[1] == "Outage: the tool service is closed"
    assert texts(await ask(runner, numbers(1))) == ["Outage: the tool service is closed"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_a_worker_ignores_the_signals_of_a_terminal(make: Make, ask: Any) -> None:
    runner = make()
    assert texts(await ask(runner, numbers(1))) == ["number 1"]
    executor: Any = runner.executor
    (supervisor,) = executor._loops.values()
    assert supervisor._worker is not None
    process = supervisor._worker.process._process
    for number in (signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
    assert texts(await ask(runner, numbers(2))) == ["number 2"]
    assert supervisor._worker.process._process is process


@pytest.mark.system
@pytest.mark.usefixtures("started_workers")
async def test_a_worker_that_does_not_start_is_an_outage(make: Make, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = make()
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    text = "Outage: the worker process of the tools does not start: exit code 1"
    assert texts(await ask(runner, numbers(1, 2))) == [text] * 2
    assert texts(await ask(runner, numbers(3))) == [text]


async def test_a_tool_without_a_file_is_refused(make: Make, fakes: Any, store: ImageStore) -> None:
    tool = fakes.counter(fakes.CountingBackend(), name="crop")
    with pytest.raises(UsageError, match="crop is not a file of tools/"):
        await make().call(tool, fakes.NumberArgs(), fakes.refs(store, 1))


@pytest.mark.system
def test_each_event_loop_has_a_worker(make: Make, ask: Any) -> None:
    runner = make()
    for number in (1, 2):
        assert texts(asyncio.run(ask(runner, numbers(number)))) == [f"number {number}"]


PYTHON = ("sys_exit", "memory", "recursion", "interrupt")


@pytest.mark.system
@pytest.mark.parametrize(
    "kinds",
    [
        ("sleep", "os_exit", *PYTHON * 2),
        pytest.param((*("sleep", "hold", "os_exit", "segfault") * 4, *PYTHON * 2), marks=pytest.mark.slow),
    ],
    ids=["short", "long"],
)
@pytest.mark.usefixtures("hurried")
async def test_sixty_four_in_flight_with_faults_at_random(make: Make, ask: Any, kinds: tuple[str, ...]) -> None:
    faults = [*kinds, *["none"] * (64 - len(kinds))]
    random.Random(11).shuffle(faults)
    values = [{"fault": fault, "number": number} for number, fault in enumerate(faults)]
    runner = make(threads=4, timeout_s=60.0, silence_s=10.0)
    async with asyncio.timeout(300):
        output = await ask(runner, values)
    for number, (fault, item) in enumerate(zip(faults, output, strict=True)):
        if fault == "none":
            assert texts([item]) == [f"number {number}"]
        else:
            assert isinstance(item, ToolError), fault


WITH_A_FAULT = """
import asyncio, sys, time
from pathlib import Path
import numpy as np
from hybrid.core.errors import HybridError
from hybrid.core.images import ImageStore
from hybrid.plugins.discovery import add_search_path
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ServiceOptions, CachedTools
from hybrid.core.types import ImageRef
add_search_path([Path(sys.argv[1])], "--path")
store = ImageStore(Path(sys.argv[2]))
tool = load("tools", "faulty")
refs = [ImageRef("img:1", store.put_pixels(np.zeros((8, 8, 3), np.uint8)))]
"""


@pytest.mark.system
def test_a_tool_that_never_returns_does_not_keep_a_program_without_a_worker_alive(folder: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    script = WITH_A_FAULT + textwrap.dedent(f"""
        service = CachedTools(store, FindingCache(None, store), ServiceOptions("classical", timeout_s=0.5))
        try:
            asyncio.run(service.call(tool, tool.parse({{"fault": "marked_sleep", "marks": {str(marks)!r}}}), refs))
        except HybridError as error:
            print(error)
        while not list(Path({str(marks)!r}).iterdir()):
            time.sleep(0.01)
        service.close()
        """)
    result = subprocess.run(
        [sys.executable, "-c", script, str(folder), str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout, result.stderr) == (0, "faulty did not answer within 0.5 s\n", "")
    assert len(list(marks.iterdir())) == 1


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="other systems end a worker that holds the interpreter later")
@pytest.mark.parametrize("fault", ["sleep", "hold"])
def test_a_worker_ends_with_the_run(folder: Path, tmp_path: Path, fault: str) -> None:
    script = WITH_A_FAULT + textwrap.dedent(f"""
        async def main():
            runner = CachedTools(store, FindingCache(None, store), ServiceOptions("classical", isolated=True))
            await runner.call(tool, tool.parse({{}}), refs)
            (supervisor,) = runner.executor._loops.values()
            hangs = asyncio.create_task(runner.call(tool, tool.parse({{"fault": "{fault}"}}), refs))
            while not any(job.start.stage == "cpu" for job in supervisor._worker.jobs.values()):
                await asyncio.sleep(0.01)
            print(supervisor._worker.process._process.pid, flush=True)
            await hangs
        asyncio.run(main())
        """)
    with running_process(
        [sys.executable, "-c", script, str(folder), str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as run:
        worker = int(run.stdout.readline())
        result = os.pidfd_open(worker)
        # An interrupt from the terminal is for the run to handle.
        os.kill(worker, signal.SIGINT)
        run.kill()
    try:
        assert _over(result)
    finally:
        os.close(result)


def _over(process: int) -> bool:
    """Return whether a process ends within a minute."""
    import select

    return bool(select.select([process], [], [], 60)[0])
