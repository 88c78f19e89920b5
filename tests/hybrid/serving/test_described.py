"""Tools outside of the project, imported only in a worker process: a failing tool costs only itself."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tools
from hybrid.config import ServiceOptions
from hybrid.config.command_options import PATH
from hybrid.core.errors import ToolError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import Fault
from hybrid.plugins import registry
from hybrid.plugins.discovery import add_search_path
from hybrid.plugins.registry import described_by, load
from hybrid.running.tools_in_use import ToolChoice, tools_in_use
from hybrid.serving import supervisor
from hybrid.serving.cache import FindingCache
from hybrid.serving.described import ProcessDescriber
from hybrid.serving.jobs import Worker, WorkerEnd, judge
from hybrid.serving.service import CachedTools
from hybrid.serving.sources import code_of
from hybrid.solving.solver import Solver
from tests.tool_source import tool_source

pytestmark = pytest.mark.system

SOUND = """
from hybrid.tool import (
    Args, BackendCard, Bin, Card, Evidence, KnownAnswer, Need, Picture, Provenance, CheckSeries, Tool,
)


class SoundArgs(Args):
    number: int
    word: str = "plain"


class Backend:
    def setup(self, device, weights):
        pass

    def run(self, requests):
        return [Evidence(f"{one.args.word} {one.args.number}", {}, 0.5) for one in requests]


known = Provenance("owner/name", "MIT", ("coco",), non_commercial=True)
bins = (Bin(0.5, 3, 4),)
need = Need("depth", lambda args: None)
CARD = BackendCard("classical", "7", Backend, "counts", None, (known,), bins, 2, 0.5, (need,), "package")
TOOL = Tool(
    Card("sound", "Counts.", "None.", (CARD,), (1, 3), (need,), "nothing"),
    SoundArgs,
    (KnownAnswer("one", lambda: None, CheckSeries("ones", 2)),),
)
"""
NEEDS = """def asked(args, findings):
    return {"number": args.number + len(findings["markers"])}


def needs():
    return Need("markers", lambda args: {}), Need("depth", lambda args: None), Need("sound", lambda args: None, asked)
"""
NEEDY = tool_source(
    "needy",
    'return [Evidence(", ".join(found.text for found in one.needs["sound"]), {}, 0.5) for one in requests]',
    args="number: int",
    head=NEEDS,
    backend='"classical", "1", Backend, "Asks others.", needs=needs()',
    images=(1, 3),
)
BROKEN = {
    "hangs": [
        """import time
time.sleep(10000)
""",
        "did not finish its import within 60 s",
    ],
    "holds": [
        """import ctypes
ctypes.PyDLL(None).sleep(10000)
""",
        "no sign of life for 60 s",
    ],
    "ends": [
        """import os
os._exit(4)
""",
        "ended its worker process: exit code 4",
    ],
    "crashes": [
        """import ctypes
ctypes.string_at(0)
""",
        "ended its worker process: signal SIGSEGV",
    ],
    "leaves": [
        """raise SystemExit(0)
""",
        "cannot be imported: SystemExit: 0",
    ],
    "raises": [
        """
1 / 0
""",
        "ZeroDivisionError: division by zero",
    ],
    "empty": ["", "must define TOOL"],
}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder with one tool."""
    monkeypatch.delenv(PATH.variable, raising=False)
    items = list(tools.__path__)
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "sound.py").write_text(SOUND)
    add_search_path([folder], "--path")
    yield folder
    tools.__path__[:] = items
    for name in ("sound", "needy", *BROKEN):
        sys.modules.pop(f"tools.{name}", None)
    importlib.invalidate_caches()


def describer() -> ProcessDescriber:
    return ProcessDescriber(ServiceOptions(import_s=60.0, silence_s=60.0))


