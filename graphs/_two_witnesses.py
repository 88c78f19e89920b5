"""The frame of arbiter and verify: the MLLM proposes, the specialist testifies next to it, then the solver decides."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from hybrid.errors import ToolError
from hybrid.solving.empty_replies import EMPTY, words_of
from hybrid.solving.kit import Kit, Solver
from hybrid.types import Prompt, Reply
from tools.rules import Testimony, testify

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime


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


async def propose(state: State, runtime: Runtime[Case]) -> State:
    """Ask the MLLM, without tools."""
    kit = runtime.context.kit
    return {"proposal": await words_of(kit.model, [kit.message(runtime.context.prompt)], kit.log)}


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

    @abstractmethod
    async def decide(self, prompt: Prompt, kit: Kit, proposal: str, testimony: Testimony | None) -> str:
        """The reply to the prompt; writes down why."""

    @cached_property
    def graph(self) -> CompiledStateGraph[State, Case, State, State]:
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
        final = await self.graph.ainvoke({}, context=Case(prompt, kit))
        return Reply(final["answer"])
