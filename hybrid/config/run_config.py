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
    ASK,
    IDENTITY,
    IDENTITY_OF_MODEL,
    IDENTITY_OF_SOLVERS,
    LIMITS,
    MODEL,
    NOT_IDENTITY,
    OUTPUT,
    TOOLS,
    AffectsRunId,
    SubOptions,
    model_arg,
    setting,
)
from hybrid.config.words import LOCAL, AnswerForm, Gate, ImageForm, Missing, Parse, Show, ToolOutput
from hybrid.core.errors import UsageError
from hybrid.core.types import Json, Reasoning

# Settings, by field, of the second model, which describes the images if a model gets captions instead of images.
OF_CAPTIONER: Final = SubOptions(
    {
        "base_url": setting(
            "caption-url", "its OpenAI-compatible server, as --base-url is the model's", values=("URL",), pattern=r"\S+"
        ),
        "price": setting(
            "caption-price",
            "its price in USD per million tokens, for budgets of cost",
            values=("IN/OUT",),
            pattern=r"\S+",
        ),
    }
)
DEFAULT_SOLVERS: Final = ("controller", "mllm", "specialist")
REPLAY_SOLVERS: Final = ("arbiter", "mllm", "specialist")
NOT_AGAIN: Final = "which cannot be asked for again"
SAMPLES_AT_0: Final = "all samples would be identical; omit --model-arg temperature=0"
REPEATS_AT_0: Final = (
    "all repetitions would be identical: add --model-arg temperature=1 (or =null if the model does not accept one)"
)


