"""Where an actor is: its node, the folder from which relative names count, and its process for code from outside."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import ray

from hybrid.registry import described_by
from hybrid.serving.described import Describer

_DESCRIBED = ExitStack()


def here() -> str:
    """The node of this process, by the first digits of its id and its address."""
    context = ray.get_runtime_context()
    return f"{context.get_node_id()[:8]} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]


def move_to(folder: Path) -> None:
    """Go to the folder in which the run was started, if this node has it."""
    if folder.is_dir():
        os.chdir(folder)


def import_elsewhere() -> None:
    """Import what lies outside of the project in a process of its own, as a run does, until this actor ends."""
    _DESCRIBED.enter_context(described_by(Describer))
