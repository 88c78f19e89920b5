"""The options of `hybrid run` as typed, turned into a `RunConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hybrid.benchmarks.base import BenchmarkCard
from hybrid.cli._common_settings import KEYS, asking, checked
from hybrid.errors import UsageError, did_you_mean
from hybrid.models import ModelSettings, parse_model_args
from hybrid.models.options import for_samples
from hybrid.pairs import pairs
from hybrid.registry import load
from hybrid.running.config import RunConfig
from hybrid.serving.loader import AUTO
from hybrid.serving.service import ServiceOptions
from hybrid.solving.budgets import RunLimits
from hybrid.solving.solver import Limits
from hybrid.types import Json

SAME = (
    *("benchmark", "model", "data", "split", "tasks", "limit", "seed", "concurrency", "out", "tool_output", "show"),
    *("images", "rotate", "protocol", "prompts", "trust", "allow", "engine", "address", "mcp"),
    *("trace", "trace_text"),
)
"""Options that are in a `RunConfig` under their own names and as they are."""
OF_THE_MODEL = (*("base_url", "image_detail", "max_pixels", "reasoning_effort", "max_tokens", "seed", "tool_calling"),)
"""Those that are in its `ModelSettings` so."""
OF_ANY_BENCHMARK = KEYS
"""The keys of `--setting` that say how a model is asked, and are no choice of a benchmark's protocol."""


def config_of(options: Mapping[str, Any], given: Mapping[str, Json] | None = None) -> RunConfig:
    """The options as a `RunConfig`, and those `given` for its manifest. Raises `UsageError` for what does not fit."""
    args = parse_model_args(options["model_args"])
    _need_price(options, args)
    settings = pairs("--setting", options["settings"])
    _refuse_misspelt(options["benchmark"], settings)
    ours = checked(settings)
    model_settings = _model_settings(options, args, int(ours.get("samples", "1")))
    _need_caption_price(options, ours)
    return RunConfig(
        **{name: options[name] for name in SAME},
        **asking(ours, model_settings),
        solvers=tuple(dict.fromkeys(options["solvers"])),
        model_settings=model_settings,
        settings={key: value for key, value in settings.items() if key not in OF_ANY_BENCHMARK},
        tools=tuple(name.strip() for name in (options["tool_names"] or "").split(",") if name.strip()),
        mcp_images=pairs("--mcp-image", options["mcp_images"]),
        frame=str(args.extra.get("frame", "")),
        service=ServiceOptions(
            backend=options["backend"],
            weights=pairs("--weights", options["weights"]),
            device=options["device"],
            memory_bytes=None if options["tool_memory"] is None else int(options["tool_memory"] * 1e9),
            load_s=options["max_load_seconds"],
            unchecked=options["unchecked_weights"],
            pictures=options["pictures"],
            isolated=True,
        ),
        given=given or {},
        cache=not options["no_cache"],
        format_line=options["format_line"] == "on",
        image_labels=options["image_labels"] == "on",
        limits=Limits(
            tool_calls=options["max_tool_calls"],
            turns=options["max_turns"],
            seconds=options["max_seconds"],
            tokens=options["max_total_tokens"],
            cost_usd=options["max_cost"],
        ),
        run_limits=RunLimits(
            model_calls=options["run_max_calls"],
            tokens=options["run_max_tokens"],
            seconds=options["run_max_seconds"],
            cost_usd=options["run_max_cost"],
        ),
    )


def _refuse_misspelt(benchmark: str, settings: Mapping[str, str]) -> None:
    """Raise `UsageError` for a key near to one that the benchmark or every benchmark takes; its card refuses others."""
    card: BenchmarkCard = load("hybrid.benchmarks", benchmark).card
    known = (*(setting.name for setting in card.settings), *OF_ANY_BENCHMARK)
    for key in settings:
        if key not in known and (hint := did_you_mean(key, known)):
            there = ", ".join(sorted(known))
            raise UsageError(f"--setting {key}: {card.name} has no setting {key!r}{hint}; there are: {there}")


def _model_settings(options: Mapping[str, Any], args: ModelSettings, samples: int) -> ModelSettings:
    chosen = replace(
        args,
        **{name: options[name] for name in OF_THE_MODEL},
        extra={key: value for key, value in args.extra.items() if key != "frame"},
        device=None if options["device"] == AUTO else options["device"],
    )
    if samples == 1:
        return chosen
    told = any(item.partition("=")[0] == "temperature" for item in options["model_args"])
    return for_samples(chosen, options["model"] or "", temperature_told=told)


def _need_price(options: Mapping[str, Any], args: ModelSettings) -> None:
    for option in ("max_cost", "run_max_cost"):
        if options[option] is not None and args.price is None:
            name = "--" + option.replace("_", "-")
            raise UsageError(f"{name} needs a price: give --model-arg price=IN/OUT in USD per million tokens")


def _need_caption_price(options: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    for option in ("max_cost", "run_max_cost"):
        if options[option] is not None and "caption-model" in settings and "caption-price" not in settings:
            name = "--" + option.replace("_", "-")
            raise UsageError(f"{name} needs the price of the second model too: give --setting caption-price=IN/OUT")
