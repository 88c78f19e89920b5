"""A command whose options may be set in a file (`--config`) and partly in the environment.

The command line overrides the file, and the file the environment. A file's values are click's `default_map`; lists of
values (`matrix:`) make several of these, one per run.

    context = command.make_context("run", ["--config", "run.yaml", "--limit", "5"])
    variants_of(context)            # the runs that the file defines
    options_of(context)             # the options as used, for the manifest: {"limit": 5, ...}
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hybrid.cli._config_file import ConfigFile, read_config
from hybrid.cli._help import Grouped, GroupedOption
from hybrid.cli._option_types import Listed
from hybrid.config.nodes import Node
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.secrets import redact
from hybrid.core.types import Json
from hybrid.display.notes import tell

MATRIX = "matrix"
BENCHMARK = "benchmark"
# Options of one command: a manifest leaves them out, so that `--config RUN` derives a new folder and does not send data
# to a trace collector unasked.
NOT_KEPT = frozenset(["config", "out", "json", "dry-run", "verbose", "quiet", "debug", "tables", "trace", "trace-text"])
# Options that cannot be varied: they do not distinguish runs, or leave nothing to compare.
NOT_VARIED = NOT_KEPT | {
    *("limit", "concurrency", "engine", "address", "no-cache", "allow", "unanswered", "allow-failed"),
    *("run-max-calls", "run-max-tokens", "run-max-seconds", "run-max-cost"),
}
# Options that accept several names in one word, `A,B`.
JOINED = frozenset({"tools"})
MAX_RUNS = 1000
# Keys of a context: the runs that its file defines, and whether the file is the manifest of a run.
_VARIANTS, _OF_MANIFEST = "hybrid.variants", "hybrid.of_manifest"


@dataclass(frozen=True)
class Variant:
    """One run defined by a file: its distinguishing choices, and its options as click has parsed them."""

    # Name of its folder; empty if there is only one run.
    name: str
    chosen: Mapping[str, str]
    # The words of the command line, with one benchmark.
    line: tuple[str, ...]
    context: click.Context

    @property
    def told(self) -> str:
        """The choices, such as `model=openai:gpt-4o, tool-output=blank`."""
        return ", ".join(f"{key}={value}" for key, value in self.chosen.items())


# Values of `--KEY=` in each run, by key of the file; empty if the run leaves the option out.
_Axes = dict[str, tuple[tuple[str, ...], ...]]


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
        # An option that was not typed is absent, or has a marker of click.
        typed = {name: value for name, value in typed.items() if isinstance(value, str | list | bool)}
        lines = dict(self._lines(ctx, args, typed.get(BENCHMARK)))
        if typed.get("help") or ("config" not in typed and len(lines) == 1):
            return super().parse_args(ctx, args)
        file = read_config(Path(typed["config"])) if "config" in typed else ConfigFile(Path(), {})
        ctx.meta[_OF_MANIFEST] = file.is_manifest
        ctx.meta[_VARIANTS] = variants = tuple(self._variants(ctx, file, typed, lines))
        ctx.default_map = variants[0].context.default_map
        return super().parse_args(ctx, [*variants[0].line])

    def _lines(self, ctx: click.Context, args: list[str], benchmarks: object) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the command line per benchmark of `A,B`; unchanged, without a name, if there is one or none."""
        # A path may contain a comma.
        several = isinstance(benchmarks, str) and not Path(benchmarks).exists()
        names = [name.strip() for name in str(benchmarks).split(",")] if several else []
        if len(names) < 2:
            yield "", tuple(args)
            return
        for name in dict.fromkeys(names):
            tries = ((*args[:at], name, *args[at + 1 :]) for at, word in enumerate(args) if word == benchmarks)
            # An option may have the same word as its value.
            yield (
                name,
                next(words for words in tries if self.make_parser(ctx).parse_args([*words])[0].get(BENCHMARK) == name),
            )

    def _variants(
        self, ctx: click.Context, file: ConfigFile, typed: Mapping[str, Any], lines: Mapping[str, Sequence[str]]
    ) -> Iterator[Variant]:
        """Yield every combination of the file's lists that earlier options do not decide, for each command line."""
        params = _known(self)
        fixed, axes = _contents(_Reader(params, ctx), file)
        earlier = {**(ctx.default_map or {}), **typed}
        axes = {key: all_ for key, all_ in axes.items() if params[key].name not in earlier or _is_pairs(params[key])}
        if (count := len(lines) * math.prod(map(len, axes.values()))) > MAX_RUNS:
            raise UsageError(f"--config {file.path}: {count} runs; at most {MAX_RUNS}")
        seen: set[str] = set()
        names: set[str] = set()
        for (benchmark, line), choice in itertools.product(lines.items(), itertools.product(*axes.values())):
            values = dict(fixed)
            choices = {BENCHMARK: benchmark} if benchmark else {}
            for key, texts in zip(axes, choice, strict=True):
                param = params[key]
                values[key] = _merged(values.get(key, ()), texts) if _is_pairs(param) else texts
                if len(axes[key]) > 1:
                    choices[key] = ("on" if texts else "off") if _is_flag(param) else "+".join(texts) or "default"
            context = self.context_class(self, info_name=ctx.info_name, parent=ctx.parent)
            context.meta[_OF_MANIFEST] = file.is_manifest
            context.default_map = _defaults(params, values, ctx.default_map or {})
            with context.scope(cleanup=False):
                super().parse_args(context, [*line])
            # The command line may override all differences between two choices.
            if (signature := json.dumps([benchmark, options_of(context)])) not in seen:
                seen.add(signature)
                yield Variant(_folder_name(choices, names) if choices else "", choices, tuple(line), context)


