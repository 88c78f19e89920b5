"""Tests of the printed command that adds a solver to a comparison that leaves it out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.groups import command_for_unchosen


def solver_of(name: str) -> Any:
    """Return a solver of the run `name`, which has a controller and the MLLM alone."""
    folder = SimpleNamespace(path=Path("runs") / name, solvers=lambda: ("controller", "mllm"))
    return SimpleNamespace(folder=folder, identity={})


PREDICTIONS: Any = SimpleNamespace(folder=None, identity={})


@pytest.mark.parametrize(
    ("name", "others", "command"),
    [
        ("mllm", [], "hybrid compare 'runs/a b'"),
        ("mllm", [solver_of("c"), solver_of("c")], "hybrid compare 'runs/a b' runs/c"),
        # `hybrid compare` of the runs would leave out the predictions of a file.
        ("mllm", [PREDICTIONS], "add 'runs/a b/mllm' to the comparison"),
        ("specialist", [], ""),
    ],
)
def test_a_solver_that_is_left_out_can_be_included(name: str, others: list[Any], command: str) -> None:
    own = solver_of("a b")
    assert command_for_unchosen([own], name, [own, *others]) == command
