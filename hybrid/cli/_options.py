"""Click options and arguments that several commands share.

@click.command("view")
@shared.run
@tables_option
def command(run, tables): ...

An option of one command is defined above that command. Those of `hybrid run` are fields of `hybrid.config`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import click

from hybrid.cli import _complete
from hybrid.cli import _option_types as types
from hybrid.cli._field_options import shared_option
from hybrid.core.errors import UsageError
from hybrid.display.terminal import shape_of

backend: Final = click.option(
    "--backend", type=click.Choice(["auto", "learned", "classical"]), default="auto", show_default=True
)
baseline: Final = click.option("--baseline", metavar="SOLVER", help="Test every other solver against this one.")
benchmark: Final = click.option(
    "--benchmark", type=types.BENCHMARK, help="The benchmark of saved predictions among the paths."
)
by: Final = click.option("--by", help="Report by this group (granularity, images, ...) instead of tasks.")
data: Final = click.option("--data", help="The benchmark's data, for predictions without their questions.")
device: Final = click.option("--device", type=types.DEVICE, default="cpu", show_default=True)
field: Final = click.option(
    "--field", type=click.Choice(["stored", "text"]), help="Of saved predictions: see `hybrid score --help`."
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
    "--max-seconds", type=types.AMOUNT, default=300.0, show_default=True, help="Running time of one call of a tool."
)
tool_name: Final = click.argument("name", shell_complete=_complete.tools)
other_labels: Final = click.option(
    "--other-labels",
    type=click.Choice(["refuse", "leave-out", "compare"]),
    help="If solvers are scored by different labels, as a task's authors corrected them: "
    "leave-out compares the other tasks, compare all of them as they are.  [default: refuse]",
)
pairs: Final = click.option(
    "--pairs", multiple=True, metavar="A:B", help="Test B against A; may be given several times.  [default: all pairs]"
)
paths: Final = click.argument("paths", nargs=-1, type=types.EXISTING_PATH, required=True, shell_complete=_complete.runs)
protocol: Final = click.option(
    "--protocol",
    type=click.Choice(["official", "strict"]),
    help="How replies are read: by the paper's own parser or by ours.  [default: as the run was made; "
    "strict for saved predictions]",
)
published: Final = click.option(
    "--published",
    is_flag=True,
    help="Below, numbers that papers report for the same metrics, and the limits of a comparison.",
)
run: Final = click.argument("run", type=types.EXISTING_FOLDER, shell_complete=_complete.runs)
weights: Final = click.option(
    "--weights",
    multiple=True,
    metavar="[TOOL=]DIR_OR_ID",
    help="Directory or hub id of learned weights; TOOL= names a needed tool.",
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
