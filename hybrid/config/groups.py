"""The groups of options in a configuration: how a model is called, how tools run, and what may be spent.

Each field says with `Option` how it is given from outside (`hybrid/config/option.py`). Importing this loads no library.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from hybrid.config.durations import seconds_of
from hybrid.config.memory import memory_to_use
from hybrid.config.option import Leaf, Option, leaves, refuse_too_small
from hybrid.config.pairs import pairs
from hybrid.config.words import Backends, Dtypes, Pictures, Streaming, Thoughts, ToolCalling
from hybrid.errors import UsageError
from hybrid.types import Json

CPU: Final = "cpu"
AUTO: Final = "auto"
"""CUDA where torch sees a GPU. Asking torch costs its import, so only the first learned backend asks."""
QUEUE_S = 3600.0
"""How long a request may wait for its turn."""
COMING_WAIT_S = 0.25
"""How long a batch waits for requests that are being decoded."""
LOAD_S = 300.0
"""More than weights take to load from a slow disk: all tools of the device wait for it."""
MOST_THREADS = 16
TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens read (`input_usd`) and written (`output_usd`); reasoning counts as written.

    `cached_usd` is for the tokens read that the provider had already; None where they cost what others do.
    """

    input_usd: float
    output_usd: float
    cached_usd: float | None = None

    def of(self, read: float, written: float, cached: float = 0.0) -> float:
        """Dollars for so many tokens; `cached` are among those read."""
        again = self.input_usd if self.cached_usd is None else self.cached_usd
        return ((read - cached) * self.input_usd + cached * again + written * self.output_usd) / TOKENS_PER_PRICE


