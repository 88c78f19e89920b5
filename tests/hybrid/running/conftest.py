"""Fixtures: data and a configuration for runs."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.config import RunConfig, ServiceOptions


@pytest.fixture
def blink(tmp_path: Path, fakes: Any) -> Path:
    """A folder of BLINK data of two tasks, three questions each."""
    return Path(fakes.blink_folder(tmp_path / "blink"))


@pytest.fixture
def config(tmp_path: Path, blink: Path, fakes: Any) -> RunConfig:
    """Configuration of a run in which a recorded model answers "(A)" to three puzzles and three relations."""
    model = f"replay:{fakes.recordings(tmp_path / 'model', fakes.blink_replies())}"
    service = ServiceOptions("classical")
    return RunConfig("blink", ("mllm",), model=model, data=str(blink), service=service, out=tmp_path / "run")
