"""A `RunConfig` from the values of its options, which are checked against each other, the benchmark and the tools.

config_of(run.values, run.recorded)     # of `hybrid/cli/_sources.py`
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hybrid.cli._sources import base_url_of_environment
from hybrid.config.groups import AUTO, Limits, ModelSettings, RunLimits, ServiceOptions, read_model_args
from hybrid.config.option import OptionField, nested, option_fields
from hybrid.config.price import PRICE_FORMS, Price
from hybrid.config.run_config import RunConfig
from hybrid.config.values import check_value, pairs
from hybrid.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from hybrid.benchmarks.card import Setting
    from hybrid.core.types import Json

RUN_FIELDS: Final = option_fields(RunConfig)
MODEL_FIELDS: Final = tuple(field for field in RUN_FIELDS if field.path[0] == "model_settings")
MODEL_ARGS: Final = option_fields(RunConfig, "--model-arg")
EXTRA: Final = ("model_settings", "extra")
# The keys of `--setting` that every benchmark has: they control how a model is asked, and are not part of a protocol.
SETTINGS: Final = {field.option.name: field for field in option_fields(RunConfig, "--setting")}


def settings_of(options: Mapping[str, Any]) -> ModelSettings:
    """Return model settings from the values of options. Raises `UsageError` for an invalid value."""
    arguments, extra = read_model_args(MODEL_ARGS, options["model_arg"])
    values = {field.path: options[field.option.key] for field in MODEL_FIELDS}
    return ModelSettings(**nested({**values, **arguments, EXTRA: extra})["model_settings"])


def config_of(values: Mapping[str, Any], recorded: Mapping[str, Json] | None = None) -> RunConfig:
    """Make a `RunConfig` from the values of its options; the value of `benchmark` may be the path of questions.

    Args:
        values: by key of the option, as `read_values` returns them; others are ignored.
        recorded: options for its manifest, by long name.

    Raises:
        UsageError: values that do not fit each other, the benchmark or the tools.
    """
    data_option = (recorded or {}).get("data")
    benchmark, data = resolve_benchmark(values["benchmark"], data_option if isinstance(data_option, str) else None)
    weights = _weights(values["weights"], values["tools"])
    if recorded is not None and weights:
        recorded = {**recorded, "weights": dict(weights)}
    groups = _fields_of({**values, "benchmark": benchmark})
    model_settings = _model_settings(values, ModelSettings(**groups.pop("model_settings")), groups.get("samples", 1))
    second = _captioner_settings(groups.get("captioner"), groups.pop("captioner_settings", {}), model_settings)
    return RunConfig(
        benchmark=benchmark,
        model_settings=model_settings,
        captioner_settings=second,
        service=ServiceOptions(**{**groups.pop("service"), "weights": weights, "isolated": True}),
        limits=Limits(**groups.pop("limits")),
        run_limits=RunLimits(**groups.pop("run_limits")),
        options_as_used=recorded or {},
        **{**groups, **({} if data is None else {"data": data})},
    )


def _fields_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration's fields by name, those of a group of options as a mapping."""
    arguments, extra = read_model_args(MODEL_ARGS, values["model_arg"])
    if ("model_settings", "price") not in arguments:
        _refuse_budget(values, "{} needs a price: give --model-arg price=IN/OUT, in USD per million tokens")
    settings: Mapping[str, str] = values["setting"]
    _refuse_misspelt(values["benchmark"], settings)
    if "caption-model" in settings and "caption-price" not in settings:
        _refuse_budget(values, "{} needs the price of the second model too: give --setting caption-price=IN/OUT")
    return nested(
        {
            **{field.path: values[field.option.key] for field in RUN_FIELDS},
            **arguments,
            **{field.path: _read_setting(key, settings[key]) for key, field in SETTINGS.items() if key in settings},
            EXTRA: extra,
            ("settings",): {key: value for key, value in settings.items() if key not in SETTINGS},
        }
    )


def _captioner_settings(captioner: str | None, own: dict[str, Any], model_settings: ModelSettings) -> ModelSettings:
    """Return the settings of the model that describes images, which has only an address and a price of its own."""
    if captioner is None:
        if own:
            belong = "--setting caption-url and --setting caption-price describe a second model"
            raise UsageError(f"{belong}: give caption-model as well")
        return ModelSettings()
    shared = {name: getattr(model_settings, name) for name in ("image_detail", "max_pixels", "seed", "device")}
    # Without its own address, the second model's requests would go to the public provider, with its key and the
    # pictures.
    return ModelSettings(**shared, **{"base_url": base_url_of_environment(captioner), **own})


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
            _setting_values(field),
            field.option.help,
        )
        for name, field in SETTINGS.items()
    )


def _setting_values(field: OptionField) -> tuple[str, ...]:
    """Return the values of a setting, or a description of them."""
    if field.option.at_least is not None:
        return (f"{field.option.at_least} or more",)
    return tuple(filter(None, (field.option.metavar, field.option.unset, *field.words)))


def _read_setting(key: str, text: str) -> Any:
    """Return the value of a setting. Raises `UsageError` for a value that does not fit."""
    field = SETTINGS[key]
    # A price has a unit, and more forms than the list of settings shows.
    is_price = field.type is Price
    advice = f"write {PRICE_FORMS}" if is_price else f"the allowed values are: {', '.join(_setting_values(field))}"
    error = UsageError(f"--setting {key}={text}: {advice}")
    if not text:
        raise error
    try:
        return None if text == field.option.unset else check_value(field, text)
    except ValueError:
        raise error from None


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
    """Return whether the word is a path: it names no benchmark, and exists or has a separator or a table's suffix."""
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
