"""`hybrid tools up`: one server loads networks for all runs; tested with real processes.

The tools here have weights in a folder and write a line for each load, so that loads are counted where they happen.
"""

import asyncio
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import tools
from hybrid.config import ServiceOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Finding
from hybrid.log.codec import codec
from hybrid.plugins.registry import load
from hybrid.serving import sources, supervisor
from hybrid.serving.cache import FindingCache
from hybrid.serving.jobs import Worker, WorkerEnd, judge
from hybrid.serving.protocol import DescribeRequest, LoadRequest, ServerFacts, Setup, line
from hybrid.serving.service import CachedTools
from hybrid.serving.sources import code_of
from hybrid.serving.tool_server import address
from hybrid.serving.tool_server.address import ServerUnusable, connect, listening, listening_process, socket_path
from hybrid.serving.tool_server.attached import ServerConnection
from hybrid.serving.tool_server.facts import mismatch, versions
from tests.time_limits import END_S
from tests.tool_source import tool_source

pytestmark = pytest.mark.system

SETUP = """self.version = "1+" + (Path(weights) / "model.safetensors").read_text()
with (Path(weights).parent / "loads").open("a") as file:
    file.write(f"{os.getpid()}\\n")
"""
RUN = """found = []
for request in requests:
    marks = Path(request.args.marks)
    if request.args.fault and not marks.exists():
        marks.touch()
        os._exit(3) if request.args.fault == "exit" else time.sleep(10000)
    mean = float(request.images[0].mean()) / 3
    data = {"number": request.args.number, "mean": mean, "seed": request.seed}
    found.append(Evidence(f"number {request.args.number}", data, 0.1 + 0.2, (Picture(255 - request.images[0]),)))
return found"""
NETS = {
    name: tool_source(
        name,
        RUN,
        args='number: int = 0\nfault: str = ""\nmarks: str = ""',
        head="import os\nimport time\nfrom pathlib import Path",
        setup=SETUP,
        backend='"learned", "1", Backend, "Is for tests.", batch=4, weights="made/net"',
    )
    for name in ("net_one", "net_two")
}


@dataclass(frozen=True)
class Place:
    """A cache folder, tools and their weights."""

    home: Path
    path: Path
    weights: Path

    def words(self, *names: str) -> list[str]:
        """Return the options of `hybrid tools up` for some tools."""
        return [
            *("--tools", ",".join(names), "--path", str(self.path), "--device", "cpu"),
            *(word for name in names for word in ("--weights", f"{name}={self.weights}")),
        ]

    def loads(self) -> list[int]:
        """Return the process id of each load, in order."""
        file = self.weights.parent / "loads"
        return [int(text) for text in file.read_text().split()] if file.exists() else []


