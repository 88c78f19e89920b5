"""The controller for `langgraph dev` and Studio: a question as JSON in, an answer and its steps out.

    uv run --group dev langgraph dev --no-browser      then POST /runs/wait with the input below

    {"question": "Which point is closer?", "choices": ["A is closer", "B is closer"], "images": ["<base64>"]}

The kit that `run.py` builds for a benchmark is replaced by a default one: real tools, the default budgets, and the
model named in `$HYBRID_MODEL` (`embedded`, a small demonstration model, when it is not set).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from graphs.controller import SOLVER
from hybrid.benchmarks.base import show
from hybrid.errors import DataError
from hybrid.images import ImageStore, home
from hybrid.models import ModelSettings, open_model
from hybrid.prompts import Wording
from hybrid.registry import load, names
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ServiceOptions, ToolService
from hybrid.solving.controls import Control
from hybrid.solving.kit import Limits
from hybrid.solving.session import Resources, Session
from hybrid.tool import Tool
from hybrid.types import LETTERS, Json, Kind, Outcome, Prompt, Question
from hybrid.weights import ABSENT, backends_in_use


class Input(TypedDict, total=False):
    """A question. `choices` may be left out; `images` are base64 of image files."""

    question: str
    choices: list[str]
    images: list[str]


class Output(TypedDict, total=False):
    """The reply, how it ended, and every model and tool call."""

    answer: str
    outcome: str
    steps: list[dict[str, Json]]


class State(Input, Output):
    """Input and output together."""


async def solve(state: State) -> Output:
    """Ask the controller once. An image that cannot be used is an outcome, `broken`, and not an error of the server."""
    try:
        # The server refuses work on its event loop that waits for a disk.
        question, prompt, resources = await asyncio.to_thread(_prepare, state)
    except DataError as error:
        return {"answer": "", "outcome": Outcome.BROKEN.value, "steps": [{"kind": "rule", "text": str(error)}]}
    service, model = resources.control.service, resources.model
    try:
        reply = await Session(question, SOLVER, resources).ask(prompt)
    finally:
        service.close()
        if model is not None:
            await model.close()
    steps: list[dict[str, Json]] = [
        {"kind": step.kind, "name": step.name, "text": step.text, "fault": step.fault, "seconds": step.seconds}
        for step in reply.steps
    ]
    return {"answer": reply.text, "outcome": reply.outcome.value, "steps": steps}


def _prepare(state: State) -> tuple[Question, Prompt, Resources]:
    """What an ask needs. Raises `DataError` for an image that cannot be used."""
    store = ImageStore(home() / "images")
    stored = [store.put(_bytes(text, place), f"image {place}") for place, text in enumerate(state.get("images", []), 1)]
    choices = tuple(state.get("choices", []))
    text = "\n".join(
        [state["question"], *(f"({letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False))]
    )
    kind = Kind.CHOICE if choices else Kind.FREE
    prompt = Prompt((text, *show(stored)), kind, choices)
    question = Question("studio", "", tuple(stored), text, kind, choices)
    service = ToolService(store, FindingCache(home() / "findings", store), ServiceOptions())
    model = open_model(os.environ.get("HYBRID_MODEL", "embedded"), ModelSettings(), store)
    tools: list[Tool] = [load("tools", name) for name in names("tools")]
    in_use = backends_in_use(tools, "auto", {})
    menu = tuple(tool for tool in tools if in_use[tool.card.name] != ABSENT)
    return question, prompt, Resources(model, Control(service), menu, Wording(), Limits())


def _bytes(text: str, place: int) -> bytes:
    try:
        return base64.b64decode(text.partition("base64,")[2] or text, validate=True)
    except binascii.Error as error:
        raise DataError(f"image {place} is not base64 ({error})") from error


builder = StateGraph(State, input_schema=Input, output_schema=Output)
builder.add_node("controller", solve)
builder.add_edge(START, "controller")
builder.add_edge("controller", END)
graph = builder.compile()
