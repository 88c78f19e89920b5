"""The options of `hybrid run` for click, made from `RunConfig`, and a `RunConfig` from their values.

@click.command("run", params=run_options())
def command(**options): ...

config_of(context.params, options_of(context))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from hybrid.cli import _complete
from hybrid.cli._configured import FromEnvironment, base_url_of_environment
from hybrid.cli._option_types import SOLVER, AddressType, Amount, Device, FiniteRange, Listed, WholeRange
from hybrid.cli._questions_file import named
from hybrid.config import (
    AUTO,
    Limits,
    ModelSettings,
    Price,
    RunConfig,
    RunLimits,
    ServiceOptions,
    parse_model_args,
    parse_price,
)
from hybrid.config.option import OptionField, is_path, nested, option_fields
from hybrid.config.pairs import pairs
from hybrid.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from hybrid.benchmarks.card import Setting
    from hybrid.core.types import Json

FIELDS: Final = option_fields(RunConfig)
# The keys of `--setting` that every benchmark has: they control how a model is asked, and are not part of a protocol.
SETTINGS: Final = {field.option.name: field for field in option_fields(RunConfig, "--setting")}
COMPLETIONS: Final = {"--solver": _complete.solver_lists, "--tools": _complete.tool_lists}


class ListOption(Listed, FromEnvironment):
    """An option of a run that accepts several names."""


def run_options() -> list[click.Parameter]:
    """Return the options of a `RunConfig`, in the order of its fields."""
    return [_click_option(field) for field in FIELDS]


# Without the options for batches, which need several questions at a time.
_MODEL_FIELDS = [
    field for field in FIELDS if field.path[0] == "model_settings" and not field.option.key.startswith("batch")
]


def model_options() -> list[click.Parameter]:
    """Return the options that control how a model is asked."""
    return [_click_option(field) for field in _MODEL_FIELDS]


def settings_of(options: Mapping[str, Any]) -> ModelSettings:
    """Return model settings from parsed `model_options`. Raises `UsageError` for an invalid value."""
    args = parse_model_args(options["model_arg"])
    # `--model-arg` is parsed above.
    typed = [field for field in _MODEL_FIELDS if field.path[-1] != "extra"]
    values = {field.path[1]: _from_click(field, options[field.option.key]) for field in typed}
    return replace(args, **values, extra={key: value for key, value in args.extra.items() if key != "frame"})


def _click_option(field: OptionField) -> click.Option:
    option, form = field.option, field.option.form
    # The name, with the negative form of a flag.
    names, default = option.name, field.default
    if form == "no":
        names, default = f"{names}/--{names.removeprefix('--no-')}", not default
    elif form == "on|off":
        default = "on" if default else "off"
    elif field.type is bool:
        names = f"{names}/--no-{names.removeprefix('--')}"
    kind = ListOption if field.is_many and option.metavar == "A,B" and form != "A,B" else FromEnvironment
    return kind(
        [names, *filter(None, (option.short,)), option.key],
        type=_click_type(field),
        default=default if isinstance(default, bool | int | float | str) else None,
        show_default=field.type is not bool or form == "on|off",
        is_flag=field.type is bool and form != "on|off",
        multiple=field.is_pairs or (field.is_many and form != "A,B"),
        metavar=option.metavar or None,
        envvar=option.variable or None,
        show_envvar=bool(option.variable),
        shell_complete=COMPLETIONS.get(option.name),
        help=option.help,
        group=option.group,
        common=option.common,
        brief=option.brief,
    )


def _click_type(field: OptionField) -> click.ParamType[Any] | type | None:
    form, least = field.option.form, field.option.at_least
    words = field.words or (get_args(get_args(field.type)[0]) if field.is_many else ())
    if form == "on|off":
        return click.Choice(["on", "off"])
    if words:
        return click.Choice(words)
    if is_path(field):
        return click.Path(path_type=Path, exists=form == "existing file")
    if field.type is int and least is not None and form != "GB":
        return WholeRange(int(least))
    types = {"solver": SOLVER, "address": AddressType(), "device": Device(), "amount": Amount(), "GB": FiniteRange(0)}
    return types.get(form) or (field.type if field.type is int else None)


def config_of(options: Mapping[str, Any], recorded: Mapping[str, Json] | None = None) -> RunConfig:
    """Make a `RunConfig` from parsed options; `recorded` are those for its manifest.

    Raises:
        UsageError: an invalid option.
    """
    data_option = (recorded or {}).get("data")
    benchmark, data = named(options["benchmark"], data_option if isinstance(data_option, str) else None)
    options = {**options, "benchmark": benchmark, **({} if data is None else {"data": data})}
    if any("=" not in value for value in options["weights"]):
        by_tool = _weights(options)
        options = {**options, "weights": tuple(f"{name}={source}" for name, source in by_tool.items())}
        recorded = None if recorded is None else {**recorded, "weights": dict(by_tool)}
    args = parse_model_args(options["model_arg"])
    if args.price is None:
        _refuse_budget(options, "{} needs a price: give --model-arg price=IN/OUT in USD per million tokens")
    settings = pairs("--setting", options["setting"])
    _refuse_misspelt(options["benchmark"], settings)
    checked = {
        setting.name: setting.check(settings[setting.name]) for setting in common_settings() if setting.name in settings
    }
    values = {field.path: _from_click(field, options[field.option.key]) for field in FIELDS}
    groups = nested(values)
    model_settings = _model_settings(options, args, groups.pop("model_settings"), int(checked.get("samples", "1")))
    if "caption-model" in checked and "caption-price" not in checked:
        _refuse_budget(options, "{} needs the price of the second model too: give --setting caption-price=IN/OUT")
    # The checked settings as fields of a `RunConfig`.
    fields = nested({SETTINGS[name].path: _from_setting(SETTINGS[name], text) for name, text in checked.items()})
    second = fields.pop("captioner_settings", {})
    if "captioner" in fields:
        shared = {name: getattr(model_settings, name) for name in ("image_detail", "max_pixels", "seed", "device")}
        # Without an address of its own it would go to the public provider, with its key and the pictures.
        second.setdefault("base_url", base_url_of_environment(fields["captioner"]))
        fields["captioner_settings"] = ModelSettings(**shared, **second)
    elif second:
        raise UsageError("--setting caption-url and caption-price are of a second model: give caption-model as well")
    return RunConfig(
        benchmark=options["benchmark"],
        model_settings=model_settings,
        service=ServiceOptions(**groups.pop("service"), isolated=True),
        limits=Limits(**groups.pop("limits")),
        run_limits=RunLimits(**groups.pop("run_limits")),
        frame=str(args.extra.get("frame", "")),
        options_as_used=recorded or {},
        **{**groups, **fields, "settings": {key: value for key, value in settings.items() if key not in SETTINGS}},
    )


def _weights(options: Mapping[str, Any]) -> dict[str, str]:
    """The weights by tool, those without a name for the only named tool that loads some. Raises `UsageError`."""
    from hybrid.plugins.weights_option import tools_named, weights_by_tool

    named_tools = [name.strip() for name in (options["tools"] or "").split(",")]
    return weights_by_tool(options["weights"], tools_named(name for name in named_tools if name))


def _from_click(field: OptionField, value: Any) -> Any:
    """Convert an option's value to that of its field."""
    match field.option.form:
        case "on|off":
            return value == "on"
        case "no":
            return not value
        case "GB":
            return None if value is None else int(value * 1e9)
        case "A,B":
            return tuple(name.strip() for name in (value or "").split(",") if name.strip())
        case "solver":
            return tuple(dict.fromkeys(value))
    return pairs(field.option.name, value) if field.is_pairs else value


