"""The groups of options in a configuration: model calls, tools, and budgets.

`Option` declares how each field is set from outside (`hybrid/config/option.py`). Importing this loads no library.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hybrid.config.memory import memory_to_use
from hybrid.config.option import LIMITS, MODEL, TOOLS, OptionField, check_values, model_arg, option_fields
from hybrid.config.price import Price
from hybrid.config.values import check_value, pairs, seconds_of
from hybrid.config.words import KEPT, Backends, Dtypes, Pictures, Streaming, Thoughts, ToolCalling, ToolPictures
from hybrid.core.errors import UsageError
from hybrid.core.timing import QUEUE_S
from hybrid.core.types import Json

CPU: Final = "cpu"
# CUDA if torch sees a GPU. Checking requires importing torch, so only the first learned backend checks.
AUTO: Final = "auto"
# Seconds for which a batch waits for requests whose images are being decoded.
COMING_WAIT_S = 0.25
# Limit in seconds for loading weights; even a slow disk takes less. All tools on the device wait during loading.
LOAD_S = 300.0
MAX_THREADS = 16


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of model calls; None leaves an option to the provider."""

    base_url: str | None = MODEL(
        "--base-url URL",
        "Address of an OpenAI-compatible server. Example: http://127.0.0.1:8000/v1. HYBRID_BASE_URL applies to models "
        "of the provider that HYBRID_MODEL names (openai if it is not set).",
        None,
        common="run",
        form="address",
        variable="HYBRID_BASE_URL",
        about_variable="for models of the provider that `HYBRID_MODEL` names, `openai` without it",
    )
    image_detail: str | None = MODEL("--image-detail", "Detail in which OpenAI reads images: low, high or auto.", None)
    # Largest width x height of images sent.
    max_pixels: int | None = MODEL(
        "--max-pixels N", "Scale larger images down to at most this many pixels.", None, at_least=1
    )
    reasoning_effort: str | None = MODEL(
        "--reasoning-effort WORD", "How much a reasoning model thinks, in the provider's words: low, high, ...", None
    )
    thoughts: Thoughts = MODEL(
        "--reasoning", "Whether the model's own reasoning is sent back to it between turns.", "keep"
    )
    stream: Streaming = MODEL(
        "--stream",
        "Whether replies are streamed (OpenAI's chat API). auto: only if the server requires it or does it anyway.",
        "auto",
    )
    max_tokens: int | None = MODEL(
        "--max-tokens N", "Maximum length of a model's reply, in tokens.", None, common="run", at_least=1
    )
    temperature: float | None = model_arg("temperature", 0.0, at_least=0)
    seed: int | None = None
    # Timeout of one HTTP request; for a stream it limits each gap, and ten times this value limits the total.
    timeout_s: float = model_arg("timeout_s", 120.0)
    wait_for_server: str | None = MODEL(
        "--wait-for-server TIME", "How long to wait for a server that is down: 2h, 90m.", None
    )
    # Arguments of a server that this program starts (`models/served`).
    server_args: Mapping[str, str] = MODEL(
        "--server-arg KEY=VALUE",
        "An argument of the server that vllm:, sglang: or llamacpp: starts, without dashes; for a flag, KEY=on or "
        "KEY=off. May be given several times.",
        {},
    )
    batch: bool = MODEL(
        "--batch",
        "Send requests through the provider's batch API, in rounds: this costs half as much and takes hours.",
        False,
    )
    batch_wait: str = MODEL(
        "--batch-wait TIME", "How long a round of batches waits for requests that are still missing.", "10m"
    )
    batch_tail: int = MODEL(
        "--batch-tail N", "Send requests directly, not in batches, once fewer than N questions are left.", 0, at_least=0
    )
    # Number of retries after a failed request.
    retries: int = model_arg("retries", 3, at_least=0)
    # Other values of `--model-arg KEY=VALUE`, passed on to the provider.
    extra: Mapping[str, Json] = MODEL(
        "--model-arg K=V",
        "Any other option of the model, such as price=IN/OUT. price is in USD per million tokens "
        "(IN/OUT/CACHED/WRITTEN if the provider's cache has prices); temperature, timeout_s, retries, "
        "keep_images, prompt_cache=on|off, frame, tool_pictures=inside|beside and image_limits=NAME:N,... are "
        "hybrid's own; other keys go to the provider.",
        {},
        common=True,
    )
    tool_calling: ToolCalling = TOOLS(
        "--tool-calling", "How the model calls tools: by the provider's interface or in text.", "auto"
    )
    device: str | None = None
    # Number of images that stay in a request, in addition to those of the opening message.
    keep_images: int = model_arg("keep_images", 8, at_least=0)
    keep_pictures: str = TOOLS(
        "--keep-pictures WORD|N",
        "Which pictures of tools stay in the dialogue: all, latest, the last N, or asked (each for one turn only). "
        "A dropped picture is sent again if the model names it.  [default: the last 8; dropped ones are not sent "
        "again]",
        "",
    )
    # Where tools' pictures are sent; `auto` follows the probe of the run (`running/before_asking.py`).
    tool_pictures: ToolPictures = model_arg("tool_pictures", "auto")
    # The server's limits on pictures, `least_side:28,most_ratio:200` (`models/picture_limits.py`).
    image_limits: str = model_arg("image_limits", "")
    # Results of a run's probe, not options: whether tools' pictures are sent inside the tool message, and keys to merge
    # into the request body so that the chat template keeps the thinking.
    results_inside: bool = False
    thinking_switch: Mapping[str, Json] = field(default_factory=dict)
    price: Price | None = model_arg("price", None)
    # Whether requests use providers' prompt caches (`models/prompt_cache.py`).
    prompt_cache: bool = model_arg("prompt_cache", True)

    def __post_init__(self) -> None:
        check_values(self)
        if self.wait_for_server is not None:
            seconds_of(self.wait_for_server)
        seconds_of(self.batch_wait, "--batch-wait")
        if not self.timeout_s > 0:
            raise UsageError(f"timeout_s={self.timeout_s}: must be above 0")
        if self.keep_pictures not in ("", *KEPT) and not re.fullmatch("[0-9]{1,6}", self.keep_pictures):
            raise UsageError(f"--keep-pictures {self.keep_pictures}: choose {', '.join(KEPT)}, or a number")
        read_image_limits(self.image_limits)

    @property
    def pictures_kept(self) -> int:
        """Number of tools' pictures that stay in a request, in addition to those recalled by name."""
        word = self.keep_pictures
        return self.keep_images if not word else KEPT[word] if word in KEPT else int(word)


