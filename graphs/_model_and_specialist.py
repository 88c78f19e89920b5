"""Common base of arbiter and verify: the MLLM proposes, the specialist answers in parallel, then the solver decides.

The MLLM is asked before the graph is ready, and the node `propose` waits for its reply.
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
from hybrid.core.errors import ToolError
from hybrid.core.types import Outcome, Prompt, Reply
from hybrid.solving.empty_replies import EMPTY, words_of
from hybrid.solving.solver import Solver, SolverContext
from hybrid.tool.rules import SpecialistAnswer
from tools.rules import ask_specialists, tools_asked

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime


@dataclass(frozen=True)
class Proposal:
    """The MLLM's answer without tools."""

    text: str
    # Probability, 0..1, that this answer is right according to the model; None if it states none.
    confidence: float | None = None


@dataclass(frozen=True)
class DecisionInput:
    """Objects that the nodes share while one prompt is answered; never stored."""

    prompt: Prompt
    ctx: SolverContext
    # The MLLM's answer without tools; still pending when the graph starts.
    proposal: asyncio.Task[Proposal]


class DecisionState(TypedDict, total=False):
    """Results of the nodes."""

    proposal: Proposal
    specialist_answer: SpecialistAnswer | None
    answer: str | None


async def propose(state: DecisionState, runtime: Runtime[DecisionInput]) -> DecisionState:
    """Wait for the MLLM."""
    return {"proposal": await runtime.context.proposal}


async def hear(state: DecisionState, runtime: Runtime[DecisionInput]) -> DecisionState:
    """Ask the specialist; a tool that fails gives no answer."""
    case = runtime.context
    try:
        return {"specialist_answer": await ask_specialists(case.prompt, case.ctx)}
    except ToolError as error:
        case.ctx.rule("no specialist answer", str(error), fault=error.fault)
        return {"specialist_answer": None}


class ModelAndSpecialist(Solver):
    """A solver that decides between the MLLM's proposal and the specialist's answer."""

    needs_model = True
    texts = MappingProxyType({"empty": EMPTY})

    def required_tools(self, benchmark: str, routes: Collection[str] | None = None) -> frozenset[str]:
        """Return the tools that the specialist's rules name."""
        del benchmark
        return tools_asked(routes)

    async def propose(self, prompt: Prompt, ctx: SolverContext) -> Proposal:
        """Return the MLLM's own text."""
        return Proposal(await words_of(ctx.model, [ctx.message(prompt)], ctx.log))

    @abstractmethod
    async def decide(
        self, prompt: Prompt, ctx: SolverContext, proposal: Proposal, specialist_answer: SpecialistAnswer | None
    ) -> str | None:
        """Return the reply to the prompt, None for no answer, and log the reason."""

    def __init__(self) -> None:
        self.graph = Compiled(self.build)

    def warm(self) -> None:
        """Start importing LangGraph and compiling the graph, in a thread."""
        self.graph.begin()

    def build(self) -> CompiledStateGraph[DecisionState, DecisionInput, DecisionState, DecisionState]:
        """Compile the graph: `propose` and `specialist` in parallel, then `decide`.

        The graph is stateless and serves every prompt.
        """
        from langgraph.graph import END, START, StateGraph

        async def decide(state: DecisionState, runtime: Runtime[DecisionInput]) -> DecisionState:
            case = runtime.context
            return {"answer": await self.decide(case.prompt, case.ctx, state["proposal"], state["specialist_answer"])}

        builder: StateGraph[DecisionState, DecisionInput, DecisionState, DecisionState] = StateGraph(
            DecisionState, context_schema=DecisionInput
        )
        builder.add_node("propose", propose)
        builder.add_node("specialist", hear)
        builder.add_node("decide", decide)
        builder.add_edge(START, "propose")
        builder.add_edge(START, "specialist")
        builder.add_edge(["propose", "specialist"], "decide")
        builder.add_edge("decide", END)
        return builder.compile()

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Ask the MLLM and the specialist in parallel, then return the decision between them."""
        proposal = asyncio.create_task(self.propose(prompt, ctx))
        try:
            final = await (await self.graph.get()).ainvoke({}, context=DecisionInput(prompt, ctx, proposal))
        finally:
            # If the decision was made without the proposal, the proposal is no longer needed.
            proposal.cancel()
            await asyncio.gather(proposal, return_exceptions=True)
        answer = final["answer"]
        return Reply("", Outcome.ABSTAINED) if answer is None else Reply(answer)
