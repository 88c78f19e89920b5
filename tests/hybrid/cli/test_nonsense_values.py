"""Invalid values for every option of every command: one line that names the option, exit code 2, nothing written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.finished_runs import Command, Words
from tests.hybrid.cli import command_tree

TREE: dict[Words, click.Command] = command_tree.commands()


def nonsense(param: click.Parameter) -> Iterator[str]:
    """Yield values that an option cannot have, by its type."""
    if isinstance(param.type, click.Choice):
        yield from ("", "nonsense")
    elif isinstance(param.type, click.IntRange | click.types.IntParamType):
        yield from ("", "much", "1.5", "nan", "1e400")
        least = getattr(param.type, "min", None)
        yield from ([str(least - 1)] if least is not None else [])
    elif isinstance(param.type, click.FloatRange | click.types.FloatParamType) or param.type.name == "float":
        yield from ("", "much", "nan", "-2", "inf")
    elif isinstance(param.type, click.types.StringParamType):
        yield ""
        # Leave out options with free text, with words that only a provider knows, or that apply to another kind of
        # PATH.
        if param.name not in ("title", "args_json", "image_detail", "reasoning_effort", "data", "key"):
            yield "nonsense?"
    elif param.type.name == "text":
        yield from ("", "nonsense?")
    elif isinstance(param.type, click.Path):
        yield ""
        if param.type.exists:
            yield "nowhere"


def options() -> list[tuple[Words, click.Option]]:
    """Return every option that takes a value."""
    return [
        (words, param)
        for words, value in TREE.items()
        # Leave out commands that have the options of `hybrid run`, or that take minutes.
        if words not in (("ablate",), ("study",), ("quickstart",))
        for param in value.params
        if isinstance(param, click.Option) and not param.is_flag
    ]


@pytest.fixture
def command_inputs(tmp_path: Path, blink: Words, synthetic_runs: Any, fakes: Any) -> Any:
    run = synthetic_runs.write(tmp_path / "runs", "blink", size=2)
    images = tmp_path / "images"
    images.mkdir()
    (images / "photo.png").write_bytes(fakes.encoded(fakes.pixels(1)))
    return command_tree.Given(run.real, tmp_path / "blink", tmp_path / "model", images / "photo.png", tmp_path / "free")


@pytest.mark.parametrize("words", list(dict.fromkeys(words for words, _ in options())), ids=" ".join)
def test_nonsense_is_one_line_that_names_its_option(
    command: Command, command_inputs: Any, words: Words, tmp_path: Path
) -> None:
    item = TREE[words]
    base = command_inputs.words_of(words, item)
    ordered = sorted(tmp_path.rglob("*"))
    wrong = []
    for param in item.params:
        if not isinstance(param, click.Option) or (words, param) not in options():
            continue
        for value in nonsense(param):
            result = command(*words, *command_tree.replaced(item, base, param, value))
            name = max(param.opts, key=len)
            lines = [line for line in result.err.splitlines() if line.startswith(("hybrid: ", "Error: "))]
            matches_any = any(opt in result.err for opt in param.opts if opt.startswith("--") or len(param.opts) == 1)
            if result.code != 2 or len(lines) != 1 or not matches_any or "Traceback" in result.err:
                wrong.append(f"{' '.join(words)} {name}={value}: {result.code}, {result.err[-300:]}")
    assert not wrong, "\n".join(wrong)
    # Scores that a command saves in a run do not count.
    values = {"scores.json", "scores.jsonl"}
    paths = [path for path in tmp_path.rglob("*") if path not in ordered and path.name not in values]
    assert [path for path in paths if "hybrid-home" not in path.parts] == []
