"""The options of `hybrid run` for click, made from `RunConfig`, and a `RunConfig` from their values.

@click.command("run", params=run_options())
def command(**options): ...

config_of(context.params, options_of(context))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hybrid.cli._field_options import base_url_of_environment, click_option
from hybrid.config import (
    AUTO,
    Limits,
    ModelSettings,
    Price,
    RunConfig,
    RunLimits,
    ServiceOptions,
    model_settings_of,
    parse_price,
)
from hybrid.config.option import OptionField, nested, option_fields
from hybrid.config.values import pairs
from hybrid.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from hybrid.benchmarks.card import Setting
    from hybrid.core.types import Json

FIELDS: Final = option_fields(RunConfig)
# Options that are in the short help of `hybrid run` only, and not in that of other commands.
RARE_BESIDE_RUN: Final = frozenset(field.option.key for field in FIELDS if field.option.common == "run")
# The keys of `--setting` that every benchmark has: they control how a model is asked, and are not part of a protocol.
SETTINGS: Final = {field.option.name: field for field in option_fields(RunConfig, "--setting")}


def run_options() -> list[click.Parameter]:
    """Return the options of a `RunConfig`, in the order of its fields."""
    return [click_option(field) for field in FIELDS]


# Without the options for batches, which need several questions at a time.
_MODEL_FIELDS = [
    field for field in FIELDS if field.path[0] == "model_settings" and not field.option.key.startswith("batch")
]


def model_options() -> list[click.Parameter]:
    """Return the options that control how a model is asked."""
    return [click_option(field) for field in _MODEL_FIELDS]


def settings_of(options: Mapping[str, Any]) -> ModelSettings:
    """Return model settings from parsed `model_options`. Raises `UsageError` for an invalid value."""
    args, _ = _split_model_args(options["model_arg"])
    values = {field.path[1]: options[field.option.key] for field in _MODEL_FIELDS}
    return replace(args, **{**values, "extra": args.extra})


def _split_model_args(texts: Mapping[str, str]) -> tuple[ModelSettings, str]:
    """Return the settings that `--model-arg` sets, and the frame, which is not the model's but the run's."""
    args = model_settings_of(texts)
    extra = {key: value for key, value in args.extra.items() if key != "frame"}
    return replace(args, extra=extra), str(args.extra.get("frame", ""))


def config_of(values: Mapping[str, Any], recorded: Mapping[str, Json] | None = None) -> RunConfig:
    """Make a `RunConfig` from the values of its fields, and the benchmark, which may be the path of questions.

    Args:
        values: by key of the option, as `read_values` returns them; others are ignored.
        recorded: options for its manifest, by long name.

    Raises:
        UsageError: values that do not fit each other, the benchmark or the tools.
    """
    data_option = (recorded or {}).get("data")
    benchmark, data = resolve_benchmark(values["benchmark"], data_option if isinstance(data_option, str) else None)
    values = {**values, **({} if data is None else {"data": data})}
    weights = _weights(values["weights"], values["tools"])
    if recorded is not None and weights:
        recorded = {**recorded, "weights": dict(weights)}
    args, frame = _split_model_args(values["model_arg"])
    if args.price is None:
        _refuse_budget(values, "{} needs a price: give --model-arg price=IN/OUT in USD per million tokens")
    settings: Mapping[str, str] = values["setting"]
    _refuse_misspelt(benchmark, settings)
    checked = {
        setting.name: setting.check(settings[setting.name]) for setting in common_settings() if setting.name in settings
    }
    parsed = {("service", "weights"): weights, ("model_settings", "extra"): args.extra}
    groups = nested({field.path: values[field.option.key] for field in FIELDS} | parsed)
    samples = int(checked.get("samples", "1"))
    model_settings = _model_settings(values, replace(args, **groups.pop("model_settings")), samples)
    if "caption-model" in checked and "caption-price" not in checked:
        _refuse_budget(values, "{} needs the price of the second model too: give --setting caption-price=IN/OUT")
    return RunConfig(
        benchmark=benchmark,
        model_settings=model_settings,
        service=ServiceOptions(**groups.pop("service"), isolated=True),
        limits=Limits(**groups.pop("limits")),
        run_limits=RunLimits(**groups.pop("run_limits")),
        frame=frame,
        options_as_used=recorded or {},
        **{
            **groups,
            **_from_settings(checked, model_settings),
            "settings": {key: value for key, value in settings.items() if key not in SETTINGS},
        },
    )


def _from_settings(checked: Mapping[str, str], model_settings: ModelSettings) -> dict[str, Any]:
    """Check the settings and return them as fields of a `RunConfig`."""
    fields = nested({SETTINGS[name].path: _from_setting(SETTINGS[name], text) for name, text in checked.items()})
    second = fields.pop("captioner_settings", {})
    if "captioner" in fields:
        shared = {name: getattr(model_settings, name) for name in ("image_detail", "max_pixels", "seed", "device")}
        # Without its own address, the second model's requests would go to the public provider, with its key and the
        # pictures.
        second.setdefault("base_url", base_url_of_environment(fields["captioner"]))
        fields["captioner_settings"] = ModelSettings(**shared, **second)
    elif second:
        raise UsageError("--setting caption-url and caption-price belong to a second model: give caption-model as well")
    return fields


def _weights(texts: Sequence[str], tools: Sequence[str]) -> dict[str, str]:
    """Return the weights by tool; weights without a tool's name are for the only tool that loads any.

    Raises `UsageError`.
    """
    if all("=" in text for text in texts):
        return pairs("--weights", texts)
    from hybrid.plugins.weights_option import tools_named, weights_by_tool

    return weights_by_tool(texts, tools_named(tools))


def _model_settings(values: Mapping[str, Any], args: ModelSettings, samples: int) -> ModelSettings:
    """Return the settings with the seed and device of the run, and a temperature at which samples differ."""
    device = None if values["device"] == AUTO else values["device"].partition(",")[0]
    model_settings = replace(args, seed=values["seed"], device=device)
    if samples == 1:
        return model_settings
    from hybrid.models.options import for_samples

    return for_samples(model_settings, values["model"] or "", temperature_told="temperature" in values["model_arg"])


def common_settings() -> tuple[Setting, ...]:
    """Return the settings that every benchmark has, in the form of a card."""
    from hybrid.benchmarks.card import Setting

    return tuple(
        Setting(
            name,
            field.option.unset if field.default is None else str(field.default),
            field.option.values or (*filter(None, [field.option.unset]), *field.words),
            field.option.help,
            field.option.pattern,
        )
        for name, field in SETTINGS.items()
    )


def _from_setting(field: OptionField, text: str) -> Any:
    if text == field.option.unset:
        return None
    if field.type is Price:
        return parse_price(text)
    return field.type(text) if field.type in (int, Path) else text


def _refuse_misspelt(benchmark: str, settings: Mapping[str, str]) -> None:
    """Raise `UsageError` for a key similar to a known key; the benchmark's card rejects other unknown keys."""
    from hybrid.plugins.registry import load

    card = load("hybrid.benchmarks", benchmark).card
    names = (*(setting.name for setting in card.settings), *SETTINGS)
    for key in settings:
        if key not in names and (hint := did_you_mean(key, names)):
            choices = ", ".join(sorted(names))
            raise UsageError(f"--setting {key}: {card.name} has no setting {key!r}{hint}; available: {choices}")


