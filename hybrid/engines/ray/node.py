"""Where an actor is: its node, and the folder from which relative names count."""

from __future__ import annotations

import os
from pathlib import Path

import ray


def here() -> str:
    """The node of this process, by the first digits of its id and its address."""
    context = ray.get_runtime_context()
    return f"{context.get_node_id()[:8]} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]


def move_to(folder: Path) -> None:
    """Go to the folder in which the run was started, if this node has it."""
    if folder.is_dir():
        os.chdir(folder)
