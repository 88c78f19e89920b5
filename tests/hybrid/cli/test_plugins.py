"""Plug-ins of every kind: found in one way, named in the manifest, left out if invalid."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.config import RunConfig, ServiceOptions
from hybrid.plugins.discovery import KINDS, add_search_path
from hybrid.plugins.registry import load, names
from hybrid.running.resolve import prepare
from hybrid.serving import supervisor
from hybrid.serving.described import ProcessDescriber
from hybrid.serving.jobs import Worker, WorkerEnd, judge
from hybrid.serving.sources import code_hash_of_plugin
from tests.finished_runs import Command
from tests.tables import cases
from tools.rules import tools_asked

# A complete plug-in of each kind, keyed by its folder.
TEXTS: dict[str, str] = {
    "tools": """
from hybrid.tool import Args, BackendCard, Card, Tool

TOOL = Tool(Card("{name}", "Says nothing.", "All.", (BackendCard("classical", "1", object, "nothing"),)), Args)
""",
    "graphs": '''
from hybrid.solving.solver import Solver
from hybrid.core.types import Reply


class First(Solver):
    """Always A."""

    role = "specialist"

    async def ask(self, prompt, ctx):
        return Reply("(A)")


SOLVER = First()
''',
    "baselines": '''
from hybrid.solving.solver import Solver
from hybrid.core.types import Reply


class First(Solver):
    """Always A."""

    role = "specialist"

    async def ask(self, prompt, ctx):
        return Reply("(A)")


SOLVER = First()
''',
    "benchmarks": """
from dataclasses import replace

from hybrid.benchmarks.blink import BENCHMARK as BLINK


class Other(type(BLINK)):
    card = replace(BLINK.card, name="{name}", title="Another one")
    texts_file = BLINK.texts_file


BENCHMARK = Other()
""",
    "models": """
from hybrid.core.messages import AssistantMessage


class SaysA:
    name, provider = "own_models:x", "own_models"

    def metadata(self):
        return {"model": self.name}

    def connection(self):
        return {}

    async def chat(self, messages, tools, call):
        return AssistantMessage("Answer: (A)")

    async def close(self):
        pass


def MODEL(name, settings, store):
    return SaysA()
""",
    "sections": """
from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.result import FRACTION, Result, Section


def rows(comparison):
    yield Result("{name}", "nought", FRACTION, 0.0)


SECTION = Section("{name}", "Nothing?", (MetricCard("nought", "0", "nothing", "ours"),), rows)
""",
    "exports": """
from hybrid.exporting.base import Exporter


class Nothing(Exporter):
    form = "nothing"
    about = "nothing"

    def export(self, run, path, options):
        raise NotImplementedError


