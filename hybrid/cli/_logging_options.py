"""`--verbose`, `--quiet` and `--debug`: the amount of output on stderr, common to all long commands.

@logging_options_of
def command(...):                        # logging inside follows the three options

is_quiet()                               # whether the running command shows only errors and results
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from hybrid.cli._field_options import shared_option
from hybrid.core.errors import ToolError, UsageError
from hybrid.display.notes import quietly

# Fields of `CommandOptions`.
OPTIONS = ("verbose", "quiet", "debug")


@contextmanager
def set_up_notes(*, verbose: bool, quiet: bool, debug: bool) -> Iterator[None]:
    """Show the log records of the `with` block as the three options require.

    Raises `UsageError` if the options contradict each other.
    """
    from hybrid.running.run_log import NO_HANDLER, log_to_stderr

    if quiet and (verbose or debug):
        raise UsageError("--quiet prints nothing, --verbose and --debug print more: give only one of them")
    level = logging.INFO if verbose else logging.ERROR if quiet else NO_HANDLER
    with quietly(quiet=quiet), log_to_stderr(level, traces=debug):
        yield


def logging_options_of(command: Callable[..., int]) -> Callable[..., int]:
    """Add the three options to a command, and apply them to logging while it runs."""

    @functools.wraps(command)
    def with_logging(*args: Any, verbose: bool, quiet: bool, debug: bool, **options: Any) -> int:
        with set_up_notes(verbose=verbose, quiet=quiet, debug=debug):
            try:
                return command(*args, **options)
            except ToolError as error:
                if debug and error.trace:
                    click.echo(error.trace.rstrip(), err=True)
                raise

    for key in reversed(OPTIONS):
        with_logging = shared_option(key)(with_logging)
    return with_logging