def _model_settings(
    options: Mapping[str, Any], args: ModelSettings, typed: Mapping[str, Any], samples: int
) -> ModelSettings:
    model_settings = replace(
        args,
        **{
            **typed,
            "extra": {key: value for key, value in args.extra.items() if key != "frame"},
            "seed": options["seed"],
            "device": None if options["device"] == AUTO else options["device"].partition(",")[0],
        },
    )
    if samples == 1:
        return model_settings
    from hybrid.models.options import for_samples

    names_temperature = any(item.partition("=")[0] == "temperature" for item in options["model_arg"])
    return for_samples(model_settings, options["model"] or "", temperature_told=names_temperature)


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
    """Raise `UsageError` for a key similar to a known one; the benchmark's card rejects the others."""
    from hybrid.plugins.registry import load

    card = load("hybrid.benchmarks", benchmark).card
    names = (*(setting.name for setting in card.settings), *SETTINGS)
    for key in settings:
        if key not in names and (hint := did_you_mean(key, names)):
            choices = ", ".join(sorted(names))
            raise UsageError(f"--setting {key}: {card.name} has no setting {key!r}{hint}; there are: {choices}")


def _refuse_budget(options: Mapping[str, Any], reason: str) -> None:
    """Raise `UsageError` if a budget in USD is given."""
    for name in ("--max-cost", "--run-max-cost"):
        if options[name.removeprefix("--").replace("-", "_")] is not None:
            raise UsageError(reason.format(name))
