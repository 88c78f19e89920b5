"""`hybrid.run` with objects in place of names: models, solvers and tools of the calling program."""

import json
import linecache
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import hybrid
from hybrid.config import Objects, RunConfig
from hybrid.core.errors import UsageError
from hybrid.core.types import Prompt, Reply
from hybrid.running.object_code import NO_SOURCE, object_code
from hybrid.running.resolve import prepare
from hybrid.solving.agent import Agent
from hybrid.solving.solver import Solver, SolverContext
from tests.runnable import forked

SAMPLE: dict[str, Any] = {"data": "sample", "task": "Jigsaw", "limit": 2}


class AlwaysA(Solver):
    """A solver that always answers (A), without a model."""

    role = "chance"

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        return Reply("(A)")


class Counts(BaseChatModel):
    """Calls the tool `counter` once if it is offered, and answers with the first option."""

    has_tool: bool = False

    @property
    def _llm_type(self) -> str:
        return "counts"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Counts":
        return Counts(has_tool=any(tool["function"]["name"] == "counter" for tool in tools))

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        call = {"id": "1", "name": "counter", "args": {"image": "img:1", "number": 3}}
        asks = self.has_tool and messages[-1].type == "human"
        message = AIMessage("", tool_calls=[call]) if asks else AIMessage("Answer: (A)")
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solvers": [AlwaysA(), AlwaysA()]}, "another 'always_a' already exists"),
        ({"solvers": [Agent(print, name="mllm")]}, "another 'mllm' already exists"),
        ({"solvers": [Agent(print, name="My agent")]}, "'My agent' is not a valid name"),
        ({"solvers": [AlwaysA]}, "pass a hybrid.solving.solver.Solver"),
        ({"tools": [AlwaysA()]}, "pass a hybrid.tool.Tool"),
        ({"solvers": Agent(print), "tool_output": "blank"}, 'tool_output="blank": agent runs its own'),
    ],
)
def test_an_object_that_cannot_be_used_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hybrid.run("blink", **SAMPLE, **options)


def test_an_object_stays_in_its_process() -> None:
    objects = Objects(solvers={"mine": AlwaysA()})
    with pytest.raises(UsageError, match="a Python object runs in this process, not on --engine ray"):
        prepare(RunConfig("blink", ("mine",), data="sample", objects=objects, engine="ray"))


FILE = """
from helper import LETTER
from hybrid.solving.solver import Solver
from hybrid.core.types import Reply


class Mine(Solver):
    role = "chance"

    async def ask(self, prompt, ctx):
        return Reply(f"({LETTER})")
"""
PLACES = {
    # The files that contain an object's code, and which of them is edited. A run with another limit leaves the hash of
    # the code unchanged; another answer in the edited file changes it.
    "module": ({"mine.py": FILE, "helper.py": "LETTER = 'A'", "run.py": "from mine import Mine\n"}, "helper.py"),
    "script": ({"run.py": FILE, "helper.py": "LETTER = 'A'"}, "run.py"),
}
CALL = """
import hybrid, sys
hybrid.run("blink", data="sample", task="Jigsaw", limit=int(sys.argv[1]), solvers=Mine(), out="run", quiet=True)
"""


@pytest.mark.system
@pytest.mark.parametrize("place", PLACES)
def test_a_solver_of_other_code_does_not_continue_a_run(
    place: str, in_tmp_path: Path, hybrid_home: Path, drawings: Path
) -> None:
    drawings.mkdir(exist_ok=True)
    hybrid_home.mkdir()
    (hybrid_home / "samples").symlink_to(drawings)
    files, changed = PLACES[place]
    for name, text in files.items():
        (in_tmp_path / name).write_text(text)
    (in_tmp_path / "run.py").write_text((in_tmp_path / "run.py").read_text() + CALL)

    def run_script(limit: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*forked(), "run.py", str(limit)], capture_output=True, text=True, check=False)

    assert run_script(2).returncode == 0
    assert len(json.loads(Path("run/manifest.json").read_text())["solvers"]["mine"]["code"]) == 12
    # The call of `hybrid.run` is not part of the solver's code.
    (in_tmp_path / "run.py").write_text((in_tmp_path / "run.py").read_text() + "\n# the end\n")
    assert run_script(3).returncode == 0
    text = (in_tmp_path / changed).read_text()
    (in_tmp_path / changed).write_text(text.replace("'A'", "'B'").replace('f"({LETTER})"', 'f"({LETTER}) "'))
    second = run_script(3)
    assert second.returncode == 1
    assert "holds a run of another configuration" in second.stderr
    assert "solver mine.code" in second.stderr


def cell(text: str, number: int, names: dict[str, Any]) -> None:
    """Run a cell as IPython does: its lines are registered under the name of a file that does not exist."""
    name = f"ipykernel_1/{number}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)  # noqa: S102 - the test's own


def test_of_a_notebook_the_class_and_what_it_names_is_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    text = "class Mine:\n    def ask(self):\n        return said()\n"
    cells = {"said": "def said():\n    return WORD\n", "WORD": "WORD = 'A'\n", "API_KEY": "API_KEY = 'A'\n"}
    codes = []
    changes = ({}, {"API_KEY": "API_KEY = 'B'\n"}, {"WORD": "WORD = 'B'\n"}, {"said": "def said():\n    return ''\n"})
    for number, change in enumerate(changes):
        for place, item in enumerate((text + f"print = {number}\n", *{**cells, **change}.values())):
            cell(item, 10 * number + place, vars(main))
        codes.append(object_code(main.Mine))
    # The rest of the cell and a secret are not part of the object's code.
    assert codes[0] == codes[1]
    assert len({*codes}) == 3


@pytest.mark.system
def test_what_has_no_source_says_so() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("class Typed:\n    def ask(self): ...", names)  # noqa: S102 - the test's own
    assert [object_code(item) for item in (names["Typed"], len, *Agent(Graph()).written_as)] == [NO_SOURCE] * 3
    assert (
        object_code(AlwaysA) == object_code(AlwaysA().ask) == object_code(*Agent(AlwaysA().ask).written_as) != NO_SOURCE
    )


class Graph:
    async def ainvoke(self, state: Any) -> Any:
        return state


@pytest.mark.system
def test_models_and_tools_have_the_hash_of_their_code(fakes: Any) -> None:
    tool = fakes.counter(fakes.CountingBackend())
    hybrid.run("blink", **SAMPLE, model=Counts(), solvers=["controller", Agent(Graph())], tools=[tool], out="run")
    manifest = json.loads(Path("run/manifest.json").read_text())
    assert manifest["identity"]["model"]["code"] == object_code(Counts)
    assert re.fullmatch("[0-9a-f]{12}", manifest["solvers"]["controller"]["tools"]["counter"]["code"])
    assert manifest["solvers"]["agent"]["code"] == NO_SOURCE
