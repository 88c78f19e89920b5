"""Which code and weights answer for tools, where they run, and how long anything may take.

ServiceOptions("classical", isolated=True)
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal

from hybrid.serving.batching import COMING_WAIT_S
from hybrid.serving.loader import BackendChoice
from hybrid.serving.memory import memory_to_use
from hybrid.timing import QUEUE_S

Pictures = Literal["auto", "png"]
"""As what a crop or an overlay is stored: `auto` as JPEG where the image that it was made from is one, else as PNG."""

MOST_THREADS = 16
LOAD_S = 300.0
"""Above what weights take to load from a slow disk: all tools of the device wait for it."""


@dataclass(frozen=True)
class ServiceOptions(BackendChoice):
    """Which code and weights may answer, where, and for how long."""

    timeout_s: float = 300.0
    """How long one request, or the batch that it is in, may run."""
    queue_s: float = QUEUE_S
    """How long a request may wait for its turn, or for weights to load."""
    pictures: Pictures = "auto"
    """As what the pictures of findings are stored, and sent to a model."""
    coming_s: float = COMING_WAIT_S
    """How long a batch that is not full waits for requests that are being decoded."""
    threads: int = max(1, min(MOST_THREADS, os.cpu_count() or 1))
    """Decode, draw and encode for a learned tool, and run the weight-free ones: a GPU wants many of them."""
    isolated: bool = False
    """Run tools that are files of `tools/` in a worker process, which is killed and started again when one of them
    hangs, crashes or leaks (`hybrid/serving/supervisor.py`). What follows holds for such a process alone."""
    import_s: float = 60.0
    """How long the modules of a tool may take to be imported."""
    load_s: float = LOAD_S
    """How long the weights of a tool may take to load, download included (`--max-load-seconds`)."""
    silence_s: float = 30.0
    """How long the process may give no sign of life: a tool that holds the interpreter stops all others."""
    grace_s: float = 10.0
    """How long work goes on after its last caller has given up."""
    process_bytes: int = field(default_factory=lambda: memory_to_use() * 4 // 5)
    """Resident memory of the process: four fifths of what the machine, or a container, leaves to all."""
