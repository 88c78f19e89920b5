"""When a graph is built and entered: no model waits for it, and an answer without tool calls does not need it."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from graphs._compiled import Compiled
from graphs._model_and_specialist import ModelAndSpecialist
from graphs.arbiter import Arbiter
from graphs.controller import Controller, build
from graphs.verify import Verify
from hybrid.errors import BudgetSpent
from hybrid.messages import AssistantMessage, ToolCall
from hybrid.registry import load
from hybrid.solving.solver import SolverContext
from hybrid.types import Finding, ImageRef, Kind, Prompt, StoredImage

IMAGES = tuple(ImageRef(f"img:{number}", StoredImage("0" * 64, 8, 8, "image/png")) for number in (1, 2, 3))
PROMPT = Prompt(("Which image fits?", *IMAGES), Kind.CHOICE, ("the second", "the third"), route="Jigsaw")
CALL = AssistantMessage("", (ToolCall("c1", "jigsaw", {"images": ["img:1", "img:2", "img:3"]}),))
FOUND = Finding("the second image fits", {"best": 0}, 0.9, "classical", "1")
HANGS_S = 30


def context_of(fakes: Any, replies: list[Any], findings: list[Any]) -> SolverContext:
    """A kit with the tool `jigsaw` on its menu."""
    ctx: SolverContext = fakes.context_of(PROMPT, replies, findings)
    return replace(ctx, tools_offered=(load("tools", "jigsaw"),))


def asked(ctx: Any) -> list[Any]:
    """The requests to the model, call by call."""
    return list(ctx.model.inner.calls)


async def test_every_ask_enters_the_graph(fakes: Any) -> None:
    def broken() -> Any:
        raise ZeroDivisionError("there is no graph")

    controller = Controller()
    controller.graph = Compiled(broken)
    with pytest.raises(ZeroDivisionError):
        await controller.ask(PROMPT, context_of(fakes, ["(A)"], []))


@pytest.mark.parametrize("solver", [Controller, Arbiter, Verify])
def test_warming_builds_the_graph_in_a_thread_before_any_ask(solver: Any) -> None:
    warmed, go = solver(), threading.Event()
    warmed.graph = Compiled(lambda: go.wait(HANGS_S))
    warmed.warm()
    go.set()
    assert warmed.graph._made is not None
    assert warmed.graph._made.result(HANGS_S) is True


@pytest.mark.parametrize("solver", [Arbiter, Verify])
async def test_the_model_is_asked_before_the_graph_is_there(solver: Any, fakes: Any) -> None:
    one, spoken = solver(), threading.Event()
    made = one.graph._build

    def late() -> Any:
        assert spoken.wait(HANGS_S)
        return made()

    async def speaks() -> None:
        spoken.set()

    ctx: Any = context_of(fakes, ["(A)", "(A)"], [FOUND])
    ctx.model.inner.speaks = speaks
    one.graph = Compiled(late)
    async with asyncio.timeout(HANGS_S):
        assert (await one.ask(PROMPT, ctx)).text == "(A)"


async def test_a_graph_is_built_once_whoever_asks_first(fakes: Any) -> None:
    controller, built = Controller(), []

    def counted() -> Any:
        built.append(threading.current_thread().name)
        return build()

    controller.graph = Compiled(counted)
    contexts = [context_of(fakes, [CALL, "(A)"], [FOUND]) for _ in range(8)]
    replies = await asyncio.gather(*(controller.ask(PROMPT, ctx) for ctx in contexts))
    assert [reply.text for reply in replies] == ["(A)"] * 8
    assert built == ["graph"]


async def test_a_caller_that_gives_up_leaves_the_graph_to_the_others() -> None:
    go = threading.Event()
    graph = Compiled(lambda: go.wait(HANGS_S))
    first, second = (asyncio.create_task(graph.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    go.set()
    assert await second is True
    assert await graph.get() is True


async def test_an_ask_that_ends_early_leaves_no_model_call_behind(fakes: Any) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def speaks() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def tool(*_: Any) -> Finding:
        await started.wait()
        raise BudgetSpent("no more")

    ctx: Any = context_of(fakes, ["(A)"], [])
    ctx.model.inner.speaks = speaks
    solver: ModelAndSpecialist = Arbiter()
    with pytest.raises(BudgetSpent):
        await solver.ask(PROMPT, replace(ctx, tool=tool))
    assert ended.is_set()
