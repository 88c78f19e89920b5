"""Commands on a run that Python code made with objects which no longer exist."""

from pathlib import Path
from typing import Any

import hybrid
from hybrid.core.types import Prompt, Reply
from hybrid.solving.solver import Solver, SolverContext

SAMPLE: dict[str, Any] = {"data": "sample", "task": "Jigsaw", "limit": 2, "backend": "classical"}


class Quotes(Solver):
    """A solver that records its answer as that of the tool `counter`."""

    role = "chance"

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        messages = {"tool": "counter", "backend": "classical", "answer": "(A)", "confidence": 0.5, "letter": "A"}
        ctx.rule("adopt", "counter says A", {"specialist_answer": messages})
        return Reply("(A)")


def test_an_answer_of_a_tool_that_was_an_object_cannot_be_calibrated(command: Any) -> None:
    hybrid.run("blink", **SAMPLE, solvers=Quotes(), out="run")
    result = command("calibrate", "run", "-o", "trust.json")
    assert (result.code, Path("trust.json").exists()) == (2, False)
    assert "no 'counter' in tools/" in result.err
    assert "passed in from Python: save it as counter.py and name its folder with --path" in result.err
