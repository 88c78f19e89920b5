"""`hybrid plan`: how many questions a comparison needs."""

from __future__ import annotations

import click


@click.command("plan")
@click.option("--difference", type=float, required=True, help="Difference of accuracies to be found, such as 0.05.")
@click.option("--discordant", type=float, help="Share of questions that exactly one solver gets right.")
@click.option("--power", type=float, default=0.8, show_default=True)
@click.option("--level", type=float, default=0.05, show_default=True, help="Two-sided error of the test.")
def command(difference: float, discordant: float | None, power: float, level: float) -> int:
    """Print the number of questions needed to find a difference between two solvers that answer the same ones.

    Every question counts alike: a mean over tasks of unequal size needs more.

    \b
    Example:
      hybrid plan --difference 0.05
    """
    from hybrid.stats import sample_size

    click.echo(f"{sample_size(difference, discordant, power, level):,} questions")
    return 0