def hybrid(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a separate process; return the finished process."""
    command = [sys.executable, "-m", "hybrid", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def facts_now() -> ServerFacts:
    """Return the facts that the running server reports about itself."""
    connection = connect()
    assert connection is not None
    connection[0].close()
    return connection[1]


def counts() -> dict[str, tuple[int, int, int]]:
    """Return loads, hits and calls by tool."""
    return {name: (tool.loads, tool.hits, tool.requests) for name, tool in facts_now().tools.items()}


def status() -> dict[str, Any]:
    return dict(json.loads(hybrid("tools", "status", "--json").stdout))


def place_in(folder: Path) -> Place:
    place = Place(folder / "home", folder / "own" / "tools", folder / "net")
    place.weights.mkdir(parents=True)
    (place.weights / "model.safetensors").write_text("first")
    place.path.mkdir(parents=True)
    for name, text in NETS.items():
        (place.path / f"{name}.py").write_text(text)
    return place


def end_server() -> None:
    """End the server of this cache folder, if one is left."""
    if address.listening_process() is not None:
        hybrid("tools", "down")


@contextmanager
def tools_of(place: Place) -> Iterator[None]:
    """Use the tools and the cache folder of a server's location in this process, until the context ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(place.home))
        tools.__path__.append(str(place.path))
        importlib.invalidate_caches()
        yield
        tools.__path__.remove(str(place.path))
        code_of.cache_clear()
        for name in NETS:
            sys.modules.pop(f"tools.{name}", None)
            vars(tools).pop(name, None)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """The tools, and an empty cache folder."""
    folders = place_in(tmp_path)
    with tools_of(folders):
        yield folders
        end_server()


@pytest.fixture
def server(place: Place) -> Place:
    """A server with both tools."""
    started = hybrid("tools", "up", *place.words(*NETS))
    assert started.returncode == 0, started
    return place


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The location of a server shared by tests that do not change it."""
    folders = place_in(tmp_path_factory.mktemp("shared"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folders.home))
        started = hybrid("tools", "up", *folders.words(*NETS))
        assert started.returncode == 0, started
    yield folders
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folders.home))
        end_server()


@pytest.fixture
def shared(shared_place: Place) -> Iterator[Place]:
    """The shared server, for this test."""
    with tools_of(shared_place):
        yield shared_place


Make = Callable[..., CachedTools]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make tool services like those of runs; outputs are cached only if `keeps`."""
    services: list[CachedTools] = []

    def service(place: Place, *, keeps: bool = False, **options: Any) -> CachedTools:
        store = ImageStore(place.home / "images")
        weights = dict.fromkeys(NETS, str(place.weights))
        selected = ServiceOptions(**{"weights": weights, "isolated": True, "threads": 2, "silence_s": 60.0, **options})
        services.append(CachedTools(store, FindingCache(place.home / "findings" if keeps else None, store), selected))
        return services[-1]

    yield service
    for item in services:
        item.close()


async def ask(service: CachedTools, fakes: Any, rows: Sequence[dict[str, Any]], name: str = "net_one") -> list[Finding]:
    """Call the tool with all rows of arguments at the same time; return the outputs."""
    tool, refs = load("tools", name), fakes.refs(service.store, 1)
    return list(await asyncio.gather(*(service.call(tool, tool.parse(args), refs, 7) for args in rows)))


def numbers(*of: int) -> list[dict[str, Any]]:
    return [{"number": number} for number in of]


def as_bytes(findings: Sequence[Finding]) -> list[bytes]:
    return [codec(Finding).dump_json(finding) for finding in findings]


async def test_runs_share_networks_that_were_loaded_once(server: Place, make: Make, fakes: Any) -> None:
    assert counts() == {"net_one": (1, 0, 0), "net_two": (1, 0, 0)}
    (process, _) = server.loads()
    of_server = []
    # Test a run, and Python code that runs tools in its own process.
    for isolated in (True, False):
        service = make(server, isolated=isolated)
        findings = [*await ask(service, fakes, numbers(1, 2, 3)), *await ask(service, fakes, numbers(4), "net_two")]
        of_server.append(as_bytes(findings))
        assert (service.served, service.notices) == ({"net_one", "net_two"}, [])
    assert server.loads() == [process, process]
    facts = status()
    used = {name: (tool["loads"], tool["calls"]) for name, tool in facts["tools"].items()}
    assert used == {"net_one": (1, 6), "net_two": (1, 2)}
    # The three calls of a run may be sent as one batch or as several.
    assert 2 <= facts["tools"]["net_one"]["hits"] <= 6
    assert facts["tools"]["net_two"]["hits"] == 2
    assert facts["clients"] == 2
    assert (hybrid("tools", "down").returncode, hybrid("tools", "status").returncode) == (0, 3)
    assert not socket_path().exists()
    service = make(server)
    alone = [*await ask(service, fakes, numbers(1, 2, 3)), *await ask(service, fakes, numbers(4), "net_two")]
    assert (service.served, len(server.loads())) == (frozenset(), 4)
    assert of_server == [as_bytes(alone)] * 2


async def test_what_the_server_makes_is_cached_only_for_a_run_that_caches(
    shared: Place, make: Make, fakes: Any
) -> None:
    await ask(make(shared), fakes, numbers(1))
    assert not list(shared.home.glob("findings/*/*.json"))
    service = make(shared, keeps=True)
    (finding,) = await ask(service, fakes, numbers(1))
    assert len(list(shared.home.glob("findings/*/*.json"))) == 1
    assert await ask(service, fakes, numbers(1)) == [finding]
    assert counts()["net_one"][2] == 2


def test_a_path_too_long_for_a_socket_is_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / ("long" * 30)))
    with listening():
        assert socket_path().is_socket()
        assert listening_process() == os.getpid()
    assert listening_process() is None


