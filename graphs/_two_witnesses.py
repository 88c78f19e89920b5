"""The frame of arbiter and verify: the MLLM proposes, the specialist testifies next to it, then the solver decides.

The MLLM is asked before the graph is there, and the node `propose` waits for what it says.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from graphs._compiled import Compiled
from hybrid.errors import ToolError
from hybrid.solving.empty_replies import EMPTY, words_of
from hybrid.solving.kit import Kit, Solver
from hybrid.types import Prompt, Reply
from tools.rules import Testimony, testify, tools_asked

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime


@dataclass(frozen=True)
class Proposal:
    """What the MLLM says without tools."""

    text: str
    confidence: float | None = None
    """Probability, 0..1, that it claims for this answer; None where it says nothing of it."""


@dataclass(frozen=True)
class Case:
    """What the nodes of one ask share; never stored."""

    prompt: Prompt
    kit: Kit
    proposal: asyncio.Task[Proposal]
    """What the MLLM says without tools; under way when the graph is entered."""


class State(TypedDict, total=False):
    """What the nodes have found out."""

    proposal: Proposal
    testimony: Testimony | None
    answer: str


async def propose(state: State, runtime: Runtime[Case]) -> State:
    """Wait for the MLLM."""
    return {"proposal": await runtime.context.proposal}


async def hear(state: State, runtime: Runtime[Case]) -> State:
    """Ask the specialist; a tool that fails does not testify."""
    case = runtime.context
    try:
        return {"testimony": await testify(case.prompt, case.kit)}
    except ToolError as error:
        case.kit.rule("no testimony", str(error), fault=error.fault)
        return {"testimony": None}


class TwoWitnesses(Solver):
    """A solver that decides between the MLLM's proposal and the specialist's testimony."""

    needs_model = True
    texts = MappingProxyType({"empty": EMPTY})

    def asks(self, benchmark: str, routes: Collection[str] | None = None) -> frozenset[str]:
        """Those that the specialist's rules name."""
        return tools_asked(benchmark, routes)

    async def propose(self, prompt: Prompt, kit: Kit) -> Proposal:
        """The MLLM's own words."""
        return Proposal(await words_of(kit.model, [kit.message(prompt)], kit.log))

    @abstractmethod
    async def decide(self, prompt: Prompt, kit: Kit, proposal: Proposal, testimony: Testimony | None) -> str:
        """The reply to the prompt; writes down why."""

    def __init__(self) -> None:
        self.graph = Compiled(self.build)

    def warm(self) -> None:
        """Begin to import LangGraph and to compile the graph, in a thread."""
        self.graph.begin()

    def build(self) -> CompiledStateGraph[State, Case, State, State]:
        """`propose` and `testify` from the start, then `decide`; it holds no state of its own and serves every ask."""
        from langgraph.graph import END, START, StateGraph

        async def decide(state: State, runtime: Runtime[Case]) -> State:
            case = runtime.context
            return {"answer": await self.decide(case.prompt, case.kit, state["proposal"], state["testimony"])}

        builder: StateGraph[State, Case, State, State] = StateGraph(State, context_schema=Case)
        builder.add_node("propose", propose)
        builder.add_node("testify", hear)
        builder.add_node("decide", decide)
        builder.add_edge(START, "propose")
        builder.add_edge(START, "testify")
        builder.add_edge(["propose", "testify"], "decide")
        builder.add_edge("decide", END)
        return builder.compile()

    async def ask(self, prompt: Prompt, kit: Kit) -> Reply:
        """The MLLM and the specialist asked side by side, then what is decided between them."""
        asked = asyncio.create_task(self.propose(prompt, kit))
        try:
            final = await (await self.graph.get()).ainvoke({}, context=Case(prompt, kit, asked))
        finally:
            # Where the ask has ended without the proposal, nobody waits for it any more.
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        return Reply(final["answer"])