# Names of the limits that `--model-arg image_limits` accepts; 0 stands for an unknown limit
# (`hybrid/models/picture_limits.py`).
IMAGE_LIMITS: Final = (
    *("least_side", "most_ratio", "most_side", "most_pictures", "many", "most_side_of_many"),
    *("most_bytes", "most_request_bytes"),
)


def read_image_limits(text: str) -> dict[str, int]:
    """Parse limits such as `least_side:28,most_ratio:200`. Raises `UsageError` for another form or an unknown name."""
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
    values, extra = read_model_args(option_fields(ModelSettings, "--model-arg"), pairs("--model-arg", items))
    return ModelSettings(extra=extra, **{path[0]: value for path, value in values.items()})


def read_model_args(
    fields: Sequence[OptionField], arguments: Mapping[str, str]
) -> tuple[dict[tuple[str, ...], Any], dict[str, Json]]:
    """Return two mappings: the values of fields by path, and all other values by key, which are passed to the provider.

    Raises:
        UsageError: a value that does not fit.
    """
    extra = {key: _as_json(text) for key, text in arguments.items()}
    values: dict[tuple[str, ...], Any] = {}
    for option_field in fields:
        key = option_field.option.name
        if key in extra:
            value = extra.pop(key)
            try:
                is_unset = value is None and option_field.optional
                values[option_field.path] = None if is_unset else check_value(option_field, value)
            except ValueError as error:
                raise UsageError(f"--model-arg {key}={arguments[key]}: {error}") from error
    return values, extra


def _as_json(text: str) -> Json:
    """Return the value of a text that is JSON, else the text."""
    try:
        value: Json = json.loads(text, parse_constant=lambda name: name)
    except ValueError:
        return text
    return value


@dataclass(frozen=True)
class BackendChoice:
    """The code and the weights that the tools may use, their device, and the limit for loaded weights."""

    backend: Backends = TOOLS(
        "--backend", "How tools compute. auto uses learned networks if their weights are on disk.", "auto", common=True
    )
    weights: Mapping[str, str] = TOOLS(
        "--weights [TOOL=]DIR",
        "Weights of a tool's learned backend. DIR is a folder or an id of the hub; TOOL= may be left out if only "
        "one tool loads weights.",
        {},
        common="run",
    )
    # Device of learned backends: `cpu`, `mps`, `cuda` (all GPUs), `cuda:N,cuda:M`, or `auto`.
    device: str = TOOLS(
        "--device D",
        "auto, cpu, mps, cuda (all) or cuda:N,cuda:M.",
        CPU,
        common=True,
        form="device",
        variable="HYBRID_DEVICE",
    )
    # Limit for loaded weights, by their size on disk; the least recently used are unloaded. None means no limit.
    memory_bytes: int | None = TOOLS(
        "--tool-memory GB",
        "Limit for the tool weights loaded on a device, in GB; the least recently used are unloaded.",
        None,
        at_least=0,
        form="GB",
    )
    # Accept learned weights without their known-answer checks: only for weights that are random by design.
    unchecked: bool = TOOLS(
        "--unchecked-weights",
        "Use learned weights without checking their known-answer images; the run is labelled, as by --allow.",
        False,
    )
    dtype: Dtypes = TOOLS(
        "--tool-dtype",
        "Floating-point precision of the networks. auto: float32; on CUDA TF32, and bfloat16 for a tool whose card "
        "says that it changes no decision.",
        "auto",
    )
    compiled: bool = TOOLS(
        "--tool-compile",
        "Compile tools' networks (torch.compile) as they load. It counts towards --max-load-seconds, not towards "
        "any question.",
        False,
    )


