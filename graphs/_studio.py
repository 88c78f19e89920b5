"""The controller for `langgraph dev` and Studio: it takes a chat about images and returns the chat with the tool calls.

    uv run --group dev langgraph dev --no-browser      then POST /runs/wait with the input below

    {"messages": [{"role": "user", "content": "Which point is closer to the camera?"}], "image_paths": ["room.png"]}

The last message is the question; its lines (A) ..., (B) ... are options. The context that a run builds for a benchmark
is replaced by a default one: every tool that has a backend here, the default budgets, and the model named in
`$HYBRID_MODEL` at `$HYBRID_BASE_URL` (by default `embedded`, a small demonstration model).
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.messages import ToolMessage as Result
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from graphs import controller
from hybrid.benchmarks.base import show
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore, home
from hybrid.core.messages import AssistantMessage, Message, ToolMessage, parts_of
from hybrid.core.types import LETTERS, Kind, Outcome, Prompt, Question
from hybrid.models import open_model
from hybrid.plugins.registry import load_each
from hybrid.plugins.weights import ABSENT, backends_in_use
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.coordinates import CoordinateSystem, frame_named
from hybrid.solving.session import AskSetup, Session

# Environment variable with the folder of permitted images; by default the server's working directory.
FOLDER = "HYBRID_STUDIO_IMAGES"
OPTION = re.compile(r"^\(([A-Z])\)\s+(\S.*)$", re.MULTILINE)


class StudioState(TypedDict, total=False):
    """Input: a chat whose last message is the question, and image files. Output: the final text and the outcome."""

    messages: Annotated[list[AnyMessage], add_messages]
    image_paths: list[str]
    answer: str
    outcome: str


_opening = asyncio.Lock()


@cache
def shared() -> AskSetup:
    """Return the model and tools shared by all questions. Raises `UsageError` for an unavailable model."""
    name, store = os.environ.get("HYBRID_MODEL") or "embedded", ImageStore(home() / "images")
    tools = [tool for _, tool in load_each("tools")]
    in_use = backends_in_use(tools, "auto", {})
    tools_offered = tuple(tool for tool in tools if in_use[tool.card.name] != ABSENT)
    control = ToolCondition(CachedTools(store, FindingCache(home() / "findings", store), ServiceOptions()))
    # The address in `$HYBRID_BASE_URL` is only used for a model that has a server.
    has_server = name.partition(":")[0] not in ("embedded", "hf", "replay")
    url = os.environ.get("HYBRID_BASE_URL") if has_server else None
    model = open_model(name, ModelSettings(base_url=url or None), store)
    config = RunConfig("", model=name)
    frame = CoordinateSystem(frame_named(config.frame).name, config.model_settings.max_pixels)
    return AskSetup(config, model, control, tools_offered, frame=frame)


def question(state: Mapping[str, Any], store: ImageStore) -> Question:
    """Return the question of a state; its images are the files, then the uploads of the last message that has any.

    Raises:
        DataError: there is no question, or an unusable image.
    """
    chat = [list(message.content_blocks) for message in state.get("messages", ()) if isinstance(message, HumanMessage)]
    text = "\n".join(block["text"] for block in (chat or [[]])[-1] if block["type"] == "text").strip()
    if not text:
        raise DataError("no question: send a message with text")
    uploads = ([block for block in blocks if block["type"] != "text"] for blocks in reversed(chat))
    files = [(path, _file(path)) for path in state.get("image_paths", ())]
    for place, block in enumerate(next(filter(None, uploads), []), 1):
        data = block.get("base64") or block.get("url", "").partition(";base64,")[2]
        if block["type"] != "image" or not data:
            raise DataError("only uploaded images are read, nothing is fetched from an address")
        try:
            files.append((f"upload {place}", base64.b64decode(data, validate=True)))
        except ValueError as error:
            raise DataError(f"an upload is not base64 ({error})") from None
    stored = tuple(store.put(data, location) for location, data in files)
    letters, options = zip(*OPTION.findall(text), strict=True) if OPTION.search(text) else ((), ())
    choices = options if len(options) > 1 and letters == tuple(LETTERS[: len(letters)]) else ()
    return Question("studio", "", stored, text, Kind.CHOICE if choices else Kind.FREE, choices)


def _file(path: str) -> bytes:
    """Return the bytes of a file. Raises `DataError` for a path outside the folder, whether or not the file exists."""
    folder = Path(os.environ.get(FOLDER) or ".").resolve()
    try:
        place = (folder / path).resolve()
        if not place.is_relative_to(folder):
            raise DataError(f"image_paths: {path!r} is outside {folder}, the folder that {FOLDER} names")
        return place.read_bytes()
    except (OSError, ValueError) as error:
        raise DataError(f"image_paths: {path!r} cannot be read ({error})") from None


async def ask(state: StudioState) -> StudioState:
    """Put the question to the controller; an unusable input ends as `broken`, with the reason in text."""
    # Use threads, because the server forbids blocking its event loop; the lock avoids opening the model twice.
    async with _opening:
        resources = await asyncio.to_thread(shared)
    try:
        task = await asyncio.to_thread(question, state, resources.control.service.store)
    except DataError as error:
        message = AIMessage(f"The question was not asked. {error}")
        return {"messages": [message], "answer": "", "outcome": Outcome.BROKEN.value, "image_paths": []}
    prompt = Prompt((task.text, *show(task.images)), task.kind, task.choices)
    ctx = await Session(task, controller.SOLVER, resources).ctx(prompt)
    opening = controller.conversation(prompt, ctx)
    entered: controller.State = {"messages": opening, "turns": 0}
    limit: RunnableConfig = {"recursion_limit": 4 * ctx.meter.limits.turns + 10}
    final = await _controller.ainvoke(entered, limit, context=controller.ControllerInput(prompt, ctx))
    messages = [_studio_message(message) for message in final["messages"][len(opening) :]]
    # Clear the paths, so that the next question of the thread does not reuse them.
    return {"messages": messages, "answer": final["answer"], "outcome": final["outcome"], "image_paths": []}


def _studio_message(message: Message) -> AnyMessage:
    """Return a message of the controller's conversation for Studio, with tool pictures shown by name."""
    text = "\n".join(part if isinstance(part, str) else f"[{part.ref.name}]" for part in parts_of(message))
    if isinstance(message, AssistantMessage):
        return AIMessage(text, tool_calls=[{"name": c.name, "args": dict(c.args), "id": c.id} for c in message.calls])
    if isinstance(message, ToolMessage):
        return Result(text, tool_call_id=message.call, name=message.name)
    return SystemMessage(text)


_controller = controller.build()
graph = StateGraph(StudioState).add_node("controller", ask).add_edge(START, "controller").compile()
