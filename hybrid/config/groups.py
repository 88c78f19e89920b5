"""The groups of options in a configuration: model calls, tools, and budgets.

`Option` declares how each field is set from outside (`hybrid/config/option.py`). Importing this loads no library.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, get_args

from hybrid.config.durations import seconds_of
from hybrid.config.memory import memory_to_use
from hybrid.config.option import OptionField, option, option_fields, refuse_too_small
from hybrid.config.pairs import pairs
from hybrid.config.words import KEPT, Backends, Dtypes, Pictures, Streaming, Thoughts, ToolCalling, ToolPictures
from hybrid.core.errors import UsageError
from hybrid.core.timing import QUEUE_S
from hybrid.core.types import Json

CPU: Final = "cpu"
# CUDA if torch sees a GPU. Checking requires importing torch, so only the first learned backend checks.
AUTO: Final = "auto"
# Seconds for which a batch waits for requests that are being decoded.
COMING_WAIT_S = 0.25
# Longer than weights take to load from a slow disk; all tools on the device wait meanwhile.
LOAD_S = 300.0
MAX_THREADS = 16
TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million input tokens (`input_usd`) and output tokens (`output_usd`, including reasoning).

    `cached_usd` is the price of input tokens read from the provider's cache, `written_usd` that of tokens written to
    it; None if they cost the same as other input tokens.
    """

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    written_usd: float | None = None

    def of(self, read: float, output: float, cached: float = 0.0, stored: float = 0.0) -> float:
        """Return the cost in dollars; `cached` and `stored` (written to the cache) are part of `read`."""
        cached_price = self.input_usd if self.cached_usd is None else self.cached_usd
        storing = self.input_usd if self.written_usd is None else self.written_usd
        new = (read - cached - stored) * self.input_usd
        return (new + cached * cached_price + stored * storing + output * self.output_usd) / TOKENS_PER_PRICE


def parse_price(text: str) -> Price:
    """Parse `IN/OUT`, `IN/OUT/CACHED` or `IN/OUT/CACHED/WRITTEN`, such as `3/15/0.3/3.75`.

    Raises:
        UsageError: anything but non-negative amounts.
    """
    parts = text.split("/")
    try:
        amounts = [float(part) for part in parts]
    except ValueError:
        amounts = []
    if len(amounts) not in (2, 3, 4) or not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
        forms = "IN/OUT, IN/OUT/CACHED or IN/OUT/CACHED/WRITTEN"
        raise UsageError(f"--model-arg price={text}: write {forms}, US dollars per million tokens")
    return Price(*amounts)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of model calls; None leaves an option to the provider."""

    base_url: Annotated[str | None, option("--base-url")] = None
    image_detail: Annotated[str | None, option("--image-detail")] = None
    # Largest width x height of images sent.
    max_pixels: Annotated[int | None, option("--max-pixels")] = None
    reasoning_effort: Annotated[str | None, option("--reasoning-effort")] = None
    thoughts: Annotated[Thoughts, option("--reasoning")] = "keep"
    stream: Annotated[Streaming, option("--stream")] = "auto"
    max_tokens: Annotated[int | None, option("--max-tokens")] = None
    temperature: Annotated[float | None, option("temperature", "--model-arg")] = 0.0
    seed: int | None = None
    # Timeout of one HTTP request; for a stream it limits each gap, and ten times as much the total.
    timeout_s: Annotated[float, option("timeout_s", "--model-arg")] = 120.0
    wait_for_server: Annotated[str | None, option("--wait-for-server")] = None
    # Arguments of a server that this program starts (`models/served`).
    server_args: Annotated[Mapping[str, str], option("--server-arg")] = field(default_factory=dict)
    batch: Annotated[bool, option("--batch")] = False
    batch_wait: Annotated[str, option("--batch-wait")] = "10m"
    batch_tail: Annotated[int, option("--batch-tail")] = 0
    # Number of retries after a failed request.
    retries: Annotated[int, option("retries", "--model-arg")] = 3
    # Other values of `--model-arg KEY=VALUE`, passed on to the provider.
    extra: Annotated[Mapping[str, Json], option("--model-arg")] = field(default_factory=dict)
    tool_calling: Annotated[ToolCalling, option("--tool-calling")] = "auto"
    device: str | None = None
    # Number of images that stay in a request, in addition to those of the opening message.
    keep_images: Annotated[int, option("keep_images", "--model-arg")] = 8
    keep_pictures: Annotated[str, option("--keep-pictures")] = ""
    # Where tools' pictures are sent; `auto` follows the probe of the run (`running/before_asking.py`).
    tool_pictures: Annotated[ToolPictures, option("tool_pictures", "--model-arg")] = "auto"
    # The server's limits on pictures, `least_side:28,most_ratio:200` (`models/picture_limits.py`).
    image_limits: Annotated[str, option("image_limits", "--model-arg")] = ""
    # Results of a run's probe, not options: whether pictures of tools are sent inside the tool message, and keys merged
    # into the body so that the template keeps the thinking.
    results_inside: bool = False
    thinking_switch: Mapping[str, Json] = field(default_factory=dict)
    price: Annotated[Price | None, option("price", "--model-arg")] = None
    # Whether requests use providers' prompt caches (`models/prompt_cache.py`).
    prompt_cache: Annotated[bool, option("prompt_cache", "--model-arg")] = True

    def __post_init__(self) -> None:
        refuse_too_small(self)
        if self.wait_for_server is not None:
            seconds_of(self.wait_for_server)
        seconds_of(self.batch_wait, "--batch-wait")
        if not self.timeout_s > 0:
            raise UsageError(f"timeout_s={self.timeout_s}: must be above 0")
        if self.keep_pictures not in ("", *KEPT) and not re.fullmatch("[0-9]{1,6}", self.keep_pictures):
            raise UsageError(f"--keep-pictures {self.keep_pictures}: choose {', '.join(KEPT)}, or a number")
        if self.tool_pictures not in get_args(ToolPictures):
            raise UsageError(
                f"--model-arg tool_pictures={self.tool_pictures}: choose {', '.join(get_args(ToolPictures))}"
            )
        read_image_limits(self.image_limits)
        if self.tool_calling not in ("native", "text", "auto"):
            raise UsageError(f"--tool-calling {self.tool_calling}: choose native, text or auto")

    @property
    def pictures_kept(self) -> int:
        """Number of tools' pictures that stay in a request, in addition to those recalled by name."""
        word = self.keep_pictures
        return self.keep_images if not word else KEPT[word] if word in KEPT else int(word)


