"""The controller: an MLLM that may call specialist tools, turn by turn, until it answers or a budget ends.

    hybrid run blink --solver controller --model openai:gpt-4o [--tools depth,crop] [--show text|image|both]

A LangGraph graph of two nodes, `model` and `tools`. Every image has a name, including derived ones (`img:1.1`), and may
be passed to any tool. The calls of one message run in parallel; their results return in the order of the calls. All
faults are typed and counted, and go back to the model as text: wrong arguments, unknown tools and images, tool errors,
timeouts, repeated calls, calls beyond the budget. On the last turn the tools are withdrawn and the answer is requested.
Without tools (`--tools none`) the model gets no instructions about tools and answers immediately.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typing_extensions import TypedDict

from graphs._compiled import Compiled
from hybrid.config import Limits
from hybrid.core.errors import BudgetSpent, NoBackend, ToolError
from hybrid.core.messages import (
    AssistantMessage,
    InvalidCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UnreadableCall,
    UserMessage,
    shortened,
    user_message,
)
from hybrid.core.off_loop import work_on_text
from hybrid.core.types import Fault, Json, Outcome, Prompt, Reply, Step
from hybrid.models.dialects import remedy
from hybrid.models.toolspec import PublishedTool, tool_named
from hybrid.plugins.prompt_texts import read_texts
from hybrid.solving.call_arguments import AS_READ, read_arguments
from hybrid.solving.call_estimate import CallEstimate, CallPath, certain
from hybrid.solving.empty_replies import EMPTY, is_empty, note_withheld
from hybrid.solving.evidence import finding_parts, image_sizes
from hybrid.solving.solver import Solver, SolverContext
from hybrid.solving.styles import AS_TRAINED
from hybrid.tool import Tool, json_of_args

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime

    from hybrid.tool import Args


TEXTS: Mapping[str, str] = {**read_texts(Path(__file__).with_suffix(".toml")), "empty": EMPTY}


def opening_message(prompt: Prompt, ctx: SolverContext) -> UserMessage:
    """Return the prompt, followed by names and sizes of its images and of their regions that tools may use."""
    images = [*prompt.images, *prompt.derived]
    texts = [TEXTS["images"].format(sizes=image_sizes(images, ctx.frame))] if images else []
    texts = texts if _offers(ctx, published=False) else []
    texts += [ctx.style.question] if ctx.style.question and _offers(ctx, published=True) else []
    return ctx.message(prompt, *texts)


def _offers(ctx: SolverContext, *, published: bool) -> bool:
    """Return whether any tool is offered in the style's form (`published`) or, otherwise, in hybrid's own form."""
    return any(isinstance(tool, PublishedTool) is published for tool in ctx.tools_offered)


def system_text(ctx: SolverContext) -> str:
    """Return the controller's instructions: budgets, coordinate frame, and the trust in each tool if measured.

    The style's own text comes first; it is the only text if every tool has the style's form.
    """
    system_texts = [ctx.style.system] if ctx.style.system and _offers(ctx, published=True) else []
    if not _offers(ctx, published=False):
        return "\n\n".join(system_texts)
    limits = ctx.meter.limits
    note = "" if ctx.frame.name == "pixels" else TEXTS["frame_note"]
    text = TEXTS["instructions"].format(frame=ctx.frame.words, note=note, calls=limits.tool_calls, turns=limits.turns)
    lines = [
        f"{tool.card.name}: {value:.0%}"
        for tool in ctx.tools_offered
        if (value := ctx.trust.overall(tool.card.name)) is not None
    ]
    return "\n\n".join([*system_texts, "\n".join([text, TEXTS["trust"], *lines]) if lines else text])


# Assumed share of prompts for which the model calls a tool: a model's habits are unknown before it is asked. The share
# gives 1.75 model calls per prompt. This is within a factor of two of a model that calls no tool (1 call) and of a
# model that always calls a tool (2 calls). It is closer to 2, because benchmarks offer the tools that their questions
# need.
SHARE_WITH_TOOL = 0.75
ASSUMED = (
    "for 3 of 4 prompts, one tool call and then the answer (two turns), else the answer at once; high is every turn "
    "and tool call that the limits allow"
)
# Text of every conversation in addition to the prompt.
SAID = "\n".join((TEXTS["instructions"], TEXTS["images"]))
# Placeholder name of a call that has no readable name.
UNNAMED = "unknown"
# Number of identical calls that end the tool phase, because a model in a loop does not leave it by itself.
MAX_REPEATS = 3


@dataclass
class ControllerInput:
    """Objects that the nodes share while one prompt is answered; never stored.

    `made` contains the previous calls, by content.
    """

    prompt: Prompt
    ctx: SolverContext
    made: set[str] = field(default_factory=set)
    repeats: int = 0
    # Names of the pictures that the style's tool returned, in order.
    zoomed: list[str] = field(default_factory=list)


class State(TypedDict, total=False):
    """The conversation, the number of model turns, and how it ended."""

    messages: Annotated[list[Message], add]
    turns: int
    nudged: bool
    answer: str
    outcome: str


def conversation(prompt: Prompt, ctx: SolverContext) -> list[Message]:
    """Return the opening messages to the model: the instructions, and the prompt with its images."""
    # The instructions are only about tools; without tools the request equals that of the MLLM alone.
    text = system_text(ctx) if ctx.tools_offered else ""
    return [*([SystemMessage(text)] if text else []), opening_message(prompt, ctx)]


async def model(state: State, runtime: Runtime[ControllerInput]) -> State:
    """Ask the model: with tools, or on the last turn without them and with a request for the answer."""
    case = runtime.context
    ctx, turn = case.ctx, state["turns"]
    last = is_last_turn(case, turn)
    nudged = state.get("nudged", False)
    request = [user_message([TEXTS["last_turn"]])] if last and turn and not nudged else []
    try:
        reply = await ctx.model([*state["messages"], *request], () if last else ctx.tools_offered)
    except BudgetSpent as error:
        # The budget is spent: log this, and return the model's earlier text for scoring.
        ctx.rule("budget", str(error), fault=Fault.BUDGET)
        # The last text of the model without a tool call; empty if there is no such text.
        messages = state["messages"]
        texts = (
            m.text.strip()
            for m in reversed(messages)
            if isinstance(m, AssistantMessage) and not (m.calls or m.unreadable)
        )
        last_words = next((text for text in texts if text), "")
        return {"answer": last_words, "outcome": Outcome.BUDGET.value}
    if last:
        # After the tools are withdrawn, some models write one more call as text.
        reply = await work_on_text(reply.text, ctx.style.find_calls, reply, ctx.tools_offered, state["messages"])
    # A reply that cannot be parsed may have any length, and goes back to the model.
    stored = replace(reply, text=shortened(reply.text)) if reply.unreadable else reply
    update: State = {"messages": [*request, stored], "turns": turn + 1}
    if reply.is_withheld:
        note_withheld(reply, ctx.log)
        return {**update, "answer": "", "outcome": Outcome.UNPARSED.value}
    if not last and (reply.calls or reply.invalid or reply.unreadable):
        return update
    return {**update, **_end(case, reply, last=last, nudged=nudged)}


def _end(case: ControllerInput, reply: AssistantMessage, *, last: bool, nudged: bool) -> State:
    """Return the answer; an empty reply is requested once more, and then counts as empty."""
    text = reply.text
    if reply.unreadable is not None:
        # Text that is a call is not part of the answer.
        text = text.replace(reply.unreadable.written, "")
        _unreadable(case.ctx, reply.unreadable)
    text = text.strip()
    if last and case.ctx.tools_offered:
        case.ctx.rule("budget", "the tools were withdrawn for the last turn", fault=Fault.BUDGET)
    if not is_empty(replace(reply, text=text), case.ctx.log):
        return {"answer": text, "outcome": Outcome.ANSWERED.value}
    if reply.calls or reply.invalid:
        return {"answer": "", "outcome": Outcome.BUDGET.value}
    if nudged:
        return {"answer": "", "outcome": Outcome.UNPARSED.value}
    return {"messages": [user_message([TEXTS["empty"]])], "nudged": True}


def is_last_turn(case: ControllerInput, turn: int) -> bool:
    """Return whether the model must answer now: turns, tool calls or tolerance of repeated calls are used up."""
    meter = case.ctx.meter
    spent = turn >= meter.limits.turns - 1 or not meter.tool_calls_left
    return spent or case.repeats >= MAX_REPEATS or not case.ctx.tools_offered


async def tools(state: State, runtime: Runtime[ControllerInput]) -> State:
    """Run the calls of the last message in parallel and answer each, in order."""
    case = runtime.context
    message = state["messages"][-1]
    assert isinstance(message, AssistantMessage)  # noqa: S101 - the router sends only the model's messages here
    results = await asyncio.gather(*(_call(case, call) for call in message.calls))
    answers: list[ToolMessage | UserMessage] = [*results]
    for unread in message.invalid:
        # The arguments of the call are not a JSON object, or are unusable for any tool.
        wrong = f" ({unread.error[:300]})" if unread.error else ""
        error = ToolError(f"the arguments must be one valid JSON object{wrong}", Fault.BAD_ARGUMENTS)
        answers.append(_not_run(case.ctx, error, unread, unread.written))
    notes = [_unreadable(case.ctx, message.unreadable)] if message.unreadable else []
    notes += [TEXTS["warning"]] if is_last_turn(case, state["turns"] + 1) else []
    if notes and answers:
        # Some servers do not accept a user message after a tool message, so the notes go into the last tool message.
        answers[-1] = replace(answers[-1], parts=(*answers[-1].parts, *notes))
    elif notes:
        answers.append(user_message(notes))
    return {"messages": list(answers)}


async def _call(case: ControllerInput, call: ToolCall) -> ToolMessage:
    """Return the tool output of one call, or a text that says what was wrong."""
    key = json.dumps([call.name, call.args], sort_keys=True, default=str)
    if key in case.made:
        case.repeats += 1
        case.ctx.rule("repeated call", call.name, fault=Fault.LOOP)
        return _failed(TEXTS["repeated_too_often"] if case.repeats >= MAX_REPEATS else TEXTS["repeated"], call)
    case.made.add(key)
    try:
        tool, images, args, repairs = _read(case, call)
    except ToolError as error:
        return _not_run(case.ctx, error, call, call.args)
    repairs = (*call.repairs, *(("tool name",) if call.name != tool.card.name else ()), *repairs)
    # In a style with a `begin`, calls are always written in the text, so this is not reported.
    read_from = "" if isinstance(tool, PublishedTool) and case.ctx.style.begin else call.read_from
    ran = case.ctx.style.ours(tool.card.name)
    if read_from or repairs:
        notes = [f"read from text ({read_from})"] if read_from else []
        notes += [f"repaired: {', '.join(repairs)}"] if repairs else []
        data: dict[str, Json] = {"tool": ran, "read_from": read_from, "repairs": repairs}
        case.ctx.rule(AS_READ, f"{ran}: {'; '.join(notes)}", data)
    if isinstance(tool, PublishedTool):
        wrote = f"{call.name}({json.dumps(call.args, ensure_ascii=False, default=str)})"
        run_args = json_of_args(args)
        facts: dict[str, Json] = {"wrote": {"tool": call.name, "args": dict(call.args)}}
        facts |= {"style": case.ctx.style.name, "ran": {"tool": ran, "images": [*images], "args": run_args}}
        case.ctx.rule(AS_TRAINED, f"{wrote} ran as {ran} on {images[0]}: {json.dumps(run_args)}", facts)
    try:
        finding = await case.ctx.tool(ran, images, args)
    except BudgetSpent as error:
        return _beyond(case.ctx, error, call)
    except NoBackend:
        # The error's message explains how to get weights, which does not help a model.
        return _failed(f"{Fault.TOOL_ERROR.value}: " + TEXTS["not_available"], call)
    except ToolError as error:
        return _failed(f"{error.fault.value}: {error}", call)
    ctx = case.ctx
    if isinstance(tool, PublishedTool) and finding.images and ctx.show != "text":
        case.zoomed.append(finding.images[0].name)
        return ToolMessage(call.id, call.name, ctx.style.result_parts(finding, case.zoomed))
    return ToolMessage(call.id, call.name, finding_parts(finding, images, ctx.show, ctx.frame, ctx.image_registry))


def _read(case: ControllerInput, call: ToolCall) -> tuple[Tool, tuple[str, ...], Args, Sequence[str]]:
    """Return the offered tool of a call, its images, its validated arguments in pixels, and repairs.

    Raises `ToolError`.
    """
    tool = tool_named(call.name, case.ctx.tools_offered)
    if tool is None:
        names = ", ".join(tool.card.name for tool in case.ctx.tools_offered)
        raise ToolError(f"there is no tool {call.name!r}; the tools are: {names}", Fault.UNKNOWN_TOOL)
    frame, registry = case.ctx.frame, case.ctx.image_registry
    if isinstance(tool, PublishedTool):
        image_names = [ref.name for ref in case.prompt.images]
        images, written, repairs = case.ctx.style.read(tool, call, frame, registry, image_names, case.zoomed)
    else:
        images, written, repairs = read_arguments(tool, call.args, frame, registry)
    # Parse with the tool's types first: otherwise a number that is written as text would not be converted, nor would a
    # point that belongs to another image by default.
    args = frame.args_in_pixels(tool, tool.parse(written), registry, images)
    return tool, images, case.ctx.style.enlarged(tool, args) if isinstance(tool, PublishedTool) else args, repairs


def _not_run(ctx: SolverContext, error: ToolError, call: ToolCall | InvalidCall, arguments: Json) -> ToolMessage:
    """Log a call that no tool can run; the call counts like any other, and the model gets the error."""
    try:
        ctx.meter.take_tool_call()
    except BudgetSpent as spent:
        return _beyond(ctx, spent, call)
    ctx.log.note(Step("tool", ctx.style.ours(_name(call)), str(error), fault=error.fault, data={"args": arguments}))
    return _failed(f"{error.fault.value}: {error}", call)


def _beyond(ctx: SolverContext, spent: BudgetSpent, call: ToolCall | InvalidCall) -> ToolMessage:
    ctx.rule("call beyond the budget", _name(call), fault=Fault.BUDGET)
    return _failed(f"not run: {spent}", call)


def _failed(text: str, call: ToolCall | InvalidCall) -> ToolMessage:
    return ToolMessage(call.id, _name(call), (text,), failed=True)


def _name(call: ToolCall | InvalidCall) -> str:
    return call.name if isinstance(call, ToolCall) else call.name or UNNAMED


def _unreadable(ctx: SolverContext, call: UnreadableCall) -> str:
    """Count text that looks like a call but cannot be parsed, and return a note for the model."""
    # On the last turn, no tool call may be left in the budget, but the unreadable call is still a fault.
    with suppress(BudgetSpent):
        ctx.meter.take_tool_call()
    fault = Fault.UNREADABLE_CALL
    text = f"a call of a tool stood in the text of the reply and could not be read ({call.dialect})"
    data = {"args": call.written, "error": call.error, "remedy": remedy(call.dialect)}
    ctx.log.note(Step("tool", UNNAMED, text, fault=fault, data=data))
    return f"{fault.value}: " + TEXTS["unreadable"].format(error=call.error[:200])


def route(state: State) -> str:
    """Return the next node: the model's tool calls, the model if it must continue, or the end."""
    if "outcome" in state:
        return "end"
    last = state["messages"][-1]
    return "tools" if isinstance(last, AssistantMessage) else "model"