EXPORTER = Nothing()
""",
}
TOOL, SOLVER, SECTION = (TEXTS[folder] for folder in ("tools", "baselines", "sections"))


pytestmark = pytest.mark.usefixtures("tools_as_they_were")


@pytest.fixture
def plugin_folder(tmp_path: Path) -> Path:
    """Return a folder laid out like the project, with one plug-in of each kind, named after its folder with the prefix
    `own_`."""
    for kind in KINDS:
        write(tmp_path / "own", kind.folder, f"own_{kind.folder}", TEXTS[kind.folder])
    return tmp_path / "own"


def write(root: Path, folder: str, name: str, text: str) -> Path:
    path = root / folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("{name}", name))
    return path


def offer(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a package on `sys.path` that provides one plug-in of each kind, as an installer leaves it."""
    facts = site / "own_package-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    lines = []
    for kind in KINDS:
        write(site, "own_package", f"of_{kind.folder}", TEXTS[kind.folder].replace("{name}", f"own_{kind.folder}"))
        lines += [f"[{kind.group}]", f"own_{kind.folder} = own_package.of_{kind.folder}"]
    (site / "own_package" / "__init__.py").write_text("")
    (facts / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.parametrize("installed", [True, False])
def test_every_kind_is_found_and_loaded_in_one_way(
    plugin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    if installed:
        offer(tmp_path / "site", monkeypatch)
    else:
        add_search_path([plugin_folder], "--path")
    for kind in KINDS:
        name = f"own_{kind.folder}"
        assert name in names(kind.package), kind
        first = load(kind.package, name)
        assert load(kind.package, name) is first
        assert re.fullmatch("[0-9a-f]{12}", code_hash_of_plugin(kind.package, name) or "")
    assert code_hash_of_plugin("baselines", "chance") is None, "a file of the project"


def test_the_hash_of_a_thing_is_over_what_it_imports_from_outside(plugin_folder: Path) -> None:
    solver = plugin_folder / "baselines" / "own_baselines.py"
    helper = write(plugin_folder, "baselines", "_own_words", "WORDS = 1\n")
    solver.write_text("from baselines._own_words import WORDS\n" + SOLVER)
    add_search_path([plugin_folder], "--path")
    load("baselines", "own_baselines")
    previous = code_hash_of_plugin("baselines", "own_baselines")
    helper.write_text("WORDS = 2\n")
    assert code_hash_of_plugin("baselines", "own_baselines") != previous
    helper.write_text("WORDS = 1\n")
    assert code_hash_of_plugin("baselines", "own_baselines") == previous
    sys.modules.pop("baselines._own_words")


@pytest.mark.system
def test_a_run_names_what_lies_outside_with_its_hash_and_is_compared_without_it(
    plugin_folder: Path, command: Command, tmp_path: Path
) -> None:
    run, path = tmp_path / "run", ("--path", plugin_folder)
    words = ("--data", "sample", "--task", "Jigsaw", "--limit", "2", "--model", "own_models:x")
    result = command("run", "own_benchmarks", *words, "--solver", "own_baselines,mllm", "--out", run, *path, code=0)
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["identity"]["plugins"] == {
        f"{folder}/own_{folder}": code_hash_of_plugin(package, f"own_{folder}")
        for package, folder in (("hybrid.benchmarks", "benchmarks"), ("hybrid.models.providers", "models"))
    }
    facts = manifest["solvers"]
    assert (facts["own_baselines"]["code"], facts["own_baselines"]["role"]) == (
        code_hash_of_plugin("baselines", "own_baselines"),
        "specialist",
    )
    assert not {"code", "role"} & set(facts["mllm"])
    result = command("compare", run, "--json", *path)
    data = json.loads(result.out)
    assert data["plugins"] == {"sections/own_sections": code_hash_of_plugin("hybrid.scoring.sections", "own_sections")}
    assert [row["value"] for row in data["results"] if row["section"] == "own_sections"] == [0.0]


def describer() -> ProcessDescriber:
    return ProcessDescriber(ServiceOptions(import_s=60.0, silence_s=60.0))


def late(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make the import of this plug-in exceed its time limit immediately."""

    def judged(worker: Worker, options: ServiceOptions, passed_s: float, now: float) -> WorkerEnd | None:
        tools = {job.start.tool for job in worker.jobs.values()}
        return judge(worker, options, passed_s, now + 60.0 * (name in tools))

    monkeypatch.setattr(supervisor, "judge", judged)
    monkeypatch.setattr(supervisor, "TICK_S", 0.02)


# Contents of invalid plug-in files by name, with the reason why each is left out.
BAD: dict[str, tuple[str, str]] = {name: (text, case) for name, text, case in cases(__file__, "BAD")[1]} | {
    "faulty": (
        SOLVER.replace('role = "specialist"', "role = property(lambda self: 1 / 0)"),
        "its role raises ZeroDivisionError: division by zero",
    ),
    "chance": (SOLVER, "a solver 'chance' already exists"),
    "Capital": (SOLVER, "the name of a solver may only have lower-case letters"),
}


@pytest.mark.system
def test_a_bad_one_is_named_in_a_line_and_costs_no_other(
    plugin_folder: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    for name, (text, _) in BAD.items():
        write(plugin_folder, "baselines", name if name in ("chance", "Capital") else f"own_{name}", text)
    late(monkeypatch, "own_hangs")
    monkeypatch.setattr("hybrid.cli.describer", describer)
    result = command("solvers", "list", "--json", "--path", plugin_folder, code=0)
    values = {item["name"] for item in json.loads(result.out)["solvers"]}
    assert {"chance", "mllm", "controller", "own_baselines", "own_graphs"} <= values
    assert not {"Capital", *(f"own_{name}" for name in BAD)} & values
    lines = result.err.splitlines()
    assert len(lines) == len(BAD)
    for name, (_, reason) in BAD.items():
        (line,) = (line for line in lines if f"{name}.py" in line)
        assert line.startswith("note: left out: ")
        assert reason.lstrip(":1") in line
    assert not {name for name in sys.modules if name.startswith("baselines.own_")} - {"baselines.own_baselines"}


@pytest.mark.system
def test_a_statistic_that_raises_costs_its_own_rows(
    plugin_folder: Path, command: Command, chance_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(plugin_folder, "sections", "own_faulty", SECTION.replace("    yield", "    1 / 0\n    yield"))
    write(plugin_folder, "sections", "own_wrong", "SECTION = 3\n")
    result = command("compare", chance_run, "--json", "--path", plugin_folder)
    data = json.loads(result.out)
    assert data["faults"] == {"own_faulty": "ZeroDivisionError: division by zero (sections/own_faulty.py, line 7)"}
    assert {"metrics", "own_sections"} <= {row["section"] for row in data["results"]}
    (line,) = (line for line in result.err.splitlines() if "left out" in line)
    assert "own_wrong.py: SECTION must be a Section of the name 'own_wrong', but is a int" in line


@pytest.fixture
def chance_run(command: Command, tmp_path: Path) -> Path:
    """Folder of a run in which the solver `chance` answered two generated questions."""
    run = tmp_path / "by_chance"
    words = ("--data", "sample", "--task", "Jigsaw", "--limit", "2", "--solver", "chance", "--out", run)
    assert command("run", "blink", *words).code == 0
    return run


@pytest.mark.system
def test_a_solver_whose_required_tools_raise_is_refused_with_its_file(plugin_folder: Path, command: Command) -> None:
    faulty = SOLVER.replace("    async", "    def required_tools(self, *_):\n        return {}[1]\n\n    async")
    write(plugin_folder, "baselines", "own_needy", faulty)
    words = ("--data", "sample", "--task", "Jigsaw", "--limit", "1", "--path", plugin_folder)
    result = command("run", "blink", *words, "--solver", "own_needy", code=2)
    assert "own_needy.py: its required_tools raises KeyError: 1" in result.err


@pytest.mark.system
def test_an_opener_that_gives_no_model_is_refused(plugin_folder: Path, command: Command) -> None:
    write(plugin_folder, "models", "own_three", "MODEL = lambda name, settings, store: 3\n")
    words = ("--data", "sample", "--task", "Jigsaw", "--limit", "1", "--path", plugin_folder, "--solver", "mllm")
    result = command("run", "blink", *words, "--model", "own_three:x", code=2)
    assert "own_three.py returns a int, not a ChatModel" in result.err


@pytest.mark.system
def test_a_node_of_a_cluster_is_asked_with_the_plug_ins_of_the_run_alone(plugin_folder: Path, tmp_path: Path) -> None:
    """A node gets the plug-ins of every kind that a run uses; their hashes are those in the run's manifest."""
    cluster = pytest.importorskip("hybrid.engines.ray.cluster", reason="the extra `ray` is not installed")
    add_search_path([plugin_folder], "--path")
    model = RunConfig("own_benchmarks", ("own_baselines", "own_graphs"), model="own_models:x", data="sample", limit=1)
    run = prepare(replace(model, tasks=("Jigsaw",), out=tmp_path / "run"))
    place = cluster.place_of_run(run)
    used = {"benchmarks/own_benchmarks", "models/own_models", "baselines/own_baselines", "graphs/own_graphs"}
    assert set(place.plugins) == used
    assert place.plugins.items() >= run.identity["plugins"].items()
    assert cluster.other_program(place, "n1") is None
    for plugin, code in place.plugins.items():
        other = replace(place, plugins={**place.plugins, plugin: "0" * 12})
        text = f"on node n1 the plug-in {plugin} has the code {code}, but {'0' * 12} in this run: install the same"
        assert str(cluster.other_program(other, "n1")).startswith(text)
    absent = str(cluster.other_program(replace(place, plugins={"graphs/own_other": code}), "n1"))
    assert (
        f"the plug-in graphs/own_other of this run (code {code}) cannot be loaded: no 'own_other' in graphs/" in absent
    )
    write(plugin_folder, "sections", "own_later", SECTION)
    cluster._code.cache_clear()
    assert "differ from those of this run" in str(cluster.other_program(place, "n1"))


def test_a_tool_whose_rule_is_asked_is_one_of_the_run(plugin_folder: Path) -> None:
    """A rule that only calls another tool is also recorded, because its code decides the answers."""
    ruled = TOOL.replace('"nothing"),)), Args)', '"nothing"),)), Args, rules={"Jigsaw": OneCall("jigsaw", letter())})')
    write(plugin_folder, "tools", "own_ruled", "from hybrid.tool.rules import OneCall, letter\n" + ruled)
    add_search_path([plugin_folder], "--path")
    assert tools_asked(["Jigsaw"]) == {"jigsaw", "own_ruled"}
    assert "own_ruled" not in tools_asked(["Relative_Depth"])
