"""`hybrid compare`: solvers side by side on the same questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybrid.cli._table_options import abstain_option, allow_failed_option, protocol_option, published_option
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.benchmarks.base import Abstain, Parse
    from hybrid.scoring.score import Field


@click.command("compare")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--by", help="Report by this group (granularity, images, ...) in the place of tasks.")
@click.option("--benchmark", help="For saved predictions among the paths: whose they are.")
@click.option("--data", help="The benchmark's data, for predictions without their questions.")
@click.option("--field", type=click.Choice(["stored", "text"]), help="Of saved predictions: see `hybrid score --help`.")
@protocol_option
@abstain_option
@click.option("--baseline", metavar="SOLVER", help="Test every other solver against this one.")
@click.option(
    "--pairs", multiple=True, metavar="A:B", help="Test B against A; may be given several times.  [default: all pairs]"
)
@allow_failed_option
@published_option
@click.option("--json", "form", flag_value="json", help="One JSON object.")
@click.option("--csv", "form", flag_value="csv")
@click.option("--latex", "form", flag_value="latex", help="With the rules of booktabs.")
@click.option("--markdown", "form", flag_value="markdown")
def command(
    paths: tuple[Path, ...],
    by: str | None,
    benchmark: str | None,
    data: str | None,
    field: Field | None,
    protocol: Parse | None,
    abstain: Abstain | None,
    baseline: str | None,
    pairs: tuple[str, ...],
    allow_failed: bool,
    published: bool,
    form: str | None,
) -> int:
    """Compare solvers: metrics, accuracy by task, 95 % intervals, paired differences, helped and harmed, cost.

    A PATH is a run (all its solvers), a solver's folder in a run, or saved predictions (with --benchmark). Of several
    runs each name carries what sets its run apart: "controller [blank]" is that of a run with --tool-output blank.
    Solvers are compared on the questions that both have; other questions under the same ids are refused.

    \b
    Examples:
      hybrid compare runs/blink-1a2b3c4d5e
      hybrid compare runs/a/arbiter runs/b/arbiter --by granularity --markdown
      hybrid compare runs/real/controller runs/blank/controller runs/real/mllm
      hybrid compare runs/a --baseline mllm --published
    """
    from hybrid.cli.score import Counting, by_model, gather
    from hybrid.scoring.compare import Choice, as_json, chosen_pairs, compare, unique
    from hybrid.scoring.compare_tables import tables
    from hybrid.tables import RENDERERS

    if published and form == "json":
        raise UsageError("--published prints tables: leave out --json")
    counting = Counting(protocol, abstain or "chance")
    sets = by_model(paths, benchmark)
    found = [
        (one, path.as_posix())
        for path, *more in sets
        for one in gather(path, benchmark, data, field, counting, more=more)
    ]
    solvers = unique([one for one, _ in found], [origin for _, origin in found])
    if not solvers:
        return 0
    choice = Choice(by, chosen_pairs([one.solver for one in solvers], baseline, pairs), allow_failed)
    if form == "json":
        click.echo(json.dumps(as_json(compare(solvers, choice))))
    else:
        shown = tables(solvers, choice, printed=published)
        click.echo("\n".join(RENDERERS[form or "text"](table) for table in shown), nl=False)
    return 0
