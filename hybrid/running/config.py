"""The options of a run as one frozen value; each says of itself whether it makes two runs different.

How much is run and how fast (limit, concurrency, engine, the list of solvers) does not: a run can be extended by those.
Everything else counts: it is in the manifest, and a run that is continued with another value is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_type_hints

from hybrid.benchmarks.base import Parse
from hybrid.errors import UsageError
from hybrid.messages import Show
from hybrid.models import own_frame
from hybrid.models.base import ModelSettings
from hybrid.prompts import Reasoning
from hybrid.serving.loader import AUTO
from hybrid.serving.service import ServiceOptions
from hybrid.solving.budgets import RunLimits
from hybrid.solving.context import Missing
from hybrid.solving.controls import ToolOutput
from hybrid.solving.session import AnswerForm
from hybrid.solving.solver import ImageForm, Limits
from hybrid.types import Json

EngineName = Literal["local", "ray"]

DEFAULT_SOLVERS = ("controller", "mllm", "specialist")
REPLAY_SOLVERS = ("arbiter", "mllm", "specialist")
LONGEST_MODEL = 40
"""Characters of a model's name in that of a folder."""


Concern = Literal["all", "model", "tools", "tools_offered"]
"""Solvers: all of them, those that ask a model, that may call tools, or that offer a model the menu."""


@dataclass(frozen=True)
class Counts:
    """The key of the identity that an option decides: with the fact that was resolved from it, or as it is."""

    key: str = ""
    """Of the resolved fact; empty where the value itself is under the option's own name."""
    if_given: bool = False
    """Whether only another value than the default counts: a run without the option is what it was before there was one.
    """
    of: Concern = "all"
    """The solvers whose answers it can change."""


