"""The first step of arbiter and verify: the MLLM proposes and the specialist testifies, side by side.

`two_witnesses(decide)` is the graph of both: the same two nodes, then a node of its own that decides between them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from hybrid.errors import ToolError
from hybrid.messages import text_of
from hybrid.solving.kit import Kit
from hybrid.types import Prompt
from tools.rules import Testimony, testify

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


@dataclass(frozen=True)
class Case:
    """What the nodes of one ask share; never stored."""

    prompt: Prompt
    kit: Kit


class State(TypedDict, total=False):
    """What the nodes have found out."""

    proposal: str
    testimony: Testimony | None
    answer: str


Node = Callable[[State, Runtime[Case]], Awaitable[State]]


async def propose(state: State, runtime: Runtime[Case]) -> State:
    """Ask the MLLM, without tools."""
    kit = runtime.context.kit
    return {"proposal": text_of(await kit.model([kit.message(runtime.context.prompt)]))}


async def hear(state: State, runtime: Runtime[Case]) -> State:
    """Ask the specialist; a tool that fails does not testify."""
    case = runtime.context
    try:
        return {"testimony": await testify(case.prompt, case.kit)}
    except ToolError as error:
        case.kit.rule("no testimony", str(error), fault=error.fault)
        return {"testimony": None}


def two_witnesses(decide: Node) -> CompiledStateGraph[State, Case, State, State]:
    """Compile the graph: `propose` and `testify` from the start, then `decide`. It holds no state of its own."""
    from langgraph.graph import END, START, StateGraph

    builder: StateGraph[State, Case, State, State] = StateGraph(State, context_schema=Case)
    nodes: dict[str, Any] = {"propose": propose, "testify": hear, "decide": decide}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "propose")
    builder.add_edge(START, "testify")
    builder.add_edge(["propose", "testify"], "decide")
    builder.add_edge("decide", END)
    return builder.compile()
