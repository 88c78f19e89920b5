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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hybrid.cli._config_file import ConfigFile, read_config
from hybrid.cli._field_options import BENCHMARK, OF_MANIFEST, RUN_FIELDS
from hybrid.cli._help import Grouped
from hybrid.config.nodes import Node
from hybrid.config.option import OptionField
from hybrid.config.values import check_value, split_names
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.secrets import redact
from hybrid.core.types import Json

MATRIX = "matrix"
# Options that hold for one command only. A manifest leaves them out, so that `--config RUN` derives a new folder, and
# does not send data to a trace collector unless asked to.
NOT_KEPT = frozenset(key for key, field in RUN_FIELDS.items() if not field.option.kept)
# Options that cannot be varied, because they do not distinguish runs or would leave nothing to compare.
NOT_VARIED = NOT_KEPT | {key for key, field in RUN_FIELDS.items() if not field.option.varied}
MAX_RUNS = 1000
# Key of a context: the runs that its file defines.
_VARIANTS = "hybrid.variants"


@dataclass(frozen=True)
class Variant:
    """One run defined by a file: its distinguishing choices, and its options as click has parsed them."""

    # Name of the run's folder; empty if there is only one run.
    name: str
    chosen: Mapping[str, str]
    # The words of the command line, with one benchmark.
    line: tuple[str, ...]
    context: click.Context

    @property
    def label(self) -> str:
        """The choices, such as `model=openai:gpt-4o, tool-output=blank`."""
        return ", ".join(f"{key}={value}" for key, value in self.chosen.items())


# Values of `--KEY=` by key of the file; empty if the file leaves the option out. `Axes` has, for each option that
# varies, the values in each run.
FileValues = Mapping[str, tuple[str, ...]]
Axes = dict[str, tuple[tuple[str, ...], ...]]


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
        lines = dict(self._lines(ctx, args, typed.get(BENCHMARK)))
        if typed.get("help") or ("config" not in typed and len(lines) == 1):
            return super().parse_args(ctx, args)
        file = read_config(Path(typed["config"])) if "config" in typed else ConfigFile(Path(), {})
        ctx.meta[OF_MANIFEST] = file.is_manifest
        ctx.meta[_VARIANTS] = variants = tuple(self._variants(ctx, file, typed, lines))
        ctx.default_map = variants[0].context.default_map
        return super().parse_args(ctx, [*variants[0].line])

    def _lines(self, ctx: click.Context, args: list[str], benchmarks: object) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each benchmark of `A,B` with its command line.

        Without several, yield "" and the unchanged command line.
        """
        # A path may contain a comma.
        several = isinstance(benchmarks, str) and not Path(benchmarks).exists()
        names = [name.strip() for name in str(benchmarks).split(",")] if several else []
        if len(names) < 2:
            yield "", tuple(args)
            return
        for name in dict.fromkeys(names):
            tries = ((*args[:at], name, *args[at + 1 :]) for at, word in enumerate(args) if word == benchmarks)
            # The same word may also be the value of an option; take the place where it is the benchmark.
            yield (
                name,
                next(words for words in tries if self.make_parser(ctx).parse_args([*words])[0].get(BENCHMARK) == name),
            )

    def _variants(
        self, ctx: click.Context, file: ConfigFile, typed: Mapping[str, Any], lines: Mapping[str, Sequence[str]]
    ) -> Iterator[Variant]:
        """Yield, for each command line, every combination of values in the file's lists.

        Lists of options that are given elsewhere are left out.
        """
        fixed, axes = file_options(file, typed)
        if (count := len(lines) * math.prod(map(len, axes.values()))) > MAX_RUNS:
            raise UsageError(f"--config {file.path}: {count} runs; at most {MAX_RUNS}")
        seen: set[str] = set()
        names: set[str] = set()
        for (benchmark, line), choice in itertools.product(lines.items(), itertools.product(*axes.values())):
            values = with_choice(fixed, dict(zip(axes, choice, strict=True)))
            choices = {BENCHMARK: benchmark} if benchmark else {}
            for key, texts in zip(axes, choice, strict=True):
                if len(axes[key]) > 1:
                    switch = "on" if texts else "off"
                    choices[key] = switch if RUN_FIELDS[key].is_flag else "+".join(texts) or "default"
            context = self.context_class(self, info_name=ctx.info_name, parent=ctx.parent)
            context.meta[OF_MANIFEST] = file.is_manifest
            context.default_map = _defaults(values)
            with context.scope(cleanup=False):
                super().parse_args(context, [*line])
            # If the command line overrides every difference between two choices, they are the same run.
            if (signature := json.dumps([benchmark, options_of(context)])) not in seen:
                seen.add(signature)
                yield Variant(_folder_name(choices, names) if choices else "", choices, tuple(line), context)


def _defaults(values: FileValues) -> dict[str, Any]:
    """Return the options of a file as click's defaults."""
    # If an option has no text, the file leaves the option out.
    texts_by_field = [(RUN_FIELDS[key], texts) for key, texts in values.items() if texts]
    return {
        field.option.key: field.is_flag or (list(texts) if field.is_repeated else texts[0])
        for field, texts in texts_by_field
    }