# The limits that `--model-arg image_limits` accepts; 0 if unknown (`hybrid/models/picture_limits.py`).
IMAGE_LIMITS: Final = (
    *("least_side", "most_ratio", "most_side", "most_pictures", "many", "most_side_of_many"),
    *("most_bytes", "most_request_bytes"),
)


def read_image_limits(text: str) -> dict[str, int]:
    """Parse limits such as `least_side:28,most_ratio:200`. Raises `UsageError` for another form or name."""
    limits: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, number = part.strip().partition(":")
        if name not in IMAGE_LIMITS or not re.fullmatch("[0-9]{1,10}", number):
            raise UsageError(
                f"--model-arg image_limits={text}: write NAME:NUMBER,...; the names are {', '.join(IMAGE_LIMITS)}"
            )
        limits[name] = int(number)
    return limits


def parse_model_args(items: Sequence[str]) -> ModelSettings:
    """Parse `--model-arg K=V`: `V` is JSON if it parses as JSON, else a string.

    A key that is a field of `ModelSettings` sets it (`temperature=null` leaves it to the provider, `price=IN/OUT`,
    `prompt_cache=on|off`); everything else is passed to the provider, as `extra`.

    Raises:
        UsageError: an item without `=`, a key given twice, or a value that does not fit.
    """
    arguments = pairs("--model-arg", items)
    values: dict[str, Json] = {}
    for key, text in arguments.items():
        try:
            values[key] = text if key == "price" else json.loads(text, parse_constant=lambda name: name)
        except ValueError:
            values[key] = text
    fields: dict[str, Any] = {
        field.path[0]: _checked(field, values.pop(field.option.name))
        for field in option_fields(ModelSettings, "--model-arg")
        if field.option.name in values
    }
    return ModelSettings(extra=values, **fields)


