"""Click options and arguments of the commands, made from the words in `options.toml`.

@click.command("score", cls=Grouped)
@options("score")
def command(paths, benchmark, ...): ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import click

from hybrid.cli import _complete
from hybrid.cli import _option_types as types
from hybrid.cli._path import path_option
from hybrid.core.errors import UsageError
from hybrid.core.toml_records import read_card
from hybrid.display.terminal import shape_of

# Value types by their word in the file; those that are not paths or whole numbers reject NaN and infinity.
TYPES: Final[Mapping[str, Any]] = {
    "text": None,
    "path": click.Path(path_type=Path),
    "folder": click.Path(path_type=Path, file_okay=False),
    "file": click.Path(path_type=Path, dir_okay=False),
    "existing path": click.Path(path_type=Path, exists=True),
    "existing folder": click.Path(path_type=Path, exists=True, file_okay=False),
    "existing file": click.Path(path_type=Path, exists=True, dir_okay=False),
    "run or solver": types.RUN_OR_SOLVER,
    "integer": click.INT,
    "count": types.COUNT,
    "number": types.NUMBER,
    "several": types.WholeRange(2),
    "port": types.WholeRange(0, 65535),
    "from 0": types.FiniteRange(0),
    "share": types.FiniteRange(0, 1, min_open=True, max_open=True),
    "share to 1": types.FiniteRange(0, 1, min_open=True),
    "difference": types.FiniteRange(-1, 1),
    "amount": types.AMOUNT,
    "benchmark": types.BENCHMARK,
    "solver": types.SOLVER,
    "device": types.DEVICE,
    "address": types.ADDRESS,
}
Decorator = Callable[[Any], Any]


@dataclass(frozen=True)
class Declared:
    """One option or argument, under its long name without dashes."""

    help: str = ""
    argument: bool = False
    # Names for click, if there are more than `--KEY`.
    names: tuple[str, ...] = ()
    type: str = "text"
    # The valid words, if they are a fixed set.
    words: tuple[str, ...] = ()
    flag: bool = False
    # Whether it may be repeated, or takes all remaining words.
    many: bool = False
    # Whether it accepts `A,B`, repeatedly.
    listed: bool = False
    required: bool = False
    # Whether an argument may be omitted.
    optional: bool = False
    default: str | None = None
    default_shown: bool = True
    metavar: str | None = None
    complete: Literal["", "benchmarks", "solvers", "tools", "tool_lists", "runs"] = ""

    def decorator(self, key: str) -> Decorator:
        """Return the decorator that gives a command this option."""
        arguments: dict[str, Any] = {
            "type": click.Choice(self.words) if self.words else TYPES[self.type],
            "metavar": self.metavar,
            "shell_complete": getattr(_complete, self.complete) if self.complete else None,
        }
        if self.argument:
            must = self.required or not (self.optional or self.many)
            return click.argument(key, nargs=-1 if self.many else 1, required=must, **arguments)
        if self.default is not None:
            arguments |= {"default": self.flag or self.default, "show_default": self.default_shown or None}
        return click.option(
            *(self.names or (f"--{key}",)),
            cls=types.Listed if self.listed else click.Option,
            # Click uses False for an option with an optional value.
            is_flag=self.flag or None,
            multiple=self.many or self.listed,
            required=self.required,
            help=self.help or None,
            **arguments,
        )


@dataclass(frozen=True)
class _File:
    # Options of each command, in the order of its help.
    commands: Mapping[str, tuple[str, ...]]
    shared: Mapping[str, Declared]
    own: Mapping[str, Mapping[str, Declared]]


@functools.cache
def _declared() -> _File:
    return read_card(Path(__file__).with_name("options.toml"), _File)


tables_option: Final = click.option(
    "--tables",
    type=click.Choice(["wide", "narrow", "auto"]),
    default="auto",
    show_default=True,
    callback=lambda _context, _parameter, value: shape_of(value),
    help="narrow keeps text within 80 columns: long names are folded, and columns stand in blocks below each other; "
    "auto is narrow in a terminal of fewer than 100 columns.",
)
# Options of many commands that take effect as soon as they are parsed.
IN_CODE: Final[Mapping[str, Decorator]] = {"path": path_option, "tables": tables_option}


def shared_option(key: str) -> Decorator:
    """Return the decorator for an option that many commands share."""
    return _declared().shared[key].decorator(key)


def options(command: str, **in_code: Decorator) -> Decorator:
    """Give a command the options that the file lists for it; `in_code` are those that the file cannot contain."""
    file = _declared()
    options = {key: spec.decorator(key) for key, spec in {**file.shared, **file.own.get(command, {})}.items()}
    options = {**IN_CODE, **options, **in_code}

    def given(function: Any) -> Any:
        for key in reversed(file.commands[command]):
            function = options[key](function)
        return function

    return given


# Output forms of tables, except text.
FORMS: Final = ("json", "csv", "latex", "markdown")


def form_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command `--json`, `--csv`, `--latex` and `--markdown`; it gets one of them as `form`, or None."""

    @functools.wraps(command)
    def formed(*args: Any, **options: Any) -> int:
        forms = [form for form in FORMS if options.pop(f"form_{form}")]
        if len(forms) > 1:
            raise UsageError(f"{' and '.join(f'--{form}' for form in forms)} are forms of one output: give one of them")
        return command(*args, form=forms[0] if forms else None, **options)

    for form in reversed(FORMS):
        formed = shared_option(f"form-{form}")(formed)
    return formed
