"""The options of a run as one frozen value; each states how it is set, and whether it is part of the run's identity.

    RunConfig("blink", data="sample", model="embedded", limits=Limits(turns=4))

`hybrid run --help`, `--config` files, `HYBRID_*` variables, the manifest, the identity and the reference in the docs
are derived from this declaration (`hybrid/config/option.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Final

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
    model_arg,
    part,
    setting,
    setting_option,
)
from hybrid.config.words import LOCAL, STARTED, AnswerForm, Gate, ImageForm, Missing, Parse, Show, ToolOutput
from hybrid.core.errors import UsageError
from hybrid.core.types import Json, Reasoning

# Settings, by field, of the second model, which describes the images if a model gets captions instead of images.
OF_CAPTIONER: Final = {
    "base_url": setting_option(
        "caption-url URL", "address of its OpenAI-compatible server; --base-url does not apply to it"
    ),
    "price": setting_option("caption-price IN/OUT", "its price in USD per million tokens, for cost limits"),
}
DEFAULT_SOLVERS: Final = ("controller", "mllm", "specialist")
REPLAY_SOLVERS: Final = ("arbiter", "mllm", "specialist")
SAMPLES_AT_0: Final = "all samples would be identical; omit --model-arg temperature=0"
REPEATS_AT_0: Final = (
    "all repetitions would be identical: add --model-arg temperature=1 (or =null if the model does not accept one)"
)


def own_frame(model: str | None) -> str:
    """Return the coordinate frame that a model uses by default (`hybrid/solving/coordinates.py`)."""
    return "fractions" if model == "embedded" else "pixels"


@dataclass(frozen=True)
class RunConfig:
    """The options of `hybrid run`. The manifest lists those that are part of the identity, in this order."""

    benchmark: str = field(metadata={"identity": AffectsRunId("benchmark")})
    solvers: tuple[str, ...] = MODEL(
        "--solver A,B",
        "Solvers that answer the questions. May be given several times.  [default: controller, mllm, specialist]",
        (),
        identity=NOT_IDENTITY,
        common=True,
        form="solver",
        python_type="Solver",
    )
    _: KW_ONLY
    split: str | None = ASK(
        "--split NAME", "A split of the data.  [default: the benchmark's first]", None, identity=AffectsRunId("split")
    )
    tasks: tuple[str, ...] = ASK(
        "--task A,B", "Ask only the questions of these tasks.", (), identity=AffectsRunId("tasks"), common=True
    )
    limit: int | None = ASK(
        "--limit N",
        "Maximum number of questions, from the tasks in turn. Variants of a question are not counted.",
        None,
        identity=NOT_IDENTITY,
        common=True,
        at_least=1,
    )
    # Ids of single questions among those that `tasks` and `limit` select.
    only: tuple[str, ...] = ASK(
        "--only ID",
        "Ask only this question and its variants, if the other options select it. May be given several times.",
        (),
        identity=NOT_IDENTITY,
    )
    settings: Mapping[str, str] = ASK(
        "--setting KEY=VALUE",
        "A setting of the benchmark, or how models are asked. For any benchmark: samples=K (vote over K replies), "
        "repeats=K (every question K times), reasoning=first|none, caption-model=PROVIDER:NAME, "
        "context=FILE.jsonl. All are in `hybrid benchmarks show NAME`.",
        {},
        identity=AffectsRunId("settings"),
        common="run",
    )
    data: str = ASK(
        "--data WHERE",
        "Source of the data: hub, sample, or a folder. hub@REVISION is a commit of the hub; sample is generated; a "
        "folder has the official layout.",
        "hub",
        identity=AffectsRunId("data"),
        common=True,
        variable="HYBRID_DATA_NAME",
        about_variable="for the benchmark NAME, in capitals: `HYBRID_DATA_BLINK`",
    )
    images_root: Path | None = ASK(
        "--images-root DIR", "The folder that image paths in a table are relative to.", None, identity=NOT_IDENTITY
    )
    model: str | None = MODEL(
        "--model NAME",
        "provider:model, hf:DIR_OR_ID, replay:DIR or embedded. For vllm:NAME, sglang:NAME and llamacpp:FILE_OR_REPO, "
        "hybrid starts the server.",
        None,
        identity=IDENTITY_OF_MODEL,
        common=True,
        variable="HYBRID_MODEL",
        python_type="BaseChatModel",
        about_variable="also the model of the graph in Studio",
    )
    model_settings: ModelSettings = part(ModelSettings, identity=IDENTITY_OF_MODEL)
    # Models, solvers and tools passed in by Python code; `model`, `solvers` and `tools` name them.
    objects: Objects = part(Objects, identity=NOT_IDENTITY)
    protocol: Parse = ASK(
        "--protocol",
        "Which parser reads the replies; official also asks in the papers' wording, without hybrid's format line.",
        "strict",
        identity=IDENTITY,
    )
    prompts: Path | None = ASK(
        "--prompts FILE",
        "TOML file with prompt texts that replace hybrid's own.",
        None,
        identity=AffectsRunId("prompts"),
        form="existing file",
    )
    format_line: bool = ASK(
        "--format-line",
        "Whether a prompt ends with a line that asks for a certain format of the reply.",
        True,
        identity=AffectsRunId("prompts"),
    )
    image_labels: bool = ASK(
        "--image-labels",
        'Whether each image is preceded by its name ("img:1:"); solvers that refer to images by name always send it.',
        True,
        identity=AffectsRunId(of="model"),
    )
    # How tools run. Of these options, a tool's backend, weights, unchecked weights and precision are part of the
    # identity of the solvers that call it; the format of pictures is part of the run's identity; the rest is part of
    # neither.
    service: ServiceOptions = part(lambda: ServiceOptions(device=AUTO), identity=IDENTITY_OF_SOLVERS)
    tools: tuple[str, ...] = TOOLS(
        "--tools A,B",
        "Tools offered to the model: A,B, all or none. `default` in a list stands for the benchmark's own tools.  "
        "[default: default]",
        (),
        identity=AffectsRunId("tools_offered", of="tools_offered"),
        common=True,
        form="A,B",
        python_type="Tool",
    )
    mcp: tuple[str, ...] = TOOLS(
        "--mcp SERVER",
        "Also offer the tools of an MCP server: NAME=URL or NAME=COMMAND; NAME becomes the prefix of their names. "
        "May be given several times (extra `mcp`).",
        (),
        identity=IDENTITY_OF_SOLVERS,
    )
    mcp_images: Mapping[str, str] = TOOLS(
        "--mcp-image TOOL=ARGUMENT",
        "Which argument of an MCP server's tool takes the image: ARGUMENT[:data_url|base64].",
        {},
        identity=IDENTITY_OF_SOLVERS,
    )
    tool_style: str = TOOLS(
        "--tool-style NAME|FILE",
        "Form in which tools are offered: plain (hybrid's own), the name or TOML file of a style, or auto.",
        "plain",
        identity=AffectsRunId("tool_style", only_if_set=True, of="tools_offered"),
    )
    tool_output: ToolOutput = TOOLS(
        "--tool-output",
        "What tools return. Every value except real is a control.",
        "real",
        identity=AffectsRunId(of="tools"),
        common=True,
    )
    show: Show = TOOLS("--show", "What the model sees of a tool output.", "both", identity=AffectsRunId(of="tools"))
    overlays: bool = TOOLS(
        "--overlays", "Also draw the pictures of tool outputs if no model sees them.", False, identity=NOT_IDENTITY
    )
    images: ImageForm = ASK(
        "--images", "In which form the model gets the images.", "separate", identity=AffectsRunId(of="model")
    )
    rotate: bool = ASK(
        "--rotate", "Ask every question once for each rotation of its options.", False, identity=IDENTITY
    )
    # The coordinate frame of the model's replies (`hybrid/solving/coordinates.py`); by default the model's own.
    frame: str = model_arg("frame", "", identity=AffectsRunId(of="model"))
    strict: bool = ASK("--strict", "Ask nothing if a row of the data cannot be used.", False, identity=NOT_IDENTITY)
    answer: AnswerForm = setting(
        "answer",
        "how a choice is answered; likelihood needs local weights (hf:)",
        "text",
        identity=AffectsRunId(of="model"),
    )
    # Number of samples of an MLLM's reply, which vote (`hybrid/solving/self_consistency.py`).
    samples: int = setting(
        "samples",
        "ask an MLLM this many times and take the majority vote",
        1,
        identity=AffectsRunId(of="model"),
        at_least=1,
    )
    # Number of repetitions of every solver (`hybrid/core/repetitions.py`).
    repeats: int = setting(
        "repeats",
        "ask every solver all questions this many times (mllm, mllm@2, ...)",
        1,
        identity=NOT_IDENTITY,
        at_least=1,
    )
    # Whether a model is asked to reason before it answers (`hybrid/core/format_lines.py`).
    reasoning: Reasoning | None = setting(
        "reasoning",
        "a sentence at the prompt's end: reason in writing first, or answer at once; both with the same --max-tokens",
        None,
        identity=AffectsRunId("prompts"),
        unset="unsaid",
    )
    captioner: str | None = setting(
        "caption-model PROVIDER:NAME",
        "the model that describes images for --solver caption and --images caption; by default the model itself",
        None,
        identity=AffectsRunId("captioner", only_if_set=True, of="model"),
    )
    captioner_settings: ModelSettings = part(
        ModelSettings, identity=AffectsRunId("captioner", only_if_set=True, of="model"), options=OF_CAPTIONER
    )
    context: Path | None = setting(
        "context FILE.jsonl",
        'a text shown with the images, one {"id": ..., "text": ...} per line, by question id or base id',
        None,
        identity=AffectsRunId("context", only_if_set=True, of="model"),
    )
    context_missing: Missing = setting(
        "context-missing",
        "what to do with questions without such a text: refuse the run, or ask them without one and count them",
        "refuse",
        identity=AffectsRunId("context", only_if_set=True, of="model"),
    )
    trust: Path | None = TOOLS(
        "--trust FILE",
        "File with the reliability of each tool, written by `hybrid calibrate`.",
        None,
        identity=AffectsRunId("trust", of="tools"),
    )
    limits: Limits = part(Limits, identity=AffectsRunId("limits"))
    seed: int = ASK("--seed N", "Random seed.", 0, identity=IDENTITY)
    # Number of questions in flight, over all workers of an engine together.
    concurrency: int = LIMITS(
        "--concurrency N",
        "Number of questions asked at the same time.",
        64,
        identity=NOT_IDENTITY,
        common="run",
        at_least=1,
    )
    engine: str = LIMITS(
        "--engine NAME",
        "Where questions are asked: in this process (local), or on a cluster (docs/cluster.md).",
        LOCAL,
        identity=NOT_IDENTITY,
    )
    address: str | None = LIMITS(
        "--address HOST:PORT",
        "Address of a running cluster.  [default: the command starts one on this machine]",
        None,
        identity=NOT_IDENTITY,
    )
    out: Path | None = OUTPUT(
        "-o --out DIR",
        "Folder of the run.  [default: from the configuration]",
        None,
        identity=NOT_IDENTITY,
        common=True,
        in_manifest=False,
    )
    # Whether tool outputs are cached on disk; the results are the same with and without the cache.
    cache: bool = TOOLS(
        "--no-cache",
        "Neither read nor write cached tool outputs.",
        True,
        identity=NOT_IDENTITY,
    )
    # Whether replies of models are kept across runs.
    cache_replies: bool = MODEL(
        "--cache-replies",
        "Reuse the replies that earlier runs received to the same requests, and store new ones. Reused replies cost "
        "nothing; the tables state their number.",
        False,
        identity=NOT_IDENTITY,
    )
    allow: tuple[Gate, ...] = TOOLS(
        "--allow",
        "Use weights that were trained on the benchmark's images, or that may not be used commercially; measure a "
        "model that does not see images (blind) or pictures of tools (blind-tools), whose calls cannot be read "
        "(toolless), or that reads pictures in another order (unordered); use data that differ from those that "
        "a recipe describes (partial).",
        (),
        identity=NOT_IDENTITY,
    )
    # The options of `hybrid run` as used, by their long names, for the manifest; empty for a run from Python.
    options_as_used: Mapping[str, Json] = part(dict, identity=NOT_IDENTITY)
    run_limits: RunLimits = part(RunLimits, identity=NOT_IDENTITY)
    trace: str | None = OUTPUT(
        "--trace otlp|FILE.jsonl",
        "Write OpenTelemetry spans (extra `trace`), without images and texts: send them to the collector at "
        "OTEL_EXPORTER_OTLP_ENDPOINT, or append them to a file, one JSON object per line.",
        None,
        identity=NOT_IDENTITY,
        in_manifest=False,
    )
    trace_text: bool = OUTPUT(
        "--trace-text",
        "Also write questions and answers into the spans; never images, keys or the data's right answers.",
        False,
        identity=NOT_IDENTITY,
        in_manifest=False,
    )

    def __post_init__(self) -> None:
        if not self.frame:
            object.__setattr__(self, "frame", own_frame(self.model))
        for reason in self._contradictions():
            raise UsageError(reason)

    @property
    def tracing(self) -> str | None:
        """The name of the plug-in that records spans: a word, or the suffix of a file."""
        return None if self.trace is None else Path(self.trace).suffix.removeprefix(".") or self.trace

    @property
    def sends_format_line(self) -> bool:
        """Whether prompts end with a format line; the official protocol has none."""
        return self.format_line and self.protocol == "strict"

    def _contradictions(self) -> Iterator[str]:
        """Yield a message for each pair of options that contradict each other."""
        recorded, likelihood = (self.model or "").startswith("replay:"), self.answer == "likelihood"
        yield from self._unsuitable_settings(recorded=recorded, likelihood=likelihood)
        yield from self._unsuitable_repetitions(recorded=recorded, likelihood=likelihood)
        if self.trace is None and self.trace_text:
            yield "--trace-text needs a trace: add --trace otlp or --trace FILE.jsonl"
        if self.trace is not None and self.engine != LOCAL:
            yield f"--trace records only the requests of this process: remove --engine {self.engine}"
        if (self.model or "").partition(":")[0] in STARTED and self.engine != LOCAL:
            keeps_up = "start it with `hybrid models serve` and give --model openai:NAME --base-url URL"
            yield f"--engine {self.engine}: each worker would start its own server: {keeps_up}"
        if self.trace_text and self.tool_output == "oracle":
            yield "--trace-text: it would record the answers that a model gets with --tool-output oracle: omit one"

    def _unsuitable_settings(self, *, recorded: bool, likelihood: bool) -> Iterator[str]:
        settings = {"reasoning": self.reasoning, "context": self.context, "caption-model": self.captioner}
        for key, value in settings.items():
            if recorded and value is not None:
                yield f"--setting {key}: a recorded model can only be asked as it was recorded"
        if (self.captioner or "").startswith("replay:"):
            yield f"--setting caption-model={self.captioner}: a recorded model cannot describe images"
        if self.reasoning == "first" and likelihood:
            reason = "likelihoods only rate the options, so there is no reasoning before the answer"
            yield f"--setting reasoning=first: {reason}"
        if self.context is None and self.context_missing != "refuse":
            yield f"--setting context-missing={self.context_missing}: give the texts with --setting context=FILE"

    def _unsuitable_repetitions(self, *, recorded: bool, likelihood: bool) -> Iterator[str]:
        cold = self.model_settings.temperature == 0
        samples, repeats = (self.samples, cold, SAMPLES_AT_0), (self.repeats, cold and self.model, REPEATS_AT_0)
        for key, (times, deterministic, at_0) in (("samples", samples), ("repeats", repeats)):
            wrong = f"--setting {key}={times}"
            if times < 1:
                yield f"{wrong}: must be at least 1"
            if times != 1 and recorded:
                yield f"{wrong}: a recorded model has only one reply per question"
            if times != 1 and likelihood:
                yield f"{wrong}: likelihoods are the same every time: leave out answer=likelihood or {key}"
            if times != 1 and deterministic:
                yield f"{wrong}: at temperature 0 {at_0}"
