"""`hybrid completion`: prints the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hybrid.core.errors import UsageError


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the script that lets SHELL complete commands, options, benchmarks, solvers, tools and runs.

    Load it in the shell's startup file:

    \b
      bash: echo 'eval "$(hybrid completion bash)"' >> ~/.bashrc
      zsh:  echo 'eval "$(hybrid completion zsh)"' >> ~/.zshrc
      fish: hybrid completion fish > ~/.config/fish/completions/hybrid.fish

    \b
    Example:
      eval "$(hybrid completion bash)"
    """
    from hybrid.cli import COMPLETE, cli

    completion = get_completion_class(shell)
    if completion is None:
        raise UsageError(f"no completion for {shell}")
    click.echo(completion(cli, {}, "hybrid", COMPLETE).source())
    return 0
