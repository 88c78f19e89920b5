"""The options of `hybrid.run` by name, for editors and type checkers; a test compares them with `RunConfig`.

A mapping corresponds to KEY=VALUE words on the command line, a list to a repeated option. `None` leaves an option out.
`help(hybrid.run)` describes each one, from its declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from hybrid.config.words import (
    Backends,
    Dtypes,
    ImageForm,
    Parse,
    Pictures,
    Show,
    Streaming,
    Thoughts,
    ToolCalling,
    ToolOutput,
)
from hybrid.core.types import Json

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from hybrid.solving.solver import Solver
    from hybrid.tool import Tool

# Options whose name in Python differs from that of the command line.
RENAMED: Final = {"solvers": "solver"}


class RunKeywords(TypedDict, total=False):
    """The options of a run, then the command's other options: sources of options, and the scoring of answers."""

    solvers: str | Solver | Sequence[str | Solver] | None
    split: str | None
    task: str | Sequence[str] | None
    limit: int | None
    setting: Mapping[str, Json] | None
    data: str | None
    images_root: str | Path | None
    model: str | BaseChatModel | None
    base_url: str | None
    image_detail: str | None
    max_pixels: int | None
    wait_for_server: str | None
    server_arg: Mapping[str, Json] | None
    batch: bool | None
    batch_wait: str | None
    batch_tail: int | None
    reasoning_effort: str | None
    reasoning: Thoughts | None
    stream: Streaming | None
    max_tokens: int | None
    model_arg: Mapping[str, Json] | None
    tool_calling: ToolCalling | None
    keep_pictures: str | None
    protocol: Parse | None
    prompts: str | Path | None
    format_line: bool | None
    image_labels: bool | None
    backend: Backends | None
    weights: str | Mapping[str, Json] | None
    device: str | None
    tool_memory: float | None
    unchecked_weights: bool | None
    tool_dtype: Dtypes | None
    tool_compile: bool | None
    pictures: Pictures | None
    tool_gpu: float | None
    max_load_seconds: float | None
    tools: str | Tool | Sequence[str | Tool] | None
    mcp: str | Sequence[str] | None
    mcp_image: Mapping[str, Json] | None
    tool_style: str | None
    tool_output: ToolOutput | None
    show: Show | None
    overlays: bool | None
    images: ImageForm | None
    rotate: bool | None
    strict: bool | None
    trust: str | Path | None
    max_tool_calls: int | None
    max_turns: int | None
    max_seconds: float | None
    max_total_tokens: int | None
    max_cost: float | None
    seed: int | None
    concurrency: int | None
    engine: str | None
    address: str | None
    out: str | Path | None
    no_cache: bool | None
    allow: str | Sequence[str] | None
    run_max_calls: int | None
    run_max_tokens: int | None
    run_max_seconds: float | None
    run_max_cost: float | None
    trace: str | None
    trace_text: bool | None
    config: str | Path | None
    path: str | Path | Sequence[str | Path] | None
    unanswered: Literal["wrong", "guess"] | None
    allow_failed: bool | None
    verbose: bool | None
    quiet: bool | None
    debug: bool | None