def own_frame(model: str | None) -> str:
    """Return the coordinate frame that a model uses by default (`hybrid/solving/coordinates.py`)."""
    return "fractions" if model == "embedded" else "pixels"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The options of `hybrid run`. The manifest lists those that are part of the identity, in this order."""

    benchmark: Annotated[str, AffectsRunId("benchmark")] = field(kw_only=False)
    solvers: Annotated[
        tuple[str, ...],
        NOT_IDENTITY,
        MODEL(
            "--solver A,B",
            "Who answers. May be given several times.  [default: controller, mllm, specialist]",
            common=True,
            form="solver",
            python_type="Solver",
        ),
    ] = field(default=(), kw_only=False)
    split: Annotated[
        str | None, AffectsRunId("split"), ASK("--split NAME", "A split of the data.  [default: the benchmark's first]")
    ] = None
    tasks: Annotated[tuple[str, ...], AffectsRunId("tasks"), ASK("--task A,B", "Only these tasks.", common=True)] = ()
    limit: Annotated[
        int | None,
        NOT_IDENTITY,
        ASK(
            "--limit N",
            "Base questions in all, from the tasks in turn.",
            common=True,
            at_least=1,
            varied=False,
        ),
    ] = None
    # Ids of single questions among those that `tasks` and `limit` select.
    only: Annotated[
        tuple[str, ...],
        NOT_IDENTITY,
        ASK(
            "--only ID",
            "Only this question, with its variants. Only among the questions that the other options select. May be "
            "given "
            "several times.",
        ),
    ] = ()
    settings: Annotated[
        Mapping[str, str],
        AffectsRunId("settings"),
        ASK(
            "--setting KEY=VALUE",
            "A setting of the benchmark, or how models are asked. For any benchmark: samples=K (vote over K replies), "
            "repeats=K (every question K times), reasoning=first|none, caption-model=PROVIDER:NAME, "
            "context=FILE.jsonl. All are in `hybrid benchmarks show NAME`.",
            common="run",
        ),
    ] = field(default_factory=dict)
    data: Annotated[
        str,
        AffectsRunId("data"),
        ASK(
            "--data WHERE",
            "hub, sample, or a folder. hub@REVISION is a commit of the hub; a folder has the official layout.",
            common=True,
            variable="HYBRID_DATA_NAME",
            about_variable="for the benchmark NAME, in capitals: `HYBRID_DATA_BLINK`",
        ),
    ] = "hub"
    images_root: Annotated[
        Path | None, NOT_IDENTITY, ASK("--images-root DIR", "The folder that image paths in a table are relative to.")
    ] = None
    model: Annotated[
        str | None,
        IDENTITY_OF_MODEL,
        MODEL(
            "--model NAME",
            "provider:model, hf:DIR_OR_ID, replay:DIR or embedded. vllm:NAME, sglang:NAME and llamacpp:FILE_OR_REPO "
            "start the server themselves.",
            common=True,
            variable="HYBRID_MODEL",
            python_type="BaseChatModel",
            about_variable="also the model of the graph in Studio",
        ),
    ] = field(default=None, kw_only=False)
    model_settings: Annotated[ModelSettings, IDENTITY_OF_MODEL] = field(default_factory=ModelSettings)
    # Models, solvers and tools passed in by Python code; `model`, `solvers` and `tools` name them.
    objects: Annotated[Objects, NOT_IDENTITY] = field(default_factory=Objects)
    protocol: Annotated[
        Parse,
        IDENTITY,
        ASK(
            "--protocol",
            "Which parser decides a verdict; official also asks in the papers' wording, without hybrid's format line.",
        ),
    ] = "strict"
    prompts: Annotated[
        Path | None,
        AffectsRunId("prompts"),
        ASK("--prompts FILE", "TOML file with prompt texts that replace hybrid's own.", form="existing file"),
    ] = None
    format_line: Annotated[
        bool,
        AffectsRunId("prompts"),
        ASK("--format-line", "The line at a prompt's end that asks for one form of reply.", form="on|off"),
    ] = True
    image_labels: Annotated[
        bool,
        AffectsRunId(of="model"),
        ASK(
            "--image-labels",
            'The name ("img:1:") before each image; solvers that name images to the model keep it.',
            form="on|off",
        ),
    ] = True
    # How tools run. A tool's backend, weights, unchecked weights and precision count for the solvers that call it; the
    # format of pictures counts for the run; the rest does not count.
    service: Annotated[ServiceOptions, IDENTITY_OF_SOLVERS] = field(default_factory=lambda: ServiceOptions(device=AUTO))
    tools: Annotated[
        tuple[str, ...],
        AffectsRunId("tools_offered", of="tools_offered"),
        TOOLS(
            "--tools A,B",
            "Tools offered to the model: A,B, all or none. `default` in a list stands for the benchmark's own tools.  "
            "[default: default]",
            common=True,
            form="A,B",
            python_type="Tool",
        ),
    ] = ()
    mcp: Annotated[
        tuple[str, ...],
        IDENTITY_OF_SOLVERS,
        TOOLS(
            "--mcp SERVER",
            "Offer the tools of another MCP server too: NAME=URL or NAME=COMMAND; NAME is the first word of their "
            "names. May be given several times (extra `mcp`).",
        ),
    ] = ()
    mcp_images: Annotated[
        Mapping[str, str],
        IDENTITY_OF_SOLVERS,
        TOOLS(
            "--mcp-image TOOL=ARGUMENT", "Which argument of a foreign tool takes the image: ARGUMENT[:data_url|base64]."
        ),
    ] = field(default_factory=dict)
    tool_style: Annotated[
        str,
        AffectsRunId("tool_style", if_given=True, of="tools_offered"),
        TOOLS("--tool-style NAME|FILE", "Form of the tools: plain, a style's name or TOML, auto."),
    ] = "plain"
    tool_output: Annotated[
        ToolOutput,
        AffectsRunId(of="tools"),
        TOOLS("--tool-output", "What tools return. All but real are controls.", common=True),
    ] = "real"
    show: Annotated[Show, AffectsRunId(of="tools"), TOOLS("--show", "What the model sees of a tool output.")] = "both"
    overlays: Annotated[
        bool, NOT_IDENTITY, TOOLS("--overlays", "Also draw the pictures of tool outputs that no model sees.")
    ] = False
    images: Annotated[
        ImageForm, AffectsRunId(of="model"), ASK("--images", "In which form the model gets the images.")
    ] = "separate"
    rotate: Annotated[bool, IDENTITY, ASK("--rotate", "Ask every question once for each rotation of its options.")] = (
        False
    )
    # The coordinate frame of the model's replies (`hybrid/solving/coordinates.py`); by default the model's own.
    frame: Annotated[str, AffectsRunId(of="model"), model_arg("frame")] = ""
    strict: Annotated[bool, NOT_IDENTITY, ASK("--strict", "Ask nothing if a row of the data cannot be used.")] = False
    answer: Annotated[
        AnswerForm,
        AffectsRunId(of="model"),
        setting("answer", "how a choice is answered; likelihood needs local weights (hf:)"),
    ] = "text"
    # Number of samples of an MLLM's reply, which vote (`hybrid/solving/self_consistency.py`).
    samples: Annotated[
        int,
        AffectsRunId(of="model"),
        setting("samples", "ask an MLLM this often and take the vote", values=("1 or more",), pattern=r"0*[1-9][0-9]*"),
    ] = 1
    # Number of repetitions of every solver (`hybrid/core/repetitions.py`).
    repeats: Annotated[
        int,
        NOT_IDENTITY,
        setting(
            "repeats",
            "ask every solver all questions this often: mllm, mllm@2, ...",
            values=("1 or more",),
            pattern=r"0*[1-9][0-9]*",
        ),
    ] = 1
    # Whether a model is asked to reason before it answers (`hybrid/core/format_lines.py`).
    reasoning: Annotated[
        Reasoning | None,
        AffectsRunId("prompts"),
        setting(
            "reasoning",
            "a sentence at the prompt's end: reason in writing first, or answer at once; --max-tokens is the same "
            "for both",
            unset="unsaid",
        ),
    ] = None
    captioner: Annotated[
        str | None,
        AffectsRunId("captioner", if_given=True, of="model"),
        setting(
            "caption-model",
            "who describes images for --solver caption and --images caption; by default the model itself",
            values=("PROVIDER:NAME",),
            pattern=r"\S+",
        ),
    ] = None
    captioner_settings: Annotated[ModelSettings, AffectsRunId("captioner", if_given=True, of="model"), OF_CAPTIONER] = (
        field(default_factory=ModelSettings)
    )
    context: Annotated[
        Path | None,
        AffectsRunId("context", if_given=True, of="model"),
        setting(
            "context",
            'a text shown with the images, one {"id": ..., "text": ...} per line, by question id or base id',
            values=("FILE.jsonl",),
            pattern=r".+",
        ),
    ] = None
    context_missing: Annotated[
        Missing,
        AffectsRunId("context", if_given=True, of="model"),
        setting(
            "context-missing",
            "for questions without a text: refuse the run, or ask them without one and count them",
        ),
    ] = "refuse"
    trust: Annotated[
        Path | None,
        AffectsRunId("trust", of="tools"),
        TOOLS("--trust FILE", "Reliability of the tools, from `hybrid calibrate`."),
    ] = None
    limits: Annotated[Limits, AffectsRunId("limits")] = field(default_factory=Limits)
    seed: Annotated[int, IDENTITY, ASK("--seed N", "Random seed.")] = 0
    # Number of questions in flight, over all workers of an engine together.
    concurrency: Annotated[
        int, NOT_IDENTITY, LIMITS("--concurrency N", "Questions in flight.", common="run", at_least=1, varied=False)
    ] = 64
    engine: Annotated[
        str,
        NOT_IDENTITY,
        LIMITS(
            "--engine NAME",
            "What asks the questions: this process (local), or a cluster (docs/cluster.md).",
            varied=False,
        ),
    ] = LOCAL
    address: Annotated[
        str | None,
        NOT_IDENTITY,
        LIMITS(
            "--address HOST:PORT",
            "Of a cluster, HOST:PORT.  [default: a cluster on this machine, for this command]",
            varied=False,
        ),
    ] = None
    out: Annotated[
        Path | None,
        NOT_IDENTITY,
        OUTPUT("-o --out DIR", "Folder of the run.  [default: from the configuration]", common=True, kept=False),
    ] = None
    # Whether tool outputs are cached on disk; the results are the same.
    cache: Annotated[
        bool,
        NOT_IDENTITY,
        TOOLS("--no-cache", "Neither read nor write cached tool outputs.", form="no", varied=False),
    ] = True
    # Whether replies of models are kept across runs.
    cache_replies: Annotated[
        bool,
        NOT_IDENTITY,
        MODEL(
            "--cache-replies",
            "Take replies to the same requests from earlier runs, and keep new ones. Reused replies do not count as "
            "spent again; the tables state their number.",
            varied=False,
        ),
    ] = False
    allow: Annotated[
        tuple[Gate, ...],
        NOT_IDENTITY,
        TOOLS(
            "--allow",
            "Use weights that saw the benchmark's images, or that may not be used commercially; measure a model that "
            "does not see images (blind) or pictures of tools (blind-tools), whose calls cannot be read (toolless), "
            "or whose pictures arrive in another order (unordered); use data that differ from a recipe's own "
            "(partial).",
            varied=False,
        ),
    ] = ()
    # The options of `hybrid run` as used, by their long names, for the manifest; empty for a run from Python.
    options_as_used: Annotated[Mapping[str, Json], NOT_IDENTITY] = field(default_factory=dict)
    run_limits: Annotated[RunLimits, NOT_IDENTITY] = field(default_factory=RunLimits)
    trace: Annotated[
        str | None,
        NOT_IDENTITY,
        OUTPUT(
            "--trace otlp|FILE.jsonl",
            "Write spans of OpenTelemetry (extra `trace`), without images and texts: to the collector at "
            "OTEL_EXPORTER_OTLP_ENDPOINT, or appended to a file as lines.",
            kept=False,
        ),
    ] = None
    trace_text: Annotated[
        bool,
        NOT_IDENTITY,
        OUTPUT(
            "--trace-text",
            "Let spans contain questions and answers too; never images, keys or the data's answers.",
            kept=False,
        ),
    ] = False

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
        """Yield pairs: whether certain options contradict each other, and the message if they do."""
        recorded, likelihood = (self.model or "").startswith("replay:"), self.answer == "likelihood"
        for key, value in (("reasoning", self.reasoning), ("context", self.context), ("caption-model", self.captioner)):
            yield (
                recorded and value is not None,
                (f"--setting {key}: a recorded model can only be asked as it was recorded"),
            )
        captions = (self.captioner or "").startswith("replay:")
        yield captions, f"--setting caption-model={self.captioner}: a recorded model describes no image"
        reasoned = self.reasoning == "first" and likelihood
        yield (
            reasoned,
            (
                "--setting reasoning=first: likelihoods only rate the options, so there is no "
                "reasoning before the answer"
            ),
        )
        texts, policy = self.context is None and self.context_missing != "refuse", self.context_missing
        yield texts, f"--setting context-missing={policy}: give the texts with --setting context=FILE"
        traced = self.trace is not None
        untraced = self.trace_text and not traced
        yield untraced, "--trace-text needs a trace: add --trace otlp or --trace FILE.jsonl"
        elsewhere = traced and self.engine != LOCAL
        yield elsewhere, f"--trace records only the requests of this process: remove --engine {self.engine}"
        served = (self.model or "").partition(":")[0] in ("vllm", "sglang", "llamacpp")
        keeps_up = "start it with `hybrid models serve` and give --model openai:NAME --base-url URL"
        yield (
            served and self.engine != LOCAL,
            (f"--engine {self.engine}: each worker would start its own server: {keeps_up}"),
        )
        answers = self.trace_text and self.tool_output == "oracle"
        yield (
            answers,
            "--trace-text: it would record the answers that a model gets with --tool-output oracle: omit one",
        )
        cold = self.model_settings.temperature == 0
        samples, repeats = (self.samples, cold, SAMPLES_AT_0), (self.repeats, cold and self.model, REPEATS_AT_0)
        for key, (times, deterministic, at_0) in (("samples", samples), ("repeats", repeats)):
            wrong, more = f"--setting {key}={times}", times != 1
            yield times < 1, f"{wrong}: at least 1"
            yield more and recorded, f"{wrong}: a recorded model has one reply per question, {NOT_AGAIN}"
            same = f"{wrong}: likelihoods are the same every time"
            yield more and likelihood, f"{same}; give only one of answer=likelihood and {key}"
            yield more and bool(deterministic), f"{wrong}: at temperature 0 {at_0}"
