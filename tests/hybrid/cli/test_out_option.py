"""Output paths of commands: `-o` and `--out` are one option in each command."""

import click
import pytest

from hybrid.cli import cli


def writers(group: click.Group, words: tuple[str, ...] = ()) -> dict[str, click.Option]:
    """Return, by the words of a command, its output option."""
    results: dict[str, click.Option] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            results |= writers(command, (*words, name))
        elif command is not None:
            for option in command.params:
                if isinstance(option, click.Option) and {"-o", "--out"} & {*option.opts}:
                    results[" ".join((*words, name))] = option
    return results


WRITERS = writers(cli)


@pytest.mark.parametrize("name", WRITERS)
def test_o_is_out(name: str) -> None:
    assert {"-o", "--out"} <= {*WRITERS[name].opts}
    assert WRITERS[name].name == "out"


def test_the_commands_that_write_are_looked_at() -> None:
    assert {"run", "quickstart", "report", "export", "score", "study", "data template"} <= WRITERS.keys()
