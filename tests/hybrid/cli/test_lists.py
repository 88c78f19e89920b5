"""The commands that show and check: tools, benchmarks, data, plan."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hybrid.registry import names

Command = Callable[..., Any]


@pytest.fixture
def puzzle(tmp_path: Path, fakes: Any) -> list[Path]:
    paths = [tmp_path / f"{place}.png" for place in range(3)]
    for path, piece in zip(paths, fakes.puzzle(4), strict=True):
        path.write_bytes(fakes.encoded(piece))
    return paths


@pytest.mark.parametrize(("group", "package"), [("tools", "tools"), ("benchmarks", "hybrid.benchmarks")])
def test_everything_is_listed_and_can_be_shown(command: Command, group: str, package: str) -> None:
    listed = command(group, "list")
    assert listed.code == 0
    assert [line.split()[0] for line in listed.out.splitlines()] == list(names(package))
    for name in names(package):
        shown = command(group, "show", name)
        assert (shown.code, shown.err) == (0, "")
        assert shown.out


@pytest.mark.parametrize("words", [("tools", "show", "crystal"), ("benchmarks", "show", "chess")])
def test_an_unknown_name_is_one_line(command: Command, words: tuple[str, ...]) -> None:
    ended = command(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"hybrid: no {words[-1]!r} in ")


def test_a_tool_runs_on_files(command: Command, puzzle: list[Path], tmp_path: Path) -> None:
    ended = command("tools", "run", "jigsaw", *puzzle, "--picture", tmp_path / "seams.png", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert (found["data"]["best"], found["backend"]) == (0, "classical")
    assert 0 <= found["confidence"] <= 1
    with Image.open(tmp_path / "seams.png") as picture:
        assert picture.format == "PNG"
    plain = command("tools", "run", "jigsaw", *puzzle)
    assert plain.out.startswith(found["text"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--args", "{"], "--args is not JSON"),
        (["--args", "[]"], "--args must be a JSON object"),
        (["--args", '{"trim_px": 99}'], "wrong arguments for jigsaw: trim_px"),
    ],
)
def test_wrong_arguments_are_one_line(command: Command, puzzle: list[Path], words: list[str], message: str) -> None:
    ended = command("tools", "run", "jigsaw", *puzzle, *words)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_too_few_images_or_none_that_decode(command: Command, puzzle: list[Path], tmp_path: Path) -> None:
    assert "takes" in command("tools", "run", "jigsaw", puzzle[0]).err
    (tmp_path / "0.png").write_bytes(b"no image")
    ended = command("tools", "run", "jigsaw", *puzzle)
    assert ended.code == 2
    assert "0.png: these 8 bytes are not an image" in ended.err


def test_data_is_checked_row_by_row(command: Command, tmp_path: Path, fakes: Any) -> None:
    folder = fakes.blink_folder(tmp_path / "blink", jigsaws=2, spatials=1)
    ended = command("data", "check", folder)
    assert ended.code == 0
    assert "3 rows, 0 broken" in ended.out
    assert "(the card says 150)" in ended.out
    fakes.write_task(folder, "Jigsaw", [fakes.jigsaw_row(1), {**fakes.jigsaw_row(2), "answer": "(D)"}])
    ended = command("data", "check", folder)
    assert ended.code == 3
    assert "broken: val_Jigsaw_2: " in ended.out
    assert command("data", "check", tmp_path / "nowhere").code == 2


def test_a_plan_needs_more_questions_for_a_smaller_difference(command: Command) -> None:
    counts = [
        int(command("plan", "--difference", str(share)).out.split()[0].replace(",", "")) for share in (0.2, 0.1, 0.05)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.parametrize("words", [("0",), ("2",), ("0.1", "--power", "2"), ("0.1", "--level", "0")])
def test_a_plan_for_nothing_is_one_line(command: Command, words: tuple[str, ...]) -> None:
    ended = command("plan", "--difference", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") >= 1
    assert "Traceback" not in ended.err