def break_tools(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.py").write_text(BROKEN[name][0])
    importlib.invalidate_caches()


@pytest.mark.parametrize("name", BROKEN)
def test_an_import_that_goes_wrong_is_named_and_the_others_are_described(
    outside: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(worker: Worker, options: ServiceOptions, passed_s: float, now: float) -> WorkerEnd | None:
        """Judge immediately: a hanging process is late, and one that holds the interpreter is silent."""
        values = {job.start.tool for job in worker.jobs.values()}
        return judge(worker, options, passed_s + 60.0 * ("holds" in values), now + 60.0 * ("hangs" in values))

    monkeypatch.setattr(supervisor, "judge", judged)
    monkeypatch.setattr(supervisor, "TICK_S", 0.02)
    break_tools(outside, name)
    with described_by(describer):
        for _ in range(2):
            with pytest.raises(UsageError) as error:
                load("tools", name)
            assert f"{name}.py" in str(error.value)
            assert BROKEN[name][1] in str(error.value)
        assert load("tools", "sound").card.summary == "Counts."
    assert not {"tools.sound", f"tools.{name}"} & set(sys.modules), "nothing was imported here"


def test_a_description_is_the_whole_card(outside: Path) -> None:
    with described_by(describer):
        described = load("tools", "sound")
        assert load("tools", "crop") is load("tools", "crop", in_process=True), "the tools of the tree are trusted"
    real = load("tools", "sound")
    assert described.code == code_of(described) == code_of(real)
    facts = ("name", "summary", "limits", "images", "measured")
    assert [getattr(described.card, fact) for fact in facts] == [getattr(real.card, fact) for fact in facts]
    of_a_backend = ("name", "version", "summary", "weights", "provenances", "reliability", "batch")
    for backend, other in zip(described.card.backends, real.card.backends, strict=True):
        facts = (*of_a_backend, "learned_tolerance", "package")
        assert [getattr(backend, fact) for fact in facts] == [getattr(other, fact) for fact in facts]
        assert [need.tool for need in backend.needs] == [need.tool for need in other.needs] == ["depth"]
    assert [need.tool for need in described.card.needs] == ["depth"]
    assert [(check.name, check.series) for check in described.checks] == [
        (item.name, item.series) for item in real.checks
    ]
    assert described.args.model_json_schema() == real.args.model_json_schema()
    assert described.parse({"number": 3}).model_dump() == real.parse({"number": 3}).model_dump()
    with pytest.raises(ToolError, match="number: Field required"):
        described.parse({})


async def test_a_described_tool_is_asked_in_the_worker_which_checks_its_arguments(
    outside: Path, fakes: Any, tmp_path: Path
) -> None:
    with described_by(describer):
        tool = load("tools", "sound")
    store = ImageStore(tmp_path / "images")
    cache = FindingCache(tmp_path / "findings", store)
    runner = CachedTools(store, cache, ServiceOptions("classical", isolated=True))
    try:
        refs = fakes.refs(store, 1)
        values = [await runner.call(tool, tool.parse({"number": 3}), refs) for _ in range(2)]
        with pytest.raises(ToolError, match="wrong arguments for sound: number") as error:
            await runner.call(tool, tool.parse({"number": "many"}), refs)
    finally:
        runner.close()
    assert [item.text for item in values] == ["plain 3"] * 2
    assert runner.computed == 1
    assert error.value.fault is Fault.BAD_ARGUMENTS


async def test_what_a_described_tool_needs_is_said_by_its_worker(outside: Path, fakes: Any, tmp_path: Path) -> None:
    (outside / "needy.py").write_text(NEEDY)
    importlib.invalidate_caches()
    store = ImageStore(tmp_path / "images")
    cache = FindingCache(tmp_path / "findings", store)
    runner = CachedTools(store, cache, ServiceOptions("classical", isolated=True))
    with described_by(describer):
        tool = load("tools", "needy")
        refs = fakes.refs(store, 1, 2)
        try:
            values = [await runner.call(tool, tool.parse({"number": 3}), refs) for _ in range(2)]
        finally:
            runner.close()
        assert not {"tools.needy", "tools.sound"} & set(sys.modules), "nothing was imported here"
    assert [item.text for item in values] == ["plain 5, plain 5"] * 2
    # For each of two images, the marks and the other tool's output are computed; the tool itself computes one output.
    assert runner.computed == 2 + 2 + 1


def test_a_run_goes_on_without_a_tool_that_cannot_be_imported_unless_it_was_named(outside: Path) -> None:
    break_tools(outside, "ends")
    solvers: dict[str, Solver] = {"controller": registry.load_solver("controller")}
    tools_offered, service = ("crop", "ends", "sound"), ServiceOptions("classical")
    with described_by(describer):
        result = tools_in_use(solvers, "blink", ToolChoice(tools_offered), service)
        with pytest.raises(UsageError, match=r"ends\.py: cannot be imported"):
            tools_in_use(solvers, "blink", ToolChoice(tools_offered, ("ends",)), service)
    assert [tool.card.name for tool in result.tools_offered] == ["crop", "sound"]
    (left_out,) = result.left_out
    assert left_out.endswith("ends.py: cannot be imported: ended its worker process: exit code 4")
