"""`--verbose`, `--quiet` and `--debug`: how much a long command tells on stderr, the same for all of them.

@told_options
def command(...):                        # what is logged inside is shown as they say

is_quiet()                               # whether the command that runs shows only errors and results
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from hybrid.cli._options import shared_option
from hybrid.core.errors import ToolError, UsageError
from hybrid.display.notes import quietly

# As `options.toml` has them.
OPTIONS = ("verbose", "quiet", "debug")


@contextmanager
def telling(*, verbose: bool, quiet: bool, debug: bool) -> Iterator[None]:
    """Show what is logged inside as the three options say. Raises `UsageError` for two that contradict each other."""
    from hybrid.running.run_log import NO_HANDLER, log_to_stderr

    if quiet and (verbose or debug):
        raise UsageError("--quiet shows nothing of what --verbose and --debug show: give one of them")
    level = logging.INFO if verbose else logging.ERROR if quiet else NO_HANDLER
    with quietly(quiet=quiet), log_to_stderr(level, traces=debug):
        yield


def told_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the three options, and show what is logged while it runs as they say."""

    @functools.wraps(command)
    def told(*args: Any, verbose: bool, quiet: bool, debug: bool, **options: Any) -> int:
        with telling(verbose=verbose, quiet=quiet, debug=debug):
            try:
                return command(*args, **options)
            except ToolError as error:
                if debug and error.trace:
                    click.echo(error.trace.rstrip(), err=True)
                raise

    for key in reversed(OPTIONS):
        told = shared_option(key)(told)
    return told
