"""`--engine NAME`: the engines that ask the questions of a run (interface: `hybrid/running/engine.py`).

    run_until_complete(run, progress, tell, opener_of(config))

`local` is the run's own process. All other engines are registered in the entry-point group `hybrid.engines`, by this
project or by installed packages: functions from the configuration to an `Opener`, imported only when selected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hybrid.config import LOCAL, RunConfig
from hybrid.core.error_text import in_one_line
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.plugins.registry import offered_names, plugin
from hybrid.running.engine import Opener, local_engine

# The entry-point group of engines.
GROUP: Final = "hybrid.engines"


def opener_of(config: RunConfig) -> Opener:
    """Return the function that opens the selected engine.

    Raises:
        UsageError: unknown engine, failed import, or rejected configuration: an unused address, or a missing package.
    """
    if config.engine == LOCAL:
        if config.address is not None:
            others = " or ".join(f"--engine {name}" for name in offered_names(GROUP)) or "none"
            raise UsageError(f"--address {config.address}: the engine {LOCAL} does not use it: give {others} too")
        return local_engine
    engines = (LOCAL, *offered_names(GROUP))
    if config.engine not in engines:
        hint = did_you_mean(config.engine, engines)
        raise UsageError(f"--engine {config.engine}: unknown engine{hint}; available: {', '.join(engines)}")
    try:
        engine: Callable[[RunConfig], Opener] = plugin(GROUP, config.engine)
    except Exception as error:
        raise UsageError(f"--engine {config.engine}: cannot be imported: {in_one_line(error)}") from error
    return engine(config)