def _refuse_budget(values: Mapping[str, Any], reason: str) -> None:
    """Raise `UsageError` if a budget in USD is given."""
    for name in ("--max-cost", "--run-max-cost"):
        if values[name.removeprefix("--").replace("-", "_")] is not None:
            raise UsageError(reason.format(name))


def is_path(word: str) -> bool:
    """Return whether the word is a path: no benchmark's name, and it exists or has a separator or a table's ending."""
    from hybrid.plugins.registry import names

    if word in names("hybrid.benchmarks"):
        return False
    from hybrid.benchmarks.questions.tables import ENDINGS

    return word.lower().endswith(ENDINGS) or "/" in word or os.sep in word or Path(word).expanduser().exists()


def benchmark_of_files() -> str:
    """Return the benchmark that reads a file of questions."""
    from hybrid.plugins.discovery import own_names
    from hybrid.plugins.registry import load

    benchmarks = ((name, load("hybrid.benchmarks", name)) for name in sorted(own_names("hybrid.benchmarks")))
    return next(name for name, benchmark in benchmarks if benchmark.accepts_file)


def benchmark_of(source: str) -> str:
    """Return the benchmark for data that are given without a benchmark.

    It is `questions` for a questions file or a folder with one, else `blink`.
    """
    from hybrid.benchmarks.questions import STEM
    from hybrid.benchmarks.questions.tables import ENDINGS

    path = Path(source).expanduser()
    if path.is_file() or any((path / f"{STEM}{ending}").is_file() for ending in ENDINGS):
        return benchmark_of_files()
    return "blink"


def resolve_benchmark(benchmark: str, data: str | None) -> tuple[str, str | None]:
    """Return the benchmark and its data; for a path, the benchmark that reads it and the path.

    Raises `UsageError` for a path that does not exist, or if `data` is given too.

    Args:
        benchmark: a name or a path.
        data: separately given data, or None.
    """
    if not is_path(benchmark):
        return benchmark, data
    if data is not None:
        raise UsageError(f"{benchmark}: this path is the data; leave out --data {data}")
    if not Path(benchmark).expanduser().exists():
        raise UsageError(f"{benchmark}: file not found; give a file or a folder of questions, or a benchmark")
    return benchmark_of_files(), benchmark
