"""Help that fits a screen: common options in groups, everything with `--help-all`.

    @click.command("compare", cls=Grouped, rare=("margin", "pairs"))

`--help` shows a docstring up to its form feed, `--help-all` all of it.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import click

from hybrid.config.option import GROUPS, Group

HELP_ALL: Final = "hybrid.help_all"
# An example command for each group of options of `hybrid run`.
EXAMPLES: Final[Mapping[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


# Options of many commands that plain `--help` omits.
USUAL: Final = frozenset({"tables", "unanswered", "allow_failed", "verbose", "quiet", "debug"})


class Grouped(click.Command):
    """A command with `--help-all`, whose `--help` omits the rare options.

    `rare` names parameters to omit. An option with a `group` is also omitted if its attribute `common` is not set.
    """

    def __init__(self, *args: Any, rare: Collection[str] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.rare = USUAL | {*rare}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, and the option `--help-all`."""
        option = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show every option and exit.",
        )
        return [*super().get_params(ctx), option]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the docstring, up to its form feed unless everything is requested."""
        text, _, more = inspect.cleandoc(self.help or "").partition("\f")
        if _all(ctx):
            text = f"{text.rstrip()}\n\n{more.lstrip()}"
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text.strip())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option) and not param.hidden]
        grouped = any(group_of(option) for option in options)
        headings: Mapping[Group, str] = GROUPS if grouped else {"output": "Options"}
        for group, heading in headings.items():
            group_options = [option for option in options if not grouped or (group_of(option) or "output") == group]
            rows = list(self._rows(group_options, ctx))
            if not rows:
                continue
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=32)
                if grouped and self.name == "run" and not _all(ctx):
                    formatter.write(f"{'':{formatter.current_indent}}{EXAMPLES[group]}\n")

    def _rows(self, options: list[click.Option], ctx: click.Context) -> Iterator[tuple[str, str]]:
        for option in options:
            if _all(ctx):
                yield from filter(None, [option.get_help_record(ctx)])
            elif option.name not in self.rare and getattr(option, "common", True):
                # Yield the option without its short name, the first sentence of its help and the default; on one line
                # if possible.
                names = ", ".join(option.opts)
                takes = "" if option.is_flag else f" {option.make_metavar(ctx)}"
                brief = (option.help or "").partition(". ")[0].rstrip(".")
                if isinstance(option.type, click.Choice) and group_of(option):
                    words = ", ".join(map(str, option.type.choices))
                    takes, brief = " WORD", f"{words}: {brief[:1].lower()}{brief[1:]}"
                default = option.get_help_extra(ctx).get("default")
                yield (f"{names}{takes}", brief + (f"  [{default}]" if default else ""))


def group_of(param: click.Parameter) -> Group | Literal[""]:
    """Return the heading of an option; empty if it has none."""
    group: Group | Literal[""] = getattr(param, "group", "")
    return group


def _all(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(HELP_ALL))


def _show_all(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