AS_IS: Final = Counts()
OF_MODEL: Final = Counts("model", of="model")
OF_SOLVERS: Final = "solvers"
"""Marks an option that counts for the solvers that it concerns: the manifest has what it decides with each of these."""
FREE: Final = None
"""Marks an option that a run can be continued with at another value."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What `hybrid run` was asked for. The order of the fields that count is the order of the manifest."""

    benchmark: Annotated[str, Counts("benchmark")] = field(kw_only=False)
    solvers: Annotated[tuple[str, ...], FREE] = field(default=(), kw_only=False)
    split: Annotated[str | None, Counts("split")] = None
    tasks: Annotated[tuple[str, ...], Counts("tasks")] = ()
    limit: Annotated[int | None, FREE] = None
    settings: Annotated[Mapping[str, str], Counts("settings")] = field(default_factory=dict)
    data: Annotated[str, Counts("data")] = "hub"
    model: Annotated[str | None, OF_MODEL] = field(default=None, kw_only=False)
    model_settings: Annotated[ModelSettings, OF_MODEL] = field(default_factory=ModelSettings)
    client: Annotated[Any, FREE] = None
    """The LangChain model that is called `model`, where Python code hands one in; what it is counts under `model`."""
    protocol: Annotated[Parse, AS_IS] = "strict"
    """The parse that decides a verdict; `official` also sends the papers' wording, without our format line."""
    prompts: Annotated[Path | None, Counts("prompts")] = None
    format_line: Annotated[bool, Counts("prompts")] = True
    image_labels: Annotated[bool, Counts(of="model")] = True
    """Whether a solver that needs no names shows each image under one."""
    service: Annotated[ServiceOptions, OF_SOLVERS] = field(default_factory=lambda: ServiceOptions(device=AUTO))
    """How tools run. Which backend and weights answer for a tool counts for the solvers that call it, and whether these
    go unchecked; how pictures are stored counts for the run; the rest does not."""
    tools: Annotated[tuple[str, ...], Counts("tools_offered", of="tools_offered")] = ()
    mcp: Annotated[tuple[str, ...], OF_SOLVERS] = ()
    """Other MCP servers whose tools a model is offered, `NAME=URL` or `NAME=COMMAND` (`integrations/mcp/client.py`)."""
    mcp_images: Annotated[Mapping[str, str], OF_SOLVERS] = field(default_factory=dict)
    """By the name of a foreign tool which of its arguments take an image, and how."""
    tool_output: Annotated[ToolOutput, Counts(of="tools")] = "real"
    show: Annotated[Show, Counts(of="tools")] = "both"
    images: Annotated[ImageForm, Counts(of="model")] = "separate"
    rotate: Annotated[bool, AS_IS] = False
    frame: Annotated[str, Counts(of="model")] = ""
    """The coordinate system of the model's replies (`hybrid/solving/coordinates.py`); by default the model's own."""
    answer: Annotated[AnswerForm, Counts(of="model")] = "text"
    samples: Annotated[int, Counts(of="model")] = 1
    """How often an MLLM is asked, and its answers vote (`hybrid/solving/self_consistency.py`)."""
    repeats: Annotated[int, FREE] = 1
    """How often every solver is asked everything (`hybrid/repeats.py`)."""
    reasoning: Annotated[Reasoning | None, Counts("prompts")] = None
    """Whether a model is asked to reason before it answers (`hybrid/prompts.py`)."""
    captioner: Annotated[str | None, Counts("captioner", if_given=True, of="model")] = None
    """The model that describes images where they are shown as captions (`hybrid/solving/captions.py`)."""
    captioner_settings: Annotated[ModelSettings, Counts("captioner", if_given=True, of="model")] = field(
        default_factory=ModelSettings
    )
    context: Annotated[Path | None, Counts("context", if_given=True, of="model")] = None
    """A file of texts that are shown beside the images (`hybrid/solving/context.py`)."""
    context_missing: Annotated[Missing, Counts("context", if_given=True, of="model")] = "refuse"
    trust: Annotated[Path | None, Counts("trust", of="tools")] = None
    limits: Annotated[Limits, Counts("limits")] = field(default_factory=Limits)
    seed: Annotated[int, AS_IS] = 0
    concurrency: Annotated[int, FREE] = 64
    engine: Annotated[EngineName, FREE] = "local"
    """Who asks: this process, or the workers of a Ray cluster. `concurrency` is of all of them together."""
    address: Annotated[str | None, FREE] = None
    """Of the cluster; one of this machine where none is given."""
    out: Annotated[Path | None, FREE] = None
    cache: Annotated[bool, FREE] = True
    """Whether findings are read from disk and kept there; what is found is the same."""
    allow: Annotated[tuple[str, ...], FREE] = ()
    given: Annotated[Mapping[str, Json], FREE] = field(default_factory=dict)
    """The options of `hybrid run` as used, by their long names, for the manifest; empty where nobody typed any."""
    run_limits: Annotated[RunLimits, FREE] = field(default_factory=RunLimits)
    trace: Annotated[str | None, FREE] = None
    """Where spans go: `otlp`, or a file that ends in `.jsonl` (`hybrid/tracing/`)."""
    trace_text: Annotated[bool, FREE] = False
    """Whether they tell what was asked and answered."""

    def __post_init__(self) -> None:
        if not self.frame:
            object.__setattr__(self, "frame", own_frame(self.model))
        self._check_asking()
        self._check_trace()
        if self.samples != 1:
            self._check_again("samples", self.samples, "all samples are one; leave out --model-arg temperature=0")
        if self.repeats != 1:
            self._check_again(
                "repeats",
                self.repeats,
                "all repetitions are one: add --model-arg temperature=1 (or =null where the model takes none)",
                asks_model=self.model is not None,
            )

    def _check_asking(self) -> None:
        """Raise `UsageError` where a model cannot be asked as the settings say."""
        if (self.model or "").startswith("replay:"):
            given = {"reasoning": self.reasoning, "context": self.context, "caption-model": self.captioner}
            if useless := [name for name, value in given.items() if value is not None]:
                raise UsageError(f"--setting {useless[0]}: a recorded model was asked as it was recorded")
        if (self.captioner or "").startswith("replay:"):
            raise UsageError(f"--setting caption-model={self.captioner}: a recorded model describes no image")
        if self.reasoning == "first" and self.answer == "likelihood":
            raise UsageError(
                "--setting reasoning=first: likelihoods are of the options alone; nothing is reasoned before"
            )
        if self.context is None and self.context_missing != "refuse":
            raise UsageError(
                f"--setting context-missing={self.context_missing}: give the texts with --setting context=FILE"
            )

    @property
    def tracing(self) -> str | None:
        """The name under which a keeper of spans is offered: a word, or how a file ends."""
        return None if self.trace is None else Path(self.trace).suffix.removeprefix(".") or self.trace

    def _check_trace(self) -> None:
        """Raise `UsageError` for a trace that cannot be made, or that would tell what nobody may be told."""
        if self.trace is None:
            if self.trace_text:
                raise UsageError(
                    "--trace-text says what a trace tells: give --trace otlp or --trace FILE.jsonl with it"
                )
            return
        if self.engine == "ray":
            raise UsageError("--trace tells of what this process asks: leave --engine ray away")
        if self.trace_text and self.tool_output == "oracle":
            raise UsageError("--trace-text: what --tool-output oracle tells a model are the answers: leave one away")

    def _check_again(self, key: str, value: int, at_zero: str, *, asks_model: bool = True) -> None:
        """Raise `UsageError` where a model would give the same answer whenever it is asked."""
        wrong = f"--setting {key}={value}"
        if value < 1:
            raise UsageError(f"{wrong}: at least 1")
        if (self.model or "").startswith("replay:"):
            raise UsageError(f"{wrong}: a recorded model has one reply to a question, which cannot be asked for again")
        if self.answer == "likelihood":
            raise UsageError(f"{wrong}: likelihoods are the same every time; give one of answer=likelihood and {key}")
        if asks_model and self.model_settings.temperature == 0:
            raise UsageError(f"{wrong}: at temperature 0 {at_zero}")


