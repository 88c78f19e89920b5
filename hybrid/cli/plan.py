"""`hybrid plan`: how many questions a comparison needs, or what those that there are can show."""

from __future__ import annotations

import math

import click

from hybrid.cli._option_types import FiniteRange

SHARE = FiniteRange(0, 1, min_open=True, max_open=True)


@click.command("plan")
@click.option("--difference", type=FiniteRange(-1, 1), metavar="D", help="Difference of accuracies to be found: 0.05.")
@click.option("--questions", type=click.IntRange(1), metavar="N", help="Questions that there are: what they can show.")
@click.option(
    "--discordant", type=FiniteRange(0, 1, min_open=True), help="Share of questions that one solver alone gets right."
)
@click.option("--power", type=SHARE, default=0.8, show_default=True)
@click.option(
    "--level",
    type=SHARE,
    default=0.05,
    show_default=True,
    help="Two-sided error of the test.",
)
def command(
    difference: float | None, questions: int | None, discordant: float | None, power: float, level: float
) -> int:
    """Print how many questions it takes to find a difference, or which difference so many questions can show.

    It is about two solvers that answer the same questions. Every question counts alike: a mean over tasks of unequal
    size needs more.

    \b
    Examples:
      hybrid plan --difference 0.05
      hybrid plan --questions 1901
    """
    from hybrid.errors import UsageError
    from hybrid.stats import detectable_difference, sample_size

    if difference is not None and questions is None:
        click.echo(f"{sample_size(difference, discordant, power, level):,} questions")
    elif questions is not None and difference is None:
        smallest = detectable_difference(questions, discordant, power, level)
        # Rounded up, so that the questions do show the difference printed.
        click.echo(f"a difference of {math.ceil(smallest * 1000) / 1000:.3f}")
    else:
        raise UsageError("give one of the two: --difference D for a number of questions, or --questions N")
    return 0
