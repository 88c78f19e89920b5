"""The options of the commands in `options.toml`."""

import tomllib
from pathlib import Path

import hybrid.cli
from hybrid.cli._options import FORMS
from tests.hybrid.cli.command_tree import commands


def test_every_entry_of_the_file_is_an_option_of_the_command_that_it_is_for() -> None:
    file = tomllib.loads((Path(hybrid.cli.__file__).parent / "options.toml").read_text())
    rows = {(command, key) for command, keys in file["commands"].items() for key in keys}
    pairs = {(command, key) for command, options in file["own"].items() for key in options}
    assert pairs <= rows
    used = {key for _, key in rows - pairs} | {f"form-{form}" for form in FORMS}
    assert set(file["shared"]) <= used
    assert set(file["commands"]) <= {" ".join(words) for words in commands()}
