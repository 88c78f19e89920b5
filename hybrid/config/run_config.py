"""The options of a run as one frozen value: each is declared once, with how it is set and whether it counts.

    RunConfig("blink", data="sample", model="embedded", limits=Limits(turns=4))

`hybrid run --help`, `--config` files, `HYBRID_*` variables, the manifest, the identity and the reference in the docs
are derived from this declaration (`hybrid/config/option.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from hybrid.config.groups import AUTO, Limits, ModelSettings, Objects, RunLimits, ServiceOptions
from hybrid.config.option import (
    IDENTITY,
    IDENTITY_OF_MODEL,
    IDENTITY_OF_SOLVERS,
    NOT_IDENTITY,
    InIdentity,
    SubOptions,
    option,
)
from hybrid.config.words import LOCAL, AnswerForm, Gate, ImageForm, Missing, Parse, Show, ToolOutput
from hybrid.core.errors import UsageError
from hybrid.core.types import Json, Reasoning

# Settings of the second model, which describes images if they are shown as captions, by their fields.
OF_CAPTIONER: Final = SubOptions(
    {"base_url": option("caption-url", "--setting"), "price": option("caption-price", "--setting")}
)
DEFAULT_SOLVERS: Final = ("controller", "mllm", "specialist")
REPLAY_SOLVERS: Final = ("arbiter", "mllm", "specialist")
NOT_AGAIN: Final = "which cannot be asked for again"
SAMPLES_AT_0: Final = "all samples are one; leave out --model-arg temperature=0"
REPEATS_AT_0: Final = "all repetitions are one: add --model-arg temperature=1 (or =null where the model takes none)"


def own_frame(model: str | None) -> str:
    """Return the default coordinate frame in which a model writes (`hybrid/solving/coordinates.py`)."""
    return "fractions" if model == "embedded" else "pixels"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The options of `hybrid run`. The manifest lists those that count in the order of the fields."""

    benchmark: Annotated[str, InIdentity("benchmark")] = field(kw_only=False)
    solvers: Annotated[tuple[str, ...], NOT_IDENTITY, option("--solver")] = field(default=(), kw_only=False)
    split: Annotated[str | None, InIdentity("split"), option("--split")] = None
    tasks: Annotated[tuple[str, ...], InIdentity("tasks"), option("--task")] = ()
    limit: Annotated[int | None, NOT_IDENTITY, option("--limit")] = None
    # Ids of single questions among those that `tasks` and `limit` select.
    only: Annotated[tuple[str, ...], NOT_IDENTITY, option("--only")] = ()
    settings: Annotated[Mapping[str, str], InIdentity("settings"), option("--setting")] = field(default_factory=dict)
    data: Annotated[str, InIdentity("data"), option("--data")] = "hub"
    images_root: Annotated[Path | None, NOT_IDENTITY, option("--images-root")] = None
    model: Annotated[str | None, IDENTITY_OF_MODEL, option("--model")] = field(default=None, kw_only=False)
    model_settings: Annotated[ModelSettings, IDENTITY_OF_MODEL] = field(default_factory=ModelSettings)
    # Models, solvers and tools passed in by Python code; `model`, `solvers` and `tools` name them.
    objects: Annotated[Objects, NOT_IDENTITY] = field(default_factory=Objects)
    protocol: Annotated[Parse, IDENTITY, option("--protocol")] = "strict"
    prompts: Annotated[Path | None, InIdentity("prompts"), option("--prompts")] = None
    format_line: Annotated[bool, InIdentity("prompts"), option("--format-line")] = True
    image_labels: Annotated[bool, InIdentity(of="model"), option("--image-labels")] = True
    # How tools run. A tool's backend, weights, unchecked weights and precision count for the solvers that call it; the
    # format of pictures counts for the run; the rest does not count.
    service: Annotated[ServiceOptions, IDENTITY_OF_SOLVERS] = field(default_factory=lambda: ServiceOptions(device=AUTO))
    tools: Annotated[tuple[str, ...], InIdentity("tools_offered", of="tools_offered"), option("--tools")] = ()
    mcp: Annotated[tuple[str, ...], IDENTITY_OF_SOLVERS, option("--mcp")] = ()
    mcp_images: Annotated[Mapping[str, str], IDENTITY_OF_SOLVERS, option("--mcp-image")] = field(default_factory=dict)
    tool_style: Annotated[str, InIdentity("tool_style", if_given=True, of="tools_offered"), option("--tool-style")] = (
        "plain"
    )
    tool_output: Annotated[ToolOutput, InIdentity(of="tools"), option("--tool-output")] = "real"
    show: Annotated[Show, InIdentity(of="tools"), option("--show")] = "both"
    overlays: Annotated[bool, NOT_IDENTITY, option("--overlays")] = False
    images: Annotated[ImageForm, InIdentity(of="model"), option("--images")] = "separate"
    rotate: Annotated[bool, IDENTITY, option("--rotate")] = False
    # The coordinate frame of the model's replies (`hybrid/solving/coordinates.py`); by default the model's own.
    frame: Annotated[str, InIdentity(of="model"), option("frame", "--model-arg")] = ""
    strict: Annotated[bool, NOT_IDENTITY, option("--strict")] = False
    answer: Annotated[AnswerForm, InIdentity(of="model"), option("answer", "--setting")] = "text"
    # Number of samples of an MLLM's reply, which vote (`hybrid/solving/self_consistency.py`).
    samples: Annotated[int, InIdentity(of="model"), option("samples", "--setting")] = 1
    # Number of repetitions of every solver (`hybrid/core/repetitions.py`).
    repeats: Annotated[int, NOT_IDENTITY, option("repeats", "--setting")] = 1
    # Whether a model is asked to reason before it answers (`hybrid/core/format_lines.py`).
    reasoning: Annotated[Reasoning | None, InIdentity("prompts"), option("reasoning", "--setting")] = None
    captioner: Annotated[
        str | None, InIdentity("captioner", if_given=True, of="model"), option("caption-model", "--setting")
    ] = None
    captioner_settings: Annotated[ModelSettings, InIdentity("captioner", if_given=True, of="model"), OF_CAPTIONER] = (
        field(default_factory=ModelSettings)
    )
    context: Annotated[
        Path | None, InIdentity("context", if_given=True, of="model"), option("context", "--setting")
    ] = None
    context_missing: Annotated[
        Missing, InIdentity("context", if_given=True, of="model"), option("context-missing", "--setting")
    ] = "refuse"
    trust: Annotated[Path | None, InIdentity("trust", of="tools"), option("--trust")] = None
    limits: Annotated[Limits, InIdentity("limits")] = field(default_factory=Limits)
    seed: Annotated[int, IDENTITY, option("--seed")] = 0
    # Questions in flight, over all workers of an engine together.
    concurrency: Annotated[int, NOT_IDENTITY, option("--concurrency")] = 64
    engine: Annotated[str, NOT_IDENTITY, option("--engine")] = LOCAL
    address: Annotated[str | None, NOT_IDENTITY, option("--address")] = None
    out: Annotated[Path | None, NOT_IDENTITY, option("--out")] = None
    # Whether tool outputs are cached on disk; the results are the same.
    cache: Annotated[bool, NOT_IDENTITY, option("--no-cache")] = True
    allow: Annotated[tuple[Gate, ...], NOT_IDENTITY, option("--allow")] = ()
    # The options of `hybrid run` as used, by their long names, for the manifest; empty for a run from Python.
    options_as_used: Annotated[Mapping[str, Json], NOT_IDENTITY] = field(default_factory=dict)
    run_limits: Annotated[RunLimits, NOT_IDENTITY] = field(default_factory=RunLimits)
    trace: Annotated[str | None, NOT_IDENTITY, option("--trace")] = None
    trace_text: Annotated[bool, NOT_IDENTITY, option("--trace-text")] = False

    def __post_init__(self) -> None:
        if not self.frame:
            object.__setattr__(self, "frame", own_frame(self.model))
        for wrong, reason in self._contradictions():
            if wrong:
                raise UsageError(reason)

    @property
    def tracing(self) -> str | None:
        """The name of a plug-in for spans: a word, or the ending of a file."""
        return None if self.trace is None else Path(self.trace).suffix.removeprefix(".") or self.trace

    @property
    def sends_format_line(self) -> bool:
        """Whether prompts end with a format line; the official protocol has none."""
        return self.format_line and self.protocol == "strict"

    def _contradictions(self) -> Iterator[tuple[bool, str]]:
        """Yield pairs of whether options contradict each other, and the message."""
        recorded, likelihood = (self.model or "").startswith("replay:"), self.answer == "likelihood"
        for key, value in (("reasoning", self.reasoning), ("context", self.context), ("caption-model", self.captioner)):
            yield recorded and value is not None, f"--setting {key}: a recorded model was asked as it was recorded"
        captions = (self.captioner or "").startswith("replay:")
        yield captions, f"--setting caption-model={self.captioner}: a recorded model describes no image"
        reasoned = self.reasoning == "first" and likelihood
        yield reasoned, "--setting reasoning=first: likelihoods are of the options alone; nothing is reasoned before"
        texts, policy = self.context is None and self.context_missing != "refuse", self.context_missing
        yield texts, f"--setting context-missing={policy}: give the texts with --setting context=FILE"
        traced = self.trace is not None
        untraced = self.trace_text and not traced
        yield untraced, "--trace-text says what a trace tells: give --trace otlp or --trace FILE.jsonl with it"
        elsewhere = traced and self.engine != LOCAL
        yield elsewhere, f"--trace tells of what this process asks: leave --engine {self.engine} away"
        served = (self.model or "").partition(":")[0] in ("vllm", "sglang", "llamacpp")
        keeps_up = "start it with `hybrid models serve` and give --model openai:NAME --base-url URL"
        yield served and self.engine != LOCAL, f"--engine {self.engine}: each worker would start a server: {keeps_up}"
        answers = self.trace_text and self.tool_output == "oracle"
        yield answers, "--trace-text: what --tool-output oracle tells a model are the answers: leave one away"
        cold = self.model_settings.temperature == 0
        samples, repeats = (self.samples, cold, SAMPLES_AT_0), (self.repeats, cold and self.model, REPEATS_AT_0)
        for key, (times, deterministic, at_0) in (("samples", samples), ("repeats", repeats)):
            wrong, more = f"--setting {key}={times}", times != 1
            yield times < 1, f"{wrong}: at least 1"
            yield more and recorded, f"{wrong}: a recorded model has one reply to a question, {NOT_AGAIN}"
            same = f"{wrong}: likelihoods are the same every time"
            yield more and likelihood, f"{same}; give one of answer=likelihood and {key}"
            yield more and bool(deterministic), f"{wrong}: at temperature 0 {at_0}"