async def test_only_this_user_can_connect(server: Place) -> None:
    path = socket_path()
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    connection = connect()
    assert connection is not None
    connection[0].close()
    if os.getuid() != 0:
        return
    # Another user, who can reach the socket, is sent nothing.
    path.parent.chmod(0o755)
    path.chmod(0o666)
    code = f"""import os, socket
os.setgid(65534)
os.setuid(65534)
sock = socket.socket(socket.AF_UNIX)
sock.connect({path.name!r})
print(sock.recv(100))"""
    words = [sys.executable, "-c", code]
    other = subprocess.run(words, cwd=path.parent, capture_output=True, text=True, check=False)
    assert other.stdout == "b''\n", other
    # This user does not trust a folder of another user.
    os.chown(path.parent, 65534, -1)
    with pytest.raises(ServerUnusable, match="belongs to another user"):
        connect()
    os.chown(path.parent, 0, -1)


# Differences between server and run, and the run's message about each.
DIFFERENCES = {
    "dtype": "it computes in another precision (there auto, here bfloat16): give --tool-dtype auto",
    "variable": "it has another environment (there nothing, here HIP_VISIBLE_DEVICES=3): `hybrid tools down`, then",
    "versions": "it runs other code (there nothing, here torch-0.0.1): `hybrid tools down`, then `hybrid tools up`",
    "other weights": "/net, here ",
    "code": "it runs different code of this tool (",
    "changed weights": "it has loaded weights that have changed (",
}


