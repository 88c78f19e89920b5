"""A learned tool from outside, as the template writes it and on the tiny checkpoint of its test, through every command.

Its pages' commands are followed by `tests/test_docs_blocks.py`; here is what they leave on disk.
"""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

import tools
from hybrid import registry

JIGSAW = ("blink", "--data", "sample", "--task", "Jigsaw", "--limit", "2")


@pytest.fixture(autouse=True)
def tools_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that a test has looked in, or imported from there, is known to another."""
    monkeypatch.delenv(registry.PATH_VARIABLE, raising=False)
    before = list(tools.__path__)
    yield
    tools.__path__[:] = before
    sys.modules.pop("tools.likeness", None)
    vars(tools).pop("likeness", None)
    importlib.invalidate_caches()


@pytest.fixture
def path(command: Callable[..., Any], tmp_path: Path) -> tuple[str, ...]:
    """The words that find the tool; its tiny checkpoint is in `tiny`."""
    assert command("tools", "new", "likeness", "--learned", "--path", "mine").code == 0
    spec = importlib.util.spec_from_file_location("likeness_template_test", tmp_path / "mine" / "test_likeness.py")
    assert spec is not None
    assert spec.loader is not None
    written: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    written.save_tiny(tmp_path / "tiny")
    return ("--path", "mine")


@pytest.mark.slow
def test_it_is_listed_checked_and_run(command: Callable[..., Any], path: tuple[str, ...], tmp_path: Path) -> None:
    assert "likeness" in command("tools", "list", *path).out
    checked = command("tools", "check", "likeness", "--weights", "tiny", *path)
    assert (checked.code, "0 of 2 wrong" in checked.out) == (0, True)
    for place, grey in enumerate((20, 25, 250)):
        Image.new("RGB", (64, 64), (grey, 0, 0)).save(tmp_path / f"{place}.png")
    found = command("tools", "run", "likeness", "0.png", "1.png", "2.png", "--weights", "tiny", "--json", *path)
    assert json.loads(found.out)["backend"] == "learned"
    damaged = tmp_path / "tiny" / "model.safetensors"
    tensors = load_file(damaged)
    tensors.pop("layernorm.bias")
    save_file(tensors, damaged, {"format": "pt"})
    refused = command("tools", "check", "likeness", "--weights", "tiny", *path)
    assert (refused.code, "layernorm.bias" in refused.err) == (2, True)


@pytest.mark.slow
def test_its_rule_serves_every_solver_that_follows_rules(
    command: Callable[..., Any], path: tuple[str, ...], tmp_path: Path
) -> None:
    solvers = [word for name in ("mllm", "specialist", "arbiter", "verify") for word in ("--solver", name)]
    weights = ("--weights", "likeness=tiny", *path)
    ended = command("run", *JIGSAW, "--model", "embedded", *solvers, *weights, "--out", "real")
    assert ended.code == 0, ended.err
    assert "note: likeness answers 'Jigsaw' instead of the project's rule" in ended.err
    for solver in ("specialist", "arbiter", "verify"):
        attempts = (tmp_path / "real" / solver / "attempts.jsonl").read_text()
        assert '"likeness"' in attempts
        assert '"jigsaw"' not in attempts
    assert command("calibrate", "real", "-o", "trust.json", *path).code == 0
    assert "likeness" in (tmp_path / "trust.json").read_text()
    compared = command("compare", "real", "--only", "evidence", *path)
    assert (compared.code, "verify" in compared.out) == (0, True)


@pytest.mark.slow
def test_its_rule_that_raises_costs_its_own_answers(
    command: Callable[..., Any], path: tuple[str, ...], tmp_path: Path
) -> None:
    written = tmp_path / "mine" / "likeness.py"
    written.write_text(
        written.read_text().replace('OneCall("likeness", later_image)', 'OneCall("likeness", later_image, len)')
    )
    ended = command("run", *JIGSAW, "--solver", "specialist", "--weights", "likeness=tiny", *path, "--out", "broken")
    steps = (tmp_path / "broken" / "specialist" / "attempts.jsonl").read_text()
    assert ended.code in (0, 3), ended.err
    assert steps.count("tool_fault") >= 2
    assert "likeness, its rule for 'Jigsaw'" in steps