# Providers whose models run in this process, are recordings, or have a server that this program starts.
_WITHOUT_SERVER = frozenset({"embedded", "hf", "replay", "vllm", "sglang", "llamacpp"})


def _defaults(
    params: Mapping[str, click.Parameter], values: Mapping[str, Sequence[str]], handed_in: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a file as click's defaults, overridden by those from Python code."""
    defaults = dict(handed_in)
    for key, texts in values.items():
        param = params[key]
        name = param.name or ""
        # An option without texts is left out by the file.
        if texts and _is_pairs(param):
            defaults[name] = list(_merged(texts, handed_in.get(name, ())))
        elif texts:
            defaults.setdefault(name, _is_flag(param) or (list(texts) if _many(param) else texts[0]))
    return defaults


def _merged(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Merge `KEY=VALUE` texts; those of `second` override."""
    return tuple({text.partition("=")[0]: text for text in (*first, *second)}.values())


def base_url_of_environment(model: str) -> str | None:
    """Return the address in HYBRID_BASE_URL if it applies to the model, else None, with a note if it is ignored.

    It applies to models of the provider in HYBRID_MODEL; without that variable to `openai:`, which includes every
    compatible server.
    """
    url, env_model = os.environ.get("HYBRID_BASE_URL") or None, os.environ.get("HYBRID_MODEL") or "openai:"
    provider, for_provider = model.partition(":")[0], env_model.partition(":")[0]
    if url is None or not model or provider == for_provider:
        return url if model else None
    from hybrid.models import has_known_provider

    # A name without a provider ends the command, with a message that a note would only precede.
    if provider not in _WITHOUT_SERVER and has_known_provider(model):
        tell(f"note: HYBRID_BASE_URL is for models of {for_provider} and not used for {model}: give --base-url")
    return None


class FromEnvironment(GroupedOption):
    """An option whose default may come from the environment, unless a manifest defines everything."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the variable that applies to this run.

        The variable for `--data` contains the benchmark's name; for that of `--base-url` see `base_url_of_environment`.
        """
        if ctx.lookup_default(self.name or "", call=False) is not None or ctx.meta.get(_OF_MANIFEST):
            return None
        if self.name == "data":
            benchmark = ctx.params.get(BENCHMARK)
            return os.environ.get(f"HYBRID_DATA_{benchmark.upper()}") or None if isinstance(benchmark, str) else None
        if self.name == "base_url":
            return base_url_of_environment(ctx.params.get("model") or "")
        return super().resolve_envvar_value(ctx)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and its source; for a mapping, add keys that only the file sets."""
        value, source = super().consume_value(ctx, opts)
        if _is_pairs(self) and source is ParameterSource.COMMANDLINE:
            typed = {text.partition("=")[0] for text in value}
            below: Any = ctx.lookup_default(self.name or "", call=False) or ()
            value = [*(text for text in below if text.partition("=")[0] not in typed), *value]
        return value, source


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
    params = _known(command or context.command)
    options: dict[str, Json] = {}
    for key, param in params.items():
        name = param.name or ""
        if key in NOT_KEPT or name not in context.params:
            continue
        if context.get_parameter_source(name) in (None, ParameterSource.DEFAULT):
            continue
        value = context.params[name]
        if _is_pairs(param):
            options[key] = {word: part for word, _, part in (item.partition("=") for item in value)}
        elif isinstance(value, tuple):
            options[key] = [str(item) for item in value]
        else:
            options[key] = value if value is None or isinstance(value, bool | int | float) else str(value)
    return options


def _known(command: click.Command) -> dict[str, click.Parameter]:
    """Return every option by its long name, and the benchmark."""
    return {
        (opt.removeprefix("--") if isinstance(param, click.Option) else param.name or ""): param
        for param in command.params
        for opt in param.opts
        if opt.startswith("--") or isinstance(param, click.Argument)
    }


def _is_pairs(param: click.Parameter) -> bool:
    """Return whether an option accepts `KEY=VALUE` words: a mapping in a file."""
    return _many(param) and "=" in (param.metavar or "")


def _is_flag(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.is_flag


def _many(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.multiple


def _folder_name(choices: Mapping[str, str], used_names: set[str]) -> str:
    """Make a valid and unique folder name from the choices."""
    text = "_".join(choices.values())
    name = re.sub(r"[^A-Za-z0-9.=+_-]+", "-", redact(text)).strip("-.") or "run"
    if len(name) > 100 or name in used_names:
        name = f"{name[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    used_names.add(name)
    return name


def _contents(reader: _Reader, file: ConfigFile) -> tuple[dict[str, tuple[str, ...]], _Axes]:
    """Return the file's options that are equal in every run, and those with a list of values."""
    fixed: dict[str, tuple[str, ...]] = {}
    axes: _Axes = {}
    matrix = file.entries.get(MATRIX)
    if matrix is not None and matrix.entries is None:
        raise UsageError(f"{matrix.where}: {MATRIX}: write options with lists of values below")
    below = dict(matrix.entries or {}) if matrix is not None else {}
    for word, node in file.entries.items():
        if word == MATRIX:
            continue
        key = reader.key(word, node)
        if key in fixed or key in axes:
            raise UsageError(f"{node.where}: {word}: given twice")
        # For an option with a single value, a list defines several runs.
        takes_one = key not in JOINED and not _many(reader.params[key])
        if node.kind == "list" and (takes_one or _is_pairs(reader.params[key])):
            axes[key] = reader.axis(key, node)
        else:
            fixed[key] = reader.texts(key, node)
    for word, node in below.items():
        key = reader.key(word, node)
        if key in axes or (key in fixed and not _is_pairs(reader.params[key])):
            raise UsageError(f"{node.where}: {word}: given twice")
        if key == "solver":
            # A run may have any number of solvers, which are compared within it.
            fixed[key] = reader.texts(key, node)
        else:
            axes[key] = reader.axis(key, node)
    return fixed, axes


@dataclass(frozen=True)
class _Reader:
    """Converts values of a file to the text after `--KEY=` on a command line."""

    params: Mapping[str, click.Parameter]
    ctx: click.Context

    def key(self, word: str, node: Node) -> str:
        """Return the option's long name. Raises `UsageError` for an unknown word, suggesting the closest."""
        key = word.replace("_", "-")
        names = [name for name in self.params if name != "config"]
        if key not in names:
            hint = did_you_mean(key, [*names, MATRIX])
            raise UsageError(f"{node.where}: no option {word!r}{hint}; they are those of `hybrid run --help`")
        return key

    def axis(self, key: str, node: Node) -> tuple[tuple[str, ...], ...]:
        """Return a list of values, one per run."""
        if key in NOT_VARIED:
            raise UsageError(f"{node.where}: {key}: one value for all runs: it tells no two of them apart")
        if node.kind != "list" or not node.items:
            raise UsageError(f"{node.where}: {key}: write a list of values, one for each run")
        return tuple(self.texts(key, item) for item in node.items)

    def texts(self, key: str, node: Node) -> tuple[str, ...]:
        """Return the words of one value; none for null, which leaves the option out."""
        param = self.params[key]
        if node.kind == "nothing":
            return ()
        if _is_pairs(param):
            return tuple(self._pairs(key, node))
        if _is_flag(param):
            if node.kind != "switch":
                raise self._wrong(key, node, "true or false")
            return ("",) if node.plain() else ()
        if node.kind == "list" and (_many(param) or key in JOINED):
            texts = tuple(self._one(key, item) for item in node.items)
            return (",".join(texts),) if key in JOINED and texts else texts
        return (self._one(key, node),)

    def _pairs(self, key: str, node: Node) -> Iterator[str]:
        if node.entries is None:
            raise self._wrong(key, node, "a mapping, NAME: VALUE")
        for name, value in node.entries.items():
            if value.kind in ("list", "mapping"):
                if key != "model-arg":
                    raise self._wrong(f"{key}: {name}", value, "one value")
                yield f"{name}={json.dumps(value.plain())}"
            elif value.kind == "nothing":
                yield f"{name}=null"
            else:
                yield f"{name}={value.text}"

    def _one(self, key: str, node: Node) -> str:
        """Return one value in the form that its option accepts."""
        param = self.params[key]
        text = node.text
        if isinstance(param.type, click.Choice):
            if node.kind == "switch" and {*param.type.choices} == {"on", "off"}:
                return "on" if node.plain() else "off"
        elif node.kind == "switch":
            raise self._wrong(key, node, "text" if param.type is click.STRING else param.type.name)
        if node.kind in ("list", "mapping", "nothing"):
            raise self._wrong(key, node, "one value")
        try:
            for word in text.split(",") if isinstance(param, Listed) else (text,):
                param.type.convert(word.strip(), param, self.ctx)
        except click.BadParameter as error:
            raise UsageError(f"{node.where}: {key}: {error.message}") from error
        return text

    def _wrong(self, key: str, node: Node, expected: str) -> UsageError:
        return UsageError(f"{node.where}: {key}: {json.dumps(node.plain())}: must be {expected}")
