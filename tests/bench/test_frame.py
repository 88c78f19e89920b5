"""The command line of the benches: each option has a help text, and its placeholder shows how the value is parsed."""

import ast
from pathlib import Path

import pytest

from bench._frame import HELP, options, parser

FILES = sorted((Path(__file__).parents[2] / "bench").rglob("*.py"))


def bench_texts() -> set[str]:
    """Return every string of the benches' sources."""
    nodes = (node for path in FILES for node in ast.walk(ast.parse(path.read_text())))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def flags() -> set[str]:
    """Return every mapping key in the benches' sources that is written like an option, without the dashes."""
    nodes = (node for path in FILES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Dict))
    keys = {key.value for node in nodes for key in node.keys if isinstance(key, ast.Constant)}
    values = {str(key).removesuffix("...").split()[-1] for key in keys if str(key).startswith("-")}
    return {flag.removeprefix("--") for flag in values if flag.startswith("--")}


@pytest.mark.system
def test_every_option_has_a_line_of_help_and_every_line_an_option() -> None:
    # Every option in the sources has a line of help, including those of other programs (pytest, `hybrid`, a server).
    assert flags() - set(HELP) == set()
    names = {text.removesuffix("...").removeprefix("--") for text in bench_texts() if text}
    names |= {text.split()[-1].removeprefix("--") for text in bench_texts() if text.startswith("-o ")}
    assert set(HELP) - names == set()


def test_a_value_says_how_an_option_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    payload = {"run": Path, "--items": 3, "--json": Path, "--fit": False, "--seed": [int], "--half": (None, "first")}
    payload |= {"--tools...": ("crop", "ocr"), "--power": {"action": "store_true"}}
    values = vars(
        options("A bench.", payload, ["here", "--items", "4", "--seed", "1", "--seed", "2", "--tools", "ocr", "crop"])
    )
    numbers = {"items": 4, "json": None, "fit": False, "seed": [1, 2], "half": None, "power": False}
    assert values == {"run": Path("here"), **numbers, "tools": ["ocr", "crop"]}
    assert options(None, {"--tools...": ("crop", "ocr")}, []).tools == ("crop",)
    with pytest.raises(SystemExit):
        parser("A bench.", {"--data": ..., "--power": False}).parse_args(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--power measure how often the difference with 80 % power is found" in text
    assert text.startswith("usage: ")