def with_choice(fixed: FileValues, choice: FileValues) -> dict[str, tuple[str, ...]]:
    """Return the options of one run: the options that are equal in every run, and those of this run's choice."""
    pairs = {key for key in choice if RUN_FIELDS[key].is_pairs}
    merged = {key: merged_pairs(fixed.get(key, ()), choice[key]) for key in pairs}
    return {**fixed, **choice, **merged}


def merged_pairs(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Merge `KEY=VALUE` texts; those of `second` override."""
    return tuple({text.partition("=")[0]: text for text in (*first, *second)}.values())


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
    params = _options_by_name(command or context.command)
    options: dict[str, Json] = {}
    for key, param in params.items():
        name = param.name or ""
        if key in NOT_KEPT or name not in context.params:
            continue
        if context.get_parameter_source(name) in (None, ParameterSource.DEFAULT):
            continue
        value = context.params[name]
        if key in RUN_FIELDS and RUN_FIELDS[key].is_pairs:
            options[key] = {word: part for word, _, part in (item.partition("=") for item in value)}
        elif isinstance(value, tuple):
            options[key] = [str(item) for item in value]
        else:
            options[key] = value if value is None or isinstance(value, bool | int | float) else str(value)
    return options


def _options_by_name(command: click.Command) -> dict[str, click.Parameter]:
    """Return every option by its long name, and the benchmark."""
    return {
        (opt.removeprefix("--") if isinstance(param, click.Option) else param.name or ""): param
        for param in command.params
        for opt in param.opts
        if opt.startswith("--") or isinstance(param, click.Argument)
    }


def _folder_name(choices: Mapping[str, str], used_names: set[str]) -> str:
    """Make a valid and unique folder name from the choices."""
    text = "_".join(choices.values())
    name = re.sub(r"[^A-Za-z0-9.=+_-]+", "-", redact(text)).strip("-.") or "run"
    if len(name) > 100 or name in used_names:
        name = f"{name[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    used_names.add(name)
    return name


def file_options(file: ConfigFile, earlier: Collection[str]) -> tuple[dict[str, tuple[str, ...]], Axes]:
    """Return the file's options that are equal in every run, and those with a list of values.

    Args:
        file: the configuration.
        earlier: names of options that are given elsewhere and override lists of the file.

    Raises:
        UsageError: an unknown option or a value that does not fit, with its line.
    """
    fixed: dict[str, tuple[str, ...]] = {}
    axes: Axes = {}
    matrix = file.entries.get(MATRIX)
    if matrix is not None and matrix.entries is None:
        raise UsageError(f"{matrix.where}: {MATRIX}: write options with lists of values below")
    below = dict(matrix.entries or {}) if matrix is not None else {}
    for word, node in file.entries.items():
        if word == MATRIX:
            continue
        field = _field(word, node)
        key = field.option.long
        if key in fixed or key in axes:
            raise UsageError(f"{node.where}: {word}: given twice")
        # For an option with a single value, a list defines several runs.
        takes_one = not field.is_many or field.is_pairs
        if node.kind == "list" and takes_one:
            axes[key] = _axis(field, node)
        else:
            fixed[key] = _texts(field, node)
    for word, node in below.items():
        field = _field(word, node)
        key = field.option.long
        if key in axes or (key in fixed and not field.is_pairs):
            raise UsageError(f"{node.where}: {word}: given twice")
        if key == "solver":
            # A list of solvers belongs to one run, which compares them.
            fixed[key] = _texts(field, node)
        else:
            axes[key] = _axis(field, node)
    open_axes = {
        key: all_ for key, all_ in axes.items() if RUN_FIELDS[key].is_pairs or RUN_FIELDS[key].option.key not in earlier
    }
    return fixed, open_axes


def _field(word: str, node: Node) -> OptionField:
    """Return the option of a file's key. Raises `UsageError` for an unknown word, suggesting the closest."""
    key = word.replace("_", "-")
    names = [name for name in RUN_FIELDS if name != "config"]
    if key not in names:
        hint = did_you_mean(key, [*names, MATRIX])
        raise UsageError(f"{node.where}: no option {word!r}{hint}; see `hybrid run --help`")
    return RUN_FIELDS[key]


def _axis(field: OptionField, node: Node) -> tuple[tuple[str, ...], ...]:
    """Return a list of values, one per run."""
    key = field.option.long
    if key in NOT_VARIED:
        raise UsageError(f"{node.where}: {key}: this option cannot vary between runs: give one value")
    if node.kind != "list" or not node.items:
        raise UsageError(f"{node.where}: {key}: write a list of values, one for each run")
    return tuple(_texts(field, item) for item in node.items)


def _texts(field: OptionField, node: Node) -> tuple[str, ...]:
    """Return one value as texts for `--KEY=` on a command line; an empty list for null, which omits the option."""
    if node.kind == "nothing":
        return ()
    if field.is_pairs:
        return tuple(_pairs(field, node))
    if field.is_flag:
        if node.kind != "switch":
            raise _misfit(field.option.long, node, "true or false")
        return ("on",) if node.plain() else ()
    if node.kind == "list" and field.is_many:
        texts = tuple(_one(field, item) for item in node.items)
        return texts if field.is_repeated or not texts else (",".join(texts),)
    return (_one(field, node),)


def _pairs(field: OptionField, node: Node) -> Iterator[str]:
    key = field.option.long
    if field.is_keyless and node.kind == "text":
        yield node.text
        return
    if node.entries is None:
        raise _misfit(
            key, node, f"{field.option.metavar} or a mapping" if field.is_keyless else "a mapping, NAME: VALUE"
        )
    for name, value in node.entries.items():
        if value.kind in ("list", "mapping"):
            if key != "model-arg":
                raise _misfit(f"{key}: {name}", value, "one value")
            yield f"{name}={json.dumps(value.plain())}"
        elif value.kind == "nothing":
            yield f"{name}=null"
        else:
            yield f"{name}={value.text}"


def _one(field: OptionField, node: Node) -> str:
    """Return one value in the form that its option accepts."""
    key = field.option.long
    if node.kind == "switch" and field.option.form == "on|off":
        return "on" if node.plain() else "off"
    if node.kind == "switch" and not field.words:
        raise _misfit(key, node, field.noun)
    if node.kind in ("list", "mapping", "nothing"):
        raise _misfit(key, node, "one value")
    try:
        for word in split_names(node.text) if field.is_listed else (node.text,):
            check_value(field, word)
    except ValueError as error:
        raise UsageError(f"{node.where}: {key}: {error}") from error
    return node.text


def _misfit(key: str, node: Node, expected: str) -> UsageError:
    return UsageError(f"{node.where}: {key}: {json.dumps(node.plain())}: must be {expected}")