def parse_price(text: str) -> Price:
    """Read `IN/OUT` or `IN/OUT/CACHED`, such as `2.5/10/1.25`. Raises `UsageError` for anything but amounts from 0."""
    parts = text.split("/")
    try:
        amounts = [float(part) for part in parts]
    except ValueError:
        amounts = []
    if len(amounts) not in (2, 3) or not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
        raise UsageError(f"--model-arg price={text}: write IN/OUT or IN/OUT/CACHED, US dollars per million tokens")
    return Price(*amounts)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is called; None leaves an option to the provider."""

    base_url: Annotated[
        str | None,
        Option(
            "--base-url",
            "An OpenAI-compatible server. For example http://127.0.0.1:8000/v1. The variable applies to models of the "
            "provider in HYBRID_MODEL.",
            "model",
            common=True,
            metavar="URL",
            form="address",
            variable="HYBRID_BASE_URL",
            about_variable="for models of the provider that `HYBRID_MODEL` names",
        ),
    ] = None
    image_detail: Annotated[str | None, Option("--image-detail", "OpenAI: low, high or auto.", "model")] = None
    max_pixels: Annotated[
        int | None,
        Option("--max-pixels", "Scale larger images down to so many pixels.", "model", metavar="N", at_least=1),
    ] = None
    """The largest width x height sent."""
    reasoning_effort: Annotated[
        str | None, Option("--reasoning-effort", "Effort of a reasoning model.", "model", metavar="WORD")
    ] = None
    thoughts: Annotated[
        Thoughts,
        Option("--reasoning", "Whether a model is sent its own thoughts again, between its turns.", "model"),
    ] = "keep"
    stream: Annotated[
        Streaming,
        Option(
            "--stream",
            "Whether replies come in pieces (OpenAI's chat API). auto: only from a server that asks for it or does it.",
            "model",
        ),
    ] = "auto"
    max_tokens: Annotated[
        int | None, Option("--max-tokens", "Longest reply of the model.", "model", common=True, metavar="N", at_least=1)
    ] = None
    temperature: Annotated[float | None, Option("temperature", parent="--model-arg", at_least=0)] = 0.0
    seed: int | None = None
    timeout_s: Annotated[float, Option("timeout_s", parent="--model-arg")] = 120.0
    """The limit of one HTTP request; of a reply that comes in pieces the longest silence, and a tenth of it all."""
    wait_for_server: Annotated[
        str | None,
        Option("--wait-for-server", "How long to wait for a server that is away: 2h, 90m.", "model", metavar="TIME"),
    ] = None
    batch: Annotated[
        bool, Option("--batch", "Ask through the provider's batches, in rounds: half the price, hours later.", "model")
    ] = False
    batch_wait: Annotated[
        str, Option("--batch-wait", "How long a round of batches waits for its last request.", "model", metavar="TIME")
    ] = "10m"
    batch_tail: Annotated[
        int, Option("--batch-tail", "Ask directly once fewer questions are left.", "model", metavar="N", at_least=0)
    ] = 0
    retries: Annotated[int, Option("retries", parent="--model-arg", at_least=0)] = 3
    """How many requests follow one that failed."""
    extra: Annotated[
        Mapping[str, Json],
        Option(
            "--model-arg",
            "Anything else for the model, such as price=IN/OUT. price is in USD per million tokens; temperature, "
            "timeout_s, retries, keep_images, prompt_cache=on|off and frame are ours, other keys go to the provider.",
            "model",
            common=True,
            metavar="K=V",
        ),
    ] = field(default_factory=dict)
    """Further values of `--model-arg KEY=VALUE`, passed on to the provider."""
    tool_calling: Annotated[
        ToolCalling,
        Option("--tool-calling", "How the model calls tools: by the provider's interface or in text.", "tools"),
    ] = "auto"
    device: str | None = None
    keep_images: Annotated[int, Option("keep_images", parent="--model-arg", at_least=0)] = 8
    """How many images besides those of the opening message stay in a request."""
    price: Annotated[Price | None, Option("price", parent="--model-arg")] = None
    prompt_cache: Annotated[bool, Option("prompt_cache", parent="--model-arg")] = True
    """Whether providers keep what requests share (`models/prompt_cache.py`)."""

    def __post_init__(self) -> None:
        refuse_too_small(self)
        if self.wait_for_server is not None:
            seconds_of(self.wait_for_server)
        seconds_of(self.batch_wait, "--batch-wait")
        if not self.timeout_s > 0:
            raise UsageError(f"timeout_s={self.timeout_s}: must be above 0")
        if self.tool_calling not in ("native", "text", "auto"):
            raise UsageError(f"--tool-calling {self.tool_calling}: choose native, text or auto")


def parse_model_args(items: Sequence[str]) -> ModelSettings:
    """Read `--model-arg K=V`: `V` is JSON where it parses as JSON, else a string.

    A key that is a field of `ModelSettings` sets it (`temperature=null` leaves it to the provider, `price=IN/OUT`,
    `prompt_cache=on|off`); everything else goes to the provider, as `extra`.

    Raises:
        UsageError: an item without `=`, a key given twice, or a value that does not fit.
    """
    given = pairs("--model-arg", items)
    values: dict[str, Json] = {key: text if key == "price" else _value(text) for key, text in given.items()}
    named: dict[str, Any] = {
        leaf.path[0]: _checked(leaf, values.pop(leaf.option.name))
        for leaf in leaves(ModelSettings, "--model-arg")
        if leaf.option.name in values
    }
    return ModelSettings(extra=values, **named)


def _value(text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=lambda name: name)
    except ValueError:
        return text
    return value


def _checked(leaf: Leaf, value: Json) -> object:
    """The value of one of our own keys of `--model-arg`."""
    wrong = f"--model-arg {leaf.option.name}={value}: must be"
    if leaf.type is Price:
        return parse_price(str(value))
    if leaf.type is bool:
        if value not in ("on", "off"):
            raise UsageError(f"{wrong} on or off")
        return value == "on"
    if value is None and leaf.optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int if leaf.type is int else int | float):
        raise UsageError(f"{wrong} a {'whole ' if leaf.type is int else ''}number")
    return leaf.type(value)


@dataclass(frozen=True)
class BackendChoice:
    """Which code and weights may answer, where, and how much of them may be loaded at once."""

    backend: Annotated[
        Backends,
        Option(
            "--backend",
            "How tools compute. auto takes learned networks where their weights are on disk.",
            "tools",
            common=True,
        ),
    ] = "auto"
    weights: Annotated[
        Mapping[str, str],
        Option(
            "--weights",
            "Weights of a tool's learned backend. DIR is a folder or an id of the hub.",
            "tools",
            common=True,
            metavar="TOOL=DIR",
        ),
    ] = field(default_factory=dict)
    device: Annotated[
        str,
        Option(
            "--device",
            "auto, cpu, mps, cuda (all) or cuda:N,cuda:M.",
            "tools",
            common=True,
            metavar="D",
            form="device",
            variable="HYBRID_DEVICE",
        ),
    ] = CPU
    """Of learned backends: `cpu`, `mps`, `cuda`, which is all of them, `cuda:N,cuda:M`, or `auto`."""
    memory_bytes: Annotated[
        int | None,
        Option(
            "--tool-memory",
            "Weights of tools kept loaded at once on a device.",
            "tools",
            metavar="GB",
            form="GB",
            at_least=0,
        ),
    ] = None
    """Weights kept loaded, by their size on disk; what was used longest ago goes first. None keeps everything."""
    unchecked: Annotated[
        bool,
        Option(
            "--unchecked-weights",
            "Take learned weights without their known-answer images; the run is labelled, as by --allow.",
            "tools",
        ),
    ] = False
    """Take learned weights without their known-answer images: only for weights that are random by design."""
    dtype: Annotated[
        Dtypes,
        Option(
            "--tool-dtype",
            "Numbers that networks compute in. auto: float32; on CUDA TF32, and bfloat16 for a tool whose card says "
            "that it changes no decision.",
            "tools",
        ),
    ] = "auto"
    compiled: Annotated[
        bool,
        Option(
            "--tool-compile",
            "Compile tools' networks (torch.compile) as they load. It counts to --max-load-seconds, to no question.",
            "tools",
        ),
    ] = False


@dataclass(frozen=True)
class ServiceOptions(BackendChoice):
    """Which code and weights may answer, where, and for how long."""

    timeout_s: float = 300.0
    """How long one request, or the batch that it is in, may run."""
    queue_s: float = QUEUE_S
    """How long a request may wait for its turn, or for weights to load."""
    pictures: Annotated[
        Pictures,
        Option(
            "--pictures",
            "How crops and overlays are stored and sent. auto: as JPEG (quality 95, 4:4:4) where made from a JPEG, "
            "else as PNG.",
            "tools",
        ),
    ] = "auto"
    gpu_share: Annotated[
        float,
        Option(
            "--tool-gpu",
            "Share of a GPU for the tools of --engine ray. A model's server in the same cluster takes the rest.",
            "limits",
            metavar="SHARE",
            form="amount",
        ),
    ] = 1.0
    """Share of its GPU that a tool actor takes, 0..1, by the books of the cluster."""
    coming_s: float = COMING_WAIT_S
    """How long a batch that is not full waits for requests that are being decoded."""
    threads: int = max(1, min(MOST_THREADS, os.cpu_count() or 1))
    """Decode, draw and encode for a learned tool, and run the weight-free ones: a GPU wants many of them."""
    isolated: bool = False
    """Run tools that are files of `tools/` in a worker process, which is killed and started again when one of them
    hangs, crashes or leaks (`hybrid/serving/supervisor.py`). What follows holds for such a process alone."""
    import_s: float = 60.0
    """How long the modules of a tool may take to be imported."""
    load_s: Annotated[
        float,
        Option(
            "--max-load-seconds",
            "How long a tool's weights may take to load; the run goes on without a tool that takes longer.",
            "limits",
            metavar="S",
            form="amount",
        ),
    ] = LOAD_S
    """How long the weights of a tool may take to load, download included."""
    silence_s: float = 30.0
    """How long the process may give no sign of life: a tool that holds the interpreter stops all others."""
    grace_s: float = 10.0
    """How long work goes on after its last caller has left."""
    process_bytes: int = field(default_factory=lambda: memory_to_use() * 4 // 5)
    """Resident memory of the process: four fifths of what the machine, or a container, leaves to all."""


@dataclass(frozen=True)
class Limits:
    """Budgets of a question. `turns` is per ask, everything else per question; None is no limit.

    `seconds` is running time of model and tools, without waiting in queues of ours (`hybrid/timing.py`).
    """

    tool_calls: Annotated[
        int, Option("--max-tool-calls", "Tool calls per question.", "limits", common=True, metavar="N", at_least=0)
    ] = 8
    turns: Annotated[
        int, Option("--max-turns", "Model calls per ask.", "limits", common=True, metavar="N", at_least=1)
    ] = 8
    seconds: Annotated[
        float | None, Option("--max-seconds", "Running time per question.", "limits", metavar="S", form="amount")
    ] = 600.0
    tokens: Annotated[
        int | None,
        Option("--max-total-tokens", "Tokens read and written per question.", "limits", metavar="N", at_least=1),
    ] = None
    cost_usd: Annotated[
        float | None,
        Option(
            "--max-cost", "USD per question; needs --model-arg price=IN/OUT.", "limits", metavar="USD", form="amount"
        ),
    ] = None


@dataclass(frozen=True)
class Objects:
    """Objects that Python code hands in instead of naming them, each under the name that it has in the run."""

    model: Any = None
    """The LangChain chat model that is called `RunConfig.model`; what it is counts under `model`."""
    solvers: Mapping[str, Any] = field(default_factory=dict)
    """A `hybrid.solving.solver.Solver` each."""
    tools: Mapping[str, Any] = field(default_factory=dict)
    """A `hybrid.tool.Tool` each. These run in this process."""


@dataclass(frozen=True)
class RunLimits:
    """Budgets of one command, counted from its start; None is no limit. They are no part of a run's identity."""

    model_calls: Annotated[
        int | None, Option("--run-max-calls", "Model calls of this command.", "limits", metavar="N", at_least=1)
    ] = None
    tokens: Annotated[
        int | None, Option("--run-max-tokens", "Tokens of this command.", "limits", metavar="N", at_least=1)
    ] = None
    seconds: Annotated[
        float | None, Option("--run-max-seconds", "Wall time of this command.", "limits", metavar="S", form="amount")
    ] = None
    cost_usd: Annotated[
        float | None,
        Option(
            "--run-max-cost",
            "USD of this command; needs --model-arg price=IN/OUT.",
            "limits",
            common=True,
            metavar="USD",
            form="amount",
        ),
    ] = None
