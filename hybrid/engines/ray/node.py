"""Where an actor is: its node, the folder from which relative names count, and its process for code from outside."""

from __future__ import annotations

import os
from contextlib import ExitStack

import ray

from hybrid.engines.ray.cluster import other_program
from hybrid.engines.ray.messages import NodeCode
from hybrid.registry import described_by
from hybrid.serving.described import Describer

_DESCRIBED = ExitStack()


def here() -> str:
    """The node of this process, by the first digits of its id and its address."""
    context = ray.get_runtime_context()
    return f"{context.get_node_id()[:8]} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]


def settle(place: NodeCode) -> str | None:
    """Work as the process of the run does that was started there; why this actor must not be asked, if so.

    Until the actor ends, what lies outside of the project is imported in a process of its own, as in a run.
    """
    if place.folder.is_dir():
        os.chdir(place.folder)
    _DESCRIBED.enter_context(described_by(Describer))
    return other_program(place, here())