async def _routed(state: State) -> str:
    # A coroutine, because LangGraph would run any other function in a thread.
    return route(state)


def build() -> CompiledStateGraph[State, ControllerInput, State, State]:
    """Compile the graph; it has no state, so one graph serves every prompt."""
    from langgraph.graph import END, START, StateGraph

    builder: StateGraph[State, ControllerInput, State, State] = StateGraph(State, context_schema=ControllerInput)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", _routed, {"tools": "tools", "model": "model", "end": END})
    builder.add_edge("tools", "model")
    return builder.compile()


class Controller(Solver):
    """An MLLM with tools."""

    needs_model = True
    needs_live = True
    names_images = True
    offers_tools = True
    texts = TEXTS

    def __init__(self) -> None:
        self.graph = Compiled(build)

    def warm(self) -> None:
        """Start importing LangGraph and compiling the graph, in a thread."""
        self.graph.begin()

    def call_estimate(self, prompt: Prompt, limits: Limits) -> CallEstimate:
        """Estimate the range from an answer without tools to all turns and tool calls; the last turn has no tools."""
        if limits.turns < 2 or not limits.tool_calls:
            return certain(CallPath(1, says=SAID))
        low = CallPath(1, 1, says=SAID)
        usual = CallPath(2, 1 if limits.turns == 2 else 2, 1, SAID)
        high = CallPath(limits.turns, limits.turns - 1, limits.tool_calls, SAID)
        return CallEstimate(low, usual, high, SHARE_WITH_TOOL, ASSUMED)

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Return the model's final text and its outcome."""
        opening: State = {"messages": conversation(prompt, ctx), "turns": 0}
        # A turn has two supersteps; hybrid limits the turns, and this only keeps LangGraph from stopping earlier.
        config: RunnableConfig = {"recursion_limit": 4 * ctx.meter.limits.turns + 10}
        graph = await self.graph.get()
        final = await graph.ainvoke(
            opening, config, context=ControllerInput(prompt, ctx), output_keys=["answer", "outcome"]
        )
        return Reply(final["answer"], Outcome(final["outcome"]))


SOLVER = Controller()
