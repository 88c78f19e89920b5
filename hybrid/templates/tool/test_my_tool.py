"""`my_tool` keeps the contract of all tools, and knows the answers of its own questions: `pytest test_my_tool.py`."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.config import BackendChoice, ServiceOptions
from hybrid.core.errors import NoBackend
from hybrid.plugins.discovery import add_search_path
from hybrid.plugins.registry import load
from hybrid.serving.contract import breaches
from hybrid.serving.known_answers import failures, run_checks
from hybrid.serving.loader import Loader
from hybrid.tool import Backend

add_search_path([Path(__file__).parent], __file__)

WEIGHTS: dict[str, str] = {}
"""By name of a tool the directory or hub id of weights that are not its default ones."""


@pytest.fixture(scope="module")
def backend() -> Backend[Any]:
    """The backend that answers: the learned one where its weights are on disk, else the weight-free one."""
    try:
        return Loader(BackendChoice(weights=WEIGHTS, unchecked=True)).load(load("tools", "my_tool")).backend
    except NoBackend as error:
        pytest.skip(str(error))


def test_it_keeps_the_contract(backend: Backend[Any]) -> None:
    assert breaches("my_tool", load("tools", "my_tool"), ServiceOptions(weights=WEIGHTS, unchecked=True)) == ()


def test_it_knows_its_own_answers(backend: Backend[Any]) -> None:
    tool = load("tools", "my_tool")
    if not tool.checks:
        pytest.skip("it has no images with known answers yet: `checks` of its TOOL")
    assert failures(run_checks(tool, backend)) == []
