"""Verify: the MLLM proposes, the specialist for the question is heard, the MLLM sees the evidence and decides.

    hybrid run blink --solver verify --model openai:gpt-4o

One round at a fixed cost: two model calls and the tool calls of one rule. Where no rule or tool has anything to say,
the proposal stands and the second call is not made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from graphs._words import DECIDE, EVIDENCE, VERIFY
from hybrid.errors import ToolError
from hybrid.image_forms import ImageForm
from hybrid.kit import Kit, Limits
from hybrid.messages import finding_parts, image_of, text_of
from hybrid.types import Finding, ImageRef, Prompt, Reply
from tools._rules import as_json, testify

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


@dataclass(frozen=True)
class Case:
    """What the nodes share; never stored."""

    prompt: Prompt
    kit: Kit


class State(TypedDict, total=False):
    """What the nodes have found out."""

    proposal: str
    finding: Finding | None
    answer: str


async def propose(state: State, runtime: Runtime[Case]) -> State:
    """Ask the MLLM, without tools."""
    kit = runtime.context.kit
    return {"proposal": text_of(await kit.model([kit.message(runtime.context.prompt)]))}


async def gather(state: State, runtime: Runtime[Case]) -> State:
    """Call the tools that the rule for this question calls; a tool that fails gives no evidence."""
    kit = runtime.context.kit
    try:
        testimony = await testify(runtime.context.prompt, kit)
    except ToolError as error:
        kit.rule("no evidence", str(error), fault=error.fault)
        return {"finding": None}
    if testimony is None:
        kit.rule("no evidence", "no rule for this kind of question, or its tools do not decide")
        return {"finding": None}
    kit.rule("evidence", f"{testimony.tool} says {testimony.letter}", {"testimony": as_json(testimony)})
    return {"finding": testimony.finding}


async def decide(state: State, runtime: Runtime[Case]) -> State:
    """Show the evidence with the first answer and ask again."""
    kit, prompt = runtime.context.kit, runtime.context.prompt
    proposal, finding = state["proposal"], state["finding"]
    if finding is None:
        return {"answer": proposal}
    images = [image.name for image in prompt.images]
    evidence: list[str | ImageRef] = [EVIDENCE.format(plural="s" if len(images) > 1 else "")]
    shown = finding_parts(finding, images, kit.show)
    evidence += [part["text"] if part["type"] == "text" else image_of(part) for part in shown]
    message = kit.message(prompt, *evidence, DECIDE.format(proposal=proposal))
    return {"answer": text_of(await kit.model([message]))}


@cache
def graph() -> CompiledStateGraph[State, Case, State, State]:
    """The compiled graph; it holds no state of its own, so one serves every ask."""
    from langgraph.graph import END, START, StateGraph

    builder: StateGraph[State, Case, State, State] = StateGraph(State, context_schema=Case)
    nodes: dict[str, Any] = {"propose": propose, "gather": gather, "decide": decide}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "propose")
    builder.add_edge(START, "gather")
    builder.add_edge(["propose", "gather"], "decide")
    builder.add_edge("decide", END)
    return builder.compile()


class Verify:
    """An MLLM that is shown evidence once."""

    images: ImageForm | None = None
    needs_model = True
    needs_live = True
    texts = VERIFY

    def calls(self, limits: Limits) -> tuple[int, int]:
        """The proposal, and the decision where there is evidence."""
        return (1, 2)

    async def ask(self, prompt: Prompt, kit: Kit) -> Reply:
        """The answer after the evidence, or the proposal where there is none."""
        final = await graph().ainvoke({}, context=Case(prompt, kit))
        return Reply(final["answer"])


SOLVER = Verify()