def _checked(field: OptionField, value: Json) -> object:
    """Convert the value of one of hybrid's own keys of `--model-arg`."""
    wrong = f"--model-arg {field.option.name}={value}: must be"
    if field.type is Price:
        return parse_price(str(value))
    if field.type is bool:
        if value not in ("on", "off"):
            raise UsageError(f"{wrong} on or off")
        return value == "on"
    if value is None and field.optional:
        return None
    if field.option.name in ("tool_pictures", "image_limits"):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int if field.type is int else int | float):
        raise UsageError(f"{wrong} a {'whole ' if field.type is int else ''}number")
    return field.type(value)


@dataclass(frozen=True)
class BackendChoice:
    """Allowed code and weights of the tools, their device, and the limit of loaded weights."""

    backend: Annotated[Backends, option("--backend")] = "auto"
    weights: Annotated[Mapping[str, str], option("--weights")] = field(default_factory=dict)
    # Device of learned backends: `cpu`, `mps`, `cuda` (all GPUs), `cuda:N,cuda:M`, or `auto`.
    device: Annotated[str, option("--device")] = CPU
    # Limit for loaded weights, by their size on disk; the least recently used are unloaded. None means no limit.
    memory_bytes: Annotated[int | None, option("--tool-memory")] = None
    # Accept learned weights without their known-answer checks: only for weights that are random by design.
    unchecked: Annotated[bool, option("--unchecked-weights")] = False
    dtype: Annotated[Dtypes, option("--tool-dtype")] = "auto"
    compiled: Annotated[bool, option("--tool-compile")] = False


@dataclass(frozen=True)
class ServiceOptions(BackendChoice):
    """Which code and weights may answer, where, and with which time limits."""

    # Longest running time of a request, or of its batch.
    timeout_s: float = 300.0
    # Longest time for which a request may wait in the queue, or for weights to load.
    queue_s: float = QUEUE_S
    pictures: Annotated[Pictures, option("--pictures")] = "auto"
    # Share of its GPU that a tool actor reserves in the cluster, 0..1.
    gpu_share: Annotated[float, option("--tool-gpu")] = 1.0
    # Seconds for which a batch that is not full waits for requests that are being decoded.
    coming_s: float = COMING_WAIT_S
    # Threads that decode, draw and encode for a learned tool, and run the weight-free ones: a GPU needs many.
    threads: int = max(1, min(MAX_THREADS, os.cpu_count() or 1))
    # Run tools that are files of `tools/` in a worker process, which is killed and restarted if one of them hangs,
    # crashes or leaks (`hybrid/serving/supervisor.py`). The following fields apply only to such a process.
    isolated: bool = False
    # Longest time for importing the modules of a tool.
    import_s: float = 60.0
    # Longest time for loading the weights of a tool, including download.
    load_s: Annotated[float, option("--max-load-seconds")] = LOAD_S
    # Longest time without a sign of life: a tool that blocks the interpreter stops all others.
    silence_s: float = 30.0
    # Seconds for which work continues after its last caller has left.
    grace_s: float = 10.0
    # Largest resident memory of the process: by default 80 % of the memory of the machine or container.
    process_bytes: int = field(default_factory=lambda: memory_to_use() * 4 // 5)


@dataclass(frozen=True)
class Limits:
    """Budgets of a question. `turns` is per ask, everything else per question; None means no limit.

    `seconds` is running time of model and tools, without waiting in hybrid's queues (`hybrid/core/timing.py`).
    """

    tool_calls: Annotated[int, option("--max-tool-calls")] = 8
    turns: Annotated[int, option("--max-turns")] = 8
    seconds: Annotated[float | None, option("--max-seconds")] = 600.0
    tokens: Annotated[int | None, option("--max-total-tokens")] = None
    cost_usd: Annotated[float | None, option("--max-cost")] = None


@dataclass(frozen=True)
class Objects:
    """Objects that Python code passes in instead of naming them, each under its name in the run."""

    # The LangChain chat model that `RunConfig.model` names; its identity is that under `model`.
    model: Any = None
    # Each is a `hybrid.solving.solver.Solver`.
    solvers: Mapping[str, Any] = field(default_factory=dict)
    # Each is a `hybrid.tool.Tool`. These run in this process.
    tools: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunLimits:
    """Budgets of one command, counted from its start; None means no limit. They are not part of a run's identity."""

    model_calls: Annotated[int | None, option("--run-max-calls")] = None
    tokens: Annotated[int | None, option("--run-max-tokens")] = None
    seconds: Annotated[float | None, option("--run-max-seconds")] = None
    cost_usd: Annotated[float | None, option("--run-max-cost")] = None
