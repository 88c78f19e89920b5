"""Set up an actor on its node: working folder, search path of plug-ins, and the process that imports them."""

from __future__ import annotations

import os
from contextlib import ExitStack

import ray

from hybrid.engines.ray.cluster import other_program
from hybrid.engines.ray.messages import NodeCode
from hybrid.plugins.registry import described_by
from hybrid.serving.described import ProcessDescriber

_DESCRIBED = ExitStack()


def here() -> str:
    """Describe the node of this process: first digits of its id, and its address."""
    context = ray.get_runtime_context()
    return f"{context.get_node_id()[:8]} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]


def settle(place: NodeCode) -> str | None:
    """Take over the folder and search path of the run; returns the reason if this actor must not be used.

    Until the actor ends, plug-ins are imported in a separate process, as in a run.
    """
    if place.folder.is_dir():
        os.chdir(place.folder)
    _DESCRIBED.enter_context(described_by(ProcessDescriber))
    return other_program(place, here())
