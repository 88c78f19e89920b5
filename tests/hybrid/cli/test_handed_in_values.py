"""Values that Python code hands in, beside a file and the environment."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.cli._configured import options_of
from hybrid.cli.from_python import values_of
from hybrid.cli.run import command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text("limit: 5\nrotate: true\nsetting: {hints: on, samples: 2}\nmodel: openai:of-the-file\n")
    return path


def options(file: Path, **keywords: Any) -> dict[str, Any]:
    return options_of(command.make_context("run", ["blink", "--config", str(file)], default_map=values_of(keywords)))


def test_they_win_over_a_file_and_of_a_mapping_by_key(file: Path) -> None:
    assert options(file, limit=3, setting={"hints": "off"}, model=None) == {
        "benchmark": "blink",
        "limit": 3,
        "setting": {"samples": "2", "hints": "off"},
        "model": "openai:of-the-file",
        "rotate": True,
    }


def test_they_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_MODEL", "openai:of-the-environment")
    monkeypatch.setenv("HYBRID_DATA_BLINK", "elsewhere")
    context = command.make_context("run", ["blink"], default_map=values_of({"model": "openai:m"}))
    assert (context.params["model"], context.params["data"]) == ("openai:m", "elsewhere")


def test_a_number_that_does_not_fit_is_refused_and_not_cut() -> None:
    with pytest.raises(Exception, match=r"'2\.5' is not a valid integer"):
        command.make_context("run", ["blink"], default_map=values_of({"limit": 2.5}))
