"""The command line: `hybrid COMMAND --help`. One file a command next to this one, imported when it is called."""

from __future__ import annotations

import sys

import click

from hybrid.errors import HybridError
from hybrid.registry import load
from hybrid.version import __version__

COMMANDS = {
    "quickstart": "Everything once, offline, in a minute.",
    "run": "Ask a benchmark's questions with one or more solvers.",
    "score": "Score a run, or predictions that somebody else saved.",
    "judge": "Let a model read the replies that our parser could not.",
    "compare": "Put solvers side by side on the same questions.",
    "calibrate": "Measure how reliable each tool is, out of fold by question.",
    "plan": "Number of questions needed to see a difference.",
    "tools": "List, describe and run the specialist tools.",
    "benchmarks": "List and describe the benchmarks.",
    "data": "Check a benchmark's data before a run.",
}


class Commands(click.Group):
    """Finds a command in its file by name, so that `--help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The words, in the order of a user's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that word."""
        if cmd_name not in COMMANDS:
            return None
        command = load("hybrid.cli", cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - every file here defines one
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the words with their lines, without importing what they do."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="hybrid")
def cli() -> None:
    """Measure what vision specialists add to a multimodal LLM, and whether they alone are better.

    Three kinds of solver (hybrid graphs, the MLLM alone, the specialists alone) answer the same benchmark questions
    under the same scorers.

    \b
    Example:
      hybrid run blink --data DIR --model openai:gpt-4o --solver arbiter --solver mllm --solver specialist
    """


def main() -> None:
    """Run the program; an error of ours is one line on stderr and exit code 2."""
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except click.exceptions.Abort:
        click.echo("interrupted; what was finished is kept, and the same command goes on from there", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HybridError as error:
        click.echo(f"hybrid: {error}", err=True)
        sys.exit(2)