def change(what: str, server: Place, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Create this difference between the server and a new run; return options of the run."""
    if what == "variable":
        patch.setenv("HIP_VISIBLE_DEVICES", "3")
    elif what == "other weights":
        other = Path(shutil.copytree(server.weights, server.weights.with_name("other")))
        return {"weights": dict.fromkeys(NETS, str(other))}
    elif what == "changed weights":
        (server.weights / "model.safetensors").write_text("other")
    elif what == "code":
        file = server.path / "net_one.py"
        file.write_text(file.read_text() + "\n# Changed.\n")
        # Forget the cached hash, as in a run that starts now.
        code_of.cache_clear()
        sources._installed.cache_clear()
    elif what == "versions":
        site = server.home.parent / "site-packages"
        (site / "torch-0.0.1.dist-info").mkdir(parents=True)
        patch.syspath_prepend(str(site))
    return {"dtype": "bfloat16"} if what == "dtype" else {}


async def test_a_server_that_differs_is_not_used_which_is_said_once(server: Place, make: Make, fakes: Any) -> None:
    for number, (what, message) in enumerate(DIFFERENCES.items(), 1):
        with pytest.MonkeyPatch.context() as patch:
            options = change(what, server, patch)
            versions.cache_clear()
            service = make(server, **options)
            findings = [*await ask(service, fakes, numbers(1, 2)), *await ask(service, fakes, numbers(3))]
        assert [finding.text for finding in findings] == ["number 1", "number 2", "number 3"], what
        (notice,) = service.notices
        assert message in notice
        assert (service.served, len(server.loads())) == (frozenset(), 2 + number)
        if what == "code":
            (server.path / "net_one.py").write_text(NETS["net_one"])
            code_of.cache_clear()
            sources._installed.cache_clear()
    versions.cache_clear()
    assert counts()["net_one"] == (1, 0, 0)


async def test_a_tool_that_the_server_lacks_runs_in_the_run(place: Place, make: Make, fakes: Any) -> None:
    assert hybrid("tools", "up", *place.words("net_one")).returncode == 0
    service = make(place)
    await ask(service, fakes, numbers(1))
    await ask(service, fakes, numbers(2), "net_two")
    (notice,) = service.notices
    assert notice.startswith(
        "the tool server is not used for net_two, because it has not loaded it: `hybrid tools down`, then"
    )
    assert notice.endswith(" `hybrid tools up --tools net_one,net_two`")
    assert (service.served, len(place.loads())) == ({"net_one"}, 2)


def test_devices_are_compared_by_what_they_mean(shared: Place) -> None:
    facts = facts_now()
    tool = load("tools", "net_one")
    options = ServiceOptions(weights={"net_one": str(shared.weights)}, device="cpu")

    def reason(device: str, server_device: str, auto: str) -> str | None:
        return mismatch(replace(facts, device=server_device, auto=auto), tool, replace(options, device=device))

    assert reason("cpu", "cpu", "") is None
    assert reason("auto", "cpu", "cpu") is None
    assert reason("cpu", "auto", "cpu") is None
    assert reason("cuda", "auto", "cuda:0,cuda:1") is None
    assert "give --device cuda:0" in str(reason("cpu", "cuda:0", "cuda:0"))
    assert "there cuda:0, here cuda:0,cuda:1" in str(reason("cuda", "cuda:0", "cuda:0,cuda:1"))
    # If the meaning of `auto` is unknown, the devices cannot match.
    assert reason("auto", "cpu", "") is not None
    unchecked = replace(facts, unchecked=True)
    assert "did not check its weights" in str(mismatch(unchecked, tool, options))
    assert mismatch(unchecked, tool, replace(options, unchecked=True)) is None


@pytest.mark.parametrize("fault", ["exit", "sleep"])
async def test_a_server_that_crashes_or_hangs_costs_a_reload_and_no_answer(
    server: Place, make: Make, fakes: Any, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    service, marks = make(server), server.home / "marks"

    def judge_late(worker: Worker, options: ServiceOptions, passed_s: float, now: float) -> WorkerEnd | None:
        """Judge a call that sleeps in the server as late."""
        sleeps = fault == "sleep" and marks.exists() and isinstance(worker.process, ServerConnection)
        return judge(worker, options, passed_s, now + options.timeout_s * sleeps)

    monkeypatch.setattr(supervisor, "judge", judge_late)
    rows = [*numbers(1, 2, 3, 4), {"number": 5, "fault": fault, "marks": str(marks)}, *numbers(6, 7)]
    findings = await ask(service, fakes, rows)
    assert [finding.text for finding in findings] == [f"number {number}" for number in range(1, 8)]
    assert marks.exists()
    assert [finding.text for finding in await ask(service, fakes, numbers(8), "net_two")] == ["number 8"]
    (notice,) = service.notices
    assert notice.startswith("the tool server was lost (")
    # Both tools were loaded by the server, then by the run.
    *of_server, run_load, next_run_load = server.loads()
    assert (len(set(of_server)), run_load) == (1, next_run_load)
    assert run_load not in of_server
    if fault == "exit":
        assert hybrid("tools", "status").returncode == 3
        assert "its worker process has ended: exit code 3" in address.log_path().read_text()
        assert not socket_path().exists()


async def test_down_takes_a_server_from_a_run_that_uses_it(server: Place, make: Make, fakes: Any) -> None:
    service, marks = make(server), server.home / "marks"
    pending = asyncio.ensure_future(ask(service, fakes, [{"number": 1, "fault": "sleep", "marks": str(marks)}]))
    while not marks.exists():
        await asyncio.sleep(0.01)
    down = await asyncio.create_subprocess_exec(sys.executable, "-m", "hybrid", "tools", "down")
    assert await down.wait() == 0
    assert [finding.text for finding in await pending] == ["number 1"]
    assert service.notices == ["the tool server was lost (it has ended); its requests run again without it"]
    assert not socket_path().exists()


async def test_a_killed_server_leaves_a_socket_that_blocks_nobody(server: Place, make: Make, fakes: Any) -> None:
    (process, _) = server.loads()
    os.kill(facts_now().process, signal.SIGKILL)
    while Path(f"/proc/{process}").exists():
        await asyncio.sleep(0.01)
    assert socket_path().exists()
    service = make(server)
    assert [finding.text for finding in await ask(service, fakes, numbers(1, 2))] == ["number 1", "number 2"]
    (notice,) = service.notices
    assert "it has ended unexpectedly (log:" in notice
    assert "it has ended unexpectedly" in status()["reason"]
    assert hybrid("tools", "up", *server.words("net_one")).returncode == 0
    assert list(facts_now().tools) == ["net_one"]
    os.kill(facts_now().process, signal.SIGKILL)
    while address.listening_process() is not None:
        await asyncio.sleep(0.01)
    assert "removed the socket" in hybrid("tools", "down").stdout
    assert not socket_path().exists()


async def test_a_server_that_does_not_answer_is_left_and_ended(
    server: Place, make: Make, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = facts_now().process
    os.kill(process, signal.SIGSTOP)
    monkeypatch.setattr(address.connect, "__defaults__", (0.2,))
    service = make(server)
    assert [finding.text for finding in await ask(service, fakes, numbers(1))] == ["number 1"]
    (notice,) = service.notices
    assert "does not answer within 0.2 s; `hybrid tools down` ends it" in notice
    os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize("sent", ["garbage", "no setup", "describe", "unknown tool"])
def test_a_client_that_sends_anything_else_is_disconnected(shared: Place, sent: str) -> None:
    setup = Setup((), {}, shared.home / "images", None, ServiceOptions())
    messages = {
        "garbage": b"\x00nonsense\n",
        "no setup": line(LoadRequest(1, "net_one")),
        "describe": line(setup) + line(DescribeRequest(1, "net_one")),
        "unknown tool": line(setup) + line(LoadRequest(1, "net_three")),
    }
    connection = connect()
    assert connection is not None
    with closing(connection[0]) as sock:
        sock.settimeout(END_S)
        sock.sendall(messages[sent])
        received = b""
        while data := sock.recv(1 << 16):
            received += data
    assert b"Response" not in received
    assert set(facts_now().tools) == set(NETS)


def test_a_second_server_and_a_failed_load_are_named(place: Place) -> None:
    (place.weights.parent / "bad").mkdir()
    words = place.words(*NETS)
    words[words.index(f"net_two={place.weights}")] = f"net_two={place.weights.parent / 'bad'}"
    first = hybrid("tools", "up", *words)
    assert first.returncode == 3
    assert "net_two: the tool failed: FileNotFoundError" in first.stderr
    assert list(facts_now().failed) == ["net_two"]
    second = hybrid("tools", "up", *place.words("net_one"))
    assert (second.returncode, "a tool server is already running" in second.stderr) == (2, True)
    assert list(facts_now().tools) == ["net_one"]


def test_a_server_ends_by_itself_without_clients(place: Place) -> None:
    words = ("tools", "up", *place.words("net_one"), "--idle", "0.001", "--foreground")
    process = hybrid(*words)
    assert (process.returncode, "ends: no connection for 0.001 minutes" in process.stderr) == (0, True)
    assert not socket_path().exists()


def test_one_lock_holds_one_socket(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as listener:
        assert Path(listener.getsockname()).name == socket_path().name
        with pytest.raises(Exception, match="a tool server is already running"), listening():
            pass
        assert socket_path().exists()
    assert not socket_path().exists()
    # The path of a test's folder may be too long for a socket.
    monkeypatch.chdir(socket_path().parent)
    with socket.socket(socket.AF_UNIX) as orphan:
        orphan.bind(socket_path().name)
    with listening():
        pass
