"""Adds the options of a run to a command, and makes the runs that these options and `--config FILE` define.

@click.command("run", cls=Configured, params=[BENCHMARK_ARGUMENT, *run_options()])
def command(**options):
    runs = runs_of(click.get_current_context())

config = run_config(context, {"solver": ("mllm",)})     # of a command without `--config`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from hybrid.cli._config_file import MATRIX, NO_FILE, ConfigFile, open_config
from hybrid.cli._help import Grouped
from hybrid.cli._options import FieldOption, click_option
from hybrid.cli._run_config import RUN_FIELDS, config_of, is_path
from hybrid.cli._sources import RunOptions, read_runs, resolve
from hybrid.config import RunConfig
from hybrid.config.command_options import BENCHMARK
from hybrid.config.option import OptionField
from hybrid.core.errors import UsageError

# Options that are in the short help of `hybrid run` only, and not in that of other commands.
RARE_BESIDE_RUN: Final = frozenset(field.option.key for field in RUN_FIELDS if field.option.common == "run")
# The options of a run that only make sense for many questions.
OF_MANY_QUESTIONS: Final = frozenset(
    {
        *("split", "task", "limit", "only", "data", "images_root", "rotate", "strict", "protocol", "trust"),
        *("batch", "batch_wait", "batch_tail", "concurrency", "engine", "address", "tool_gpu"),
        *("run_max_calls", "run_max_tokens", "run_max_seconds", "run_max_cost", "trace", "trace_text"),
    }
)
# The option for the source of the data, by its key.
DATA: Final = "data"
# Key of a context: the runs that the command line and its file define.
_RUNS = "hybrid.runs"


def run_options() -> list[click.Parameter]:
    """Return the options of a `RunConfig`, in the order of its fields."""
    return [click_option(field) for field in RUN_FIELDS]


def options_of_a_question(fields: Sequence[OptionField] = RUN_FIELDS) -> list[click.Parameter]:
    """Return the options of these fields, without those that only make sense for many questions."""
    return [click_option(field) for field in fields if field.option.key not in OF_MANY_QUESTIONS]


class Configured(Grouped):
    """The command `hybrid run`, whose options may be set in a file (`--config`)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the file, whose values replace missing options of the command line.

        Raises:
            UsageError: the file cannot be read, has an unknown key, or an invalid value.
        """
        words, _, _ = self.make_parser(ctx).parse_args(list(args))
        if ctx.resilient_parsing or not {*ctx.help_option_names, "--help-all"}.isdisjoint(args):
            return super().parse_args(ctx, args)
        # An option that was not typed is absent or holds click's marker.
        config = words.get("config")
        file = open_config(Path(config)) if isinstance(config, str) else NO_FILE
        if _has_benchmark(file):
            ctx.default_map = {BENCHMARK: str(file.path)}
        rest = _parse_with_benchmark(super().parse_args, ctx, args, file)
        ctx.meta[_RUNS] = runs = read_runs(given_options(ctx), file)
        _refuse_second_data(file, given_options(ctx), runs)
        for param in self.params:
            if param.name in ctx.params and param.name in runs[0].values:
                value = runs[0].values[param.name]
                ctx.params[param.name] = value if param.callback is None else param.callback(ctx, param, value)
        return rest


def _parse_with_benchmark(
    parse: Callable[[click.Context, list[str]], list[str]], ctx: click.Context, args: list[str], file: ConfigFile
) -> list[str]:
    """Parse the words; if the benchmark is missing, raise `UsageError` with the line that the file lacks."""
    try:
        return parse(ctx, args)
    except click.MissingParameter as error:
        if file is NO_FILE or file.is_manifest or error.param is None or error.param.name != BENCHMARK:
            raise
        data = file.entries.get(DATA)
        if data is not None and isinstance(data.value, str) and is_path(data.value):
            line = f"write `{BENCHMARK}: {data.text}` in place of `{DATA}: {data.text}`"
        else:
            line = f"add the line `{BENCHMARK}: NAME`, with a name or a file of questions"
        raise UsageError(f"--config {file.path}: Missing argument 'BENCHMARK': {line}") from error


def _refuse_second_data(file: ConfigFile, given: Mapping[str, Any], runs: Sequence[RunOptions]) -> None:
    """Raise `UsageError` if the file has a line for the data and the benchmark is a path, which is the data already."""
    data = file.entries.get(DATA)
    if data is None or DATA in given or file.is_manifest:
        return
    for run in runs:
        if is_path(benchmark := str(run.values[BENCHMARK])):
            advice = f"remove the line `{DATA}: {data.text}`"
            raise UsageError(f"{data.where}: {DATA}: the benchmark {benchmark} is a path, which is the data: {advice}")


def _has_benchmark(file: ConfigFile) -> bool:
    """Return whether a file sets the benchmark, at its top level or below `matrix:`."""
    matrix = file.entries.get(MATRIX)
    below = matrix.value if matrix is not None and isinstance(matrix.value, dict) else {}
    return any(BENCHMARK in level and level[BENCHMARK].value is not None for level in (file.entries, below))


def given_options(context: click.Context) -> dict[str, Any]:
    """Return the values of a run's options that were typed, by key."""
    return {
        param.name: context.params[param.name]
        for param in context.command.params
        if (isinstance(param, FieldOption) or param.name == BENCHMARK)
        and param.name in context.params
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    }


def runs_of(context: click.Context) -> tuple[RunOptions, ...]:
    """Return the runs that a command line of `hybrid run` and its file define."""
    runs: tuple[RunOptions, ...] = context.meta[_RUNS]
    return runs


def run_config(context: click.Context, fixed: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a run from a command's typed options, and values by key that the command fixes."""
    return config_of(*resolve({**given_options(context), **fixed}))
