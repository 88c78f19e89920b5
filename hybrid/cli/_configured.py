"""A command whose options may be set in a file (`--config`) and partly in the environment.

The command line overrides the file, and the file the environment. A file's values are click's `default_map`; lists of
values (`matrix:`) make several maps, one per run.

    context = command.make_context("run", ["--config", "run.yaml", "--limit", "5"])
    variants_of(context)            # the runs that the file defines
    options_of(context)             # the options as used, for the manifest: {"limit": 5, ...}
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hybrid.cli._config_file import ConfigFile, FileValues, file_options, read_config, with_choice
from hybrid.cli._field_options import BENCHMARK, FIELDS_BY_KEY, OF_MANIFEST, RUN_FIELDS
from hybrid.cli._help import Grouped
from hybrid.config.values import as_written
from hybrid.core.errors import UsageError
from hybrid.core.secrets import redact
from hybrid.core.types import Json

MAX_RUNS = 1000
# Keys of a context: the runs that its file defines, and the benchmark if the command line has several.
_VARIANTS = "hybrid.variants"
_BENCHMARK = "hybrid.benchmark"


class BenchmarkArgument(click.Argument):
    """The benchmark of a run; of several, `A,B`, it is the one whose run is parsed."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the benchmark."""
        return ctx.meta.get(_BENCHMARK) or value


def _names(benchmarks: object) -> list[str]:
    """Return the benchmarks in `A,B`; a single empty name if there is only one, or a path with a comma."""
    several = isinstance(benchmarks, str) and not Path(benchmarks).exists()
    names = list(dict.fromkeys(name.strip() for name in str(benchmarks).split(","))) if several else []
    return names if len(names) > 1 else [""]


@dataclass(frozen=True)
class Variant:
    """One run defined by a file: its distinguishing choices, and its options as click has parsed them."""

    # Name of the run's folder; empty if there is only one run.
    name: str
    chosen: Mapping[str, str]
    context: click.Context

    @property
    def label(self) -> str:
        """The choices, such as `model=openai:gpt-4o, tool-output=blank`."""
        return ", ".join(f"{key}={value}" for key, value in self.chosen.items())


class Configured(Grouped):
    """A command with an option `--config FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the file, whose values replace missing options of the command line.

        Raises:
            UsageError: the file cannot be read, has an unknown key, or an invalid value.
        """
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        typed, _, _ = self.make_parser(ctx).parse_args(list(args))
        # An option that was not typed is absent or holds click's marker.
        typed = {name: value for name, value in typed.items() if isinstance(value, str | list | bool)}
        benchmarks = _names(typed.get(BENCHMARK))
        if typed.get("help") or ("config" not in typed and len(benchmarks) < 2):
            return super().parse_args(ctx, args)
        file = read_config(Path(typed["config"])) if "config" in typed else ConfigFile(Path(), {})
        ctx.meta[OF_MANIFEST] = file.is_manifest
        ctx.meta[_VARIANTS] = variants = tuple(self._variants(ctx, file, typed, args, benchmarks))
        ctx.default_map, ctx.meta[_BENCHMARK] = variants[0].context.default_map, variants[0].chosen.get(BENCHMARK)
        return super().parse_args(ctx, args)

    def _variants(
        self, ctx: click.Context, file: ConfigFile, typed: Mapping[str, Any], args: list[str], benchmarks: list[str]
    ) -> Iterator[Variant]:
        """Yield, for each benchmark, every combination of values in the file's lists.

        Lists of options that are given elsewhere are left out.
        """
        fixed, axes = file_options(file, typed)
        if (count := len(benchmarks) * math.prod(map(len, axes.values()))) > MAX_RUNS:
            raise UsageError(f"--config {file.path}: {count} runs; at most {MAX_RUNS}")
        seen: set[str] = set()
        names: set[str] = set()
        for benchmark, choice in itertools.product(benchmarks, itertools.product(*axes.values())):
            values = with_choice(fixed, dict(zip(axes, choice, strict=True)))
            choices = {BENCHMARK: benchmark} if benchmark else {}
            for key, texts in zip(axes, choice, strict=True):
                if len(axes[key]) > 1:
                    switch = "on" if texts else "off"
                    choices[key] = switch if RUN_FIELDS[key].is_flag else "+".join(texts) or "default"
            context = self.context_class(self, info_name=ctx.info_name, parent=ctx.parent)
            context.meta.update({OF_MANIFEST: file.is_manifest, _BENCHMARK: benchmark})
            context.default_map = _defaults(values)
            with context.scope(cleanup=False):
                super().parse_args(context, list(args))
            # If the command line overrides every difference between two choices, they are the same run.
            if (signature := json.dumps([benchmark, options_of(context)])) not in seen:
                seen.add(signature)
                yield Variant(_folder_name(choices, names) if choices else "", choices, context)


def _defaults(values: FileValues) -> dict[str, Any]:
    """Return the options of a file as click's defaults."""
    # If an option has no text, the file leaves the option out.
    texts_by_field = [(RUN_FIELDS[key], texts) for key, texts in values.items() if texts]
    return {
        field.option.key: field.is_flag or (list(texts) if field.is_repeated else texts[0])
        for field, texts in texts_by_field
    }


def variants_of(context: click.Context) -> tuple[Variant, ...]:
    """Return the runs that a command's file defines; none without a file."""
    variants: tuple[Variant, ...] = context.meta.get(_VARIANTS, ())
    return variants


def options_of(context: click.Context, command: click.Command | None = None) -> dict[str, Json]:
    """Return the options as used, by long name: from the command line, a file or the environment; no defaults.

    Args:
        context: context after parsing.
        command: command whose options count; by default that of the context.
    """
    options: dict[str, Json] = {}
    for param in (command or context.command).params:
        name = param.name or ""
        source, field = context.get_parameter_source(name), FIELDS_BY_KEY.get(name, RUN_FIELDS.get(name))
        if source not in (None, ParameterSource.DEFAULT) and field is not None and field.option.in_manifest:
            options[field.option.long] = as_written(field, context.params[name])
    return options


def _folder_name(choices: Mapping[str, str], used_names: set[str]) -> str:
    """Make a valid and unique folder name from the choices."""
    text = "_".join(choices.values())
    name = re.sub(r"[^A-Za-z0-9.=+_-]+", "-", redact(text)).strip("-.") or "run"
    if len(name) > 100 or name in used_names:
        name = f"{name[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    used_names.add(name)
    return name
