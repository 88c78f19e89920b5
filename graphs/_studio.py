"""The controller for `langgraph dev` and Studio: a question and its images in, the answer and how it came about out.

    uv run --group dev langgraph dev --no-browser      then POST /runs/wait with the input below

    {"question": "Which point is closer?", "choices": ["A is closer", "B is closer"], "image_paths": ["room.png"]}

`read` makes a prompt of the input (`_studio_input.py`: a form, or a chat with uploaded images); `model` and `tools` are
the controller's own nodes, and its router leads from one to the next. The kit that a run builds for a benchmark is
replaced by a default one: real tools, the default budgets, and the model named in `$HYBRID_MODEL` (`embedded`, a small
demonstration model, when it is not set).
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from pydantic import Field

from graphs import controller
from graphs._drawn_messages import drawn_message
from graphs._studio_input import Asked, Input, read_input
from hybrid.errors import DataError
from hybrid.images import ImageStore, home
from hybrid.messages import Message
from hybrid.models import ModelSettings, open_model, own_frame
from hybrid.prompts import Wording
from hybrid.registry import load, names
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ServiceOptions, ToolService
from hybrid.solving.controls import Control
from hybrid.solving.frames import frame_named
from hybrid.solving.kit import Limits
from hybrid.solving.session import Resources, Session
from hybrid.tool import Tool
from hybrid.types import Json, Outcome, Step
from hybrid.weights import ABSENT, backends_in_use

MOST_OPEN = 64
"""Questions whose budget and images are kept in memory; the one that was asked longest ago makes room."""


class Output(Input, total=False):
    """The answer, how it ended, what the tools found, and the conversation."""

    answer: Annotated[str, Field(description="The model's final words.")]
    outcome: Annotated[str, Field(description="How it ended: answered, unparsed, budget, or broken (never asked).")]
    problem: Annotated[str, Field(description="Why the question could not be asked; empty where it was.")]
    findings: Annotated[
        list[dict[str, Json]],
        Field(description="Each tool call in order: tool, images, args, text, data, confidence, backend, fault."),
    ]


class State(Output, total=False):
    """Input and output, and where the conversation stands; the conversation itself stays in memory."""

    ask: str
    said: int
    turns: int
    nudged: bool


@dataclass
class Ask:
    """A question that is open: what the controller's nodes share, and all that was said so far."""

    case: controller.Case
    messages: list[Message]
    store: ImageStore


_open: OrderedDict[str, Ask] = OrderedDict()
_resources: WeakKeyDictionary[asyncio.AbstractEventLoop, Resources] = WeakKeyDictionary()
"""Model and tools; connections of a model belong to an event loop."""


async def read(state: State) -> State:
    """Read the input. What cannot be used is an outcome, `broken`, and not an error of the server."""
    # Empty again for the next question of the same thread, which may come as a message.
    fresh: State = {"question": "", "choices": [], "images": [], "image_paths": [], "findings": [], "answer": ""}
    fresh |= {"problem": "", "outcome": "", "turns": 0, "nudged": False, "said": 0, "ask": ""}
    store = ImageStore(home() / "images")
    try:
        # The server refuses work on its event loop that waits for a disk.
        asked = await asyncio.to_thread(read_input, state, store)
    except DataError as error:
        said = f"The question was not asked. {error}"
        return {**fresh, "problem": str(error), "outcome": Outcome.BROKEN.value, "messages": [AIMessage(said)]}
    ask = await _begin(asked, store)
    key = uuid.uuid4().hex
    _open[key] = ask
    while len(_open) > MOST_OPEN:
        _open.popitem(last=False)
    return {**fresh, "ask": key, "said": len(ask.messages), "messages": [asked.drawn] if asked.drawn else []}