def identity_of(config: RunConfig, facts: Mapping[str, Json]) -> dict[str, Json]:
    """What makes a run this one: every option that counts, under its key, in the order of the fields.

    Args:
        config: the options.
        facts: what was resolved, by the keys that the options name; others are ignored.

    Raises:
        KeyError: an option names a fact that was not resolved.
    """
    found: dict[str, Json] = {}
    for name, hint in get_type_hints(RunConfig, include_extras=True).items():
        (counts,) = hint.__metadata__
        if isinstance(counts, Counts) and not (counts.if_given and getattr(config, name) == getattr(_PLAIN, name)):
            found[counts.key or name] = facts[counts.key] if counts.key else getattr(config, name)
    return found


def concerning(identity: Mapping[str, Json], concerns: Collection[Concern]) -> dict[str, Json]:
    """The part of an identity that can change the answers of a solver of these kinds, beside the tools in its entry."""
    of = {
        hint.__metadata__[0].key or name: hint.__metadata__[0].of
        for name, hint in get_type_hints(RunConfig, include_extras=True).items()
        if isinstance(hint.__metadata__[0], Counts)
    }
    found = {key: value for key, value in identity.items() if of.get(key, "all") in concerns}
    if isinstance(limits := found.get("limits"), Mapping) and "tools" not in concerns:
        found["limits"] = {name: limit for name, limit in limits.items() if name != "tool_calls"}
    return found


_PLAIN: Final = RunConfig("")
"""Every option at its default."""


def folder_name(identity: Mapping[str, Json]) -> str:
    """The default name of a run's folder: benchmark, model and control, then what tells it from all others.

    `blink-gpt-4o-1a2b3c4d5e`, `blink-gpt-4o-blank-1a2b3c4d5e`, and `blink-1a2b3c4d5e` without a model.
    """
    model = identity["model"]
    name = model.get("model") if isinstance(model, Mapping) else None
    control = identity["tool_output"]
    parts = (
        identity["benchmark"],
        short_name(name) if isinstance(name, str) else "",
        "" if control == _PLAIN.tool_output else control,
        digest(identity),
    )
    return "-".join(str(part) for part in parts if part)


def short_name(model: str) -> str:
    """What a model is called among others, as part of a folder's name: `gpt-4o` of `openai:gpt-4o`.

    Of a path and of `owner/name` it is the last part. Letters, digits and `._-` stay; it is at most 40 characters long.
    """
    provider, colon, rest = model.partition(":")
    last = (rest if colon else provider).rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last)[:LONGEST_MODEL].strip("-._")


def digest(identity: Mapping[str, Json]) -> str:
    """A short name for a configuration: the default `--out` is derived from it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]
