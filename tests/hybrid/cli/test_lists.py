"""The commands that show and check: tools, benchmarks, data, plan."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from PIL import Image

from hybrid.cli import cli
from hybrid.cli._help import EXAMPLES
from hybrid.cli.run import command as run
from hybrid.config.option import GROUPS
from hybrid.registry import load, names
from hybrid.tool import Tool

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


@pytest.mark.parametrize("name", names("tools"))
def test_a_card_shows_all_that_decides_whether_to_believe_a_tool(command: Command, name: str) -> None:
    tool: Tool = load("tools", name)
    shown = command("tools", "show", name).out
    assert max(map(len, shown.splitlines())) <= 120
    flat = " ".join(shown.split())
    assert f"{name}: {tool.card.summary}" in flat
    assert f"Limits: {tool.card.limits}" in flat
    assert all(f"  {field} " in shown for field in tool.args.model_fields)
    assert all((check.series.name if check.series else check.name) in flat for check in tool.checks)
    assert ("hybrid tools check" in flat) == bool(tool.checks)
    common, *parts = re.split(r"^(?=(?:learned|classical) backend, version)", shown, flags=re.MULTILINE)
    assert asked_first(common) == list(dict.fromkeys(need.tool for need in tool.card.needs))
    for backend, part in zip(tool.card.backends, parts, strict=True):
        text = " ".join(part.split())
        assert text.startswith(f"{backend.name} backend, version {backend.version} {backend.summary}")
        assert ("licence that of this project" in text) == (backend.name == "classical")
        assert (backend.weights or backend.package or "") in text
        for known in backend.provenances:
            assert known.weights in text
            assert f"licence {known.licence}" in text
            assert all(name in text for name in known.trained_on)
        closed = {(known.licence, known.trained_on) for known in backend.provenances if known.non_commercial}
        assert text.count("not for commercial use (--allow non-commercial)") == len(closed)
        assert ("all others unknown training data and licence" in text) == bool(backend.provenances)
        assert asked_first(part) == list(dict.fromkeys(need.tool for need in backend.needs))
        assert all(f"{level.right}/{level.n} " in text for level in backend.reliability)
        assert ("not measured" in text) == (not backend.reliability)
        assert f"on {backend.counted_on}, by the confidence" in text or not backend.reliability


@pytest.mark.parametrize("name", ["depth", "scanpath", "crop"])
def test_a_card_says_how_a_backend_is_batched_and_what_that_changes(command: Command, name: str) -> None:
    tool = load("tools", name)
    shown = command("tools", "show", name).out
    _, *parts = re.split(r"^(?=(?:learned|classical) backend, version)", shown, flags=re.MULTILINE)
    for backend, part in zip(tool.card.backends, parts, strict=True):
        said = re.search(r"^  batches +(.*?)^  \w", part, flags=re.MULTILINE | re.DOTALL)
        assert said is not None
        words = " ".join(said[1].split())
        assert words.startswith(f"of up to {backend.batch};" if backend.batch > 1 else "none, one request at a time")
        changed = f"by at most {backend.learned_tolerance:g} from those of a request alone"
        assert (changed in words) == bool(backend.learned_tolerance)


def asked_first(text: str) -> list[str]:
    found = re.search(r"asks first +(.+)", text)
    return found[1].split(", ") if found else []


def test_a_card_says_whether_the_weights_are_here(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    depth = " ".join(command("tools", "show", "depth").out.split())
    assert "here no (weights absent: depth-anything/Depth-Anything-V2-Small-hf is not on disk" in depth
    assert "the classical backend answers instead" in depth
    assert "without them it does not answer" in " ".join(command("tools", "show", "attributes").out.split())
    points = " ".join(command("tools", "show", "depth").out.split("Arguments")[1].split())
    assert "points list of objects: else those drawn" in points
    assert "labels list of A | B | C | D | REF: drawn letters" in points
    assert "x number y number label string" in points
    assert "pixels of the image, origin at the top left" in points


@pytest.mark.parametrize("words", [("tools", "show", "crystal"), ("benchmarks", "show", "chess")])
def test_an_unknown_name_is_one_line(command: Command, words: tuple[str, ...]) -> None:
    ended = command(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"hybrid: no {words[-1]!r} in ")


@pytest.mark.system
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
    # Sound rows, and fewer than the benchmark has.
    assert ended.code == 3
    assert "3 questions, 0 broken: not complete" in ended.out
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


def commands(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below a group, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        below = group.get_command(context, name)
        assert below is not None
        yield (*above, name), below
        if isinstance(below, click.Group):
            yield from commands(below, *above, name)


@pytest.mark.parametrize(("words", "below"), list(commands(cli)))
def test_help_shows_examples_line_by_line(words: tuple[str, ...], below: click.Command) -> None:
    shown = below.get_help(click.Context(below, info_name=" ".join(words), max_content_width=110))
    assert "\\b" not in shown
    examples = re.split(r"^ +Examples?:\n", shown, flags=re.MULTILINE)[1:]
    assert bool(examples) == ("Example" in shown)
    for line in [line for block in examples for line in block.partition("\n\n")[0].strip().splitlines()]:
        assert line.strip().startswith(("hybrid ", 'eval "$(hybrid '))
        assert line.count("hybrid ") == 1


@pytest.mark.parametrize(("words", "below"), list(commands(cli)))
def test_help_fits_a_screen(words: tuple[str, ...], below: click.Command) -> None:
    shown = below.get_help(click.Context(below, info_name=" ".join(words), terminal_width=80)).splitlines()
    assert len(shown) <= (45 if words == ("run",) else 40)
    # Examples are lines to be pasted and not folded.
    assert all(len(line) <= 80 or line.lstrip().startswith(("hybrid ", 'eval "$(hybrid ')) for line in shown)


def test_the_help_of_a_run_has_every_group_with_a_command_that_is_read(command: Command) -> None:
    shown = command("run", "--help").out
    for group, heading in GROUPS.items():
        assert f"\n{heading}:\n" in shown
        assert EXAMPLES[group] in shown
        run.make_context("run", EXAMPLES[group].split()[2:])


def test_all_help_is_there_when_asked_for(command: Command) -> None:
    short, whole = command("run", "--help").out, command("run", "--help-all").out
    for option in (word for param in run.params if isinstance(param, click.Option) for word in param.opts[:1]):
        assert f" {option} " in whole.replace("\n", " ")
    assert "matrix:" in whole
    assert "matrix:" not in short
    assert "--trust" not in short


def test_a_benchmark_shows_the_tools_that_it_offers(command: Command) -> None:
    shown = " ".join(command("benchmarks", "show", "mm_sap").out.split())
    assert "tools attributes, crop, depth, detection, ocr, relation" in shown


def test_a_card_says_where_data_is_had_that_the_hub_does_not_give(command: Callable[..., Any]) -> None:
    from hybrid.registry import load, names

    for name in names("hybrid.benchmarks"):
        elsewhere = load("hybrid.benchmarks", name).card.elsewhere
        line = f"elsewhere    {elsewhere}\n"
        assert (line in command("benchmarks", "show", name).out) is bool(elsewhere)


def test_only_the_file_of_a_user_is_called_one(command: Command) -> None:
    """A benchmark whose paper does not count its questions by task is no file of the user's."""
    lines = {line.split()[0]: line for line in command("benchmarks", "list").out.splitlines() if line[:1].isalpha()}
    assert [name for name, line in lines.items() if "of a file of your own" in line] == ["questions"]
    assert all("questions, " in line for name, line in lines.items() if load("hybrid.benchmarks", name).card.tasks)
