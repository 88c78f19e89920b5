"""A run from its configuration to its finished folder, as the benches that count a whole run need it.

folder = finished(RunConfig("blink", solvers=("specialist",), data="sample", out=out))
"""

from __future__ import annotations

import asyncio

from hybrid.config import RunConfig
from hybrid.log.folder import RunFolder
from hybrid.running.resolve import prepare
from hybrid.running.run import ProgressCallback, ask_run


def finished(config: RunConfig, progress: ProgressCallback = lambda *_: None) -> RunFolder:
    """Ask every question of a run.

    Raises:
        HybridError: the run cannot be prepared, or it stopped.
        SystemExit: a question could not be finished: a table without it would be of other questions.
    """
    plan = prepare(config)
    failures = asyncio.run(ask_run(plan, progress))
    if failures:
        raise SystemExit(f"{failures[0].id}: {failures[0].error}")
    return plan.folder
