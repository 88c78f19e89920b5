"""Commands on a run that Python code made with objects, which are not there any more."""

from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.solving.solver import Solver, SolverContext
from hybrid.types import Prompt, Reply

SAMPLE: dict[str, Any] = {"data": "sample", "task": "Jigsaw", "limit": 2, "backend": "classical"}


class AlwaysA(Solver):
    role = "chance"

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        return Reply("(A)")


class Quotes(AlwaysA):
    """Notes an answer of the tool `counter`."""

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        said = {"tool": "counter", "backend": "classical", "answer": "(A)", "confidence": 0.5, "letter": "A"}
        ctx.rule("adopt", "counter says A", {"specialist_answer": said})
        return Reply("(A)")


def says() -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Says(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "says"

        def bind_tools(self, tools: Any, **kwargs: Any) -> "Says":
            return self

        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage("Answer: (A)"))])

    return Says()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_answer_of_a_tool_that_was_an_object_cannot_be_calibrated(command: Any) -> None:
    hybrid.run("blink", **SAMPLE, solvers=Quotes(), out="run")
    ended = command("calibrate", "run", "-o", "trust.json")
    assert (ended.code, Path("trust.json").exists()) == (2, False)
    assert "no 'counter' in tools/" in ended.err
    assert "handed in by Python code: save it as counter.py and name its folder with --path" in ended.err
