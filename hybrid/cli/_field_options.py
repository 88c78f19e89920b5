"""Click options made from the fields of a configuration.

click_option(field)             # of `option_fields(RunConfig)` or `option_fields(CommandOptions)`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from hybrid.cli import _complete
from hybrid.cli._help import GroupedOption
from hybrid.cli._option_types import ADDRESS, AMOUNT, DEVICE, SOLVER, FiniteRange, Listed, WholeRange
from hybrid.config import RunConfig
from hybrid.config.command_options import CommandOptions
from hybrid.config.option import Option, OptionField, is_path, option_fields
from hybrid.config.plugin_path import FORMER_NAME
from hybrid.display.notes import tell

BENCHMARK = "benchmark"
COMPLETIONS: Final = {"--solver": _complete.solver_lists, "--tools": _complete.tool_lists, "--config": _complete.runs}
COMMAND_FIELDS: Final = {field.option.key: field for field in option_fields(CommandOptions)}
# Every option of `hybrid run` by its long name, as a file has it.
RUN_FIELDS: Final[Mapping[str, OptionField]] = {
    BENCHMARK: OptionField((BENCHMARK,), Option(BENCHMARK), str, optional=False, default=None, counts=True),
    FORMER_NAME.removeprefix("--"): COMMAND_FIELDS["path"],
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


class FieldOption(GroupedOption):
    """The option of a field. The default may come from the environment, unless a manifest defines all options."""

    def __init__(self, *args: Any, field: OptionField, **more: Any) -> None:
        option = field.option
        super().__init__(*args, group=option.group, common=bool(option.common), brief=option.brief, **more)
        self.field = field

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the variable that applies to this run."""
        if ctx.lookup_default(self.name or "", call=False) is not None or ctx.meta.get(OF_MANIFEST):
            return None
        return value_of_environment(self.field, ctx.params.get(BENCHMARK), ctx.params.get("model"))

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and its source; for a mapping, add keys that only the file sets."""
        value, source = super().consume_value(ctx, opts)
        if self.field.is_pairs and source is ParameterSource.COMMANDLINE:
            typed = {text.partition("=")[0] for text in value}
            below: Any = ctx.lookup_default(self.name or "", call=False) or ()
            value = [*(text for text in below if text.partition("=")[0] not in typed), *value]
        return value, source


class ListOption(Listed, FieldOption):
    """An option of a run that accepts several names."""


def click_option(field: OptionField) -> click.Option:
    """Return the option of a field: its names, type, default, help, group and completion."""
    names, facts = _click_arguments(field)
    return (ListOption if field.is_listed else FieldOption)(names, field=field, **facts)


def shared_option(key: str, **more: Any) -> Callable[[Any], Any]:
    """Return the decorator for an option of `CommandOptions`, for commands whose help has no groups.

    `more` are arguments of `click.option`.
    """
    names, facts = _click_arguments(COMMAND_FIELDS[key])
    return click.option(*names, **facts, **more)


def run_option(long: str) -> Callable[[Any], Any]:
    """Return the decorator for an option of `hybrid run`, by its long name, for another command."""
    names, facts = _click_arguments(RUN_FIELDS[long])
    return click.option(*names, **facts)


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
    """Return the type of an option for click, which shows and completes it."""
    form, least = field.option.form, field.option.at_least
    if form == "on|off":
        return click.Choice(["on", "off"])
    if field.words:
        return click.Choice(field.words)
    if is_path(field):
        return click.Path(path_type=Path, exists=form == "existing file")
    if field.type is int and least is not None and form != "GB":
        return WholeRange(int(least))
    types = {"solver": SOLVER, "address": ADDRESS, "device": DEVICE, "amount": AMOUNT, "GB": FiniteRange(0)}
    return types.get(form) or (field.type if field.type is int else None)
