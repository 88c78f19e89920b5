"""The options of a run as one frozen value: each is declared once, with how it is given and whether it counts.

    RunConfig("blink", data="sample", model="embedded", limits=Limits(turns=4))

`hybrid run --help`, files of `--config`, `HYBRID_*` variables, the manifest, the identity and the reference in the docs
are made from this declaration (`hybrid/config/option.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from hybrid.config.captioner import OF_CAPTIONER
from hybrid.config.groups import AUTO, Limits, ModelSettings, Objects, RunLimits, ServiceOptions
from hybrid.config.option import AS_IS, FREE, OF_MODEL, OF_SOLVERS, Counts, Option, Renamed
from hybrid.config.words import LOCAL, AnswerForm, Gate, ImageForm, Missing, Parse, Reasoning, Show, ToolOutput
from hybrid.errors import UsageError
from hybrid.types import Json

DEFAULT_SOLVERS: Final = ("controller", "mllm", "specialist")
REPLAY_SOLVERS: Final = ("arbiter", "mllm", "specialist")
AT_LEAST_ONE: Final = r"0*[1-9][0-9]*"
NOT_AGAIN: Final = "which cannot be asked for again"
SAMPLES_AT_0: Final = "all samples are one; leave out --model-arg temperature=0"
REPEATS_AT_0: Final = "all repetitions are one: add --model-arg temperature=1 (or =null where the model takes none)"


def own_frame(model: str | None) -> str:
    """The coordinate system a model writes in by default (`hybrid/solving/coordinates.py`)."""
    return "fractions" if model == "embedded" else "pixels"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The options of `hybrid run`. The order of the fields that count is the order of the manifest."""

    benchmark: Annotated[str, Counts("benchmark")] = field(kw_only=False)
    solvers: Annotated[
        tuple[str, ...],
        FREE,
        Option(
            "--solver",
            "Who answers. May be given several times.  [default: controller, mllm, specialist]",
            "model",
            common=True,
            metavar="A,B",
            form="solver",
        ),
    ] = field(default=(), kw_only=False)
    split: Annotated[
        str | None,
        Counts("split"),
        Option("--split", "A split of the data.  [default: the benchmark's first]", "ask", metavar="NAME"),
    ] = None
    tasks: Annotated[
        tuple[str, ...], Counts("tasks"), Option("--task", "Only these tasks.", "ask", common=True, metavar="A,B")
    ] = ()
    limit: Annotated[
        int | None,
        FREE,
        Option("--limit", "Base questions, one of each task in turn.", "ask", common=True, metavar="N", at_least=1),
    ] = None
    settings: Annotated[
        Mapping[str, str],
        Counts("settings"),
        Option(
            "--setting",
            "A choice of the benchmark, or how models are asked. For any benchmark: samples=K (vote over K replies), "
            "repeats=K (every question K times), reasoning=first|none, caption-model=PROVIDER:NAME, "
            "context=FILE.jsonl. All are in `hybrid benchmarks show NAME`.",
            "ask",
            common=True,
            metavar="KEY=VALUE",
        ),
    ] = field(default_factory=dict)
    data: Annotated[
        str,
        Counts("data"),
        Option(
            "--data",
            "hub, sample, or a folder. hub@REVISION is a commit of the hub; a folder has the official layout.",
            "ask",
            common=True,
            metavar="WHERE",
            variable="HYBRID_DATA_NAME",
            about_variable="for the benchmark NAME, in capitals: `HYBRID_DATA_BLINK`",
        ),
    ] = "hub"
    images_root: Annotated[
        Path | None, FREE, Option("--images-root", "Where paths of a table's images begin.", "ask", metavar="DIR")
    ] = None
    model: Annotated[
        str | None,
        OF_MODEL,
        Option(
            "--model",
            "provider:model, hf:DIR_OR_ID, replay:DIR or embedded.",
            "model",
            common=True,
            metavar="NAME",
            variable="HYBRID_MODEL",
            about_variable="also the model of the graph in Studio",
        ),
    ] = field(default=None, kw_only=False)
    model_settings: Annotated[ModelSettings, OF_MODEL] = field(default_factory=ModelSettings)
    objects: Annotated[Objects, FREE] = field(default_factory=Objects)
    """Models, solvers and tools that Python code hands in; `model`, `solvers` and `tools` name them."""
    protocol: Annotated[
        Parse,
        AS_IS,
        Option(
            "--protocol",
            "Which parse decides a verdict; official also asks in the papers' wording, without our format line.",
            "ask",
        ),
    ] = "strict"
    prompts: Annotated[
        Path | None,
        Counts("prompts"),
        Option("--prompts", "TOML with texts instead of ours.", "ask", metavar="FILE", form="existing file"),
    ] = None
    format_line: Annotated[
        bool,
        Counts("prompts"),
        Option("--format-line", "The line at a prompt's end that asks for one form of reply.", "ask", form="on|off"),
    ] = True
    image_labels: Annotated[
        bool,
        Counts(of="model"),
        Option(
            "--image-labels",
            'The name ("img:1:") before each image; solvers that name images to the model keep it.',
            "ask",
            form="on|off",
        ),
    ] = True
    service: Annotated[ServiceOptions, OF_SOLVERS] = field(default_factory=lambda: ServiceOptions(device=AUTO))
    """How tools run. Backend and weights of a tool, whether these go unchecked, and the numbers that networks are to
    compute in count for the solvers that call it; how pictures are stored counts for the run; the rest does not."""
    tools: Annotated[
        tuple[str, ...],
        Counts("tools_offered", of="tools_offered"),
        Option(
            "--tools",
            "Tools offered to the model: A,B, all or none. `default` in a list stands for the benchmark's own.  "
            "[default: default]",
            "tools",
            common=True,
            metavar="A,B",
            form="A,B",
        ),
    ] = ()
    mcp: Annotated[
        tuple[str, ...],
        OF_SOLVERS,
        Option(
            "--mcp",
            "Offer the tools of another MCP server too: NAME=URL or NAME=COMMAND; NAME is the first word of their "
            "names. May be given several times (extra `mcp`).",
            "tools",
            metavar="SERVER",
        ),
    ] = ()
    mcp_images: Annotated[
        Mapping[str, str],
        OF_SOLVERS,
        Option(
            "--mcp-image",
            "Which argument of a foreign tool takes the image: ARGUMENT[:data_url|base64].",
            "tools",
            metavar="TOOL=ARGUMENT",
        ),
    ] = field(default_factory=dict)
    tool_style: Annotated[
        str,
        Counts("tool_style", if_given=True, of="tools_offered"),
        Option("--tool-style", "Form of the tools: plain, a style's name or TOML, auto.", "tools", metavar="NAME|FILE"),
    ] = "plain"
    tool_output: Annotated[
        ToolOutput,
        Counts(of="tools"),
        Option("--tool-output", "What tools return. blank, shuffled and oracle are controls.", "tools", common=True),
    ] = "real"
    show: Annotated[Show, Counts(of="tools"), Option("--show", "What the model sees of a finding.", "tools")] = "both"
    overlays: Annotated[bool, FREE, Option("--overlays", "Draw findings that no model sees.", "tools")] = False
    images: Annotated[
        ImageForm, Counts(of="model"), Option("--images", "In which form the model gets the images.", "ask")
    ] = "separate"
    rotate: Annotated[
        bool, AS_IS, Option("--rotate", "Ask every question once for each rotation of its options.", "ask")
    ] = False
    frame: Annotated[str, Counts(of="model"), Option("frame", parent="--model-arg")] = ""
    """The coordinate system of the model's replies (`hybrid/solving/coordinates.py`); by default the model's own."""
    strict: Annotated[bool, FREE, Option("--strict", "Ask nothing where a row of the data cannot be used.", "ask")] = (
        False
    )
    answer: Annotated[
        AnswerForm,
        Counts(of="model"),
        Option("answer", "how a choice is answered; likelihood needs weights at hand (hf:)", parent="--setting"),
    ] = "text"
    samples: Annotated[
        int,
        Counts(of="model"),
        Option(
            "samples",
            "ask an MLLM so often and take the vote",
            parent="--setting",
            values=("1 or more",),
            pattern=AT_LEAST_ONE,
        ),
    ] = 1
    repeats: Annotated[
        int,
        FREE,
        Option(
            "repeats",
            "ask every solver all questions so often: mllm, mllm@2, ...",
            parent="--setting",
            values=("1 or more",),
            pattern=AT_LEAST_ONE,
        ),
    ] = 1
    reasoning: Annotated[
        Reasoning | None,
        Counts("prompts"),
        Option(
            "reasoning",
            "a sentence at the prompt's end: reason in writing first, or answer at once; --max-tokens is the same for "
            "both",
            parent="--setting",
            unset="unsaid",
        ),
    ] = None
    captioner: Annotated[
        str | None,
        Counts("captioner", if_given=True, of="model"),
        Option(
            "caption-model",
            "who describes images for --solver caption and --images caption; the model itself where none is named",
            parent="--setting",
            values=("PROVIDER:NAME",),
            pattern=r"\S+",
        ),
    ] = None
    captioner_settings: Annotated[
        ModelSettings, Counts("captioner", if_given=True, of="model"), Renamed(OF_CAPTIONER)
    ] = field(default_factory=ModelSettings)
    context: Annotated[
        Path | None,
        Counts("context", if_given=True, of="model"),
        Option(
            "context",
            'a text shown beside the images, one {"id": ..., "text": ...} a line, by question id or base id',
            parent="--setting",
            values=("FILE.jsonl",),
            pattern=r".+",
        ),
    ] = None
    context_missing: Annotated[
        Missing,
        Counts("context", if_given=True, of="model"),
        Option(
            "context-missing",
            "questions that have no text: nothing is asked, or they are asked without one and counted",
            parent="--setting",
        ),
    ] = "refuse"
    trust: Annotated[
        Path | None,
        Counts("trust", of="tools"),
        Option("--trust", "Reliability of the tools, from `hybrid calibrate`.", "tools", metavar="FILE"),
    ] = None
    limits: Annotated[Limits, Counts("limits")] = field(default_factory=Limits)
    seed: Annotated[int, AS_IS, Option("--seed", "Seed of all that is drawn.", "ask", metavar="N")] = 0
    concurrency: Annotated[
        int, FREE, Option("--concurrency", "Questions in flight.", "limits", common=True, metavar="N", at_least=1)
    ] = 64
    engine: Annotated[
        str,
        FREE,
        Option("--engine", "Who asks: this process (local), or a cluster (docs/cluster.md).", "limits", metavar="NAME"),
    ] = LOCAL
    address: Annotated[
        str | None,
        FREE,
        Option(
            "--address",
            "Of a cluster, HOST:PORT.  [default: one of this machine, for this command]",
            "limits",
            metavar="HOST:PORT",
        ),
    ] = None
    out: Annotated[
        Path | None,
        FREE,
        Option(
            "--out",
            "Folder of the run.  [default: from the configuration]",
            "output",
            common=True,
            metavar="DIR",
            kept=False,
        ),
    ] = None
    cache: Annotated[
        bool, FREE, Option("--no-cache", "Neither read findings kept on disk nor keep any.", "tools", form="no")
    ] = True
    allow: Annotated[
        tuple[Gate, ...],
        FREE,
        Option(
            "--allow",
            "Use weights that saw the benchmark's images, or that may not be used commercially; measure a model that "
            "does not see, or whose calls cannot be read (toolless); ask data unlike a recipe's own (partial).",
            "tools",
        ),
    ] = ()
    given: Annotated[Mapping[str, Json], FREE] = field(default_factory=dict)
    """The options of `hybrid run` as used, by their long names, for the manifest; empty for a run from Python."""
    run_limits: Annotated[RunLimits, FREE] = field(default_factory=RunLimits)
    trace: Annotated[
        str | None,
        FREE,
        Option(
            "--trace",
            "Write spans of OpenTelemetry (extra `trace`), without images and texts: to the collector that "
            "OTEL_EXPORTER_OTLP_ENDPOINT names, or as lines at the end of a file.",
            "output",
            metavar="otlp|FILE.jsonl",
            kept=False,
        ),
    ] = None
    trace_text: Annotated[
        bool,
        FREE,
        Option(
            "--trace-text",
            "Let spans hold questions and answers too; never images, keys or the data's answers.",
            "output",
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
        """The name under which a plug-in for spans is found: a word, or the ending of a file."""
        return None if self.trace is None else Path(self.trace).suffix.removeprefix(".") or self.trace

    @property
    def sends_format_line(self) -> bool:
        """Whether prompts end with our line on the form of the reply; the official protocol has none."""
        return self.format_line and self.protocol == "strict"

    def _contradictions(self) -> Iterator[tuple[bool, str]]:
        """Options that do not go together, with what is said of them."""
        recorded, likelihood = (self.model or "").startswith("replay:"), self.answer == "likelihood"
        for key, value in (("reasoning", self.reasoning), ("context", self.context), ("caption-model", self.captioner)):
            yield recorded and value is not None, f"--setting {key}: a recorded model was asked as it was recorded"
        captions = (self.captioner or "").startswith("replay:")
        yield captions, f"--setting caption-model={self.captioner}: a recorded model describes no image"
        reasoned = self.reasoning == "first" and likelihood
        yield reasoned, "--setting reasoning=first: likelihoods are of the options alone; nothing is reasoned before"
        texts, said = self.context is None and self.context_missing != "refuse", self.context_missing
        yield texts, f"--setting context-missing={said}: give the texts with --setting context=FILE"
        traced = self.trace is not None
        untraced = self.trace_text and not traced
        yield untraced, "--trace-text says what a trace tells: give --trace otlp or --trace FILE.jsonl with it"
        yield (
            traced and self.engine != LOCAL,
            f"--trace tells of what this process asks: leave --engine {self.engine} away",
        )
        answers = self.trace_text and self.tool_output == "oracle"
        yield answers, "--trace-text: what --tool-output oracle tells a model are the answers: leave one away"
        cold = self.model_settings.temperature == 0
        again = {
            "samples": (self.samples, cold, SAMPLES_AT_0),
            "repeats": (self.repeats, cold and self.model, REPEATS_AT_0),
        }
        for key, (times, alike, at_0) in again.items():
            wrong, more = f"--setting {key}={times}", times != 1
            yield times < 1, f"{wrong}: at least 1"
            yield more and recorded, f"{wrong}: a recorded model has one reply to a question, {NOT_AGAIN}"
            yield (
                more and likelihood,
                f"{wrong}: likelihoods are the same every time; give one of answer=likelihood and {key}",
            )
            yield more and bool(alike), f"{wrong}: at temperature 0 {at_0}"
