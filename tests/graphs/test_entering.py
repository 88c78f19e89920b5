"""When a solver's graph is built and entered: requests to models do not wait for it, and an answer without tool calls
does not need it."""

from dataclasses import replace
from typing import Any

import pytest

from graphs._compiled import Compiled
from graphs.controller import Controller
from hybrid.core.types import ImageRef, Kind, Prompt, StoredImage
from hybrid.plugins.registry import load
from hybrid.solving.solver import SolverContext

IMAGES = tuple(ImageRef(f"img:{number}", StoredImage("0" * 64, 8, 8, "image/png")) for number in (1, 2, 3))
PROMPT = Prompt(("Which image fits?", *IMAGES), Kind.CHOICE, ("the second", "the third"), route="Jigsaw")


def context_of(fakes: Any, replies: list[Any], findings: list[Any]) -> SolverContext:
    """Return a context with the tool `jigsaw` on its menu."""
    ctx: SolverContext = fakes.context_of(PROMPT, replies, findings)
    return replace(ctx, tools_offered=(load("tools", "jigsaw"),))


async def test_every_ask_enters_the_graph(fakes: Any) -> None:
    def broken() -> Any:
        raise ZeroDivisionError("there is no graph")

    controller = Controller()
    controller.graph = Compiled(broken)
    with pytest.raises(ZeroDivisionError):
        await controller.ask(PROMPT, context_of(fakes, ["(A)"], []))
