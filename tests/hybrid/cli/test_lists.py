"""Commands that list or check something: `tools`, `benchmarks`, `data` and `plan`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from PIL import Image

from hybrid.cli import cli
from hybrid.cli.run import command as run
from tests.finished_runs import Command, Words
from tests.tables import cases


@pytest.fixture
def puzzle(tmp_path: Path, fakes: Any) -> list[Path]:
    paths = [tmp_path / f"{place}.png" for place in range(3)]
    for path, piece in zip(paths, fakes.puzzle(4), strict=True):
        path.write_bytes(fakes.encoded(piece))
    return paths


@pytest.mark.system
def test_a_tool_runs_on_files(command: Command, puzzle: list[Path], tmp_path: Path) -> None:
    result = command("tools", "run", "jigsaw", *puzzle, "--picture", tmp_path / "seams.png", "--json", code=0)
    data = json.loads(result.out)
    assert (data["data"]["best"], data["backend"]) == (0, "classical")
    assert 0 <= data["confidence"] <= 1
    with Image.open(tmp_path / "seams.png") as picture:
        assert picture.format == "PNG"
    assert command("tools", "run", "jigsaw", *puzzle).out.startswith(data["text"])


@pytest.mark.parametrize(*cases(__file__, "test_wrong_arguments_are_one_line", list))
def test_wrong_arguments_are_one_line(command: Command, puzzle: list[Path], words: list[str], message: str) -> None:
    result = command("tools", "run", "jigsaw", *puzzle, *words, code=2)
    assert message in result.err
    assert result.err.count("\n") == 1


def commands(group: click.Group, *above: str) -> Iterator[tuple[Words, click.Command]]:
    """Yield every command below a group, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        below = group.get_command(context, name)
        assert below is not None
        yield (*above, name), below
        if isinstance(below, click.Group):
            yield from commands(below, *above, name)


@pytest.mark.parametrize(("words", "below"), list(commands(cli)))
def test_help_fits_a_screen(words: Words, below: click.Command) -> None:
    lines = below.get_help(click.Context(below, info_name=" ".join(words), terminal_width=80)).splitlines()
    assert len(lines) <= (45 if words == ("run",) else 40)
    # Examples are meant to be pasted, so they are not wrapped.
    assert all(len(line) <= 80 or line.lstrip().startswith(("hybrid ", 'eval "$(hybrid ')) for line in lines)


def test_all_help_is_there_when_asked_for(command: Command) -> None:
    short, out = command("run", "--help").out, command("run", "--help-all").out
    for option in (word for param in run.params if isinstance(param, click.Option) for word in param.opts[:1]):
        assert f" {option} " in out.replace("\n", " ")
    assert "matrix:" in out
    assert "matrix:" not in short
    assert "--trust" not in short
