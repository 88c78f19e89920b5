"""The command line: `hybrid COMMAND --help`. Each command has a file next to this one, imported on use."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from hybrid.cli._output import RedactedStream, redact_logs
from hybrid.core.error_text import describe_error, in_one_line, raised_at
from hybrid.core.errors import HybridError, UsageError, did_you_mean
from hybrid.core.files import advice_on
from hybrid.display.notes import quietly, tell
from hybrid.plugins.registry import described_by, load, names
from hybrid.serving.import_trial import describer
from hybrid.version import __version__

# Help line of each command.
COMMANDS: Final[Mapping[str, str]] = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
# A file with keys in the working folder (`hybrid/models/env_file.py`).
ENV_FILE = ".env"
# The variable by which a shell asks for completion (`hybrid completion`).
COMPLETE = "_HYBRID_COMPLETE"
# Number of newly created objects after which garbage collection runs.
GARBAGE_AFTER = 50_000
# Minimum similarity for a misspelled variable; it is high because all names begin alike.
ALIKE = 0.8
EMPTY = re.compile(r"(--[a-z-]+)=")


class Commands(click.Group):
    """Finds a command in its file by name, so that `--help` imports no command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands, in the order of a user's work."""
        return list(COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Raises `UsageError` for an empty word, which is usually an unset shell variable."""
        refuse_empty(args)
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name."""
        if cmd_name not in COMMANDS:
            return None
        command = load("hybrid.cli", cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - every file in this folder defines a command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the first word to a command; for an unknown word, fail and suggest the closest match."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            # Click only searches registered commands, but these are looked up by name.
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; report a broken connection as an error, because click would take it for a closed stdout."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise HybridError(f"a connection was closed by the other side ({_line_of(error)})") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the commands with their help lines, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="hybrid")
def cli() -> None:
    """Measure what vision specialists add to a multimodal LLM, and whether the specialists alone do better.

    Three kinds of solver (hybrid graphs, the MLLM alone, the specialists alone) answer the same benchmark questions
    under the same scorers.

    \b
    Example:
      hybrid run blink --data DIR --model openai:gpt-4o --solver arbiter,mllm,specialist
    """
    for line in misspelt(os.environ):
        tell(f"note: {line}")


def refuse_empty(words: Sequence[str]) -> None:
    """Raise `UsageError`, naming the option, if a word is empty or has an empty value: `--split=`, `--split ""`."""
    for previous, word in zip(("", *words), words, strict=False):
        if word == "--":
            return
        if empty := EMPTY.fullmatch(word):
            raise UsageError(f"{empty[1]}: the value is empty")
        if word == "":
            raise UsageError(f"{previous}: the value is empty" if previous.startswith("-") else "an argument is empty")


def misspelt(environment: Iterable[str]) -> Iterator[str]:
    """Yield a line for each variable that the program does not read but whose name resembles one that it reads."""
    hybrid_names = [name for name in environment if name.startswith("HYBRID_")]
    if not hybrid_names:
        return
    from hybrid.config.environment import VARIABLES

    of_data = (f"HYBRID_DATA_{name.upper()}" for name in names("hybrid.benchmarks"))
    valid_names = (*(variable.name for variable in VARIABLES if variable.name != "HYBRID_DATA_NAME"), *of_data)
    for name in hybrid_names:
        if name not in valid_names and (hint := did_you_mean(name, valid_names, ALIKE)):
            yield f"the variable {name} is not read{hint}"


def main() -> None:
    """Run the program and exit.

    An error of hybrid or of the system (an unreadable file, a full disk) prints one line on stderr and has exit code 2.
    A defect prints a traceback and has exit code 1. An interruption has exit code 130, a closed output pipe 141. No
    output shows a secret.
    """
    # Imported objects persist, so collecting garbage after every 700 new objects would only slow down the start.
    gc.set_threshold(GARBAGE_AFTER)
    atexit.register(_skip_last_collection)
    redact_logs()
    if Path(ENV_FILE).is_file():
        _load_keys()
    if os.environ.get(COMPLETE):
        # The shell requests completions: Click then writes only names, as bytes, and exits.
        with quietly():
            cli(prog_name="hybrid", complete_var=COMPLETE)
    with _guarded("stdout", needed=True), _guarded("stderr", needed=False), described_by(describer):
        try:
            code = _run_command()
        finally:
            _stop_servers()
        if sys.stdout is not None:
            sys.stdout.flush()
    sys.exit(code)


def _stop_servers() -> None:
    """End the servers that the command started, if any."""
    module = sys.modules.get("hybrid.models.served.process")
    if module is not None:
        module.stop_servers()


def _load_keys() -> None:
    """Read the keys of `.env`; if it cannot be read, print a note and continue without them."""
    from hybrid.models.env_file import load_keys

    try:
        load_keys()
    except HybridError as error:
        tell(f"warning: {describe_error(error)}")


@contextmanager
def _guarded(name: str, *, needed: bool) -> Iterator[None]:
    """Wrap one of the program's streams in `RedactedStream`, unless the program was started without that stream."""
    stream = getattr(sys, name)
    if stream is None:
        yield
        return
    setattr(sys, name, RedactedStream(stream, needed=needed))
    try:
        yield
    finally:
        setattr(sys, name, stream)


def _run_command() -> int:
    """Run the command. Return the exit code, after printing the reason if it is not 0."""
    try:
        return cli(standalone_mode=False) or 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted; finished answers are saved, and the same command resumes the run", err=True)
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"hybrid: {_line_of_usage(error)}", err=True)
        return error.exit_code
    except HybridError as error:
        click.echo(f"hybrid: {describe_error(error)}", err=True)
        return 2
    except OSError as error:
        click.echo(f"hybrid: {_line_of(error)}", err=True)
        return 2
    except Exception as error:
        # `Path.resolve` raises this error for a link to itself; from Python 3.13 on, it raises an OSError.
        if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop from "):
            click.echo(f"hybrid: {error}", err=True)
            return 2
        plugged_in = raised_at(traceback.format_exc(), installed=False) != ""
        if not plugged_in or "--debug" in sys.argv:
            traceback.print_exc()
        if plugged_in:
            click.echo(f"hybrid: {in_one_line(error)}; --debug shows the traceback", err=True)
        return 2 if plugged_in else 1


# The command whose `list` prints the possible values of a missing argument. An argument NAME is listed by the command
# group that it is in.
LISTED_BY: Final[Mapping[str, str]] = {"benchmark": "benchmarks", "run": "runs", "paths": "runs"}


def _line_of_usage(error: click.ClickException) -> str:
    """Describe an error in a command line, and name the command that shows the right usage."""
    line = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return line
    words, ctx = [""], error.ctx
    while ctx.parent is not None:
        words, ctx = [ctx.info_name or "", *words], ctx.parent
    hints = [f"`hybrid {' '.join(words)}--help` shows the usage"]
    param = error.param if isinstance(error, click.BadParameter) else None
    # For a wrong value of an option, the message itself lists the right values.
    if param is not None and (isinstance(error, click.MissingParameter) or isinstance(param, click.Argument)):
        parent = error.ctx.parent.info_name if error.ctx.parent else None
        name = param.name or ""
        listing = parent if name == "name" and parent in COMMANDS else LISTED_BY.get(name)
        hints[:0] = [f"`hybrid {listing} list` shows the possible values"] if listing else []
    if elsewhere := _other_place(error, error.ctx):
        line, hints = error.message, [elsewhere, *hints]
    # Click adds its suggestion as a sentence, with or without parentheses.
    line = re.sub(r"[.,]? \(?Did you mean (.+?)\?\)?\.?$", r" (did you mean \1?)", line)
    return f"{line.rstrip('.')}; {', '.join(hints)}"


def _other_place(error: click.UsageError, ctx: click.Context) -> str:
    """Return how an unknown option or command is written: as a key of `--model-arg`, or in another group; else empty.

    `hybrid run --temperature 0.5` means `--model-arg temperature=0.5`; `hybrid new tool` means `hybrid tools new`.
    """
    if isinstance(error, click.NoSuchOption) and any("--model-arg" in param.opts for param in ctx.command.params):
        from hybrid.config.command_options import nearest_model_arg

        key = nearest_model_arg(error.option_name)
        return f"write `--model-arg {key}=VALUE`" if key else ""
    if isinstance(error, click.NoSuchCommand) and f"{error.command_name}s" in COMMANDS:
        other = load("hybrid.cli", f"{error.command_name}s")
        if isinstance(other, click.Group) and ctx.info_name in other.commands:
            return f"write `hybrid {other.name} {ctx.info_name}`"
    return ""


def _line_of(error: OSError) -> str:
    """Return a line with the file, the error and advice."""
    if error.filename is not None and error.strerror:
        file = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        return f"{file}: {error.strerror}{advice_on(error)}"
    return str(error) or type(error).__name__


def _skip_last_collection() -> None:
    """Keep the interpreter from collecting all imported objects at exit, which takes 0.4 s of CPU after LangGraph runs.

    With PyTorch this is not done: its bindings by nanobind report every object that is not collected as a leak.
    """
    if "torch" not in sys.modules:
        gc.freeze()
