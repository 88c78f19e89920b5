"""Click options and arguments that several commands share.

@click.command("view")
@shared.run
@tables_option
def command(run, tables): ...

An option of one command is defined above that command. Those of `hybrid run` are fields of `hybrid.config`.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import click

from hybrid.cli import _option_types as types
from hybrid.config.command_options import FIELDS, PATH
from hybrid.config.option import Group, OptionField
from hybrid.config.values import read_values
from hybrid.core.errors import ToolError, UsageError
from hybrid.display.notes import quietly
from hybrid.display.terminal import shape_of
from hybrid.plugins.discovery import add_search_path, left_out, outside_folders

COMPLETIONS: Final = {"--solver": types.solver_lists, "--tools": types.tool_lists, "--config": types.runs}


class FieldOption(click.Option):
    """The click option of a field; its value is read in the same way as a value from a file or from Python."""

    def __init__(self, *args: Any, field: OptionField, group: Group | Literal[""] = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.field = field
        # Heading in the help; empty for a command whose help has no headings.
        self.group = group
        self.common = not group or bool(field.option.common)

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the variable's value, but not for a run, whose variables may depend on benchmark and model."""
        return None if self.group else super().resolve_envvar_value(ctx)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value of the field. Fails for a value that does not fit."""
        items = value if isinstance(value, list | tuple) else [] if value is None else [value]
        try:
            return read_values(self.field, items) if items or self.field.is_pairs else self.field.default
        except ValueError as error:
            # Click would also name the environment variable, which these options do not read.
            hint = " / ".join(f"'{name}'" for name in self.opts) if self.group else None
            raise click.BadParameter(str(error), ctx, self, hint) from error


def click_option(field: OptionField) -> click.Option:
    """Return the option of a field of a run: its names, type, default, help, group and completion."""
    names, facts = _click_arguments(field)
    return FieldOption(names, group=field.option.group, **facts)


def shared_option(key: str, **more: Any) -> Callable[[Any], Any]:
    """Return the decorator for an option of `hybrid run`, for commands whose help has no groups.

    `more` are arguments of `click.option`.
    """
    names, facts = _click_arguments(FIELDS[key])
    return click.option(*names, cls=FieldOption, **{**facts, **more})


def _click_arguments(field: OptionField) -> tuple[list[str], dict[str, Any]]:
    option = field.option
    # The name, with the negative form of a flag.
    names, default = option.name, field.default
    if field.is_negative:
        names, default = f"{names}/--{names.removeprefix('--no-')}", not default
    elif field.is_switch:
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
    least = field.option.at_least
    if field.is_switch or field.words:
        return click.Choice(field.words or ["on", "off"])
    if field.item_type is Path:
        return click.Path(path_type=Path)
    if field.option.form == "GB":
        return click.FloatRange(least)
    if field.type is not int:
        return None
    return int if least is None else click.IntRange(int(least))


backend: Final = shared_option("backend")
baseline: Final = click.option("--baseline", metavar="SOLVER", help="Test every other solver against this one.")
benchmark: Final = click.option(
    "--benchmark", type=types.BENCHMARK, help="The benchmark of the saved predictions among the paths."
)
by: Final = click.option("--by", help="Group by this field (granularity, images, ...), not by task.")
data: Final = click.option("--data", help="The benchmark's data, for predictions without their questions.")
device: Final = click.option("--device", type=types.DEVICE, default="cpu", show_default=True)
field: Final = click.option(
    "--field", type=click.Choice(["stored", "text"]), help="How saved predictions are read: see `hybrid score --help`."
)
as_json: Final = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
margin: Final = click.option(
    "--margin",
    type=types.SHARE,
    default=0.05,
    show_default=True,
    metavar="M",
    help="Differences below this count as equal, deficits below it as non-inferior, in units of the headline metric.",
)
max_seconds: Final = click.option(
    "--max-seconds",
    type=types.AMOUNT,
    default=300.0,
    show_default=True,
    help="Maximum running time of one tool call, in seconds.",
)
tool_name: Final = click.argument("name", shell_complete=types.tools)
other_labels: Final = click.option(
    "--other-labels",
    type=click.Choice(["refuse", "leave-out", "compare"]),
    help="What to do if the authors of a task corrected its labels and solvers are scored by different ones: "
    "leave-out compares the other tasks, compare compares all tasks as they are.  [default: refuse]",
)
pairs: Final = click.option(
    "--pairs", multiple=True, metavar="A:B", help="Test B against A; may be given several times.  [default: all pairs]"
)
paths: Final = click.argument("paths", nargs=-1, type=types.EXISTING_PATH, required=True, shell_complete=types.runs)
protocol: Final = click.option(
    "--protocol",
    type=click.Choice(["official", "strict"]),
    help="How replies are read: by the paper's own parser or by hybrid's.  [default: as the run was made; "
    "strict for saved predictions]",
)
published: Final = click.option(
    "--published",
    is_flag=True,
    help="Also print what papers report for the same metrics, and how comparable it is.",
)
run: Final = click.argument("run", type=types.EXISTING_FOLDER, shell_complete=types.runs)
weights: Final = shared_option(
    "weights",
    metavar="[TOOL=]DIR_OR_ID",
    help="Folder or hub id of learned weights; TOOL= selects another tool that this one calls.",
)
tables_option: Final = shared_option("tables", callback=lambda _context, _parameter, value: shape_of(value))

# Output forms of tables, except text.
FORMS: Final = ("json", "csv", "latex", "markdown")
_FORM_OPTIONS: Final = (
    click.option("--json", "form_json", is_flag=True, help="One JSON object on stdout, everything else on stderr."),
    click.option(
        "--csv",
        "form_csv",
        is_flag=True,
        help="One table with one unrounded number per line. A name that a spreadsheet would read as a "
        "formula gets an apostrophe.",
    ),
    click.option("--latex", "form_latex", is_flag=True, help="Tables in LaTeX with booktabs rules."),
    click.option("--markdown", "form_markdown", is_flag=True, help="Tables in GitHub's Markdown."),
)


def form_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command `--json`, `--csv`, `--latex` and `--markdown`.

    The command gets the chosen form, or None, as `form`.
    """

    @functools.wraps(command)
    def formed(*args: Any, **options: Any) -> int:
        forms = [form for form in FORMS if options.pop(f"form_{form}")]
        if len(forms) > 1:
            raise UsageError(
                f"{' and '.join(f'--{form}' for form in forms)} are alternative output formats: choose one"
            )
        return command(*args, form=forms[0] if forms else None, **options)

    for option in reversed(_FORM_OPTIONS):
        formed = option(formed)
    return formed