@dataclass(frozen=True)
class ServiceOptions(BackendChoice):
    """Which code and weights may answer, where, and with which time limits."""

    # Longest running time of a request, or of its batch.
    timeout_s: float = 300.0
    # Longest time that a request may wait in the queue or for weights to load.
    queue_s: float = QUEUE_S
    pictures: Pictures = TOOLS(
        "--pictures",
        "File format of crops and overlays. auto: JPEG (quality 95, 4:4:4) if the original is a JPEG, else PNG.",
        "auto",
    )
    # Share of its GPU that a tool actor reserves in the cluster, 0..1.
    gpu_share: float = LIMITS(
        "--tool-gpu SHARE",
        "Share of a GPU that each tool reserves with --engine ray. The rest is left for a model's server.",
        1.0,
    )
    # Seconds for which a batch that is not full waits for requests whose images are being decoded.
    coming_s: float = COMING_WAIT_S
    # Number of threads that decode, draw and encode for learned tools, and run weight-free tools. A GPU needs many
    # threads to stay busy.
    threads: int = max(1, min(MAX_THREADS, os.cpu_count() or 1))
    # Run tools that are files of `tools/` in a worker process, which is killed and restarted if one of them hangs,
    # crashes or leaks (`hybrid/serving/supervisor.py`). The following fields apply only to such a process.
    isolated: bool = False
    # Longest time for importing the modules of a tool.
    import_s: float = 60.0
    # Longest time for loading the weights of a tool, including download.
    load_s: float = LIMITS(
        "--max-load-seconds S",
        "How long a tool's weights may take to load; the run goes on without a tool that takes longer.",
        LOAD_S,
    )
    # Longest time without a heartbeat: a tool that blocks the interpreter stops all others.
    silence_s: float = 30.0
    # Seconds for which work continues after its last caller has left.
    grace_s: float = 10.0
    # Largest resident memory of the process: by default 80 % of the memory of the machine or container.
    process_bytes: int = field(default_factory=lambda: memory_to_use() * 4 // 5)


@dataclass(frozen=True)
class Limits:
    """Budgets of a question. `turns` counts per prompt, everything else per question; None means no limit.

    `seconds` is the running time of model and tools, without waiting in hybrid's queues (`hybrid/core/timing.py`).
    """

    tool_calls: int = LIMITS(
        "--max-tool-calls N", "Maximum number of tool calls per question.", 8, common=True, at_least=0
    )
    turns: int = LIMITS("--max-turns N", "Maximum number of model calls per prompt.", 8, common="run", at_least=1)
    seconds: float | None = LIMITS("--max-seconds S", "Maximum running time per question, in seconds.", 600.0)
    tokens: int | None = LIMITS(
        "--max-total-tokens N", "Maximum number of tokens read and written per question.", None, at_least=1
    )
    cost_usd: float | None = LIMITS(
        "--max-cost USD", "Maximum cost per question in USD; needs --model-arg price=IN/OUT.", None
    )


@dataclass(frozen=True)
class Objects:
    """Objects that Python code passes in instead of naming them, each under its name in the run."""

    # The LangChain chat model that `RunConfig.model` names. The identity of a run contains it under `model`.
    model: Any = None
    # Each is a `hybrid.solving.solver.Solver`.
    solvers: Mapping[str, Any] = field(default_factory=dict)
    # Each is a `hybrid.tool.Tool`. These run in this process.
    tools: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunLimits:
    """Budgets of one command, counted from its start; None means no limit. They are not part of a run's identity."""

    model_calls: int | None = LIMITS(
        "--run-max-calls N", "Maximum number of model calls of this command.", None, at_least=1
    )
    tokens: int | None = LIMITS("--run-max-tokens N", "Maximum number of tokens of this command.", None, at_least=1)
    seconds: float | None = LIMITS("--run-max-seconds S", "Maximum duration of this command, in seconds.", None)
    cost_usd: float | None = LIMITS(
        "--run-max-cost USD",
        "Maximum cost in USD; needs --model-arg price=IN/OUT.",
        None,
        common=True,
    )
