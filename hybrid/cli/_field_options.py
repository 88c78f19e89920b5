"""Click options made from the fields of a configuration.

click_option(field)             # of `option_fields(RunConfig)` or `option_fields(CommandOptions)`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import click
from click.core import ParameterSource

from hybrid.cli import _option_types as types
from hybrid.config import RunConfig
from hybrid.config.command_options import FORMER_PATH_NAME, CommandOptions
from hybrid.config.option import Group, Option, OptionField, is_path, option_fields
from hybrid.config.values import merged_pairs, read_values
from hybrid.display.notes import tell

BENCHMARK = "benchmark"
COMPLETIONS: Final = {"--solver": types.solver_lists, "--tools": types.tool_lists, "--config": types.runs}
COMMAND_FIELDS: Final = {field.option.key: field for field in option_fields(CommandOptions)}
# Every option of `hybrid run` by its name in Python.
FIELDS_BY_KEY: Final = {**{field.option.key: field for field in option_fields(RunConfig)}, **COMMAND_FIELDS}
# Every option by its long name, as a file has it.
RUN_FIELDS: Final[Mapping[str, OptionField]] = {
    BENCHMARK: OptionField((BENCHMARK,), Option(BENCHMARK), str, optional=False, default=None),
    FORMER_PATH_NAME.removeprefix("--"): COMMAND_FIELDS["path"],
    **{field.option.long: field for field in (*COMMAND_FIELDS.values(), *option_fields(RunConfig))},
}
# Key of a context: whether its file is the manifest of a run.
OF_MANIFEST = "hybrid.of_manifest"
# Providers whose models run in this process, are recordings, or have a server that this program starts.
_WITHOUT_SERVER = frozenset({"embedded", "hf", "replay", "vllm", "sglang", "llamacpp"})


def base_url_of_environment(model: str) -> str | None:
    """Return the address in HYBRID_BASE_URL if it applies to the model, else None.

    A note is printed if the address is ignored for a known provider that has a server.

    The address applies to models of the provider in HYBRID_MODEL. Without that variable it applies to `openai:`, which
    includes every compatible server.
    """
    url, env_model = os.environ.get("HYBRID_BASE_URL") or None, os.environ.get("HYBRID_MODEL") or "openai:"
    provider, for_provider = model.partition(":")[0], env_model.partition(":")[0]
    if url is None or not model or provider == for_provider:
        return url if model else None
    from hybrid.models import has_known_provider

    # A name without a provider ends the command with its own message, so print no note here.
    if provider not in _WITHOUT_SERVER and has_known_provider(model):
        tell(f"note: HYBRID_BASE_URL is for models of {for_provider} and not used for {model}; give --base-url")
    return None


def value_of_environment(field: OptionField, benchmark: object, model: object) -> str | None:
    """Return the value of the environment variable that applies to this run; None if none does.

    The variable for `--data` contains the benchmark's name; for that of `--base-url` see `base_url_of_environment`.
    """
    name = field.option.variable
    if field.option.key == "data":
        return os.environ.get(f"HYBRID_DATA_{benchmark.upper()}") or None if isinstance(benchmark, str) else None
    if field.option.key == "base_url":
        # Completion leaves an option that was not typed without a value.
        return base_url_of_environment(model if isinstance(model, str) else "")
    return os.environ.get(name) or None if name else None


class FieldOption(click.Option):
    """The option of a field: its values are read as those of a file, and the environment may set its default."""

    def __init__(self, *args: Any, field: OptionField, group: Group | Literal[""] = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.field = field
        # Heading in the help; empty for a command whose help has no headings.
        self.group = group
        self.common = not group or bool(field.option.common)

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the variable that applies to this run; None if a manifest defines all options."""
        if ctx.lookup_default(self.name or "", call=False) is not None or ctx.meta.get(OF_MANIFEST):
            return None
        return value_of_environment(self.field, ctx.params.get(BENCHMARK), ctx.params.get("model"))

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and its source; for a mapping, add keys that only the file sets."""
        value, source = super().consume_value(ctx, opts)
        if self.field.is_pairs and source is ParameterSource.COMMANDLINE:
            below: Any = ctx.lookup_default(self.name or "", call=False) or ()
            value = merged_pairs(below, value)
        return value, source

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value of the field. Fails for a value that does not fit."""
        items = value if isinstance(value, list | tuple) else [] if value is None else [value]
        try:
            return read_values(self.field, items) if items or self.field.is_pairs else self.field.default
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, self) from error


def click_option(field: OptionField) -> click.Option:
    """Return the option of a field: its names, type, default, help, group and completion."""
    names, facts = _click_arguments(field)
    return FieldOption(names, group=field.option.group, **facts)


def shared_option(key: str, **more: Any) -> Callable[[Any], Any]:
    """Return the decorator for an option of `hybrid run`, for commands whose help has no groups.

    `more` are arguments of `click.option`.
    """
    names, facts = _click_arguments(FIELDS_BY_KEY[key])
    return click.option(*names, cls=FieldOption, **facts, **more)


def _click_arguments(field: OptionField) -> tuple[list[str], dict[str, Any]]:
    option, form = field.option, field.option.form
    # The name, with the negative form of a flag.
    names, default = option.name, field.default
    if form == "no":
        names, default = f"{names}/--{names.removeprefix('--no-')}", not default
    elif form == "on|off":
        default = "on" if default else "off"
    elif field.type is bool:
        names = f"{names}/--no-{names.removeprefix('--')}"
    facts = {
        "field": field,
        "type": click_type(field),
        "default": default if isinstance(default, bool | int | float | str) else None,
        "show_default": not field.is_flag,
        "is_flag": field.is_flag,
        "multiple": field.is_repeated,
        "metavar": option.metavar or None,
        "envvar": option.variable or None,
        "show_envvar": bool(option.variable),
        "shell_complete": COMPLETIONS.get(option.name),
        "help": option.help,
    }
    return [names, *filter(None, (option.short,)), option.key], facts


def click_type(field: OptionField) -> click.ParamType[Any] | type | None:
    """Return the type by which click describes and completes an option; `read_values` checks the values."""
    form, least = field.option.form, field.option.at_least
    if form == "on|off" or field.words:
        return click.Choice(field.words or ["on", "off"])
    if is_path(field):
        return click.Path(path_type=Path)
    if form == "GB":
        return click.FloatRange(least)
    if field.type is not int:
        return None
    return int if least is None else click.IntRange(int(least))
