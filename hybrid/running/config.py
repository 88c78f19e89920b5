"""The options of a run as one frozen value, and which of them make two runs different.

`identity` excludes how much is run and how fast (limit, concurrency, engine, the list of solvers): a run can be
extended by those. Everything else stands in the manifest, and a run that is continued with another value is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hybrid.benchmarks.base import Parse
from hybrid.messages import Show
from hybrid.models.base import ModelSettings
from hybrid.solving.budgets import RunLimits
from hybrid.solving.controls import ToolOutput
from hybrid.solving.kit import ImageForm, Limits
from hybrid.solving.session import AnswerForm
from hybrid.types import Json

DEFAULT_SOLVERS = ("controller", "mllm", "specialist")
REPLAY_SOLVERS = ("arbiter", "mllm", "specialist")


@dataclass(frozen=True)
class RunConfig:
    """What `hybrid run` was asked for."""

    benchmark: str
    solvers: tuple[str, ...] = ()
    model: str | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    data: str = "hub"
    split: str | None = None
    tasks: tuple[str, ...] = ()
    limit: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    concurrency: int = 64
    out: Path | None = None
    tools: tuple[str, ...] = ()
    tool_output: ToolOutput = "real"
    show: Show = "both"
    images: ImageForm = "separate"
    frame: str = "pixels"
    rotate: bool = False
    prompts: Path | None = None
    backend: Literal["auto", "learned", "classical"] = "auto"
    weights: Mapping[str, str] = field(default_factory=dict)
    unchecked_weights: bool = False
    """Take learned weights without their known-answer images."""
    device: str = "auto"
    cache: bool = True
    """Whether findings are read from disk and kept there; what is found is the same."""
    tool_memory_gb: float | None = None
    trust: Path | None = None
    format_line: bool = True
    image_labels: bool = True
    """Whether a solver that needs no names shows each image under one."""
    protocol: Parse = "strict"
    """The parse that decides a verdict; `official` also sends the papers' wording, without our format line."""
    limits: Limits = field(default_factory=Limits)
    allow: tuple[str, ...] = ()
    run_limits: RunLimits = field(default_factory=RunLimits)
    answer: AnswerForm = "text"


def digest(identity: Mapping[str, Json]) -> str:
    """A short name for a configuration: the default `--out` is derived from it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]
