"""Values that Python code passes, and their precedence over a file and the environment."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.cli._run_config import config_of
from hybrid.cli.from_python import resolve
from hybrid.core.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text("limit: 5\nrotate: true\nsetting: {hints: on, samples: 2}\nmodel: openai:of-the-file\n")
    return path


def recorded(file: Path, **keywords: Any) -> dict[str, Any]:
    return dict(resolve("blink", {"config": file, **keywords}).recorded)


def test_they_win_over_a_file_and_of_a_mapping_by_key(file: Path) -> None:
    assert recorded(file, limit=3, setting={"hints": "off"}, model=None) == {
        "benchmark": "blink",
        "limit": 3,
        "setting": {"samples": "2", "hints": "off"},
        "model": "openai:of-the-file",
        "rotate": True,
    }


def test_a_flag_that_is_off_wins_over_a_file_and_is_recorded_only_there(file: Path) -> None:
    assert recorded(file)["rotate"] is True
    assert recorded(file, rotate=False, strict=False) == {**recorded(file), "rotate": False}


def test_they_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_MODEL", "openai:of-the-environment")
    monkeypatch.setenv("HYBRID_DATA_BLINK", "elsewhere")
    values = resolve("blink", {"model": "openai:m"}).values
    assert (values["model"], values["data"]) == ("openai:m", "elsewhere")


def test_a_value_of_the_environment_that_does_not_fit_is_named_with_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYBRID_DEVICE", "gpu")
    with pytest.raises(UsageError, match=r"'--device' \(env var: 'HYBRID_DEVICE'\): 'gpu' is not a device"):
        resolve("blink", {})


def test_a_number_that_does_not_fit_is_refused_and_not_cut() -> None:
    with pytest.raises(UsageError, match=r"'2\.5' is not a valid integer"):
        resolve("blink", {"limit": 2.5})


def test_a_value_of_a_mapping_keeps_its_type(file: Path) -> None:
    model_args = {"temperature": None, "stop": ["a", "b"], "top_k": 3, "echo": True}
    options = resolve("blink", {"data": "sample", "model": "openai:m", "model_arg": model_args})
    config = config_of(options.values, options.recorded)
    assert config.model_settings.temperature is None
    assert config.model_settings.extra == {"stop": ["a", "b"], "top_k": 3, "echo": True}
    assert resolve("blink", {"setting": {"hints": False}}).values["setting"] == {"hints": "off"}