# The options for the amount of output on stderr, common to all long commands.
LOGGING = ("verbose", "quiet", "debug")


@contextmanager
def set_up_notes(*, verbose: bool, quiet: bool, debug: bool) -> Iterator[None]:
    """Show the log records of the `with` block as `verbose`, `quiet` and `debug` require.

    Raises `UsageError` if the options contradict each other.
    """
    from hybrid.running.run_log import NO_HANDLER, log_to_stderr

    if quiet and (verbose or debug):
        raise UsageError("--quiet prints nothing, --verbose and --debug print more: give only one of them")
    level = logging.INFO if verbose else logging.ERROR if quiet else NO_HANDLER
    with quietly(quiet=quiet), log_to_stderr(level, traces=debug):
        yield


def logging_options_of(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--verbose`, `--quiet` and `--debug` to a command, and apply them to logging while it runs."""

    @functools.wraps(command)
    def with_logging(*args: Any, verbose: bool, quiet: bool, debug: bool, **options: Any) -> int:
        with set_up_notes(verbose=verbose, quiet=quiet, debug=debug):
            try:
                return command(*args, **options)
            except ToolError as error:
                if debug and error.trace:
                    click.echo(error.trace.rstrip(), err=True)
                raise

    for key in reversed(LOGGING):
        with_logging = shared_option(key)(with_logging)
    return with_logging


def _look(context: click.Context, _parameter: click.Parameter, places: tuple[Path, ...]) -> None:
    if not context.resilient_parsing:
        add_search_path(places, PATH.name)


# This option is applied before other options are parsed, for the rest of the process; the registry reads the variable.
path_option = shared_option("path", is_eager=True, expose_value=False, callback=_look, envvar=None)


def check_name_conflict(package: str, name: str) -> None:
    """Raise `UsageError` if a given folder also has a plug-in of this name, which would be ignored silently."""
    reason = left_out(package).get(name, "")
    if reason.startswith(tuple(map(str, outside_folders(package)))):
        raise UsageError(reason)
