"""A page for each command of `hybrid`, from click: usage, help, arguments and options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from _reference.markdown import Page, block, code, definitions, escaped, prose, table
from hybrid.cli import COMMANDS, cli
from hybrid.cli._help import group_of
from hybrid.config.option import GROUPS

FOLDER = "reference/commands"


def pages() -> tuple[Page, ...]:
    """Return the overview, then the commands in the order of `hybrid --help`."""
    root = click.Context(cli, info_name="hybrid")
    return (_overview(root), *(_page(root, name) for name in COMMANDS))


def _overview(root: click.Context) -> Page:
    rows = [(f"[{code('hybrid ' + name)}]({name}.md)", escaped(line)) for name, line in COMMANDS.items()]
    parts = [
        "# Commands",
        prose(cli.help or ""),
        table(("command", "what it does"), rows),
        "## Options of `hybrid` itself",
        _options(root, cli.get_params(root)),
        "[Exit codes](../exit-codes.md) and [environment variables](../environment.md) are the same for every command.",
    ]
    return Page(f"{FOLDER}/index.md", "Commands", "\n\n".join(parts) + "\n")


def _page(root: click.Context, name: str) -> Page:
    command = cli.get_command(root, name)
    assert command is not None  # noqa: S101 - the names that the program itself accepts
    return Page(f"{FOLDER}/{name}.md", name, "\n\n".join(_sections(root, command, name, 1)) + "\n")


def _sections(parent: click.Context, command: click.Command, name: str, level: int) -> Iterator[str]:
    """Return the command's section, then its subcommands one level deeper."""
    context = click.Context(command, info_name=name, parent=parent)
    yield f"{'#' * level} {context.command_path}"
    yield block(" ".join([context.command_path, *command.collect_usage_pieces(context)]))
    yield prose((command.help or "").replace("\f", "\n\n"))
    yield _arguments(context)
    if any(isinstance(one, click.Option) for one in command.params):
        yield "## Options" if level == 1 else "**Options**"
        yield from _grouped(context, command.params)
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            if inner is not None and not inner.hidden:
                yield from _sections(context, inner, word, level + 1)


def _arguments(context: click.Context) -> str:
    """Return the words that an argument accepts, if they are a fixed list."""
    found = [one for one in context.command.params if isinstance(one, click.Argument)]
    rows = [
        (code(one.make_metavar(context)), [" | ".join(code(str(word)) for word in one.type.choices)])
        for one in found
        if isinstance(one.type, click.Choice)
    ]
    return definitions(rows)


def _grouped(context: click.Context, params: Sequence[click.Parameter]) -> Iterator[str]:
    """Return the options, under the headings of the help if there are any."""
    groups = any(group_of(one) for one in params)
    if not groups:
        yield _options(context, params)
    for group, heading in GROUPS.items() if groups else ():
        here = [one for one in params if (group_of(one) or "output") == group]
        if here:
            yield f"**{heading}**"
            yield _options(context, here)


def _options(context: click.Context, params: Sequence[click.Parameter]) -> str:
    options = [one for one in params if isinstance(one, click.Option) and not one.hidden]
    return definitions((_term(one, context), _about(one, context)) for one in options)


def _term(option: click.Option, context: click.Context) -> str:
    names = ", ".join(code(name) for name in [*option.opts, *option.secondary_opts])
    takes = "" if option.is_flag or option.count else f" {code(_metavar(option, context))}"
    return names + takes


def _metavar(option: click.Option, context: click.Context) -> str:
    if isinstance(option.type, click.Choice) and option.metavar is None:
        return "|".join(str(word) for word in option.type.choices)
    return option.make_metavar(context)


def _about(option: click.Option, context: click.Context) -> list[str]:
    facts = []
    extra = option.get_help_extra(context)
    if "default" in extra:
        facts.append(f"default {code(extra['default'])}")
    elif (default := _unsaid_default(option)) is not None:
        facts.append(f"default {code(default)}")
    names = [option.envvar] if isinstance(option.envvar, str) else option.envvar or ()
    if names:
        facts.append("environment " + ", ".join(f"[{code(name)}](../environment.md)" for name in names))
    if "range" in extra:
        facts.append(code(extra["range"]))
    if option.multiple and "several times" not in (option.help or ""):
        facts.append("may be given several times")
    if option.required:
        facts.append("required")
    return [escaped(option.help or ""), f"*{'; '.join(facts)}*" if facts else ""]


def _unsaid_default(option: click.Option) -> str | None:
    """Return the default if it is a word or number and the help text does not show it."""
    default = option.default
    if option.is_flag or option.multiple or callable(default) or "[default" in (option.help or ""):
        return None
    return str(default) if isinstance(default, str | int | float) and str(default) else None
