"""Tiny checkpoints with random weights in the real format, so that learned backends run their real path offline."""

import functools
from pathlib import Path

import pytest

from tests.tools.tiny_checkpoints import Checkpoints, write

# Fixtures of weights: torch and transformers take seconds to load in each process that tests one of them.
NETWORKS = frozenset({"depth_checkpoint", "things_checkpoint"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use one of `NETWORKS` as `system`, except the contract, which marks its tests by backend."""
    for item in items:
        if item.path.name != "test_contract.py" and not NETWORKS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("system")


@pytest.fixture(scope="session")
def things_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    """`things_checkpoint("owlv2")` is the folder of a checkpoint of tiny_checkpoints.toml, made once."""

    @functools.cache
    def make_checkpoint(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        write(name, folder)
        return folder

    return make_checkpoint


@pytest.fixture(scope="session")
def depth_checkpoint(things_checkpoint: Checkpoints) -> Checkpoints:
    """Like `things_checkpoint`, by family of depth networks."""
    return things_checkpoint
