"""Fixtures for all packages: a separate home for each test, the fakes, and the path of the published data."""

import functools
import gc
import importlib
import inspect
import os
import re
import shutil
import signal
import ssl
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from hybrid.benchmarks.base import Benchmark
from hybrid.config import ServiceOptions
from hybrid.core import secrets
from hybrid.core.images import ImageStore
from hybrid.models.circuit import Circuit, CircuitLimits
from hybrid.models.failures import Backoff
from hybrid.plugins.registry import load
from hybrid.running import generated
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from tests.time_limits import limit_coroutine, limit_processes

# Set before torch loads: with a thread pool per core in the test process, everything takes a quarter longer.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# On Linux, a file system in memory: a small file is created in a fortieth of the time that a disk needs.
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own there
# Keep the tests' folders in memory only if this much space is free. The default selection uses a tenth of a GB, and all
# tests use 0.6 GB.
ROOM_BYTES = 4 * 2**30


def _folders_in_memory() -> None:
    """Keep the tests' folders in memory if enough memory is free and `TMPDIR` is not set."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    system = os.statvfs(MEMORY)
    if system.f_bavail * system.f_frsize >= ROOM_BYTES and not system.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


_folders_in_memory()

# No deadline, because the time of an example depends on the machine's load. Examples are the same in each run, so that
# a failure is reproducible; all examples of a test share its temporary folder.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("house")
# For `bench.mutants`, which only needs to know whether a test fails: a failing example is not simplified.
settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate])

# A failed assert in a helper shows both of its sides, like one in a test.
pytest.register_assert_rewrite("tests.recomputed")

# Under `nohup` SIGHUP is ignored, and processes that tests start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Audit events of Python that start a process.
STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
# Processes that the running test started although it is not marked `system` or `slow`.
UNMARKED: list[str] = []
# Non-empty while the running test may not start a process.
WATCHED: list[bool] = []

# The collection of tests creates a million objects that stay alive. Scanning them for garbage again and again would
# cost as much time as creating them.
gc.disable()


def _importing() -> bool:
    """Return whether an import is in progress. Imports may start processes: torch calls `ldconfig` to find its
    files."""
    frame = sys._getframe()
    while (frame := frame.f_back) is not None:
        if frame.f_code.co_name == "_find_and_load":
            return True
    return False


def _see(event: str, args: tuple[object, ...]) -> None:
    # `WATCHED` is tested first: when the interpreter exits, both names are None, and `in STARTS` would raise an error.
    if WATCHED and event in STARTS:
        program = str(args[0]) if args else ""
        # The package and its libraries call these programs once per process, so the first test that needs one would be
        # blamed.
        if program not in ("git", "uname") and not _importing():
            UNMARKED.append(f"{event} {program}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip a file whose tests are all left out, unless the command line names it or selects other tests with `-m`.

    Such a file is not imported, as its libraries take up to 3 s of CPU time.
    """
    selection = str(config.getoption("markexpr"))
    left_out = "|".join(re.findall(r"\bnot (\w+)", selection))
    if collection_path.suffix != ".py" or selection not in config.getini("addopts") or not left_out:
        return None
    marked = re.compile(rf"^pytestmark = .*\bpytest\.mark\.(?:{left_out})\b", re.MULTILINE)
    return marked.search(collection_path.read_text("utf-8")) is not None or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limit async tests, and mark tests that use certain fixtures as `system`, before `-m` selects tests."""
    for item in items:
        # An async test that hangs fails at the line that waits.
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = limit_coroutine(item.obj)
        # Fixtures that train a model, build the site, or start a browser or a server.
        if not {"browser", "built", "tiny_vlm", "web"}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("system")


def pytest_collection_finish() -> None:
    """Collect garbage again, except objects made during the collection of tests; begin to watch for started
    processes."""
    gc.enable()
    gc.freeze()
    # The hook is added only now, because Python calls it at every import.
    sys.addaudithook(_see)


class ByFileAndPage(LoadFileScheduling):
    """Schedules each test file in one process, but each page of the documentation in any free one; starts with long
    files.

    One page takes longer than most files, so a process with several pages would still run when all others have
    finished. Files of a folder use the same libraries and fixtures, so a process takes a file of a folder that another
    process has begun only if no other file is left.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if "::test_every_runnable_block_of_a_page_runs[" in nodeid else super()._split_scope(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        elsewhere = {
            _folder_of(scope) for other, units in self.assigned_work.items() if other is not node for scope in units
        }
        own = {_folder_of(scope) for scope in self.assigned_work.get(node, ())}

        def rank(scope: str) -> tuple[bool, bool, int]:
            return "::" in scope, _folder_of(scope) not in elsewhere - own, len(self.workqueue[scope])

        self.workqueue.move_to_end(max(self.workqueue, key=rank), last=False)
        super()._assign_work_unit(node)


def _folder_of(scope: str) -> str:
    return scope.partition("::")[0].rpartition("/")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFileAndPage | None:
    """Return the scheduler that keeps the tests of a file in one process."""
    return ByFileAndPage(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a test and its fixtures, except fixtures that declare that they start processes."""
    if not any(item.get_closest_marker(name) for name in ("system", "slow", "gpu")):
        WATCHED.append(True)
    try:
        return (yield)
    finally:
        WATCHED.clear()
        UNMARKED.clear()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """Fail a test that started a process but is not marked as one that may."""
    yield
    if UNMARKED:
        pytest.fail(f"the test starts a process ({UNMARKED[0]}): mark it `system`", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def power_stays_on() -> Iterator[None]:
    """Replace fsync by a function without effect. Only a power cut would lose data without fsync, and no test simulates
    one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def processes_end() -> Iterator[None]:
    """Limit every wait for a process that has no timeout of its own."""
    with pytest.MonkeyPatch.context() as patch:
        limit_processes(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once() -> Iterator[None]:
    """Share one TLS context among all clients of a process: loading certificates takes 0.05 s of CPU per client."""
    create = ssl.create_default_context
    contexts: dict[tuple[Any, ...], ssl.SSLContext] = {}

    def shared_context(*args: Any, **options: Any) -> ssl.SSLContext:
        key = (args, *sorted(options.items()), os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        if key not in contexts:
            contexts[key] = create(*args, **options)
        return contexts[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", shared_context)
        yield


@pytest.fixture(scope="session")
def device() -> str:
    """Device on which tests marked `gpu` run networks: `$HYBRID_TEST_DEVICE`, else `cuda`."""
    import torch

    value = os.environ.get("HYBRID_TEST_DEVICE") or "cuda"
    if value.startswith("cuda") and not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device: HYBRID_TEST_DEVICE=cpu uv run pytest -m gpu runs what a CPU can")
    return value


@pytest.fixture(scope="session")
def card(device: str) -> str:
    """Device for a test that only a CUDA device can decide; without one the test is skipped."""
    if not device.startswith("cuda"):
        pytest.skip(f"a CUDA device alone can show it: uv run pytest -m gpu (HYBRID_TEST_DEVICE is {device})")
    return device


DRAW = generated.generate
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of published BLINK items and predictions next to the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"the published data is not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for generated questions that all test processes share; read-only."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "drawings"


@pytest.fixture(scope="session")
def folders(drawings: Path) -> Callable[..., Path]:
    """Function that returns a folder with generated questions for every task of a benchmark, by default one per task;
    read-only."""

    def folder(name: str, per_task: int = 1) -> Path:
        benchmark = load("hybrid.benchmarks", name)
        return DRAW(benchmark, drawings, benchmark.card.sample_tasks, per_task, 0)

    return folder


@pytest.fixture(scope="session", autouse=True)
def home_of_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`$HYBRID_HOME` for fixtures of a module or a session, separate from the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_process() -> Iterator[None]:
    """Commands that a test runs in its own process read data in that process instead of a fork."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hybrid.running.forked.can_fork", lambda: False)
        yield


@pytest.fixture(scope="session", autouse=True)
def drawn_once(drawings: Path) -> Iterator[None]:
    """Questions of `--data sample` are generated once for all tests; each home gets a copy."""

    def copied(benchmark: Benchmark, root: Path, *request: Any) -> Path:
        if not type(benchmark).__module__.startswith("hybrid.benchmarks."):
            return DRAW(benchmark, root, *request)
        draw = DRAW(benchmark, drawings, *request)
        if not (root / draw.name).is_dir():
            shutil.copytree(draw, root / draw.name)
        return root / draw.name

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated, "generate", copied)
        yield


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """A store of images."""
    return ImageStore(tmp_path / "images")


@pytest.fixture
def service(tmp_path: Path, store: ImageStore) -> Iterator[CachedTools]:
    """The weight-free tools, in threads of this process, with a cache of tool outputs."""
    item = CachedTools(store, FindingCache(tmp_path / "findings", store), ServiceOptions("classical", threads=1))
    yield item
    item.close()


@pytest.fixture(autouse=True)
def hybrid_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty `$HYBRID_HOME`, so that tests share no tool outputs."""
    home = tmp_path / "hybrid-home"
    monkeypatch.setenv("HYBRID_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def large_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Function that returns a folder with a synthetic run of this many questions, and the run's home; read-only."""

    @functools.cache
    def write_large_run(count: int) -> Path:
        from bench._large_run import write_run

        folder = tmp_path_factory.mktemp("written")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HYBRID_HOME", str(folder / "home"))
            write_run(folder / "run", count)
        return folder

    return write_large_run


@pytest.fixture
def large_run(large_runs: Callable[[int], Path], hybrid_home: Path, tmp_path: Path) -> Callable[[int], Path]:
    """Function that copies a synthetic run of this many questions and its home, so that the test may damage both."""

    def copied(count: int) -> Path:
        shutil.copytree(large_runs(count) / "home", hybrid_home)
        return Path(shutil.copytree(large_runs(count) / "run", tmp_path / "run"))

    return copied


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models whose failed calls are retried without the pauses that a real server needs."""
    limits = CircuitLimits(pause_s=0.001, unmet_s=0.0)
    monkeypatch.setattr("hybrid.models.caller.Backoff", functools.partial(Backoff, base_s=0.001))
    monkeypatch.setattr("hybrid.models.caller.Circuit", lambda name, _: Circuit(name, limits))


@pytest.fixture(autouse=True)
def no_secret_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets that a test registers are redacted in that test only."""
    secrets._environment()
    monkeypatch.setattr(secrets, "_forms", secrets._forms)


@pytest.fixture(scope="session")
def fakes() -> Any:
    """The module `tests/fakes.py`: real implementations that are fed by a queue, and builders of small data."""
    return importlib.import_module("tests.fakes")


@pytest.fixture(scope="session")
def synthetic_runs() -> Any:
    """The module `tests/synthetic_runs.py`: runs on disk with seeded random answers."""
    return importlib.import_module("tests.synthetic_runs")


@pytest.fixture(scope="session")
def command_lines() -> Any:
    """The module `tests/command_lines.py`: the command lines of a document, and those that do not exist."""
    return importlib.import_module("tests.command_lines")


@pytest.fixture(scope="session")
def forbidden_words() -> Any:
    """The module `tests/forbidden_words.py`: words that no text for a model may contain."""
    return importlib.import_module("tests.forbidden_words")


@pytest.fixture(scope="session")
def servers() -> Any:
    """The module `tests/servers.py`: servers that are started as a user would start them."""
    return importlib.import_module("tests.servers")


@pytest.fixture(scope="session")
def hub_servers() -> Any:
    """The module `tests/hub_server.py`: a server that speaks the protocol of the Hugging Face hub."""
    return importlib.import_module("tests.hub_server")


@pytest.fixture
def hub(hub_servers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A hub server and an empty cache. Both are set in huggingface_hub itself, which reads the environment only at its
    import."""
    with hub_servers.serving() as server:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.partition("/{repo_id}")[2]
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{server.url}/{{repo_id}}{template}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
        yield server
