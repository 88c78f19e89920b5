"""A run of the specialist, by default without weights, from its configuration to its last question."""

import asyncio
from pathlib import Path
from typing import Any

from hybrid.config import RunConfig, ServiceOptions
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run


def specialist_run(benchmark: str, folder: Path, **changes: Any) -> ResolvedRun:
    """Run the specialist to its end in a folder; return the run. `changes` are fields of `RunConfig`."""
    options = {"data": "sample", "service": ServiceOptions("classical"), "out": folder / "run", **changes}
    plan = prepare(RunConfig(benchmark, ("specialist",), **options))
    assert not asyncio.run(ask_run(plan, lambda *_: None))
    return plan