async def _begin(asked: Asked, store: ImageStore) -> Ask:
    loop = asyncio.get_running_loop()
    if loop not in _resources:
        made = await asyncio.to_thread(_made, store)
        # Another question may have been first.
        _resources.setdefault(loop, made)
    kit = await Session(asked.question, controller.SOLVER, _resources[loop]).kit(asked.prompt)
    return Ask(controller.Case(asked.prompt, kit), controller.conversation(asked.prompt, kit), store)


def _made(store: ImageStore) -> Resources:
    """What every ask of an event loop shares. Raises `UsageError` for a model that cannot be had."""
    name = os.environ.get("HYBRID_MODEL") or "embedded"
    tools: list[Tool] = [load("tools", tool) for tool in names("tools")]
    in_use = backends_in_use(tools, "auto", {})
    menu = tuple(tool for tool in tools if in_use[tool.card.name] != ABSENT)
    service = ToolService(store, FindingCache(home() / "findings", store), ServiceOptions())
    model = open_model(name, ModelSettings(), store)
    return Resources(model, Control(service), menu, Wording(), Limits(), frame=frame_named(own_frame(name)))


async def close() -> None:
    """Close what the asks of this event loop share; what is asked next opens it anew."""
    shared = _resources.pop(asyncio.get_running_loop(), None)
    if shared is not None:
        shared.control.service.close()
        if shared.model is not None:
            await shared.model.close()


async def model(state: State) -> State:
    """The controller's `model`."""
    ask = _ask(state)
    return await _taken(state, ask, await controller.model(_position(state), Runtime(context=ask.case)))


async def tools(state: State) -> State:
    """The controller's `tools`."""
    ask = _ask(state)
    return await _taken(state, ask, await controller.tools(_position(state), Runtime(context=ask.case)))


def _ask(state: State) -> Ask:
    """The open question of a state. Raises `DataError` when it is kept no longer."""
    ask = _open.get(state["ask"])
    if ask is None:
        raise DataError("this question is no longer open (the server was started anew): send it again")
    if len(ask.messages) > state["said"]:
        # Studio goes on from an earlier step: what was called after it was not called yet.
        del ask.messages[state["said"] :]
        ask.case.made.clear()
        ask.case.repeats = 0
    return ask


def _position(state: State) -> controller.State:
    """Where the conversation stands, as the controller's own nodes and router take it."""
    ask = _open.get(state["ask"])
    at: controller.State = {"messages": list(ask.messages[: state["said"]]) if ask else [], "turns": state["turns"]}
    at["nudged"] = state["nudged"]
    return {**at, "outcome": state["outcome"]} if state["outcome"] else at


async def _taken(state: State, ask: Ask, step: controller.State) -> State:
    """What a node of the controller gave, as an update of the state."""
    said = list(step.pop("messages", []))
    ask.messages += said
    steps = ask.case.kit.log.steps
    found = [_finding(one) for one in steps if one.kind == "tool"]
    steps.clear()
    drawn = await asyncio.to_thread(_drawn, said, ask.store)
    new: State = {"messages": drawn, "said": len(ask.messages), "findings": [*state["findings"], *found]}
    return cast("State", {**step, **new})


def _drawn(said: Sequence[Message], store: ImageStore) -> list[AnyMessage]:
    return [drawn_message(message, store) for message in said]


def _finding(step: Step) -> dict[str, Json]:
    """A tool call as it is shown: what was asked, what was found, or the fault."""
    fault = step.fault.value if step.fault else None
    return {"tool": step.name, "text": step.text, "fault": fault, "seconds": step.seconds, **step.data}


async def _routed(state: State) -> str:
    return controller.route(_position(state))


builder = StateGraph(State, input_schema=Input, output_schema=Output)
builder.add_node("read", read)
builder.add_node("model", model)
builder.add_node("tools", tools)
builder.add_edge(START, "read")
builder.add_conditional_edges("read", _routed, {"model": "model", "end": END})
builder.add_conditional_edges("model", _routed, {"tools": "tools", "model": "model", "end": END})
builder.add_edge("tools", "model")
graph = builder.compile()
